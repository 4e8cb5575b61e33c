package browser

import (
	"os"
	"strings"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
)

// faulty returns a recording in which the agent sends one wrong update: a plan whose entry has a priority that does not exist.
func faulty(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/faulty.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRecording(t *testing.T) {
	in, server := inspection(t, inspect.Options{})
	read(t, in, "shop.jsonl", faulty(t))
	p := newTab(t, wide)
	p.open(server.URL())
	p.see("1 MUST")
	p.click(".verdict", "1 MUST")
	p.see("priority")
	if got := eval[string](p, `document.querySelector(".message-pane").innerText`); !strings.Contains(got, "A correct example") {
		t.Errorf("no example in %s", got)
	}
}
