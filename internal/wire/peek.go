package wire

import "github.com/acpgo/sdk/acp/codec"

// Kind says what a message is.
type Kind = kind

// The kinds of messages.
const (
	KindInvalid      = kindInvalid // no message
	KindRequest      = kindRequest
	KindNotification = kindNotification
	KindResponse     = kindResponse
)

// Message is what a message says about itself. Its slices are parts of the line.
type Message struct {
	Kind   Kind
	ID     ID
	Method []byte
	Params []byte // what begins with the parameters; nil when absent
	Result []byte // what begins with the result of a response; nil when there is none
	// Failure is the answer to what is not a message, or the error of a response.
	Failure *Error
}

// Parse reads all of a line, which may hold newlines, with d.
func Parse(d *codec.Decoder, line []byte) Message {
	env := parse(d, line)
	return Message{Kind: env.kind, ID: env.id, Method: env.method, Params: env.params, Result: env.result, Failure: env.failure}
}

// Peek is Parse for a line that the other side of a connection will parse anyway. What begins as most messages do is
// not read to its end, and not allocated for; Params and Result then have the end of the message behind them.
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

// TextMember returns the string that the object at the beginning of raw has in a member, which is nil if there is
// none, as it is for what is not an object. It is valid for as long as raw, and allocates only when it is escaped.
func TextMember(d *codec.Decoder, raw []byte, name string) []byte {
	if len(raw) == 0 {
		return nil
	}
	d.Reset(raw)
	text, _ := d.LenientTag(name)
	return text
}
