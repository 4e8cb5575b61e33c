package launch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/plain"
)

// Command describes how an agent's program is started. It is a plain value: it can be copied, compared with
// reflect.DeepEqual and stored as JSON, and its methods do not change it.
type Command struct {
	// Program is a path, or a name that is looked up in the PATH of the command's environment. A relative path with a
	// separator is relative to Dir.
	Program string `json:"program"`
	// Args are the program's arguments, without the program itself.
	Args []string `json:"args,omitempty"`
	// Env holds variables to set in the program's environment. They replace variables of the same name.
	Env map[string]string `json:"env,omitempty"`
	// Environ is the environment to which Env is added, in the form "NAME=VALUE". Nil means the environment of this
	// process, including any secrets in it.
	Environ []string `json:"environ,omitempty"`
	// Dir is the directory in which the program starts. "" means the directory of this process.
	Dir string `json:"dir,omitempty"`
}

// New returns the Command of a program with arguments.
func New(program string, args ...string) *Command { return &Command{Program: program, Args: args} }

// Cmd returns a new exec.Cmd of the command, for one start:
//
//	conn, err := acp.Connect(ctx, acp.Command(command.Cmd()), handlers, nil)
//
// If the program is not found, or a name in Env is not a valid variable name, starting it returns an *exec.Error that
// says so.
func (c *Command) Cmd() *exec.Cmd {
	cmd := &exec.Cmd{Path: c.Program, Args: append([]string{c.Program}, c.Args...), Env: c.environment(), Dir: c.Dir}
	if path, err := c.Find(); err != nil {
		cmd.Err = err
	} else {
		cmd.Path = path
	}
	for name := range c.Env {
		if !plain.IsVariable(name) {
			cmd.Err = &exec.Error{Name: c.Program, Err: fmt.Errorf("%q is not a valid variable name", name)}
		}
	}
	return cmd
}

// Find looks the program up as Cmd does, and returns its path. The error is an *exec.Error.
func (c *Command) Find() (string, error) {
	if c.Program == "" {
		return "", &exec.Error{Name: c.Program, Err: errors.New("no program is given")}
	}
	if filepath.Base(c.Program) != c.Program {
		path := c.Program
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		path, err := filepath.Abs(path) // Join cleans "./agent" to a name without a directory
		if err != nil {
			return "", &exec.Error{Name: c.Program, Err: err}
		}
		return lookIn(c.Program, path)
	}
	var last error
	for _, dir := range c.searched() {
		path, err := lookIn(c.Program, filepath.Join(dir, c.Program))
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) {
			last = err // it exists, but cannot be run
		}
	}
	if last == nil {
		last = &exec.Error{Name: c.Program, Err: exec.ErrNotFound}
	}
	return "", last
}

// lookIn is exec.LookPath for a single absolute path; on Windows it tries the suffixes too.
func lookIn(name, path string) (string, error) {
	found, err := exec.LookPath(path)
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if err != nil {
		return "", &exec.Error{Name: name, Err: err}
	}
	return found, nil
}

// searched returns the directories of PATH, without relative ones, which package exec leaves out too, for safety.
func (c *Command) searched() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(c.getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// environment returns the environment of the program.
func (c *Command) environment() []string {
	base := c.Environ
	if base == nil {
		base = os.Environ()
	}
	env := slices.DeleteFunc(slices.Clone(base), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(slices.Collect(maps.Keys(c.Env)),
			func(other string) bool { return sameVariable(name, other) })
	})
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
	}
	return env
}

// getenv returns a variable of the program's environment.
func (c *Command) getenv(name string) (value string) {
	for _, pair := range c.environment() {
		if n, v, ok := strings.Cut(pair, "="); ok && sameVariable(n, name) {
			value = v // the last one wins
		}
	}
	return value
}

// sameVariable reports whether two names refer to the same variable.
func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// String returns the command in one line, in the syntax of a POSIX shell, preceded by the variables of Env. It is meant
// to be read, not run. It includes values that may be secrets.
func (c *Command) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if quoted(name) == name {
			words = append(words, name+"="+quoted(c.Env[name]))
		} else { // unquoted, a name with blanks would look like a program
			words = append(words, quoted(name+"="+c.Env[name]))
		}
	}
	for _, word := range append([]string{c.Program}, c.Args...) {
		words = append(words, quoted(word))
	}
	return strings.Join(words, " ")
}

// quoted returns a word as a shell would need it. A word with control characters, which would act on the terminal in
// which the command is shown or pasted, becomes one as Bash, Zsh and newer shells know it, with escapes.
func quoted(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:@%+,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !safe(r) }) {
		return word
	}
	if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }) {
		var b strings.Builder
		for i := range len(word) {
			switch c := word[i]; {
			case c == '\n':
				b.WriteString(`\n`)
			case c == '\\':
				b.WriteString(`\\`)
			case c < ' ' || c == '\'' || c >= 0x7f: // a shell that does not know the form ends a word at each quote
				fmt.Fprintf(&b, `\%03o`, c)
			default:
				b.WriteByte(c)
			}
		}
		return "$'" + b.String() + "'"
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// extend returns a copy of the command with args appended to its arguments, and with the variables in env set.
func (c *Command) extend(args []string, env map[string]string) *Command {
	more := *c
	more.Args = slices.Concat(c.Args, args)
	more.Env = maps.Clone(c.Env)
	if more.Env == nil && len(env) > 0 {
		more.Env = map[string]string{}
	}
	maps.Copy(more.Env, env)
	return &more
}
