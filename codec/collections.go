package codec

import (
	"encoding/json"
	"slices"
)

// EncodeString writes a string.
func EncodeString[T ~string](e *Encoder, v T) { e.Str(string(v)) }

// EncodeInt writes an integer.
func EncodeInt[T ~int8 | ~int16 | ~int32 | ~int64](e *Encoder, v T) { e.Int(int64(v)) }

// EncodeUint writes an integer.
func EncodeUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](e *Encoder, v T) { e.Uint(uint64(v)) }

// EncodeNull writes null, for a type that has no other value.
func EncodeNull(e *Encoder, _ struct{}) { e.Null() }

// EncodeValue writes a value of a type that encodes itself.
func EncodeValue[T any](e *Encoder, v T) {
	Encode(e, &v)
}

// EncodePointer writes the value that v points to. It stops at the first failure, which bounds the depth of a value
// that contains itself.
func EncodePointer[T any](e *Encoder, v *T) {
	switch {
	case v == nil:
		e.Failf("a nil %T", v)
	case e.err == nil:
		Encode(e, v)
	}
}

// EncodeNullable writes null, or a value with enc.
func EncodeNullable[T any](e *Encoder, o Opt[T], enc func(*Encoder, T)) {
	if o.state >= present {
		enc(e, o.value)
	} else {
		e.Null()
	}
}

// EncodeStrings writes an array of strings; nil is [].
func EncodeStrings[S ~[]T, T ~string](e *Encoder, s S) {
	e.BeginArray()
	for _, v := range s {
		e.Elem()
		e.Str(string(v))
	}
	e.EndArray()
}

// EncodeSlice writes an array; nil is [].
func EncodeSlice[T any](e *Encoder, s []T) {
	e.BeginArray()
	for i := range s {
		e.Elem()
		Encode(e, &s[i])
	}
	e.EndArray()
}

// EncodeSliceFunc is EncodeSlice for items that do not encode themselves: enc writes each.
func EncodeSliceFunc[T any](e *Encoder, s []T, enc func(*Encoder, T)) {
	e.BeginArray()
	for _, v := range s {
		e.Elem()
		enc(e, v)
	}
	e.EndArray()
}

// EncodeMap writes an object, its members sorted by name; nil is {}.
func EncodeMap[T any](e *Encoder, m map[string]T) {
	v := new(T)
	encodeMap(e, m, func(e *Encoder, value T) {
		*v = value
		Encode(e, v)
	})
}

// EncodeMapFunc is EncodeMap for values that do not encode themselves: enc writes each.
func EncodeMapFunc[T any](e *Encoder, m map[string]T, enc func(*Encoder, T)) { encodeMap(e, m, enc) }

// EncodeStringMap writes an object of strings, its members sorted by name; nil is {}.
func EncodeStringMap(e *Encoder, m map[string]string) { encodeMap(e, m, (*Encoder).Str) }

// EncodeRawMap writes an object of any values, its members sorted by name; nil is {}.
func EncodeRawMap(e *Encoder, m map[string]json.RawMessage) { encodeMap(e, m, (*Encoder).Raw) }

// EncodeExtra writes members that a schema allows without naming them, sorted by name, into the open object. None of
// them may have one of the given names, which are written separately.
func EncodeExtra[T any](e *Encoder, m map[string]T, enc func(*Encoder, T), names ...string) {
	if len(m) == 0 {
		return
	}
	for _, name := range names {
		if _, ok := m[name]; ok {
			e.FailObject("the extra member %.64q is one that has a field", name)
			return
		}
	}
	writeMembers(e, m, enc)
}

// DecodeExtra reads the current member of o, which the schema allows without naming it, into m.
func DecodeExtra[T any](o *Object, m *map[string]T, dec func(*Decoder) T) {
	name := o.key()
	if _, ok := (*m)[name]; ok {
		o.duplicate()
		return
	}
	if *m == nil {
		*m = map[string]T{}
	}
	v := dec(o.d)
	(*m)[name] = v
}

func encodeMap[T any](e *Encoder, m map[string]T, value func(*Encoder, T)) {
	e.BeginObject()
	writeMembers(e, m, value)
	e.EndObject()
}

// writeMembers writes members into the open object, sorted by name.
func writeMembers[T any](e *Encoder, m map[string]T, value func(*Encoder, T)) {
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
}

// New reads a value into a new variable.
func New[T any](d *Decoder) *T {
	v, ok := d.room.(*T)
	if ok {
		d.room = nil
	} else {
		v = new(T)
	}
	Decode(d, v)
	return v
}

// NewWith is New, but allocates space for an R together with the value, which the first call of New for an R uses while
// reading. Use it for values that nearly always hold a pointer to an R.
func NewWith[T, R any](d *Decoder) *T {
	v := new(struct {
		value T
		inner R
	})
	d.room = &v.inner
	Decode(d, &v.value)
	d.room = nil
	return &v.value
}

// Lenient reads a value with dec. If that fails, the value is dropped, which is a repair, and Lenient returns T's zero
// value.
func Lenient[T any](d *Decoder, dec func(*Decoder) T) T {
	m := d.Mark()
	v := dec(d)
	if d.Recover(m) {
		var zero T
		return zero
	}
	return v
}

// LenientValue is Lenient for types that decode themselves.
func LenientValue[T any](d *Decoder, v *T) {
	m := d.Mark()
	Decode(d, v)
	if d.Recover(m) {
		var zero T
		*v = zero
	}
}

// DecodeString reads a string.
func DecodeString[T ~string](d *Decoder) T { return T(d.Str()) }

// DecodeIntern reads a string that may occur repeatedly; see [Decoder.Intern].
func DecodeIntern[T ~string](d *Decoder) T { return T(d.Intern()) }

// DecodeInt reads an integer that fits in T.
func DecodeInt[T ~int8 | ~int16 | ~int32 | ~int64](d *Decoder) T { return T(d.Int(bitsOf[T]())) }

// DecodeUint reads an integer that fits in T.
func DecodeUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](d *Decoder) T { return T(d.Uint(bitsOf[T]())) }

// DecodeNull reads null, for a type that has no other value.
func DecodeNull(d *Decoder) struct{} {
	if !d.Null() {
		d.mismatch("null")
	}
	return struct{}{}
}

// DecodeValue reads a value of a type that decodes itself.
func DecodeValue[T any](d *Decoder) T {
	var v T
	Decode(d, &v)
	return v
}

// bitsOf returns the size of an integer type.
func bitsOf[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64]() int {
	bits := 8
	for one := T(1); one<<(bits-1)<<1 != 0; bits *= 2 {
	}
	return bits
}

// fewItems is the initial capacity of a slice of values: most arrays have no more items.
const fewItems = 4

// grown returns s with a zero value appended.
func grown[T any](s []T) []T {
	var zero T
	if cap(s) == 0 {
		s = make([]T, 0, fewItems)
	}
	return append(s, zero)
}

// kept returns s, or nil if the Decoder has failed.
func kept[T any](d *Decoder, s []T) []T {
	if d.err != nil {
		return nil
	}
	return s
}

// DecodeStrings reads an array of strings. The result is not nil unless reading fails.
func DecodeStrings[T ~string](d *Decoder) []T {
	s := []T{}
	for a := d.Array(); a.Next(); {
		s = append(s, T(d.Str()))
	}
	return kept(d, s)
}

// DecodeStringsLenient is DecodeStrings, but drops the elements that are not strings. Each is a repair.
func DecodeStringsLenient[T ~string](d *Decoder) []T {
	s := []T{}
	for a := d.Array(); a.Next(); {
		m := d.Mark()
		v := T(d.Str())
		if !d.Recover(m) {
			s = append(s, v)
		}
	}
	return kept(d, s)
}

// DecodeSlice reads an array. The result is not nil unless reading fails.
func DecodeSlice[T any](d *Decoder) []T {
	s := []T{}
	for a := d.Array(); a.Next(); {
		s = grown(s)
		Decode(d, &s[len(s)-1])
	}
	return kept(d, s)
}

// DecodeSliceLenient is DecodeSlice, but drops the elements that cannot be read. Each is a repair.
func DecodeSliceLenient[T any](d *Decoder) []T {
	s := []T{}
	for a := d.Array(); a.Next(); {
		m := d.Mark()
		s = grown(s)
		Decode(d, &s[len(s)-1])
		if d.Recover(m) {
			s = slices.Delete(s, len(s)-1, len(s))
		}
	}
	return kept(d, s)
}

// DecodeSliceFunc is DecodeSlice for items that do not decode themselves: dec reads each.
func DecodeSliceFunc[T any](d *Decoder, dec func(*Decoder) T) []T {
	s := []T{}
	for a := d.Array(); a.Next(); {
		s = append(s, dec(d))
	}
	return kept(d, s)
}

// DecodeSliceFuncLenient is DecodeSliceFunc, but drops the elements that cannot be read. Each is a repair.
func DecodeSliceFuncLenient[T any](d *Decoder, dec func(*Decoder) T) []T {
	s := []T{}
	for a := d.Array(); a.Next(); {
		m := d.Mark()
		v := dec(d)
		if !d.Recover(m) {
			s = append(s, v)
		}
	}
	return kept(d, s)
}

// DecodeMap reads an object whose member names are not known beforehand. The result is not nil unless reading fails.
func DecodeMap[T any](d *Decoder) map[string]T {
	v := new(T)
	return decodeMap(d, func(d *Decoder) T {
		var zero T
		*v = zero
		Decode(d, v)
		return *v
	})
}

// DecodeMapFunc is DecodeMap for values that do not decode themselves: dec reads each.
func DecodeMapFunc[T any](d *Decoder, dec func(*Decoder) T) map[string]T { return decodeMap(d, dec) }

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
