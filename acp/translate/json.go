package translate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/acpgo/sdk/codec"
)

// raw is the text of a JSON value.
type raw = json.RawMessage

// object is a JSON object: its members in order, with their texts as they arrived. What the translation does not know
// therefore passes as it is.
type object []member

type member struct {
	name  string
	value raw
}

// parse takes an object apart. The text must be valid JSON. It refuses what is not an object, and an object with two
// members of one name, which two readers could understand differently.
func parse(text raw) (object, bool) {
	i := space(text, 0)
	if i == len(text) || text[i] != '{' {
		return nil, false
	}
	o := make(object, 0, 6)
	var names map[string]bool // of a large object
	for i = space(text, i+1); text[i] != '}'; {
		end := skip(text, i)
		name, ok := common[string(text[i:end])]
		if !ok {
			name = unquote(text[i:end])
		}
		if names == nil && len(o) == 32 {
			names = map[string]bool{}
			for _, m := range o {
				names[m.name] = true
			}
		}
		if names == nil && o.has(name) || names[name] {
			return nil, false
		}
		if names != nil {
			names[name] = true
		}
		i = space(text, space(text, end)+1) // after the colon
		end = skip(text, i)
		o = append(o, member{name, text[i:end]})
		if i = space(text, end); text[i] == ',' {
			i = space(text, i+1)
		}
	}
	return o, true
}

// common are the names of nearly all members, which need no memory.
var common = map[string]string{}

func init() {
	for _, name := range []string{
		"jsonrpc", "id", "method", "params", "result", "error", "code", "message", "sessionId", "update", "sessionUpdate",
		"content", "type", "text",
		"messageId", "toolCallId", "title", "kind", "status", "locations", "path", "rawInput", "rawOutput", "terminalId",
		"data", "_meta",
	} {
		common[string(quote(name))] = name
	}
}

// clone returns a copy that does not keep the message in memory that o is a part of.
func (o object) clone() object {
	copied, _ := parse(o.text())
	return copied
}

// list returns the elements of an array, and nil if text is not one. The text must be valid JSON.
func list(text raw) (elements []raw) {
	i := space(text, 0)
	if i == len(text) || text[i] != '[' {
		return nil
	}
	elements = []raw{}
	for i = space(text, i+1); text[i] != ']'; {
		end := skip(text, i)
		elements = append(elements, text[i:end])
		if i = space(text, end); text[i] == ',' {
			i = space(text, i+1)
		}
	}
	return elements
}

func space(text raw, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i.
func skip(text raw, i int) int {
	for depth := 0; ; i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\n', '\r':
			continue
		default: // a number or a literal
			for i+1 < len(text) && !bytes.ContainsRune([]byte(",]} \t\n\r:"), rune(text[i+1])) {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// unquote returns the value of a JSON string, and "" if text is something else.
func unquote(text raw) string {
	if len(text) < 2 || text[0] != '"' {
		return ""
	}
	if plain := text[1 : len(text)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return string(plain)
	}
	var s string
	_ = json.Unmarshal(text, &s) // it is a valid string
	return s
}

func (o object) index(name string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.name == name })
}

func (o object) has(name string) bool { return o.index(name) >= 0 }

// get returns a member's text, nil if it is missing or null.
func (o object) get(name string) raw {
	if i := o.index(name); i >= 0 && !isNull(o[i].value) {
		return o[i].value
	}
	return nil
}

func (o object) str(name string) string { return unquote(o.get(name)) }

// sub returns a member that is an object, and nil otherwise.
func (o object) sub(name string) object {
	if value := o.get(name); value != nil {
		inner, _ := parse(value)
		return inner
	}
	return nil
}

func (o object) list(name string) []raw { return list(o.get(name)) }

// set replaces a member, or appends it. A nil value removes it.
func (o *object) set(name string, value raw) {
	switch i := o.index(name); {
	case value == nil:
		o.drop(name)
	case i >= 0:
		(*o)[i].value = value
	default:
		*o = append(*o, member{name, value})
	}
}

func (o *object) drop(names ...string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return slices.Contains(names, m.name) })
}

func (o *object) rename(from, to string) {
	if o.has(from) {
		o.drop(to)
		(*o)[o.index(from)].name = to
	}
}

// setMeta replaces _meta, or removes it if it is to be empty.
func (o *object) setMeta(meta object) {
	if len(meta) == 0 {
		o.drop("_meta")
	} else {
		o.set("_meta", meta.text())
	}
}

// put sets members, as set does.
func (o *object) put(members object) {
	for _, m := range members {
		o.set(m.name, m.value)
	}
}

// and returns the members of o, and those of more that o does not have: no object gets two members of one name.
func (o object) and(more object) object {
	own := o[:len(o):len(o)]
	for _, m := range more {
		if !own.has(m.name) {
			o = append(o, m)
		}
	}
	return o
}

// text returns the object as JSON.
func (o object) text() raw {
	size := 2
	for _, m := range o {
		size += len(m.name) + len(m.value) + 4
	}
	text := append(make(raw, 0, size), '{')
	for i, m := range o {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(codec.AppendString(text, m.name), ':'), m.value...)
	}
	return append(text, '}')
}

// array returns the elements as a JSON array.
func array(elements ...raw) raw {
	return append(append(raw{'['}, bytes.Join(toBytes(elements), []byte{','})...), ']')
}

func toBytes(elements []raw) [][]byte {
	all := make([][]byte, len(elements))
	for i, e := range elements {
		all[i] = e
	}
	return all
}

// quote returns a JSON string.
func quote(s string) raw { return codec.AppendString(make(raw, 0, len(s)+2), s) }

func number(n int) raw { return strconv.AppendInt(nil, int64(n), 10) }

// obj makes an object of names and values. A value is a string, JSON text, or an object; nil JSON text leaves the
// member out.
func obj(pairs ...any) object {
	o := make(object, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			o = append(o, member{pairs[i].(string), quote(v)})
		case object:
			o = append(o, member{pairs[i].(string), v.text()})
		case raw:
			if v != nil {
				o = append(o, member{pairs[i].(string), v})
			}
		}
	}
	return o
}

func isNull(text raw) bool { return len(text) == 4 && text[0] == 'n' }

func isTrue(text raw) bool { return string(text) == "true" }

// marker reports whether a version 2 capability is there: an object, however empty.
func marker(text raw) bool { return len(text) > 0 && text[0] == '{' }

var (
	null      = raw("null")
	emptyList = raw("[]")
	emptyObj  = raw("{}")
	yes       = raw("true")
	no        = raw("false")
)

// compact returns the text without insignificant space, for comparisons.
func compact(text raw) string {
	var b bytes.Buffer
	_ = json.Compact(&b, text) // it is valid
	return b.String()
}

// edit changes each element of an array; edit returns nil to leave one out, and any number of elements instead of it.
func edit(elements []raw, f func(raw) []raw) raw {
	var all []raw
	for _, e := range elements {
		all = append(all, f(e)...)
	}
	return array(all...)
}

// editObjects is edit for objects. What is not an object stays.
func editObjects(elements []raw, f func(*object) bool) raw {
	return edit(elements, func(e raw) []raw {
		o, ok := parse(e)
		if !ok {
			return []raw{e}
		}
		if !f(&o) {
			return nil
		}
		return []raw{o.text()}
	})
}
