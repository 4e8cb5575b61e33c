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

	"github.com/acpgo/sdk/internal/gen/emit"
)

// A folder has the generated files of one package.
type folder struct {
	dir   string
	files map[string][]byte
}

// A change is a change of a file.
type change struct {
	path string
	data []byte // nil to remove the file
	what string
	old  bool // the file exists
}

func (c change) String() string { return c.path + ": " + c.what }

// changes returns the changes that are needed in a folder. A file that acpgen would replace but did not write is an
// error.
func changes(folders []folder) ([]change, error) {
	var out []change
	var problems []error
	for _, f := range folders {
		for _, name := range slices.Sorted(maps.Keys(f.files)) {
			path := filepath.Join(f.dir, name)
			old, err := os.ReadFile(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				out = append(out, change{path, f.files[name], "missing", false})
			case err != nil:
				problems = append(problems, err)
			case bytes.Equal(old, f.files[name]):
			case !generated(old):
				problems = append(problems, fmt.Errorf("%s was not written by acpgen, which needs that file name: rename the file",
					path))
			default:
				out = append(out, change{path, f.files[name], "differs", true})
			}
		}
		stale, err := staleFiles(f.dir, f.files)
		if err != nil {
			problems = append(problems, err)
		}
		for _, path := range stale {
			out = append(out, change{path, nil, "stale", true})
		}
	}
	return out, errors.Join(problems...)
}

// generated reports whether a file begins like those that acpgen writes.
func generated(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSuffix(first, []byte("\r"))) == emit.Header
}

// staleFiles returns the generated files of the folder that are not among files.
func staleFiles(dir string, files map[string][]byte) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range entries {
		name := entry.Name()
		_, current := files[name]
		if current || entry.IsDir() || !isGeneratedName(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if generated(text) {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out, nil
}

// isGeneratedName reports whether a file name is one that acpgen uses.
func isGeneratedName(name string) bool {
	for _, pattern := range []string{"*_gen.go", "*_gen_test.go"} {
		if ok, err := filepath.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// A transaction changes either all files or none. It first writes every new file under a temporary name in the same
// folder, and keeps the old files under other names until all new ones are in place. If anything fails, it undoes all
// changes. A process that is killed between the first and the last renaming leaves some files new and some old, with
// the old versions of the new ones next to them; no operating system can do better for several files.
type transaction struct {
	rename func(from, to string) error // os.Rename, except in tests
	undo   []func() error
	kept   []string // the old files
}

// apply makes the changes.
func (t *transaction) apply(changes []change) (err error) {
	defer func() {
		if err == nil {
			for _, path := range t.kept {
				err = errors.Join(err, os.Remove(path)) // everything is written; the remaining file is useless, but is reported
			}
			return
		}
		for _, undo := range slices.Backward(t.undo) {
			err = errors.Join(err, undo())
		}
	}()
	temporary := make([]string, len(changes))
	for i, c := range changes {
		if c.data == nil {
			continue
		}
		if err := t.makeFolder(filepath.Dir(c.path)); err != nil {
			return err
		}
		if temporary[i], err = t.write(c.path, c.data); err != nil {
			return err
		}
	}
	for i, c := range changes {
		if c.old {
			if err := t.keep(c.path); err != nil {
				return err
			}
		}
		if c.data == nil {
			continue
		}
		if err := t.rename(temporary[i], c.path); err != nil {
			return err
		}
		if !c.old {
			t.undo = append(t.undo, func() error { return os.Remove(c.path) })
		}
	}
	return nil
}

// makeFolder creates a folder and its parents.
func (t *transaction) makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := t.makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	t.undo = append(t.undo, func() error { return os.Remove(dir) })
	return nil
}

// createBeside creates a file in the folder of another one, with a name that the go command ignores.
func createBeside(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
}

// write writes a file under a temporary name in its folder and returns that name.
func (t *transaction) write(path string, data []byte) (name string, err error) {
	f, err := createBeside(path)
	if err != nil {
		return "", err
	}
	t.undo = append(t.undo, func() error {
		if err := os.Remove(f.Name()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // the file is, or was, in its place
	})
	_, err = f.Write(data)
	return f.Name(), errors.Join(err, f.Chmod(0o644), f.Close())
}

// keep renames an old file so that it can be restored.
func (t *transaction) keep(path string) error {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	t.undo = append(t.undo, func() error {
		if err := os.Remove(f.Name()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // it was restored
	})
	if err := f.Close(); err != nil {
		return err
	}
	if err := t.rename(path, f.Name()); err != nil {
		return err
	}
	t.kept = append(t.kept, f.Name())
	t.undo = append(t.undo, func() error { return os.Rename(f.Name(), path) })
	return nil
}
