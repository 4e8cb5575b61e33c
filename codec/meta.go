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
