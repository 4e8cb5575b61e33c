package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/emit"
)

// A folder has the generated files of one package.
type folder struct {
	dir   string
	files map[string][]byte
}

// A change is a change of a file.
type change struct {
	path      string
	old, data []byte // nil if there is no file
	what      string
}

func (c change) String() string { return c.path + ": " + c.what }

// changes returns the changes that are needed in the folders. A file that acpgen would replace but did not write is an
// error.
func changes(folders []folder) ([]change, error) {
	var out []change
	var problems []error
	for _, f := range folders {
		stale, err := staleNames(f)
		problems = append(problems, err)
		for _, name := range slices.Sorted(maps.Keys(f.files)) {
			c := change{path: filepath.Join(f.dir, name), data: f.files[name], what: "differs"}
			c.old, err = os.ReadFile(c.path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				c.what = "missing"
			case err != nil:
				problems = append(problems, err)
			case bytes.Equal(c.old, c.data):
				continue
			case !generated(c.old):
				problems = append(problems, fmt.Errorf("%s was not written by acpgen, which needs that file name: rename the file",
					c.path))
			}
			out = append(out, c)
		}
		for _, name := range stale {
			path := filepath.Join(f.dir, name)
			old, err := os.ReadFile(path)
			if problems = append(problems, err); generated(old) {
				out = append(out, change{path, old, nil, "stale"})
			}
		}
	}
	return out, errors.Join(problems...)
}

// generated reports whether a file begins like those that acpgen writes.
func generated(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSuffix(first, []byte("\r"))) == emit.Header
}

// staleNames returns the files in a folder that are named as acpgen names files and are not generated any more.
func staleNames(f folder) (out []string, err error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		name := entry.Name()
		isGenerated := strings.HasSuffix(name, "_gen.go") || strings.HasSuffix(name, "_gen_test.go")
		if isGenerated && f.files[name] == nil && !entry.IsDir() {
			out = append(out, name)
		}
	}
	return out, err
}

// apply makes either all changes or none. It writes every new file under a temporary name in its folder before it calls
// replace for the first one, and if anything fails, it restores what was there. A process that is killed between the
// first and the last replacement leaves some files new and some old; no operating system can do better for several
// files.
func apply(changes []change, replace func(from, to string) error) (err error) {
	var undo []func() error
	defer func() {
		if err != nil {
			for _, undo := range slices.Backward(undo) {
				err = errors.Join(err, undo())
			}
		}
	}()
	temporary := make([]string, len(changes))
	for i, c := range changes {
		if c.data == nil {
			continue
		}
		made, err := makeFolder(filepath.Dir(c.path))
		if made != "" {
			undo = append(undo, func() error { return os.RemoveAll(made) })
		}
		if err != nil {
			return err
		}
		temporary[i], err = write(c)
		if temporary[i] != "" {
			undo = append(undo, func() error { return remove(temporary[i]) })
		}
		if err != nil {
			return err
		}
	}
	for i, c := range changes {
		if err := replace(temporary[i], c.path); err != nil {
			return err
		}
		undo = append(undo, c.restore)
	}
	return nil
}

// replace renames a file, or removes the file at its place if from is "".
func replace(from, to string) error {
	if from == "" {
		return os.Remove(to)
	}
	return os.Rename(from, to)
}

func (c change) restore() error {
	if c.old == nil {
		return remove(c.path)
	}
	return os.WriteFile(c.path, c.old, 0o644)
}

// remove removes a file that may not be there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeFolder creates a folder and its parents, and returns the outermost one that was not there, if any.
func makeFolder(dir string) (made string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			return made, os.MkdirAll(dir, 0o777)
		}
		made = at
	}
}

// write writes the new file under a temporary name, which the go command ignores, and returns that name.
func write(c change) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(c.path), "."+filepath.Base(c.path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(c.data)
	return f.Name(), errors.Join(err, f.Chmod(0o644), f.Close())
}
