package sample

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
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

// step is one step into a value: a member or an item, and how leniency handles it when it is bad.
type step struct {
	item     bool
	name     string // of the member
	index    int    // of the item
	drop     bool   // a bad value counts as absent, a bad item is left out
	nullable bool   // null counts as empty
	skip     bool   // bad items of this array are left out
	required bool
}

// Mutations yields copies of a value of a definition with one change each: at each place, the value there is replaced
// by a value of every kind, or of only one kind deep inside, and each required member is removed. The value must be
// valid.
func (j *Schema) Mutations(definition string, v any) iter.Seq[Mutation] {
	return func(yield func(Mutation) bool) {
		m := &mutator{schema: j, definition: definition, whole: v, yield: yield, results: map[string]any{},
			unsendable: map[string]bool{}}
		d := j.loose
		m.visit([]any{d.defs[d.names[definition]]}, v, nil)
	}
}

type mutator struct {
	schema     *Schema
	definition string
	whole      any
	yield      func(Mutation) bool
	stopped    bool
	turn       int
	results    map[string]any  // the values that leniency produces for a mistake, by place
	unsendable map[string]bool // which of them may not be sent
}

// deep is the maximum number of members and items on the path to a place that is tried with values of all kinds. Places
// below get one value each, of all kinds in turn, because their definitions are tried separately.
const deep = 2

// kinds holds a value of every kind, and numbers holds numbers that are not allowed for every number.
var (
	kinds   = []any{nil, true, json.Number("42"), "x", []any{}, map[string]any{}}
	numbers = []any{json.Number("-1"), json.Number("1.5"), json.Number("18446744073709551616")}
)

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
		m.yieldReplaced(path, w)
	}
	var parts []map[string]any
	for _, s := range schemas {
		parts = m.schema.loose.inForce(parts, s, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below, _ := memberSchemas(parts, name)
			if len(below) == 0 {
				continue
			}
			to := step{
				name:     name,
				drop:     hasTrue(below, onError),
				nullable: hasTrue(below, onNull),
				skip:     hasTrue(below, skipItems),
				required: slices.ContainsFunc(parts,
					func(p map[string]any) bool { return slices.Contains(listOf(p["required"]), any(name)) }),
			}
			if to.required {
				m.yieldRemoved(path, name, slices.ContainsFunc(below, isConst))
			}
			m.visit(below, v[name], join(path, to))
		}
	case []any:
		skip := len(path) > 0 && path[len(path)-1].skip
		for i, item := range v {
			if below := itemSchemas(parts, i); len(below) > 0 {
				m.visit(below, item, join(path, step{item: true, index: i, drop: skip}))
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

func (m *mutator) yieldReplaced(path []step, w any) {
	out := Mutation{What: fmt.Sprintf("%s := %s", pointer(path), show(w)),
		Value: edit(m.whole, path, func(any) any { return w })}
	m.judge(&out, path, w == nil)
	m.emit(out)
}

// isConst reports whether a schema allows a single value with const.
func isConst(schema any) bool {
	m, _ := schema.(map[string]any)
	_, ok := m["const"]
	return ok
}

func (m *mutator) yieldRemoved(path []step, name string, tag bool) {
	out := Mutation{Inside: tag, What: fmt.Sprintf("%s without %s", pointer(path), name),
		Value: edit(m.whole, path, func(v any) any {
			c := maps.Clone(v.(map[string]any))
			delete(c, name)
			return c
		})}
	m.judge(&out, path, false)
	m.emit(out)
}

func (m *mutator) emit(out Mutation) {
	switch {
	case out.Repairs:
		known := false
		if out.Unsendable, known = m.unsendable[out.Pointer]; !known {
			out.Unsendable = !m.schema.Tolerated(m.definition, out.Result)
			m.unsendable[out.Pointer] = out.Unsendable
		}
	case !out.Fails:
		out.Unsendable = !m.schema.Tolerated(m.definition, out.Result)
	}
	if !m.stopped && !m.yield(out) {
		m.stopped = true
	}
}

// judge decides how leniency handles a change in the value at path. A mistake is refused there unless a step on the
// path tolerates it.
func (m *mutator) judge(out *Mutation, path []step, null bool) {
	if m.schema.Tolerated(m.definition, out.Value) {
		out.Result = out.Value
		return
	}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].drop || null && path[i].nullable && i == len(path)-1 {
			out.Repairs, out.Pointer = true, pointer(path[:i+1])
			out.Result = m.emptied(path[:i+1])
			return
		}
	}
	out.Fails, out.Pointer = true, pointer(path)
}

// emptied returns the value without the part at path, or with that part empty if it is required.
func (m *mutator) emptied(path []step) any {
	place := pointer(path)
	if out, ok := m.results[place]; ok {
		return out
	}
	last := path[len(path)-1]
	replaced := func(empty any) any {
		return edit(m.whole, path[:len(path)-1], func(parent any) any {
			switch parent := parent.(type) {
			case map[string]any:
				c := maps.Clone(parent)
				if delete(c, last.name); empty != nil {
					c[last.name] = empty
				}
				return c
			case []any:
				return slices.Delete(slices.Clone(parent), last.index, last.index+1)
			}
			return parent
		})
	}
	out := replaced(nil)
	// A list that is required in this branch may be optional in another one. A lost tag leads to another branch.
	if list := isList(m.whole, path); last.required && (list || !m.schema.Tolerated(m.definition, out)) {
		out = replaced([]any{})
	}
	m.results[place] = out
	return out
}

// isList reports whether the value at path is a list.
func isList(v any, path []step) (list bool) {
	edit(v, path, func(v any) any {
		_, list = v.([]any)
		return v
	})
	return list
}

// edit returns a copy of v with the part at path changed. It does not modify v.
func edit(v any, path []step, change func(any) any) any {
	if len(path) == 0 {
		return change(v)
	}
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		c[path[0].name] = edit(v[path[0].name], path[1:], change)
		return c
	case []any:
		c := slices.Clone(v)
		c[path[0].index] = edit(v[path[0].index], path[1:], change)
		return c
	}
	return v
}

func join(path []step, to step) []step { return append(slices.Clone(path), to) }

func pointer(path []step) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteByte('/')
		if s.item {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(strings.ReplaceAll(strings.ReplaceAll(s.name, "~", "~0"), "/", "~1"))
		}
	}
	return b.String()
}
