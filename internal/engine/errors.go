package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

type (
	// ID is the id of a request.
	ID = wire.ID
	// Error is a JSON-RPC error object.
	Error = wire.Error
)

// UnsentError is the error of a call that this side has refused to send.
type UnsentError struct {
	Method string
	Err    error
}

// Error returns the method and the error.
func (e *UnsentError) Error() string { return e.Method + ": acp: not sent: " + e.Err.Error() }

// Unwrap returns the reason for the refusal.
func (e *UnsentError) Unwrap() error { return e.Err }

// Is reports that the peer has not seen the call.
func (e *UnsentError) Is(target error) bool { return target == ErrNotSent }

// notSentError is the error of a call that has failed before it was sent.
type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

func (e notSentError) Is(target error) bool { return target == ErrNotSent }

// The error codes with which the engine answers.
const (
	codeInvalidRequest   = -32600
	codeMethodNotFound   = -32601
	codeInvalidParams    = -32602
	codeInternalError    = -32603
	codeRequestCancelled = -32800
)

// Sentinel is a constant error that consists of its text.
type Sentinel string

// Error implements the error interface.
func (s Sentinel) Error() string { return string(s) }

// Is reports whether the target is ErrNotSent, and the error is of a call that was not sent.
func (s Sentinel) Is(target error) bool {
	return target == ErrNotSent && (s == ErrUnsupported || s == ErrExperimental)
}

// The errors that end a call or a turn; they are documented in package rpc.
const (
	ErrClosed        Sentinel = "acp: connection closed"
	ErrNotSent       Sentinel = "acp: not sent"
	ErrUnsupported   Sentinel = "acp: not supported by the peer"
	ErrExperimental  Sentinel = "acp: experimental feature not enabled"
	ErrTurnCancelled Sentinel = "acp: turn cancelled"
	ErrStuck         Sentinel = "acp: handlers do not end"
	ErrOverflow      Sentinel = "acp: update queue overflow while its consumer waits for a call"
)

// closedErr returns the error for a connection that is over, with the cause if this side did not end it.
func closedErr(cause error) error {
	if cause == nil || errors.Is(cause, wire.ErrClosed) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrClosed, cause)
}

// refusal returns an Error with which the engine itself answers.
func refusal(code int, message string, data map[string]string) *Error {
	e := &Error{Code: code, Message: message}
	if data != nil {
		e.Data, _ = json.Marshal(data) // a map of strings cannot fail
	}
	return e
}

// MethodNotFound is the answer to a request for a method that does not exist on this side. It truncates a very long
// name.
func MethodNotFound(method string) *Error {
	return refusal(codeMethodNotFound, "Method not found", map[string]string{"method": echoed(method)})
}

// invalidParams is the answer to invalid parameters: the pointer is in the message and in the data.
func invalidParams(err error) *Error {
	bad, ok := errors.AsType[*codec.Error](err)
	if !ok {
		return refusal(codeInvalidParams, "Invalid params: "+err.Error(), nil)
	}
	return refusal(codeInvalidParams, "Invalid params: "+bad.Error(),
		map[string]string{"pointer": bad.Pointer, "reason": bad.Msg})
}

var (
	// requestCancelled is the answer to a request whose handler failed because the peer cancelled the request.
	requestCancelled = refusal(codeRequestCancelled, "Request cancelled", nil)

	errHandlerEnded = errors.New("the handler has ended its goroutine")
	errNilResult    = errors.New("acp: the handler returned neither a result nor an error")
)

// maxEcho is how many bytes of the peer's text an error repeats.
const maxEcho = 256

// echoed returns s in the form in which an error repeats it.
func echoed(s string) string {
	if len(s) <= maxEcho {
		return s
	}
	return strings.ToValidUTF8(s[:maxEcho], "") + "…"
}
