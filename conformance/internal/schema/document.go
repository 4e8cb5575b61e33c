// The text of a message is decoded once, for the envelope, the schema and the rules.

package schema

import (
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
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

// document is a message as a list of its values, in which each value precedes those inside it. It is reused for the
// next message, so that decoding takes a single allocation, for the copy of the text.
type document struct {
	text  string
	nodes []Value
	again int // the number of members whose name occurred before in their object
}

// Value is one value; its offsets are into the text. It may be used until the document reads the next message. The same
// is true of the strings that it returns, which are parts of the message's text and must be copied to be kept. Methods
// that look at a value accept nil, which represents no value.
type Value struct {
	document           *document
	at                 uint32 // its own index
	start, end         uint32 // for a string, the text between the quotes
	nameStart, nameEnd uint32 // of a member
	next               uint32 // the index after this value and all values inside it
	jsonType           jsonType
	flags              uint8
}

const (
	escaped     uint8 = 1 << iota // the string has escape sequences
	nameEscaped                   // the name has
	repeated                      // the name occurred before in this object
	overridden                    // the name occurs again later, so this member does not count
)

const (
	// maxDepth is the maximum nesting depth, the same as that of encoding/json.
	maxDepth = 10000
	// keptNodes bounds the capacity that a document keeps for the next message.
	keptNodes = 1 << 12
	// maxLine is the maximum length of a line, so that offsets fit.
	maxLine = math.MaxUint32
)

var errTooLong = errors.New("more than 4 GiB in one message: not validated")

// read decodes a line, which must be UTF-8. It replaces the previous content.
func (d *document) read(line []byte) error {
	d.nodes, d.again = d.nodes[:0], 0
	if uint64(len(line)) > maxLine {
		return errTooLong
	}
	d.text = string(line)
	s := scanner{document: d, line: line}
	if s.value(0, 0, 0) && s.peek() == 0 && s.next == len(line) {
		return nil
	}
	if json.Valid(line) {
		return errTooManyValues
	}
	return syntaxError(line)
}

// release frees the content. It keeps some capacity for the next message, but not that of a large one.
func (d *document) release() {
	d.text = ""
	if cap(d.nodes) > keptNodes {
		d.nodes = nil
	}
}

// root returns the whole message.
func (d *document) root() *Value { return &d.nodes[0] }

// kind returns the JSON type, or typeNone for no value.
func (v *Value) kind() jsonType {
	if v == nil {
		return typeNone
	}
	return v.jsonType
}

// equals reports whether the value is the given string.
func (v *Value) equals(text string) bool { return v.kind() == typeString && v.string() == text }

// string returns a string, or "" for any other value.
func (v *Value) string() string {
	switch {
	case v.kind() != typeString:
		return ""
	case v.flags&escaped != 0:
		return unescape(v.raw())
	}
	return v.document.text[v.start:v.end]
}

// name returns the name of a member.
func (v *Value) name() string {
	if v.flags&nameEscaped != 0 {
		return unescape(v.document.text[v.nameStart-1 : v.nameEnd+1])
	}
	return v.document.text[v.nameStart:v.nameEnd]
}

// raw returns the original text of the value.
func (v *Value) raw() string {
	switch v.kind() {
	case typeNone:
		return ""
	case typeString:
		return v.document.text[v.start-1 : v.end+1]
	}
	return v.document.text[v.start:v.end]
}

// number returns the text of a number in the form for the schema library, or "" for any other value.
func (v *Value) number() json.Number {
	if v.kind() != typeNumber {
		return ""
	}
	return exact(json.Number(v.raw()))
}

// isTrue reports whether the value is true.
func (v *Value) isTrue() bool { return v.kind() == typeBoolean && v.document.text[v.start] == 't' }

// children yields the members of an object, without overridden ones, or the elements of an array.
func (v *Value) children() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		if t := v.kind(); t != typeObject && t != typeArray {
			return
		}
		nodes := v.document.nodes
		for i := v.at + 1; i < v.next; i = nodes[i].next {
			if nodes[i].flags&overridden == 0 && !yield(&nodes[i]) {
				return
			}
		}
	}
}

// child returns a member of an object, or nil. If several have the same name, it returns the last one.
func (v *Value) child(name string) *Value {
	if v.kind() == typeObject {
		for m := range v.children() {
			if m.name() == name {
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

// Copy returns a copy of the value that stays valid.
func (v *Value) Copy() *Value {
	if v == nil {
		return nil
	}
	shift := v.start
	if v.jsonType == typeString {
		shift--
	}
	d := &document{text: strings.Clone(v.raw()), nodes: slices.Clone(v.document.nodes[v.at:v.next])}
	for i := range d.nodes {
		m := &d.nodes[i]
		m.document, m.at, m.next = d, uint32(i), m.next-v.at
		m.start, m.end, m.nameStart, m.nameEnd = m.start-shift, m.end-shift, m.nameStart-shift, m.nameEnd-shift
	}
	first := &d.nodes[0]
	first.nameStart, first.nameEnd, first.flags = 0, 0, first.flags&escaped
	return first
}

// unescape returns the text of a JSON string.
func unescape(quoted string) string {
	var s string
	if err := json.Unmarshal([]byte(quoted), &s); err != nil {
		panic(err) // cannot happen: the scanner has checked the string
	}
	return s
}

// twice returns pointers to members whose name occurred before, at most as many as a message may have findings.
func (d *document) twice() (pointers []string) {
	if d.again == 0 {
		return nil
	}
	var path []string
	var visit func(n *Value)
	visit = func(n *Value) {
		nodes, index := n.document.nodes, 0
		for i := n.at + 1; i < n.next && len(pointers) < MaxFindings; i = nodes[i].next {
			token := strconv.Itoa(index)
			if n.jsonType == typeObject {
				token = nodes[i].name()
			}
			path = append(path, token)
			if nodes[i].flags&repeated != 0 {
				pointers = append(pointers, Pointer("", path...))
			}
			if t := nodes[i].jsonType; t == typeObject || t == typeArray {
				visit(&nodes[i])
			}
			path = path[:len(path)-1]
			index++
		}
	}
	visit(d.root())
	return pointers
}

// scanner parses UTF-8 text into a document.
type scanner struct {
	*document
	line  []byte
	next  int
	depth int
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.next < len(s.line); s.next++ {
		switch c := s.line[s.next]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value reads a value. Its name, if it is a member, was read before.
func (s *scanner) value(nameStart, nameEnd uint32, flags uint8) bool {
	at := len(s.nodes)
	if at == maxValues {
		return false
	}
	c := s.peek()
	start := uint32(s.next)
	s.nodes = append(s.nodes, Value{document: s.document, at: uint32(at), nameStart: nameStart, nameEnd: nameEnd,
		flags: flags})
	var t jsonType
	var more uint8
	ok := false
	switch c {
	case '{':
		t, ok = typeObject, s.object(uint32(at))
	case '[':
		t, ok = typeArray, s.array()
	case '"':
		t = typeString
		start++
		more, ok = s.string(escaped)
	case 't':
		t, ok = typeBoolean, s.literal("true")
	case 'f':
		t, ok = typeBoolean, s.literal("false")
	case 'n':
		t, ok = typeNull, s.literal("null")
	default:
		t, ok = typeNumber, s.number()
	}
	n := &s.nodes[at]
	n.start, n.end, n.next = start, uint32(s.next), uint32(len(s.nodes))
	n.jsonType, n.flags = t, n.flags|more
	if t == typeString {
		n.end--
	}
	return ok
}

func (s *scanner) object(at uint32) bool {
	if s.depth++; s.depth > maxDepth {
		return false
	}
	s.next++
	count := 0
	for c := s.peek(); c != '}'; count++ {
		if count > 0 {
			if c != ',' {
				return false
			}
			s.next++
			c = s.peek()
		}
		if c != '"' {
			return false
		}
		start := s.next + 1
		flags, ok := s.string(nameEscaped)
		end := s.next - 1
		if !ok || s.peek() != ':' {
			return false
		}
		s.next++
		if !s.value(uint32(start), uint32(end), flags) {
			return false
		}
		c = s.peek()
	}
	s.next++
	s.depth--
	s.compare(at, count)
	return true
}

func (s *scanner) array() bool {
	if s.depth++; s.depth > maxDepth {
		return false
	}
	s.next++
	for c, first := s.peek(), true; c != ']'; first = false {
		if !first {
			if c != ',' {
				return false
			}
			s.next++
		}
		if !s.value(0, 0, 0) {
			return false
		}
		c = s.peek()
	}
	s.next++
	s.depth--
	return true
}

// compare marks the members of an object that have the same name.
func (s *scanner) compare(at uint32, count int) {
	if count < 2 {
		return
	}
	last := make(map[string]uint32, count)
	for i := at + 1; i < uint32(len(s.nodes)); i = s.nodes[i].next {
		name := s.nodes[i].name()
		if before, ok := last[name]; ok {
			s.same(before, i)
		}
		last[name] = i
	}
}

// same records that two members have the same name.
func (s *scanner) same(before, i uint32) {
	if s.nodes[i].flags&repeated == 0 {
		s.again++
	}
	s.nodes[before].flags |= overridden
	s.nodes[i].flags |= repeated
}

func (s *scanner) literal(want string) bool {
	if !strings.HasPrefix(s.text[s.next:], want) {
		return false
	}
	s.next += len(want)
	return true
}

// string reads a string. It returns the flag if there are escape sequences.
func (s *scanner) string(flag uint8) (flags uint8, ok bool) {
	for s.next++; s.next < len(s.line); {
		switch c := s.line[s.next]; {
		case c == '"':
			s.next++
			return flags, true
		case c == '\\':
			flags = flag
			if !s.escape() {
				return 0, false
			}
		case c < ' ':
			return 0, false
		default:
			s.next++
		}
	}
	return 0, false
}

// escape reads an escape sequence.
func (s *scanner) escape() bool {
	rest := s.line[s.next+1:]
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.next += 2
		return true
	case 'u':
		if len(rest) < 5 {
			return false
		}
		for _, c := range rest[1:5] {
			if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
				return false
			}
		}
		s.next += 6
		return true
	}
	return false
}

// number reads a number.
func (s *scanner) number() bool {
	if s.at() == '-' {
		s.next++
	}
	if s.at() == '0' {
		s.next++
	} else if !s.digits() {
		return false
	}
	if s.at() == '.' {
		s.next++
		if !s.digits() {
			return false
		}
	}
	if s.at()|0x20 == 'e' {
		s.next++
		if c := s.at(); c == '+' || c == '-' {
			s.next++
		}
		return s.digits()
	}
	return true
}

// at returns the next byte, or 0 at the end.
func (s *scanner) at() byte {
	if s.next < len(s.line) {
		return s.line[s.next]
	}
	return 0
}

// digits reads one or more digits.
func (s *scanner) digits() bool {
	start := s.next
	for s.next < len(s.line) && s.line[s.next]-'0' < 10 {
		s.next++
	}
	return s.next > start
}
