package sample

import (
	"maps"
	"reflect"
	"strconv"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// memoKeyword is a keyword for schemas of members and items. It names the definition that the value must match, and the
// verdict is remembered. It would not work for the object itself, because the effect of unevaluatedProperties depends
// on which parts of another schema have evaluated the properties.
const memoKeyword = "x-memo"

// mostVerdicts bounds the number of remembered verdicts, and so the values that are kept.
const mostVerdicts = 100_000

// verdicts remembers whether values match schemas. Values must not change.
type verdicts struct {
	mu    sync.Mutex
	known map[question]verdict
}

// A question is a schema and the address of an object or array in memory.
type question struct {
	schema *jsonschema.Schema
	at     uintptr
	length int
}

// A verdict is the answer. It keeps the value, so that no other value can have the same address.
type verdict struct {
	value any
	fits  bool
}

func (v *verdicts) validate(schema *jsonschema.Schema, value any) bool {
	q := question{schema: schema}
	switch value := value.(type) {
	case map[string]any:
		q.at, q.length = reflect.ValueOf(value).Pointer(), len(value)
	case []any:
		q.at, q.length = reflect.ValueOf(value).Pointer(), len(value)
	}
	if q.length == 0 {
		return schema.Validate(value) == nil
	}
	v.mu.Lock()
	known, ok := v.known[q]
	v.mu.Unlock()
	if ok {
		return known.fits
	}
	fits := schema.Validate(value) == nil
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= mostVerdicts {
		clear(v.known)
	}
	if v.known == nil {
		v.known = map[question]verdict{}
	}
	v.known[q] = verdict{value, fits}
	return fits
}

// Compile implements [jsonschema.ExtCompiler].
func (v *verdicts) Compile(ctx jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	ref, ok := m[memoKeyword].(string)
	if !ok {
		return nil, nil
	}
	schema, err := ctx.CompileRef(ref, memoKeyword, false)
	if err != nil {
		return nil, err
	}
	return &memo{v, schema}, nil
}

type memo struct {
	verdicts *verdicts
	schema   *jsonschema.Schema
}

// Validate implements [jsonschema.ExtSchema].
func (m *memo) Validate(ctx jsonschema.ValidationContext, value any) error {
	if m.verdicts.validate(m.schema, value) {
		return nil
	}
	return ctx.Error(memoKeyword, "it does not fit")
}

// memoized returns equivalent definitions in which the schemas of members and items that may be objects or arrays have
// the memo keyword.
func memoized(defs map[string]any) map[string]any {
	out := map[string]any{}
	var whole, part func(schema any) any
	whole = func(schema any) any {
		m, ok := schema.(map[string]any)
		if !ok {
			return schema
		}
		m = maps.Clone(m)
		for keyword, below := range m {
			switch keyword {
			case "$ref":
				if ref, ok := below.(string); ok {
					m[keyword] = absoluteRef(ref)
				}
			case "properties", "patternProperties":
				m[keyword] = eachNamed(below, part)
			case "dependentSchemas":
				m[keyword] = eachNamed(below, whole)
			case "additionalProperties", "unevaluatedProperties", "items":
				m[keyword] = part(below)
			case "prefixItems":
				m[keyword] = mapItems(below, part)
			case "allOf", "anyOf", "oneOf":
				m[keyword] = mapItems(below, whole)
			case "if", "then", "else", "not", "contains", "propertyNames", "unevaluatedItems":
				m[keyword] = whole(below)
			}
		}
		return m
	}
	part = func(schema any) any {
		m, _ := schema.(map[string]any)
		for _, keyword := range []string{"$ref", "allOf", "anyOf", "oneOf", "properties", "additionalProperties", "items",
			"prefixItems"} {
			if m[keyword] == nil {
				continue
			}
			ref, ok := m["$ref"].(string)
			if !ok || len(m) > 1 {
				name := "m" + strconv.Itoa(len(out))
				out[name] = true
				out[name] = whole(schema)
				ref = "#/$defs/" + name
			}
			return map[string]any{memoKeyword: absoluteRef(ref)}
		}
		return schema
	}
	for name, schema := range defs {
		out[name] = whole(schema)
	}
	return out
}

// eachNamed returns a copy of an object with do applied to each value.
func eachNamed(object any, do func(any) any) any {
	named, ok := object.(map[string]any)
	if !ok {
		return object
	}
	out := make(map[string]any, len(named))
	for name, v := range named {
		out[name] = do(v)
	}
	return out
}

// mapItems returns a copy of a list with do applied to each item. Other values are left to the library.
func mapItems(list any, do func(any) any) any {
	items, ok := list.([]any)
	if !ok {
		return list
	}
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = do(item)
	}
	return out
}
