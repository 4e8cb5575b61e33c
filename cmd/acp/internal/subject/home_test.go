package subject

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestHome: each scenario has its own home, a copy of the template that all launches of the scenario share; with Home,
// all scenarios share that one. The user's variables can refer to it and take precedence.
// Arguments and variables can name the scenario's directory.
func TestHome(t *testing.T) {
	template, shared := t.TempDir(), t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(template, "settings"), nil, 0o600))
	scratch := t.TempDir()
	says := func(c Command, dir string) string {
		t.Helper()
		dir = filepath.Join(scratch, probe.Work, dir)
		must.Do(t, os.MkdirAll(probe.Home(dir), 0o700))
		c.Args = []string{"sh", "-c", `echo "$HOME $XDG_STATE_HOME $MINE" $(ls "$HOME") "$1 $DIR"; touch "$HOME/left"`, "sh", "{dir}"}
		c.Env = append([]string{"DIR={dir}/x"}, c.Env...)
		target := must.Get(c.Launch(t.Context(), dir))(t)
		defer target.Stream.Close()
		line := must.Get(target.Stream.Read())(t)
		if _, err := target.Stream.Read(); err == nil {
			t.Fatal("it goes on")
		}
		rest, ok := strings.CutSuffix(strings.ReplaceAll(string(line), probe.Home(dir), "~"), dir+" "+dir+"/x")
		if !ok {
			t.Errorf("%s does not end with the directory, %s", line, dir)
		}
		return rest
	}
	own := Command{Template: template, Env: []string{"MINE={home}/x"}}
	for i, c := range []struct {
		command   Command
		dir, want string
	}{
		{own, "a", "~ ~/.local/state ~/x settings"},
		{own, "a", "~ ~/.local/state ~/x left settings"},
		{own, "b", "~ ~/.local/state ~/x settings"},
		{Command{Home: shared}, "c", shared + " " + shared + "/.local/state "},
		{Command{Home: shared, Env: []string{"HOME=" + template}}, "d", template + " " + shared + "/.local/state  settings"},
	} {
		if got := strings.TrimSpace(says(c.command, c.dir)); got != strings.TrimSpace(c.want) {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}
