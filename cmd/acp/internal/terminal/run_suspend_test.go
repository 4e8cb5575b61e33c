//go:build linux

package terminal

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
)

// inShell starts an interactive shell, and acp run in it.
func inShell(t *testing.T, command string) *play {
	t.Helper()
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	p := begin(t, staging{cols: 100, rows: 24, env: []string{"PS1=shell> "}, prepare: func(_ *play, cmd *exec.Cmd) {
		cmd.Path, cmd.Args = shell, []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}
	}})
	p.Wait("shell>")
	p.Type(command)
	p.Press("enter")
	return p
}

// shellAgain waits until the shell has its terminal back with the usual settings.
func (p *play) shellAgain() {
	p.t.Helper()
	p.Wait("Stopped")
	p.Until("the terminal as the shell has it", func(f *screen.Frame) bool {
		for _, mode := range []string{"1049", "1004", "2004", "1002", "1006"} {
			if on, _ := f.Modes[mode].(bool); on {
				return false
			}
		}
		return true
	})
	p.Type("stty -a | grep -o ' -*icanon\\| -*echo ' | tr '\\n' '.'; echo typed-$((1+1))")
	p.Press("enter")
	f := p.Wait("typed-2")
	if !strings.Contains(f.Text(), " icanon. echo .typed-2") {
		p.t.Errorf("the line of the terminal is not as before:\n%s", f.Text())
	}
}

// TestRunSuspend: Ctrl-Z gives the terminal back to the shell, and fg redraws the screen with what has arrived
// meanwhile.
func TestRunSuspend(t *testing.T) {
	p := inShell(t, "acp run -- stage")
	p.Wait(" ready ")
	p.say("stream")
	p.Wait("The first par", "working")
	p.Type("a draft")
	p.Wait("> a draft")
	p.Press("ctrl+z")
	p.shellAgain()
	p.open() // the agent continues
	p.Type("fg")
	p.Press("enter")
	p.Wait("The first paragraph is **bo", "> a draft", "working")
	p.Type(" goes on")
	f := p.Wait("> a draft goes on")
	if strings.Contains(f.Text(), "shell>") || strings.Contains(f.Text(), "Stopped") {
		t.Errorf("what the shell wrote is still there:\n%s", f.Text())
	}
	p.open()
	p.open()
	p.Wait("Done.", " ready ")
	p.Press("ctrl+c", "ctrl+c")
	p.Wait("shell>")
	p.Type("echo status $?; exit 7")
	p.Press("enter")
	p.Leave(7)
	if !strings.Contains(string(p.Raw()), "status 0") {
		t.Error("acp has not ended well")
	}
}
