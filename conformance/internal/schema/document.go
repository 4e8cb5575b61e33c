// The text of a message is decoded once, for the envelope, the schema and the rules.

package schema

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"github.com/acpgo/sdk/codec"
)

// jsonType is a JSON type.
type jsonType uint8

const (
	typeNone jsonType = iota // there is no value
	typeNull
	typeBoolean
	typeNumber
	typeString
	typeArray
	typeObject
)

var typeNames = [...]string{"nothing", "null", "boolean", "number", "string", "array", "object"}

func (t jsonType) String() string { return typeNames[t] }

// Value is one value of a message. It never changes. Methods that look at a value accept nil, which represents no
// value.
type Value struct {
	memberName string   // of a member
	text       string   // of a string or number
	inside     []*Value // the elements, or the members in order; of those with the same name, the last one
	jsonType   jsonType
	truth      bool // of a boolean
}

// read decodes a line, which must be UTF-8. It also returns pointers to members whose name occurred before in their
// object, at most as many as a message may have findings.
func read(line []byte) (root *Value, again []string, err error) {
	if !json.Valid(line) {
		return nil, nil, syntaxError(line)
	}
	r := reader{text: codec.NewDecoder(line)}
	r.text.SetMaxDepth(len(line)) // json.Valid has a bound
	root = r.value()
	if r.values > maxValues {
		return nil, nil, errTooManyValues
	}
	return root, r.again, nil
}

// reader reads the values of a valid text.
type reader struct {
	text   *codec.Decoder
	values int
	path   []string // of the value
	again  []string
}

// value reads a value. It stops after too many of them.
func (r *reader) value() *Value {
	v, d := &Value{}, r.text
	if r.values++; r.values > maxValues {
		return v
	}
	switch d.Kind() {
	case '{':
		v.jsonType = typeObject
		r.members(v)
	case '[':
		v.jsonType = typeArray
		for a := d.Array(); a.Next() && r.values <= maxValues; {
			v.inside = append(v.inside, r.below(strconv.Itoa(len(v.inside))))
		}
	case '"':
		v.jsonType, v.text = typeString, d.Str()
	case 'n':
		v.jsonType = typeNull
		d.Skip()
	case 't', 'f':
		v.jsonType, v.truth = typeBoolean, d.Bool()
	default:
		at := d.Offset()
		d.Skip()
		v.jsonType, v.text = typeNumber, string(d.Slice(at))
	}
	return v
}

// members reads the members of an object.
func (r *reader) members(v *Value) {
	last := map[string]int{} // the index of the last member with a name
	overridden := false
	for o := r.text.Object(); o.Next() && r.values <= maxValues; {
		name := string(o.Name())
		if before, again := last[name]; again {
			v.inside[before], overridden = nil, true
			if len(r.again) < MaxFindings {
				r.again = append(r.again, Pointer("", append(r.path, name)...))
			}
		}
		member := r.below(name)
		member.memberName, last[name] = name, len(v.inside)
		v.inside = append(v.inside, member)
	}
	if overridden {
		v.inside = slices.DeleteFunc(v.inside, func(o *Value) bool { return o == nil })
	}
}

// below reads a value inside another one.
func (r *reader) below(name string) *Value {
	r.path = append(r.path, name)
	defer func() { r.path = r.path[:len(r.path)-1] }()
	return r.value()
}

// kind returns the JSON type, or typeNone for no value.
func (v *Value) kind() jsonType {
	if v == nil {
		return typeNone
	}
	return v.jsonType
}

// number returns the text of a number in the form for the schema library, or "" for any other value.
func (v *Value) number() json.Number {
	if v.kind() != typeNumber {
		return ""
	}
	return exact(json.Number(v.text))
}

// tree returns the value in the form that the schema library validates.
func (v *Value) tree() any {
	switch v.kind() {
	case typeBoolean:
		return v.truth
	case typeNumber:
		return v.number()
	case typeString:
		return v.text
	case typeArray:
		items := []any{}
		for _, item := range v.inside {
			items = append(items, item.tree())
		}
		return items
	case typeObject:
		members := map[string]any{}
		for _, member := range v.inside {
			members[member.memberName] = member.tree()
		}
		return members
	}
	return nil
}

// Rules use only the methods below, never the tree itself.

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
		at := -1
		if v.kind() == typeObject {
			at = slices.IndexFunc(v.inside, func(m *Value) bool { return m.memberName == name })
		}
		if at < 0 {
			return nil
		}
		v = v.inside[at]
	}
	return v
}

// Present reports whether there is a value, even null, at the end of the path.
func (v *Value) Present(path ...string) bool { return v.find(path) != nil }

// Given reports whether there is a value at the end of the path that is not null.
func (v *Value) Given(path ...string) bool { return v.Member(path...) != nil }

// Text returns a string, or "" if there is none.
func (v *Value) Text(path ...string) string {
	if v = v.find(path); v.kind() != typeString {
		return ""
	}
	return v.text
}

// True returns a boolean, or false if there is none.
func (v *Value) True(path ...string) bool {
	v = v.find(path)
	return v.kind() == typeBoolean && v.truth
}

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
		for i, item := range array.inside {
			if !yield(i, item.Member()) {
				return
			}
		}
	}
}

// Members yields the members of an object in order.
func (v *Value) Members(path ...string) iter.Seq2[string, *Value] {
	return func(yield func(string, *Value) bool) {
		object := v.find(path)
		if object.kind() != typeObject {
			return
		}
		for _, member := range object.inside {
			if !yield(member.memberName, member.Member()) {
				return
			}
		}
	}
}

// Len returns the number of elements of an array, or of members of an object.
func (v *Value) Len(path ...string) int {
	if v = v.find(path); v == nil {
		return 0
	}
	return len(v.inside)
}

// IsObject, IsArray, IsText and IsBoolean report the JSON type of a value.
func (v *Value) IsObject() bool  { return v.kind() == typeObject }
func (v *Value) IsArray() bool   { return v.kind() == typeArray }
func (v *Value) IsText() bool    { return v.kind() == typeString }
func (v *Value) IsBoolean() bool { return v.kind() == typeBoolean }
