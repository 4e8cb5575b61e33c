package wire

import (
	"errors"
	"strings"

	"github.com/acpgo/sdk/codec"
)

// What programs that pass messages on have in common.

// Fast returns the stream as a FastStream: the stream itself if it is one, or a wrapper.
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

// MethodSuccessor is the method whose parameters are a message from or to the successor of a proxy.
const MethodSuccessor = "proxy/successor"

// AppendMessage appends a request, or a notification if id is nil, in an envelope of MethodSuccessor if it is wrapped.
// Empty parameters are left out.
func AppendMessage(dst []byte, id *ID, wrapped bool, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != nil {
		dst, _ = codec.Append(append(dst, `"id":`...), id) // an id can always be written
		dst = append(dst, ',')
	}
	if wrapped {
		dst = append(dst, `"method":"`+MethodSuccessor+`","params":{`...)
	}
	dst = codec.AppendString(append(dst, `"method":`...), method)
	if len(params) > 0 {
		dst = AppendLine(append(dst, `,"params":`...), params)
	}
	if wrapped {
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// Unwrap returns the message in the parameters of MethodSuccessor. Its own parameters are nil if there are none.
func Unwrap(d *codec.Decoder, envelope []byte) (method string, params []byte, err error) {
	d.Reset(envelope)
	methods, all, named := 0, 0, false
	for o := d.Object(); o.Next(); {
		switch string(o.Name()) {
		case "method":
			methods++
			if named = d.Kind() == '"'; named {
				method = d.Str()
			} else {
				d.Skip()
			}
		case "params":
			all++
			params = skipped(d)
		default:
			d.Skip()
		}
	}
	if string(params) == "null" {
		params = nil
	}
	switch {
	case d.End() != nil:
		return "", nil, errors.New("params is not an object")
	case methods > 1 || all > 1:
		return "", nil, errors.New("a member occurs twice")
	case !named:
		return "", nil, errors.New("method is not a string")
	case params != nil && params[0] != '{' && params[0] != '[':
		return "", nil, errors.New("params of the message inside is neither an object nor an array")
	}
	return method, params, nil
}
