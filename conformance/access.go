// Access to the values of a message. Rules use these functions alone and never the tree itself.

package conformance

import (
	"encoding/json"
	"iter"
	"strconv"
)

// value is a JSON value of a message, or nil if there is none. It may be used during the call that judges the message;
// what is kept longer is taken out of it, or kept with keep.
type value = any

// member is the value at the end of a path of members' names, nil where there is none.
func member(v value, path ...string) value {
	for _, name := range path {
		members, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = members[name]
	}
	return v
}

// present reports whether there is a value at the end of the path, be it null.
func present(v value, path ...string) bool {
	for _, name := range path {
		members, ok := v.(map[string]any)
		if !ok {
			return false
		}
		if v, ok = members[name]; !ok {
			return false
		}
	}
	return true
}

// given reports whether there is a value at the end of the path that is not null.
func given(v value, path ...string) bool { return member(v, path...) != nil }

// text is a string, "" where there is none.
func text(v value, path ...string) string {
	s, _ := member(v, path...).(string)
	return s
}

// truth is a boolean, false where there is none.
func truth(v value, path ...string) bool {
	b, _ := member(v, path...).(bool)
	return b
}

// integer is a whole number that fits.
func integer(v value, path ...string) (n int64, ok bool) {
	number, ok := member(v, path...).(json.Number)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n, err == nil
}

// items are the elements of an array, none where there is none.
func items(v value, path ...string) iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		list, _ := member(v, path...).([]any)
		for i, item := range list {
			if !yield(i, item) {
				return
			}
		}
	}
}

// length is the number of elements of an array, or of members of an object.
func length(v value, path ...string) int {
	switch v := member(v, path...).(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

// membersOf are the members of an object, in any order.
func membersOf(v value, path ...string) iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		members, _ := member(v, path...).(map[string]any)
		for name, item := range members {
			if !yield(name, item) {
				return
			}
		}
	}
}

// isObject, isArray and isText tell the type of a value.
func isObject(v value) bool { _, ok := v.(map[string]any); return ok }
func isArray(v value) bool  { _, ok := v.([]any); return ok }
func isText(v value) bool   { _, ok := v.(string); return ok }

// keep makes a value independent of the message that it came in.
func keep(v value) value { return v }
