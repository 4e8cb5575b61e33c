package tui

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// writeFiles creates files in a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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

// TestIgnoredFiles: files that Git ignores are not offered, in the directory of a repository, below it, and in nested
// repositories.
func TestIgnoredFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	writeFiles(t, dir, map[string]string{
		"config/git/ignore": "*.swp\n", "plain/build/x": "", "plain/.gitignore": "build\n",
		"repo/.git/info/exclude": "secret.txt\n", "repo/.gitignore": "/build/\n*.log\n!keep.log\n",
		"repo/main.go": "", "repo/build/out": "", "repo/src/build/kept": "", "repo/a.log": "", "repo/keep.log": "", "repo/secret.txt": "", "repo/x.swp": "",
		"repo/src/.gitignore": "*.tmp\n", "repo/src/a.tmp": "", "repo/a.tmp": "",
		"repo/inner/.git/HEAD": "", "repo/inner/b.log": "", "repo/inner/c.swp": "",
	})
	for _, test := range []struct {
		dir  string
		want []string
	}{
		{"repo", []string{"a.tmp", "inner/b.log", "keep.log", "main.go", "src/build/kept"}},
		{"repo/src", []string{"build/kept"}},
		{"plain", []string{"build/x"}}, // not a repository
	} {
		if got := offered(t, filepath.Join(dir, test.dir)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.dir, got, test.want)
		}
	}
}

// TestIgnoresAsGit compares random rules with Git's answers.
func TestIgnoresAsGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	pieces := []string{"a", "b", "ab", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-b]", "[", "]", `\a`, `\*`, `\`, "!", "#", " ", ".x", "{a}", "+", "(", "^", "$"}
	names := []string{"a", "b", "ab", "aab", "b a", "a.x", "*", "]", "{a}", "#a", "!a"}
	random := rand.New(rand.NewPCG(1, 2))
	piece := func(of []string) string { return of[random.IntN(len(of))] }
	for round := range 15 {
		dir := t.TempDir()
		t.Setenv("XDG_CONFIG_HOME", dir)
		t.Setenv("HOME", dir)
		for _, args := range [][]string{{"init", "-q", dir}} {
			if out, err := exec.Command(git, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		files := map[string]string{}
		for range 40 {
			parts := []string{}
			for range 1 + random.IntN(3) {
				parts = append(parts, piece(names))
			}
			name, clash := strings.Join(parts, "/"), false
			for other := range files {
				clash = clash || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
			}
			if !clash {
				files[name] = ""
			}
		}
		writeFiles(t, dir, files)
		var rules []string
		for range 6 {
			var rule strings.Builder
			for range 1 + random.IntN(5) {
				rule.WriteString(piece(pieces))
			}
			rules = append(rules, rule.String())
		}
		writeFiles(t, dir, map[string]string{".gitignore": strings.Join(rules, "\n")})
		out, err := exec.Command(git, "-C", dir, "ls-files", "-zo", "--exclude-standard").Output()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if name != "" && name != ".gitignore" {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if got := offered(t, dir); !slices.Equal(got, want) {
			for _, name := range append(slices.Clone(got), want...) {
				if slices.Contains(got, name) != slices.Contains(want, name) {
					t.Errorf("round %d: %q is offered: %v; by Git: %v; rules %q", round, name, slices.Contains(got, name), slices.Contains(want, name), rules)
				}
			}
		}
	}
}
