package codec

// This file has the constraints of schemas on values beyond their types. Each function returns an error that says how v
// violates the constraint, or nil; Check records it as a failure.

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// Check fails if err is not nil. The failure is about the value read last.
func (d *Decoder) Check(err error) {
	if err != nil {
		d.Fail(err)
	}
}

// Check fails if err is not nil. The failure is about the value written last.
func (e *Encoder) Check(err error) {
	if err != nil {
		e.Fail(err)
	}
}

// MinLength returns an error unless v has at least n characters.
func MinLength[T ~string](v T, n int) error {
	if got := utf8.RuneCountInString(string(v)); got < n {
		return fmt.Errorf("length is %d, expected %d or more", got, n)
	}
	return nil
}

// MaxLength returns an error unless v has at most n characters.
func MaxLength[T ~string](v T, n int) error {
	if got := utf8.RuneCountInString(string(v)); got > n {
		return fmt.Errorf("length is %d, expected %d at most", got, n)
	}
	return nil
}

// MinItems returns an error unless v has at least n items.
func MinItems[T any](v []T, n int) error { return atLeast(len(v), n, "items") }

// MaxItems returns an error unless v has at most n items.
func MaxItems[T any](v []T, n int) error { return atMost(len(v), n, "items") }

// Minimum returns an error if v is less than least.
func Minimum[T cmp.Ordered](v, least T) error {
	if v < least {
		return fmt.Errorf("%v is less than %v", v, least)
	}
	return nil
}

// Maximum returns an error if v is greater than most.
func Maximum[T cmp.Ordered](v, most T) error {
	if v > most {
		return fmt.Errorf("%v is greater than %v", v, most)
	}
	return nil
}

// Above returns an error unless v is greater than limit.
func Above[T cmp.Ordered](v, limit T) error {
	if v <= limit {
		return fmt.Errorf("%v is not greater than %v", v, limit)
	}
	return nil
}

// Below returns an error unless v is less than limit.
func Below[T cmp.Ordered](v, limit T) error {
	if v >= limit {
		return fmt.Errorf("%v is not less than %v", v, limit)
	}
	return nil
}

// Members returns an error unless v has members with those names.
func Members[T any](v map[string]T, names ...string) error {
	for _, name := range names {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("missing member %q", name)
		}
	}
	return nil
}

// MinMembers returns an error unless v has at least n members.
func MinMembers[T any](v map[string]T, n int) error { return atLeast(len(v), n, "members") }

// MaxMembers returns an error unless v has at most n members.
func MaxMembers[T any](v map[string]T, n int) error { return atMost(len(v), n, "members") }

// newBound returns the function that checks a keyword of the schema for values of a type.
func newBound(keyword, limit string, t reflect.Type) func(reflect.Value) error {
	count, _ := strconv.Atoi(limit)
	switch keyword {
	case "minLength":
		return func(v reflect.Value) error { return MinLength(v.String(), count) }
	case "maxLength":
		return func(v reflect.Value) error { return MaxLength(v.String(), count) }
	case "minItems":
		return func(v reflect.Value) error { return atLeast(v.Len(), count, "items") }
	case "maxItems":
		return func(v reflect.Value) error { return atMost(v.Len(), count, "items") }
	case "minProperties":
		return func(v reflect.Value) error { return atLeast(v.Len(), count, "members") }
	case "maxProperties":
		return func(v reflect.Value) error { return atMost(v.Len(), count, "members") }
	}
	var check func(reflect.Value) error
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

// compare checks a keyword that bounds numbers.
func compare[T cmp.Ordered](keyword string, v, limit T) error {
	switch keyword {
	case "minimum":
		return Minimum(v, limit)
	case "maximum":
		return Maximum(v, limit)
	case "exclusiveMinimum":
		return Above(v, limit)
	case "exclusiveMaximum":
		return Below(v, limit)
	}
	panic("codec: no keyword " + keyword) // a fault of the generator
}

func atLeast(got, n int, what string) error {
	if got < n {
		return fmt.Errorf("%d %s, expected %d or more", got, what, n)
	}
	return nil
}

func atMost(got, n int, what string) error {
	if got > n {
		return fmt.Errorf("%d %s, expected %d at most", got, what, n)
	}
	return nil
}

// Listed returns an error unless v is one of the values that the schema lists.
func Listed[T interface{ Known() bool }](v T) error {
	if !v.Known() {
		return fmt.Errorf("%v is not one of the values of %T", v, v)
	}
	return nil
}

var (
	errNullID = errors.New("an id here must not be null")
	errBigID  = errors.New("an id here must be a string or an integer of 64 bits")
)

// IDInParams returns an error unless parameters may hold the request id: a string, a 64-bit integer or, if nullable is
// set, null.
func IDInParams(id ID, nullable bool) error {
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
