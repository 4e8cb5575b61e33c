// The schema of the stable version, which nearly everybody wants.

package conformance

import (
	"sync"

	"github.com/acpgo/sdk"
)

// V1 returns the schema of the protocol's stable version 1, as this module embeds it. It is read
// once, so that all who use it share what was compiled.
func V1() *Schema { return v1() }

var v1 = sync.OnceValue(func() *Schema {
	schema, err := NewSchema([]byte(sdk.SchemaV1()))
	if err != nil {
		panic(err) // the module's own bytes, proven by its tests
	}
	return schema
})
