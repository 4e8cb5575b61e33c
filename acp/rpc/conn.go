package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/acpgo/sdk/internal/engine"
)

// Conn is one connection to a peer. All methods are safe for concurrent use.
//
// It runs one reader, one writer, one worker for each session that has notifications waiting, and one goroutine for
// each request in progress; up to 256 of these goroutines are kept for later requests. All belong to the Conn: Wait
// returns after they have ended, or with ErrStuck.
//
// Notifications of one session are handled one at a time, in the order in which they arrived. The caller of a call gets
// the answer after every notification that the same session received before it has been handled, and a request is also
// handled after those. A call made with the context of a notification handler does not wait for that handler, which
// would be a deadlock. While such a handler waits for a call, requests of its session, and calls made with the contexts
// of those requests, do not wait for it either.
type Conn engine.Conn

// A Caller makes calls: a *Conn, or a connection or a session of package acp.
type Caller interface {
	// RPC returns the raw connection.
	RPC() *Conn
}

// Connect opens transport and starts a connection without the protocol's own methods: it serves the handlers in ext,
// under any name; a nil ext serves nothing. ctx bounds opening the transport; handlers get its values, but do not end
// with it. To speak the protocol, use package acp.
func Connect(ctx context.Context, transport Transport, ext *Extensions[Conn], opts *Options) (*Conn, error) {
	c, err := connect(ctx, transport, func(c *engine.Conn) ([]engine.Route, error) { return ext.bind((*Conn)(c)) }, opts)
	return (*Conn)(c), err
}

func init() {
	engine.RPC.Connect = func(
		ctx context.Context, transport any, routes func(*engine.Conn) ([]engine.Route, error), opts any,
	) (*engine.Conn, error) {
		opened, _ := transport.(Transport) // nil if transport is nil
		return connect(ctx, opened, routes, opts.(*Options))
	}
	engine.RPC.Extensions = func(ext, conn any) ([]engine.Route, error) { return ext.(router).routes(conn) }
}

// connect is Connect with arbitrary routes.
func connect(
	ctx context.Context, transport Transport, routes func(*engine.Conn) ([]engine.Route, error), opts *Options,
) (*engine.Conn, error) {
	if transport == nil {
		return nil, errors.New("acp: no transport to connect with")
	}
	stream, err := transport.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("acp: connecting: %w", err)
	}
	opts = cmp.Or(opts, &Options{})
	c := engine.New()
	served, err := routes(c)
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	hooks := opts.Hooks.bind((*Conn)(c))
	if hooks.Message != nil {
		stream = observed(stream, hooks.Message)
	}
	c.Start(ctx, stream, served, opts.config(hooks))
	return c, nil
}

func (c *Conn) engine() *engine.Conn { return (*engine.Conn)(c) }

// RPC returns c.
func (c *Conn) RPC() *Conn { return c }

// Close ends the connection: it cancels the handlers, lets them answer, sends pending messages, closes the stream, and
// waits until everything has ended. Handlers and unsent messages together get Options.CloseTime; closing the stream
// takes additional time, for a subprocess for example. The error matches ErrStuck if handlers are still running after
// that, or says why the stream could not be closed properly. Further calls wait for the same end. A handler must not
// call Close: it would deadlock.
func (c *Conn) Close() error { return c.engine().Close() }

// Done returns a channel that is closed when the connection is over and all of its goroutines have ended, except
// handlers that have not returned within Options.CloseTime.
func (c *Conn) Done() <-chan struct{} { return c.engine().Done() }

// Wait waits until Done is closed. It returns nil if the connection was ended by Close, or by the peer in an orderly
// way. Otherwise it returns an error that matches ErrClosed and wraps the cause, which is an *ExitError if the peer was
// a subprocess that failed. The error matches ErrStuck if handlers are still running, whatever ended the connection.
func (c *Conn) Wait() error {
	err := c.engine().Wait()
	exit, ok := errors.AsType[exitState](err)
	failed := ok && !exit.success() || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrStuck)
	if !failed && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// exitState is implemented by *ExitError alone, which a program that starts no other thus does not contain.
type exitState interface {
	error
	success() bool
}

// Load is what a connection holds at one moment, in bytes, counted as Options.MaxBytes describes.
type Load struct {
	// Requests counts the peer's requests in progress.
	Requests int
	// Queued counts the notifications that are waiting for their handlers.
	Queued int
	// Loops counts the updates that are waiting for loops over turns, except the part that Options.MaxBytes says is not
	// counted.
	Loops int
}

// Load returns what the connection currently holds. It takes no lock.
func (c *Conn) Load() Load { return Load(c.engine().Load()) }

// AfterResponse calls fn after the answer to the request that ctx belongs to was handed to the writer, so messages that
// fn sends always follow it: available commands after session/new, for example. fn's context ends with the connection.
// The next turn of the request's session, or of the session that the request creates, begins when fn has returned.
// Outside the handler of a request AfterResponse does nothing and returns false.
func AfterResponse(ctx context.Context, fn func(ctx context.Context)) bool {
	return engine.AfterResponse(ctx, fn)
}

// Reserve waits until the handler of the request that ctx belongs to may produce an answer that takes n bytes. A
// handler calls it before it produces a large answer, such as the text of a file, so that large answers to many
// requests in flight are not in memory at the same time: at most an eighth of Options.MaxBytes may be reserved, or one
// answer that is longer. The reservation ends when the answer was handed to the writer or the request is over. A
// handler must not wait for the peer between calling Reserve and returning its answer.
//
// Calling Reserve again replaces the request's reservation; a smaller one releases the difference. Such a call never
// waits, because requests that each hold a part of what they need would deadlock; it fails if there is no room for
// more. Reserve returns the cause of ctx if ctx ends first. Outside the handler of a request it does nothing.
func Reserve(ctx context.Context, n int) error { return engine.Reserve(ctx, n) }

// observed returns a stream that passes every message to Hooks.Message.
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
