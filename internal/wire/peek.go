package wire

import "github.com/acpgo/sdk/codec"

// Kind is the kind of a message.
type Kind = kind

// The kinds of messages.
const (
	KindInvalid      = kindInvalid // not a message
	KindRequest      = kindRequest
	KindNotification = kindNotification
	KindResponse     = kindResponse
)

// Message holds the parts of a message. Its slices refer to the line.
type Message struct {
	Kind   Kind
	ID     ID
	Method []byte
	Params []byte // begins with the parameters; nil if absent
	Result []byte // begins with the result of a response; nil if there is none
	// IDAt and IDEnd are the bounds of the id in the line of a request or response, perhaps with space after it; both are
	// 0 if there is none. Only Parse sets them.
	IDAt, IDEnd int
	// Failure is the answer to a line that is not a message, or the error of a response.
	Failure *Error
	// Broken is what Parse found wrong with a response, including one of KindInvalid that has neither result nor error.
	Broken error
}

// Parse reads all of a line, which may hold newlines, with d.
func Parse(d *codec.Decoder, line []byte) Message {
	env := parse(d, line)
	m := Message{
		Kind: env.kind, ID: env.id, Method: env.method, Params: env.params, Result: env.result,
		IDAt: env.idAt, IDEnd: env.idEnd, Failure: env.failure, Broken: env.broken,
	}
	if env.bare {
		m.Broken = errNeither
	}
	return m
}

// Peek is Parse for a line that the other side of a connection will parse anyway. If the line begins as most messages
// do, it is not read to its end, and nothing is allocated; Params and Result then include the rest of the message.
func Peek(d *codec.Decoder, line []byte) Message {
	u, ok := begin(line)
	if !ok {
		return Parse(d, line)
	}
	m := Message{Kind: u.kind, Method: u.method}
	switch u.kind {
	case kindResponse:
		m.ID, m.Result = IntID(u.id), u.rest
	case kindRequest:
		m.ID, m.Params = IntID(u.id), u.rest
	default:
		m.Params = u.rest
	}
	return m
}

// TextMember returns the string value of a member of the object at the beginning of raw, or nil if there is no such
// member or object. It is valid as long as raw, and is allocated only if the string has escape sequences.
func TextMember(d *codec.Decoder, raw []byte, name string) []byte {
	if len(raw) == 0 {
		return nil
	}
	d.Reset(raw)
	text, _ := d.LenientTag(name)
	return text
}
