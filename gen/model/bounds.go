package model

// This file owns the keywords that restrict values beyond their types. A new one is a line here, and the
// function of acp/codec that it names; package gen/sample, which reads schemas by itself, has its own list.

// Restricted says what a keyword is about.
type Restricted int

// What is restricted.
const (
	Strings Restricted = iota
	Numbers
	Slices
)

// Limit says what the value of a keyword is.
type Limit int

// The kinds of limits.
const (
	Least  Limit = iota // a number of things, of which 0 says nothing
	Most                // a number of things
	Lower               // a number, which says nothing where the type's least is not less
	Upper               // the same of the greatest
	Regexp              // a regular expression
)

// BoundKeyword is a keyword that restricts values.
type BoundKeyword struct {
	Keyword string // of JSON Schema
	Of      Restricted
	Limit   Limit
	Check   string // the function of acp/codec that returns what is wrong with a value, given the limit
}

// BoundKeywords are all that are known, in the order in which they are checked.
var BoundKeywords = [...]BoundKeyword{
	{"minLength", Strings, Least, "MinLength"},
	{"pattern", Strings, Regexp, "Pattern"},
	{"minimum", Numbers, Lower, "Minimum"},
	{"maximum", Numbers, Upper, "Maximum"},
	{"minItems", Slices, Least, "MinItems"},
	{"maxItems", Slices, Most, "MaxItems"},
}

// Bounds are the limits of a type by BoundKeywords, as Go literals, "" for none.
type Bounds [len(BoundKeywords)]string

// BoundsOf returns the bounds that a type itself has.
func BoundsOf(t Type) Bounds {
	switch t := t.(type) {
	case Basic:
		return t.Bounds
	case Slice:
		return t.Bounds
	}
	return Bounds{}
}
