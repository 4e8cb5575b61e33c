package conformance

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/gen/sample"
	"github.com/acpgo/sdk/internal/gentest"
)

// tally counts the values of a test.
type tally struct{ right, sure, wrong int }

// promise requires that a plan admits only what the library has nothing to say about.
func (c *tally) promise(t *testing.T, s *Schema, name string, v *node) bool {
	t.Helper()
	sure, flaws := s.surely(name, v), s.flaws(name, v.tree())
	switch {
	case sure && len(flaws) > 0:
		t.Errorf("%s: %s: the plan admits what has findings: %v", name, v.raw(), flaws)
		return false
	case len(flaws) > 0:
		c.wrong++
	case sure:
		c.sure++
		c.right++
	default:
		c.right++
	}
	return true
}

// schemaTexts are the module's schemas.
var schemaTexts = map[string]func() string{
	"v1": sdk.SchemaV1, "v1 unstable": sdk.SchemaV1Unstable, "v2": sdk.SchemaV2, "v2 unstable": sdk.SchemaV2Unstable,
}

// eachSchema runs a test for each of the module's schemas, with a maker of values for it.
func eachSchema(t *testing.T, test func(*testing.T, *Schema, *sample.Drawer)) {
	for name, text := range schemaTexts {
		t.Run(name, func(t *testing.T) {
			s, err := NewSchema([]byte(text()))
			if err != nil {
				t.Fatal(err)
			}
			judge, err := sample.NewJudge([]byte(text()))
			if err != nil {
				t.Fatal(err)
			}
			test(t, s, sample.NewDrawer(judge, 1))
		})
	}
}

// spoil requires that plans promise nothing wrong about a value, and about values that come of it by some changes.
func (c *tally) spoil(t *testing.T, s *Schema, drawer *sample.Drawer, name string, v any, changes int) {
	t.Helper()
	for range 1 + changes {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		c.promise(t, s, name, decode(t, text))
		v = drawer.Spoilt(v)
	}
}

// TestPlansPublished makes values of every definition of the module's schemas, right and spoilt ones, and
// requires that plans promise nothing wrong, and know nearly all that is right.
func TestPlansPublished(t *testing.T) {
	SkipUnderRace(t)
	eachSchema(t, func(t *testing.T, s *Schema, drawer *sample.Drawer) {
		var all tally
		for _, name := range slices.Sorted(maps.Keys(s.definitions)) {
			for range 20 {
				v, _ := drawer.Valid(name)
				all.spoil(t, s, drawer, name, v, 3)
			}
		}
		if all.sure*100 < all.right*90 || all.wrong == 0 {
			t.Errorf("plans know %d of %d values without findings", all.sure, all.right)
		}
		t.Logf("plans know %d of %d values without findings; %d have some; %d plans", all.sure, all.right, all.wrong, len(s.planner.plans))
	})
}

// TestPlansShared takes the messages of the protocol's documents and of recordings of real agents, and spoilt ones,
// and has each judged by the definition of every method: plans promise nothing wrong.
func TestPlansShared(t *testing.T) {
	SkipUnderRace(t)
	contents := sharedContents(t)
	eachSchema(t, func(t *testing.T, s *Schema, drawer *sample.Drawer) {
		definitions := slices.Compact(slices.Sorted(maps.Values(s.methods)))
		var all tally
		for _, v := range contents {
			for _, name := range definitions {
				all.spoil(t, s, drawer, name, v, 1)
			}
		}
		t.Logf("%d contents, %d definitions: plans know %d of %d values without findings; %d have some", len(contents), len(definitions), all.sure, all.right, all.wrong)
	})
}

// sharedContents are the params and results of the shared messages, of each shape one.
func sharedContents(t *testing.T) (contents []any) {
	t.Helper()
	var lines [][]byte
	examples, err := filepath.Glob(filepath.Join(gentest.Shared(t, "examples"), "*-*.json"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, text)
	}
	traces, err := filepath.Glob(filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl"))
	if err != nil || len(traces) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, path := range traces {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var entry struct{ Raw string }
			if err := json.Unmarshal(line, &entry); err == nil && entry.Raw != "" {
				lines = append(lines, []byte(entry.Raw))
			}
		}
	}
	seen := map[string]bool{}
	for _, line := range lines {
		var d document
		if err := d.read(line); err != nil {
			continue // a document shows what is wrong too
		}
		for _, name := range []string{"params", "result", "error"} {
			v := d.root().member(name)
			if v == nil {
				continue
			}
			if key := shape(v); !seen[key] {
				seen[key] = true
				contents = append(contents, v.tree())
			}
		}
	}
	return contents
}

// shape is equal for values that differ in texts and numbers only.
func shape(v *node) string {
	key := v.kind().String()
	for below := range v.below() {
		if v.kind() == typeObject {
			key += " " + below.name()
		}
		key += "(" + shape(below) + ")"
	}
	if text := v.string(); strings.Contains(text, "_") {
		key += text // a tag
	}
	return key
}

// FuzzPlans has a text judged by each definition of each schema: plans promise nothing wrong.
func FuzzPlans(f *testing.F) {
	var schemas []*Schema
	for _, name := range slices.Sorted(maps.Keys(schemaTexts)) {
		s, err := NewSchema([]byte(schemaTexts[name]()))
		if err != nil {
			f.Fatal(err)
		}
		judge, err := sample.NewJudge([]byte(schemaTexts[name]()))
		if err != nil {
			f.Fatal(err)
		}
		drawer := sample.NewDrawer(judge, 1)
		for i, name := range slices.Sorted(maps.Keys(s.definitions)) {
			v, _ := drawer.Valid(name)
			text, err := json.Marshal(v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(len(schemas)), uint16(i), text)
		}
		schemas = append(schemas, s)
	}
	f.Fuzz(func(t *testing.T, schema uint8, definition uint16, text []byte) {
		var d document
		if !utf8.Valid(text) || d.read(text) != nil {
			return
		}
		s := schemas[int(schema)%len(schemas)]
		names := slices.Sorted(maps.Keys(s.definitions))
		var all tally
		all.promise(t, s, names[int(definition)%len(names)], d.root())
	})
}

// TestPlanKeywords sets each keyword of a compiled schema. Those that plans do not know make them refuse
// everything.
func TestPlanKeywords(t *testing.T) {
	known := []string{
		"Always", "Types", "Constant", "Format", "Not", "Extensions", "Properties", "Required", "AdditionalProperties",
		"UnevaluatedProperties", "MinItems", "MinLength", "Minimum", "Maximum", "ContentEncoding", "ContentMediaType",
	}
	n := 0
	for name, s := range keywordSchemas(t) {
		right := []any{map[string]any{"a": "b"}, []any{"a"}, "a", json.Number("1"), nil, true}
		for _, v := range right {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if p := newPlanner().plan([]*jsonschema.Schema{s}, nil); p.admits(decode(t, text)) && !slices.Contains(known, name) {
				t.Errorf("%s: admits %s", name, text)
			}
		}
		n++
	}
	if n < 40 {
		t.Errorf("only %d keywords", n)
	}
}
