package remote

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// maxHeld is how much data is held back for sessions that have no name yet.
const maxHeld = 4 << 20

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

func (d *dialer) connectHTTP() *httpStream {
	s := &httpStream{
		d:       d,
		decode:  codec.NewDecoder(nil),
		encode:  codec.NewDecoder(nil),
		wake:    make(chan struct{}, 1),
		calls:   map[rpc.ID]*call{},
		asked:   map[rpc.ID]string{},
		streams: map[string]*eventStream{},
		lanes:   map[lane][]*post{},
		flying:  map[*post]context.CancelCauseFunc{},
		prompts: map[string]*post{},
		cancels: map[string]*post{},
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

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

// next returns the oldest delivery.
func (s *httpStream) next() (a delivery, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrived) == 0 {
		return delivery{}, false
	}
	if a, s.arrived = s.arrived[0], s.arrived[1:]; a.taken != nil {
		close(a.taken)
	}
	if len(s.arrived) == 0 {
		s.arrived = nil // lets go of what it was cut from
	}
	return a, true
}

// Read implements rpc.Stream.
func (s *httpStream) Read() ([]byte, error) { return s.ReadLine(nil) }

// ReadLine implements rpc.FastStream.
func (s *httpStream) ReadLine(beforeWait func()) ([]byte, error) {
	for {
		if err := context.Cause(s.life); err == net.ErrClosed {
			return nil, err
		}
		if len(s.ready) > 0 {
			line := s.ready[0]
			s.ready = s.ready[1:]
			return line, nil
		}
		if from := s.current; from != nil {
			line, ok, err := from.take()
			if err != nil {
				return nil, err
			}
			if ok {
				if s.incoming(from, line) {
					return line, nil
				}
				continue
			}
			s.current = nil
			from.resume <- struct{}{}
		}
		a, ok := s.next()
		switch {
		case a.from != nil:
			s.current = a.from
		case a.err != nil:
			return nil, a.err
		case ok:
			if s.incoming(nil, a.line) {
				return a.line, nil
			}
		case s.life.Err() != nil:
			return nil, context.Cause(s.life)
		default:
			if beforeWait != nil {
				beforeWait()
			}
			select {
			case <-s.wake:
			case <-s.life.Done():
			}
		}
	}
}

const (
	methodInitialize = "initialize"
	methodNew        = "session/new"
	methodFork       = "session/fork"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodClose      = "session/close"
	methodDelete     = "session/delete"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodUpdate     = "session/update"
	cancelRequest    = "$/cancel_request"
)

// incoming looks at a message that came on an event stream, or in a body if that is nil, and reports whether it is to
// be read now.
func (s *httpStream) incoming(from *eventStream, line []byte) bool {
	m := wire.Peek(s.decode, line)
	if m.Kind == wire.KindNotification {
		if s.naming.Load() == 0 && string(m.Method) == methodUpdate {
			return true // nearly all are that
		}
		m = wire.Parse(s.decode, line) // an id may stand behind the parameters
	}
	switch m.Kind {
	case wire.KindNotification:
		return !s.hold(from, m, line)
	case wire.KindRequest:
		session := string(wire.TextMember(s.decode, m.Params, "sessionId"))
		if session == "" && from != nil {
			session = from.session
		}
		if session != "" {
			s.mu.Lock()
			s.asked[m.ID] = session
			s.mu.Unlock()
		}
	case wire.KindResponse:
		s.answered(m)
	}
	return true
}

// hold holds a notification back for a session that is not known while an answer may name it: older servers send
// the first updates of a session before the answer that creates it.
func (s *httpStream) hold(from *eventStream, m wire.Message, line []byte) bool {
	if s.naming.Load() == 0 || from == nil || from.session != "" {
		return false
	}
	session := string(wire.TextMember(s.decode, m.Params, "sessionId"))
	if session == "" {
		return false
	}
	s.mu.Lock()
	known := s.streams[session] != nil
	s.mu.Unlock()
	if known {
		return false
	}
	s.held = append(s.held, heldMessage{session, bytes.Clone(line)})
	if s.heldLen += len(line); s.heldLen > maxHeld {
		s.release("")
	}
	return true
}

// release lets the data that is held for a session be read next, or all that is held.
func (s *httpStream) release(session string) {
	kept := s.held[:0]
	s.heldLen = 0
	for _, h := range s.held {
		if session == "" || h.session == session {
			s.ready = append(s.ready, h.line)
		} else {
			kept = append(kept, h)
			s.heldLen += len(h.line)
		}
	}
	clear(s.held[len(kept):])
	s.held = kept
}

// answered takes note of an answer: its call is over, and it may name a session, whose stream is opened.
func (s *httpStream) answered(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.forget(m.ID)
	if c == nil {
		return
	}
	if m.Failure == nil {
		switch session := c.post.session; c.post.method {
		case methodClose, methodDelete:
			if st := s.streams[session]; st != nil && session != "" {
				delete(s.streams, session)
				st.cancel(errSessionOver)
			}
		case methodLoad, methodResume:
			s.stream(session)
		default:
			if named := string(wire.TextMember(s.decode, m.Result, "sessionId")); named != "" && s.id != "" {
				s.stream(named)
				if len(s.held) > 0 {
					s.release(named)
				}
			}
		}
	}
	if s.naming.Load() == 0 && len(s.held) > 0 {
		s.release("")
	}
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

// Close ends the connection: written messages are sent, for a short time, then the end is sent to the server, and the
// streams end.
func (s *httpStream) Close() error {
	s.closeOne.Do(func() {
		s.mu.Lock()
		s.closing = true
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(s.life, s.d.opts.CloseTimeout)
		drain, stop := context.WithTimeout(ctx, s.d.opts.CloseTimeout/2)
		// Messages that cannot be sent in time are lost.
		_ = s.awaitQueue(drain, func() bool { return s.queued == 0 })
		stop()
		cancel()
		told := s.sayEnd()
		s.fail(net.ErrClosed)
		s.tasks.Wait()
		if !told {
			s.sayEnd() // the server has named the connection meanwhile
		}
		s.d.release()
	})
	return nil
}

// sayEnd tells the server that the connection has ended, for whatever reason. It returns false if the server has not
// named the connection.
func (s *httpStream) sayEnd() bool {
	s.mu.Lock()
	id, gone := s.id, s.gone
	s.mu.Unlock()
	if id == "" || gone {
		return gone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), s.d.opts.CloseTimeout)
	defer cancel()
	if err := s.delete(ctx, id); err != nil {
		s.d.log.Debug("acp: ending a connection over HTTP", "error", err)
	}
	return true
}

// delete ends the connection at the server.
func (s *httpStream) delete(ctx context.Context, id string) error {
	resp, err := s.d.do(ctx, http.MethodDelete, nil, func(h http.Header) { h.Set(HeaderConnection, id) })
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return statusError(resp, 0)
	}
	return errors.Join(discard(resp.Body), resp.Body.Close())
}
