package remote

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/rpc"
)

// Reasons that end a connection, or keep one from being opened.
const (
	// ErrServerClosed reports that a connection ended because its Server was shut down.
	ErrServerClosed rpc.Sentinel = "acp: the server is shutting down"
	// ErrExpired reports that a connection ended because it had neither a stream nor a POST for HandlerOptions.Expiry.
	ErrExpired rpc.Sentinel = "acp: the connection has expired"
	// ErrStalled reports that a connection ended because its peer accepted no data for a StallTimeout.
	ErrStalled rpc.Sentinel = "acp: the peer does not read"
	// ErrUnanswered reports that a connection ended because its peer did not answer two pings.
	ErrUnanswered rpc.Sentinel = "acp: the peer does not answer pings"
	// ErrForbidden reports that the sender is known, but not allowed. If the error of HandlerOptions.Authenticate
	// matches it, the request is answered with 403 instead of 401.
	ErrForbidden rpc.Sentinel = "acp: forbidden"
	// ErrInsecure reports that a client did not connect because it would have sent a token over plain HTTP to another
	// machine.
	ErrInsecure rpc.Sentinel = "acp: a token over a connection without TLS"
	// ErrConnectionGone is matched by a StatusError with 404 or 410: the server does not know the connection, or its
	// session, or no longer does. The client must open a new connection; see package reconnect.
	ErrConnectionGone rpc.Sentinel = "acp: the server does not know the connection"
	// ErrUnauthorized is matched by a StatusError with 401 or 403, even after DialOptions.Header has been called again.
	ErrUnauthorized rpc.Sentinel = "acp: unauthorized"
	// ErrStreamTaken is matched by a StatusError with 409: the stream has another reader, or the server believes so.
	ErrStreamTaken rpc.Sentinel = "acp: the stream has a receiver"
	// ErrTooLarge is matched by a StatusError with 413: the message is longer than the server, or a proxy before it,
	// accepts.
	ErrTooLarge rpc.Sentinel = "acp: the message is too large for the server"
	// ErrBusy is matched by a StatusError with 429 or 503; StatusError.RetryAfter may say when to try again.
	ErrBusy rpc.Sentinel = "acp: the server is busy"
)

// StatusError is the error that a client gets if a server refuses an HTTP request, or a WebSocket. It matches
// ErrConnectionGone, ErrUnauthorized, ErrStreamTaken, ErrTooLarge or ErrBusy, depending on its status.
type StatusError struct {
	// Status is the status code.
	Status int
	// Text is the beginning of the body in one line, at most 1 KiB of it. Characters that are not visible are escaped
	// as in a Go string. *** replaces credentials of the request that the server repeats literally: values of
	// DialOptions.Header, and passwords and tokens in the URL.
	Text string
	// RetryAfter is how long the server asks the client to wait, or 0.
	RetryAfter time.Duration
	// Size is the length of the message in bytes, for 413.
	Size int
}

// Error returns the status, and the server's text.
func (e *StatusError) Error() string {
	msg := fmt.Sprintf("acp: HTTP status %d", e.Status)
	if text := http.StatusText(e.Status); text != "" {
		msg += " " + text
	}
	if e.Size > 0 {
		msg += fmt.Sprintf(" (the message has %d bytes)", e.Size)
	}
	if e.Text != "" {
		msg += ": " + e.Text
	}
	return msg
}

// Is reports whether target is the error of the package for the status.
func (e *StatusError) Is(target error) bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == ErrUnauthorized
	case http.StatusNotFound, http.StatusGone:
		return target == ErrConnectionGone
	case http.StatusConflict:
		return target == ErrStreamTaken
	case http.StatusRequestEntityTooLarge:
		return target == ErrTooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return target == ErrBusy
	}
	return false
}

// Final reports whether it is useless to repeat the request, because the server would always refuse it. Package
// reconnect uses it.
func (e *StatusError) Final() bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests:
		return false
	}
	return e.Status < 500
}

// CloseError is the error that either side gets if the other one closed or broke a WebSocket; if it broke it, Code is
// 1006. It matches io.EOF if the WebSocket was closed in an orderly way.
type CloseError struct {
	// Code is the status code of the WebSocket protocol: 1000 is the normal end, 1001 a server that shuts down.
	Code int
	// Reason is the reason that the peer gave, at most 123 bytes, as in StatusError.Text.
	Reason string
	// Err is the error that broke the connection, or nil.
	Err error
}

// Error implements the error interface.
func (e *CloseError) Error() string {
	msg := fmt.Sprintf("acp: WebSocket closed with %d", e.Code)
	if e.Reason != "" {
		msg += fmt.Sprintf(" %q", e.Reason)
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// wanted reports whether the peer has ended the connection because it no longer needs it.
func (e *CloseError) wanted() bool {
	code := websocket.StatusCode(e.Code)
	return code == websocket.StatusNormalClosure || code == websocket.StatusNoStatusRcvd
}

// Unwrap returns Err and, for an orderly end, io.EOF.
func (e *CloseError) Unwrap() []error {
	var errs []error
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	switch websocket.StatusCode(e.Code) {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
		errs = append(errs, io.EOF)
	}
	return errs
}

// OutcomeError is the error of a call if it is not known whether the server received its request: the POST was answered
// with a 5xx status or not at all, and the answer to the call did not arrive within DialOptions.AnswerTimeout. The
// request may have been executed.
type OutcomeError struct {
	// Err is a *StatusError, or the error of the POST.
	Err error
}

// Error implements the error interface.
func (e *OutcomeError) Error() string {
	return fmt.Sprintf("acp: it is not known whether the server took the request: %v", e.Err)
}

// Unwrap returns Err.
func (e *OutcomeError) Unwrap() error { return e.Err }
