// Open names: the strings for which a schema lists names and leaves room for more, of which those without a leading
// underscore are kept for later versions of the protocol. The schema accepts all of them.

package conformance

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// openNames is the part of a definition that leads to open names.
type openNames struct {
	known      map[string]bool // the names that are listed, if the value is an open name
	definition string          // that lists them
	members    map[string]*openNames
	values     *openNames // of members that are not in members
	items      *openNames
}

// openNameTrees has the trees of a schema's definitions, each made when it is first needed.
type openNameTrees struct{ trees sync.Map }

// of returns the tree of a definition, nil if nothing in it is an open name.
func (t *openNameTrees) of(s *Schema, definition string) *openNames {
	if tree, ok := t.trees.Load(definition); ok {
		return tree.(*openNames)
	}
	b := openNameBuilder{definitions: s.definitions, made: map[string]*openNames{}}
	tree := b.place(b.all(nil, s.definitions[definition], definition))
	b.prune()
	if tree.empty() {
		tree = nil
	}
	t.trees.Store(definition, tree)
	return tree
}

// empty reports whether a tree leads nowhere.
func (n *openNames) empty() bool {
	return n.known == nil && len(n.members) == 0 && n.values == nil && n.items == nil
}

// reserved reports whether a value has a name that is neither listed nor begins with an underscore.
func (n *openNames) reserved(v value) bool {
	switch {
	case n == nil:
	case isText(v):
		return n.known != nil && !n.known[text(v)] && !strings.HasPrefix(text(v), "_")
	case isArray(v) && n.items != nil:
		for _, item := range items(v) {
			if n.items.reserved(item) {
				return true
			}
		}
	case isObject(v) && (len(n.members) > 0 || n.values != nil) && !n.custom(v):
		for name, below := range membersOf(v) {
			if n.below(name).reserved(below) {
				return true
			}
		}
	}
	return false
}

// walk yields these names with their places.
func (n *openNames) walk(v value, where string, yield func(where, name, definition string)) {
	switch {
	case !n.reserved(v):
	case isText(v):
		yield(where, text(v), n.definition)
	case isArray(v):
		for i, item := range items(v) {
			n.items.walk(item, element(where, i), yield)
		}
	default:
		for name, below := range membersOf(v) {
			n.below(name).walk(below, pointer(where, name), yield)
		}
	}
}

// below is the tree of a member.
func (n *openNames) below(name string) *openNames {
	if below, ok := n.members[name]; ok {
		return below
	}
	return n.values
}

// custom reports whether an object has a name of somebody's own: it may be a variant with members of its own.
func (n *openNames) custom(v value) bool {
	for name, below := range membersOf(v) {
		if next := n.members[name]; next != nil && next.known != nil && strings.HasPrefix(text(below), "_") {
			return true
		}
	}
	return false
}

// openNameBuilder makes the trees of a schema. Places to which the same schemas apply are the same, which ends the
// recursion of those that refer to themselves.
type openNameBuilder struct {
	definitions map[string]any
	made        map[string]*openNames
}

// schemaIn is a schema, and the definition that it is in.
type schemaIn struct {
	schema     map[string]any
	definition string
}

// all appends a schema and those that apply to the same value, by reference or in a union.
func (b *openNameBuilder) all(list []schemaIn, schema any, definition string) []schemaIn {
	s := object(schema)
	if s == nil || slices.ContainsFunc(list, func(o schemaIn) bool { return identity(o.schema) == identity(s) }) {
		return list
	}
	list = append(list, schemaIn{s, definition})
	if ref, ok := s["$ref"].(string); ok {
		if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
			list = b.all(list, b.definitions[name], name)
		}
	}
	for below := range branches(s) {
		list = b.all(list, below, definition)
	}
	return list
}

func identity(schema map[string]any) uintptr { return reflect.ValueOf(schema).Pointer() }

// place makes the tree of a value to which some of the schemas apply.
func (b *openNameBuilder) place(list []schemaIn) *openNames {
	var key strings.Builder
	for _, s := range list {
		fmt.Fprint(&key, identity(s.schema), " ")
	}
	if n, ok := b.made[key.String()]; ok {
		return n
	}
	n := &openNames{members: map[string]*openNames{}}
	b.made[key.String()] = n
	names := map[string]bool{}
	members := map[string][]schemaIn{}
	var items, values []schemaIn
	for _, s := range list {
		name, isConst := s.schema["const"].(string)
		switch {
		case isConst:
			names[name] = true
		case s.reserves() && n.definition == "":
			n.definition = s.definition
		}
		properties := object(s.schema["properties"])
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			members[name] = b.all(members[name], properties[name], s.definition)
		}
		items = b.all(items, s.schema["items"], s.definition)
		values = b.all(values, s.schema["additionalProperties"], s.definition)
	}
	if n.definition != "" && len(names) > 0 {
		n.known = names
	}
	for name, list := range members {
		n.members[name] = b.place(list)
	}
	if len(items) > 0 {
		n.items = b.place(items)
	}
	if len(values) > 0 {
		n.values = b.place(values)
	}
	return n
}

// reserves reports whether a schema is that of any string, and keeps those without an underscore.
func (s schemaIn) reserves() bool {
	if s.schema["type"] != "string" {
		return false
	}
	own, _ := s.schema["description"].(string)
	return strings.Contains(own, "reserved for")
}

// prune removes what leads nowhere.
func (b *openNameBuilder) prune() {
	useful := map[*openNames]bool{}
	for changed := true; changed; {
		changed = false
		for _, n := range b.made {
			leads := n.known != nil || useful[n.items] || useful[n.values]
			for _, below := range n.members {
				leads = leads || useful[below]
			}
			if leads && !useful[n] {
				useful[n], changed = true, true
			}
		}
	}
	for _, n := range b.made {
		maps.DeleteFunc(n.members, func(_ string, below *openNames) bool { return !useful[below] })
		if !useful[n.items] {
			n.items = nil
		}
		if !useful[n.values] {
			n.values = nil
		}
	}
}
