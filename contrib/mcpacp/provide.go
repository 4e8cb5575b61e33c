package mcpacp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// A Provider offers MCP servers of this program to agents: a client's own tools. The zero Provider is ready to use. One
// Provider may serve any number of connections and servers, and its methods are safe for concurrent use.
//
// The agent calls the servers over the ACP connection itself, by the experimental method mcp/message, if both sides
// can. Otherwise it calls them over HTTP on 127.0.0.1, which most agents can, but only those on the same machine.
type Provider struct {
	// Logger receives panics of the servers' handlers, ten for each Offer, and failures of the HTTP listener. Nil means
	// slog.Default.
	Logger *slog.Logger

	enabled atomic.Bool // Enable was called

	mu    sync.Mutex
	conns map[*rpc.Conn]*offering // those that are not over
}

// offering is what is offered on a connection.
type offering struct {
	offers map[string]*Offer // by server id
	bridge *bridge           // nil until it is needed
}

// Enable lets agents call the servers over the connection itself, if they can: it sets handlers.MessageMCP and enables
// acp.FeatureMCPOverACP. Call it before acp.Connect, for all connections of the Provider or for none.
func (p *Provider) Enable(handlers *acp.ClientHandlers, options *acp.ClientOptions) {
	handlers.MessageMCP = p.messageMCP
	options.Experimental |= acp.FeatureMCPOverACP
	p.enabled.Store(true)
}

// An Offer is a server that an agent may use.
type Offer struct {
	// Declaration describes the server to the agent: an element of MCPServers when a session is created, loaded, resumed
	// or forked on this connection. Several sessions may have the same one. It holds a token, which must be kept secret.
	Declaration acp.MCPServer
	// Bridged reports that the agent calls the server over HTTP, and not over the connection.
	Bridged bool

	id     string
	server *mcp.Server
	panics panics
	forget func()          // takes it out of the offering
	life   context.Context // of its requests
	end    context.CancelFunc

	mu     sync.Mutex
	closed bool
	active map[any]struct{} // the requests in progress, by their ids
	idle   chan struct{}    // closed when it is closed and no request is in progress
}

// Provide offers a server to the agent of a connection. The name is what the agent calls the server; it may be part of
// the names of its tools. The server is ready when Provide returns, and until the Offer or the connection is closed.
// Requests from the server to the agent, such as those for sampling, fail.
//
// Nothing tells the server for which session a tool is called. If that matters, provide a server for each session.
//
// The error matches acp.ErrUnsupported if the agent connects to MCP servers neither way, and acp.ErrClosed if the
// connection is over.
func (p *Provider) Provide(conn *acp.ClientConn, name string, server *mcp.Server) (*Offer, error) {
	if server == nil || name == "" {
		return nil, errors.New("mcpacp: a server and a name for it are needed")
	}
	can := conn.Capabilities().MCPCapabilities
	overACP := can.ACP && p.enabled.Load()
	if !overACP && !can.HTTP {
		return nil, fmt.Errorf("mcpacp: %w: the agent connects to MCP servers neither over HTTP nor over this connection",
			acp.ErrUnsupported)
	}
	guard(server)
	o := &Offer{
		Bridged: !overACP, id: rand.Text(), server: server, panics: panics{logger: p.logger()},
		active: map[any]struct{}{}, idle: make(chan struct{}),
	}
	o.life, o.end = context.WithCancel(context.Background())

	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.offering(conn.RPC())
	if err != nil {
		return nil, err
	}
	if overACP {
		o.Declaration = acp.NewMCPServerACP(acp.MCPServerACP{Name: name, ServerID: acp.MCPServerACPID(o.id)})
	} else {
		if l.bridge == nil {
			find := func(id string) *Offer { return p.offer(conn.RPC(), id) }
			if l.bridge, err = listen(find, p.logger()); err != nil {
				return nil, fmt.Errorf("mcpacp: %w", err)
			}
		}
		o.Declaration = l.bridge.declare(name, o.id)
	}
	l.offers[o.id] = o
	o.forget = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(l.offers, o.id)
	}
	return o, nil
}

// For returns a function that provides a server on each connection that it is called with, for Options.Servers of
// package reconnect: sessions then have the server after a reconnect, too. If an agent connects to MCP servers neither
// way, sessions go without the server, with a warning in the Logger.
func (p *Provider) For(name string, server *mcp.Server) func(context.Context, *acp.ClientConn) ([]acp.MCPServer,
	error) {
	return func(_ context.Context, conn *acp.ClientConn) ([]acp.MCPServer, error) {
		offer, err := p.Provide(conn, name, server)
		if errors.Is(err, acp.ErrUnsupported) {
			p.logger().Warn("mcpacp: the agent cannot use a server of this client", "server", name, "error", err)
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []acp.MCPServer{offer.Declaration}, nil
	}
}

// Close withdraws the server: later requests are refused, and those in progress are cancelled. It returns when their
// handlers have, or with the cause of ctx. A handler must not call it without a deadline.
func (o *Offer) Close(ctx context.Context) error {
	o.forget()
	o.withdraw()
	select {
	case <-o.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o *Offer) withdraw() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	o.end()
	if len(o.active) == 0 {
		close(o.idle)
	}
}

// The errors of mcp/message itself, beside -32602 and -32800. Those of MCP are part of results.
const (
	outerLimit    acp.Code = -33000
	outerNoServer acp.Code = -33001
	outerFailed   acp.Code = -33002
)

// maxActive is how many requests to one server may be in progress.
const maxActive = 64

// activeCall is a request in progress.
type activeCall struct {
	offer *Offer
	ctx   context.Context // ends with the request, and when the Offer is closed
}

// activeCallKey is the key of the *activeCall in the context of a handler.
type activeCallKey struct{}

// within returns a context in which handlers find the call.
func (c *activeCall) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, activeCallKey{}, c)
}

// begin admits a request, whose id must be unique among those in progress. done must be called when its handler has
// returned.
func (o *Offer) begin(ctx context.Context, id any) (c *activeCall, done func(), refused *acp.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, nil, noOffer(o.id)
	}
	if _, twice := o.active[id]; twice {
		return nil, nil, acp.InvalidParamsf("the request id %q is that of a request in progress", id)
	}
	if len(o.active) >= maxActive {
		return nil, nil, outerLimit.WithMessagef("%d requests to this MCP server are in progress", maxActive)
	}
	o.active[id] = struct{}{}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(o.life, cancel)
	return &activeCall{o, ctx}, func() {
		o.mu.Lock()
		delete(o.active, id)
		if o.closed && len(o.active) == 0 {
			close(o.idle)
		}
		o.mu.Unlock()
		stop()
		cancel()
	}, nil
}

func noOffer(id string) *acp.Error {
	return outerNoServer.WithMessagef("no MCP server %q is offered on this connection", id)
}

func (p *Provider) logger() *slog.Logger {
	if p.Logger == nil {
		return slog.Default()
	}
	return p.Logger
}

// offer finds the offer with an id on a connection, or returns nil.
func (p *Provider) offer(conn *rpc.Conn, id string) *Offer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.conns[conn]; l != nil {
		return l.offers[id]
	}
	return nil
}

// offering returns what is offered on a connection. The caller holds p.mu. It is forgotten when the connection is over.
func (p *Provider) offering(conn *rpc.Conn) (*offering, error) {
	if l := p.conns[conn]; l != nil {
		return l, nil
	}
	select {
	case <-conn.Done():
		return nil, fmt.Errorf("mcpacp: %w", acp.ErrClosed)
	default:
	}
	l := &offering{offers: map[string]*Offer{}}
	if p.conns == nil {
		p.conns = map[*rpc.Conn]*offering{}
	}
	p.conns[conn] = l
	go func() {
		<-conn.Done()
		p.mu.Lock()
		delete(p.conns, conn)
		offers := slices.Collect(maps.Values(l.offers))
		p.mu.Unlock()
		for _, o := range offers {
			o.withdraw()
		}
		if l.bridge != nil {
			if err := l.bridge.server.Close(); err != nil {
				p.logger().Warn("mcpacp: closing the HTTP listener", "error", err)
			}
		}
	}()
	return l, nil
}

// guarded holds the servers that have the middleware of guard.
var guarded sync.Map // of weak.Pointer[mcp.Server] to true

// guard has the handlers of a server survive a panic, and end with their request also where the SDK does not see its
// end, as long as the request is one to an Offer. It is done once for each server, because middleware cannot be
// removed.
func guard(server *mcp.Server) {
	key := weak.Make(server)
	if _, done := guarded.LoadOrStore(key, true); done {
		return
	}
	runtime.AddCleanup(server, func(key weak.Pointer[mcp.Server]) { guarded.Delete(key) }, key)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
			c, ours := ctx.Value(activeCallKey{}).(*activeCall)
			if !ours {
				return next(ctx, method, req)
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(c.ctx, cancel)()
			failed := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the handler of " + method + " panicked"}
			defer c.offer.panics.recovered(method, &res, &err, failed)
			return next(ctx, method, req)
		}
	})
}

// panics logs panics in handlers of one server's messages. It logs maxPanics of them, each with its stack: whoever
// sends the messages can cause any number.
type panics struct {
	logger *slog.Logger
	count  atomic.Int64
}

const maxPanics = 10

// recovered is deferred by functions that handle a message of MCP: it logs a panic, and returns failed in its place.
func (p *panics) recovered(method string, res *mcp.Result, err *error, failed error) {
	v := recover()
	if v == nil {
		return
	}
	*res, *err = nil, failed
	n := p.count.Add(1)
	if n <= maxPanics {
		p.logger.Error("mcpacp: a handler panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
	}
	if n == maxPanics {
		p.logger.Error("mcpacp: more panics of this server's handlers are not logged")
	}
}
