// This file owns the request id as a value in parameters ($/cancel_request, elicitation scopes).

package rpc

import "github.com/acpgo/sdk/internal/wire"

// ID is a JSON-RPC request id: a string, an integer or null (the schema's RequestId). The zero value
// is null. IDs are comparable: two are equal when type and value are.
type ID = wire.ID

// StringID returns a string id.
func StringID(s string) ID { return wire.StringID(s) }

// IntID returns an integer id.
func IntID(n int64) ID { return wire.IntID(n) }
