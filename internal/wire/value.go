// This file owns the values that are sent: who encodes them, and when.

package wire

import (
	"encoding/json"

	"github.com/acpgo/sdk/acp/codec"
)

// Encodable is a value that writes itself as JSON. Nil parameters are left out; a nil result is null.
// EncodeJSON is called with the writer's lock held: it must neither wait nor use a connection. A value of
// which that is not known is sent as Plain.
type Encodable interface{ EncodeJSON(*codec.Encoder) }

// Plain is a value that encoding/json encodes. Its methods may be an author's, which wait, use the
// connection, or panic; it is encoded before any lock is taken.
func Plain(v any) Encodable { return plain{v} }

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

// encoded is a value that was.
type encoded []byte

func (v encoded) EncodeJSON(e *codec.Encoder) { e.Raw(json.RawMessage(v)) }

// Prepare encodes a Plain value, and returns what is sent in its place; of others it returns the value. Who
// holds a lock while a value is sent prepares it before. The error is a *codec.Error.
func Prepare(v Encodable) (Encodable, error) {
	p, ok := v.(plain)
	if !ok {
		return v, nil
	}
	text, err := codec.Append(nil, p)
	if err != nil {
		return nil, err
	}
	return encoded(text), nil
}
