// This file owns how handlers become routes.

package acp

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp/rpc"
)

// request makes the route of a request handler that is given its peer.
func request[Peer, P, R any](
	m rpc.RequestMethod[P, R], peer *Peer, fn func(context.Context, *Peer, *P) (*R, error),
) rpc.Route {
	if fn == nil {
		return m.Handle(nil)
	}
	return m.Handle(func(ctx context.Context, params *P) (*R, error) { return fn(ctx, peer, params) })
}

// notification makes the route of a notification handler that is given its peer.
func notification[Peer, P any](
	m rpc.NotificationMethod[P], peer *Peer, fn func(context.Context, *Peer, *P) error,
) rpc.Route {
	if fn == nil {
		return m.Handle(nil)
	}
	return m.Handle(func(ctx context.Context, params *P) error { return fn(ctx, peer, params) })
}

// unsupported says that a call was not sent because its capability was not advertised.
func unsupported(method, capability string) error {
	return fmt.Errorf("%s: %w: capability %s", method, ErrUnsupported, capability)
}
