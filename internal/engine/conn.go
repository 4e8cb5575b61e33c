package engine

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// Conn is one connection to a peer. All methods are safe for concurrent use. Its guarantees are documented in package
// rpc.
type Conn struct {
	opts          Config
	wire          *wire.Conn
	requests      map[string]*Route // by method; "" is the fallback
	notifications map[string]*Route

	base   context.Context // parent of all handlers' contexts
	cancel context.CancelCauseFunc
	done   chan struct{}

	decode *codec.Decoder // owned by the reader
	sniff  *codec.Decoder // owned by the sender of a request

	mu       connLock
	sessions map[string]*worker
	inbound  map[ID]*incoming // the peer's requests in progress, by canonical id
	serving  int

	tasks     tasks
	reserving reserving
	calls     callsInFlight
	load      load
	loops     loops

	requested atomic.Int64 // size of the requests in progress, in bytes
	following atomic.Int32 // turns of this side that continue after their answer
	feeding   atomic.Int32 // turns of this side whose updates are read by a loop
	stuck     bool         // some handlers have not ended in time
	readEnd   time.Time    // when the peer ended the stream
	cause     error        // why the connection is over; nil if this side ended it
	closeErr  error        // result of closing the stream
}

// worker is the task that handles the queued notifications of one session.
type worker struct {
	session
	conn *Conn
}

// ending returns the cause for everything that ends with the connection.
func (c *Conn) ending() error { return cmp.Or(closedErr(c.wire.Err()), error(ErrClosed)) }

// TakesConcurrentTurns reports whether the peer may have more than one turn at a time in a session.
func (c *Conn) TakesConcurrentTurns() bool { return c.opts.ConcurrentTurns }

// Logger returns the logger of the connection's owner.
func (c *Conn) Logger() *slog.Logger { return c.opts.Logger }

// SwitchOff names the experimental features of which the peer's messages may have anything; see codec.Decoder.SetOff.
// It is for before Start.
func (c *Conn) SwitchOff(features uint64) { c.decode.SetOff(features) }

// Go runs f in a goroutine that Close waits for. It returns false if the connection has ended.
func (c *Conn) Go(f func()) bool { return c.tasks.spawn(taskFunc(f)) }

// Load is what a connection holds at one moment; the fields are documented in package rpc.
type Load struct{ Requests, Queued, Loops int }

// Load returns what the connection holds.
func (c *Conn) Load() Load {
	return Load{Requests: int(c.requested.Load()), Queued: int(c.load.bytes.Load()), Loops: int(c.loops.bytes.Load())}
}

// session returns the session with an id.
func (c *Conn) session(id string) *worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessionLocked(id)
}

func (c *Conn) sessionLocked(id string) *worker {
	w := c.sessions[id]
	if w == nil {
		w = &worker{conn: c, session: session{
			id: id, concurrent: c.opts.ConcurrentTurns, queue: queue{load: &c.load, dropped: c.base.Err() != nil},
		}}
		c.sessions[id] = w
	}
	return w
}

// lookUp returns the queue of a session and how much was queued so far; the queue is nil if all of it has been handled.
func (c *Conn) lookUp(id string) (*queue, uint64) {
	c.mu.Lock()
	w := c.sessions[id]
	c.mu.Unlock()
	if w == nil {
		return nil, 0
	}
	position, some := w.unhandled()
	if !some {
		return nil, 0
	}
	return &w.queue, position
}

// release forgets a session in which nothing is in progress.
func (c *Conn) release(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseLocked(s)
}

func (c *Conn) releaseLocked(s *session) {
	if !s.active() && s.retire() {
		delete(c.sessions, s.id)
	}
}

// step makes a step in a session, and carries out its effects.
func (c *Conn) step(s *session, e event) error {
	c.mu.Lock()
	do := s.step(e)
	c.mu.Unlock()
	c.carryOut(do, nil)
	return do.refuse
}

// carryOut carries out the effects of a step. tell tells the peer of a cancellation; nil means the usual way.
func (c *Conn) carryOut(do effects, tell func()) {
	for _, in := range do.end {
		in.cancel(ErrTurnCancelled)
	}
	for _, wait := range do.before {
		<-wait
	}
	for _, turn := range do.recall {
		turn.request.cancel()
	}
	if tell == nil && len(do.told) > 0 {
		spec := &do.told[0].spec
		tell = func() { _ = c.postCancel(spec.CancelMethod, spec.CancelParams) } // it logs the error
	}
	cancelQuestions(do.withdraw, do.posted, tell)
	for _, wait := range do.after {
		<-wait
	}
}

// postCancel sends a cancellation, even if much is unsent.
func (c *Conn) postCancel(method string, params any) error {
	err := c.wire.Post(method, encodable(params))
	if err != nil {
		c.opts.Logger.Debug("cancellation not sent", "error", err)
	}
	return err
}

// cancelQuestions tells the peer that turns are cancelled, answers their questions as cancelled, and closes posted.
// After tell, no question is answered in another way. tell may run middleware, whose panic must not keep others
// waiting.
func cancelQuestions(questions []*incoming, posted []chan struct{}, tell func()) {
	questions = slices.DeleteFunc(questions, func(in *incoming) bool { return !in.question.withdraw() })
	defer func() {
		for _, in := range questions {
			in.question.answerCancelled()
		}
		for _, c := range posted {
			close(c)
		}
	}()
	if tell != nil {
		tell()
	}
}
