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

	"github.com/acpgo/sdk/internal/test/must"
)

const designPage = "docs/design.md"

// TestMap compares the packages on the design page with the tree, and holds them to their budgets of lines: a package may
// exceed each of its two numbers by a tenth. With -update it lowers the numbers to what is there; it never raises one.
func TestMap(t *testing.T) {
	row := regexp.MustCompile("(?m)^(\\| `([^`]+)` \\| )([\\d,]+) \\| ([\\d,]+)( \\| .+ \\|)$")
	page, sizes := readFile(t, designPage), packageSizes(t)
	listed := map[string]bool{}
	var total size
	page = row.ReplaceAllStringFunc(page, func(line string) string {
		m := row.FindStringSubmatch(line)
		dir := m[2]
		if listed[dir] {
			t.Errorf("%s is listed twice", dir)
		}
		listed[dir] = true
		is, ok := sizes[dir]
		if !ok {
			t.Errorf("there is no package %s", dir)
			return line
		}
		total.product += is.product
		total.tests += is.tests
		return m[1] + budget(t, dir, "code", m[3], is.product) + " | " + budget(t, dir, "tests", m[4], is.tests) + m[5]
	})
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		if !listed[dir] {
			t.Errorf("%s does not list %s: %d lines of code, %d of tests", designPage, dir, sizes[dir].product, sizes[dir].tests)
		}
	}
	t.Logf("%d lines of hand-written code, %d of tests", total.product, total.tests)
	if *update {
		must.Do(t, os.WriteFile(designPage, []byte(page), 0o644))
	}
}

// budget checks a number of lines, and returns it as the page should show it.
func budget(t *testing.T, dir, what, shown string, lines int) string {
	t.Helper()
	most, err := strconv.Atoi(strings.ReplaceAll(shown, ",", ""))
	if err != nil {
		t.Error(err)
	}
	if lines > most+most/10 {
		t.Errorf("%s has %d lines of %s; its budget is %s: make it smaller, or raise the budget in a commit that says why", dir, lines, what, shown)
	}
	hundreds := (lines + 99) / 100 * 100
	switch {
	case !*update || hundreds >= most:
		return shown
	case hundreds < 1000:
		return strconv.Itoa(hundreds)
	}
	return fmt.Sprintf("%d,%03d", hundreds/1000, hundreds%1000)
}

// A size is a number of lines of hand-written Go.
type size struct{ product, tests int }

// packageSizes returns the directories of all packages, in all modules, with their sizes. What only tests use counts as
// tests.
func packageSizes(t *testing.T) map[string]size {
	t.Helper()
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	sizes := map[string]size{}
	walkTree(t, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		dir, text := filepath.ToSlash(filepath.Dir(path)), readFile(t, path)
		is := sizes[dir]
		switch lines := strings.Count(text, "\n"); {
		case generated.MatchString(text):
		case strings.HasSuffix(path, "_test.go"), strings.HasPrefix(dir, "internal/test/"):
			is.tests += lines
		default:
			is.product += lines
		}
		sizes[dir] = is
	})
	return sizes
}

// walkTree calls do for each file that belongs to a module, as the go command sees it.
func walkTree(t *testing.T, do func(path string)) {
	t.Helper()
	walkFiles(t, do, "testdata")
}

// walkFiles calls do for each file outside hidden folders, those of npm, and those with one of the names.
func walkFiles(t *testing.T, do func(path string), skipped ...string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			do(path)
		case path != "." && (slices.Contains(skipped, name) || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")):
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
		file := must.Get(modfile.Parse(path, []byte(readFile(t, path)), nil))(t)
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
