// This file owns making mistakes in valid values, and what leniency must make of each.

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
	// What says what was done and where.
	What string
	// Value is the changed value.
	Value any
	// Fails is set when the value must be refused, at Pointer.
	Fails bool
	// Repairs is set when the mistake must be repaired, at Pointer. What is read then is Result. When
	// neither is set, what was done is no mistake.
	Repairs bool
	Pointer string
	Result  any
	// Unsendable is set when Result is received but may not be sent: an array that leniency has
	// emptied though it must have items, a string without its format.
	Unsendable bool
}

// step is one way into a value: a member or an item, and what leniency does when it is bad.
type step struct {
	item     bool
	name     string // of the member
	index    int    // of the item
	drop     bool   // a bad value counts as absent, a bad item is left out
	nullable bool   // null counts as empty
	skip     bool   // bad items of this array are left out
	keeps    bool   // the value may be anything: with a mistake inside it is just another variant
	required bool
}

// Mutations yields, for each place in a value of a definition, the value with what stands there replaced
// by values of every kind, and without each required member. The value must be valid and free of what
// the schema does not know.
func (s *Schema) Mutations(definition string, v any) iter.Seq[Mutation] {
	return func(yield func(Mutation) bool) {
		m := &mutator{schema: s, definition: definition, whole: v, yield: yield}
		m.visit(s.defs[definition], v, nil)
	}
}

type mutator struct {
	schema     *Schema
	definition string
	whole      any
	keeps      bool // the whole value may be anything, as that of a step
	yield      func(Mutation) bool
	stopped    bool
}

// kinds holds a value of every kind, numbers those that not every number may be.
var (
	kinds   = []any{nil, true, json.Number("42"), "x", []any{}, map[string]any{}}
	numbers = []any{json.Number("-1"), json.Number("1.5"), json.Number("18446744073709551616")}
)

// visit changes the place at path, which holds v, and those below it.
func (m *mutator) visit(n *node, v any, path []step) {
	tried := kinds
	if _, number := v.(json.Number); number {
		tried = slices.Concat(kinds, numbers)
	}
	for _, w := range tried {
		m.yieldReplaced(path, w, m.schema.accepts(n, w))
	}
	look := m.schema.look(n, v)
	keeps := look.opaque || slices.ContainsFunc(m.schema.target(n).branches, (*node).anything)
	if last := len(path) - 1; last >= 0 {
		path[last].keeps = keeps
	} else {
		m.keeps = keeps
	}
	switch v := v.(type) {
	case map[string]any:
		for _, part := range look.objects {
			m.visitMembers(part, look, v, path)
		}
		if len(look.objects) == 0 && look.leaf != nil {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				m.visit(look.leaf.values, v[name], join(path, step{name: name}))
			}
		}
	case []any:
		if look.leaf == nil {
			return
		}
		skip := len(path) > 0 && path[len(path)-1].skip
		for i, item := range v {
			m.visit(look.leaf.items, item, join(path, step{item: true, index: i, drop: skip}))
		}
	}
}

func (m *mutator) visitMembers(part *node, look view, v map[string]any, path []step) {
	for _, name := range part.names {
		value, there := v[name]
		p := part.props[name]
		if slices.Contains(look.tags, name) {
			if _, constant := p.constant(); there && constant {
				m.visitTag(look, name, path)
			}
			continue
		}
		if !there {
			continue
		}
		to := step{
			name:     name,
			drop:     p.defaultOnError,
			nullable: p.defaultOnNull,
			skip:     p.skipInvalidItems,
			required: slices.Contains(part.required, name),
		}
		if to.required {
			m.yieldRemoved(path, name)
		}
		m.visit(p, value, join(path, to))
	}
}

// visitTag changes the member that names the variant of a union.
func (m *mutator) visitTag(look view, name string, path []step) {
	null, lenient := false, false
	for _, part := range look.objects {
		if p := part.props[name]; p != nil {
			null, lenient = null || p.nullable(), lenient || p.defaultOnError
		}
	}
	for _, w := range kinds {
		if _, text := w.(string); !text {
			m.yieldReplaced(join(path, step{name: name, drop: lenient}), w, w == nil && null)
		}
	}
}

func (m *mutator) yieldReplaced(path []step, w any, valid bool) {
	out := Mutation{What: fmt.Sprintf("%s := %s", pointer(path), show(w)), Value: edit(m.whole, path, func(any) any { return w })}
	// A value may be wrong for its branch, and right for the one that needs no tag.
	valid = valid || m.schema.accepts(m.schema.defs[m.definition], out.Value)
	switch last := len(path) - 1; {
	case valid:
		out.Result = out.Value
	case w == nil && last >= 0 && path[last].nullable:
		out.Repairs, out.Pointer = true, pointer(path)
		out.Result = m.emptied(path)
	default:
		m.judge(&out, path, pointer(path))
	}
	m.emit(out)
}

func (m *mutator) yieldRemoved(path []step, name string) {
	out := Mutation{What: fmt.Sprintf("%s without %s", pointer(path), name), Value: edit(m.whole, path, func(v any) any {
		c := maps.Clone(v.(map[string]any))
		delete(c, name)
		return c
	})}
	m.judge(&out, path, pointer(path))
	m.emit(out)
}

func (m *mutator) emit(out Mutation) {
	out.Unsendable = !out.Fails && !m.schema.Sendable(m.definition, out.Result)
	if !m.stopped && !m.yield(out) {
		m.stopped = true
	}
}

// judge says what leniency makes of a mistake in the value that path leads to, which is refused at
// place unless something on the way lets it go.
func (m *mutator) judge(out *Mutation, path []step, place string) {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].keeps {
			out.Result = out.Value
			return
		}
		if path[i].drop {
			out.Repairs, out.Pointer = true, pointer(path[:i+1])
			out.Result = m.emptied(path[:i+1])
			return
		}
	}
	if m.keeps {
		out.Result = out.Value
		return
	}
	out.Fails, out.Pointer = true, place
}

// emptied returns the value with what path leads to left out, or empty where it is required.
func (m *mutator) emptied(path []step) any {
	last := path[len(path)-1]
	return edit(m.whole, path[:len(path)-1], func(parent any) any {
		switch parent := parent.(type) {
		case map[string]any:
			c := maps.Clone(parent)
			if _, object := parent[last.name].(map[string]any); last.required && object {
				c[last.name] = map[string]any{}
			} else if last.required {
				c[last.name] = []any{}
			} else {
				delete(c, last.name)
			}
			return c
		case []any:
			return slices.Delete(slices.Clone(parent), last.index, last.index+1)
		}
		return parent
	})
}

// edit returns v with what path leads to changed; v stays as it is.
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
