package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

// session is acp exec in a terminal of its own.
type session struct {
	*exec.Cmd
	main  *os.File
	shown string
}

func inSession(t *testing.T, args ...string) *session {
	t.Helper()
	return programInSession(t, "acp", args...)
}

func programInSession(t *testing.T, program string, args ...string) *session {
	t.Helper()
	main, terminal, err := pty.Open()
	must.Do(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	s := &session{exec.CommandContext(ctx, program, args...), main, ""}
	t.Cleanup(func() { _ = main.Close() })
	s.Dir = t.TempDir()
	s.Env = append(os.Environ(), "XDG_CONFIG_HOME="+s.Dir)
	s.Stdin, s.Stdout, s.Stderr = terminal, terminal, terminal
	s.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, s.Start())
	must.Do(t, terminal.Close())
	return s
}

// until reads until the terminal has shown a text.
func (s *session) until(t *testing.T, text string) {
	t.Helper()
	for part := make([]byte, 4096); !strings.Contains(s.shown, text); {
		n, err := s.main.Read(part)
		s.shown += string(part[:n])
		if err != nil && !strings.Contains(s.shown, text) {
			t.Fatalf("no %q: %v in\n%s", text, err, s.shown)
		}
	}
}

func (s *session) typeIn(t *testing.T, keys string) {
	t.Helper()
	must.Get(s.main.WriteString(keys))(t)
}

// The user is asked on the terminal, with everything that is known, and answers there.
func TestExecAsks(t *testing.T) {
	s := inSession(t, "exec", "ask", "--", "oddagent")
	s.until(t, "Which one? ")
	for _, want := range []string{"Run rm -rf /", "1: allow once: Yes", "2: reject once: No"} {
		if !strings.Contains(s.shown, want) {
			t.Errorf("no %q in\n%s", want, s.shown)
		}
	}
	if strings.Contains(s.shown, "no rule matches") {
		t.Error("the reason is that no rule matches, although there is none")
	}
	s.typeIn(t, "9\n")
	s.until(t, "Which one, 1 to 2? ")
	time.Sleep(view.Delay)
	s.typeIn(t, "1\n")
	s.until(t, `"optionId":"yes"`)
	expectExit(t, s.Wait(), statusOK)
}

// A question ends with its turn, and with its terminal.
func TestExecAsksNobody(t *testing.T) {
	s := inSession(t, "exec", "ask", "--", "oddagent")
	s.until(t, "Which one? ")
	s.typeIn(t, "\x03")
	s.until(t, "acp: interrupted")
	expectExit(t, s.Wait(), 130)

	s = inSession(t, "exec", "ask", "--", "oddagent")
	s.until(t, "Which one? ")
	must.Do(t, s.main.Close())
	expectExit(t, s.Wait(), 129)

	s = inSession(t, "exec", "--deny", "ask", "--", "oddagent")
	s.until(t, `"optionId":"no"`)
	expectExit(t, s.Wait(), statusOK)
}

// No control character of an agent reaches the terminal, in each format.
func TestExecControls(t *testing.T) {
	for format, want := range map[string]string{"text": "a[31mbcde", "quiet": "a[31mbcde", "json": `a\u001b[31mb\u0007c`} {
		s := inSession(t, "exec", "--format", format, "controls", "--", "oddagent")
		s.until(t, want)
		expectExit(t, s.Wait(), statusOK)
		if strings.ContainsAny(s.shown, "\x1b\x07\u009b\u202e") {
			t.Errorf("%s: %q", format, s.shown)
		}
	}
}

// What is judged does not stand in the line of the answer.
func TestExecFindingsOnTerminal(t *testing.T) {
	s := inSession(t, "exec", "--check", "noise", "--", "oddagent")
	s.until(t, "done\r\n")
	expectExit(t, s.Wait(), statusFindings)
}
