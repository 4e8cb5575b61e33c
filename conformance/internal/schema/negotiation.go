package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Negotiated returns the schema of connections on which the version is negotiated; see conformance.Negotiated.
func Negotiated(v1, v2 *Schema) *Schema {
	return &Schema{versions: map[int]*Schema{1: v1, 2: v2}}
}

// negotiate chooses the schema by the version in an initialize request or its answer. It does nothing if there is only
// one schema.
func (c *Connection) negotiate(kind finding.Kind, content *Value) {
	version, err := strconv.Atoi(string(content.Member("protocolVersion").number()))
	if err != nil {
		return
	}
	if kind == finding.Request && c.versions[version] == nil {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(c.versions)), func(known int) bool { return known > version })
		if len(known) == 0 {
			return
		}
		version = known[len(known)-1] // the newest version that such a client also supports
	}
	if schema := c.versions[version]; schema != nil {
		c.Schema = schema
	}
}

// initialize checks the params of an initialize request by the schema of the requested version. Members that only
// another version has are checked by that version's schema.
func (m *Message) initialize(definition string, params map[string]any) {
	c := m.connection
	own := maps.Clone(params)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if has(properties(c.Schema, definition), name) {
			continue
		}
		for _, other := range c.versions {
			if has(properties(other, definition), name) {
				delete(own, name)
				m.member(other, definition, params, name)
			}
		}
	}
	m.add(c.Schema.check(definition, own)...)
}

// member checks one member of a value by a schema.
func (m *Message) member(s *Schema, definition string, value map[string]any, name string) {
	where := Pointer("", name)
	for _, f := range s.check(definition, value) {
		if f.pointer == where || strings.HasPrefix(f.pointer, where+"/") {
			m.add(f)
		}
	}
}

// properties returns the members that a definition itself declares.
func properties(s *Schema, definition string) map[string]any {
	return object(object(s.definitions[definition])["properties"])
}
