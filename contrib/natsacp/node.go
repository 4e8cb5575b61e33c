package natsacp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp/rpc"
)

// An Agent returns the transport to a new agent for a session of the given principal, for example
// rpc.Command(exec.Command("agent")). See [InProcess] for one without a process.
type Agent func(principal string) rpc.Transport

// InProcess returns an Agent that calls serve for each session, in a separate goroutine. The context of serve ends when
// the session's connection is closed.
func InProcess(serve func(ctx context.Context, t rpc.Transport) error) Agent {
	return func(string) rpc.Transport { return inProcess(serve) }
}

type inProcess func(ctx context.Context, t rpc.Transport) error

func (serve inProcess) Connect(ctx context.Context) (rpc.Stream, error) {
	near, far := rpc.Pipe()
	stream, err := near.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var served error
	done := make(chan struct{})
	go func() {
		defer close(done)
		served = serve(ctx, far)
	}()
	return rpc.Wrap(stream, rpc.Wrapper{Close: func() error {
		err := stream.Close()
		cancel()
		<-done
		if errors.Is(served, context.Canceled) || errors.Is(served, rpc.ErrClosed) {
			return err
		}
		return errors.Join(err, served)
	}}), nil
}

// NodeOptions configures a node. A nil *NodeOptions, and the zero value of each field, mean the defaults.
type NodeOptions struct {
	// Name is the name of the node in the fleet: letters, digits, - and _. A node replaces an earlier one with the same
	// name, which ends its agents and takes no more sessions. The default is random.
	Name string
	// MaxSessions is how many agents may run at once. The default is 1,000.
	MaxSessions int
	// MaxSessionsPerPrincipal is how many of them may run for one principal. It does not apply to the principal "". The
	// default is half of MaxSessions.
	MaxSessionsPerPrincipal int
	// Window is how many bytes an agent may be ahead of its client. Then it is not read until the client has taken some.
	// It is also how much is kept for an agent that does not read. The default is 1 MiB.
	Window int
	// Grace is how long a turn may continue after its client has gone. The default is 10 min.
	Grace time.Duration
	// CloseTime is how long an agent may take to end when its session is moved or its client has gone, before its
	// connection is closed. The default is 5 s.
	CloseTime time.Duration
	// Hooks are notified of the messages that are passed on, for telemetry: Start is called with nil for each agent, Serve
	// for the requests of clients, Call for what agents send, and End. What they change has no effect.
	Hooks rpc.Hooks
	// Logger gets diagnostics. The default is slog.Default.
	Logger *slog.Logger
}

// A Node runs the agents of a fleet's sessions, each with a connection of its own. All methods are safe for concurrent
// use.
type Node struct {
	fleet *Fleet
	agent Agent
	opts  NodeOptions
	log   *slog.Logger
	since time.Time

	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
	drained chan struct{}
	empty   func()        // closes drained
	named   chan struct{} // a node with the same name has started

	mu       sync.Mutex
	seats    map[string]*seat
	revision uint64    // of its entry in the bucket
	until    time.Time // the end of its lease
	draining bool
	closed   bool
	protocol atomic.Int64 // see Member
	subs     []*nats.Subscription
}

// StartNode starts a node.
func (f *Fleet) StartNode(ctx context.Context, agent Agent, opts *NodeOptions) (*Node, error) {
	n := &Node{
		fleet: f, agent: agent, since: time.Now().UTC(), drained: make(chan struct{}), named: make(chan struct{}, 1),
		seats: map[string]*seat{},
	}
	n.empty = sync.OnceFunc(func() { close(n.drained) })
	if opts != nil {
		n.opts = *opts
	}
	var err error
	if n.opts.Name, err = memberName(n.opts.Name); err != nil {
		return nil, err
	}
	n.opts.MaxSessions = cmp.Or(n.opts.MaxSessions, 1000)
	n.opts.MaxSessionsPerPrincipal = cmp.Or(n.opts.MaxSessionsPerPrincipal, max(1, n.opts.MaxSessions/2))
	n.opts.Window = cmp.Or(n.opts.Window, 1<<20)
	n.opts.Grace = cmp.Or(n.opts.Grace, 10*time.Minute)
	n.opts.CloseTime = cmp.Or(n.opts.CloseTime, 5*time.Second)
	n.log = cmp.Or(n.opts.Logger, slog.Default()).With("node", n.opts.Name)
	if err := n.register(ctx, true); err != nil {
		return nil, explain(ctx, err)
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for _, s := range []struct {
		subject string
		handle  nats.MsgHandler
	}{
		{f.subject("up", n.opts.Name, "*"), n.receive}, // before open, whose answer invites frames
		{f.subject("node", n.opts.Name), n.command},
		{f.subject("open", n.opts.Name), n.place},
	} {
		sub, err := f.nc.Subscribe(s.subject, s.handle)
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.subs = append(n.subs, sub)
	}
	bound, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = f.nc.Publish(f.subject("up", n.opts.Name, unique()), (&frame{kind: frameNamed}).encode())
	if err = errors.Join(err, f.nc.FlushWithContext(bound)); err != nil {
		return nil, errors.Join(explain(ctx, err), n.Close())
	}
	n.work.Go(n.keep)
	return n, nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.opts.Name }

// admits reports whether the node takes sessions; mu is held.
func (n *Node) admits() bool {
	return !n.draining && !n.closed && len(n.seats) < n.opts.MaxSessions && time.Now().Before(n.until)
}

// register takes the lease, at first from an earlier node with the same name, or renews it.
func (n *Node) register(ctx context.Context, first bool) error {
	begun := time.Now()
	n.mu.Lock()
	text, err := json.Marshal(Member{
		Name: n.opts.Name, Sessions: len(n.seats), Max: n.opts.MaxSessions, Draining: n.draining, Since: n.since,
		Protocol: int(n.protocol.Load()),
	})
	n.mu.Unlock()
	if err != nil {
		return err
	}
	key := nodePrefix + n.opts.Name
	var old jetstream.KeyValueEntry
	if !first {
		var m Member
		if old, err = n.fleet.members.Get(ctx, key); err == nil && json.Unmarshal(old.Value(), &m) == nil &&
			!m.Since.Equal(n.since) {
			return errors.Join(errReplaced, n.retire())
		}
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			n.fence("the lease was lost")
		} else if err != nil {
			return err
		}
	}
	var revision uint64
	if old == nil {
		revision, err = n.fleet.members.Put(ctx, key, text)
	} else {
		revision, err = n.fleet.members.Update(ctx, key, text, old.Revision())
	}
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.revision, n.until = revision, begun.Add(n.fleet.lease)
	return nil
}

// errReplaced is why a node takes no more sessions when another one has its name.
var errReplaced = errors.New("another node has started with this name, and this one takes no more sessions")

// retire leaves everything to another node with the same name.
func (n *Node) retire() error {
	n.mu.Lock()
	n.until = time.Time{}
	n.mu.Unlock()
	err := n.unsubscribe()
	n.fence(errReplaced.Error())
	return err
}

func (n *Node) unsubscribe() (err error) {
	n.mu.Lock()
	subs := n.subs
	n.subs = nil
	n.mu.Unlock()
	for _, sub := range subs {
		err = errors.Join(err, sub.Unsubscribe())
	}
	return err
}

// leased reports whether the node may still believe that its sessions are its own.
func (n *Node) leased() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.until)
}

// keep keeps the lease, and ends what must not continue.
func (n *Node) keep() {
	renew := time.NewTicker(n.fleet.lease / 4)
	defer renew.Stop()
	beat := time.NewTicker(beatTime)
	defer beat.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-beat.C:
			for _, s := range n.all() {
				s.beat()
			}
			if !n.leased() {
				n.fence("the lease has ended")
			}
			continue
		case <-n.named:
		case <-renew.C:
		}
		if n.renew() {
			return
		}
	}
}

// renew renews the lease, and looks after the seats. It reports whether another node has replaced this one.
func (n *Node) renew() (replaced bool) {
	ctx, cancel := context.WithTimeout(n.ctx, n.fleet.lease/4)
	defer cancel()
	if err := n.register(ctx, false); err != nil {
		if n.ctx.Err() == nil {
			n.log.Warn("natsacp: the lease was not renewed", "error", err)
		}
		return errors.Is(err, errReplaced)
	}
	gateways, err := n.fleet.alive(ctx, gatewayPrefix)
	if err != nil {
		return false // the next time
	}
	for _, s := range n.all() {
		s.check(gateways)
	}
	return false
}

func (n *Node) all() []*seat {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.seats))
}

// fence ends all agents, whose sessions others may have.
func (n *Node) fence(why string) {
	for _, s := range n.all() {
		s.stop(fenced, why)
	}
}

// place starts an agent.
func (n *Node) place(m *nats.Msg) {
	var o opening
	if json.Unmarshal(m.Data, &o) != nil || checkName(o.Link) != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.admits() || n.seats[o.Link] != nil:
		respond(m, []byte("{}")) // the gateway asks another one
	case n.isFull(o.Principal):
		respond(m, []byte(`{"full":true}`))
	default:
		s := newSeat(n, o)
		n.seats[o.Link] = s
		n.work.Go(func() { n.serve(s, m) })
	}
}

// serve starts an agent, and passes messages until it ends.
func (n *Node) serve(s *seat, m *nats.Msg) {
	answer := opened{Node: n.opts.Name}
	err := s.start(n.ctx)
	if err != nil {
		n.log.Error("natsacp: an agent does not start", "error", err)
		answer = opened{Error: "the agent does not start"}
		n.remove(s)
	}
	text, _ := json.Marshal(answer) // strings cannot fail
	respond(m, text)
	if err == nil {
		s.run()
	}
}

// isFull reports whether a principal has as many agents as it may have; mu is held.
func (n *Node) isFull(principal string) bool {
	count := 0
	for _, s := range n.seats {
		if s.principal == principal {
			count++
		}
	}
	return principal != "" && count >= n.opts.MaxSessionsPerPrincipal
}

// respond answers a message. If it fails, the sender asks again.
func respond(m *nats.Msg, data []byte) {
	if m.Reply != "" {
		_ = m.Respond(data)
	}
}

// remove forgets a seat.
func (n *Node) remove(s *seat) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.seats, s.id)
	n.checkDrained()
}

// checkDrained ends Drain if nothing is left; mu is held.
func (n *Node) checkDrained() {
	if n.draining && len(n.seats) == 0 {
		n.empty()
	}
}

// receive passes a frame of a gateway to its seat.
func (n *Node) receive(m *nats.Msg) {
	fr, ok := decodeFrame(m.Data)
	if !ok {
		return
	}
	if fr.kind == frameNamed {
		signal(n.named)
		return
	}
	n.mu.Lock()
	s := n.seats[m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]]
	n.mu.Unlock()
	if s == nil {
		respond(m, []byte{replyNone})
		return
	}
	s.accept(fr, m)
}

// command obeys an operator.
func (n *Node) command(m *nats.Msg) {
	if string(m.Data) == commandDrain {
		n.startDraining()
		respond(m, nil)
	}
}

func (n *Node) startDraining() {
	n.mu.Lock()
	n.draining = true
	n.checkDrained()
	n.mu.Unlock()
	for _, s := range n.all() {
		s.drain()
	}
}

// Drained is closed when the node was drained and has no sessions left. Then call Close.
func (n *Node) Drained() <-chan struct{} { return n.drained }

// Drain gives up all sessions: no new ones are taken, turns end, and then their sessions continue elsewhere. It returns
// when none are left, or ctx ends. Close is still needed.
func (n *Node) Drain(ctx context.Context) error {
	n.startDraining()
	select {
	case <-n.drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the node and all its agents. Running turns are interrupted.
func (n *Node) Close() error {
	n.mu.Lock()
	closed := n.closed
	n.closed = true
	n.mu.Unlock()
	if closed {
		return nil
	}
	for _, s := range n.all() {
		s.stop(ending, "the node was stopped")
	}
	if n.cancel != nil {
		n.cancel()
	}
	n.work.Wait()
	err := n.unsubscribe()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	gone := n.fleet.members.Delete(ctx, nodePrefix+n.opts.Name, jetstream.LastRevision(n.revision))
	if errors.Is(gone, jetstream.ErrKeyRevisionMismatch) { // the lease has ended, or belongs to another node
		gone = nil
	}
	return errors.Join(err, gone)
}

// Ready reports whether the node takes sessions.
func (n *Node) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.admits()
}
