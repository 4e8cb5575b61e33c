package model

// This file lists the keywords that restrict values beyond their types. A new keyword needs a line here, and the
// function of codec that the line names. Package internal/gen/sample, which reads schemas independently, has its
// own list.

// MaxMembers is the maximum number of typed members of an object, because codec.Object counts them in one word.
const MaxMembers = 64

// Restricted is the kind of value that a keyword restricts.
type Restricted int

// The kinds of values that keywords restrict.
const (
	Strings Restricted = iota
	Numbers
	Slices
	Maps
)

// Limit is the kind of value that a keyword has in a schema.
type Limit int

// The kinds of limits.
const (
	Least  Limit = iota // a minimum count; 0 restricts nothing
	Most                // a maximum count
	Lower               // a minimum; it restricts nothing unless the type's minimum is less
	Upper               // likewise a maximum
	Above               // an exclusive minimum; it restricts nothing if the type's minimum is greater
	Below               // likewise an exclusive maximum
	Step                // a number of which values are multiples
	Regexp              // a regular expression
	Names               // a list of names
	// Distinct is a boolean: whether items must differ. Its Check is the last part of the names of two functions, which
	// encode and decode a value with another function.
	Distinct
)

// BoundKeyword is a keyword that restricts values.
type BoundKeyword struct {
	Keyword string // of JSON Schema
	Of      Restricted
	Limit   Limit
	Check   string // the function of codec that returns an error for a value that violates the limit
}

// BoundKeywords lists all supported keywords in the order in which they are checked.
var BoundKeywords = [...]BoundKeyword{
	{"minLength", Strings, Least, "MinLength"},
	{"maxLength", Strings, Most, "MaxLength"},
	{"pattern", Strings, Regexp, "Pattern"},
	{"minimum", Numbers, Lower, "Minimum"},
	{"maximum", Numbers, Upper, "Maximum"},
	{"exclusiveMinimum", Numbers, Above, "Above"},
	{"exclusiveMaximum", Numbers, Below, "Below"},
	{"multipleOf", Numbers, Step, "MultipleOf"},
	{"minItems", Slices, Least, "MinItems"},
	{"maxItems", Slices, Most, "MaxItems"},
	{"uniqueItems", Slices, Distinct, "Distinct"},
	{"required", Maps, Names, "Members"},
	{"minProperties", Maps, Least, "MinMembers"},
	{"maxProperties", Maps, Most, "MaxMembers"},
}

// Bounds has the limit of a type for each of BoundKeywords: a Go literal, for names a JSON list, or "" for no limit.
type Bounds [len(BoundKeywords)]string

// Distinct reports whether the items of an array must differ.
func (b Bounds) Distinct() bool {
	for i, limit := range b {
		if limit != "" && BoundKeywords[i].Limit == Distinct {
			return true
		}
	}
	return false
}

// BoundsOf returns the bounds of the type itself.
func BoundsOf(t Type) Bounds {
	switch t := t.(type) {
	case Basic:
		return t.Bounds
	case Slice:
		return t.Bounds
	case Map:
		return t.Bounds
	}
	return Bounds{}
}
