package rpc

import "github.com/acpgo/sdk/codec"

// ID is a JSON-RPC request id: a string, a number or null (the schema's RequestId), see [codec.ID].
type ID = codec.ID

// StringID returns a string id.
func StringID(s string) ID { return codec.StringID(s) }

// IntID returns an integer id.
func IntID(n int64) ID { return codec.IntID(n) }
