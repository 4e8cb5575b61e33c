package codec

// This file has the equality of JSON values, for ids.

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// AppendCanonical appends a value, which is valid JSON, in a form that is the same for all texts of the value: the
// order of members, escape sequences and the way to write a number do not count. The form need not be JSON.
func AppendCanonical(dst, value []byte) []byte {
	d := Decoder{data: value, left: len(value)}
	return d.appendCanonical(dst)
}

// appendCanonical reads any value and appends it in a form that is the same for all texts of the value.
func (d *Decoder) appendCanonical(dst []byte) []byte {
	switch d.Kind() {
	case '{':
		type member struct{ name, value []byte }
		var members []member
		for o := d.Object(); o.Next(); {
			name := AppendString(nil, string(o.Name()))
			members = append(members, member{name, d.appendCanonical(nil)})
		}
		slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(append(append(append(dst, m.name...), ':'), m.value...), ',')
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for a := d.Array(); a.Next(); {
			dst = append(d.appendCanonical(dst), ',')
		}
		return append(dst, ']')
	case '"':
		return AppendString(dst, d.Str())
	case '0':
		return appendNumber(dst, d.number())
	}
	start := d.Offset()
	d.Skip()
	return append(dst, d.Slice(start)...)
}

// appendNumber appends a JSON number as an integer without zeros at its end, and an exponent.
func appendNumber(dst, text []byte) []byte {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(text)), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return append(dst, '0')
	}
	if negative {
		dst = append(dst, '-')
	}
	trimmed := strings.TrimRight(digits, "0")
	dst = append(dst, trimmed...)
	power, err := strconv.ParseInt(exponent, 10, 64)
	if err != nil && exponent != "" { // not a realistic number: compare its text
		return append(append(dst, 'E'), text...)
	}
	return strconv.AppendInt(append(dst, 'e'), power-int64(len(fraction))+int64(len(digits)-len(trimmed)), 10)
}
