// Package wire turns bytes into JSON-RPC calls and back: line, envelope, ids, dispatch. It runs on
// sourcegraph/jsonrpc2, of which it is the only importer, and keeps from that library what ACP cannot
// live with (see Conn). It knows no method of ACP.
package wire
