package acp

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
)

type (
	// Opt is an optional member: absent (the zero Opt), null or a value of type T. Some and Null make one; the methods
	// Get, Value, Or, Present, IsNull, IsZero and Equal read it. See [codec.Opt].
	Opt[T any] = codec.Opt[T]
	// Meta is the member _meta, which carries data that is not part of the protocol: a map of raw JSON. The methods Get
	// and Set read and write one key as a Go value. See [codec.Meta].
	Meta = codec.Meta
	// Error is a JSON-RPC error: the one with which a peer answered, or the one that a handler wants the peer to see.
	Error = rpc.Error
	// Code is the kind of failure that an Error reports; the constants below are the usual ones.
	Code = rpc.Code
	// CallError is what a call returns when the peer answered with an error, which it wraps.
	CallError = rpc.CallError
	// ExitError reports that the agent's process has ended, how it ended, and what it last wrote to standard error.
	ExitError = rpc.ExitError
	// Transport opens the stream to a peer: Stdio, Command and Pipe return one.
	Transport = rpc.Transport
	// Extensions holds handlers for methods outside the protocol, added with rpc.Handle and rpc.HandleNotification. An
	// agent uses Extensions[AgentConn], a client Extensions[ClientConn].
	Extensions[C any] = rpc.Extensions[C]
	// ConnOptions tunes a connection. Its fields are Logger and Hooks; the limits MaxRequests, MaxBytes, QueueBytes and
	// QueueLimit; the times DrainTime, CloseTime and CancelGrace; SkipNoise, for agents that print other text; and
	// ConcurrentTurns. "go doc acp/rpc.Options" describes each.
	ConnOptions = rpc.Options
	// Hooks observe a connection: its messages, repairs and failures. Its middleware wraps handlers and calls.
	Hooks = rpc.Hooks
	// Middleware is a function around a handler (Hooks.Serve) or a call (Hooks.Call).
	Middleware = rpc.Middleware
	// CallInfo describes the call that a Middleware wraps.
	CallInfo = rpc.CallInfo
	// Repair describes a leniency with which a message was read; Hooks.Repair is called for each.
	Repair = codec.Repair
	// StdioTransport and CommandTransport are the types that Stdio and Command return.
	StdioTransport   = rpc.StdioTransport
	CommandTransport = rpc.CommandTransport
)

// Errors to match with errors.Is. Those with a number are codes of Error, and a handler may return them directly.
const (
	ErrClosed           = rpc.ErrClosed           // the connection is over
	ErrNotSent          = rpc.ErrNotSent          // the peer has not seen the request
	ErrUnsupported      = rpc.ErrUnsupported      // the peer did not advertise the capability
	ErrExperimental     = rpc.ErrExperimental     // an experimental feature that the options do not enable
	ErrTurnCancelled    = rpc.ErrTurnCancelled    // the cause of a cancelled turn's context
	ErrOverflow         = rpc.ErrOverflow         // a call blocked its own session's updates
	ErrAuthRequired     = rpc.ErrAuthRequired     // -32000: authenticate first
	ErrResourceNotFound = rpc.ErrResourceNotFound // -32002: unknown session, missing file
	ErrRequestCancelled = rpc.ErrRequestCancelled // -32800: cancelled by $/cancel_request
	ErrMethodNotFound   = rpc.ErrMethodNotFound   // -32601
	ErrInvalidParams    = rpc.ErrInvalidParams    // -32602
	ErrInvalidRequest   = rpc.ErrInvalidRequest   // -32600
)

// Errors of questions to the user, to match with errors.Is. The peer may read their texts: a handler may return one.
var (
	ErrDismissed = rpc.ErrDismissed // no decision was made, by the user or by the client on the user's behalf
)

// Some returns an Opt that holds v.
func Some[T any](v T) Opt[T] { return codec.Some(v) }

// Null returns an Opt that is null on the wire.
func Null[T any]() Opt[T] { return codec.Null[T]() }

// Stdio returns the transport of an agent over its standard input and output.
func Stdio() *StdioTransport { return rpc.Stdio() }

// Command returns the transport that starts an agent as a subprocess.
func Command(cmd *exec.Cmd) *CommandTransport { return rpc.Command(cmd) }

// Exec returns the transport that starts an agent by its command line. Its standard error is that of this process. Use
// Command to send it elsewhere, or to set the directory or the environment.
func Exec(name string, args ...string) *CommandTransport {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	return Command(cmd)
}

// Unserved reports whether a call failed because the peer does not serve the method: either the peer did not advertise
// it, and the error matches ErrUnsupported, or the peer advertised it but answered ErrMethodNotFound.
func Unserved(err error) bool {
	return errors.Is(err, ErrUnsupported) || errors.Is(err, ErrMethodNotFound)
}

// Pipe returns the two ends of an in-memory connection.
func Pipe() (Transport, Transport) { return rpc.Pipe() }

// Public wraps err so that its text reaches the peer.
func Public(err error) error { return rpc.Public(err) }

// AfterResponse calls fn after the answer to the request that ctx belongs to has been sent, and never before. A
// NewSession handler uses it to announce the available commands. The session's next turn begins when fn has returned,
// so fn should not wait for anything else. It returns false outside a request handler.
func AfterResponse(ctx context.Context, fn func(ctx context.Context)) bool {
	return rpc.AfterResponse(ctx, fn)
}

// InvalidParamsf returns the error for parameters that a handler cannot accept, such as unknown ids and values, or a
// bad cursor. The message reaches the peer.
func InvalidParamsf(format string, args ...any) *Error { return rpc.InvalidParamsf(format, args...) }

// SessionNotFound returns the error for a request about a session that does not exist or is not active: -32002, with
// the session's id. Handlers return it.
func SessionNotFound(id SessionID) *Error {
	return ErrResourceNotFound.WithMessagef("Session not found").WithData(map[string]SessionID{"sessionId": id})
}
