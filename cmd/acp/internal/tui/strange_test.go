package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
)

// TestLongNames: a long name of a mode does not push the rest out of the status line.
func TestLongNames(t *testing.T) {
	inWorld(t, acp.AgentHandlers{NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
		return &acp.NewSessionResponse{SessionID: "s", Modes: acp.Some(acp.SessionModeState{
			CurrentModeID: "m", AvailableModes: []acp.SessionMode{{ID: "m", Name: strings.Repeat("mode ", 100)}},
		})}, nil
	}}, nil, func(w *world) {
		w.settle()
		w.sleep(time.Second)
		if s := w.status(); !strings.Contains(s, "mode mode") || !strings.Contains(s, "tester") {
			t.Errorf("the status line: %q", s)
		}
	})
}

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
