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
	"github.com/acpgo/sdk/internal/wholefile"
)

// A folder has the generated files of one package.
type folder struct {
	dir   string
	files map[string][]byte
}

// A change is a change of a file.
type change struct {
	path string
	data []byte // nil for a file that has to be removed
	what string
}

func (c change) String() string { return c.path + ": " + c.what }

// changes returns the changes that are needed in the folders. A file that acpgen would replace but did not write is an
// error.
func changes(folders []folder) ([]change, error) {
	var out []change
	var problems []error
	for _, f := range folders {
		names, err := namesIn(f)
		problems = append(problems, err)
		for _, name := range names {
			c := change{path: filepath.Join(f.dir, name), data: f.files[name], what: "differs"}
			old, err := os.ReadFile(c.path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				c.what = "missing"
			case err != nil:
				problems = append(problems, err)
			case c.data == nil:
				c.what = "stale"
			case bytes.Equal(old, c.data):
				continue
			case !generated(old):
				problems = append(problems, fmt.Errorf("%s was not written by acpgen, which needs that file name: rename the file",
					c.path))
			}
			if c.data != nil || generated(old) {
				out = append(out, c)
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

// namesIn returns the names of a folder's generated files, and then of the other files in it that are named as acpgen
// names files.
func namesIn(f folder) ([]string, error) {
	names := slices.Sorted(maps.Keys(f.files))
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	for _, entry := range entries {
		name := entry.Name()
		isGenerated := strings.HasSuffix(name, "_gen.go") || strings.HasSuffix(name, "_gen_test.go")
		if isGenerated && f.files[name] == nil && !entry.IsDir() {
			names = append(names, name)
		}
	}
	return names, err
}

// apply makes the changes, each completely or not at all. After an error, those before it stay, and a second run makes
// the rest.
func apply(changes []change) error {
	for _, c := range changes {
		if err := c.apply(); err != nil {
			return err
		}
	}
	return nil
}

// apply writes the new file under a temporary name, which the go command ignores, and renames it.
func (c change) apply() error {
	if c.data == nil {
		return os.Remove(c.path)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o777); err != nil {
		return err
	}
	return wholefile.Replace(c.path, c.data, 0o644)
}
