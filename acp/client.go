package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/internal/serve"
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

// Connect starts a connection to an agent and initializes it. ctx applies to connecting and initializing
// only; if it has no deadline, ClientOptions.ConnectTimeout applies. If a subprocess does not answer, ending it takes
// up to its StopTime and KillTime longer.
//
// The error matches ErrClosed if the agent ended in the meantime; for a subprocess it is or wraps an *ExitError. It is
// a *CallError if the agent refused, and a *VersionError if the agent speaks another version. If there was no answer in
// time, it is the cause of ctx or matches context.DeadlineExceeded, and includes what a subprocess wrote in the
// meantime.
//
// Each request of the agent is handled in its own goroutine. Updates are handled one at a time for each session, in the
// order in which they arrived. A call returns after the updates that arrived before its answer have been handled. A
// call made in a handler must use the context that the handler was given: with another context it could deadlock,
// waiting for its own handler.
func Connect(ctx context.Context, transport Transport, handlers ClientHandlers, opts *ClientOptions) (*ClientConn,
	error) {
	if transport == nil {
		return nil, errors.New("acp: no transport to connect with")
	}
	c := &clientSide{handlers: handlers, opts: *cmp.Or(opts, &ClientOptions{})}
	var err error
	if c.handshake, err = c.request(); err != nil {
		return nil, err
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	opened := &openedTransport{Transport: transport}
	conn, err := serve.Connect(ctx, opened, c.routes, &c.opts.Conn)
	if err != nil {
		return nil, err
	}
	if err := c.initialize(ctx); err != nil {
		if ctx.Err() != nil {
			err = opened.explain(err)
		}
		if errors.Is(err, ErrMethodNotFound) {
			err = fmt.Errorf("%w; is the other side an agent?", err)
		}
		return nil, errors.Join(err, conn.Close())
	}
	return c.conn, nil
}

// defaultConnectTimeout leaves time for a package runner that downloads the agent first.
const defaultConnectTimeout = 2 * time.Minute

// withTimeout returns a context with a deadline for connecting, if ctx has none.
func (c *clientSide) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := cmp.Or(c.opts.ConnectTimeout, defaultConnectTimeout)
	if _, bounded := ctx.Deadline(); bounded || timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded))
}

// openedTransport is a transport that keeps its stream, so that errors can include what the agent has written.
type openedTransport struct {
	Transport
	stream rpc.Stream
}

// Connect implements Transport.
func (t *openedTransport) Connect(ctx context.Context) (stream rpc.Stream, err error) {
	t.stream, err = t.Transport.Connect(ctx)
	return t.stream, err
}

// explain adds the agent's output to an error, if it is known.
func (t *openedTransport) explain(err error) error {
	if out, ok := rpc.ProcessOutputOf(t.stream); ok && out.String() != "" {
		return fmt.Errorf("%w (%s)", err, out)
	}
	return err
}

// clientSide is a client's side of a connection.
type clientSide struct {
	handlers  ClientHandlers
	opts      ClientOptions
	handshake *InitializeRequest // the initialize request that is sent; decides what is served
	conn      *ClientConn
	unasked   sync.Once // guards the warning that no handler serves permission requests
}

// routes returns the routes that a client serves.
func (c *clientSide) routes(conn *rpc.Conn) ([]engine.Route, error) {
	c.conn = &ClientConn{rpc: conn, enabled: c.opts.Experimental}
	(*engine.Conn)(conn).SwitchOff(uint64(AllFeatures &^ c.opts.Experimental))
	c.handlers.CompleteElicitation = c.conn.completing(c.handlers.CompleteElicitation)
	c.handlers.RequestPermission = verified(&c.opts.Conn, MethodRequestPermission, c.handlers.RequestPermission,
		checkOutcome)
	extensions, err := serve.Extensions(c.handlers.Extensions, c.conn)
	if err != nil {
		return nil, err
	}
	routes := append(c.handlers.routes(c.conn), extensions...)
	for i := range routes {
		r := &routes[i]
		r.Check = asParams(checkParams)
		r.Verify = func(result any) error { return c.opts.Experimental.lacks("ClientOptions", result) }
		r.Gate = func() error { return c.gate(r) }
		c.configureRoute(r)
	}
	return routes, nil
}

// gate refuses messages that arrive before initialize has been answered, and requests that were not advertised. Any
// agent may ask for permission, so a warning is logged if there is no handler for it.
func (c *clientSide) gate(r *engine.Route) error {
	if r.Method == MethodRequestPermission && c.handlers.RequestPermission == nil {
		c.unasked.Do(func() {
			loggerOf(&c.opts.Conn).Warn("the agent asks for permission, but ClientHandlers.RequestPermission is nil")
		})
	}
	switch {
	case c.conn.handshake.Load() == nil:
		return errNotInitialized
	case !r.Notification && !c.handshake.serves(r.Method):
		return engine.MethodNotFound(r.Method)
	}
	return nil
}

// checkOutcome refuses a choice that was not offered (TOL-5).
func checkOutcome(req *RequestPermissionRequest, res *RequestPermissionResponse) *flaw {
	if chosen, ok := res.Outcome.Selected(); ok && !isOffered(req.Options, chosen) {
		return &flaw{"/outcome/optionId", "the option was not offered"}
	}
	return nil
}

// checkElicitation refuses modes that the client did not advertise (ELI-23), and keeps the ids of pages: the reader
// calls it, so that an id is known before its completion is read.
func (c *clientSide) checkElicitation(params any) *flaw {
	req, ok := params.(*CreateElicitationRequest)
	if !ok {
		return nil
	}
	if _, unknown := req.Variant.(*CreateElicitationRequestUnknown); unknown || c.handshake.capabilities().
		lacksForCreateElicitation(req) != "" {
		return &flaw{"/mode", "an elicitation mode that was not advertised"}
	}
	if page, ok := req.Variant.(*CreateElicitationRequestURL); ok {
		c.conn.urls.add(page.ElicitationID)
	}
	return nil
}

// configureRoute sets the turn, cancel and check options of a route.
func (c *clientSide) configureRoute(r *engine.Route) {
	switch r.Method {
	case MethodRequestPermission:
		r.Cancelled = func(any) any { return cancelledPermission() }
	case MethodSessionUpdate:
		r.Feeds = true
		r.Check = c.conn.follow
	case MethodCreateElicitation:
		r.Check = asParams(c.checkElicitation)
	}
}

// cancelledPermission is the answer to a question whose turn was cancelled.
func cancelledPermission() *RequestPermissionResponse {
	return &RequestPermissionResponse{Outcome: PermissionCancelled()}
}
