package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

type (
	// ID is the id of a request.
	ID = wire.ID
	// Error is a JSON-RPC error object.
	Error = wire.Error
)

// Config tunes a connection; package rpc's Options say what the fields mean. The zero value of each field
// means its default, but of Errors, which must be set.
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
	// Serve wraps handlers, and Call calls of this side and its notifications.
	Serve, Call Middleware
	// End is called when the connection is over.
	End func()

	Errors Errors
}

// Middleware is a function around a handler or a call. It calls next at most once, and returns next's error or
// another one.
type Middleware func(ctx context.Context, call *Call, next func(context.Context) error) error

// Call is what a Middleware is about; package rpc's CallInfo has the same fields and says what they mean.
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

// Errors is how errors look to those who use a connection.
type Errors struct {
	// Answered makes what a call returns when the peer answered with an error.
	Answered func(method string, e *Error) error
	// Visible is what the peer sees of a handler's error, and says whether that hides what it is.
	Visible func(err error) (e *Error, hidden bool)
	// RequestCancelled is the cause of the context of a request that the peer has cancelled.
	RequestCancelled error
}

// UnsentError is the error of a call that this side has refused to send.
type UnsentError struct {
	Method string
	Err    error
}

// Error gives method and error.
func (e *UnsentError) Error() string { return e.Method + ": acp: not sent: " + e.Err.Error() }

// Unwrap returns why the call was refused.
func (e *UnsentError) Unwrap() error { return e.Err }

// The error codes that the engine answers with.
const (
	codeInvalidRequest   = -32600
	codeMethodNotFound   = -32601
	codeInvalidParams    = -32602
	codeInternalError    = -32603
	codeRequestCancelled = -32800
)

// Sentinel is an error that is nothing but its text, and a constant.
type Sentinel string

// Error implements the error interface.
func (s Sentinel) Error() string { return string(s) }

// What ends a call or a turn; package rpc says when.
const (
	ErrClosed        Sentinel = "acp: connection closed"
	ErrUnsupported   Sentinel = "acp: not supported by the peer"
	ErrExperimental  Sentinel = "acp: experimental feature not enabled"
	ErrTurnCancelled Sentinel = "acp: turn cancelled"
	ErrStuck         Sentinel = "acp: handlers do not end"
	ErrOverflow      Sentinel = "acp: update queue overflow while its consumer waits for a call"
)

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Serve, c.Call = c.Serve.once(), c.Call.once()
	setDefault(&c.MaxRequests, 4096)
	setDefault(&c.MaxBytes, 256<<20)
	setDefault(&c.QueueBytes, max(1, c.MaxBytes/queuePart))
	setDefault(&c.QueueLimit, max(1, c.MaxBytes/limitPart))
	setDefault(&c.DrainTime, time.Second)
	setDefault(&c.CloseTime, 5*time.Second)
	setDefault(&c.CancelGrace, 30*time.Second)
	return c
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
