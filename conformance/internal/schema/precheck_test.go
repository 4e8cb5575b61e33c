package schema

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
	"github.com/acpgo/sdk/internal/fastpath"
	"github.com/acpgo/sdk/internal/gen/sample"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// tally counts the values of a test.
type tally struct{ right, sure, wrong int }

// promise requires that a precheck admits only values for which the library reports nothing.
func (c *tally) promise(t *testing.T, s *Schema, name string, v *Value) bool {
	t.Helper()
	sure, flaws := s.surely(name, v), s.flaws(name, v.tree())
	switch {
	case sure && len(flaws) > 0:
		t.Errorf("%s: %s: the precheck admits a value with findings: %v", name, v.raw(), flaws)
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

// schemaTexts holds the module's schemas.
var schemaTexts = map[string]func() string{
	"v1": sdk.SchemaV1, "v1 unstable": sdk.SchemaV1Unstable, "v2": sdk.SchemaV2, "v2 unstable": sdk.SchemaV2Unstable,
}

// eachSchema runs a test for each of the module's schemas, with a maker of values for it.
func eachSchema(t *testing.T, test func(*testing.T, *Schema, *sample.Maker)) {
	for name, text := range schemaTexts {
		t.Run(name, func(t *testing.T) {
			s, err := Parse([]byte(text()), 0)
			if err != nil {
				t.Fatal(err)
			}
			judge, err := sample.Load(text())
			if err != nil {
				t.Fatal(err)
			}
			test(t, s, sample.NewSmallMaker(judge, 1))
		})
	}
}

// spoil requires that prechecks promise nothing wrong about a value, and about values derived from it by some changes.
func (c *tally) spoil(t *testing.T, s *Schema, drawer *sample.Maker, name string, v any, changes int) {
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

// TestPrechecksPublished makes valid and corrupted values of every definition of the module's schemas, and requires
// that prechecks promise nothing wrong and know nearly all valid values.
func TestPrechecksPublished(t *testing.T) {
	if !fastpath.Enabled {
		t.Skip("it is about fast paths")
	}
	tier.Need(t, tier.Normal)
	skipUnderRace(t)
	eachSchema(t, func(t *testing.T, s *Schema, drawer *sample.Maker) {
		var all tally
		for _, name := range slices.Sorted(maps.Keys(s.definitions)) {
			for range tier.Pick(0, 1, 20, 100) {
				v, _ := drawer.Valid(name)
				all.spoil(t, s, drawer, name, v, 3)
			}
		}
		if all.sure*100 < all.right*90 || all.wrong == 0 {
			t.Errorf("prechecks know %d of %d values without findings", all.sure, all.right)
		}
		t.Logf("prechecks know %d of %d values without findings; %d have some; %d prechecks", all.sure, all.right, all.wrong, len(s.prechecker.made))
	})
}

// TestPrechecksShared judges the messages of the protocol's documents and of recordings of real agents, and corrupted
// ones, by the definition of every method: prechecks promise nothing wrong.
func TestPrechecksShared(t *testing.T) {
	skipUnderRace(t)
	contents := sharedContents(t)
	eachSchema(t, func(t *testing.T, s *Schema, drawer *sample.Maker) {
		definitions := slices.Compact(slices.Sorted(maps.Values(s.methods)))
		var all tally
		for _, v := range contents {
			for _, name := range definitions {
				all.spoil(t, s, drawer, name, v, 1)
			}
		}
		t.Logf("%d contents, %d definitions: prechecks know %d of %d values without findings; %d have some", len(contents), len(definitions), all.sure, all.right, all.wrong)
	})
}

// sharedContents returns the params and results of the shared messages, one for each shape.
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
			continue // a document also shows mistakes
		}
		for _, name := range []string{"params", "result", "error"} {
			v := d.root().child(name)
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

// shape returns a text that is equal for values that differ only in texts and numbers.
func shape(v *Value) string {
	var key strings.Builder
	key.WriteString(v.kind().String())
	for below := range v.children() {
		if v.kind() == typeObject {
			key.WriteString(" " + below.name())
		}
		key.WriteString("(" + shape(below) + ")")
	}
	if text := v.string(); strings.Contains(text, "_") {
		key.WriteString(text) // a tag
	}
	return key.String()
}

// FuzzPrechecks judges a text by each definition of each schema: prechecks promise nothing wrong.
func FuzzPrechecks(f *testing.F) {
	tier.Need(f, tier.Normal)
	var schemas []*Schema
	var definitions [][]string
	for _, name := range slices.Sorted(maps.Keys(schemaTexts)) {
		s, err := Parse([]byte(schemaTexts[name]()), 0)
		if err != nil {
			f.Fatal(err)
		}
		judge, err := sample.Load(schemaTexts[name]())
		if err != nil {
			f.Fatal(err)
		}
		drawer := sample.NewSmallMaker(judge, 1)
		names := slices.Sorted(maps.Keys(s.definitions))
		for i := 0; i < len(names); i += tier.Pick(0, 16, 1, 1) {
			v, _ := drawer.Valid(names[i])
			text, err := json.Marshal(v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(len(schemas)), uint16(i), text)
		}
		schemas, definitions = append(schemas, s), append(definitions, names)
	}
	f.Fuzz(func(t *testing.T, schema uint8, definition uint16, text []byte) {
		var d document
		if !utf8.Valid(text) || d.read(text) != nil {
			return
		}
		s, names := schemas[int(schema)%len(schemas)], definitions[int(schema)%len(schemas)]
		var all tally
		all.promise(t, s, names[int(definition)%len(names)], d.root())
	})
}

// TestPrecheckKeywords sets each keyword of a compiled schema. Unknown keywords make prechecks refuse everything.
func TestPrecheckKeywords(t *testing.T) {
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
			if p := newPrechecker().precheck([]*jsonschema.Schema{s}, nil); p.admits(decode(t, text)) && !slices.Contains(known, name) {
				t.Errorf("%s: admits %s", name, text)
			}
		}
		n++
	}
	if n < 40 {
		t.Errorf("only %d keywords", n)
	}
}

// TestPrechecks runs prechecks on values of separate schemas. A "+" before a value means that they admit it. Values
// that they admit have no findings; values that they do not admit may have none either.
func TestPrechecks(t *testing.T) {
	if !fastpath.Enabled {
		t.Skip("it is about fast paths")
	}
	for name, test := range map[string]struct {
		definitions string
		values      []string
	}{
		"formats of integers": {
			`{"A":{"type":["number","string"],"format":"int32"}}`,
			[]string{"+1", "-1.5", "-2147483648", "- 2147483648", "+-2147483648", "+2147483647", `+"x"`, "-null", "-1e2", "-1.0"},
		},
		"unsigned": {`{"A":{"type":"integer","format":"uint16"}}`, []string{"+0", "+-0", "+65535", "-65536", "--1"}},
		"64 bits": {
			`{"A":{"type":"integer","format":"int64"}}`,
			[]string{"+123456789012345678", "--9223372036854775809", "-9223372036854775808", "-9223372036854775807"},
		},
		"fractions": {
			`{"A":{"type":"number","minimum":-1,"maximum":2,"format":"double"}}`,
			[]string{"+-1", "+-0.5", "+1.5", "+2", "-2.1", "--1.1", "-2.0", "-0.5e0", "-1.00000000000000000000000001"},
		},
		"whole numbers":         {`{"A":{"type":"integer"}}`, []string{"+1", "-1.5", "-1.0", `-"1"`}},
		"itself":                {`{"A":{"$ref":"#/$defs/A"}}`, []string{"-1", "-{}", "-null"}},
		"itself among others":   {`{"A":{"allOf":[{"$ref":"#/$defs/A"},{"type":"object"}]}}`, []string{"-1", "-{}"}},
		"itself in a union":     {`{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"object"}]}}`, []string{"-1", "-{}"}},
		"itself through others": {`{"A":{"allOf":[{"$ref":"#/$defs/B"}],"type":"object"},"B":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"string"}]}}`, []string{`-"x"`, "-{}"}},
		"itself in a member": {
			`{"A":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{"type":"array","items":{"$ref":"#/$defs/A"}}}}}`,
			[]string{"+{}", `+{"a":{"a":{"b":[{},{"a":{}}]}}}`, `-{"a":{"a":{"b":[{},{"a":1}]}}}`, `-{"a":{"c":1}}`},
		},
		"not": {
			`{"A":{"type":"object","properties":{"t":{"type":"string"},"u":true},"not":{"anyOf":[
				{"type":"object","properties":{"t":{"const":"x"}},"required":["t"]},
				{"type":"object","properties":{"t":{"type":"string","const":"y"}},"required":["t"]},
				{"type":"object","properties":{"u":{"const":"z"}},"required":["u"]}]}}}`,
			[]string{`+{"t":"a"}`, `+{}`, `-{"t":"x"}`, `-{"t":"y"}`, `-{"u":"z"}`, `+{"u":"x"}`, `-{"t":"\u0078"}`},
		},
		"another not": {`{"A":{"type":"object","not":{"required":["a"]}}}`, []string{`-{}`, `-{"a":1}`}},
		"values of other members": {
			`{"A":{"allOf":[{"type":"object","properties":{"a":{}}},{"type":"object","additionalProperties":{"type":"string"}}]}}`,
			[]string{`+{}`, `+{"a":"x","b":"y"}`, `-{"a":1}`, `-{"b":1}`},
		},
		"any further members": {
			`{"A":{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true},{"type":"object","properties":{"b":{"type":"object"}}}]}}`,
			[]string{`+{"a":"x","b":{},"c":1}`, `-{"a":1}`, `-{"b":1}`, `-{"b":{"c":1}}`},
		},
		"no further members": {`{"A":{"type":"object","properties":{"a":{}},"additionalProperties":false}}`, []string{`-{"a":1}`, `-{"b":1}`}},
		"required, not declared": {
			`{"A":{"type":"object","properties":{"a":{}},"required":["a","b"]}}`,
			[]string{`-{"a":1}`, `-{"a":1,"b":2}`, `-{"b":1}`},
		},
		"data for extensions": {`{"A":{"type":"object","properties":{}}}`, []string{`+{"_meta":1}`, `-{"_mete":1}`}},
		"tags of another type": {
			`{"A":{"anyOf":[
				{"type":"object","properties":{"t":{"const":"x"},"a":{}},"required":["t"]},
				{"type":"object","properties":{"t":{"type":"integer"},"b":{}}},
				{"type":"object","properties":{"t":{"type":"null"},"c":{}}}]}}`,
			[]string{`+{"t":"x","a":1}`, `-{"t":"x","b":1}`, `+{"t":1,"b":1}`, `+{"t":null,"c":1}`, `-{"t":1,"c":1}`, `-{"a":1}`, `-{"b":1}`},
		},
		"two right branches": {
			`{"A":{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]}}`,
			[]string{`-{"a":1}`, `-{}`, "-1"},
		},
		"one right branch of two": {
			`{"A":{"oneOf":[{"type":"object","properties":{"a":{}},"required":["a"]},{"type":"object","properties":{"b":{}},"required":["b"]}]}}`,
			[]string{`+{"a":1}`, `+{"b":1}`, `-{"a":1,"b":1}`, `-{}`, `-{"a":1,"c":1}`},
		},
		"numbers of two branches": {
			`{"A":{"oneOf":[{"type":"integer"},{"type":"number"}]},"B":{"anyOf":[{"type":"integer"},{"type":"number"}]}}`,
			[]string{"-1", "-1.5", "+B 1", "+B 1.5", `-B ""`},
		},
		"names": {
			`{"A":{"oneOf":[{"const":"a"},{"const":"b"},{"type":"null"}]},"B":{"anyOf":[{"const":"a"},{"type":"string","minLength":2}]}}`,
			[]string{`+"a"`, `+"b"`, "+null", `-"c"`, "-1", `+B "a"`, `+B "bc"`, `-B "b"`, `+"\u0061"`},
		},
		"elements of two kinds": {
			`{"A":{"anyOf":[
				{"type":"array","items":{"type":"object","properties":{"a":{}},"required":["a"]}},
				{"type":"array","items":{"type":"object","properties":{"b":{}},"required":["b"]}}]}}`,
			[]string{`+[{"a":1},{"a":2}]`, `+[{"b":1}]`, `-[{"a":1,"b":1}]`, `-[{"a":1},{"b":1}]`, `-[{}]`, `-[1]`, `-[]`},
		},
		"first elements": {`{"A":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}`, []string{`-["a",1]`, `-[1]`}},
		"lengths": {
			`{"A":{"type":["string","array"],"minLength":2,"minItems":2,"items":{"type":"null"}}}`,
			[]string{`+"é€"`, `-"é"`, `-"\u00e9"`, `+"\u00e9\n"`, `+[null,null]`, `-[null]`, `-[null,1]`},
		},
		"format of a text": {`{"A":{"type":["string","null"],"format":"date-time"}}`, []string{`+"2026-01-02T03:04:05Z"`, `-"x"`, "+null"}},
		"unevaluated": {
			`{"A":{"type":"object","properties":{"a":{}},"unevaluatedProperties":false},"B":{"type":"object","properties":{"a":{"type":"string"}},"unevaluatedProperties":true}}`,
			[]string{`-{"a":1}`, `-{"b":1}`, `+B {"a":"x","b":1}`, `-B {"a":1}`},
		},
		"conditions": {`{"A":{"type":"object","if":{"required":["a"]},"then":{"required":["b"]}}}`, []string{"-{}", `-{"a":1}`}},
		"members that occur twice": {
			`{"A":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}`,
			[]string{`+{"a":"x"}`, `-{"a":1,"a":"x"}`, `-{"a":"x","a":1}`},
		},
		"twice and missing": {
			`{"A":{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a","b"]}}`,
			[]string{`+{"a":"x","b":1}`, `-{"a":"x","a":"y"}`},
		},
		"elements that are no objects": {
			`{"A":{"oneOf":[{"type":"array","items":{"properties":{"a":{}},"required":["a"]}},{"type":"array","items":{"type":"integer"}}]}}`,
			[]string{`-[1]`, `-[{"a":1}]`, `-[]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var root map[string]any
			dec := json.NewDecoder(strings.NewReader(test.definitions))
			dec.UseNumber()
			if err := dec.Decode(&root); err != nil {
				t.Fatal(err)
			}
			s := newSchema(root)
			for _, value := range test.values {
				sure, text := value[0] == '+', value[1:]
				definition := "A"
				if rest, ok := strings.CutPrefix(text, "B "); ok {
					definition, text = "B", rest
				}
				v := decode(t, []byte(text))
				new(tally).promise(t, s, definition, v)
				if got := s.surely(definition, v); got != sure {
					t.Errorf("%s %s: the precheck admits it: %t, want %t", definition, text, got, sure)
				}
			}
		})
	}
}

// skipUnderRace ends a test of one goroutine that takes far longer with the race detector.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if gentest.Race {
		t.Skip("runs without the race detector")
	}
}
