// This file owns how a request becomes a command that can be started: the executable, its environment
// and its directory.

package local

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/acpgo/sdk/acp"
)

// A command is what an agent wants to run.
type command struct {
	name string   // the executable
	args []string // its arguments
	env  []acp.EnvVariable
	cwd  acp.Opt[string] // absolute; the first directory of the session if there is none
}

// build checks a command and makes it ready to start inside the directories of set. Base is the
// environment over which the command's own is laid; shell runs what is no executable.
func (c command) build(set rootSet, base, shell []string) (*exec.Cmd, error) {
	dir, err := c.directory(set)
	if err != nil {
		return nil, err
	}
	env := slices.Clone(base)
	if runtime.GOOS != "windows" {
		env = append(env, "PWD="+dir)
	}
	for _, v := range c.env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") {
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
	cmd := &exec.Cmd{Args: argv, Env: env, Dir: dir}
	cmd.Env = cmd.Environ() // the last of each name
	cmd.Path, err = lookPath(c.name, dir, cmd.Env)
	if err != nil && c.name != "" && len(c.args) == 0 && len(shell) > 0 && !isThere(err) {
		cmd.Args = append(slices.Clone(shell), c.name)
		cmd.Path, err = lookPath(shell[0], dir, base)
	}
	if err != nil {
		return nil, commandError(err)
	}
	return cmd, nil
}

// DefaultShell is what runs command lines on this system, for [TerminalsOptions.Shell]: /bin/sh -c, on Windows
// powershell.exe -Command.
func DefaultShell() []string {
	if runtime.GOOS == "windows" {
		// Not cmd.exe, which does not read its arguments the way that os/exec writes them.
		return []string{"powershell.exe", "-NoProfile", "-NonInteractive", "-Command"}
	}
	return []string{"/bin/sh", "-c"}
}

// isThere reports whether lookPath found what cannot be executed.
func isThere(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EISDIR)
}

// directory returns where the command is to start.
func (c command) directory(set rootSet) (string, error) {
	dir, ok := c.cwd.Get()
	if !ok {
		return set.home, nil
	}
	at, err := set.locate(opStart, dir)
	if err != nil {
		return "", &paramError{"cwd", err}
	}
	info, err := at.root.dir.Stat(at.rel)
	if err == nil && !info.IsDir() {
		err = errDirectory
	}
	if err != nil {
		return "", &paramError{"cwd", pathError(opStart, at, err)}
	}
	return at.path, nil
}

// lookPath finds an executable the way the command's own environment would have it. A name with a
// separator is relative to dir; relative entries of PATH are ignored, as os/exec does, because what
// they mean would depend on dir.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.ContainsRune(filepath.ToSlash(name), '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return exec.LookPath(name)
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
