package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/internal/plain"
)

// maxFile is the maximum size of the file in bytes.
const maxFile = 1 << 20

// Error is an error in the file or in a variable.
type Error struct {
	// Path is the file, and Line and Column are the position in it, counting from 1. For a variable Path is its name,
	// and the position is 0.
	Path         string
	Line, Column int
	// Err describes the error.
	Err error
}

// Error implements the error interface.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("$%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.Path, e.Line, e.Column, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Agent is an agent of the file: its command, its URL, or another name for an agent of the registry.
type Agent struct {
	Name string
	// Command is how the agent is started; nil for the others.
	Command *launch.Command
	// URL is the agent's URL. Sent has the settings that say what is sent with every request to it, and no others.
	URL  string
	Sent Settings
	// Registry is the agent's id in the registry.
	Registry string

	settings map[string]any // the agent's own; see Config.For
}

// File is the parsed configuration file.
type File struct {
	// Path is the path of the file, which need not exist.
	Path string
	// Agents are the user's own agents, by name.
	Agents map[string]*Agent

	text   []byte
	places map[string]int // the offsets of keys in the text
	values map[string]any // of settings
}

// Path returns the path of the file: given, or else $ACP_CONFIG, or else config.toml in the directory acp of the user's
// configuration directory. named reports whether the user named it, so that it must exist. The path is "" if the user
// has no configuration directory.
func Path(given string) (path string, named bool) {
	if given = cmp.Or(given, os.Getenv("ACP_CONFIG")); given != "" {
		return given, true
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if runtime.GOOS == "windows" || !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return "", false
		}
	}
	return filepath.Join(dir, "acp", "config.toml"), false
}

// Read reads a file. If it is missing and was not named, nothing is set. The error for invalid content is an *Error.
func Read(path string, named bool) (*File, error) {
	if path == "" {
		return Parse("", nil)
	}
	text, err := input.ReadFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return Parse(path, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("the configuration: %w", err)
	}
	return Parse(path, text)
}

// Parse parses the text of a file. It ignores a byte order mark.
func Parse(path string, text []byte) (*File, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	f := &File{Path: path, Agents: map[string]*Agent{}, text: text, places: map[string]int{}, values: map[string]any{}}
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		e := &Error{Path: path, Line: 1, Column: 1, Err: err}
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			e.Line, e.Column = at.Position()
			e.Err = errors.New(strings.TrimPrefix(at.Error(), "toml: "))
		}
		return nil, e
	}
	f.locate()
	return f, f.table("", all)
}

// locate records the positions of the keys.
func (f *File) locate() {
	p := &unstable.Parser{}
	p.Reset(f.text)
	var note func(e *unstable.Node, table string) string
	note = func(e *unstable.Node, path string) string {
		for keys := e.Key(); keys.Next(); {
			path = joinKey(path, string(keys.Node().Data))
			if _, again := f.places[path]; !again {
				f.places[path] = int(keys.Node().Raw.Offset)
			}
		}
		if e.Kind == unstable.KeyValue && e.Value().Kind == unstable.InlineTable {
			for inner := e.Value().Children(); inner.Next(); {
				if inner.Node().Kind == unstable.KeyValue {
					note(inner.Node(), path)
				}
			}
		}
		return path
	}
	for table := ""; p.NextExpression(); {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = note(e, "")
		case unstable.KeyValue:
			note(e, table)
		}
	}
}

// joinKey returns the path of a key in a table. The keys of this package have no dots; a key of the file that has some
// must not look like another.
func joinKey(table, key string) string {
	if strings.ContainsAny(key, ".\"") {
		key = fmt.Sprintf("%q", key)
	}
	if table == "" {
		return key
	}
	return table + "." + key
}

// wrong returns an error about a key.
func (f *File) wrong(path string, format string, args ...any) error {
	before := f.text[:f.places[path]]
	e := &Error{Path: f.Path, Line: 1 + strings.Count(string(before), "\n")}
	e.Column = 1 + len(before) - (strings.LastIndex(string(before), "\n") + 1)
	e.Err = fmt.Errorf("%s: %w", plain.Line(path), fmt.Errorf(format, args...))
	return e
}

// inOrder returns the keys of a table in the order of the file, so that the first error is reported.
func (f *File) inOrder(table string, all map[string]any) []string {
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return f.places[joinKey(table, a)] - f.places[joinKey(table, b)]
	})
}

// table reads a table that contains settings.
func (f *File) table(table string, all map[string]any) error {
	for _, key := range f.inOrder(table, all) {
		path := joinKey(table, key)
		row := Find(path)
		inner, isTable := all[key].(map[string]any)
		switch {
		case row != nil:
			var scratch Settings
			if err := row.set(row.field(&scratch), all[key]); err != nil {
				return f.wrong(path, "%w", err)
			}
			f.values[path] = all[key]
		case path == "agents":
			if !isTable {
				return f.wrong(path, "expected a table for each agent, such as [agents.NAME]")
			}
			if err := f.agents(inner); err != nil {
				return err
			}
		case slices.ContainsFunc(Table, func(s Setting) bool { return strings.HasPrefix(s.Key, path+".") }):
			if !isTable {
				return f.wrong(path, "expected a table")
			}
			if err := f.table(path, inner); err != nil {
				return err
			}
		default:
			var known []string
			if table == "" {
				known = append(known, "agents")
			}
			for i := range Table {
				if rest, below := strings.CutPrefix(Table[i].Key, table+"."); below || table == "" {
					known = append(known, rest)
				}
			}
			return f.unknown(table, key, known)
		}
	}
	return nil
}

// unknown returns the error for an unknown key in a table whose keys are known.
func (f *File) unknown(table, key string, known []string) error {
	path := joinKey(table, key)
	if near := Nearest(key, known); len(near) > 0 {
		return f.wrong(path, "unknown key; did you mean %s?", OrList(near))
	}
	return f.wrong(path, "unknown key")
}

// namePattern matches valid names of agents: they contain nothing that a shell, a URL or a terminal would interpret.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// agentKeys lists the keys of an agent. how is the key among command, url and registry that it belongs to, or anyAgent;
// "" for those three.
var agentKeys = append([]agentKey{
	{"command", ""},
	{"env", "command"},
	{"dir", "command"},
	{"url", ""},
	{"token-file", "url"},
	{"token-env", "url"},
	{"header-file", "url"},
	{"header-env", "url"},
	{"allow-insecure", "url"},
	{"registry", ""},
}, settingKeys()...)

type agentKey struct{ key, how string }

// anyAgent is the how of keys that all agents have.
const anyAgent = "any"

// settingKeys returns the settings that an agent may have in its own table.
func settingKeys() (keys []agentKey) {
	for i := range Table {
		if Table[i].Each {
			keys = append(keys, agentKey{Table[i].Key, anyAgent})
		}
	}
	return keys
}

func (f *File) agents(all map[string]any) error {
	for _, name := range f.inOrder("agents", all) {
		path := joinKey("agents", name)
		table, ok := all[name].(map[string]any)
		switch {
		case !namePattern.MatchString(name):
			return f.wrong(path, "a name consists of letters, digits, . _ and -, and begins with a letter or a digit")
		case !ok:
			return f.wrong(path, "expected a table, such as [agents.NAME]")
		}
		a, err := f.agent(name, path, table)
		if err != nil {
			return err
		}
		f.Agents[name] = a
	}
	return nil
}

func (f *File) agent(name, path string, table map[string]any) (*Agent, error) {
	hows := map[string]string{} // what the keys belong to
	var known []string
	for _, k := range agentKeys {
		hows[k.key], known = k.how, append(known, k.key)
	}
	keys := f.inOrder(path, table)
	for _, key := range keys {
		if !slices.Contains(known, key) {
			return nil, f.unknown(path, key, known)
		}
	}
	given := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return hows[key] != "" })
	if len(given) != 1 {
		return nil, f.wrong(path, "expected one of command, url and registry")
	}
	a := &Agent{Name: name}
	if given[0] == "command" {
		a.Command = &launch.Command{}
	}
	for _, key := range keys {
		at := joinKey(path, key)
		if how := hows[key]; how != "" && how != anyAgent && how != given[0] {
			return nil, f.wrong(at, "this key is only for agents with %s", how)
		}
		if err := a.set(key, table[key]); err != nil {
			return nil, f.wrong(at, "%w", err)
		}
	}
	return a, nil
}

// set sets the field of a key.
func (a *Agent) set(key string, v any) (err error) {
	row := Find(key)
	if row != nil && row.Each {
		if a.settings == nil {
			a.settings = map[string]any{}
		}
		a.settings[key] = v
		return row.set(row.field(&Settings{}), v)
	}
	text, isText := v.(string)
	switch {
	case isText && text == "":
		return errors.New("the text is empty")
	case key == "command":
		words, err := stringsOf(v)
		if err != nil {
			return err
		}
		if len(words) == 0 || words[0] == "" {
			return errors.New("expected the program and its arguments")
		}
		a.Command.Program, a.Command.Args = expand(words[0]), words[1:]
		if p := a.Command.Program; filepath.Base(p) != p && !filepath.IsAbs(p) {
			// A program in the directory where acp is started may be someone else's.
			return errors.New("expected the name of a program in PATH, or an absolute path")
		}
	case key == "env":
		a.Command.Env, err = variables(v)
	case slices.Contains([]string{"dir", "url", "registry"}, key) && !isText:
		return wrongType("a string", v)
	case key == "dir":
		if a.Command.Dir = expand(text); !filepath.IsAbs(a.Command.Dir) {
			return errors.New("expected an absolute path")
		}
	case key == "url":
		a.URL = text
		return CheckURL(text)
	case key == "registry":
		a.Registry = text
	default:
		return row.set(row.field(&a.Sent), v)
	}
	return err
}

// variables reads a table of environment variables.
func variables(v any) (map[string]string, error) {
	table, ok := v.(map[string]any)
	if !ok {
		return nil, wrongType("a table", v)
	}
	env := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		value, ok := table[name].(string)
		if !ok {
			return nil, fmt.Errorf("%s: %w", plain.Line(name), wrongType("a string", table[name]))
		}
		if !plain.IsVariable(name) || strings.Contains(value, "\x00") {
			return nil, fmt.Errorf("%q is not a valid variable name", name)
		}
		env[name] = value
	}
	return env, nil
}

// IsURL reports whether a word can only be a URL.
func IsURL(word string) bool { return strings.Contains(word, "://") }

// CheckURL checks the URL of an agent. The error does not contain the URL, which may hold a token.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return errors.New("not a URL")
	}
	if !slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme) {
		return fmt.Errorf("the URL of an agent must begin with ws, wss, http or https, not %q", u.Scheme)
	}
	return nil
}
