package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// edited applies a change to a file with a text, and returns the new text. Without values, the key is removed.
func edited(t *testing.T, text, key string, values ...string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o640))
	var err error
	if values == nil {
		err = Unset(t.Context(), path, key)
	} else {
		err = Set(t.Context(), path, key, values)
	}
	got, failed := os.ReadFile(path)
	if failed != nil {
		t.Fatal(failed)
	}
	if info, failed := os.Stat(path); failed != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), failed)
	}
	return string(got), err
}

const commented = `# My configuration.

agent = "claude"   # the good one

# The registry of the company.
[registry]
url = "https://example/registry.json"
# Not so often.
max-age = "12h"

# Mine.
[agents.mine]
command = [
  "my-agent", # from home
  "--acp",
]
env = { A = "1" }

# Another.
[agents.other]
url = "wss://agent.example"
`

func TestEdit(t *testing.T) {
	for _, test := range []struct {
		name, text, key string
		values          []string
		want            string
	}{
		{"an empty file", "", "agent", []string{"a"}, "agent = 'a'\n"},
		{"a table in an empty file", "", "registry.offline", []string{"1"}, "[registry]\noffline = true\n"},
		{"replace", commented, "agent", []string{"a,b"}, strings.Replace(commented, `"claude"  `, `'a,b'  `, 1)},
		{"a list", "", "registry.prefer", []string{"npx,uvx", "binary"}, "[registry]\nprefer = ['npx', 'uvx', 'binary']\n"},
		{"replace in a table", commented, "registry.max-age", []string{"1h"}, strings.Replace(commented, `"12h"`, `'1h'`, 1)},
		{"add to the top", commented, "token-env", []string{"T"}, strings.Replace(commented, "one\n", "one\ntoken-env = 'T'\n", 1)},
		{"add to a table", commented, "registry.offline", []string{"true"}, strings.Replace(commented, "12h\"\n", "12h\"\noffline = true\n", 1)},
		{"add a table", commented, "agents.new.url", []string{"ws://h"}, commented + "\n[agents.new]\nurl = 'ws://h'\n"},
		{"remove", commented, "registry.max-age", nil, strings.Replace(commented, "max-age = \"12h\"\n", "", 1)},
		{"remove with its comment behind", commented, "agent", nil, strings.Replace(commented, "agent = \"claude\"   # the good one\n", "", 1)},
		{"remove an agent", commented, "agents.mine", nil, commented[:strings.Index(commented, "# Mine")] + commented[strings.Index(commented, "# Another"):]},
		{"remove the last agent", commented, "agents.other", nil, commented[:strings.Index(commented, "# Another")]},
		{"remove an agent with tables", "[agents.a]\nurl='ws://h'\n[agents.b]\ncommand=['x']\n[agents.b.env]\nA=''\n[registry]\n", "agents.b", nil, "[agents.a]\nurl='ws://h'\n[registry]\n"},
		{"remove dotted keys", "[agents]\na.url = 'ws://h'\n", "agents.a", nil, "[agents]\n"},
		{"remove what is not there", commented, "registry.offline", nil, commented},
		{"the top, only a comment", "# c", "agent", []string{"a"}, "# c\nagent = 'a'\n"},
		{"the top, a comment about something else", "# c\ntoken-env='T'", "agent", []string{"a"}, "# c\ntoken-env='T'\nagent = 'a'\n"},
		{"no newline at the end of a table", "[registry]", "registry.offline", []string{"f"}, "[registry]\noffline = false\n"},
		{"remove an agent that is an inline table", "[agents]\na = { url = 'ws://h' }\n", "agents.a", nil, "[agents]\n"},
		{"a name with a dot", "", "agents.a.b.url", []string{"ws://h"}, "[agents.\"a.b\"]\nurl = 'ws://h'\n"},
		{"a name with a dot that is there", "[agents.\"a.b\"]\nurl = \"ws://h\"\n", "agents.a.b.token-env", []string{"T"}, "[agents.\"a.b\"]\nurl = \"ws://h\"\ntoken-env = 'T'\n"},
		{"a setting of an agent", "[agents.a]\nurl = \"ws://h\"\n", "agents.a.option", []string{"x=1,2", "y=3"}, "[agents.a]\nurl = \"ws://h\"\noption = ['x=1,2', 'y=3']\n"},
		{"quoted keys", "'agent' = 'a' # c\n", "agent", []string{"b"}, "agent = 'b' # c\n"},
		{"Windows lines", "agent = 'a'\r\n\r\n[registry]\r\nurl = 'u'\r\n", "registry.max-age", []string{"3h"}, "agent = 'a'\r\n\r\n[registry]\r\nurl = 'u'\r\nmax-age = '3h'\r\n"},
		{"a table with Windows lines", "agent = 'a'\r\n", "registry.max-age", []string{"3h"}, "agent = 'a'\r\n\r\n[registry]\r\nmax-age = '3h'\r\n"},
		{"a byte order mark", "\ufeffformat = \"text\"\n", "format", []string{"json"}, "format = 'json'\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := edited(t, test.text, test.key, test.values...)
			if err != nil || got != test.want {
				t.Errorf("%v; got\n%s\nwant\n%s", err, got, test.want)
			}
		})
	}
}

// A change that fails leaves the file as it was.
func TestEditErrors(t *testing.T) {
	for _, test := range []struct {
		name, text, key string
		values          []string
		want            string
	}{
		{"no such key", "", "agnt", []string{"a"}, `there is no key "agnt"; did you mean agent?`},
		{"a key of an agent that is none", "", "agents.a.nothing", []string{"a"}, `there is no key "agents.a.nothing"`},
		{"a name that is none", "", "agents.a b.url", []string{"a"}, `there is no key "agents.a b.url"`},
		{"remove no such key", "", "agents", nil, `there is no key "agents"`},
		{"a wrong value", "", "registry.max-age", []string{"soon"}, "registry.max-age: expected a time"},
		{"two values", "", "registry.max-age", []string{"1h", "2h"}, "expected one value"},
		{"one of a few", "", "registry.prefer", []string{"npx,docker"}, `"docker": expected binary, npx or uvx`},
		{"an agent with half of what it needs", "", "agents.a.token-env", []string{"T"}, "agents.a: expected one of command, url and registry"},
		{"an agent without what it needs", "[agents.a]\nurl = 'ws://h'\ntoken-env = 'T'\n", "agents.a.url", nil, "agents.a: expected one of command, url and registry"},
		{"a wrong URL", "", "agents.a.url", []string{"h"}, "not a URL"},
		{"a file that is wrong", "agent = \n", "agent", []string{"a"}, "config.toml:1:9: "},
		{"add to an inline table", "registry = { url = 'a' }\n", "registry.offline", []string{"true"}, ErrByHand.Error()},
		{"remove from an inline table", "registry = { url = 'a', offline = true }\n", "registry.offline", nil, ErrByHand.Error()},
		{"dotted keys", "registry.url = 'a'\n", "registry.offline", []string{"true"}, ErrByHand.Error()},
		{"replace in an inline table", "registry = { url = 'a', offline = false }\n", "registry.offline", []string{"true"}, ErrByHand.Error()},
		{"replace an array of several lines", commented, "agents.mine.command", []string{"a", "-b"}, ErrByHand.Error()},
		{"no UTF-8", "", "agent", []string{"\xff"}, ErrByHand.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := edited(t, test.text, test.key, test.values...)
			if err == nil || !strings.Contains(err.Error(), test.want) || got != test.text {
				t.Errorf("got %v, want %s; the file is now\n%s", err, test.want, got)
			}
		})
	}
	if err := Set(t.Context(), "", "agent", []string{"a"}); err == nil {
		t.Error("no file is written")
	}
}

// A file that is a symbolic link stays one, also if it leads to nothing, and its directory is created for the user only.
func TestEditFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "acp", "config.toml")
	must.Do(t, Set(t.Context(), path, "agent", []string{"a"}))
	for name, want := range map[string]fs.FileMode{filepath.Dir(path): 0o700 | fs.ModeDir, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	link := filepath.Join(dir, "link.toml")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	must.Do(t, Set(t.Context(), link, "agent", []string{"b"}))
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "agent = 'b'\n" {
		t.Errorf("%q, %v", text, err)
	}
	dangling := filepath.Join(dir, "dangling.toml")
	must.Do(t, os.Symlink("none.toml", dangling))
	if err := Set(t.Context(), dangling, "agent", []string{"b"}); err == nil {
		t.Error("a link that leads to nothing was taken for a file")
	}
	must.Get(os.Readlink(dangling))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	if err := Set(t.Context(), filepath.Join(dir, "file", "config.toml"), "agent", []string{"a"}); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// Of many concurrent changes, none is lost.
func TestEditAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	var wait sync.WaitGroup
	const many = 20
	for i := range many {
		wait.Go(func() {
			if err := Set(t.Context(), path, fmt.Sprintf("agents.a%d.url", i), []string{"ws://h"}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	f, err := Read(path, true)
	if err != nil || len(f.Agents) != many {
		t.Errorf("%d agents, %v", len(f.Agents), err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 2 { // the file and the lock file
		t.Errorf("%v, %v", left, err)
	}
}

// A change of any valid file has only this effect, or is refused; comments stay.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(commented), 0, "x", false)
	f.Add([]byte("registry = {url='a'} # c\nagents.'a.b'.url='ws://h'"), 6, "x", false)
	f.Add([]byte("[agents]\na={url='ws://h'}\n#c\n[registry]\n"), 8, "2h", true)
	f.Fuzz(func(t *testing.T, text []byte, n int, value string, remove bool) {
		file, err := Parse("c", text)
		if err != nil {
			return
		}
		key := Table[uint(n)%uint(len(Table))].Key
		v, err := valueOf(key, []string{value})
		if err != nil && !remove {
			return
		}
		if remove {
			v = nil
		}
		got, err := file.changed(keyPath(key), v)
		if err != nil {
			return
		}
		if !remove && strings.Count(string(got), "#") < strings.Count(string(text), "#") {
			t.Errorf("a comment is lost: %q\n%q", text, got)
		}
	})
}
