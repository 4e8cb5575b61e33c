// Access to the values of a message. Rules use these functions alone and never the tree itself.

package conformance

import (
	"iter"
	"strconv"
)

// value is a JSON value of a message, or nil if there is none or it is null. It may be used during the call that judges
// the message; so may its texts, which are parts of the message's. What is kept longer is copied.
type value = *node

// member is the value at the end of a path of members' names, nil where there is none.
func member(v value, path ...string) value {
	v = find(v, path)
	if v.kind() == typeNull {
		return nil
	}
	return v
}

// find is member for a value that may be null.
func find(v value, path []string) value {
	for _, name := range path {
		v = v.member(name)
	}
	return v
}

// present reports whether there is a value at the end of the path, be it null.
func present(v value, path ...string) bool { return find(v, path) != nil }

// given reports whether there is a value at the end of the path that is not null.
func given(v value, path ...string) bool { return member(v, path...) != nil }

// text is a string, "" where there is none.
func text(v value, path ...string) string { return find(v, path).string() }

// truth is a boolean, false where there is none.
func truth(v value, path ...string) bool { return find(v, path).isTrue() }

// integer is a whole number that fits.
func integer(v value, path ...string) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(find(v, path).number()), 10, 64)
	return n, err == nil
}

// decimal is a number, as near as a float64 is.
func decimal(v value) (float64, bool) {
	n, err := strconv.ParseFloat(string(v.number()), 64)
	return n, err == nil
}

// items are the elements of an array, none where there is none.
func items(v value, path ...string) iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		if v = find(v, path); v.kind() != typeArray {
			return
		}
		i := 0
		for item := range v.below() {
			if !yield(i, member(item)) {
				return
			}
			i++
		}
	}
}

// length is the number of elements of an array, or of members of an object.
func length(v value, path ...string) (n int) {
	for range find(v, path).below() {
		n++
	}
	return n
}

// membersOf are the members of an object, in their order.
func membersOf(v value, path ...string) iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		if v = find(v, path); v.kind() != typeObject {
			return
		}
		for item := range v.below() {
			if !yield(item.name(), member(item)) {
				return
			}
		}
	}
}

// isObject, isArray, isText and isBoolean tell the type of a value.
func isObject(v value) bool  { return v.kind() == typeObject }
func isArray(v value) bool   { return v.kind() == typeArray }
func isText(v value) bool    { return v.kind() == typeString }
func isBoolean(v value) bool { return v.kind() == typeBoolean }

// keep makes a value independent of the message that it came in.
func keep(v value) value { return v.copy() }
