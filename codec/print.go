package codec

import (
	"fmt"
	"unicode/utf8"
)

// maxText is how many bytes of a value are printed.
const maxText = 1024

// Text returns v as JSON, cut off after about a thousand bytes. It is meant for the String methods of generated types.
func Text(v any) string {
	out, err := Append(nil, v)
	if err != nil {
		return "!(" + err.Error() + ")"
	}
	return cut(string(out))
}

// String returns "absent", "null" or the value as fmt prints it with %+v, cut off after about a thousand
// bytes.
//
//go:noinline
func (o Opt[T]) String() string {
	switch o.state {
	case absent:
		return "absent"
	case null:
		return "null"
	}
	return cut(fmt.Sprintf("%+v", o.value))
}

// cut returns the beginning of a long text, and how long that is.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:end], len(text))
}
