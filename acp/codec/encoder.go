package codec

// This file owns writing JSON.

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
)

// Encoder appends one JSON value to a buffer. It is only had from [Append], and only until that
// returns.
type Encoder struct {
	buf   []byte
	start int // where the value begins in buf
	depth int
	err   *Error
	keys  []string // of the maps being written, the innermost last
}

// maxKeys is how many names of map members an Encoder keeps room for between uses.
const maxKeys = 1024

var encoders = sync.Pool{New: func() any { return new(Encoder) }}

// Append appends v to dst as JSON, without a newline, and returns the extended buffer; on error,
// an [*Error], it returns dst. It allocates only to extend the buffer.
//
// v must not contain itself.
func Append(dst []byte, v interface{ EncodeJSON(*Encoder) }) ([]byte, error) {
	e := encoders.Get().(*Encoder)
	e.buf, e.start = dst, len(dst)
	v.EncodeJSON(e)
	if e.depth != 0 || e.incomplete() {
		e.Fail(errors.New("incomplete value"))
	}
	out, err := e.buf, e.Err()
	*e = Encoder{keys: e.keys}
	if cap(e.keys) > maxKeys {
		e.keys = nil
	}
	encoders.Put(e)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// incomplete reports whether a value is due.
func (e *Encoder) incomplete() bool {
	if len(e.buf) == e.start {
		return true
	}
	last := e.buf[len(e.buf)-1]
	return last == ':' || last == ','
}

// Fail records that the value being written cannot be. The first failure counts: from then on
// nothing that is written matters.
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

// Err returns the first failure as an [*Error], or nil.
func (e *Encoder) Err() error {
	if e.err == nil {
		return nil
	}
	return e.err.located(e.buf[e.start:])
}

// BeginObject starts an object: members follow, then EndObject.
func (e *Encoder) BeginObject() { e.begin('{') }

// EndObject ends an object.
func (e *Encoder) EndObject() { e.end('}') }

// BeginArray starts an array: for each element Elem and a value follow, then EndArray.
func (e *Encoder) BeginArray() { e.begin('[') }

// EndArray ends an array.
func (e *Encoder) EndArray() { e.end(']') }

func (e *Encoder) begin(bracket byte) {
	if e.depth++; e.depth > MaxDepth {
		e.Fail(ErrDepth)
	}
	e.buf = append(e.buf, bracket)
}

func (e *Encoder) end(bracket byte) {
	if e.incomplete() {
		e.Fail(errors.New("missing value"))
	}
	e.depth--
	e.buf = append(e.buf, bracket)
}

// Name starts a member whose name is known to need no escaping.
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

// separated returns the buffer with a comma if one is due. Outside of strings, what was written last
// says so.
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

// Str writes a string, each byte that is not UTF-8 as U+FFFD.
func (e *Encoder) Str(v string) { e.buf = AppendString(e.buf, v) }

// Tag writes a member that is a string, name and value known to need no escaping.
func (e *Encoder) Tag(name, value string) {
	e.Name(name)
	b := append(e.buf, '"')
	b = append(b, value...)
	e.buf = append(b, '"')
}

// Raw writes a value that is JSON already, without the white space between its tokens. Anything
// else than exactly one valid value is an error.
func (e *Encoder) Raw(v json.RawMessage) {
	d := Decoder{data: v, left: MaxDepth - e.depth}
	d.Skip()
	if err := d.End(); err != nil {
		e.Fail(err)
		return
	}
	e.buf = appendCompact(e.buf, v)
}

// Members writes the members of raw, which must be an object, into the open object, except those
// with the given names.
func (e *Encoder) Members(raw json.RawMessage, except ...string) {
	start := len(e.buf)
	d := Decoder{data: raw, left: MaxDepth - e.depth + 1}
	for o := d.Object(); o.Next(); {
		name := string(o.Name())
		from := d.Offset()
		d.Skip()
		if !slices.Contains(except, name) {
			e.Key(name)
			e.buf = appendCompact(e.buf, d.Slice(from))
		}
	}
	if err := d.End(); err != nil {
		// It is about the open object, not the member written last, when a comma follows that.
		e.buf = e.buf[:start]
		e.Elem()
		e.Fail(err)
	}
}

// appendCompact appends valid JSON without the white space between its tokens.
func appendCompact(dst, v []byte) []byte {
	from := 0 // what precedes is written or white space
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
