// Connections on which the version of the protocol is negotiated.

package conformance

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// negotiated returns the schema of such connections; see conformance.Negotiated.
func negotiated(v1, v2 *Schema) *Schema {
	return &Schema{versions: map[int]*Schema{1: v1, 2: v2}}
}

// methodInitialize is the method that negotiates the version, in all of them.
const methodInitialize = "initialize"

// negotiate chooses the schema by the version in an initialize request or its answer. Without a choice of
// versions it does nothing.
func (c *connection) negotiate(kind Kind, content *node) {
	version, err := strconv.Atoi(string(content.member("protocolVersion").number()))
	if err != nil {
		return
	}
	if kind == Request && c.versions[version] == nil {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(c.versions)), func(known int) bool { return known > version })
		if len(known) == 0 {
			return
		}
		version = known[len(known)-1] // the newest that such a client speaks too
	}
	if schema := c.versions[version]; schema != nil {
		c.schema = schema
	}
}

// initialize checks the parameters of an initialize request: by the version that it asks for, and the
// members that only another version has by that other version.
func (m *message) initialize(definition string, params map[string]any) {
	c := m.connection
	own := maps.Clone(params)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if has(properties(c.schema, definition), name) {
			continue
		}
		for _, other := range c.versions {
			if has(properties(other, definition), name) {
				delete(own, name)
				m.member(other, definition, params, name)
			}
		}
	}
	m.reportAll(c.schema.flaws(definition, own))
}

// member checks one member of a value by a schema.
func (m *message) member(s *Schema, definition string, value map[string]any, name string) {
	where := pointer("", name)
	for _, f := range s.flaws(definition, value) {
		if f.pointer == where || strings.HasPrefix(f.pointer, where+"/") {
			m.report(f)
		}
	}
}

// properties are the members that a definition declares itself.
func properties(s *Schema, definition string) map[string]any {
	return object(object(s.definitions[definition])["properties"])
}
