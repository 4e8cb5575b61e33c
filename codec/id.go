package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

type idKind uint8

const (
	idNull idKind = iota
	idInt
	idString
	idText // a number that is not an int64, or a string that is not text, kept unchanged
)

// ID is a JSON-RPC request id: a string, a number or null. The zero value is null. Two IDs are equal (==) if they have
// the same type and value; a number outside int64, or with a fraction, is kept and compared as text.
type ID struct {
	kind idKind
	num  int64
	str  string
}

// StringID returns a string id.
func StringID(s string) ID { return ID{kind: idString, str: s} }

// IntID returns an integer id.
func IntID(n int64) ID { return ID{kind: idInt, num: n} }

// IsNull reports whether id is null.
func (id ID) IsNull() bool { return id.kind == idNull }

// Int returns the value of an integer id.
func (id ID) Int() (n int64, ok bool) { return id.num, id.kind == idInt }

// Str returns the value of a string id.
func (id ID) Str() (s string, ok bool) {
	if id.kind != idString {
		return "", false
	}
	return id.str, true
}

// String returns the id as it is written in JSON.
func (id ID) String() string {
	b, err := Append(nil, &id)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// EncodeJSON writes the id.
func (id *ID) EncodeJSON(e *Encoder) {
	switch id.kind {
	case idInt:
		e.Int(id.num)
	case idString:
		e.Str(id.str)
	case idText:
		e.Raw(json.RawMessage(id.str))
	default:
		e.Null()
	}
}

var errBadID = errors.New("an id is a string, a number or null")

// DecodeJSON reads the id; anything but a string, a number or null is an error.
func (id *ID) DecodeJSON(d *Decoder) {
	switch d.Kind() {
	case '"':
		start := d.Offset()
		*id = StringID(d.Str())
		// An unpaired surrogate was replaced by another character; the id must be sent back unchanged.
		if raw := d.Slice(start); bytes.Contains(raw, []byte(`\u`)) && strings.ContainsRune(id.str, utf8.RuneError) {
			*id = ID{kind: idText, str: string(raw)}
		}
	case '0':
		start := d.Offset()
		d.Skip()
		text := string(d.Slice(start))
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
			*id = IntID(n)
		} else {
			*id = ID{kind: idText, str: text}
		}
	case 'n':
		d.Null()
		*id = ID{}
	default:
		d.Fail(errBadID)
	}
}

// MarshalJSON implements json.Marshaler.
func (id ID) MarshalJSON() ([]byte, error) { return Append(nil, &id) }

// UnmarshalJSON implements json.Unmarshaler.
func (id *ID) UnmarshalJSON(b []byte) error { return Unmarshal(b, id) }
