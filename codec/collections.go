package codec

import (
	"encoding/json"
	"slices"
)

// EncodeStringMap writes an object of strings, its members sorted by name; nil is {}.
func EncodeStringMap(e *Encoder, m map[string]string) { encodeMap(e, m, (*Encoder).Str) }

// EncodeRawMap writes an object of any values, its members sorted by name; nil is {}.
func EncodeRawMap(e *Encoder, m map[string]json.RawMessage) { encodeMap(e, m, (*Encoder).Raw) }

func encodeMap[T any](e *Encoder, m map[string]T, value func(*Encoder, T)) {
	e.BeginObject()
	outer := len(e.keys)
	for k := range m {
		e.keys = append(e.keys, k)
	}
	keys := e.keys[outer:]
	slices.Sort(keys)
	for _, k := range keys {
		e.Key(k)
		value(e, m[k])
	}
	clear(e.keys[outer:]) // not keys: an inner map may have moved them
	e.keys = e.keys[:outer]
	e.EndObject()
}

// New reads a value into a new variable.
func New[T any, P decodable[T]](d *Decoder) *T {
	v, ok := d.room.(*T)
	if ok {
		d.room = nil
	} else {
		v = new(T)
	}
	P(v).DecodeJSON(d) // Decode has one indirect call for all types, with which a small update takes a third longer
	return v
}

type decodable[T any] interface {
	*T
	DecodeJSON(*Decoder)
}

// NewWith is New, but allocates space for an R together with the value, which the first call of New for an R uses while
// reading. Use it for values that nearly always hold a pointer to an R.
func NewWith[T, R any, P decodable[T]](d *Decoder) *T {
	v := new(With[T, R])
	d.room = &v.Inner
	P(&v.Value).DecodeJSON(d)
	d.room = nil
	return &v.Value
}

// fewItems is the initial capacity of a slice of values: most arrays have no more items.
const fewItems = 4

// DecodeStringMap reads an object of strings. The result is not nil unless reading fails.
func DecodeStringMap(d *Decoder) map[string]string { return decodeMap(d, (*Decoder).Str) }

// DecodeRawMap reads an object of any values. The result is not nil unless reading fails.
func DecodeRawMap(d *Decoder) map[string]json.RawMessage { return decodeMap(d, (*Decoder).Raw) }

func decodeMap[T any](d *Decoder, value func(*Decoder) T) map[string]T {
	m := map[string]T{}
	for o := d.Object(); o.Next(); {
		key := o.key()
		if _, ok := m[key]; ok {
			o.duplicate()
			break
		}
		m[key] = value(d)
	}
	if d.err != nil {
		return nil
	}
	return m
}
