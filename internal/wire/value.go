package wire

import (
	"encoding/json"

	"github.com/acpgo/sdk/codec"
)

// Encodable is a value that codec.Encode takes. Nil parameters are left out; a nil result is null. It is encoded with
// the writer's lock held: its methods must not block or use a connection, unless the value is Authored.
type Encodable any

// Authored returns a value like v that is encoded before any lock is taken, because encoding it runs code of an author,
// which may block, or use the connection on which the value is sent.
func Authored(v Encodable) Encodable { return authored{v} }

type authored struct{ v Encodable }

func (a authored) EncodeJSON(e *codec.Encoder) { codec.Encode(e, a.v) }

// Plain returns a value that encoding/json encodes, possibly with methods of an author. If these panic, that is an
// error.
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

// Ready returns the value to send in place of v: if v is Authored, the encoded value, or one that fails with the same
// error. A goroutine that holds a lock while a value is sent must call Ready before it takes the lock.
func Ready(v Encodable) Encodable {
	a, ok := v.(authored)
	if !ok {
		return v
	}
	text, err := codec.Append(nil, a.v)
	if err != nil {
		return unencodable{err}
	}
	return encoded(text)
}

// encoded is a value that has been encoded.
type encoded []byte

func (v encoded) EncodeJSON(e *codec.Encoder) { e.Raw(json.RawMessage(v)) }

// unencodable is a value that could not be encoded.
type unencodable struct{ err error }

func (v unencodable) EncodeJSON(e *codec.Encoder) { e.Fail(v.err) }
