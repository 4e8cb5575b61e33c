package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/codec"
)

// Config configures a connection; the fields are documented in package rpc's Options. The zero value of each field
// means its default, except that Errors must be set.
type Config struct {
	Logger          *slog.Logger
	MaxRequests     int
	MaxBytes        int
	QueueBytes      int
	QueueLimit      int
	DrainTime       time.Duration
	CloseTime       time.Duration
	CancelGrace     time.Duration
	SkipNoise       bool
	ConcurrentTurns bool

	Repair  func(method string, repair codec.Repair)
	Invalid func(line []byte, reason error)
	Panic   func(method string, value any, stack []byte)
	// Serve wraps handlers, and Call wraps this side's calls and notifications.
	Serve, Call Middleware
	// End is called when the connection is over.
	End func()

	Errors Errors
}

// Middleware is a function around a handler or a call. It calls next at most once, and returns next's error or
// another one.
type Middleware func(ctx context.Context, call *Call, next func(context.Context) error) error

// Call describes what a Middleware wraps; package rpc's CallInfo has the same fields and documents them.
type Call struct {
	Method       string
	ID           ID
	Incoming     bool
	Notification bool
	Session      string
	Size         int
	Meta         codec.Meta
	NoMeta       bool
	Params       any
	Result       any
}

// Errors converts errors for the users of a connection.
type Errors struct {
	// Answered returns the error of a call that the peer answered with an error.
	Answered func(method string, e *Error) error
	// Visible returns what the peer sees of a handler's error. hidden reports whether that leaves out the actual error.
	Visible func(err error) (e *Error, hidden bool)
	// RequestCancelled is the cause of the context of a request that the peer has cancelled.
	RequestCancelled error
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Serve, c.Call = c.Serve.once(), c.Call.once()
	c.MaxRequests = cmp.Or(c.MaxRequests, 4096)
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.QueueBytes = cmp.Or(c.QueueBytes, max(1, c.MaxBytes/queuePart))
	c.QueueLimit = cmp.Or(c.QueueLimit, max(1, c.MaxBytes/limitPart))
	c.DrainTime = cmp.Or(c.DrainTime, time.Second)
	c.CloseTime = cmp.Or(c.CloseTime, 5*time.Second)
	c.CancelGrace = cmp.Or(c.CancelGrace, 30*time.Second)
	return c
}

var errNextTwice = errors.New("acp: middleware called next more than once")

// once returns a middleware whose second call of next fails, because a call and its result can be used only once.
func (m Middleware) once() Middleware {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, call *Call, next func(context.Context) error) error {
		var called atomic.Bool
		return m(ctx, call, func(ctx context.Context) error {
			if called.Swap(true) {
				return errNextTwice
			}
			return next(ctx)
		})
	}
}
