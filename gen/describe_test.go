package gen

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// Each archive in testdata/describe contains a schema, overrides, and their expected description.
func TestDescribe(t *testing.T) {
	paths, err := filepath.Glob("testdata/describe/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Describe(Config{Schema: member(t, archive, "schema.json"), Package: "golden", Module: module, Overrides: overridesOf(archive)})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		compare(t, path, archive, map[string][]byte{"described": []byte(got)})
	}
}
