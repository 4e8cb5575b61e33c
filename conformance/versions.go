// The versions of the protocol: their schemas, and connections on which the version is negotiated.

package conformance

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/acpgo/sdk"
)

// V1 returns the schema of the protocol's stable version 1, as this module embeds it. It is parsed once,
// and everybody shares the compiled schema; the same holds for the other versions.
func V1() *Schema { return v1() }

// V1Unstable returns the schema of version 1 with experimental features.
func V1Unstable() *Schema { return v1Unstable() }

// V2 returns the schema of version 2, which is a draft.
func V2() *Schema { return v2() }

// V2Unstable returns the schema of version 2 with experimental features.
func V2Unstable() *Schema { return v2Unstable() }

var (
	v1         = embedded(1, sdk.SchemaV1)
	v1Unstable = embedded(1, sdk.SchemaV1Unstable)
	v2         = embedded(2, sdk.SchemaV2)
	v2Unstable = embedded(2, sdk.SchemaV2Unstable)
)

func embedded(version int, text func() string) func() *Schema {
	return sync.OnceValue(func() *Schema {
		schema, err := NewSchema([]byte(text()))
		if err != nil {
			panic(err) // the module's own bytes, proven by its tests
		}
		schema.version = version
		return schema
	})
}

// Negotiated returns a schema for connections that may be of version 1 or 2. A validator checks the
// initialize request by the version that it asks for, and all messages from its answer on by the version of
// the answer. Members of the request that are for agents of the other version are checked by that one.
func Negotiated(v1, v2 *Schema) *Schema {
	return &Schema{versions: map[int]*Schema{1: v1, 2: v2}}
}

// methodInitialize is the method that negotiates the version, in all of them.
const methodInitialize = "initialize"

// negotiate chooses the schema by the version in an initialize request or its answer. Without a choice of
// versions it does nothing.
func (v *Validator) negotiate(kind Kind, content *node) {
	version, err := strconv.Atoi(string(content.member("protocolVersion").number()))
	if err != nil {
		return
	}
	if kind == Request && v.versions[version] == nil {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(v.versions)), func(known int) bool { return known > version })
		if len(known) == 0 {
			return
		}
		version = known[len(known)-1] // the newest that such a client speaks too
	}
	if schema := v.versions[version]; schema != nil {
		v.schema = schema
	}
}

// initialize checks the parameters of an initialize request: by the version that it asks for, and the
// members that only another version has by that other version.
func (m *message) initialize(definition string, params map[string]any) {
	v := m.validator
	own := maps.Clone(params)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if has(properties(v.schema, definition), name) {
			continue
		}
		for _, other := range v.versions {
			if has(properties(other, definition), name) {
				delete(own, name)
				m.member(other, definition, params, name)
			}
		}
	}
	m.reportAll(v.schema.flaws(definition, own))
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
