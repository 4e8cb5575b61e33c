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
	// ErrConnectionGone is matched by a StatusError with 404 or 410: the server does not know the connection (any more),
	// or its session. A new one must be opened; see package reconnect.
	ErrConnectionGone engine.Sentinel = "acp: the server does not know the connection"
	// ErrUnauthorized is matched by a StatusError with 401 or 403, also after DialOptions.Header was called again.
	ErrUnauthorized engine.Sentinel = "acp: unauthorized"
	// ErrStreamTaken is matched by a StatusError with 409: somebody else reads the stream, or the server believes so.
	ErrStreamTaken engine.Sentinel = "acp: the stream has a receiver"
	// ErrTooLarge is matched by a StatusError with 413: the message is longer than the server, or a proxy before it,
	// accepts.
	ErrTooLarge engine.Sentinel = "acp: the message is too large for the server"
	// ErrBusy is matched by a StatusError with 429 or 503; StatusError.RetryAfter may say when to try again.
	ErrBusy engine.Sentinel = "acp: the server is busy"
)

// StatusError is what a client gets when a server refuses a request of HTTP, or a WebSocket. It matches
// ErrConnectionGone, ErrUnauthorized, ErrStreamTaken, ErrTooLarge or ErrBusy, by its status.
type StatusError struct {
	// Status is the status code.
	Status int
	// Text is the beginning of the body in one line, of at most 1 KiB of it. What is not visible is written as Go writes it in
	// a string, and *** stands for what the request sent to get access, as far as the server repeats it literally: values of
	// DialOptions.Header, and passwords and tokens in the URL.
	Text string
	// RetryAfter is what the server asks to wait, or 0.
	RetryAfter time.Duration
	// Size is, for 413, how many bytes the message had.
	Size int
}

// Error gives the status, and what the server said.
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

// Final reports whether it is no use to make the request again: the server refuses it, whatever the time. Package
// reconnect asks that.
func (e *StatusError) Final() bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooManyRequests:
		return false
	}
	return e.Status < 500
}

// CloseError is what either side gets when the other one closed a WebSocket, or broke it: Code 1006. It matches
// io.EOF if that was in an orderly way.
type CloseError struct {
	// Code is the status code of the WebSocket protocol: 1000 is the normal end, 1001 a server that shuts down.
	Code int
	// Reason is what the peer gave as the reason, at most 123 bytes, as in StatusError.Text.
	Reason string
	// Err is what broke the connection, or nil.
	Err error
}

// OutcomeError is what a call gets when it is not known whether the server took its request: the POST was answered
// with a status of 5xx, or not at all, and the answer did not come for DialOptions.AnswerTimeout. The request may
// have been done.
type OutcomeError struct {
	// Err is a *StatusError, or what broke the POST.
	Err error
}

// Error implements the error interface.
func (e *OutcomeError) Error() string {
	return fmt.Sprintf("acp: it is not known whether the server took the request: %v", e.Err)
}

// Unwrap returns Err.
func (e *OutcomeError) Unwrap() error { return e.Err }
