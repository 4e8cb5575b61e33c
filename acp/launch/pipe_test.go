//go:build unix

package launch_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestDoctorPipe: an examination does not wait for what nobody writes.
func TestDoctorPipe(t *testing.T) {
	requireShell(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "agent")
	must.Do(t, syscall.Mkfifo(program, 0o700))
	if d := launch.Doctor(t.Context(), launch.New(program), nil); !d.Has(launch.NotExecutable) {
		t.Errorf("a pipe is a program: %v", d)
	}
}

// TestProblemIsClean: nothing that a program has written reaches the terminal as it is.
func TestProblemIsClean(t *testing.T) {
	text := launch.Problem{Kind: launch.Exited, Text: "it says: \x1b[2J\n::error::x", Advice: "do\x07\r\u202e"}.String()
	if strings.ContainsAny(text, "\x1b\x07\r\u202e") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", text)
	}
}
