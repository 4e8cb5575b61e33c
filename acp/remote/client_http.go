package remote

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// httpStream is the client's stream over HTTP. Messages are sent by POSTs, which the lanes in client_post.go make; they
// arrive on event streams (client_events.go) and in the responses to POSTs. The goroutines of both belong to the
// stream, and Close waits for them.
type httpStream struct {
	d    *dialer
	life context.Context // ends with the stream; its cause is the reason
	end  context.CancelCauseFunc

	// Owned by the reader.
	decode  *codec.Decoder
	current *eventStream // the stream that messages are being taken from
	held    []heldMessage
	heldLen int
	ready   [][]byte // messages that were held, to be read next

	// Owned by the writer.
	encode *codec.Decoder

	naming  atomic.Int32 // requests in progress whose answers name a session
	wake    chan struct{}
	tasks   sync.WaitGroup
	closing atomic.Bool

	mu       sync.Mutex
	arrived  []delivery // data to be read, in order
	id       string     // the connection's id
	first    *post      // the initialize request
	calls    map[rpc.ID]*call
	asked    map[rpc.ID]string // the sessions of the agent's requests in progress
	streams  map[string]*eventStream
	lanes    map[lane][]*post
	flying   map[*post]context.CancelCauseFunc // POSTs in progress, and the functions that cancel them
	prompts  map[string]*post                  // the last prompt of each session, until it is taken
	cancels  map[string]*post                  // the last cancellation, likewise
	queued   int                               // bytes in posts
	change   chan struct{}                     // closed when queued decreases
	gone     bool                              // the server does not know the connection
	closeOne sync.Once
}

// delivery is data to be read.
type delivery struct {
	from *eventStream // a stream that has read something
	line []byte       // a message that is the response to a POST
	err  error        // a *rpc.CallLostError
}

// heldMessage is a notification for an unknown session.
type heldMessage struct {
	session string
	line    []byte
}

// call is a request of this side that has not been answered.
type call struct {
	post    *post
	timer   *time.Timer // set while it is not known whether the server received the request
	naming  bool
	unknown error
}

// lane is a queue of messages that are POSTed one after another. Answers to the agent have lanes of their own, so that
// a request that the server holds back does not delay them.
type lane struct {
	session string
	answers bool
}

// post is a message to be sent.
type post struct {
	message []byte
	kind    wire.Kind
	method  string
	id      rpc.ID // the id of a request or a response
	session string // the session that it is about; "" is the connection
	after   []*post
	began   time.Time     // when the POST was made; guarded by the stream's mu
	made    chan struct{} // closed when the POST is made
	done    chan struct{} // closed when the server has taken the message, or it is no longer retried
}

// eventStream is a GET whose response is a stream of events, for the connection or for one session. Its goroutine opens
// it, and reopens it when it is lost. The goroutine leaves the data that it reads in r, waits until the reader of the
// messages has taken them, and continues.
type eventStream struct {
	s       *httpStream
	session string
	body    bool            // it is the response to a POST, which is read once, and has no cursors
	life    context.Context // ends with the stream
	cancel  context.CancelCauseFunc

	r      *eventReader  // owned alternately by the goroutine and the reader of the messages
	count  int           // number of messages; owned likewise
	resume chan struct{} // signals that it is the goroutine's turn
	last   atomic.Int64  // time of the last message, in nanoseconds since 1970

	after  chan struct{} // closed when messages may be read: after the answer to initialize
	opened chan struct{} // closed when it has been open once, or never will be
	kicked chan struct{} // signals that it is to be reopened at once

	// Guarded by s.mu.
	wasOpen bool                    // changed by the stream's goroutine
	err     error                   // why it will not be reopened
	failure error                   // the last error of opening it
	endGet  context.CancelCauseFunc // cancels the GET in progress
	again   chan struct{}           // not nil while a goroutine waits until it is open again; closed then
}

var _ rpc.FastStream = (*httpStream)(nil)

// spawn runs f in a goroutine of the stream, unless the stream has ended; mu is held.
func (s *httpStream) spawn(f func()) bool {
	if s.life.Err() != nil {
		return false
	}
	s.tasks.Go(f)
	return true
}

// fail ends the stream: data that has arrived is still read, and then err.
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

// forget removes a call from those in progress and returns it, or nil; mu is held.
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

// drop fails a call that gets no answer, unless it was answered; mu is held.
func (s *httpStream) drop(p *post, err error) {
	if unsent, ok := errors.AsType[*unsentError](err); ok {
		err = unsent.err
	}
	if c := s.calls[p.id]; c != nil && c.post == p {
		s.forget(p.id)
		s.arrive(delivery{err: &rpc.CallLostError{ID: p.id, Err: err}})
	}
}

// awaitQueue waits until ready returns true; ready is called with mu held.
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
