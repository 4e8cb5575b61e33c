package rpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
)

// A Code is the code of a JSON-RPC error. The codes that JSON-RPC 2.0 and ACP define are constants, and are errors
// themselves: a handler may return one, which is sent with the usual message, and errors.Is matches it with any Error
// that has that code. Codes outside −32768…−32000 and −32899…−32800 are free for implementations.
type Code int32

// The codes that JSON-RPC 2.0 and ACP define.
const (
	ErrParse            Code = -32700 // the line is not JSON
	ErrInvalidRequest   Code = -32600 // JSON, but not a JSON-RPC message, or one that is not allowed now
	ErrMethodNotFound   Code = -32601 // unknown method, or one whose capability was not advertised
	ErrInvalidParams    Code = -32602 // the parameters do not fit the method
	ErrInternal         Code = -32603 // the handler failed
	ErrRequestCancelled Code = -32800 // cancelled by $/cancel_request
	ErrAuthRequired     Code = -32000 // authenticate first; not for other failures
	ErrResourceNotFound Code = -32002 // unknown session, missing file
)

// message returns the usual message.
func (c Code) message() string {
	switch c {
	case ErrParse:
		return "Parse error"
	case ErrInvalidRequest:
		return "Invalid request"
	case ErrMethodNotFound:
		return "Method not found"
	case ErrInvalidParams:
		return "Invalid params"
	case ErrInternal:
		return "Internal error"
	case ErrRequestCancelled:
		return "Request cancelled"
	case ErrAuthRequired:
		return "Authentication required"
	case ErrResourceNotFound:
		return "Resource not found"
	}
	return "Error"
}

// Error returns the usual message and the code.
func (c Code) Error() string { return c.withMessage().Error() }

// Is reports whether target is an *Error with this code.
func (c Code) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t != nil && t.Code == c
}

// As sets target to an *Error with this code and the usual message.
func (c Code) As(target any) bool {
	t, ok := target.(**Error)
	if ok {
		*t = c.withMessage()
	}
	return ok
}

func (c Code) withMessage() *Error { return &Error{Code: c, Message: c.message()} }

// WithData returns an Error with the code, the usual message, and v, encoded as JSON, as its data. If v cannot be
// encoded, the data is left out.
func (c Code) WithData(v any) *Error { return c.withMessage().WithData(v) }

// WithMessagef returns an Error with the code and a formatted message, which is sent to the peer.
func (c Code) WithMessagef(format string, args ...any) *Error { return Errorf(c, format, args...) }

// Error is a JSON-RPC error object: the one with which a peer answered, or the one that a handler wants the peer to
// see. If a handler returns an Error, possibly wrapped, it is sent as it is. Any other error is sent as ErrInternal
// with a neutral message. This includes the error of a call that the handler made, even if it wraps an Error, because
// it reports what a peer answered (a CallError) or why the call was not sent. An Error is never changed after it has
// been made, so it can be shared.
type Error struct {
	// Code is the kind of failure.
	Code Code
	// Message is one short sentence, meant for people.
	Message string
	// Data is any JSON value with details, or nil.
	Data json.RawMessage
}

// CallError is what a call returns when the peer answered with an error. errors.Is and errors.As find that error. A
// handler that returns a CallError does not pass the peer's error on, because one peer's answer to one call is not an
// answer to another call. To pass it on, return its Err.
type CallError struct {
	// Method is the method that was called.
	Method string
	// Err is the peer's error.
	Err *Error
}

// Error returns the method and the error.
func (e *CallError) Error() string { return e.Method + ": " + e.Err.Error() }

// Unwrap returns the peer's error.
func (e *CallError) Unwrap() error { return e.Err }

// Sentinel is the type of constant errors, such as ErrClosed. Match them with errors.Is.
type Sentinel = engine.Sentinel

// Errors of this side's runtime. They are never sent to the peer.
const (
	// ErrClosed reports that the connection is over. It is joined with an error that gives the reason: io.EOF if the
	// peer ended it, io.ErrUnexpectedEOF if the peer did so within a message, an *ExitError if a subprocess ended.
	ErrClosed Sentinel = engine.ErrClosed
	// ErrNotSent reports that a request failed before it was sent, for example because the connection was over already:
	// the peer has not seen it, and sending it again cannot repeat anything. It is joined with the reason. After any other
	// error that is not the peer's, a [CallError], the peer may have handled the request.
	ErrNotSent Sentinel = engine.ErrNotSent
	// ErrUnsupported reports that a call was not sent because the peer did not advertise the capability.
	ErrUnsupported Sentinel = engine.ErrUnsupported
	// ErrExperimental reports that a message was not sent, or that handlers are not served, because they belong to an
	// experimental feature that the options do not enable.
	ErrExperimental Sentinel = engine.ErrExperimental
	// ErrTurnCancelled is the cause of the context of a turn that its client cancelled.
	ErrTurnCancelled Sentinel = engine.ErrTurnCancelled
	// ErrOverflow reports that a queue of updates reached Options.QueueLimit while its handler, or the loop that reads
	// it, waited for a call. Either the call was given up and returns this error, or the loop was ended and its turn
	// returns it. It also reports that more than Options.QueueBytes were sent for a session before the answer that names
	// it.
	ErrOverflow Sentinel = engine.ErrOverflow
	// ErrStuck reports that handlers are still running although the connection is over and Options.CloseTime has
	// passed. The connection no longer waits for them.
	ErrStuck Sentinel = engine.ErrStuck
)

// Errors of questions to the user. Their texts reach the peer if a handler returns one.
var (
	// ErrDismissed reports that no decision was made, by the user or by the client on the user's behalf.
	ErrDismissed = Public(errors.New("the question was dismissed"))
)

var errConnected = errors.New("acp: transport already connected")

// Errorf returns an Error with a code and a formatted message. The message is sent to the peer.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements the error interface.
func (e *Error) Error() string {
	if len(e.Data) == 0 {
		return fmt.Sprintf("%s (%d)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s (%d): %s", e.Message, e.Code, e.Data)
}

// Is reports whether target is the Code of e, or an *Error with the same one.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return t == e.Code
	case *Error:
		return t != nil && t.Code == e.Code
	}
	return false
}

// WithData returns a copy of e with v, encoded as JSON, as its data. If v cannot be encoded, the data is left out.
func (e *Error) WithData(v any) *Error {
	c := *e
	if data, err := json.Marshal(v); err == nil {
		c.Data = data
	}
	return &c
}

// WithMessagef returns a copy of e with another message.
func (e *Error) WithMessagef(format string, args ...any) *Error {
	c := *e
	c.Message = fmt.Sprintf(format, args...)
	return &c
}

// InvalidParamsf returns the error for parameters that a handler cannot accept, such as unknown ids and values, or a
// bad cursor. The message reaches the peer.
func InvalidParamsf(format string, args ...any) *Error {
	return ErrInvalidParams.WithMessagef("Invalid params: "+format, args...)
}

// Public wraps err so that its text reaches the peer, as an internal error with err's message. Use it for errors whose
// text is meant for the peer; errors.Is and errors.As find err.
func Public(err error) error {
	if err == nil {
		return nil
	}
	return &publicError{err}
}

type publicError struct{ err error }

func (e *publicError) Error() string { return e.err.Error() }
func (e *publicError) Unwrap() error { return e.err }

// EncodeJSON writes the error object, for messages that carry one as a value.
func (e *Error) EncodeJSON(enc *codec.Encoder) { e.wire().EncodeJSON(enc) }

// DecodeJSON reads an error object.
func (e *Error) DecodeJSON(d *codec.Decoder) {
	*e = Error{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "code":
			o.Once(0)
			e.Code = Code(d.Int(32))
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
func ErrorOf(err error) *Error {
	if e := ownError(err); e != nil {
		return e
	}
	return ErrInternal.withMessage()
}

// visible is ErrorOf for the engine. hidden reports whether the peer does not see err.
func visible(err error) (e *engine.Error, hidden bool) {
	if e := ownError(err); e != nil {
		return e.wire(), false
	}
	return ErrInternal.withMessage().wire(), true
}

func (e *Error) wire() *engine.Error {
	return &engine.Error{Code: int(e.Code), Message: e.Message, Data: e.Data}
}

func fromWire(e *engine.Error) *Error {
	return &Error{Code: Code(e.Code), Message: e.Message, Data: e.Data}
}

// ownError returns the error in err's tree that is meant for the peer, or nil.
func ownError(err error) *Error {
	switch e := err.(type) {
	case *Error:
		return e
	case Code:
		return e.withMessage()
	case *engine.Error: // the engine refused the message
		return fromWire(e)
	case *publicError:
		return &Error{Code: ErrInternal, Message: e.Error()}
	case *CallError, *engine.UnsentError: // these are about this side's own call
		return nil
	case *servedError: // middleware has passed it on
		return ownError(e.err)
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
