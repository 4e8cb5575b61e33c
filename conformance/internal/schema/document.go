// The text of a message is decoded once, for the envelope, the schema and the rules.

package schema

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
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
	r := reader{tokens: json.NewDecoder(bytes.NewReader(line))}
	r.tokens.UseNumber()
	root = r.value()
	if r.values > maxValues {
		return nil, nil, errTooManyValues
	}
	return root, r.again, nil
}

// reader reads the values of a valid text.
type reader struct {
	tokens *json.Decoder
	values int
	path   []string // of the value
	again  []string
}

// value reads a value. It stops after too many of them.
func (r *reader) value() *Value {
	v := &Value{}
	if r.values++; r.values > maxValues {
		return v
	}
	token, _ := r.tokens.Token() // the text is valid
	switch token := token.(type) {
	case nil:
		v.jsonType = typeNull
	case bool:
		v.jsonType, v.truth = typeBoolean, token
	case json.Number:
		v.jsonType, v.text = typeNumber, string(token)
	case string:
		v.jsonType, v.text = typeString, token
	case json.Delim:
		v.jsonType = typeArray
		if token == '{' {
			v.jsonType = typeObject
		}
		r.fill(v)
	}
	return v
}

// fill reads the values inside a value.
func (r *reader) fill(v *Value) {
	last := map[string]int{} // the index of the last member with a name
	overridden := false
	for r.tokens.More() && r.values <= maxValues {
		name := strconv.Itoa(len(v.inside))
		if v.jsonType == typeObject {
			token, _ := r.tokens.Token()
			name = token.(string)
		}
		r.path = append(r.path, name)
		if before, again := last[name]; again {
			v.inside[before], overridden = nil, true
			if len(r.again) < MaxFindings {
				r.again = append(r.again, Pointer("", r.path...))
			}
		}
		below := r.value()
		if v.jsonType == typeObject {
			below.memberName, last[name] = name, len(v.inside)
		}
		v.inside = append(v.inside, below)
		r.path = r.path[:len(r.path)-1]
	}
	if overridden {
		v.inside = slices.DeleteFunc(v.inside, func(o *Value) bool { return o == nil })
	}
	r.tokens.Token() // the end
}

// kind returns the JSON type, or typeNone for no value.
func (v *Value) kind() jsonType {
	if v == nil {
		return typeNone
	}
	return v.jsonType
}

// equals reports whether the value is the given string.
func (v *Value) equals(text string) bool { return v.kind() == typeString && v.text == text }

// string returns a string, or "" for any other value.
func (v *Value) string() string {
	if v.kind() != typeString {
		return ""
	}
	return v.text
}

// name returns the name of a member.
func (v *Value) name() string { return v.memberName }

// number returns the text of a number in the form for the schema library, or "" for any other value.
func (v *Value) number() json.Number {
	if v.kind() != typeNumber {
		return ""
	}
	return exact(json.Number(v.text))
}

// isTrue reports whether the value is true.
func (v *Value) isTrue() bool { return v.kind() == typeBoolean && v.truth }

// children yields the members of an object or the elements of an array.
func (v *Value) children() iter.Seq[*Value] {
	if v == nil {
		return slices.Values([]*Value(nil))
	}
	return slices.Values(v.inside)
}

// child returns a member of an object, or nil.
func (v *Value) child(name string) *Value {
	if v.kind() == typeObject {
		for _, m := range v.inside {
			if m.memberName == name {
				return m
			}
		}
	}
	return nil
}

// tree returns the value in the form that the schema library validates.
func (v *Value) tree() any {
	switch v.kind() {
	case typeBoolean:
		return v.isTrue()
	case typeNumber:
		return v.number()
	case typeString:
		return v.string()
	case typeArray:
		items := []any{}
		for item := range v.children() {
			items = append(items, item.tree())
		}
		return items
	case typeObject:
		members := map[string]any{}
		for member := range v.children() {
			members[member.name()] = member.tree()
		}
		return members
	}
	return nil
}
