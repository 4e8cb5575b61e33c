package sample

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// A Mixer makes schemas from parts of others.
type Mixer struct{ all []map[string]any }

// NewMixer returns a mixer of the definitions in files such as those of gen/testdata/constructs, except those for whose
// values a validator cannot be asked.
func NewMixer(tb testing.TB, pattern string) *Mixer {
	tb.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no constructs in %s: %v", pattern, err)
	}
	m := &Mixer{}
	for _, path := range paths {
		list, err := Parse(must.Get(os.ReadFile(path))(tb))
		if err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		for _, construct := range listOf(list) {
			construct, _ := construct.(map[string]any)
			if defs, ok := construct["defs"].(map[string]any); ok && construct["unlabelled"] == nil {
				m.all = append(m.all, defs)
			}
		}
	}
	return m
}

// Definitions returns the definitions of two constructs in which a few schemas, or keywords of schemas, are those of
// other places. The names of all definitions begin with the prefix, so that one document can contain many sets. Equal
// seeds produce equal definitions.
func (m *Mixer) Definitions(seed uint64, prefix string) map[string]any {
	r := rand.New(rand.NewPCG(seed, 3))
	out := map[string]any{}
	for _, name := range []string{"a", "b"} {
		for definition, schema := range m.all[r.IntN(len(m.all))] {
			out[prefix+name+definition] = renamed(schema, prefix+name)
		}
	}
	for range 1 + r.IntN(3) {
		places := within(out, slices.Sorted(maps.Keys(out)), nil)
		to, from := places[r.IntN(len(places))], places[r.IntN(len(places))]
		old, _ := to.get().(map[string]any)
		new, _ := from.get().(map[string]any)
		if keywords := slices.Sorted(maps.Keys(new)); r.IntN(2) == 0 && old != nil && len(keywords) > 0 {
			keyword := keywords[r.IntN(len(keywords))]
			old[keyword] = renamed(new[keyword], "")
		} else {
			to.set(renamed(from.get(), ""))
		}
	}
	return out
}

// DocumentOf returns a document with the given definitions.
func DocumentOf(definitions map[string]any) []byte {
	return []byte(show(map[string]any{"$defs": definitions}))
}

// renamed returns a copy of a schema that refers to definitions with the prefix. It has no methods, which must be
// unique.
func renamed(schema any, prefix string) any {
	switch schema := schema.(type) {
	case []any:
		out := make([]any, len(schema))
		for i, item := range schema {
			out[i] = renamed(item, prefix)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, v := range schema {
			if ref, ok := v.(string); ok && name == "$ref" {
				if rest, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
					v = "#/$defs/" + prefix + rest
				}
			}
			if name != "x-method" && name != "x-side" {
				out[name] = renamed(v, prefix)
			}
		}
		return out
	}
	return schema
}

// The keywords with schemas inside a schema.
var (
	oneSchema = []string{"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items", "contains", "not",
		"if", "then", "else", "propertyNames"}
	namedOnes = []string{"properties", "patternProperties", "dependentSchemas"}
)

// A place is where a schema is.
type place struct {
	get func() any
	set func(any)
}

// within adds the places of the schemas in the members of an object, and of those inside them, in a fixed order.
func within(named map[string]any, names []string, places []place) []place {
	for _, name := range names {
		if schema, ok := named[name]; ok {
			places = append(places, place{func() any { return named[name] }, func(v any) { named[name] = v }})
			places = inside(schema, places)
		}
	}
	return places
}

// inside adds the places of the schemas inside a schema.
func inside(schema any, places []place) []place {
	m, _ := schema.(map[string]any)
	places = within(m, oneSchema, places)
	for _, keyword := range namedOnes {
		named, _ := m[keyword].(map[string]any)
		places = within(named, slices.Sorted(maps.Keys(named)), places)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list := listOf(m[keyword])
		for i := range list {
			places = append(places, place{func() any { return list[i] }, func(v any) { list[i] = v }})
			places = inside(list[i], places)
		}
	}
	return places
}
