package sample

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Definitions returns the definitions of a schema document. They combine constructs at random, a few levels deep, refer
// to each other, and contain mistakes and names and texts that are easily corrupted. The names of all definitions and
// methods begin with the prefix, so that one document can contain many sets. Equal seeds produce equal definitions.
func Definitions(seed uint64, prefix string) map[string]any {
	w := &schemaMaker{rand: rand.New(rand.NewPCG(seed, 3)), prefix: prefix}
	// Few programs survive all features at once, so each document has some of them.
	for i := range w.with {
		w.with[i] = w.one(4)
	}
	for i := range 1 + w.rand.IntN(4) {
		w.names = append(w.names, w.definitionName(i))
	}
	out := map[string]any{}
	for _, name := range w.names {
		out[name] = w.definition(name)
	}
	return out
}

// Document returns a complete document with the definitions from [Definitions].
func Document(seed uint64) []byte {
	return DocumentOf(Definitions(seed, ""))
}

// DocumentOf returns a document with the given definitions.
func DocumentOf(definitions map[string]any) []byte {
	out, err := json.Marshal(map[string]any{"$defs": definitions})
	if err != nil {
		panic(err) // made of JSON values
	}
	return out
}

// The features that a document may have.
const (
	hostile = iota // names and texts
	nulls
	bounds
	extras
	bases
	siblings
	tuples
	marks // x-deserialize-*
	defaults
	mixed
	merged
	nots
	nested // choices in choices
	mistakes
	methods
	features
)

type schemaMaker struct {
	rand   *rand.Rand
	prefix string
	names  []string // of the definitions
	with   [features]bool
	count  int
}

func (w *schemaMaker) one(in int) bool { return w.rand.IntN(in) == 0 }

func pick[T any](w *schemaMaker, from ...T) T { return from[w.rand.IntN(len(from))] }

type object = map[string]any

var plainNames = []string{"Item", "Node", "Content", "Request", "Result", "Kind", "Value", "Part", "Status", "Block",
	"Id"}

func (w *schemaMaker) definitionName(i int) string {
	name := pick(w, plainNames...) + strconv.Itoa(i)
	if w.with[hostile] && w.one(2) {
		name = pick(w, "a/b", "a~b", "100%", "Page[Item]", "Box<T>", "имя", "名", "two words", "x\nfunc init(){}", "q\"uote",
			"type", "string", "_", "X_y", "ÄÖ") + strconv.Itoa(i)
	}
	return w.prefix + name
}

func (w *schemaMaker) memberName() string {
	w.count++
	if w.with[hostile] && w.one(3) {
		return pick(w, "", "a\"b", "c\\d", "e\nf", "type", "func", "Variant", "Extra", "extra", "string", "имя", "名", "3d",
			"$ref", "@id", "a-b", "a_b", "i`j", "\u2028", "_meta", "isZero", "x,omitempty", "tag") + pick(w, "", "",
			strconv.Itoa(w.count))
	}
	return pick(w, "name", "id", "value", "count", "items", "kind", "list", "uri", "text", "flag") + strconv.Itoa(w.count)
}

func (w *schemaMaker) prose() string {
	if w.with[hostile] && w.one(2) {
		return pick(w, "[the docs\nfunc init() { panic(1) }\n//](https://x)", "*/ func f() {} /*", "`", "\u2028\u0000",
			"//go:embed x", "\r\nvar X int", "\"", "\x1b[31m", "A\n\n\tcode\n\nB")
	}
	return "It is described."
}

func (w *schemaMaker) definition(name string) any {
	s := w.schema(1 + w.rand.IntN(3))
	if m, ok := s.(object); ok {
		if w.one(3) {
			m["description"] = w.prose()
		}
		if w.with[methods] && w.one(2) {
			m["x-method"] = "_" + name
			m["x-side"] = pick(w, "agent", "client", "both")
		}
	}
	return s
}

func (w *schemaMaker) reference() object {
	name := pick(w, w.names...)
	token := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	if strings.ContainsAny(token, "% <>\n\"[]") || w.one(10) {
		token = escapePercent(token)
	}
	return object{"$ref": "#/$defs/" + token}
}

func escapePercent(token string) string {
	var b strings.Builder
	for i := range len(token) {
		if c := token[i]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '~' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// schema makes a schema with at most depth levels.
func (w *schemaMaker) schema(depth int) any {
	if depth <= 0 {
		return w.leaf()
	}
	var s object
	switch n := w.rand.IntN(20); {
	case n < 4:
		return w.leaf()
	case n < 9:
		s = w.object(depth)
	case n < 11:
		s = object{"type": "array", "items": w.schema(depth - 1)}
		w.bound(s, "array")
	case n < 12:
		s = object{"type": "object", "additionalProperties": w.schema(depth - 1)}
	case n < 13 && w.with[tuples]:
		s = w.tuple(depth)
	case n < 14 && w.with[bases]:
		s = w.base(depth)
	case n < 18:
		s = w.choice(depth)
	default:
		s = w.reference()
		w.sibling(s, depth)
		return s
	}
	w.sibling(s, depth)
	return s
}

// sibling adds keywords that are rarely combined with others.
func (w *schemaMaker) sibling(s object, depth int) {
	if w.with[siblings] && w.one(5) {
		switch w.rand.IntN(6) {
		case 0:
			s["allOf"] = []any{w.reference()}
		case 1:
			s["$ref"] = w.reference()["$ref"]
		case 2:
			s["type"] = pick(w, "object", "string", "array")
		case 3:
			s["required"] = []any{w.memberName()}
		case 4:
			s["anyOf"] = []any{w.leaf(), w.schema(depth - 1)}
		case 5:
			w.bound(s, pick(w, "string", "number", "array"))
		}
	}
	if w.with[nots] && w.one(6) {
		s["not"] = pick[any](w, object{"required": []any{w.memberName()}}, object{"type": "string"}, object{"const": "a"},
			w.leaf())
	}
	if w.with[mistakes] && w.one(6) {
		switch w.rand.IntN(8) {
		case 0:
			s["enum"] = []any{}
		case 1:
			s["x-other"] = true
		case 2:
			s["type"] = pick[any](w, "text", []any{}, 1)
		case 3:
			s["required"] = "a"
		case 4:
			s["$ref"] = pick(w, "#/$defs/Missing", "other.json", "#", "", "#/$defs/%zz")
		case 5:
			s["oneOf"] = []any{}
		case 6:
			s["minimum"] = "1"
		case 7:
			s["patternProperties"] = object{"^x": true}
		}
	}
	if w.one(12) {
		s["title"] = pick(w, "A title", "Titled", "Other") + strconv.Itoa(w.rand.IntN(3))
	}
}

// leaf makes a schema that contains no other schemas except references.
func (w *schemaMaker) leaf() any {
	var s object
	switch w.rand.IntN(16) {
	case 0:
		return pick[any](w, true, object{}, object{}, object{"description": w.prose()}, false)
	case 1, 2:
		s = object{"type": "integer"}
		if w.one(2) {
			s["format"] = pick(w, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
		}
		w.bound(s, "number")
	case 3:
		s = object{"type": "number"}
		w.bound(s, "number")
	case 4:
		s = object{"type": "boolean"}
	case 5:
		s = object{"type": "object"}
	case 6:
		s = w.enum()
	case 7:
		s = object{"const": pick[any](w, "a", "b", 1, 2, true, false, nil, 1.5, "x\"y")}
		if w.one(2) {
			s = object{"type": "string", "const": pick(w, "a", "b", "")}
		}
	case 8, 9:
		return w.reference()
	case 10:
		s = object{"type": "array", "items": object{"type": "string"}}
		w.bound(s, "array")
	default:
		s = object{"type": "string"}
		if w.one(5) {
			s["format"] = pick(w, "uri", "date-time", "byte")
		}
		w.bound(s, "string")
	}
	if kind, ok := s["type"].(string); ok && w.with[nulls] && w.one(3) {
		s["type"] = []any{kind, "null"}
		if list, ok := s["enum"].([]any); ok && w.one(2) {
			s["enum"] = append(list, nil)
		}
		if w.one(3) {
			s["type"] = kind
			return object{pick(w, "anyOf", "oneOf"): []any{s, object{"type": "null"}}}
		}
	}
	return s
}

func (w *schemaMaker) enum() object {
	switch w.rand.IntN(5) {
	case 0:
		return object{"type": "integer", "enum": []any{1, 2, pick(w, 3, -1, 300)}}
	case 1:
		return object{"enum": []any{"a", "b", pick[any](w, "c", "A", 1, true, nil, "")}}
	case 2:
		keyword := pick(w, "oneOf", "anyOf")
		list := []any{object{"type": "string", "const": "a"},
			object{"type": "string", "const": "b", "title": "B", "description": w.prose()}}
		if keyword == "anyOf" && w.one(2) {
			list = append(list, object{"type": "string"})
		}
		return object{keyword: list}
	case 3:
		return object{"type": "string", "oneOf": []any{object{"const": "a"}, object{"const": "b"}}}
	}
	list := []any{"one", "two"}
	if w.with[hostile] {
		list = append(list, pick(w, "", "=", "q\"", "1", "да", "a\nb", "ONE"))
	}
	return object{"type": "string", "enum": list}
}

// bound adds keywords that limit values of a kind.
func (w *schemaMaker) bound(s object, kind string) {
	if !w.with[bounds] || !w.one(2) {
		return
	}
	switch kind {
	case "string":
		for _, keyword := range []string{"minLength", "maxLength"} {
			if w.one(2) {
				s[keyword] = w.rand.IntN(4) + map[string]int{"maxLength": 3}[keyword]
			}
		}
		if w.one(4) {
			s["pattern"] = pick(w, "^[a-z]+$", "l", "^\\w", "^[^0-9]*$", "\\S", "^(x|.{4,})$")
		}
	case "number":
		low, high := json.Number(pick(w, "-3", "0", "1", "0.5", "-9007199254740993")),
			json.Number(pick(w, "3", "10", "255", "2.5", "9007199254740993", "1e3"))
		if w.one(2) {
			s[pick(w, "minimum", "exclusiveMinimum")] = low
		}
		if w.one(2) {
			s[pick(w, "maximum", "exclusiveMaximum")] = high
		}
		if w.one(5) {
			s["multipleOf"] = json.Number(pick(w, "1", "2", "5", "0.5", "2.5"))
		}
	case "array":
		if w.one(2) {
			s["minItems"] = w.rand.IntN(3)
		}
		if w.one(3) {
			s["maxItems"] = 2 + w.rand.IntN(3)
		}
		if w.one(4) {
			s["uniqueItems"] = !w.one(4)
		}
	}
}

func (w *schemaMaker) object(depth int) object {
	properties := object{}
	required := []any{}
	for range w.rand.IntN(4) {
		name := w.memberName()
		properties[name] = w.member(depth)
		if w.one(2) {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	if w.with[extras] && w.one(2) {
		s[pick(w, "additionalProperties", "additionalProperties", "unevaluatedProperties")] = pick(w, true, false,
			any(object{}), w.schema(depth-2))
	}
	if w.one(15) {
		delete(s, "type")
	}
	return s
}

// member makes the schema of a member.
func (w *schemaMaker) member(depth int) any {
	s, ok := w.schema(depth - 1).(object)
	if !ok {
		return s != nil
	}
	if w.with[marks] && w.one(2) {
		s[pick(w, "x-deserialize-default-on-error", "x-deserialize-default-on-error", "x-deserialize-default-on-null",
			"x-deserialize-skip-invalid-items")] = true
	}
	if w.with[defaults] && w.one(2) {
		s["default"] = pick[any](w, true, false, 0, 1, "", "a", "one", nil, []any{}, object{}, 1.5, []any{"x"},
			object{"a": 1}, 1<<53+1)
	}
	if w.one(8) {
		s["description"] = w.prose()
	}
	if w.one(20) {
		s["deprecated"] = true
	}
	return s
}

func (w *schemaMaker) tuple(depth int) object {
	prefix := []any{}
	for range 1 + w.rand.IntN(3) {
		prefix = append(prefix, w.schema(depth-2))
	}
	s := object{"type": "array", "prefixItems": prefix}
	switch w.rand.IntN(3) {
	case 0:
		s["items"] = false
	case 1:
		s["items"] = w.leaf()
	}
	if w.one(2) {
		s["minItems"] = len(prefix) - w.rand.IntN(2)
	}
	if w.one(3) {
		s["maxItems"] = len(prefix) + w.rand.IntN(2)
	}
	return s
}

func (w *schemaMaker) base(depth int) object {
	s := object{"allOf": []any{w.reference()}}
	if w.one(2) {
		s["allOf"] = []any{w.reference(), w.object(depth - 1)}
	}
	if w.one(2) {
		maps.Copy(s, w.object(depth-1))
	}
	return s
}

// choice makes a oneOf or anyOf.
func (w *schemaMaker) choice(depth int) object {
	keyword := pick(w, "oneOf", "anyOf")
	var branches []any
	s := object{}
	switch n := w.rand.IntN(10); {
	case n < 5: // tagged
		tag := pick(w, "type", "kind", "op")
		if w.with[hostile] && w.one(3) {
			tag = w.memberName()
		}
		for i := range 1 + w.rand.IntN(3) {
			branches = append(branches, w.variant(tag, []string{"alpha", "beta", "gamma"}[i], depth))
		}
		switch w.rand.IntN(8) {
		case 0: // for tags that are not listed
			branches = append(branches, w.catchAll(tag, len(branches)))
		case 1: // without a tag
			other := w.object(depth - 1)
			other["title"] = "plain"
			branches = append(branches, other)
		}
		if w.with[mixed] && w.one(2) {
			branches = append(branches, w.leaf())
		}
		if w.one(6) {
			s["discriminator"] = object{"propertyName": tag}
			for _, branch := range branches { // OpenAPI wants each branch to require it
				b, _ := branch.(object)
				members, _ := b["properties"].(object)
				if _, ok := members[tag]; ok && !slices.Contains(listOf(b["required"]), any(tag)) {
					b["required"] = append(listOf(b["required"]), tag)
				}
			}
		}
	case n < 7: // distinguished by type
		for _, kind := range []string{"string", "integer", "boolean", "number"} {
			if w.one(2) {
				branch := object{"type": kind}
				w.bound(branch, map[string]string{"string": "string", "integer": "number", "number": "number"}[kind])
				branches = append(branches, branch)
			}
		}
		if w.one(2) {
			branches = append(branches, object{"type": "array", "items": w.schema(depth - 2)})
		}
		if w.one(2) {
			branches = append(branches, w.object(depth-1))
		}
	case n < 8: // distinguished by members
		for i := range 2 + w.rand.IntN(2) {
			branch := w.object(depth - 1)
			mark := "own" + strconv.Itoa(i)
			branch["properties"].(object)[mark] = w.leaf()
			branch["required"] = append(listOf(branch["required"]), mark)
			if w.one(2) {
				branch["title"] = "form" + strconv.Itoa(i)
			}
			branches = append(branches, branch)
		}
	case n < 9: // of references
		for range 1 + w.rand.IntN(3) {
			branches = append(branches, w.reference())
		}
	default:
		for range 1 + w.rand.IntN(3) {
			branches = append(branches, w.schema(depth-1))
		}
	}
	if len(branches) == 0 {
		branches = []any{object{"type": "string"}, w.reference()}
	}
	if w.with[nulls] && w.one(3) {
		branches = append(branches, object{"type": "null"})
	}
	if w.with[nested] && w.one(3) {
		branches = append(branches, w.choice(depth-1))
	}
	s[keyword] = branches
	if w.with[merged] && w.one(2) {
		maps.Copy(s, w.object(depth-1))
	}
	return s
}

func (w *schemaMaker) variant(tag, value string, depth int) any {
	constant := object{"const": value}
	if w.one(2) {
		constant["type"] = "string"
	}
	if w.one(8) {
		constant = object{"type": "string", "enum": []any{value}}
	}
	if w.with[defaults] && w.one(8) {
		constant["default"] = value
	}
	s := object{"type": "object", "properties": object{tag: constant}, "required": []any{tag}}
	switch w.rand.IntN(5) {
	case 0:
	case 1:
		s["allOf"] = []any{w.reference()}
	default:
		members := w.object(depth - 1)["properties"].(object)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			s["properties"].(object)[name] = members[name]
			if w.one(2) {
				s["required"] = append(s["required"].([]any), name)
			}
		}
	}
	if w.one(12) {
		delete(s, "required")
	}
	if w.with[extras] && w.one(3) {
		s["additionalProperties"] = !w.one(3)
	}
	if w.one(8) {
		s["title"] = pick(w, "First", "Second")
	}
	return s
}

func (w *schemaMaker) catchAll(tag string, count int) object {
	var known []any
	for i := range count {
		known = append(known, object{"properties": object{tag: object{"const": []string{"alpha", "beta", "gamma"}[i],
			"type": "string"}}, "required": []any{tag}, "type": "object"})
	}
	if w.one(6) {
		known = known[1:]
	}
	s := object{"title": "other", "type": "object", "properties": object{tag: object{"type": "string"}},
		"required": []any{tag}, "additionalProperties": true}
	if len(known) > 0 {
		s["not"] = object{"anyOf": known}
	}
	return s
}
