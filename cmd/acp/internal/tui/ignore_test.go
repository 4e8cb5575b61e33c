package tui

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
)

// writeFiles creates files in a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

// offered returns the files of a directory that are offered.
func offered(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, it := range findFiles(t.Context(), dir, time.Now()).items {
		names = append(names, strings.Trim(strings.TrimPrefix(it.value.(string), "@"), `"`))
	}
	slices.Sort(names)
	return names
}

// TestIgnoredFiles: files that Git ignores and hidden files are not offered, in a repository and below its root, nor are
// packages elsewhere.
func TestIgnoredFiles(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"plain/build/x": "", "plain/.gitignore": "build\n", "plain/node_modules/y": "", "plain/.hidden/z": "",
		"repo/.gitignore": "/build/\n*.log\n!keep.log\n", "repo/.github/ci.yml": "",
		"repo/main.go": "", "repo/build/out": "", "repo/src/build/kept": "", "repo/a.log": "", "repo/keep.log": "",
	})
	if out, err := exec.Command("git", "init", "-q", filepath.Join(dir, "repo")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []struct {
		dir  string
		want []string
	}{
		{"repo", []string{"keep.log", "main.go", "src/build/kept"}},
		{"repo/src", []string{"build/kept"}},
		{"plain", []string{"build/x"}}, // not a repository
	} {
		if got := offered(t, filepath.Join(dir, test.dir)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.dir, got, test.want)
		}
	}
}
