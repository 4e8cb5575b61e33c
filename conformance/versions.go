package conformance

import (
	"sync"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// Schema is one published version of the protocol's JSON schema. Each definition is compiled when a message first needs
// it. A Schema is safe for concurrent use.
type Schema = schema.Schema

// NewSchema parses a schema. It returns an error if the schema does not mark the definitions of its methods with
// x-method and x-side, as all those published since August 2025 do.
func NewSchema(schemaJSON []byte) (*Schema, error) { return schema.Parse(schemaJSON, 0) }

// V1 returns the embedded schema of the protocol's stable version 1. Like those of the other versions, it is parsed
// once and shared by all callers.
func V1() *Schema { return v1() }

// V1Unstable returns the schema of version 1 with experimental features.
func V1Unstable() *Schema { return v1Unstable() }

// V2 returns the schema of version 2, which is in Preview.
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
		s, err := schema.Parse([]byte(text()), version)
		if err != nil {
			panic(err) // cannot happen: the tests parse the embedded schemas
		}
		return s
	})
}

// Negotiated returns a schema for connections that negotiate version 1 or 2. A validator checks the initialize request
// by the version that it requests, and the answer and all later messages by the version in the answer. Members of the
// request that are for agents of the other version are checked by the schema of that version.
func Negotiated(v1, v2 *Schema) *Schema {
	return schema.Negotiated(v1, v2)
}
