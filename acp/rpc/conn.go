// This file owns the connection: its life from Connect to Wait, and its options.

package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// Options tune a connection. Nil, and the zero value of each field, mean the defaults.
type Options struct {
	// Logger gets diagnostics; nil is silence.
	Logger *slog.Logger
	// Hooks observe the connection.
	Hooks Hooks
	// MaxRequests is how many requests of the peer may be in progress; one more is refused with an
	// error. Default 4096.
	MaxRequests int
	// QueueBytes is how much of one session's notifications may wait for their handler before
	// nothing more is read; 0 means 4 MiB. A single message may exceed it. All sessions together
	// may have four times as much, and MaxRequests sessions may have notifications waiting.
	QueueBytes int
	// QueueLimit is how far such a queue grows while its own handler waits for a call, which could
	// otherwise never be answered; then the call fails with ErrOverflow. The same holds for the
	// updates that wait for a loop over Turn.Updates whose body may be waiting for a call: which is
	// any that began while the body runs. Default 64 MiB.
	QueueLimit int
	// DrainTime bounds how long requests may still be answered, and notifications handled, after
	// the peer has ended the stream. Default 2 s.
	DrainTime time.Duration
	// CloseTime bounds how long Close waits for handlers, and separately for unsent messages.
	// Default 5 s.
	CloseTime time.Duration
	// CancelGrace is how long a cancelled turn waits for the agent's answer. Default 30 s.
	CancelGrace time.Duration
	// SkipNoise lets lines pass that do not begin like JSON, as agents print them by mistake: they
	// are reported to Hooks.Invalid and not answered.
	SkipNoise bool
	// ConcurrentTurns lets a session have more than one turn at a time, for agents that queue or
	// steer. Otherwise a second prompt is refused.
	ConcurrentTurns bool
}

// Hooks are called by the connection, by several goroutines at once. They must be quick, and must not
// call the peer. Each may be nil.
type Hooks struct {
	// Repair is told of each leniency with which a message was read: the method, and what was
	// dropped or replaced where.
	Repair func(method string, repair codec.Repair)
	// Invalid is told of what was refused, ignored or skipped: lines that are no message, responses
	// to nothing, notifications that cannot be decoded. line is the line, its beginning, or the
	// parameters of a notification; it is valid during the call, and nil when it is not known.
	Invalid func(line []byte, reason error)
	// Message is told of every message, as it is on the wire. It is valid during the call.
	Message func(sent bool, message []byte)
	// Call brackets every call to the peer and every handler: it may return a context that carries
	// a span, made from the given one, and a function that is told how it ended. Both may be nil.
	Call func(ctx context.Context, call CallInfo) (context.Context, func(error))
	// Panic is told of a handler's panic. The peer only sees an internal error.
	Panic func(method string, value any, stack []byte)
}

// CallInfo says what Hooks.Call is about.
type CallInfo struct {
	Method string
	// Incoming says that this side serves the call.
	Incoming bool
	// Notification says that there will be no answer.
	Notification bool
	// Session is the session id in the parameters, or "". Of outgoing calls it is not known yet.
	Session string
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&opts.MaxRequests, 4096)
	setDefault(&opts.QueueBytes, 4<<20)
	setDefault(&opts.QueueLimit, 64<<20)
	setDefault(&opts.DrainTime, 2*time.Second)
	setDefault(&opts.CloseTime, 5*time.Second)
	setDefault(&opts.CancelGrace, 30*time.Second)
	return opts
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Conn is one connection to a peer. All methods are safe for concurrent use.
//
// It runs one reader, one writer, one worker for each session that has notifications waiting, and one
// goroutine for each request in progress; up to 256 that are done wait for the next. All belong to the
// Conn: Wait returns after they have ended.
//
// Notifications of one session are handled in the order in which they came, one at a time. The answer
// to a call is given to its caller after every notification that the same session received before it
// was handled, and a request is handled after those too. A call made with the context of a
// notification handler is exempt, because it could never return; so are requests, and calls made with
// their contexts, while such a handler of the session waits for a call.
type Conn struct {
	opts          Options
	wire          *wire.Conn
	requests      map[string]*Route // by method; "" is the fallback
	notifications map[string]*Route

	base   context.Context // of all handlers
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup // the goroutines of handlers, workers and turns
	closed chan struct{}  // closed when the stream is
	done   chan struct{}

	decode   *codec.Decoder // the reader's
	gathered gathered       // the reader's
	sniff    *codec.Decoder // of whoever sends a request

	mu       sync.Mutex
	sessions map[string]*session
	inbound  map[ID]*inbound // requests in progress, by the peer's id
	serving  int
	idle     []chan task // of goroutines that wait for a task
	flights  flights
	load     load

	following atomic.Int32 // turns of this side that go on after their answer
	feeding   atomic.Int32 // turns of this side whose updates are read
	stopped   bool         // no more tasks
	cause     error        // why the connection is over, nil when this side ended it
	closeErr  error        // what closing the stream gave
}

// Connect opens transport and starts a connection. routes says what this side serves; it is called
// once, before anything is read, with the connection that its handlers may call back on. ctx bounds
// opening the transport; its values, not its end, reach the handlers.
func Connect(ctx context.Context, transport Transport, routes func(*Conn) []Route, opts *Options) (*Conn, error) {
	stream, err := transport.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("acp: connecting: %w", err)
	}
	c := &Conn{
		opts:          opts.withDefaults(),
		requests:      map[string]*Route{},
		notifications: map[string]*Route{},
		closed:        make(chan struct{}),
		done:          make(chan struct{}),
		decode:        codec.NewDecoder(nil),
		sniff:         codec.NewDecoder(nil),
		sessions:      map[string]*session{},
		inbound:       map[ID]*inbound{},
		flights:       flights{all: map[*flight]struct{}{}},
	}
	c.base, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if routes != nil {
		for _, r := range routes(c) {
			if r.Notification {
				c.notifications[r.Method] = &r
			} else {
				c.requests[r.Method] = &r
			}
		}
	}
	if hook := c.opts.Hooks.Message; hook != nil {
		stream = observed(stream, hook)
	}
	c.wire = wire.NewConn(stream, wire.Config{
		Handler:   &reader{c},
		Logger:    c.opts.Logger,
		Drain:     c.opts.DrainTime,
		SkipNoise: c.opts.SkipNoise,
	})
	c.wire.Run()
	go c.supervise()
	return c, nil
}

// supervise ends the connection: after Close was called, or after the peer has ended the stream.
func (c *Conn) supervise() {
	defer close(c.done)
	select {
	case <-c.wire.Done():
		// What was received is still handled.
		ctx, cancel := context.WithTimeout(c.base, c.opts.DrainTime)
		c.awaitQueues(ctx)
		cancel()
	case <-c.base.Done():
	}
	c.mu.Lock()
	c.stop()
	c.cause = c.wire.Err()
	c.mu.Unlock()
	c.cancel(c.ending())
	c.dropQueues()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.tasks.Wait()
	}()
	timer := time.NewTimer(c.opts.CloseTime)
	defer timer.Stop()
	select {
	case <-ended: // the handlers have answered
	case <-timer.C:
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.CloseTime)
	defer cancel()
	err := c.wire.Close(ctx)
	c.mu.Lock()
	c.closeErr = err
	c.mu.Unlock()
	close(c.closed)
	<-ended
}

// maxIdle is how many goroutines of a connection wait for a task.
const maxIdle = 256

// A task is what a goroutine of the connection's does.
type task interface{ run() }

type taskFunc func()

func (f taskFunc) run() { f() }

// spawn runs t in a goroutine of the connection's, unless that has ended.
func (c *Conn) spawn(t task) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	if n := len(c.idle); n > 0 {
		c.idle[n-1] <- t // the one that has worked last
		c.idle = c.idle[:n-1]
	} else {
		c.tasks.Add(1)
		go c.do(t)
	}
	return true
}

// do runs a task, and then others for as long as they come. A new goroutine grows its stack by copying it
// while it runs a handler; one that stays has the stack. Calls, 16 or more in flight, take 5 to 9 % less time.
func (c *Conn) do(t task) {
	defer c.tasks.Done()
	next := make(chan task, 1)
	for t != nil {
		t.run()
		if !c.rest(next) {
			return
		}
		t = <-next
	}
}

// rest puts a goroutine among the idle ones, unless there are enough.
func (c *Conn) rest(next chan task) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || len(c.idle) == maxIdle {
		return false
	}
	c.idle = append(c.idle, next)
	return true
}

// stop ends the idle goroutines, and lets no others begin; c.mu is held.
func (c *Conn) stop() {
	c.stopped = true
	for _, next := range c.idle {
		close(next)
	}
	c.idle = nil
}

// Close ends the connection: it cancels the handlers, lets them answer, sends what is pending, closes
// the stream and waits until nothing runs any more. Handlers and unsent messages are given
// Options.CloseTime each, and closing the stream takes its own time, a subprocess's for example; the
// error says that handlers still run after that, or why the stream could not be closed properly.
// Further calls wait likewise. A handler must not call Close: it would wait for itself.
func (c *Conn) Close() error {
	c.cancel(ErrClosed)
	<-c.closed
	timer := time.NewTimer(c.opts.CloseTime)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		return errors.New("acp: closing: handlers do not end")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeErr != nil {
		return fmt.Errorf("acp: closing: %w", c.closeErr)
	}
	return nil
}

// Done is closed when the connection is over and nothing of it runs any more.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Wait returns when the connection is over and nothing of it runs any more. It returns nil when it was
// ended by Close, or by the peer in an orderly way; otherwise an error that matches ErrClosed and
// wraps the cause, which is an *ExitError when the peer was a subprocess that failed.
func (c *Conn) Wait() error {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	exit, ok := errors.AsType[*ExitError](c.cause)
	if failed := ok && !exit.State.Success() || errors.Is(c.cause, io.ErrUnexpectedEOF); !failed && errors.Is(c.cause, io.EOF) {
		return nil
	}
	return over(c.cause)
}

// over is the error that says that the connection is over, and why if this side did not end it.
func over(cause error) error {
	if cause == nil || errors.Is(cause, wire.ErrClosed) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrClosed, cause)
}

// ending is the cause of what ends because the connection does.
func (c *Conn) ending() error { return cmp.Or(over(c.wire.Err()), ErrClosed) }

// observed shows every message to Hooks.Message.
func observed(stream Stream, message func(sent bool, message []byte)) Stream {
	return Wrap(stream, Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if err == nil {
				message(false, line)
			}
			return line, err
		},
		Write: func(line []byte) ([]byte, error) {
			message(true, line)
			return line, nil
		},
	})
}
