// Package wire converts bytes to JSON-RPC calls and back: lines, envelopes, ids, dispatch. It is built on
// sourcegraph/jsonrpc2, which only this package imports, and works around the parts of that library that do not suit
// ACP (see Conn). It does not know the methods of ACP.
package wire
