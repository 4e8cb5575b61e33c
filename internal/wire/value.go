package wire

import (
	"encoding/json"

	"github.com/acpgo/sdk/acp/codec"
)

// Encodable is a value that writes itself as JSON. Nil parameters are left out; a nil result is null.
// EncodeJSON is called with the writer's lock held: it must neither wait nor use a connection, unless the
// value is Authored.
type Encodable interface{ EncodeJSON(*codec.Encoder) }

// Authored makes of v a value that is encoded before any lock is taken, because that runs code of an author,
// which may wait, or use the connection that the value is sent on.
func Authored(v Encodable) Encodable { return authored{v} }

type authored struct{ Encodable }

// Plain is a value that encoding/json encodes, whose methods may be an author's. A panic of theirs is an error.
func Plain(v any) Encodable { return authored{plain{v}} }

type plain struct{ v any }

func (p plain) EncodeJSON(e *codec.Encoder) {
	defer func() {
		if r := recover(); r != nil {
			e.Failf("panic: %v", r)
		}
	}()
	b, err := json.Marshal(p.v)
	if err != nil {
		e.Fail(err)
		return
	}
	e.Raw(b)
}

// Ready returns what is sent in place of v: if v is Authored what it is encoded as, or a value that fails as it
// does. Who holds a lock while a value is sent makes it ready before.
func Ready(v Encodable) Encodable {
	a, ok := v.(authored)
	if !ok {
		return v
	}
	text, err := codec.Append(nil, a.Encodable)
	if err != nil {
		return unencodable{err}
	}
	return encoded(text)
}

// encoded is a value that was.
type encoded []byte

func (v encoded) EncodeJSON(e *codec.Encoder) { e.Raw(json.RawMessage(v)) }

// unencodable is a value that could not be.
type unencodable struct{ err error }

func (v unencodable) EncodeJSON(e *codec.Encoder) { e.Fail(v.err) }
