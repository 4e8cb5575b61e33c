package remote

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// httpStream is the client's stream over HTTP. Messages are sent by POSTs, which lanes make, see client_post.go; they
// come from event streams, see client_events.go, and in the bodies of POSTs. The goroutines of both belong to the
// stream, and Close waits for them.
type httpStream struct {
	d    *dialer
	life context.Context // ends with the stream; its cause says why
	end  context.CancelCauseFunc

	// The reader's.
	decode  *codec.Decoder
	current *eventStream // what messages are taken from
	held    []heldMessage
	heldLen int
	ready   [][]byte // held before, to be read next

	// The writer's.
	encode *codec.Decoder

	naming atomic.Int32 // requests in progress whose answer names a session
	wake   chan struct{}
	tasks  sync.WaitGroup

	mu       sync.Mutex
	arrived  []delivery // what is to be read, in order
	id       string     // of the connection
	first    *post      // initialize
	calls    map[rpc.ID]*call
	asked    map[rpc.ID]string // the sessions of the agent's requests in progress
	streams  map[string]*eventStream
	lanes    map[lane][]*post
	flying   map[*post]context.CancelCauseFunc // POSTs that are made, and what ends each
	prompts  map[string]*post                  // the last prompt of a session, until it was taken
	cancels  map[string]*post                  // the last cancellation, likewise
	queued   int                               // bytes of posts
	change   chan struct{}                     // closed when queued gets less
	closing  bool
	gone     bool // the server does not know the connection
	closeOne sync.Once
}

// delivery is something to be read.
type delivery struct {
	from *eventStream // it has read something
	line []byte       // a message, from the body of a POST
	err  error        // a *rpc.CallLostError or *rpc.TooLongError

	taken chan<- struct{} // if not nil, closed when it is read
}

// heldMessage is a notification for a session that is not known.
type heldMessage struct {
	session string
	line    []byte
}

// call is a request of this side that is not answered.
type call struct {
	post    *post
	timer   *time.Timer // set when it is not known whether the server took it
	naming  bool
	unknown error
}

// lane is a queue of messages that are POSTed one after the other. Answers to the agent have their own lanes, so that a
// request that the server makes wait does not hold them up.
type lane struct {
	session string
	answers bool
}

// post is a message that is to be sent.
type post struct {
	message []byte
	kind    wire.Kind
	method  string
	id      rpc.ID // of a request or a response
	session string // what it is sent for; "" is the connection
	after   []*post
	began   time.Time     // when its POST was made; guarded by the stream's mu
	made    chan struct{} // closed then
	done    chan struct{} // closed when the server has taken it, or nobody tries any more
}

// eventStream is a GET that is answered with events, for the connection or for one session. Its goroutine opens it, and
// reopens it when it was lost. The goroutine leaves the data that it reads in r for the reader of the messages, which
// takes them from there, and then lets it go on.
type eventStream struct {
	s       *httpStream
	session string
	life    context.Context // ends with the stream
	cancel  context.CancelCauseFunc

	r      *eventReader  // of who has the turn: the goroutine, or the reader of the messages
	count  int           // messages; likewise
	resume chan struct{} // it is the goroutine's turn
	last   atomic.Int64  // when the last message came, in nanoseconds since 1970

	after  chan struct{} // closed when what comes may be read: behind the answer to initialize
	opened chan struct{} // closed when it was open once, or never will be
	kicked chan struct{} // it is to be opened again at once

	// Guarded by s.mu.
	wasOpen bool
	err     error                   // why it will not be opened any more
	failure error                   // why opening it failed last
	endGet  context.CancelCauseFunc // ends the GET in progress
	again   chan struct{}           // set while somebody waits until it is open again; closed then
}

var _ rpc.FastStream = (*httpStream)(nil)

// spawn runs f in a goroutine of the stream's, unless that ends; mu is held.
func (s *httpStream) spawn(f func()) bool {
	if s.life.Err() != nil {
		return false
	}
	s.tasks.Go(f)
	return true
}

// fail ends the stream: data that has arrived is still read, then err.
func (s *httpStream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(err)
}

// finish is fail; mu is held.
func (s *httpStream) finish(err error) {
	s.end(err)
	for _, c := range s.calls {
		if c.timer != nil {
			c.timer.Stop()
		}
	}
}

// arrive appends to the data to be read; mu is held.
func (s *httpStream) arrive(a delivery) {
	s.arrived = append(s.arrived, a)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lost is the message that the reader gets for a call that gets no answer.
func lost(id rpc.ID, err error) delivery {
	return delivery{err: &rpc.CallLostError{ID: id, Err: err}}
}

// forget takes a call out of those in progress, or returns nil; mu is held.
func (s *httpStream) forget(id rpc.ID) *call {
	c := s.calls[id]
	if c == nil {
		return nil
	}
	delete(s.calls, id)
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.naming {
		s.naming.Add(-1)
	}
	return c
}

// drop ends a call that gets no answer, unless it was answered; mu is held.
func (s *httpStream) drop(p *post, err error) {
	if c := s.calls[p.id]; c != nil && c.post == p {
		s.forget(p.id)
		s.arrive(lost(p.id, err))
	}
}

// awaitQueue waits until ready, which is called with mu held.
func (s *httpStream) awaitQueue(ctx context.Context, ready func() bool) error {
	for {
		s.mu.Lock()
		if s.life.Err() != nil {
			s.mu.Unlock()
			return context.Cause(s.life)
		}
		if ready() {
			s.mu.Unlock()
			return nil
		}
		if s.change == nil {
			s.change = make(chan struct{})
		}
		change := s.change
		s.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
