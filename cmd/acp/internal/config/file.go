package config

import (
	"bytes"
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

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// Error is what is wrong in the file, or with a variable.
type Error struct {
	// Path is the file, Line and Column are the place in it, from 1. Of a variable it is its name, and the place is 0.
	Path         string
	Line, Column int
	// Err says what is wrong.
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
	// Command is how it is started. Nil for the others.
	Command *launch.Command
	// URL is where it is, and the rest says what is sent with every request, see Settings.
	URL                             string
	TokenFile, TokenEnv, HeaderFile string
	HeaderEnv                       []string
	AllowInsecure                   bool
	// Registry is its id in the registry.
	Registry string

	settings map[string]any // those of its own, see Config.For
}

// File is what a file says.
type File struct {
	// Path is where it is, or would be.
	Path string
	// Agents are the user's own agents, by name.
	Agents map[string]*Agent

	text     []byte
	places   map[string]place // of keys
	sections []section        // the first is the top
	values   map[string]any   // of settings
}

// place is where a key is: offsets into the text.
type place struct {
	key        int // where it begins
	value, end int // where the value begins, and what follows it
}

// Path is the path of the file: what is given, else $ACP_CONFIG, else config.toml in the folder acp of the user's
// configuration. named says that it was named, so that it must be there. The path is "" if the user has no folder for
// configuration.
func Path(given string) (path string, named bool) {
	if given == "" {
		given = os.Getenv("ACP_CONFIG")
	}
	if given != "" {
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

// Read reads a file. If it is not there, and was not named, nothing is set. What is wrong in it is an *Error.
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

// Parse reads the text of a file. The mark that some editors of Windows begin one with is not part of it.
func Parse(path string, text []byte) (*File, error) {
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	f := &File{Path: path, Agents: map[string]*Agent{}, text: text, places: map[string]place{}, values: map[string]any{}}
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

// locate notes where the keys are.
func (f *File) locate() {
	p := &unstable.Parser{}
	p.Reset(f.text)
	f.sections = []section{{end: -1}}
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			s := section{}
			at := 0
			for keys := e.Key(); keys.Next(); {
				at = int(keys.Node().Raw.Offset + keys.Node().Raw.Length)
				s.parts = append(s.parts, string(keys.Node().Data))
				f.note(pathOf(s.parts), int(keys.Node().Raw.Offset))
			}
			s.start, s.end = strings.LastIndexByte(string(f.text[:at]), '\n')+1, f.lineEnd(at)
			f.sections = append(f.sections, s)
		case unstable.KeyValue:
			s := &f.sections[len(f.sections)-1]
			path, end := f.keyValue(e, pathOf(s.parts))
			s.end = f.lineEnd(end)
			for i := range path[:len(path)-1] {
				s.dotted = append(s.dotted, path[i])
			}
		}
	}
	if top := &f.sections[0]; top.end < 0 {
		top.end = f.aboutNext(0, f.next(0))
	}
}

// note notes where a key is that has no value of its own.
func (f *File) note(path string, at int) {
	if _, again := f.places[path]; !again {
		f.places[path] = place{key: at}
	}
}

// keyValue notes a key with its value. It returns the paths of the parts of the key, and the end.
func (f *File) keyValue(e *unstable.Node, table string) (paths []string, end int) {
	path, last := table, 0
	for keys := e.Key(); keys.Next(); {
		raw := keys.Node().Raw
		last = int(raw.Offset + raw.Length)
		path = joinKey(path, string(keys.Node().Data))
		paths = append(paths, path)
		f.note(path, int(raw.Offset))
	}
	at := place{key: int(e.Raw.Offset), end: int(e.Raw.Offset + e.Raw.Length)}
	for at.value = last; strings.ContainsRune(" \t=", rune(f.text[at.value])); at.value++ {
	}
	f.places[path] = at
	if v := e.Value(); v.Kind == unstable.InlineTable {
		for inner := v.Children(); inner.Next(); {
			if inner.Node().Kind == unstable.KeyValue {
				f.keyValue(inner.Node(), path)
			}
		}
	}
	return paths, at.end
}

// joinKey is the path of a key in a table. The keys of this package have no dots; one of the file that has some must not
// look like another.
func joinKey(table, key string) string {
	if strings.ContainsAny(key, ".\"") {
		key = fmt.Sprintf("%q", key)
	}
	if table == "" {
		return key
	}
	return table + "." + key
}

// wrong is an error about a key.
func (f *File) wrong(path string, format string, args ...any) error {
	before := f.text[:f.places[path].key]
	e := &Error{Path: f.Path, Line: 1 + strings.Count(string(before), "\n")}
	e.Column = 1 + len(before) - (strings.LastIndex(string(before), "\n") + 1)
	e.Err = fmt.Errorf("%s: %w", plain.Line(path), fmt.Errorf(format, args...))
	return e
}

// inOrder are the keys of a table as they are in the file, so that the first mistake is told.
func (f *File) inOrder(table string, all map[string]any) []string {
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return f.places[joinKey(table, a)].key - f.places[joinKey(table, b)].key
	})
}

// table reads a table with settings in it.
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
				return f.wrong(path, "want a table for each agent, as [agents.NAME]")
			}
			if err := f.agents(inner); err != nil {
				return err
			}
		case slices.ContainsFunc(Table, func(s Setting) bool { return strings.HasPrefix(s.Key, path+".") }):
			if !isTable {
				return f.wrong(path, "want a table")
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

// unknown is the error of a key that nobody knows, in a table that has others.
func (f *File) unknown(table, key string, known []string) error {
	path := joinKey(table, key)
	if near := Nearest(key, known); len(near) > 0 {
		return f.wrong(path, "there is no such key; did you mean %s?", orList(near))
	}
	return f.wrong(path, "there is no such key")
}

// namePattern is what an agent may be called: nothing that a shell, a URL or a terminal takes for something else.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// agentKeys are the keys of an agent. How is that of the three that it goes with, or anyAgent; "" for those three.
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

// settingKeys are the settings that an agent may have for itself.
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
			return f.wrong(path, "a name has letters and digits, and . _ - after the first of them")
		case !ok:
			return f.wrong(path, "want a table, as [agents.NAME]")
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
	hows := map[string]string{} // what the keys go with
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
		return nil, f.wrong(path, "want one of command, url and registry")
	}
	a := &Agent{Name: name}
	if given[0] == "command" {
		a.Command = &launch.Command{}
	}
	for _, key := range keys {
		at := joinKey(path, key)
		if how := hows[key]; how != "" && how != anyAgent && how != given[0] {
			return nil, f.wrong(at, "this goes with %s", how)
		}
		if err := a.set(key, table[key]); err != nil {
			return nil, f.wrong(at, "%w", err)
		}
	}
	return a, nil
}

// set sets what a key says.
func (a *Agent) set(key string, v any) (err error) {
	if row := Find(key); row != nil && row.Each {
		if a.settings == nil {
			a.settings = map[string]any{}
		}
		a.settings[key] = v
		return row.set(row.field(&Settings{}), v)
	}
	text, isText := v.(string)
	switch key {
	case "command":
		words, err := stringsOf(v)
		if err != nil {
			return err
		}
		if len(words) == 0 || words[0] == "" {
			return errors.New("want the program and its arguments")
		}
		a.Command.Program, a.Command.Args = expand(words[0]), words[1:]
		if p := a.Command.Program; filepath.Base(p) != p && !filepath.IsAbs(p) {
			// What is in the folder where acp is started may be of others.
			return errors.New("want the name of a program in PATH, or an absolute path")
		}
		return nil
	case "env":
		a.Command.Env, err = variables(v)
		return err
	case "header-env":
		a.HeaderEnv, err = stringsOf(v)
		return err
	case "allow-insecure":
		insecure, ok := v.(bool)
		if !ok {
			return wrongType("true or false", v)
		}
		a.AllowInsecure = insecure
		return nil
	}
	if !isText {
		return wrongType("a string", v)
	}
	if text == "" {
		return errors.New("it is empty")
	}
	switch key {
	case "dir":
		if a.Command.Dir = expand(text); !filepath.IsAbs(a.Command.Dir) {
			return errors.New("want an absolute path")
		}
	case "url":
		a.URL = text
		return CheckURL(text)
	case "registry":
		a.Registry = text
	case "token-file":
		a.TokenFile = expand(text)
	case "token-env":
		a.TokenEnv = text
	case "header-file":
		a.HeaderFile = expand(text)
	}
	return nil
}

// variables are a table of variables of the environment.
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

// CheckURL says what is wrong with the URL of an agent. The error does not have the URL in it, which may hold a token.
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
