package gen

import (
	"bytes"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/internal/test/must"
)

// Each archive in testdata contains definitions, in schema.json, and the Go code generated from them. Its comment
// describes what it shows; an archive with a stable.json shows experimental features. The code for encoding/json is the
// same for all and is left out.
func TestGolden(t *testing.T) {
	check := newChecker(t)
	for path, archive := range archives(t, "testdata/*.txtar") {
		t.Run(path, func(t *testing.T) {
			files := must.Get(Generate(configIn(t, archive, "schema.json")))(t)
			if _, err := check.check(files); err != nil {
				t.Errorf("the generated code does not compile: %v", err)
			}
			delete(files, "json_gen.go")
			compare(t, path, archive, files)
		})
	}
}

// Each archive in testdata/errors contains a schema that must be refused, and the expected error.
func TestErrors(t *testing.T) {
	for path, archive := range archives(t, "testdata/errors/*.txtar") {
		t.Run(path, func(t *testing.T) {
			config := configIn(t, archive, "schema.json")
			config.Facade = config.Stable != nil
			files, err := Generate(config)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if files != nil {
				t.Error("there are files in addition to the error")
			}
			requireErrors(t, err)
			compare(t, path, archive, map[string][]byte{"error": []byte(err.Error() + "\n")})
		})
	}
}

// archives returns the archives that match a pattern, by their paths.
func archives(t *testing.T, pattern string) iter.Seq2[string, *txtar.Archive] {
	t.Helper()
	paths := must.Get(filepath.Glob(pattern))(t)
	if len(paths) == 0 {
		t.Fatalf("no archives: %s", pattern)
	}
	return func(yield func(string, *txtar.Archive) bool) {
		for _, path := range paths {
			if !yield(path, must.Get(txtar.ParseFile(path))(t)) {
				return
			}
		}
	}
}

// configIn returns the configuration for one of the schemas in an archive. Each line of its overrides has the kind, the
// subject, which may contain spaces, and the value.
func configIn(t *testing.T, archive *txtar.Archive, schema string) Config {
	t.Helper()
	c := Config{Schema: optional(archive, schema), Stable: optional(archive, "stable.json"), Source: schema, Package: "golden", Module: module}
	if c.Schema == nil {
		t.Fatalf("the archive has no %s", schema)
	}
	for line := range strings.Lines(string(optional(archive, "overrides"))) {
		fields := strings.Fields(line)
		last := len(fields) - 1
		for kind := range Kind(kinds) {
			if kind.String() == fields[0] {
				o := Override{Kind: kind, Subject: strings.Join(fields[1:last], " "), Value: fields[last]}
				c.Overrides = append(c.Overrides, o)
			}
		}
	}
	return c
}

func optional(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// compare compares files with those of the archive, or writes them to the archive with -update. It leaves the test's
// inputs alone.
func compare(t *testing.T, path string, archive *txtar.Archive, files map[string][]byte) {
	t.Helper()
	inputs := []string{"schema.json", "stable.json", "overrides", "old.json", "new.json", "user.go"}
	if *update {
		archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return !slices.Contains(inputs, f.Name) })
		for _, name := range slices.Sorted(maps.Keys(files)) {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: files[name]})
		}
		must.Do(t, os.WriteFile(path, txtar.Format(archive), 0o644))
		return
	}
	for _, f := range archive.Files {
		if slices.Contains(inputs, f.Name) {
			continue
		}
		if got, ok := files[f.Name]; !ok {
			t.Errorf("%s is no longer generated", f.Name)
		} else if !bytes.Equal(got, f.Data) {
			t.Errorf("%s: got\n%s\nwant\n%s", f.Name, got, f.Data)
		}
	}
	for name := range files {
		if optional(archive, name) == nil {
			t.Errorf("%s is new", name)
		}
	}
}
