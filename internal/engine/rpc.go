package engine

import "context"

// RPC holds functions of package rpc that only this module may call, because their signatures have types of this
// package. Package rpc sets them. Package serve calls them, and gives them types that this package cannot name.
var RPC struct {
	// Connect opens transport, an rpc.Transport, and serves routes; opts is an *rpc.Options.
	Connect func(ctx context.Context, transport any, routes func(*Conn) ([]Route, error), opts any) (*Conn, error)
	// Extensions returns the routes of ext, an *rpc.Extensions[C], for conn, a *C.
	Extensions func(ext, conn any) ([]Route, error)
}
