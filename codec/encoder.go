package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
)

// Encoder appends one JSON value to a buffer. Only [Append] provides one, which is valid until Append returns.
type Encoder struct {
	buf   []byte
	start int // position in buf at which the value begins
	depth int
	err   *Error
	keys  []string // names of the maps being written, innermost last

	embedding bool     // the next object continues the open one
	names     []string // as passed to Embed
	beside    beside
}

// beside tells which members of the open object an embedded value must not write again: names[from:] of the Encoder, in
// the object at the given depth.
type beside struct{ from, depth int }

// maxKeys is the number of names of map members for which an Encoder keeps space between uses.
const maxKeys = 1024

var encoders = sync.Pool{New: func() any { return new(Encoder) }}

// Append appends v to dst as JSON, as [Encode] writes it, without a newline, and returns the extended buffer; on
// error, an [*Error], it returns dst. It allocates only to extend the buffer.
//
// v must not contain itself.
func Append(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*Encoder)
	e.buf, e.start = dst, len(dst)
	Encode(e, v)
	if e.depth != 0 || e.incomplete() {
		e.Fail(errors.New("incomplete value"))
	}
	out, err := e.buf, e.Err()
	e.buf, e.depth, e.err = nil, 0, nil
	e.embedding, e.beside, e.names = false, beside{}, e.names[:0]
	if cap(e.keys) > maxKeys {
		e.keys = nil
	}
	encoders.Put(e)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// incomplete reports whether a value must follow.
func (e *Encoder) incomplete() bool {
	if len(e.buf) == e.start {
		return true
	}
	last := e.buf[len(e.buf)-1]
	return last == ':' || last == ','
}

// Fail records that the current value cannot be written. The first failure counts: after it, further output is ignored.
func (e *Encoder) Fail(err error) {
	if e.err == nil {
		e.err = newError(len(e.buf)-e.start, err)
	}
}

// Failf is Fail with a formatted error.
func (e *Encoder) Failf(format string, args ...any) {
	if e.err == nil {
		e.Fail(fmt.Errorf(format, args...))
	}
}

// FailObject is Failf about the open object, rather than the member that was written last.
func (e *Encoder) FailObject(format string, args ...any) {
	e.Elem() // after a comma, failures are about the enclosing value
	e.Failf(format, args...)
}

// failIn is Failf or, if inside is set, FailObject.
func (e *Encoder) failIn(inside bool, format string, args ...any) {
	if inside {
		e.Elem()
	}
	e.Failf(format, args...)
}

// Err returns the first failure as an [*Error], or nil.
func (e *Encoder) Err() error {
	if e.err == nil {
		return nil
	}
	return e.err.locate(e.buf[e.start:])
}

// BeginObject starts an object: members follow, then EndObject.
func (e *Encoder) BeginObject() { e.begin('{') }

// EndObject ends an object.
func (e *Encoder) EndObject() { e.end('}') }

// BeginArray starts an array: Elem and a value follow for each element, then EndArray.
func (e *Encoder) BeginArray() { e.begin('[') }

// EndArray ends an array.
func (e *Encoder) EndArray() { e.end(']') }

func (e *Encoder) begin(bracket byte) {
	if e.depth++; e.depth > MaxDepth {
		e.Fail(ErrDepth)
	}
	if e.embedding {
		e.join(bracket)
		return
	}
	e.buf = append(e.buf, bracket)
}

// join makes the value that Embed writes continue the open object, if it is an object too.
func (e *Encoder) join(bracket byte) {
	e.embedding = false
	if bracket != '{' {
		e.Fail(errNotObject)
	}
}

var errNotObject = errors.New("expected an object")

// endVariant fails unless what was written is an object.
func (e *Encoder) endVariant() {
	if e.embedding {
		e.embedding = false
		e.Fail(errNotObject)
	}
}

// embed writes the members of v, which must write an object, into the open object. If v is an unknown variant, which is
// the unchanged object, the members with the given names are left out because they have already been written.
func (e *Encoder) embed(v any, names ...string) {
	was := e.beside
	if len(names) > 0 {
		if was.depth != e.depth {
			e.beside = beside{len(e.names), e.depth}
		}
		e.names = append(e.names, names...)
	}
	e.embedding = true
	e.depth--
	Encode(e, v)
	e.depth++
	if e.embedding {
		e.embedding = false
		e.Fail(errNotObject)
	} else if e.err == nil {
		e.buf = e.buf[:len(e.buf)-1] // remove the brace: the object stays open
	}
	e.names = e.names[:len(e.names)-len(names)]
	e.beside = was
}

func (e *Encoder) end(bracket byte) {
	if e.incomplete() {
		e.Fail(errors.New("missing value"))
	}
	e.depth--
	e.buf = append(e.buf, bracket)
}

// Name starts a member whose name needs no escaping.
func (e *Encoder) Name(name string) {
	b := append(e.separated(), '"')
	b = append(b, name...)
	e.buf = append(b, `":`...)
}

// Key starts a member of any name.
func (e *Encoder) Key(name string) {
	e.Elem()
	e.buf = append(AppendString(e.buf, name), ':')
}

// Elem starts an element of an array.
func (e *Encoder) Elem() { e.buf = e.separated() }

// separated returns the buffer with a comma if one is needed, which the last byte outside of strings tells.
func (e *Encoder) separated() []byte {
	if len(e.buf) > e.start {
		switch e.buf[len(e.buf)-1] {
		case '{', '[':
		case ':', ',':
			e.Fail(errors.New("missing value"))
		default:
			return append(e.buf, ',')
		}
	}
	return e.buf
}

// Null writes null.
func (e *Encoder) Null() { e.buf = append(e.buf, "null"...) }

// Bool writes true or false.
func (e *Encoder) Bool(v bool) { e.buf = strconv.AppendBool(e.buf, v) }

// Int writes an integer.
func (e *Encoder) Int(v int64) { e.buf = strconv.AppendInt(e.buf, v, 10) }

// Uint writes an integer.
func (e *Encoder) Uint(v uint64) { e.buf = strconv.AppendUint(e.buf, v, 10) }

// Float writes a number in the shortest form that reads back as v, as encoding/json does. NaN and
// the infinities are errors.
func (e *Encoder) Float(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.Failf("%v is not a JSON number", v)
		return
	}
	if abs := math.Abs(v); abs == 0 || 1e-6 <= abs && abs < 1e21 {
		e.buf = strconv.AppendFloat(e.buf, v, 'f', -1, 64)
		return
	}
	e.buf = strconv.AppendFloat(e.buf, v, 'e', -1, 64)
	if n := len(e.buf); string(e.buf[n-4:n-1]) == "e-0" {
		e.buf = append(e.buf[:n-2], e.buf[n-1])
	}
}

// Str writes a string. Each byte that is not UTF-8 is written as U+FFFD.
func (e *Encoder) Str(v string) { e.buf = AppendString(e.buf, v) }

// Raw writes a value that is already JSON, without the white space between its tokens. Anything other than exactly one
// valid value is an error.
func (e *Encoder) Raw(v json.RawMessage) {
	d := Decoder{data: v, left: MaxDepth - e.depth}
	d.Skip()
	if err := d.End(); err != nil {
		e.Fail(err)
		return
	}
	e.buf = appendCompact(e.buf, v)
}

// RawObject is Raw for a value that must be an object.
func (e *Encoder) RawObject(v json.RawMessage) {
	d := Decoder{data: v}
	switch {
	case d.space() != '{':
		e.Failf("an unknown variant must be an object")
	case e.embedding:
		e.BeginObject()
		e.Members(v)
		e.EndObject()
	default:
		e.Raw(v)
	}
}

// CheckTag fails if raw, the object of a variant that the package does not know, does not have the string tag as its
// member name, because a receiver would take it for another variant. An empty tag means any. CheckTag also fails if
// decode, which reads the variants of the union, refuses or repairs raw, because the package then does know the tag.
func (e *Encoder) CheckTag(name, tag string, raw json.RawMessage, decode func(*Decoder)) {
	got, ok := NewDecoder(raw).Tag(name)
	switch {
	case !ok:
		e.failVariant("an unknown variant must be an object with the string %q", name)
		return
	case tag != "" && string(got) != tag:
		e.failVariant("an unknown variant has the %s %.64q, but its tag is %.64q", name, got, tag)
		return
	}
	d := NewDecoder(raw)
	decode(d)
	if err := d.End(); err != nil {
		e.failVariant("a variant with the %s %.64q: %w", name, got, err)
	} else if repairs := d.Repairs(); len(repairs) > 0 {
		e.failVariant("a variant with the %s %.64q: %s: %s", name, got, repairs[0].Pointer, repairs[0].Msg)
	}
}

// CheckMembers fails if raw, the object of a variant that the package does not know, lacks one of the members that the
// schema requires of such variants: names, each followed by the kinds as in [Decoder.Fits].
func (e *Encoder) CheckMembers(raw json.RawMessage, members ...string) {
	for i := 0; i < len(members); i += 2 {
		if !NewDecoder(raw).Fits(members[i : i+2]...) {
			e.failVariant("an unknown variant must have the member %q, of the type that the schema says", members[i])
		}
	}
}

// failVariant is Failf about the value that must follow, or otherwise about the open object; a variant is written as
// one of these.
func (e *Encoder) failVariant(format string, args ...any) {
	if !e.incomplete() {
		e.Elem() // as in FailObject
	}
	e.Failf(format, args...)
}

// Members writes the members of raw, which must be an object, into the open object, except those
// with the given names.
func (e *Encoder) Members(raw json.RawMessage, except ...string) {
	var written []string // names written by the objects in which this one is embedded
	if e.beside.depth == e.depth {
		written = e.names[e.beside.from:]
	}
	start := len(e.buf)
	d := Decoder{data: raw, left: MaxDepth - e.depth + 1}
	for o := d.Object(); o.Next(); {
		name := string(o.Name())
		from := d.Offset()
		d.Skip()
		if !slices.Contains(except, name) && !slices.Contains(written, name) {
			e.Key(name)
			e.buf = appendCompact(e.buf, d.Slice(from))
		}
	}
	if err := d.End(); err != nil {
		e.buf = e.buf[:start]
		e.Elem() // as in FailObject
		e.Fail(err)
	}
}

// appendCompact appends valid JSON without the white space between its tokens.
func appendCompact(dst, v []byte) []byte {
	from := 0 // everything before it is written or white space
	for i := 0; i < len(v); i++ {
		if c := v[i]; c == '"' {
			i = closingQuote(v, i+1)
		} else if c <= ' ' {
			dst = append(dst, v[from:i]...)
			from = i + 1
		}
	}
	return append(dst, v[from:]...)
}
