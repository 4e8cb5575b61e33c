package codec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrSyntax is matched by errors about a text that is not JSON, as opposed to JSON that is not the expected value.
	// No leniency applies to it.
	ErrSyntax = errors.New("invalid JSON")
	// ErrDepth is matched by errors about a text that is nested more deeply than allowed. They match ErrSyntax too,
	// because the text was not read.
	ErrDepth = fmt.Errorf("%w: nested too deeply", ErrSyntax)
	// ErrItems is matched by errors about a text with more elements than allowed; see [Decoder.SetMaxItems]. They match
	// ErrSyntax too, because the text was not read to its end.
	ErrItems = fmt.Errorf("%w: too many elements", ErrSyntax)
)

// Error describes an error at a place in a JSON text.
type Error struct {
	// Pointer is the JSON pointer of the value, "" for the whole text. Very long names are cut off.
	Pointer string
	// Msg describes the error.
	Msg string
	// Err is the cause for errors.Is and errors.As, or nil. Msg already includes its text.
	Err error
	// Offset is the byte offset in the input, or in the output so far, at which the error was found.
	Offset int
}

// Error returns "pointer: message".
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Msg
	}
	return e.Pointer + ": " + e.Msg
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// newError returns err as an Error about the value at offset. If err is already an Error, its pointer is relative to
// that value.
func newError(offset int, err error) *Error {
	if inner, ok := errors.AsType[*Error](err); ok {
		return &Error{Pointer: inner.Pointer, Msg: inner.Msg, Err: err, Offset: offset}
	}
	return &Error{Msg: err.Error(), Err: err, Offset: offset}
}

// locate returns e with its pointer in text.
func (e *Error) locate(text []byte) *Error {
	out := *e
	out.Pointer = pointers(text, e.Offset)[0] + e.Pointer
	return &out
}

// frame is an array or object that is open at an offset of a text.
type frame struct {
	array bool
	index int    // index of the current element of an array
	name  []byte // name of the current member of an object, still escaped; nil before its colon
}

// pointers returns the JSON pointers of the values at offsets, which must ascend: a value extends from after its name
// or comma to the next comma. It reads text once, up to the last offset; up to there, text must be the beginning of
// valid JSON, or the pointers are of little use.
func pointers(text []byte, offsets ...int) []string {
	found := make([]string, 0, len(offsets))
	var open []frame
	var name []byte // the last string read
	for i := 0; ; i++ {
		for len(found) < len(offsets) && (i >= offsets[len(found)] || i >= len(text)) {
			found = append(found, pointer(open))
		}
		if len(found) == len(offsets) {
			return found
		}
		if c := text[i]; c == '{' || c == '[' {
			open = append(open, frame{array: c == '['})
			continue
		} else if c == '"' {
			end := closingQuote(text, i+1)
			name = text[i+1 : end]
			i = end
			continue
		}
		if len(open) == 0 {
			continue
		}
		switch top := &open[len(open)-1]; text[i] {
		case '}', ']':
			open = open[:len(open)-1]
		case ':':
			top.name = name
		case ',':
			top.index++
			top.name = nil
		}
	}
}

// closingQuote returns the offset of the quote that ends the string whose content starts at i, or
// len(text).
func closingQuote(text []byte, i int) int {
	for {
		i, _ = plain(text, i)
		switch {
		case i == len(text) || text[i] == '"':
			return i
		case text[i] == '\\':
			i = min(i+2, len(text))
		default:
			i++
		}
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// maxToken is how many bytes of a name, as written in the text, a pointer contains. Names may have any length, and one
// may be part of hundreds of pointers.
const maxToken = 256

func pointer(open []frame) string {
	var b strings.Builder
	for _, f := range open {
		switch {
		case f.array:
			b.WriteByte('/')
			b.WriteString(strconv.Itoa(f.index))
		case f.name != nil:
			raw, more := f.name, ""
			if len(raw) > maxToken {
				raw, more = raw[:maxToken], "…"
			}
			name, _ := unescape(raw, len(raw))
			b.WriteByte('/')
			b.WriteString(pointerEscapes.Replace(strings.ToValidUTF8(name, "") + more))
		}
	}
	return b.String()
}
