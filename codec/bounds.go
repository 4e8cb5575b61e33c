package codec

// This file has the constraints of schemas on values beyond their types, which options of the tag codec say. Each
// returns an error that says how a value violates the constraint, or nil.

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

type bound func(reflect.Value) error

// newBounds returns the constraints among the options, for values of a type.
func newBounds(t reflect.Type, o options) (out []bound) {
	if names := o.names("member"); names != nil {
		out = append(out, func(v reflect.Value) error { return hasMembers(v, names) })
	}
	for _, option := range o {
		keyword, limit, _ := strings.Cut(option, "=")
		if b := newBound(keyword, limit, t); b != nil {
			out = append(out, b)
		}
	}
	return out
}

// newBound returns what an option demands, or nil if it is no constraint.
func newBound(option, limit string, t reflect.Type) bound {
	switch option {
	case "minLength":
		return atLeast(runes, limit, "length is %d, expected %d or more")
	case "maxLength":
		return atMost(runes, limit, "length is %d, expected %d at most")
	case "minItems":
		return atLeast(reflect.Value.Len, limit, "%d items, expected %d or more")
	case "maxItems":
		return atMost(reflect.Value.Len, limit, "%d items, expected %d at most")
	case "minProperties":
		return atLeast(reflect.Value.Len, limit, "%d members, expected %d or more")
	case "maxProperties":
		return atMost(reflect.Value.Len, limit, "%d members, expected %d at most")
	case "requestID":
		return func(v reflect.Value) error { return idInParams(v.Interface().(ID), false) }
	case "requestIDOrNull":
		return func(v reflect.Value) error { return idInParams(v.Interface().(ID), true) }
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return numeric(option, limit, t)
	}
	return nil
}

func runes(v reflect.Value) int { return utf8.RuneCountInString(v.String()) }

func atLeast(size func(reflect.Value) int, limit, format string) bound {
	n, _ := strconv.Atoi(limit) // the nearest int
	return func(v reflect.Value) error {
		if got := size(v); got < n {
			return fmt.Errorf(format, got, n)
		}
		return nil
	}
}

func atMost(size func(reflect.Value) int, limit, format string) bound {
	n, _ := strconv.Atoi(limit) // the nearest int
	return func(v reflect.Value) error {
		if got := size(v); got > n {
			return fmt.Errorf(format, got, n)
		}
		return nil
	}
}

// numeric returns the constraint of a keyword that bounds numbers.
func numeric(keyword, limit string, t reflect.Type) (check bound) {
	var err error
	switch {
	case t.Kind() == reflect.Float64:
		var most float64
		most, err = strconv.ParseFloat(limit, 64)
		check = func(v reflect.Value) error { return compare(keyword, v.Float(), most) }
	case t.Kind() >= reflect.Uint:
		var most uint64
		most, err = strconv.ParseUint(limit, 10, 64)
		check = func(v reflect.Value) error { return compare(keyword, v.Uint(), most) }
	default:
		var most int64
		most, err = strconv.ParseInt(limit, 10, 64)
		check = func(v reflect.Value) error { return compare(keyword, v.Int(), most) }
	}
	if err != nil {
		panic(err) // a fault of the generator
	}
	return check
}

func compare[T cmp.Ordered](keyword string, v, limit T) error {
	switch {
	case keyword == "minimum" && v < limit:
		return fmt.Errorf("%v is less than %v", v, limit)
	case keyword == "maximum" && v > limit:
		return fmt.Errorf("%v is greater than %v", v, limit)
	case keyword == "exclusiveMinimum" && v <= limit:
		return fmt.Errorf("%v is not greater than %v", v, limit)
	case keyword == "exclusiveMaximum" && v >= limit:
		return fmt.Errorf("%v is not less than %v", v, limit)
	}
	return nil
}

func hasMembers(v reflect.Value, names []string) error {
	for _, name := range names {
		if !v.MapIndex(reflect.ValueOf(name)).IsValid() {
			return fmt.Errorf("missing member %q", name)
		}
	}
	return nil
}

// isListed returns an error unless v, an enum, is one of the values that the schema lists.
func isListed(v reflect.Value) error {
	if x := v.Interface(); !x.(known).Known() {
		return fmt.Errorf("%v is not one of the values of %T", x, x)
	}
	return nil
}

var (
	errNullID = errors.New("an id here must not be null")
	errBigID  = errors.New("an id here must be a string or an integer of 64 bits")
)

// idInParams returns an error unless parameters may hold the request id: a string, a 64-bit integer or, if nullable is
// set, null.
func idInParams(id ID, nullable bool) error {
	switch {
	case id.kind == idNull && !nullable:
		return errNullID
	case id.kind == idText && id.str[0] != '"':
		d := Decoder{data: []byte(id.str), left: 1}
		if d.Int(64); d.err != nil {
			return errBigID
		}
	}
	return nil
}
