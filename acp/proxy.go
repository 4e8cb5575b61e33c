package acp

import (
	"context"

	"github.com/acpgo/sdk/acp/internal/serve"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// StartProxy starts one end of a connection between a proxy and its conductor. The handlers serve the messages that the
// chain adds to the protocol. The messages of the protocol itself, which a proxy exchanges with its predecessor, go
// unchanged to the fallbacks of handlers.Extensions, and are sent with rpc.Call and rpc.Notify; package acp/proxy does
// that for proxies. ctx bounds opening the transport. To end the connection, call Close, or call Wait until the other
// end does. Nil opts mean the defaults.
//
// Experimental: any minor release may change or remove it.
func StartProxy(ctx context.Context, transport Transport, handlers ProxyHandlers, opts *ConnOptions) (*ProxyConn,
	error) {
	c := &ProxyConn{}
	_, err := serve.Connect(ctx, transport, func(conn *rpc.Conn) ([]engine.Route, error) {
		c.rpc = conn
		extensions, err := serve.Extensions(handlers.Extensions, c)
		return append(handlers.routes(c), extensions...), err
	}, opts)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// RPC returns the raw connection, for all messages other than a proxy's own: see rpc.Call and rpc.Notify.
func (c *ProxyConn) RPC() *rpc.Conn { return c.rpc }

// Close ends the connection and waits for the handlers; see rpc.Conn.Close.
func (c *ProxyConn) Close() error { return c.rpc.Close() }

// Wait waits until the connection is over and returns the reason; see rpc.Conn.Wait.
func (c *ProxyConn) Wait() error { return c.rpc.Wait() }

// Done returns a channel that is closed when the connection is over.
func (c *ProxyConn) Done() <-chan struct{} { return c.rpc.Done() }
