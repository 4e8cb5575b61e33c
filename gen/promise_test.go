package gen

import (
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestPromise measures the promises in docs/versioning.md. It takes programs that use everything that a release's
// package exports, compiles them with the package of every later release of the last year, and counts those that break,
// stable and experimental ones separately. It needs the shared folder of schemas.
func TestPromise(t *testing.T) {
	tier.Need(t, tier.Normal)
	releases := yearOfSchemas(t)
	if len(releases) == 0 {
		t.Skip("SKIPPED: no schemas: set ACP_SHARED")
	}
	releases = releases[max(0, len(releases)-tier.Pick(0, 2, 3, len(releases))):]
	type pkg struct {
		name           string
		stable, latest *types.Package
	}
	var packages []pkg
	for _, r := range releases {
		config := Config{Schema: r.stable, Source: r.name, Package: "generated", Module: module}
		p := pkg{name: r.date, stable: declarations(t, config)}
		config.Schema = r.unstable
		p.latest = declarations(t, config)
		packages = append(packages, p)
	}
	var pairs, broken, steps, stableSteps, experimentalSteps int
	for i, old := range packages[:len(packages)-1] {
		stableSource, stableSubjects := everything(old.stable)
		source, subjects := everything(old.latest)
		stable := map[string]bool{}
		for _, all := range stableSubjects {
			for _, s := range all {
				stable[s] = true
			}
		}
		for j, new := range packages[i+1:] {
			pairs++
			failed := compile(t, stableSource, new.latest, runtime)
			if len(failed) > 0 {
				broken++
			}
			if j > 0 {
				continue
			}
			steps++
			if len(failed) > 0 {
				stableSteps++
				for line, message := range failed {
					t.Logf("%s to %s: stable: %v: %s", old.name, new.name, stableSubjects[line], message)
				}
			}
			for line := range compile(t, source, new.latest, runtime) {
				if !slices.ContainsFunc(subjects[line], func(s string) bool { return stable[s] }) {
					experimentalSteps++
					break
				}
			}
		}
	}
	t.Logf("%d releases from %s to %s: %d of %d steps break stable programs, %d experimental ones; %d of %d pairs of a release and a later one break stable programs",
		len(packages), packages[0].name, packages[len(packages)-1].name, stableSteps, steps, experimentalSteps, broken, pairs)
	if tier.Current() < tier.Nightly && broken > 0 {
		t.Error("recent releases break programs that use only stable names")
	}
}

// Experimental features only add: programs that use only stable names compile with the whole package as they do with
// the package of the stable schema. A schema that changes a stable type for an experimental feature fails here, and
// needs a decision.
func TestExperimentalAdds(t *testing.T) {
	tier.Need(t, tier.Normal)
	imports := must.Get(runtime())(t)
	for _, target := range Targets {
		whole := configOf(t, target, filepath.Join("..", filepath.FromSlash(target.Schema)))
		stable := configOf(t, target, filepath.Join("..", filepath.FromSlash(target.Stable)))
		stable.Overrides = Overrides[strings.TrimSuffix(target.Protocol, ".unstable")]
		report := must.Get(Compare(stable, whole, imports))(t)
		for _, c := range report.Changes {
			if c.Level == api.Breaking {
				t.Errorf("%s: %s: %s", target.Package, c.Subject, c.Text)
			}
		}
		if len(report.Changes) < 50 {
			t.Errorf("%s: %d changes", target.Package, len(report.Changes))
		}
	}
}

// A release is the last published pair of version 1 schemas on a day.
type release struct {
	date, name       string
	stable, unstable []byte
}

var published1 = regexp.MustCompile(`(?m)^\| (\S+) \| (v1|v1-unstable) \| (\d{4}-\d\d-\d\d) \|`)

// yearOfSchemas returns the releases of the last year, followed by the schemas of this repository.
func yearOfSchemas(t *testing.T) []release {
	t.Helper()
	dir := filepath.Join(gentest.SharedFolder(t), "schemas")
	list, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return nil
	}
	type file struct{ name, variant, date string }
	var files []file
	for _, m := range published1.FindAllStringSubmatch(string(list), -1) {
		files = append(files, file{m[1], m[2], m[3]})
	}
	slices.SortStableFunc(files, func(a, b file) int { return strings.Compare(a.date, b.date) })
	read := func(path ...string) []byte { return must.Get(os.ReadFile(filepath.Join(path...)))(t) }
	var out []release
	var last release
	for i, f := range files {
		data := read(dir, f.name, "schema.json")
		last.date, last.name = f.date, f.name
		if f.variant == "v1" {
			last.stable = data
		} else {
			last.unstable = data
		}
		if last.unstable != nil && (i+1 == len(files) || files[i+1].date != f.date) {
			out = append(out, last)
		}
	}
	return append(out, release{"now", "now", read("..", "schema.json"), read("..", "schema", "v1.unstable.json")})
}
