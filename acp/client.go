// This file owns connecting to an agent: starting the connection, the handshake, and what a client serves.

package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

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
// ending a subprocess that does not answer takes up to its StopTime and KillTime more. If ctx has no deadline,
// ClientOptions.ConnectTimeout bounds them.
// The error of an agent that does not answer in time matches context.DeadlineExceeded, and says what the
// agent wrote in the meantime if it is a subprocess. The error matches ErrClosed when the agent ended meanwhile, and is then or wraps an *ExitError if it
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
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	opened := &openedTransport{Transport: transport}
	conn, err := rpc.ConnectRoutes(ctx, opened, c.routes, &c.opts.Conn)
	if err != nil {
		return nil, err
	}
	if err := c.initialize(ctx); err != nil {
		if ctx.Err() != nil {
			err = opened.explain(err)
		}
		return nil, errors.Join(err, conn.Close())
	}
	return c.conn, nil
}

// defaultConnectTimeout leaves time for a package runner that downloads the agent first.
const defaultConnectTimeout = 2 * time.Minute

// withTimeout bounds connecting if ctx does not.
func (c *clientSide) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := cmp.Or(c.opts.ConnectTimeout, defaultConnectTimeout)
	if _, bounded := ctx.Deadline(); bounded || timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded))
}

// openedTransport is a transport that keeps its stream, to ask it about the agent.
type openedTransport struct {
	Transport
	stream rpc.Stream
}

// Connect implements Transport.
func (t *openedTransport) Connect(ctx context.Context) (stream rpc.Stream, err error) {
	t.stream, err = t.Transport.Connect(ctx)
	return t.stream, err
}

// explain adds to an error what the agent said, if that is known.
func (t *openedTransport) explain(err error) error {
	if out, ok := rpc.ProcessOutputOf(t.stream); ok && out.String() != "" {
		return fmt.Errorf("%w (%s)", err, out)
	}
	return err
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
