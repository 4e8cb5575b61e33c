// Package negotiate lets one program speak version 1 and version 2 of the protocol.
//
// The version of a connection is chosen by initialize, its first request: the client asks for the newest version that
// it supports, and the agent answers with the newest version that it supports and that is not newer than that; both
// then use this version. A program therefore has two thin layers over shared code, one on package acp and one on
// package acpv2, and this package decides which of them gets a connection.
//
// Like version 2 itself, it is not covered by any compatibility promise.
package negotiate

import (
	"context"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
)

// methodInitialize is the method that chooses the version, in all of them.
const methodInitialize = "initialize"

// initializeParams has the parameters of initialize that are the same in all versions.
type initializeParams struct {
	ProtocolVersion uint16 `json:"protocolVersion"`
}

// DecodeJSON implements codec.Value.
func (p *initializeParams) DecodeJSON(d *codec.Decoder) {
	found := false
	for o := d.Object(); o.Next(); {
		if string(o.Name()) == "protocolVersion" {
			found = true
			p.ProtocolVersion = uint16(d.Uint(16))
		} else {
			d.Skip()
		}
	}
	if !found {
		d.Missing("protocolVersion")
	}
}

// only is a Transport that returns an existing stream.
type only struct{ rpc.Stream }

func (t only) Connect(context.Context) (rpc.Stream, error) { return t.Stream, nil }
