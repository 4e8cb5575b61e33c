// Package serve starts connections that serve the protocol's own methods. Package rpc cannot export these functions to
// other modules, because routes are internal.
package serve

import (
	"context"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// Connect is rpc.Connect with routes instead of extensions.
func Connect(
	ctx context.Context, transport rpc.Transport, routes func(*rpc.Conn) ([]engine.Route, error), opts *rpc.Options,
) (*rpc.Conn, error) {
	c, err := engine.RPC.Connect(ctx, transport,
		func(c *engine.Conn) ([]engine.Route, error) { return routes((*rpc.Conn)(c)) }, opts)
	return (*rpc.Conn)(c), err
}

// Extensions returns the routes of extension methods for one connection; a nil ext has none. The names of the methods
// must begin with an underscore.
func Extensions[C any](ext *rpc.Extensions[C], conn *C) ([]engine.Route, error) {
	return engine.RPC.Extensions(ext, conn)
}
