// An open name is a string for which the schema lists names and allows others. Other names without a leading underscore
// are reserved for later versions of the protocol, but the schema accepts them.

package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// OpenNames is the part of a definition that leads to open names.
type OpenNames struct {
	known      map[string]bool // the listed names, if the value is an open name
	definition string          // the definition that lists them
	members    map[string]*OpenNames
	values     *OpenNames // for members that are not in members
	items      *OpenNames
}

// OpenNamesOf returns the open names of a message's content, or nil if there are none.
func (s *Schema) OpenNamesOf(handler finding.Side, method string, kind finding.Kind) *OpenNames {
	definition := s.methods[methodKey{handler, method, kind}]
	if definition == "" || method == MethodInitialize && kind == finding.Request { // it may be for several versions
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tree := s.openNames[definition]
	if tree == nil {
		b := openNameBuilder{definitions: s.definitions, made: map[string]*OpenNames{}}
		tree = b.place(b.collect(nil, s.definitions[definition], definition))
		s.openNames[definition] = tree
	}
	return tree
}

// Walk calls yield for each name in a value that is not listed and does not begin with an underscore, with its JSON
// pointer and the definition that does not list it.
func (n *OpenNames) Walk(v *Value, where string, yield func(where, name, definition string)) {
	switch {
	case n == nil:
	case v.IsText():
		if n.known != nil && !n.known[v.Text()] && !strings.HasPrefix(v.Text(), "_") {
			yield(where, v.Text(), n.definition)
		}
	case v.IsArray() && n.items != nil:
		for i, item := range v.Items() {
			n.items.Walk(item, Element(where, i), yield)
		}
	case v.IsObject() && !n.custom(v):
		for name, below := range v.Members() {
			if next := n.member(name); next != nil {
				next.Walk(below, Pointer(where, name), yield)
			}
		}
	}
}

// member returns the tree of a member.
func (n *OpenNames) member(name string) *OpenNames {
	if below, ok := n.members[name]; ok {
		return below
	}
	return n.values
}

// custom reports whether an object has a custom name, in which case it may be a custom variant with members of its own.
func (n *OpenNames) custom(v *Value) bool {
	for name, below := range v.Members() {
		if next := n.members[name]; next != nil && next.known != nil && strings.HasPrefix(below.Text(), "_") {
			return true
		}
	}
	return false
}

// openNameBuilder builds the trees of a schema. Places to which the same schemas apply share a node, which ends the
// recursion of schemas that refer to themselves.
type openNameBuilder struct {
	definitions map[string]any
	made        map[string]*OpenNames
}

// schemaIn is a schema and the definition that contains it.
type schemaIn struct {
	schema     map[string]any
	definition string
}

// collect appends a schema and the schemas that apply to the same value by reference or in a union.
func (b *openNameBuilder) collect(list []schemaIn, schema any, definition string) []schemaIn {
	s := object(schema)
	if s == nil || slices.ContainsFunc(list, func(o schemaIn) bool { return identity(o.schema) == identity(s) }) {
		return list
	}
	list = append(list, schemaIn{s, definition})
	if ref, ok := s["$ref"].(string); ok {
		if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
			list = b.collect(list, b.definitions[name], name)
		}
	}
	for below := range branches(s) {
		list = b.collect(list, below, definition)
	}
	return list
}

func identity(schema map[string]any) uintptr { return reflect.ValueOf(schema).Pointer() }

// place builds the tree of a value to which some of the schemas apply.
func (b *openNameBuilder) place(list []schemaIn) *OpenNames {
	var key strings.Builder
	for _, s := range list {
		fmt.Fprint(&key, identity(s.schema), " ")
	}
	if n, ok := b.made[key.String()]; ok {
		return n
	}
	n := &OpenNames{members: map[string]*OpenNames{}}
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
			members[name] = b.collect(members[name], properties[name], s.definition)
		}
		items = b.collect(items, s.schema["items"], s.definition)
		values = b.collect(values, s.schema["additionalProperties"], s.definition)
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

// reserves reports whether a schema accepts every string and reserves those without a leading underscore.
func (s schemaIn) reserves() bool {
	if s.schema["type"] != "string" {
		return false
	}
	own, _ := s.schema["description"].(string)
	return strings.Contains(own, "reserved for")
}
