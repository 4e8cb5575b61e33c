// This file owns connecting to an agent: starting the connection, the handshake, and what a client serves.

package acp

import (
	"context"
	"errors"
	"fmt"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// A VersionError says that the agent answered initialize with a protocol version that this package
// does not speak. The connection was closed.
type VersionError struct {
	// Got is the agent's version.
	Got ProtocolVersion
}

// Error implements the error interface.
func (e *VersionError) Error() string {
	return fmt.Sprintf("acp: the agent speaks protocol version %d, not %d", e.Got, Version)
}

// Connect starts a connection to an agent and initializes it. ctx bounds both, and nothing afterwards;
// ending a subprocess that does not answer takes up to its StopTime and KillTime more.
// The error matches ErrClosed when the agent ended meanwhile, and is then or wraps an *ExitError if it
// was a subprocess; it is an *Error that the agent answered, or a *VersionError.
//
// Handlers of requests are called by one goroutine each; that of updates is called one at a time for
// each session, in the order in which they came, and before the answer to a call returns that
// came after them. A call made from it must use the context that it is given, or it could
// wait for itself.
func Connect(ctx context.Context, transport Transport, handlers ClientHandlers, opts *ClientOptions) (*ClientConn, error) {
	c := &clientSide{handlers: handlers}
	if opts != nil {
		c.opts = *opts
	}
	var err error
	if c.handshake, err = c.request(); err != nil {
		return nil, err
	}
	conn, err := rpc.ConnectRoutes(ctx, transport, c.routes, &c.opts.Conn)
	if err != nil {
		return nil, err
	}
	if err := c.initialize(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c.conn, nil
}

// clientSide is a client that is connected.
type clientSide struct {
	handlers  ClientHandlers
	opts      ClientOptions
	handshake *InitializeRequest // the initialize request that is sent; decides what is served
	conn      *ClientConn
}

// routes says what a client serves.
func (c *clientSide) routes(conn *rpc.Conn) ([]engine.Route, error) {
	c.conn = &ClientConn{rpc: conn}
	if ask := c.handlers.RequestPermission; ask != nil {
		c.handlers.RequestPermission = func(
			ctx context.Context, session *ClientSession, req *RequestPermissionRequest,
		) (*RequestPermissionResponse, error) {
			res, err := ask(ctx, session, req)
			if err == nil && res != nil {
				err = checkOutcome(req, res)
			}
			return res, err
		}
	}
	extensions, err := c.handlers.Extensions.Routes(c.conn)
	if err != nil {
		return nil, err
	}
	routes := append(c.handlers.routes(c.conn), extensions...)
	for i := range routes {
		r := &routes[i]
		r.Check = checkParams
		if !r.Notification && !c.handshake.serves(r.Method) {
			r.Gate = func() error { return engine.MethodNotFound(r.Method) }
		}
		c.configureRoute(r)
	}
	return routes, nil
}

// checkOutcome refuses a choice that was not offered (TOL-5).
func checkOutcome(req *RequestPermissionRequest, res *RequestPermissionResponse) error {
	chosen, ok := res.Outcome.Selected()
	if !ok {
		return nil
	}
	for _, option := range req.Options {
		if option.OptionID == chosen {
			return nil
		}
	}
	return rpc.Errorf(rpc.ErrInternal, "the client chose an option that was not offered")
}

// checkElicitation refuses modes that the client did not advertise (ELI-23).
func (c *clientSide) checkElicitation(params any) error {
	req, ok := params.(*CreateElicitationRequest)
	if !ok {
		return nil
	}
	if _, unknown := req.Variant.(*CreateElicitationRequestUnknown); unknown || c.handshake.capabilities().lacksForCreateElicitation(req) != "" {
		return invalid("/mode", "an elicitation mode that was not advertised")
	}
	return nil
}
