package engine_test

import (
	"context"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

type (
	Conn                      = engine.Conn
	Route                     = engine.Route
	RequestMethod[P, R any]   = engine.RequestMethod[*P, *R]
	NotificationMethod[P any] = engine.NotificationMethod[P]
	Turn[U, R any]            = engine.Turn[U, R]
	TurnSpec                  = engine.TurnSpec
	Transport                 = rpc.Transport
	Stream                    = rpc.Stream
	Options                   = rpc.Options
	Hooks                     = rpc.Hooks
	CallInfo                  = rpc.CallInfo
	Error                     = rpc.Error
	CallError                 = rpc.CallError
)

// Extensions are those of package rpc, whose handlers here need no connection.
type Extensions = rpc.Extensions[rpc.Conn]

func Handle[P, R any](ext *Extensions, method string, fn func(context.Context, *P) (*R, error)) {
	rpc.Handle(ext, method, func(ctx context.Context, _ *rpc.Conn, params *P) (*R, error) { return fn(ctx, params) })
}

func extensions(ext *Extensions) []Route {
	routes, err := engine.RPC.Extensions(ext, (*rpc.Conn)(nil))
	if err != nil {
		panic(err)
	}
	return routes
}

// Connect connects over transport and serves routes.
func Connect(ctx context.Context, transport Transport, routes func(*Conn) []Route, opts *Options) (*Conn, error) {
	return engine.RPC.Connect(ctx, transport, func(c *Conn) ([]Route, error) {
		if routes == nil {
			return nil, nil
		}
		return routes(c), nil
	}, opts)
}

// wait waits for the end of a connection as its user does.
func wait(c *Conn) error { return (*rpc.Conn)(c).Wait() }
