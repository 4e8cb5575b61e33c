package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestParse(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	f, err := Parse("config.toml", []byte(`
# what is taken without a name
agent = "claude"
header-env = ["X-Key=KEY"]

[registry]
max-age = "2h"
offline = true

[agents.mine]
command = ["~/bin/my-agent", "--acp"]
env = { KEY = "v" }
dir = "~/work"

[agents]
far.url = "wss://agent.example/acp"
far.token-file = "~/token"
claude = { registry = "claude-code-acp" }
`))
	must.Do(t, err)
	want := map[string]*Agent{
		"mine":   {Name: "mine", Command: &launch.Command{Program: filepath.Join(home, "bin", "my-agent"), Args: []string{"--acp"}, Env: map[string]string{"KEY": "v"}, Dir: filepath.Join(home, "work")}},
		"far":    {Name: "far", URL: "wss://agent.example/acp", Sent: Settings{TokenFile: filepath.Join(home, "token")}},
		"claude": {Name: "claude", Registry: "claude-code-acp"},
	}
	if !reflect.DeepEqual(f.Agents, want) {
		t.Errorf("got %v\nwant %v", f.Agents, want)
	}
	for _, key := range []string{"agent", "header-env", "registry.max-age", "registry.offline"} {
		if f.values[key] == nil {
			t.Errorf("%s is not set", key)
		}
	}
}

// Errors are reported with their position, whatever the file contains.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"agent = \"a\"\nagnt = 1":                 `2:1: agnt: unknown key; did you mean agents or agent?`,
		"x = 1":                                   `1:1: x: unknown key`,
		"agent = 1":                               `1:1: agent: expected a string, not a number`,
		"dir = [\"a\", 1]":                        `1:1: dir: expected an array of strings, not a number`,
		"agent = ":                                `1:8: expected value, not end of input`,
		"agent = \"a\"\nagent = \"b\"":            `2:1: key agent is already defined`,
		"\n [registry]\n  ulr = \"x\"":            `3:3: registry.ulr: unknown key; did you mean url or dir?`,
		"registry = 1":                            `1:1: registry: expected a table`,
		"registry.max-age = \"1 hour\"":           `1:10: registry.max-age: expected a time such as 30s, 10m or 1h30m`,
		"registry.max-age = \"-1h\"":              `1:10: registry.max-age: expected a time that is not less than 0`,
		"registry.max-age = 3":                    `1:10: registry.max-age: expected a time as a string, such as "30s", not a number`,
		"registry.prefer = [\"npx\", \"docker\"]": `1:10: registry.prefer: "docker": expected binary, npx or uvx`,
		"registry.offline = \"yes\"":              `1:10: registry.offline: expected true or false, not a string`,
		"token-file = [\"x\"]":                    `1:1: token-file: expected a string, not an array`,
		"agents = 1":                              `1:1: agents: expected a table for each agent, such as [agents.NAME]`,
		"[[agents]]\nurl=\"x\"":                   `1:3: agents: expected a table for each agent, such as [agents.NAME]`,
		"agents.a = 1":                            `1:8: agents.a: expected a table, such as [agents.NAME]`,
		"[agents.a]":                              `1:9: agents.a: expected one of command, url and registry`,
		"[agents.a]\nurl = \"ws://h\"\ncommand = [\"a\"]":           `1:9: agents.a: expected one of command, url and registry`,
		"[agents.a]\ncommand = \"a b\"":                             `2:1: agents.a.command: expected an array of strings, not a string`,
		"[agents.a]\ncommand = []":                                  `2:1: agents.a.command: expected the program and its arguments`,
		"[agents.a]\ncommand = [\"./a\"]":                           `2:1: agents.a.command: expected the name of a program in PATH, or an absolute path`,
		"[agents.a]\ncommand = [\"a\"]\ndir = \"b\"":                `3:1: agents.a.dir: expected an absolute path`,
		"[agents.a]\ncommand = [\"a\"]\nenv = { A = 1 }":            `3:1: agents.a.env: A: expected a string, not a number`,
		"[agents.a]\ncommand = [\"a\"]\nenv = { \"A=B\" = \"1\"}":   `3:1: agents.a.env: "A=B" is not a valid variable name`,
		"[agents.a]\ncommand = [\"a\"]\nenv = { \"A\\nB\" = \"1\"}": `3:1: agents.a.env: "A\nB" is not a valid variable name`,
		"[agents.a]\ncommand = [\"a\"]\ntoken-env = \"X\"":          `3:1: agents.a.token-env: this key is only for agents with url`,
		"[agents.a]\nurl = \"ftp://h\"":                             `2:1: agents.a.url: the URL of an agent must begin with ws, wss, http or https, not "ftp"`,
		"[agents.a]\nurl = \"h\"":                                   `2:1: agents.a.url: not a URL`,
		"[agents.a]\nulr = \"ws://h\"\nurl = \"ws://h\"":            `2:1: agents.a.ulr: unknown key; did you mean dir or url?`,
		"[agents.a]\nurl = \"ws://h\"\nallow-insecure = 1":          `3:1: agents.a.allow-insecure: expected true or false, not a number`,
		"[agents.a]\nurl = \"ws://h\"\nmodel = 3":                   `3:1: agents.a.model: expected a string, not a number`,
		"[agents.a]\nurl = \"ws://h\"\nformat = \"json\"":           `3:1: agents.a.format: unknown key`,
		"[agents.a]\nregistry = \"\"":                               `2:1: agents.a.registry: the text is empty`,
		"[agents.\"a b\"]\nurl = \"ws://h\"":                        `1:9: agents.a b: a name consists of letters, digits, . _ and -, and begins with a letter or a digit`,
		"\"\\u001b[2J\" = 1":                                        `1:1: \x1b[2J: unknown key`,
		"\"registry.url\" = \"x\"":                                  `1:1: "registry.url": unknown key; did you mean registry.url?`,
		"agent = \"a\x01b\"":                                        `1:11: basic strings cannot have control characters`,
		"agent = \"\xff\"":                                          `1:10: invalid UTF-8 character in basic string`,
		"a = " + strings.Repeat("[", 100_000):                       `1:10005: arrays and inline tables are nested more than the maximum of 10000 levels deep`,
	} {
		_, err := Parse("c", []byte(text))
		var e *Error
		if !errors.As(err, &e) || err.Error() != "c:"+want {
			t.Errorf("%.60q:\n got %v\nwant c:%s", text, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.toml")
	if f, err := Read(missing, false); err != nil || len(f.Agents) > 0 || f.Path != missing {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := Read(missing, true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was named: %v", err)
	}
	if _, err := Read(dir, false); err == nil {
		t.Error("a directory was read")
	}
	large := filepath.Join(dir, "large.toml")
	must.Do(t, os.WriteFile(large, []byte(strings.Repeat("#\n", maxFile)), 0o600))
	if _, err := Read(large, false); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a large file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "agent = \"a\"", "[agents.a]\ncommand = [\"a\"] # c", "agents = {a = {url = 'ws://h'}}", "registry.prefer=[\n'npx', # n\n]",
		"a.\"b.c\".d = {e.f = [{}]}", "[[a]]\nb=1\n[[a]]\nb=1", "=", "[", "x = '''\n'''",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("c", text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Line > strings.Count(string(text), "\n")+1 {
				t.Fatalf("%v", err)
			}
			return
		}
		for path, at := range file.places {
			if at < 0 || at >= len(text) {
				t.Errorf("%s: %v", path, at)
			}
		}
	})
}
