package model

// The keywords that restrict values beyond their types. A new one is a line here, and the function of acp/codec that it
// names; package internal/gen/sample, which reads schemas by itself, has its own list.

// MaxMembers is the maximum number of typed members of an object, because codec.Object counts them in one word.
const MaxMembers = 64

// Restricted is the kind of thing that a keyword restricts.
type Restricted int

// What is restricted.
const (
	Strings Restricted = iota
	Numbers
	Slices
	Maps
)

// Limit is the kind of value that a keyword has.
type Limit int

// The kinds of limits.
const (
	Least  Limit = iota // a number of things, of which 0 says nothing
	Most                // a number of things
	Lower               // a number, which says nothing where the type's least is not less
	Upper               // the same of the greatest
	Above               // a number that is not a value itself; says nothing where the type's least is greater
	Below               // the same of the greatest
	Step                // a number that values are multiples of
	Regexp              // a regular expression
	Names               // a list of names
	// Distinct says whether items must differ. Check is the end of the names of two functions, which write and
	// read a value by another function.
	Distinct
)

// BoundKeyword is a keyword that restricts values.
type BoundKeyword struct {
	Keyword string // of JSON Schema
	Of      Restricted
	Limit   Limit
	Check   string // the function of acp/codec that returns what is wrong with a value, given the limit
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

// Bounds are the limits of a type by BoundKeywords, as Go literals or, of names, as a JSON list; "" for none.
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

// BoundsOf returns the bounds that a type itself has.
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
