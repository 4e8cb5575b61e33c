package repo_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const designPage = "docs/design.md"

// TestMap compares the packages and sizes on the design page with the tree. With -update it rewrites the sizes.
func TestMap(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([\\d,]+) \\| .+ \\|$")
	page, sizes := readFile(t, designPage), packageSizes(t)
	listed := map[string]bool{}
	page = row.ReplaceAllStringFunc(page, func(line string) string {
		m := row.FindStringSubmatch(line)
		dir, text := m[1], m[2]
		if listed[dir] {
			t.Errorf("%s is listed twice", dir)
		}
		listed[dir] = true
		lines, ok := sizes[dir]
		if !ok {
			t.Errorf("there is no package %s", dir)
			return line
		}
		shown, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
		if err != nil {
			t.Error(err)
		}
		if off := max(shown-lines, lines-shown); off > max(100, lines/5) && !*update {
			t.Errorf("%s has %d lines; the page says %s", dir, lines, text)
		}
		return strings.Replace(line, " "+text+" ", " "+rounded(lines)+" ", 1)
	})
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		if !listed[dir] {
			t.Errorf("%s does not list %s, of %d lines", designPage, dir, sizes[dir])
		}
	}
	if *update {
		if err := os.WriteFile(designPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// rounded formats a size in hundreds; a package that is not empty has at least 100 lines.
func rounded(lines int) string {
	if lines > 0 {
		lines = max(100, (lines+50)/100*100)
	}
	if lines < 1000 {
		return strconv.Itoa(lines)
	}
	return fmt.Sprintf("%d,%03d", lines/1000, lines%1000)
}

// packageSizes returns the directories of all packages, in all modules, with the lines of hand-written Go that are not
// tests.
func packageSizes(t *testing.T) map[string]int {
	t.Helper()
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	sizes := map[string]int{}
	walkTree(t, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		sizes[dir] += 0 // a package with only tests has none
		if text := readFile(t, path); !strings.HasSuffix(path, "_test.go") && !generated.MatchString(text) {
			sizes[dir] += strings.Count(text, "\n")
		}
	})
	return sizes
}

// walkTree calls do for each file that belongs to a module, as the go command sees it.
func walkTree(t *testing.T, do func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			do(path)
		case path != "." && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDependencies requires that the design page gives a reason for each direct dependency of each go.mod, and for no
// other.
func TestDependencies(t *testing.T) {
	const own = "github.com/acpgo/sdk"
	type dependency struct{ path, module string }
	wanted := map[dependency]bool{}
	walkTree(t, func(path string) {
		if filepath.Base(path) != "go.mod" {
			return
		}
		file, err := modfile.Parse(path, []byte(readFile(t, path)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range file.Require {
			if !r.Indirect && r.Mod.Path != own {
				wanted[dependency{r.Mod.Path, filepath.ToSlash(filepath.Dir(path))}] = true
			}
		}
	})
	_, table, found := strings.Cut(readFile(t, designPage), "\n## Dependencies\n")
	if !found {
		t.Fatal("the page has no section Dependencies")
	}
	spans := regexp.MustCompile("`([^`]+)`")
	given := map[dependency]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| (`[^|]+`) \\| .+ \\|$").FindAllStringSubmatch(table, -1) {
		for _, path := range spans.FindAllStringSubmatch(m[1], -1) {
			for _, module := range spans.FindAllStringSubmatch(m[2], -1) {
				given[dependency{path[1], module[1]}] = true
			}
		}
	}
	sorted := func(set map[dependency]bool) []dependency {
		return slices.SortedFunc(maps.Keys(set), func(a, b dependency) int {
			return cmp.Or(strings.Compare(a.module, b.module), strings.Compare(a.path, b.path))
		})
	}
	for _, d := range sorted(wanted) {
		if !given[d] {
			t.Errorf("%s/go.mod: no reason for %s", d.module, d.path)
		}
	}
	for _, d := range sorted(given) {
		if !wanted[d] {
			t.Errorf("%s/go.mod does not require %s", d.module, d.path)
		}
	}
}
