// This file owns the errors of the runtime: the JSON-RPC error object and the sentinels that callers
// act on.

package rpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// The error codes that JSON-RPC 2.0 and ACP define.
const (
	CodeParseError       = -32700 // the line is not JSON
	CodeInvalidRequest   = -32600 // JSON, but no message, or one that may not come now
	CodeMethodNotFound   = -32601 // unknown method, or one whose capability was not advertised
	CodeInvalidParams    = -32602 // the parameters do not fit the method
	CodeInternalError    = -32603 // the handler failed
	CodeRequestCancelled = -32800 // cancelled by $/cancel_request
	CodeAuthRequired     = -32000 // authentication is required, and nothing else
	CodeResourceNotFound = -32002 // unknown session, missing file
)

// Error is a JSON-RPC error object: what a peer answered, or what a handler wants the peer to see. A
// handler that returns one, possibly wrapped, has it sent as it is; any other error, also one that some
// peer answered (a CallError), is sent as CodeInternalError with a neutral message. An Error is not
// changed after it was made, so one value may be shared.
type Error struct {
	// Code says what kind of failure it is. Codes outside −32768…−32000 and −32899…−32800 are free
	// for implementations.
	Code int
	// Message is one short sentence for people.
	Message string
	// Data is any JSON value with details, or nil.
	Data json.RawMessage
}

// CallError is what a call returns when the peer answered with an error. errors.Is and errors.As see
// that error. A handler that returns it does not pass it on: what one peer answers to one call is no
// answer to another call. To pass it on, return its Err.
type CallError struct {
	// Method is the method that was called.
	Method string
	// Err is what the peer answered.
	Err *Error
}

// Error gives method and error.
func (e *CallError) Error() string { return e.Method + ": " + e.Err.Error() }

// Unwrap returns the peer's error.
func (e *CallError) Unwrap() error { return e.Err }

// Sentinels for errors.Is, which compares codes only.
var (
	ErrParse            = &Error{Code: CodeParseError, Message: "Parse error"}
	ErrInvalidRequest   = &Error{Code: CodeInvalidRequest, Message: "Invalid request"}
	ErrMethodNotFound   = &Error{Code: CodeMethodNotFound, Message: "Method not found"}
	ErrInvalidParams    = &Error{Code: CodeInvalidParams, Message: "Invalid params"}
	ErrInternal         = &Error{Code: CodeInternalError, Message: "Internal error"}
	ErrRequestCancelled = &Error{Code: CodeRequestCancelled, Message: "Request cancelled"}
	ErrAuthRequired     = &Error{Code: CodeAuthRequired, Message: "Authentication required"}
	ErrResourceNotFound = &Error{Code: CodeResourceNotFound, Message: "Resource not found"}
)

// Sentinels of this side's runtime; they never travel.
var (
	// ErrClosed says that the connection is over. What it is joined with says why: io.EOF when the
	// peer ended it, io.ErrUnexpectedEOF when it did so within a message, an *ExitError when a
	// subprocess ended.
	ErrClosed = errors.New("acp: connection closed")
	// ErrUnsupported says that a call was not sent because the peer did not advertise the capability.
	ErrUnsupported = errors.New("acp: not supported by the peer")
	// ErrTurnCancelled is the cause of the context of a turn that its client cancelled.
	ErrTurnCancelled = errors.New("acp: turn cancelled")
	// ErrOverflow is what a call returns that had to be given up because its own caller held up a
	// queue of updates that reached its hard limit.
	ErrOverflow = errors.New("acp: update queue overflow while its consumer waits for a call")

	errConnected = errors.New("acp: this transport was connected already")
)

// Errorf makes an Error with a code and a formatted message. The message is sent to the peer.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements the error interface.
func (e *Error) Error() string {
	if len(e.Data) == 0 {
		return fmt.Sprintf("%s (%d)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s (%d): %s", e.Message, e.Code, e.Data)
}

// Is reports whether target is an *Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// WithData returns a copy of e with v, encoded as JSON, as its data. A v that cannot be encoded
// leaves the data out.
func (e *Error) WithData(v any) *Error {
	c := *e
	if data, err := json.Marshal(v); err == nil {
		c.Data = data
	}
	return &c
}

// WithMessage returns a copy of e with another message.
func (e *Error) WithMessage(format string, args ...any) *Error {
	c := *e
	c.Message = fmt.Sprintf(format, args...)
	return &c
}

// Public wraps err so that its text reaches the peer: as an internal error with err's message. Use it
// for errors whose text was written for the other side; errors.Is and errors.As see err.
func Public(err error) error {
	if err == nil {
		return nil
	}
	return &publicError{err}
}

type publicError struct{ err error }

func (e *publicError) Error() string { return e.err.Error() }
func (e *publicError) Unwrap() error { return e.err }

// EncodeJSON writes the error object, where messages carry one as a value.
func (e *Error) EncodeJSON(enc *codec.Encoder) { (*wire.Error)(e).EncodeJSON(enc) }

// DecodeJSON reads an error object.
func (e *Error) DecodeJSON(d *codec.Decoder) {
	*e = Error{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "code":
			o.Once(0)
			e.Code = int(d.Int(32))
		case "message":
			o.Once(1)
			e.Message = d.Str()
		case "data":
			o.Once(2)
			e.Data = d.Raw()
		default:
			d.Skip()
		}
	}
	o.Require("code", "message")
}

// MarshalJSON implements json.Marshaler.
func (e Error) MarshalJSON() ([]byte, error) { return codec.Append(nil, &e) }

// UnmarshalJSON implements json.Unmarshaler.
func (e *Error) UnmarshalJSON(b []byte) error { return codec.Unmarshal(b, e) }

// ErrorOf returns the Error that the peer sees when a handler fails with err.
func ErrorOf(err error) *Error { return (*Error)(toWire(err)) }

// toWire says what the peer sees of a handler's error.
func toWire(err error) *wire.Error {
	if e := ownError(err); e != nil {
		return (*wire.Error)(e)
	}
	return (*wire.Error)(ErrInternal)
}

// ownError finds the error that is meant for the peer, or returns nil.
func ownError(err error) *Error {
	switch e := err.(type) {
	case *Error:
		return e
	case *publicError:
		return &Error{Code: CodeInternalError, Message: e.Error()}
	case *CallError:
		return nil
	case interface{ Unwrap() error }:
		return ownError(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if e := ownError(err); e != nil {
				return e
			}
		}
	}
	return nil
}
