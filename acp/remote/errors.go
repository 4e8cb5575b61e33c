// This file owns the errors of both sides.

package remote

import (
	"fmt"
	"net/http"
	"time"

	"github.com/acpgo/sdk/internal/engine"
)

// What ends a connection, or keeps one from being opened.
const (
	// ErrServerClosed is why a connection ended when its Server was shut down.
	ErrServerClosed engine.Sentinel = "acp: the server is shutting down"
	// ErrExpired is why a connection ended that for HandlerOptions.Expiry had neither a stream nor a POST.
	ErrExpired engine.Sentinel = "acp: the connection has expired"
	// ErrStalled is why a connection ended whose peer for a StallTimeout took nothing of what was sent.
	ErrStalled engine.Sentinel = "acp: the peer does not read"
	// ErrUnanswered is why a connection ended whose peer did not answer two pings.
	ErrUnanswered engine.Sentinel = "acp: the peer does not answer pings"
	// ErrForbidden, returned by HandlerOptions.Authenticate or wrapped in what that returns, is answered with 403
	// instead of 401: who asks is known, and may not.
	ErrForbidden engine.Sentinel = "acp: forbidden"
	// ErrInsecure is why a client did not connect: it would have sent a token over plain HTTP to another machine.
	ErrInsecure engine.Sentinel = "acp: a token over a connection without TLS"
	// ErrConnectionGone is matched by a StatusError that says that the server does not know the connection (any
	// more). A new one must be opened; see Reconnect.
	ErrConnectionGone engine.Sentinel = "acp: the server does not know the connection"
)

// StatusError is what a client gets when a server refuses a request of HTTP. It matches ErrConnectionGone if it is a 404
// or a 410 for a connection.
type StatusError struct {
	// Status is the status code.
	Status int
	// Method is the method of the message that was sent, or "" for a stream.
	Method string
	// Text is the beginning of the body, at most 1 KiB.
	Text string
	// RetryAfter is what the server asks to wait, or 0.
	RetryAfter time.Duration
	// Size is, for 413, how many bytes the message had.
	Size int

	gone bool
}

// Error gives the status, and what was sent.
func (e *StatusError) Error() string {
	what := e.Method
	if what == "" {
		what = "stream"
	}
	msg := fmt.Sprintf("%s: acp: HTTP status %d %s", what, e.Status, http.StatusText(e.Status))
	if e.Status == http.StatusRequestEntityTooLarge && e.Size > 0 {
		msg += fmt.Sprintf(" (%d bytes)", e.Size)
	}
	if e.Text != "" {
		msg += ": " + e.Text
	}
	return msg
}

// Is reports whether target is ErrConnectionGone and e says that.
func (e *StatusError) Is(target error) bool { return target == ErrConnectionGone && e.gone }

// CloseError is what either side gets when the other one closed a WebSocket, or broke it: Code 1006. It matches
// io.EOF if that was in an orderly way.
type CloseError struct {
	// Code is the status code of the WebSocket protocol: 1000 is the normal end, 1001 a server that shuts down.
	Code int
	// Reason is what the peer gave as the reason, at most 123 bytes.
	Reason string
	// Err is what broke the connection, or nil.
	Err error
}

// OutcomeError is what a call gets when it is not known whether the server took its request: the POST was answered
// with a status of 5xx, or not at all, and the answer did not come for DialOptions.AnswerTimeout. The request may
// have been done.
type OutcomeError struct {
	// Method is the method of the call.
	Method string
	// Err is a *StatusError, or what broke the POST.
	Err error
}

// Error implements the error interface.
func (e *OutcomeError) Error() string {
	return fmt.Sprintf("%s: acp: it is not known whether the server took the request: %v", e.Method, e.Err)
}

// Unwrap returns Err.
func (e *OutcomeError) Unwrap() error { return e.Err }
