//go:build !linux

package main

import "github.com/acpgo/sdk/acp/rpc"

// starter starts programs. When this one is killed, they lose their input.
type starter struct{}

// transport starts a command.
func (*starter) transport(command *rpc.CommandTransport) rpc.Transport { return command }
