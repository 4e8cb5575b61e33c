package gentest

// The example messages of the protocol's pages. They are not in the repository but in the folder that ACP_SHARED names.

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Shared returns the path of a subfolder of the folder that ACP_SHARED names, which is ../shared beside the
// module if that is not set. It skips the test if there is none, and in the tiers that need nothing from outside.
func Shared(t *testing.T, name string) string {
	t.Helper()
	tier.Need(t, tier.Full)
	dir := filepath.Join(SharedFolder(t), name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: no %s: set ACP_SHARED", dir)
	}
	return dir
}

// SharedFolder returns the folder that ACP_SHARED names, which need not be there. A relative path begins at the module,
// in a folder of which a test runs.
func SharedFolder(t *testing.T) string {
	t.Helper()
	root := cmp.Or(os.Getenv("ACP_SHARED"), filepath.Join("..", "shared"))
	if filepath.IsAbs(root) {
		return root
	}
	module := must.Get(exec.Command("go", "env", "GOMOD").Output())(t)
	return filepath.Join(filepath.Dir(string(module)), root)
}

// Before lists the example messages of version 1 on the page about migration to version 2.
var Before = []string{"v2-migration-1", "v2-migration-3", "v2-migration-6"}

// documented decodes and encodes every valid example message of the package's version, 1 or 2. The result must be
// equal, and nothing may be repaired. It logs how many messages there were.
func (p *Package) documented(t *testing.T) {
	s, dir := p.schema(t), Shared(t, "examples")
	var entries []struct{ Name, Group, Kind, Definition, Valid string }
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(dir, "index.json")))(t), &entries))
	ran := 0
	for _, e := range entries {
		of := 1
		if e.Group == "v2" && !slices.Contains(Before, e.Name) {
			of = 2
		}
		if of != p.Version || !strings.HasPrefix(e.Valid, "ok") || e.Definition == "" || e.Kind == "error" {
			continue
		}
		ran++
		t.Run(e.Name, func(t *testing.T) {
			var m struct{ Params, Result json.RawMessage }
			must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(dir, e.Name+".json")))(t), &m))
			if e.Kind == "response" {
				m.Params = m.Result
			}
			repairs, err := p.ComesOutTheSame(s, e.Definition, m.Params)
			if err != nil || repairs > 0 {
				t.Errorf("%s: %d repairs, %v", e.Definition, repairs, err)
			}
		})
	}
	t.Logf("ran %d messages of version %d, of %d in all", ran, p.Version, len(entries))
	if ran == 0 {
		t.Error("the folder holds no messages of this version")
	}
}

// ComesOutTheSame decodes and encodes a value of the definition, and compares the two, except for what was
// repaired. It returns the number of repairs.
func (p *Package) ComesOutTheSame(s *sample.Schema, definition string, data []byte) (repairs int, err error) {
	d := codec.NewDecoder(data)
	v := p.Definitions[definition]()
	codec.Decode(d, v)
	if err := d.End(); err != nil {
		return 0, err
	}
	want, err := sample.Parse(data)
	if err != nil {
		return 0, err
	}
	for _, r := range d.Repairs() {
		want = without(want, strings.Split(r.Pointer, "/")[1:])
	}
	return len(d.Repairs()), encodesAs(s, definition, v, want)
}

// A Reading is a value of a definition, and whether it is read.
type Reading struct {
	Definition, Text string
	Read             bool
	Lenient          bool // although the schema forbids it
}

// Read requires that the values are read, or not, and that the schema says the same of those that are not read leniently.
func Read(t *testing.T, s *sample.Schema, definitions map[string]func() any, readings []Reading) {
	t.Helper()
	for _, r := range readings {
		v := must.Get(sample.Parse([]byte(r.Text)))(t)
		if valid := s.Valid(r.Definition, v); valid != (r.Read && !r.Lenient) {
			t.Errorf("%s: the schema's valid of %s is %v", r.Definition, r.Text, valid)
		}
		if err := codec.Unmarshal([]byte(r.Text), definitions[r.Definition]()); (err == nil) != r.Read {
			t.Errorf("%s: %s: got %v, want read %v", r.Definition, r.Text, err, r.Read)
		}
	}
}

// without removes the member or item at path.
func without(v any, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
		} else {
			v[path[0]] = without(v[path[0]], path[1:])
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			return v
		}
		if len(path) == 1 {
			return append(v[:i:i], v[i+1:]...)
		}
		v[i] = without(v[i], path[1:])
	}
	return v
}
