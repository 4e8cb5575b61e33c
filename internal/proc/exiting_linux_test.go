package proc

import (
	"io"
	"os/exec"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// Once the output of a process has ended with it, the process is exiting; one that has only closed its output is not.
func TestExiting(t *testing.T) {
	for script, want := range map[string]bool{"exit 3": true, "kill -9 $$": true, "exec >&-; read -r line": false} {
		cmd := exec.Command("sh", "-c", script)
		in := must.Get(cmd.StdinPipe())(t)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		if _, err := io.ReadAll(out); err != nil {
			t.Error(err)
		}
		if got := Exiting(cmd.Process.Pid); got != want {
			t.Errorf("%s: got %v", script, got)
		}
		in.Close()
		_ = cmd.Wait() // it fails on purpose
		if !Exiting(cmd.Process.Pid) {
			t.Errorf("%s: not exiting, though it has ended", script)
		}
	}
}

func TestEndedBySignalWithoutName(t *testing.T) {
	cmd := exec.Command("sh", "-c", "kill -61 $$")
	_ = cmd.Run() // it fails on purpose
	if sig, name := EndedBy(cmd.ProcessState); sig != 61 || name != "SIG61" {
		t.Errorf("got %d, %q", sig, name)
	}
}
