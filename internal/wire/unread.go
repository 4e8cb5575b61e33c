package wire

import (
	"errors"
	"strings"
)

// Fast returns the stream as a FastStream: the stream itself if it is one, or a wrapper that keeps its HalfCloser.
func Fast(s Stream) FastStream {
	if f, ok := s.(FastStream); ok {
		return f
	}
	return Wrap(s, Wrapper{})
}

// Unread is a message that a stream has dropped, or an answer that it knows to be lost. The stream continues.
type Unread struct {
	ID       ID    // null if it is not known
	Response bool  // it ends a call, which otherwise waits forever; if not, its sender should know
	Err      error // the reason
}

// AsUnread returns what the error of a Read says about a message. It returns false if the error ends the stream.
func AsUnread(err error) (Unread, bool) {
	if lost, ok := errors.AsType[callLost](err); ok {
		id, reason := lost.LostCall()
		return Unread{id, true, reason}, true
	}
	long, ok := errors.AsType[tooLong](err)
	if !ok {
		return Unread{}, false
	}
	id, response, _ := RecoverID(long.Ends())
	return Unread{id, response, long}, true
}

// Failure returns the error that takes the place of the answer, or answers the request.
func (u Unread) Failure() *Error {
	e := &Error{Code: codeInvalidRequest, Message: strings.TrimPrefix(u.Err.Error(), "acp: ")}
	if u.Response {
		e.Code = codeInternal
	}
	return e
}

// Answer returns the message with Failure.
func (u Unread) Answer() []byte { return ErrorLine(u.ID, u.Failure()) }

// ErrorLine returns the answer to a request that failed, or to a line that is not a message. Data that is not JSON is
// left out.
func ErrorLine(id ID, failure *Error) []byte {
	line, err := appendError(nil, &id, failure)
	if err != nil {
		line, _ = appendError(nil, &id, &Error{Code: failure.Code, Message: failure.Message}) // it cannot fail
	}
	return line
}
