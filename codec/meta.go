package codec

import (
	"encoding/json"
	"fmt"
)

// Meta is the member _meta: data that implementations attach to an object for each other. The protocol gives no meaning
// to it, except that root names are reserved for its own use and for W3C trace context (traceparent, tracestate,
// baggage). Values are kept as they were written.
//
// A nil Meta is absent; an empty one is written as {}.
type Meta map[string]json.RawMessage

// Get decodes the value of key into v, as [json.Unmarshal] does. It reports whether key is present.
func (m Meta) Get(key string, v any) (ok bool, err error) {
	raw, ok := m[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return true, fmt.Errorf("_meta %q: %w", key, err)
	}
	return true, nil
}

// Set encodes v, as [json.Marshal] does, as the value of key. It creates the map if it is nil.
func (m *Meta) Set(key string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("_meta %q: %w", key, err)
	}
	if *m == nil {
		*m = Meta{}
	}
	(*m)[key] = raw
	return nil
}

// EncodeMeta is for generated code: it writes the member _meta unless m is nil.
func EncodeMeta(e *Encoder, m Meta) {
	if m == nil {
		return
	}
	e.Name("_meta")
	EncodeRawMap(e, m)
}

// DecodeMeta is for generated code: it reads the value of the member _meta. Null is treated as absent; anything other
// than an object is dropped, which is a repair.
func DecodeMeta(d *Decoder) Meta {
	if d.Null() {
		return nil
	}
	return Lenient(d, decodeRawMap)
}

func decodeRawMap(d *Decoder) Meta { return DecodeRawMap(d) }
