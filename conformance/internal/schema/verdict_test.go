package schema

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	schemaCount = flag.Int("schemas", 0, "how many schemas TestVerdicts makes; 0 is what the tier says")
	schemaSeed  = flag.Uint64("schemas.seed", 1, "the first of their seeds")
)

// TestVerdicts compares, for random schemas and values, whether there are errors with whether the library finds errors
// when it is given only the same schema.
func TestVerdicts(t *testing.T) {
	tier.Need(t, tier.Normal)
	valid, invalid, skipped := 0, 0, 0
	count := cmp.Or(*schemaCount, tier.Pick(0, 40, 300, 4000))
	mixer := sample.NewMixer(t, "../../../gen/testdata/constructs/*.json")
	for seed := range uint64(count) {
		seed += *schemaSeed
		document := sample.DocumentOf(mixer.Definitions(seed, ""))
		var root struct {
			Defs map[string]any `json:"$defs"`
		}
		dec := json.NewDecoder(strings.NewReader(string(document)))
		dec.UseNumber()
		must.Do(t, dec.Decode(&root))
		judge := must.Get(sample.Load(string(document)))(t)
		plain := newCompiler(root.Defs)
		s := newSchema(root.Defs)
		drawer := sample.NewSmallMaker(judge, seed)
		for _, name := range slices.Sorted(maps.Keys(root.Defs)) {
			if judge.Check(name) != nil {
				skipped++ // the library refuses it, and keeps the partial result
				break
			}
			library, err := plain.Compile(locationOf(name))
			if err != nil {
				skipped++
				break
			}
			for range 10 {
				v, _ := drawer.Valid(name)
				for range 3 {
					if !agree(t, s, name, library, v) {
						t.Fatalf("seed %d: %s\n%s", seed, name, document)
					}
					if library.Validate(v) == nil {
						valid++
					} else {
						invalid++
					}
					v = drawer.Spoilt(v)
				}
			}
		}
	}
	if valid == 0 || invalid == 0 {
		t.Error("all values were alike")
	}
	t.Logf("%d schemas: %d values are valid, %d invalid; %d definitions left out", count, valid, invalid, skipped)
}

func agree(t *testing.T, s *Schema, name string, library *jsonschema.Schema, v any) bool {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	n := decode(t, text)
	want := library.Validate(n.tree())
	var got []flaw
	for _, f := range s.check(name, n.tree()) {
		if f.rule != Custom {
			got = append(got, f)
		}
	}
	if (want == nil) == (len(got) == 0) {
		return true
	}
	t.Errorf("%s: got %v, the library says %v", text, got, want)
	return false
}

// TestMembersWithoutName shows that a member of a map with an empty name is judged as a member, not as the map.
func TestMembersWithoutName(t *testing.T) {
	s := newSchema(map[string]any{"Map": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}})
	for value, want := range map[string]string{
		`{"":"x"}`:        "",
		`{"":1}`:          "/ got number, want string",
		`{"%":1}`:         "/% got number, want string",
		`{"a":"x","":[]}`: "/ got array, want string",
	} {
		requireFlaws(t, s, "Map", value, want)
	}
}

// TestFirstElements shows that the first elements of an array are judged by prefixItems, and the others by items.
func TestFirstElements(t *testing.T) {
	s := newSchema(map[string]any{"Tuple": map[string]any{
		"type":        "array",
		"prefixItems": []any{map[string]any{"type": "object", "properties": map[string]any{"a": true}}},
		"items":       map[string]any{"type": "object", "properties": map[string]any{"b": map[string]any{"type": "string"}}},
	}})
	for value, want := range map[string]string{
		`[{"a":1},{"b":"x"}]`: "",
		`[{"b":"x"}]`:         `/0/b unknown member "b"`,
		`[{},{"a":1}]`:        `/1/a unknown member "a"`,
		`[{},{"b":1}]`:        "/1/b got number, want string",
		`[1]`:                 "/0 got number, want object",
	} {
		requireFlaws(t, s, "Tuple", value, want)
	}
}

func requireFlaws(t *testing.T, s *Schema, definition, value, want string) {
	t.Helper()
	var got []string
	for _, f := range s.check(definition, decode(t, []byte(value)).tree()) {
		got = append(got, fmt.Sprintf("%s %s", f.pointer, f.message))
	}
	if strings.Join(got, "; ") != want {
		t.Errorf("%s: got %q, want %q", value, got, want)
	}
}
