package rpc

import (
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
// Notifications of one session are handled in the order in which they came, one at a time. The answer to a call is
// given to its caller after every notification that the same session received before it was handled, and a request is
// handled after those too. A call made with the context of a notification handler does not wait for that handler,
// because it could never return. While such a handler waits for a call, requests of its session, and calls made with
// their contexts, do not wait for it either.
type Conn engine.Conn

// A Caller is what calls go through: a *Conn, or a connection or a session of package acp.
type Caller interface {
	// RPC returns the raw connection.
	RPC() *Conn
}

// Connect opens transport and starts a connection without the protocol's own methods: it serves the handlers in ext,
// under any name; a nil ext serves nothing. ctx bounds opening the transport; handlers get its values, but not its
// end. To speak the protocol, use package acp.
func Connect(ctx context.Context, transport Transport, ext *Extensions[Conn], opts *Options) (*Conn, error) {
	return ConnectRoutes(ctx, transport, func(c *Conn) ([]engine.Route, error) { return ext.bind(c) }, opts)
}

// ConnectRoutes is Connect for the packages of this module that serve the protocol's own methods. Other modules cannot
// use it, because its types are internal.
func ConnectRoutes(
	ctx context.Context, transport Transport, routes func(*Conn) ([]engine.Route, error), opts *Options,
) (*Conn, error) {
	if transport == nil {
		return nil, errors.New("acp: no transport to connect with")
	}
	stream, err := transport.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("acp: connecting: %w", err)
	}
	if opts == nil {
		opts = &Options{}
	}
	c := engine.New()
	served, err := routes((*Conn)(c))
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	hooks := opts.Hooks.of((*Conn)(c))
	if hooks.Message != nil {
		stream = observed(stream, hooks.Message)
	}
	c.Start(ctx, stream, served, opts.config(hooks))
	return (*Conn)(c), nil
}

func (c *Conn) engine() *engine.Conn { return (*engine.Conn)(c) }

// RPC returns c.
func (c *Conn) RPC() *Conn { return c }

// Close ends the connection: it cancels the handlers, lets them answer, sends what is pending, closes
// the stream and waits until nothing runs any more. Handlers and unsent messages are given
// Options.CloseTime together, and closing the stream takes its own time, a subprocess's for example. The error
// matches ErrStuck when handlers still run after that, or says why the stream could not be closed properly.
// Further calls wait for the same. A handler must not call Close: it would wait for itself.
func (c *Conn) Close() error { return c.engine().Close() }

// Done is closed when the connection is over and nothing of it runs any more, but handlers that have not ended
// within Options.CloseTime.
func (c *Conn) Done() <-chan struct{} { return c.engine().Done() }

// Wait waits until Done is closed. It returns nil when the connection was ended by Close, or by the peer in an
// orderly way; otherwise an error that matches ErrClosed and wraps the cause, which is an *ExitError when the peer
// was a subprocess that failed. It matches ErrStuck when handlers still run, whatever ended the connection.
func (c *Conn) Wait() error {
	err := c.engine().Wait()
	exit, ok := errors.AsType[*ExitError](err)
	failed := ok && !exit.State.Success() || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrStuck)
	if !failed && errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Load is what a connection holds at one moment, in bytes, counted as Options.MaxBytes says.
type Load struct {
	// Requests are the requests of the peer in progress.
	Requests int
	// Queued are the notifications that wait for their handlers.
	Queued int
	// Loops are the updates that wait for loops over turns, without what Options.MaxBytes says is not counted.
	Loops int
}

// Load returns what the connection holds now. It takes no lock.
func (c *Conn) Load() Load { return Load(c.engine().Load()) }

// AfterResponse has fn called after the answer to the request that ctx belongs to was handed to the
// writer, so that what fn sends comes strictly after it: available commands after session/new, for
// example. fn's context ends with the connection. Outside the handler of a request it returns false
// and does nothing.
func AfterResponse(ctx context.Context, fn func(ctx context.Context)) bool {
	return engine.AfterResponse(ctx, fn)
}

// Reserve waits until the handler of the request that ctx belongs to may make an answer that takes n bytes. A handler
// calls it before it makes a large answer, the text of a file for example, so that many such requests at once are
// answered one after the other: an eighth of Options.MaxBytes may be reserved, and one answer that is longer. What is
// reserved is free again when the answer was handed to the writer, or the request is over; between Reserve and its
// answer a handler does not wait for the peer.
//
// Another call replaces what the request has reserved: fewer bytes give the rest back. It never waits, because requests
// that hold a part of what they need would wait for each other, and fails if there is no room for more. Reserve returns
// the cause of ctx when that ends first. Outside the handler of a request it does nothing.
func Reserve(ctx context.Context, n int) error { return engine.Reserve(ctx, n) }

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
