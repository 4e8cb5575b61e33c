package codec

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Opt is a member that is absent, null or a value of type T. The zero Opt is absent.
//
// In encoding/json, tag a field of this type omitzero: without it, absent is written as null.
type Opt[T any] struct {
	value T
	state presence
}

type presence uint8

const (
	absent presence = iota
	null
	present
)

// Some returns an Opt with a value.
func Some[T any](v T) Opt[T] { return Opt[T]{v, present} }

// Null returns an Opt that is null.
func Null[T any]() Opt[T] { return Opt[T]{state: null} }

// Get returns the value, and whether there is one.
func (o Opt[T]) Get() (T, bool) { return o.value, o.state == present }

// Value returns the value, or T's zero value if there is none.
func (o Opt[T]) Value() T { return o.value }

// Or returns the value, or v if there is none.
func (o Opt[T]) Or(v T) T {
	if o.state == present {
		return o.value
	}
	return v
}

// Present reports whether there is a value.
func (o Opt[T]) Present() bool { return o.state == present }

// IsNull reports whether the member is present, but null.
func (o Opt[T]) IsNull() bool { return o.state == null }

// IsZero reports whether the member is absent.
func (o Opt[T]) IsZero() bool { return o.state == absent }

// Equal reports whether both are absent, both null, or both the same value, compared with T's method Equal if it has
// one, and otherwise with [reflect.DeepEqual].
//
//go:noinline
func (o Opt[T]) Equal(p Opt[T]) bool {
	if o.state != present || p.state != present {
		return o.state == p.state
	}
	if v, ok := any(o.value).(interface{ Equal(T) bool }); ok {
		return v.Equal(p.value)
	}
	return reflect.DeepEqual(o.value, p.value)
}

// MarshalJSON writes null if there is no value.
func (o Opt[T]) MarshalJSON() ([]byte, error) { return marshalOpt(o.state, &o.value) }

// UnmarshalJSON reads null or a value.
//
//go:noinline
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	var v T
	state, err := unmarshalOpt(data, &v)
	if err == nil {
		*o = Opt[T]{v, state}
	}
	return err
}

// marshalOpt and unmarshalOpt are the parts of MarshalJSON and UnmarshalJSON that do not depend on the type, so that
// the compiler makes them once.
func marshalOpt(state presence, value any) ([]byte, error) {
	if state != present {
		return []byte("null"), nil
	}
	return json.Marshal(value)
}

func unmarshalOpt(data []byte, value any) (presence, error) {
	if string(bytes.TrimSpace(data)) == "null" {
		return null, nil
	}
	return present, json.Unmarshal(data, value)
}
