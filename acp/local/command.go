package local

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/plain"
)

// A command is a command that an agent asks to run.
type command struct {
	name string   // executable
	args []string // arguments
	env  []acp.EnvVariable
	cwd  acp.Opt[string] // absolute; by default the first directory of the session
}

// build checks a command and prepares it to start in dir, which must stay open until then. base is the environment to
// which the command's own variables are added; shell runs a command that is not an executable.
func (c command) build(dir startDir, base, shell []string) (*exec.Cmd, error) {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool { return strings.HasPrefix(entry, "PWD=") })
	if runtime.GOOS != "windows" && !dir.moved {
		env = append(env, "PWD="+dir.path)
	}
	for _, v := range c.env {
		if !plain.IsVariable(v.Name) {
			return nil, &paramError{"env", errName}
		}
		env = append(env, v.Name+"="+v.Value)
	}
	argv := append([]string{c.name}, c.args...)
	for _, s := range slices.Concat(argv, env) {
		if strings.ContainsRune(s, 0) {
			return nil, &paramError{"command", errNUL}
		}
	}
	cmd := &exec.Cmd{Args: argv, Env: env, Dir: dir.name}
	cmd.Env = cmd.Environ() // the last of each name wins
	var err error
	cmd.Path, err = dir.lookPath(c.name, cmd.Env)
	if err != nil && c.name != "" && len(c.args) == 0 && len(shell) > 0 && !isThere(err) {
		cmd.Args = append(slices.Clone(shell), c.name)
		cmd.Path, err = dir.lookPath(shell[0], base)
	}
	if err != nil {
		return nil, commandError(err)
	}
	return cmd, nil
}

// DefaultShell returns the shell that runs command lines on this system, for [TerminalsOptions.Shell]: /bin/sh -c, on
// Windows powershell.exe -Command.
func DefaultShell() []string {
	if runtime.GOOS == "windows" {
		// Not cmd.exe, which does not parse its arguments the way os/exec writes them.
		return []string{"powershell.exe", "-NoProfile", "-NonInteractive", "-Command"}
	}
	return []string{"/bin/sh", "-c"}
}

// isThere reports whether lookPath found a file, but one that cannot be executed.
func isThere(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EISDIR)
}

// A startDir is an open directory in which a command is to start.
type startDir struct {
	file  *os.File
	path  string // as the agent names it
	name  string // as the system finds it
	moved bool   // path now refers to something else
}

// directory opens the directory in which the command is to start.
func (c command) directory(set rootSet) (startDir, error) {
	at := place{root: set.home, rel: ".", path: set.home.names[0]}
	if dir, ok := c.cwd.Get(); ok {
		var err error
		if at, err = set.locate(opStart, dir); err != nil {
			return startDir{}, &paramError{"cwd", err}
		}
	}
	dir, err := at.startDir()
	if err != nil {
		return startDir{}, &paramError{"cwd", pathError(opStart, at, err)}
	}
	return dir, nil
}

func (p place) startDir() (_ startDir, err error) {
	// With the dot, the path is opened as a directory only, without waiting for a FIFO.
	file, err := p.root.dir.OpenFile(p.rel+string(filepath.Separator)+".", os.O_RDONLY|openFlags, 0)
	if err != nil {
		return startDir{}, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return startDir{}, err
	}
	if !info.IsDir() {
		return startDir{}, errDirectory
	}
	means := func(path string) bool {
		is, err := os.Stat(path)
		return err == nil && os.SameFile(is, info)
	}
	dir := startDir{file: file, path: p.path, name: handlePath(file), moved: !means(p.path)}
	if !means(dir.name) {
		if dir.moved {
			return startDir{}, errMoved
		}
		dir.name = p.path
	}
	return dir, nil
}

func (d startDir) close() { d.file.Close() } // nothing was written

// lookPath finds an executable as the command's own environment would. A name with a separator is relative to the
// directory. Like os/exec, it ignores relative entries of PATH, whose meaning would depend on the directory.
func (d startDir) lookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(filepath.ToSlash(name), '/') {
		if filepath.IsAbs(name) {
			return exec.LookPath(name)
		}
		path, err := exec.LookPath(d.name + string(filepath.Separator) + name)
		if e, ok := errors.AsType[*exec.Error](err); ok {
			e.Name = name
		}
		if d.name != d.path {
			path = name // d.name stops referring to the directory before a script's interpreter opens the script
		}
		return path, err
	}
	for _, in := range filepath.SplitList(lookupEnv(env, "PATH")) {
		if !filepath.IsAbs(in) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(in, name)); err == nil {
			return path, nil
		}
	}
	return "", &exec.Error{Name: name, Err: errors.New("no such executable; arguments belong in args")}
}

func lookupEnv(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		key, value, _ := strings.Cut(entry, "=")
		if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
