package gen

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// published is a published schema.
type published struct {
	name   string
	data   []byte
	own    bool // of this repository
	shared bool // from ACP_SHARED
}

// corpus returns the available schemas, each once.
func corpus(t *testing.T) []published {
	t.Helper()
	var out []published
	seen := map[[sha256.Size]byte]bool{}
	add := func(dir, name string, own, shared bool) {
		data := must.Get(os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))))(t)
		if sum := sha256.Sum256(data); !seen[sum] || shared { // the whole folder counts, with or without duplicates elsewhere
			seen[sum] = true
			out = append(out, published{name, data, own, shared})
		}
	}
	for _, name := range []string{"schema.json", "schema/v1.unstable.json", "schema/v2.json", "schema/v2.unstable.json"} {
		add("..", name, true, false)
	}
	add("testdata", "names.json", false, false)
	if dir := installPublished(t); dir != "" {
		for _, pattern := range []string{"*/schema/*.json", "*/schema/*/*.json"} {
			for _, path := range glob(t, filepath.Join(dir, "node_modules"), pattern) {
				if strings.HasPrefix(filepath.Base(path), "schema.") { // not meta.json
					add(filepath.Join(dir, "node_modules"), path, false, false)
				}
			}
		}
	}
	if tier.Current() == tier.Short {
		return out[:1]
	}
	if tier.Current() < tier.Full {
		return out
	}
	shared := filepath.Join(gentest.SharedFolder(t), "schemas")
	paths := glob(t, shared, "*/schema.json")
	for _, path := range paths {
		add(shared, path, false, true)
	}
	if len(paths) == 0 {
		t.Logf("no schemas in %s: set ACP_SHARED", shared)
	}
	return out
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	paths := must.Get(filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern))))(t)
	for i, path := range paths {
		paths[i] = must.Get(filepath.Rel(dir, path))(t)
	}
	return paths
}

// releases are the releases listed in testdata/published.
var releases = npmtest.Folder{
	Files: []string{"testdata/published/package.json", "testdata/published/package-lock.json"}, Flags: []string{"--legacy-peer-deps"},
}

func TestMain(m *testing.M) {
	debug.SetMaxStack(64 << 20) // a schema that exhausts the stack does not take all memory first
	code := m.Run()
	releases.Remove()
	os.Exit(code)
}

// installPublished installs the releases listed in testdata/published, once. Below tier Full, and without npm, there
// are none. In CI, npm must be available.
func installPublished(t *testing.T) (dir string) {
	t.Helper()
	if tier.Current() < tier.Full {
		return ""
	}
	if _, err := exec.LookPath("npm"); err != nil && os.Getenv("CI") != "true" {
		t.Logf("SKIPPED: the schemas of testdata/published need npm: %v", err)
		return ""
	}
	return releases.Dir(t)
}

// Every schema becomes Go code that compiles. The generator has one goroutine, so with the race detector a few schemas
// are enough.
func TestCorpus(t *testing.T) {
	schemas := corpus(t)
	if tier.Current() < tier.Nightly || gentest.Race {
		schemas = sampleOf(schemas, 8)
		t.Log("a sample only: run it in tier nightly and without the race detector for all")
	}
	check := newChecker(t)
	for _, s := range schemas {
		t.Run(strings.ReplaceAll(s.name, "/", "_"), func(t *testing.T) {
			out := must.Get(generate(Config{Schema: s.data, Source: s.name, Package: "acp", Module: module, Tests: true}))(t)
			if _, err := check.check(out.Files); err != nil {
				t.Errorf("it does not compile: %v", err)
			}
		})
	}
}

// Packages for old and new versions of the protocol are built in a separate module, as another vendor would do, and
// agree with a validator about values. The tests of the packages under acp exercise the packages for the repository's
// schemas; below tier Full these are the only ones.
func TestBuilt(t *testing.T) {
	tier.Need(t, tier.Full)
	r := &randomSchemas{t: t, count: map[string]int{}}
	others := slices.DeleteFunc(corpus(t), func(s published) bool { return s.own })
	for batch := range slices.Chunk(spread(others, tier.Pick(0, 0, 1, len(others))), 16) {
		program := newBinary(t)
		for _, s := range batch {
			out := must.Get(generate(Config{Schema: s.data, Source: s.name, Package: "generated", Module: module, Tests: true}))(t)
			c := &candidate{name: s.name, document: s.data, definitions: map[string]any{}}
			for _, d := range out.pkg.Decls {
				if name := d.Base().Schema; name != "" {
					c.definitions[name] = nil
				}
			}
			r.values(c, program, program.add(t, out.Files))
		}
		program.run(t)
	}
	t.Log(r.count)
}

// sampleOf returns all schemas that are always available, and n of the others, evenly spread from the first to the
// last.
func sampleOf(schemas []published, n int) []published {
	others := slices.DeleteFunc(slices.Clone(schemas), func(s published) bool { return !s.shared })
	return append(slices.DeleteFunc(slices.Clone(schemas), func(s published) bool { return s.shared }), spread(others, n)...)
}

// spread returns n items of the list, evenly spread from the first to the last.
func spread[T any](list []T, n int) (out []T) {
	n = min(n, len(list))
	for i := range n {
		out = append(out, list[i*(len(list)-1)/max(n-1, 1)])
	}
	return out
}

func writeFiles(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o777))
	for name, data := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o666))
	}
}
