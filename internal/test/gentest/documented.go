package gentest

// The example messages of the protocol's pages. They are not in the repository but in the folder that ACP_SHARED names.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Shared returns the path of a subfolder of the folder that ACP_SHARED names, which is ../shared beside the
// module if that is not set. It skips the test if there is none, and in the tiers that need nothing from outside.
func Shared(t *testing.T, name string) string {
	t.Helper()
	tier.Need(t, tier.Full)
	root := os.Getenv("ACP_SHARED")
	if root == "" {
		root = filepath.Join("..", "shared")
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join(moduleRoot(t), root)
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: no %s: set ACP_SHARED", dir)
	}
	return dir
}

// moduleRoot is the folder of go.mod. A test runs in that of its package.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("not in a module")
		}
		dir = parent
	}
}

// Before lists the example messages of version 1 on the page about migration to version 2.
var Before = []string{"v2-migration-1", "v2-migration-3", "v2-migration-6"}

// documented decodes and encodes every valid example message of the package's version, 1 or 2. The result must be
// equal, and nothing may be repaired. It logs how many messages there were.
func (p *Package) documented(t *testing.T) {
	s := p.schema(t)
	Examples(t, Shared(t, "examples"), p.Version, func(t *testing.T, definition string, data []byte) {
		repairs, err := p.ComesOutTheSame(s, definition, data)
		if err != nil {
			t.Errorf("%s: %v", definition, err)
		}
		if repairs > 0 {
			t.Errorf("%s: %d repairs in a valid message", definition, repairs)
		}
	})
}

// Examples calls f with the parameters or the result of each valid example message of a version, in a test of its own. It
// logs how many messages there were.
func Examples(t *testing.T, dir string, version int, f func(t *testing.T, definition string, data []byte)) {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct{ Name, Group, Kind, Definition, Valid string }
	if err := json.Unmarshal(index, &entries); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, e := range entries {
		of := 1
		if e.Group == "v2" && !slices.Contains(Before, e.Name) {
			of = 2
		}
		if of != version || !strings.HasPrefix(e.Valid, "ok") || e.Definition == "" || e.Kind == "error" {
			continue
		}
		ran++
		t.Run(e.Name, func(t *testing.T) {
			data, err := payload(filepath.Join(dir, e.Name+".json"), e.Kind)
			if err != nil {
				t.Fatal(err)
			}
			f(t, e.Definition, data)
		})
	}
	t.Logf("ran %d messages of version %d, of %d in all", ran, version, len(entries))
	if ran == 0 {
		t.Error("the folder holds no messages of this version")
	}
}

// payload is what a message carries: parameters, or a result.
func payload(path, kind string) (json.RawMessage, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var m struct{ Params, Result json.RawMessage }
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if kind == "response" {
		return m.Result, nil
	}
	return m.Params, nil
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
		v, err := sample.Parse([]byte(r.Text))
		if err != nil {
			t.Fatal(err)
		}
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
