package model

// This file lists the keywords that restrict values beyond their types. A new keyword needs a line here, and one in
// codec/bounds.go. Package internal/test/sample, which reads schemas independently, has its own list.

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
	Least     Limit = iota // a minimum count; 0 restricts nothing
	Most                   // a maximum count
	Lower                  // a minimum; it restricts nothing unless the type's minimum is less
	Upper                  // likewise a maximum
	Above                  // an exclusive minimum; it restricts nothing if the type's minimum is greater
	Below                  // likewise an exclusive maximum
	Names                  // a list of names
	Unchecked              // any: generated code reads and writes values that violate it
)

// BoundKeyword is a keyword that restricts values.
type BoundKeyword struct {
	Keyword string // of JSON Schema
	Of      Restricted
	Limit   Limit
}

// BoundKeywords lists all supported keywords in the order in which they are checked.
var BoundKeywords = [...]BoundKeyword{
	{"minLength", Strings, Least},
	{"maxLength", Strings, Most},
	{"pattern", Strings, Unchecked},
	{"minimum", Numbers, Lower},
	{"maximum", Numbers, Upper},
	{"exclusiveMinimum", Numbers, Above},
	{"exclusiveMaximum", Numbers, Below},
	{"multipleOf", Numbers, Unchecked},
	{"minItems", Slices, Least},
	{"maxItems", Slices, Most},
	{"uniqueItems", Slices, Unchecked},
	{"required", Maps, Names},
	{"minProperties", Maps, Least},
	{"maxProperties", Maps, Most},
}

// Bounds has the limit of a type for each of BoundKeywords: a Go literal, JSON for names and what is not checked, or
// "" for no limit.
type Bounds [len(BoundKeywords)]string

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
