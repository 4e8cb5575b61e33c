package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/acpgo/sdk/internal/test/must"
)

// Colors are used on terminals, unless NO_COLOR says otherwise.
func TestColors(t *testing.T) {
	file := write(t, "bad.jsonl", []byte(header+request+strings.Replace(banner, "Loading", `Loading \u001b[2J`, 1)+end))
	for _, command := range [][]string{{"check", file}, {"show", file}, {"rules"}, {"explain", "INI-1"}} {
		for _, test := range []struct {
			env    string
			colors bool
		}{{"TERM=xterm", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
			cmd := exec.CommandContext(t.Context(), "acp", command...)
			cmd.Env = append(os.Environ(), "NO_COLOR=", "TERM=xterm", test.env)
			out := inTerminal(t, cmd)
			if got := strings.Contains(out, "\x1b["); got != test.colors {
				t.Errorf("%s, %s: colours: %v\n%q", test.env, command[0], got, out)
			}
			if strings.Contains(out, "\x1b[2J") || !strings.Contains(out, "INI-1") && !strings.Contains(out, `\x1b[2J`) {
				t.Errorf("%s, %s: %q", test.env, command[0], out)
			}
		}
	}
}

// inTerminal runs a program whose output is a terminal, and returns what it shows.
func inTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	main, terminal, err := pty.Open()
	must.Do(t, err)
	defer main.Close()
	cmd.Stdout = terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals to the tests are not for it
	must.Do(t, errors.Join(cmd.Start(), terminal.Close()))
	shown, err := io.ReadAll(main)
	if err != nil && !errors.Is(err, syscall.EIO) { // the usual end of a terminal without writers
		t.Fatal(err)
	}
	if _, failed := errors.AsType[*exec.ExitError](cmd.Wait()); failed && cmd.ProcessState.ExitCode() != statusFindings {
		t.Fatal(cmd.ProcessState)
	}
	return string(shown)
}
