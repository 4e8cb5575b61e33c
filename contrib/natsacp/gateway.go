package natsacp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
)

// GatewayOptions configures a gateway. A nil *GatewayOptions, and the zero value of each field, mean the defaults.
type GatewayOptions struct {
	// Name is the name of the gateway in the fleet: letters, digits, - and _. No other may have it. The default is random.
	Name string
	// Server configures the server. Without Authenticate all clients are one principal. With a History, cursors of
	// sessions are also known to other gateways.
	Server *remote.HandlerOptions
	// OpenTimeout is how long a session may wait for a node. The default is 30 s.
	OpenTimeout time.Duration
	// MaxQueued is how many bytes of a session's messages wait until its agent takes them. Then the client is not read.
	// The default is 16 MiB.
	MaxQueued int
	// Hooks are notified of the messages that are passed on, for telemetry: Start is called with nil for each client,
	// Serve for the requests of clients, Call for what agents send, and End. What they change has no effect.
	Hooks rpc.Hooks
	// Logger gets diagnostics. The default is slog.Default.
	Logger *slog.Logger
}

// A Gateway is an http.Handler that connects clients with the agents of a fleet. It is stateless.
type Gateway struct {
	*remote.Server
	fleet *Fleet
	opts  GatewayOptions
	log   *slog.Logger
	since time.Time

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	clients map[*remote.Peer]*client
	live    bool // it has its lease
	closed  bool

	asking sync.Mutex // held while the members are read
	nodes  []Member   // as they were at the time
	asked  time.Time
}

// StartGateway starts a gateway.
func (f *Fleet) StartGateway(ctx context.Context, opts *GatewayOptions) (*Gateway, error) {
	g := &Gateway{fleet: f, since: time.Now().UTC(), clients: map[*remote.Peer]*client{}}
	if opts != nil {
		g.opts = *opts
	}
	var err error
	if g.opts.Name, err = memberName(g.opts.Name); err != nil {
		return nil, err
	}
	g.opts.OpenTimeout = cmp.Or(g.opts.OpenTimeout, 30*time.Second)
	g.opts.MaxQueued = cmp.Or(g.opts.MaxQueued, 16<<20)
	g.log = cmp.Or(g.opts.Logger, slog.Default()).With("gateway", g.opts.Name)
	if err := g.register(ctx); err != nil {
		return nil, explain(ctx, err)
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	server := remote.HandlerOptions{}
	if g.opts.Server != nil {
		server = *g.opts.Server
	}
	if recent := server.History; recent != nil {
		server.History = func(peer *remote.Peer, session string) remote.History {
			return &history{g, peer, session, recent(peer, session)}
		}
	}
	g.opts.Server = &server
	g.Server = remote.Handler(g.serve, g.opts.Server)
	g.work.Go(g.keep)
	return g, nil
}

// Name returns the gateway's name.
func (g *Gateway) Name() string { return g.opts.Name }

// Ready reports whether the gateway reaches the fleet.
func (g *Gateway) Ready() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.live && !g.closed
}

func (g *Gateway) register(ctx context.Context) error {
	g.mu.Lock()
	member := Member{Name: g.opts.Name, Sessions: len(g.clients), Since: g.since}
	g.mu.Unlock()
	text, err := json.Marshal(member)
	if err == nil {
		_, err = g.fleet.members.Put(ctx, gatewayPrefix+g.opts.Name, text)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live = err == nil
	return err
}

// keep keeps the lease, and looks for nodes that have died.
func (g *Gateway) keep() {
	ticker := time.NewTicker(g.fleet.lease / 4)
	defer ticker.Stop()
	for reached := time.Now(); ; {
		select {
		case <-g.ctx.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(g.ctx, g.fleet.lease/4)
		nodes, err := g.alive(ctx)
		switch {
		case err == nil:
			reached = time.Now()
			for _, l := range g.links() {
				l.check(nodes)
			}
		case time.Since(reached) > 4*g.fleet.lease:
			for _, l := range g.links() {
				l.finish(errors.New("the gateway does not reach the fleet"))
			}
		}
		// It may fail although the nodes are known: if there is no room in JetStream.
		if err = errors.Join(err, g.register(ctx)); err != nil && g.ctx.Err() == nil {
			g.log.Warn("natsacp: the lease was not renewed", "error", err)
		}
		cancel()
	}
}

// links returns the links of all clients.
func (g *Gateway) links() (all []*link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		c.mu.Lock()
		all = slices.AppendSeq(all, maps.Values(c.links))
		c.mu.Unlock()
	}
	return all
}

func (g *Gateway) client(peer *remote.Peer) *client {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clients[peer]
}

// members returns the nodes that are alive. What it knows is not older than age: a gateway asks for each session, and
// for many at once when a node has died.
func (g *Gateway) members(ctx context.Context, age time.Duration) ([]Member, error) {
	g.asking.Lock()
	defer g.asking.Unlock()
	if time.Since(g.asked) < age {
		return g.nodes, nil
	}
	begun := time.Now()
	nodes, err := g.fleet.Nodes(ctx)
	if err == nil {
		g.nodes, g.asked = nodes, begun
	}
	return nodes, err
}

// alive returns the names of the nodes that are alive.
func (g *Gateway) alive(ctx context.Context) (map[string]bool, error) {
	nodes, err := g.members(ctx, g.fleet.lease/4)
	return names(nodes), err
}

// mayRun reports whether an agent may run that has a session.
func (g *Gateway) mayRun(ctx context.Context, s *Session) bool {
	if s == nil || s.Node == "" {
		return false
	}
	nodes, err := g.alive(ctx)
	return err != nil || nodes[s.Node]
}

// choose returns a node that may take a session, or "". It prefers those with the smaller part of their seats taken,
// but not always the same one, because what it knows of them is older. It does not return those in silent.
func (g *Gateway) choose(ctx context.Context, silent map[string]bool, age time.Duration) (name string) {
	nodes, err := g.members(ctx, age)
	if err != nil {
		return ""
	}
	least := 0.0
	for _, n := range nodes {
		if load := (float64(n.Sessions)/float64(max(1, n.Max)) + 0.01) * rand.Float64(); !n.Draining && !silent[n.Name] &&
			(name == "" || load < least) {
			name, least = n.Name, load
		}
	}
	return name
}

// serve serves a client.
func (g *Gateway) serve(ctx context.Context, t rpc.Transport, peer *remote.Peer) error {
	stream, err := translate.Agent(t).Connect(ctx) // the fleet speaks version 1
	if err != nil {
		return err
	}
	c := newClient(g, ctx, stream.(rpc.FastStream), peer) // that of translate is one
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return errors.New("the gateway is closed")
	}
	g.clients[peer] = c
	g.mu.Unlock()
	err = c.read()
	c.end()
	err = errors.Join(err, stream.Close())
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.clients, peer)
	return err
}

// Close ends the gateway. The caller has called Shutdown.
func (g *Gateway) Close() error {
	g.mu.Lock()
	closed := g.closed
	g.closed = true
	g.mu.Unlock()
	if closed {
		return nil
	}
	g.cancel()
	g.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return g.fleet.members.Delete(ctx, gatewayPrefix+g.opts.Name)
}
