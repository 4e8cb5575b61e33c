package main

import (
	"io"
	"strings"
	"testing"
)

// Colors are used on terminals, unless NO_COLOR says otherwise.
func TestColors(t *testing.T) {
	file := write(t, "bad.jsonl", []byte(header+request+strings.Replace(banner, "Loading", `Loading \u001b[2J`, 1)+end))
	for _, command := range [][]string{{"check", file}, {"show", file}, {"rules"}, {"explain", "INI-1"}} {
		for _, test := range []struct {
			env    string
			colors bool
		}{{"TERM=xterm", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
			s := programInSession(t, "env", append([]string{"NO_COLOR=", "TERM=xterm", test.env, "acp"}, command...)...)
			shown, _ := io.ReadAll(s.main) // a terminal without writers is an error
			if err := s.Wait(); s.ProcessState.ExitCode() > statusFindings {
				t.Fatal(err)
			}
			out := string(shown)
			if got := strings.Contains(out, "\x1b["); got != test.colors {
				t.Errorf("%s, %s: colours: %v\n%q", test.env, command[0], got, out)
			}
			if strings.Contains(out, "\x1b[2J") || !strings.Contains(out, "INI-1") && !strings.Contains(out, `\x1b[2J`) {
				t.Errorf("%s, %s: %q", test.env, command[0], out)
			}
		}
	}
}
