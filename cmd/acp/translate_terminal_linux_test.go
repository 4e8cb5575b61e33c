package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestTypeScriptAgentVersion2Run plays a turn with the TypeScript SDK's agent of version 2 in acp run, on a terminal.
func TestTypeScriptAgentVersion2Run(t *testing.T) {
	agent := filepath.Join(typescript(t), "v2-agent.mjs")
	wire := filepath.Join(t.TempDir(), "wire.jsonl")
	s := inSession(t, "run", "--plain", "--record", wire, "--", "node", agent)
	must.Do(t, os.WriteFile(filepath.Join(s.Dir, "greeting.txt"), []byte("Good morning\n"), 0o600))
	s.until(t, "\n> ")
	s.typeIn(t, "Read it.\n")
	s.until(t, "Which one? ")
	time.Sleep(view.Delay)
	s.typeIn(t, "1\n")
	const answered = "Answered: allow once: Allow"
	s.until(t, answered)
	before, after, _ := strings.Cut(s.shown, answered)
	s.shown = after
	s.until(t, "\r\n> ") // the end of the plan may be shown before or after the end of the text
	s.shown = before + answered + s.shown
	for _, want := range []string{"It is in the project.", "$ cat greeting.txt\r\n| Good morning", "completed: Say it", "agent:  Done."} {
		if !strings.Contains(s.shown, want) {
			t.Errorf("no %q in\n%s", want, s.shown)
		}
	}
	s.typeIn(t, ":quit\n")
	expectExit(t, s.Wait(), statusOK)
	conforms(t, "run", wire, "--level", "should")
}
