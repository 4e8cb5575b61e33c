package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// maxRequests is how many requests of a client may be in progress: more than an agent accepts, see rpc.Options.
const maxRequests = 16 << 10

// A Server is an [http.Handler] that passes each connection that a client opens to a function. It works with any mux,
// middleware and http.Server, with HTTP/1.1, HTTP/2, and HTTP/2 without TLS if that http.Server allows it. All methods
// are safe for concurrent use.
type Server struct {
	serve func(ctx context.Context, t rpc.Transport, peer *Peer) error
	opts  HandlerOptions
	work  sync.WaitGroup // connections

	mu          sync.Mutex
	connections map[string]*connection
	count       int            // connections, and those about to be made
	principals  map[string]int // how many of them each principal has
	opened      map[string]uint64
	refused     map[int]uint64
	closed      bool

	streams  atomic.Int64
	buffered atomic.Int64
	bytesIn  atomic.Uint64
	bytesOut atomic.Uint64
}

// ServeAgent returns a Server that serves the same agent on each connection: serve is acp.ServeAgent, or that of
// another version of the protocol. The handlers do not learn who the client is: if users must not share sessions, use
// [Handler] and Peer.Principal.
//
//	http.Handle("/acp", remote.ServeAgent(acp.ServeAgent, handlers, nil, nil))
func ServeAgent[H, O any](serve func(context.Context, rpc.Transport, H, *O) error, handlers H, opts *O,
	server *HandlerOptions) *Server {
	return Handler(func(ctx context.Context, t rpc.Transport, _ *Peer) error {
		return serve(ctx, t, handlers, opts)
	}, server)
}

// Handler returns a Server. It calls serve for each connection, in a separate goroutine. t is the connection, and must
// be connected once; ctx ends when serve must return at once, which is CloseTime after the connection has ended. When
// serve returns, the connection ends, and requests that the client still waits for are answered with an error. An error
// or a panic of serve is logged, but not sent.
func Handler(serve func(ctx context.Context, t rpc.Transport, peer *Peer) error, o *HandlerOptions) *Server {
	s := &Server{
		serve:       serve,
		connections: map[string]*connection{},
		principals:  map[string]int{},
		opened:      map[string]uint64{},
		refused:     map[int]uint64{},
		opts:        *cmp.Or(o, &HandlerOptions{}),
	}
	s.opts.setDefaults()
	return s
}

// A connection is a client's connection with its agent.
type connection struct {
	server *Server
	peer   *Peer
	log    *slog.Logger
	began  time.Time
	link   link

	ctx    context.Context // the context of serve
	cancel context.CancelCauseFunc
	ending *time.Timer // ends ctx some time after the connection has ended; see endsSoon
	once   sync.Once   // guards endsSoon
}

// A link is the transport-specific part of a connection.
type link interface {
	rpc.FastStream
	// endInput ends the agent's input, for the given reason. Messages that the agent still sends go to the client.
	endInput(why error)
	// finish ends the connection when serve has returned, or has closed its stream: requests in progress are answered
	// with an error. Calls after the first do nothing.
	finish(err error)
	// cut ends the connection at once.
	cut(why error)
}

// add creates a connection, if the limits allow one more. It must be registered before it is run, and removed
// afterwards.
func (s *Server) add(r *http.Request, principal, transport string) (*connection, error) {
	header := r.Header.Clone()
	for _, secret := range []string{"Authorization", "Proxy-Authorization", "Cookie", headerProtocol} {
		header.Del(secret)
	}
	c := &connection{
		server: s,
		peer: &Peer{
			ConnectionID: rand.Text(),
			Principal:    principal,
			RemoteAddr:   r.RemoteAddr,
			Transport:    transport,
			Header:       header,
		},
		began: time.Now(),
	}
	c.log = s.opts.Logger.With("connection", c.peer.ConnectionID, "transport", transport)
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(r.Context()))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, refuse(http.StatusServiceUnavailable, "the server is shutting down")
	case s.count >= s.opts.MaxConnections:
		return nil, refuse(http.StatusServiceUnavailable, "too many connections")
	case principal != "" && s.principals[principal] >= s.opts.MaxConnectionsPerPrincipal:
		return nil, refuse(http.StatusTooManyRequests, "too many connections")
	}
	s.count++
	s.principals[principal]++
	s.work.Add(1)
	return c, nil
}

// register makes a connection with its link known to the server.
func (c *connection) register(l link) {
	s := c.server
	c.link = l
	s.mu.Lock()
	s.connections[c.peer.ConnectionID] = c
	s.opened[c.peer.Transport]++
	closed := s.closed
	s.mu.Unlock()
	if closed { // in the meantime; Shutdown has not seen it
		l.endInput(errShutdown)
	}
}

func (c *connection) remove() {
	s := c.server
	c.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c.peer.ConnectionID)
	s.count--
	if s.principals[c.peer.Principal]--; s.principals[c.peer.Principal] == 0 {
		delete(s.principals, c.peer.Principal)
	}
	s.work.Done()
}

func (s *Server) lookup(id, principal string) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connections[id]
	if c == nil || c.peer.Principal != principal {
		return nil
	}
	return c
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// run serves the connection, and returns when it is over.
func (c *connection) run() {
	c.log.Info("acp: connection opened", "remote", c.peer.RemoteAddr, "principal", c.peer.Principal)
	err := c.serve()
	c.link.finish(err)
	c.endsSoon()
	c.ending.Stop()
	level := slog.LevelInfo
	if err != nil && c.ctx.Err() == nil {
		level = slog.LevelWarn
	}
	c.log.Log(c.ctx, level, "acp: connection ended", "after", time.Since(c.began).Round(time.Millisecond), "error", err)
}

// serve calls the user's function.
func (c *connection) serve() (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error(fmt.Sprintf("acp: panic: %v\n%s", v, debug.Stack()))
			err = fmt.Errorf("acp: panic: %v", v)
		}
	}()
	return c.server.serve(c.ctx, &transport{link: c.link}, c.peer)
}

// endsSoon ends the context of serve some time after the connection has ended.
func (c *connection) endsSoon() {
	c.once.Do(func() {
		c.ending = time.AfterFunc(c.server.opts.CloseTime, func() { c.cancel(rpc.ErrClosed) })
	})
}

// transport is the connection as a Transport for the agent.
type transport struct {
	link link
	used atomic.Bool
}

func (t *transport) Connect(context.Context) (rpc.Stream, error) {
	if t.used.Swap(true) {
		return nil, errors.New("acp: transport already connected")
	}
	return t.link, nil
}

// Shutdown ends all connections and accepts no more. Agents see the end of their input and may finish requests in
// progress; then the streams end, WebSockets with 1001. Shutdown waits until every call of serve has returned. If ctx
// ends, the contexts of serve end and the connections are cut; Shutdown then waits for another CloseTime, and returns
// the cause of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	open := slices.Collect(maps.Values(s.connections))
	s.mu.Unlock()
	for _, c := range open {
		c.link.endInput(errShutdown)
		c.endsSoon()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range open {
		c.cancel(context.Cause(ctx))
		c.link.cut(errShutdown)
	}
	select {
	case <-done:
	case <-time.After(s.opts.CloseTime):
	}
	return context.Cause(ctx)
}

// Stats holds numbers about a Server, for metrics.
type Stats struct {
	// Connections is the current number of connections, by Peer.Transport.
	Connections map[string]int
	// Opened is the number of connections that were opened, by Peer.Transport.
	Opened map[string]uint64
	// Streams is how many streams currently have a reader.
	Streams int
	// Refused is how many requests were refused, by status.
	Refused map[int]uint64
	// BytesIn and BytesOut count messages, without framing.
	BytesIn, BytesOut uint64
	// Buffered is how many bytes are currently kept for clients.
	Buffered int
}

// Stats returns the current numbers.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{
		Connections: map[string]int{},
		Opened:      maps.Clone(s.opened),
		Streams:     int(s.streams.Load()),
		Refused:     maps.Clone(s.refused),
		BytesIn:     s.bytesIn.Load(),
		BytesOut:    s.bytesOut.Load(),
		Buffered:    int(s.buffered.Load()),
	}
	for _, c := range s.connections {
		stats.Connections[c.peer.Transport]++
	}
	return stats
}
