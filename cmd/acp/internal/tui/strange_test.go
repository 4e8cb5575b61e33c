package tui

import (
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
)

// TestOptionWithoutName: an option of a permission request without a name is described by its kind.
func TestOptionWithoutName(t *testing.T) {
	a := &asker{options: []acp.PermissionOption{acp.AllowOnce("a", ""), acp.RejectOnce("b", "")}}
	inWorld(t, acp.AgentHandlers{Prompt: a.prompt}, nil, func(w *world) {
		w.settle()
		w.say("go")
		w.sleep(2 * time.Second)
		w.want("1 or y  allow once", "2 or n  reject once")
		w.key("n")
		w.sleep(time.Second)
		w.want("Answered: reject once")
		a.want(t, "b")
	})
}
