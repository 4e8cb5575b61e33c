package natsacp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
)

// seat is an agent on a node, with its link to a client.
//
// Three goroutines work for it: one reads from the agent (read), one writes to it (feed), and one writes the log
// (keep). The one that handles the node's subscription (accept) never waits.
type seat struct {
	node      *Node
	id        string // of the link
	principal string
	agent     rpc.FastStream
	ctx       context.Context // ends with the agent
	cancel    context.CancelFunc
	log       *slog.Logger
	begun     time.Time
	trace     *tracer
	record    record

	mu      sync.Mutex
	changed *sync.Cond // something that a goroutine waits for
	state   state
	why     string // why it ends, or empty
	held    []*nats.Msg
	result  []byte // of the request that opened the session

	// The client.
	gen      uint64
	gateway  string    // empty if it has gone
	detached time.Time // when it went
	received uint64    // frames of data
	lines    lines
	fed      uint64 // its messages that the agent has

	queue   [][]byte // messages for the agent
	queued  int      // bytes in it
	feeding bool     // the last one is still on its way
	waiting *nats.Msg
	urgent  []urgent

	exchange
	outbox
}

// state is how far a seat is on its way to its end.
type state int

const (
	serving  state = iota
	draining       // it leaves when it has nothing to do
	leaving        // the agent ends, and the session continues elsewhere; frames are held
	ending         // the agent ends or has ended
	fenced         // another node may have the session: nothing is stored any more
)

// urgent is a message that need not wait in the queue.
type urgent struct {
	line  []byte
	after uint64 // so many messages of the client
	gen   uint64 // 0 if it is not from a client
}

func newSeat(n *Node, o opening) *seat {
	s := &seat{
		node: n, id: o.Link, principal: o.Principal, gateway: o.Gateway, gen: 1, begun: time.Now(),
		log:      n.log.With("link", o.Link),
		record:   record{node: n, principal: o.Principal, link: o.Link},
		exchange: exchange{calls: map[int64]call{}, asked: map[rpc.ID][]byte{}},
	}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// start starts the agent.
func (s *seat) start(ctx context.Context) error {
	agent := translate.Transport(s.node.agent(s.principal), translate.ClientSide, 1, &translate.Options{
		Chosen: func(version int) { s.node.protocol.Store(int64(version)) },
	})
	stream, err := agent.Connect(ctx)
	if err != nil {
		return err
	}
	s.trace = newTracer(s.node.opts.Hooks)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.agent = stream.(rpc.FastStream) // that of translate is one
	if s.state >= leaving {
		s.cancel()
	}
	return nil
}

// beatTime is how often a node tells how far a log has grown.
const beatTime = time.Second

// beat tells how far the log has grown, so that the gateway notices what it has missed, and says what it has taken.
func (s *seat) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gateway != "" && s.joining == nil && (s.beaten != s.seq || len(s.calls) > 0 || s.size > 0) {
		s.beaten = s.seq
		s.tell(frame{kind: frameBeat, gen: s.gen, seq: s.seq})
	}
}

// drain makes the agent leave when it has nothing to do.
func (s *seat) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = max(s.state, draining)
	s.leaveIfIdle()
}

// idle reports whether the agent has nothing to do; mu is held.
func (s *seat) idle() bool { return len(s.calls) == 0 && len(s.queue) == 0 && !s.feeding }

// leaveIfIdle ends the agent if there is no turn, and either no client or a better place; mu is held.
func (s *seat) leaveIfIdle() {
	if (s.state == draining || s.gateway == "") && s.idle() && len(s.lines.partial) == 0 {
		s.leave()
	}
}

// leave ends the agent so that the session can continue elsewhere; mu is held.
func (s *seat) leave() {
	if s.state >= leaving {
		return
	}
	s.state, s.why = leaving, "the session has moved"
	s.changed.Broadcast()
	if s.agent == nil {
		return // start and run see it
	}
	time.AfterFunc(s.node.opts.CloseTime, s.cancel)
	s.node.work.Go(func() { // the agent may not read what is before the end
		if half, ok := s.agent.(rpc.HalfCloser); !ok || half.CloseWrite() != nil {
			s.cancel()
		}
	})
}

// stop ends the agent.
func (s *seat) stop(to state, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(to, why)
}

// end ends the agent; mu is held.
func (s *seat) end(to state, why string) {
	was := s.state
	if s.state = max(was, to); s.state > was && to == fenced {
		s.log.Warn("natsacp: an agent is ended", "reason", why)
	}
	s.changed.Broadcast()
	if was >= ending {
		return
	}
	s.why = why
	for _, m := range s.held {
		respond(m, []byte{replyNone})
	}
	s.held = nil
	if s.cancel != nil {
		s.cancel()
	}
}

// run passes messages until the agent ends.
func (s *seat) run() {
	closed := make(chan error, 1)
	context.AfterFunc(s.ctx, func() {
		s.mu.Lock()
		s.changed.Broadcast()
		s.mu.Unlock()
		closed <- s.agent.Close()
	})
	var fed, kept sync.WaitGroup
	fed.Go(s.feed)
	kept.Go(s.keep)
	err := s.read()
	s.cancel()
	if e := <-closed; e != nil && !errors.Is(e, rpc.ErrClosed) {
		err = e // for a subprocess, how it ended
	}
	fed.Wait()
	s.mu.Lock()
	s.complete = true
	s.changed.Broadcast()
	s.mu.Unlock()
	kept.Wait()
	s.trace.end()
	s.finish(err)
	s.node.remove(s)
}

// finish records how the agent has ended, and tells the gateway.
func (s *seat) finish(err error) {
	s.mu.Lock()
	kind := byte(frameEnd)
	switch {
	case s.state == leaving:
		kind = frameMoved
	case s.state < leaving:
		s.state, s.why = ending, "the agent has ended"
		if exit, ok := errors.AsType[*rpc.ExitError](err); ok {
			s.why += ": " + exit.Error()
		} else if err != nil && !errors.Is(err, io.EOF) {
			s.log.Warn("natsacp: an agent has failed", "error", err)
		}
	}
	why, gen, stored := s.why, s.gen, s.state < fenced
	s.mu.Unlock()
	if stored {
		if err := s.record.release(); err != nil {
			s.log.Warn("natsacp: a session was not released", "error", err)
		}
		if err := s.append(frame{kind: kind, gen: gen, data: []byte(why)}); err != nil {
			s.log.Debug("natsacp: cannot tell the end of an agent", "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.held {
		respond(m, []byte{replyMoved})
	}
	s.held, s.state = nil, max(s.state, ending)
}
