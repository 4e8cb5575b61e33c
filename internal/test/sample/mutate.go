package sample

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// A Mutation is a valid value with one place changed.
type Mutation struct {
	// What describes the change and its place.
	What string
	// Value is the changed value.
	Value any
	// Fails is set when the value must be refused, at Pointer.
	Fails bool
	// Repairs is set when the mistake must be repaired, at Pointer. The value read is then Result. When neither
	// is set, the change is not a mistake.
	Repairs bool
	Pointer string
	// Inside is set when the value may also be refused below Pointer, because without its tag it may be taken
	// for another variant.
	Inside bool
	Result any
	// Unsendable is set when Result may be received but not sent: for example, an array that must have items but
	// was emptied by leniency, or a string that does not have its format.
	Unsendable bool
}

// step is one step into a value, and how leniency handles what is there when it is bad.
type step struct {
	key      any  // the name of a member, or the index of an item
	value    any  // what is there
	drop     bool // a bad value counts as absent, a bad item is left out
	nullable bool // null counts as empty
	skip     bool // bad items of this array are left out
	required bool
}

// Mutations yields copies of a value of a definition with one change each: at each place, the value there is replaced
// by a value of every kind, or of only one kind deep inside, and each required member is removed. The value must be
// valid.
func (s *Schema) Mutations(definition string, v any) iter.Seq[Mutation] {
	return func(yield func(Mutation) bool) {
		m := &mutator{schema: s, definition: definition, whole: v, yield: yield}
		m.visit([]any{s.defs[definition]}, v, nil)
	}
}

type mutator struct {
	schema     *Schema
	definition string
	whole      any
	yield      func(Mutation) bool
	stopped    bool
	turn       int
}

// deep is the maximum number of members and items on the path to a place that is tried with values of all kinds. Places
// below get one value each, of all kinds in turn, because their definitions are tried separately.
const deep = 2

// kinds holds a value of every kind, and numbers holds numbers that are not allowed for every number.
var (
	kinds   = []any{nil, true, json.Number("42"), "x", []any{}, map[string]any{}}
	numbers = []any{json.Number("-1"), json.Number("1.5"), json.Number("18446744073709551616")}
)

// absent replaces a member or an item that is removed.
type absent struct{}

// visit changes the place at path, which holds v and has the given schemas, and the places below it.
func (m *mutator) visit(schemas []any, v any, path []step) {
	tried := kinds
	if _, number := v.(json.Number); number {
		tried = slices.Concat(kinds, numbers)
	}
	if len(path) > deep {
		m.turn++
		i := m.turn % len(tried)
		tried = tried[i : i+1]
	}
	for _, w := range tried {
		m.try(Mutation{What: fmt.Sprintf("%s := %s", pointer(path), show(w)), Value: edit(m.whole, path, w)}, path, w == nil)
	}
	parts := m.schema.inForce(schemas, v, context{loose: true})
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below, _ := memberSchemas(parts, name)
			if len(below) == 0 || slices.Contains(below, any(false)) {
				continue
			}
			to := step{
				key: name, value: v[name],
				drop:     hasTrue(below, onError),
				nullable: hasTrue(below, onNull),
				skip:     hasTrue(below, skipItems),
				required: slices.ContainsFunc(parts,
					func(p map[string]any) bool { return slices.Contains(listOf(p["required"]), any(name)) }),
			}
			inside := append(slices.Clone(path), to)
			if to.required {
				tag := slices.ContainsFunc(below, func(s any) bool { m, _ := s.(map[string]any); return m["const"] != nil })
				m.try(Mutation{What: fmt.Sprintf("%s without %s", pointer(path), name),
					Value: edit(m.whole, inside, absent{}), Inside: tag}, path, false)
			}
			m.visit(below, v[name], inside)
		}
	case []any:
		skip := len(path) > 0 && path[len(path)-1].skip
		for i, item := range v {
			if below := itemSchemas(parts, i); len(below) > 0 {
				m.visit(below, item, append(slices.Clone(path), step{key: i, value: item, drop: skip}))
			}
		}
	}
}

// The marks of members that are read leniently.
const (
	onError   = "x-deserialize-default-on-error"
	onNull    = "x-deserialize-default-on-null"
	skipItems = "x-deserialize-skip-invalid-items"
)

// hasTrue reports whether the keyword is true in one of the schemas.
func hasTrue(schemas []any, keyword string) bool {
	return slices.ContainsFunc(schemas, func(s any) bool { m, _ := s.(map[string]any); return m[keyword] == true })
}

// try yields a value that is changed at path, with how leniency handles the change. A mistake is refused there unless a
// step on the path tolerates it.
func (m *mutator) try(out Mutation, path []step, null bool) {
	if m.stopped {
		return
	}
	out.Result = out.Value
	if !m.schema.Tolerated(m.definition, out.Value) {
		out.Fails, out.Pointer, out.Result = true, pointer(path), nil
		for i, step := range slices.Backward(path) {
			if step.drop || null && step.nullable && i == len(path)-1 {
				out.Fails, out.Repairs, out.Pointer = false, true, pointer(path[:i+1])
				out.Result = m.emptied(path[:i+1])
				out.Unsendable = !m.schema.Tolerated(m.definition, out.Result)
				break
			}
		}
	}
	m.stopped = !m.yield(out)
}

// emptied returns the value without the part at path, or with that part empty if it is required.
func (m *mutator) emptied(path []step) any {
	out := edit(m.whole, path, absent{})
	last := path[len(path)-1]
	// A list that is required in this branch may be optional in another one. A lost tag leads to another branch.
	if _, list := last.value.([]any); last.required && (list || !m.schema.Tolerated(m.definition, out)) {
		return edit(m.whole, path, []any{})
	}
	return out
}

// edit returns a copy of v in which w is at path. It does not modify v.
func edit(v any, path []step, w any) any {
	if len(path) == 0 {
		return w
	}
	switch key := path[0].key.(type) {
	case string:
		out := maps.Clone(v.(map[string]any))
		if out[key] = edit(out[key], path[1:], w); out[key] == any(absent{}) {
			delete(out, key)
		}
		return out
	case int:
		out := slices.Clone(v.([]any))
		if out[key] = edit(out[key], path[1:], w); out[key] == any(absent{}) {
			return slices.Delete(out, key, key+1)
		}
		return out
	}
	return v
}

func pointer(path []step) string {
	var b strings.Builder
	for _, s := range path {
		fmt.Fprint(&b, "/", strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(s.key)))
	}
	return b.String()
}
