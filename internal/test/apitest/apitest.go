// Package apitest compares what packages export with their api.txt.
package apitest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/gen/api"
)

// Check compares what the package with a path exports with the api.txt in the current folder, or writes the file anew.
func Check(t *testing.T, path string, update bool) {
	t.Helper()
	imports, err := api.Importer(".", path)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := imports.Import(path)
	if err != nil {
		t.Fatal(err)
	}
	Compare(t, "api.txt", api.Lines(pkg), update)
}

// Compare compares lines with those of a file, or writes the file anew.
func Compare(t *testing.T, file string, lines []string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("%s is not what the package exports; make generate writes it (-old +new):\n%s", file, diff)
	}
}
