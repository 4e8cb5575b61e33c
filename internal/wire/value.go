// This file owns the values that are sent: who encodes them, and when.

package wire

import (
	"encoding/json"

	"github.com/acpgo/sdk/acp/codec"
)

// Encodable is a value that writes itself as JSON. Nil parameters are left out; a nil result is null.
// EncodeJSON is called with the writer's lock held: it must neither wait nor use a connection, unless the
// value is Authored.
type Encodable interface{ EncodeJSON(*codec.Encoder) }

// Authored is an Encodable that runs code of an author, which may wait, or use the connection that it is sent
// on: it is encoded before any lock is taken.
type Authored interface {
	Encodable
	// Authored does nothing.
	Authored()
}

// Plain is a value that encoding/json encodes, whose methods may be an author's. A panic of theirs is an error.
func Plain(v any) Encodable { return plain{v} }

type plain struct{ v any }

func (plain) Authored() {}

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
	if _, ok := v.(Authored); !ok {
		return v
	}
	text, err := codec.Append(nil, v)
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
