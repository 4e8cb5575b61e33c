package gen

import (
	"bytes"
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
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	check := newChecker(t)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive := must.Get(txtar.ParseFile(path))(t)
			config := Config{
				Schema: member(t, archive, "schema.json"), Stable: optional(archive, "stable.json"),
				Source: "schema.json", Package: "golden", Module: module,
			}
			files := must.Get(Generate(config))(t)
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
	paths, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive := must.Get(txtar.ParseFile(path))(t)
			config := Config{Schema: member(t, archive, "schema.json"), Source: "schema.json", Package: "golden", Module: module, Overrides: overridesOf(archive)}
			config.Stable = optional(archive, "stable.json")
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

// overridesOf returns the overrides in an archive. Each line has the kind, the subject, which may contain spaces, and
// the value.
func overridesOf(archive *txtar.Archive) []Override {
	var out []Override
	for line := range strings.Lines(string(optional(archive, "overrides"))) {
		fields := strings.Fields(line)
		last := len(fields) - 1
		for kind := range Kind(kinds) {
			if kind.String() == fields[0] {
				out = append(out, Override{Kind: kind, Subject: strings.Join(fields[1:last], " "), Value: fields[last]})
			}
		}
	}
	return out
}

func member(t *testing.T, archive *txtar.Archive, name string) []byte {
	t.Helper()
	data := optional(archive, name)
	if data == nil {
		t.Fatalf("the archive has no %s", name)
	}
	return data
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
