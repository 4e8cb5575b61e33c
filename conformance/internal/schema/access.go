// Access to the values of a message. Rules use only these methods, never the tree itself.

package schema

import (
	"iter"
	"strconv"
)

// Member returns the value at the end of a path of member names, or nil if it is absent or null.
func (v *Value) Member(path ...string) *Value {
	v = v.find(path)
	if v.kind() == typeNull {
		return nil
	}
	return v
}

// find is like Member, but also returns null values.
func (v *Value) find(path []string) *Value {
	for _, name := range path {
		v = v.child(name)
	}
	return v
}

// Present reports whether there is a value, even null, at the end of the path.
func (v *Value) Present(path ...string) bool { return v.find(path) != nil }

// Given reports whether there is a value at the end of the path that is not null.
func (v *Value) Given(path ...string) bool { return v.Member(path...) != nil }

// Text returns a string, or "" if there is none.
func (v *Value) Text(path ...string) string { return v.find(path).string() }

// True returns a boolean, or false if there is none.
func (v *Value) True(path ...string) bool { return v.find(path).isTrue() }

// Integer returns a number, if it is an integer that fits an int64.
func (v *Value) Integer(path ...string) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(v.find(path).number()), 10, 64)
	return n, err == nil
}

// Decimal returns a number as the nearest float64.
func (v *Value) Decimal() (float64, bool) {
	n, err := strconv.ParseFloat(string(v.number()), 64)
	return n, err == nil
}

// Items yields the elements of an array, if there is one.
func (v *Value) Items(path ...string) iter.Seq2[int, *Value] {
	return func(yield func(int, *Value) bool) {
		array := v.find(path)
		if array.kind() != typeArray {
			return
		}
		i := 0
		for item := range array.children() {
			if !yield(i, item.Member()) {
				return
			}
			i++
		}
	}
}

// Len returns the number of elements of an array, or of members of an object.
func (v *Value) Len(path ...string) (n int) {
	for range v.find(path).children() {
		n++
	}
	return n
}

// Members yields the members of an object in order.
func (v *Value) Members(path ...string) iter.Seq2[string, *Value] {
	return func(yield func(string, *Value) bool) {
		object := v.find(path)
		if object.kind() != typeObject {
			return
		}
		for item := range object.children() {
			if !yield(item.name(), item.Member()) {
				return
			}
		}
	}
}

// IsObject, IsArray, IsText and IsBoolean report the JSON type of a value.
func (v *Value) IsObject() bool  { return v.kind() == typeObject }
func (v *Value) IsArray() bool   { return v.kind() == typeArray }
func (v *Value) IsText() bool    { return v.kind() == typeString }
func (v *Value) IsBoolean() bool { return v.kind() == typeBoolean }
