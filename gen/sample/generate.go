// This file owns making valid values.

package sample

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Maker makes values of a schema's definitions. Equal seeds make equal values.
type Maker struct {
	schema *Schema
	rand   *rand.Rand
	full   bool // every member is there
	known  bool // nothing that the schema does not know
	depth  int
}

// NewMaker returns a maker of all kinds of values: members that are there, null or not there, unknown
// members, variants and enum values, the limits of numbers.
func NewMaker(s *Schema, seed uint64) *Maker {
	return &Maker{schema: s, rand: rand.New(rand.NewPCG(seed, 1))}
}

// NewKnownMaker returns a maker of values without what the schema does not know: they are valid.
func NewKnownMaker(s *Schema, seed uint64) *Maker {
	m := NewMaker(s, seed)
	m.known = true
	return m
}

// NewFullMaker returns a maker of valid values that have every member.
func NewFullMaker(s *Schema, seed uint64) *Maker {
	m := NewKnownMaker(s, seed)
	m.full = true
	return m
}

// Value makes a value of a definition.
func (m *Maker) Value(definition string) any { return m.value(m.schema.defs[definition]) }

const maxDepth = 12

func (m *Maker) one(in int) bool { return m.rand.IntN(in) == 0 }

func (m *Maker) value(n *node) any {
	m.depth++
	defer func() { m.depth-- }()
	if n.anything() {
		return m.any()
	}
	n = m.schema.target(n)
	switch {
	case n.anything():
		return m.any()
	case n.enumerates():
		return m.enum(n)
	case n.props != nil || n.closed() || len(n.branches) > 0 || len(n.allOf) > 0:
		return m.compound(n)
	}
	return m.leaf(n)
}

// compound makes a value of a schema with properties or branches.
func (m *Maker) compound(n *node) any {
	if n.props == nil && len(n.branches) > 0 {
		return m.branch(n)
	}
	object := map[string]any{}
	m.properties(n, object)
	for _, all := range n.allOf {
		m.mergeInto(object, m.value(all))
	}
	if n.ref != "" {
		m.mergeInto(object, m.value(m.schema.defs[n.ref]))
	}
	if len(n.branches) > 0 {
		delete(object, n.tag)
		m.mergeInto(object, m.branch(n))
	}
	return object
}

func (m *Maker) mergeInto(object map[string]any, v any) {
	if members, ok := v.(map[string]any); ok {
		maps.Copy(object, members)
	}
}

// branch makes a value of one of the branches, or of one that nobody knows.
func (m *Maker) branch(n *node) any {
	if n.tag != "" && !m.known && m.one(6) {
		return m.unknown(n)
	}
	if def := n.defaultBranch(); def != nil && !m.known && m.one(3) {
		object := map[string]any{}
		m.mergeInto(object, m.value(def))
		object[n.tag] = m.someTag(n)
		return object
	}
	for {
		b := n.branches[m.rand.IntN(len(n.branches))]
		if b.catchAll && m.full {
			continue
		}
		v := m.value(b)
		if object, ok := v.(map[string]any); ok && b.catchAll {
			object[n.tag] = "_vendor"
			object["zzKept"] = m.any()
		}
		return v
	}
}

// unknown makes a variant that the schema does not list.
func (m *Maker) unknown(n *node) any {
	return map[string]any{
		n.tag:      "future_" + strconv.Itoa(m.rand.IntN(1000)),
		"zzKept":   m.any(),
		"zzNumber": json.Number("12345678901234567890"),
	}
}

// someTag makes the tag of one of the branches, of a variant that nobody knows, or none.
func (m *Maker) someTag(n *node) any {
	tags := []any{"", "future", json.Number("1")}
	for _, b := range n.branches {
		if c, ok := b.props[n.tag].constant(); ok {
			tags = append(tags, c)
		}
	}
	return tags[m.rand.IntN(len(tags))]
}

// properties makes the members of an object.
func (m *Maker) properties(n *node, object map[string]any) {
	for _, name := range n.names {
		p := n.props[name]
		switch {
		case slices.Contains(n.required, name):
		case m.full:
		case m.depth > maxDepth || m.one(2):
			continue
		}
		if c, ok := p.constant(); ok {
			object[name] = c
			continue
		}
		object[name] = m.value(p)
	}
	if !m.known && m.one(4) {
		object["zzUnknown"] = m.any()
	}
}

func (m *Maker) enum(n *node) any {
	branches := n.branches
	if len(branches) == 0 {
		branches = []*node{n}
	}
	if !m.known && m.one(8) && slices.Contains(branches[0].types, "string") {
		return "future_" + strconv.Itoa(m.rand.IntN(1000))
	}
	var values []any
	for _, b := range branches {
		values = append(values, b.consts...)
	}
	return values[m.rand.IntN(len(values))]
}

func (m *Maker) leaf(n *node) any {
	types := slices.Clone(n.types)
	if m.full && len(types) > 1 {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	}
	switch types[m.rand.IntN(len(types))] {
	case "null":
		return nil
	case "boolean":
		return m.one(2)
	case "integer":
		return m.bounded(n, func() json.Number { return m.integer(n.format) })
	case "number":
		return m.bounded(n, m.number)
	case "string":
		return m.string(n)
	case "array":
		count := m.rand.IntN(3)
		if m.full {
			count = 2
		}
		if m.depth > maxDepth {
			count = 0
		}
		list := []any{}
		for range max(count, n.min("minItems")) {
			list = append(list, m.value(n.items))
		}
		return list
	}
	return m.mapping(n.values)
}

func (m *Maker) mapping(values *node) any {
	object := map[string]any{}
	count := m.rand.IntN(3)
	if m.full {
		count = 2
	}
	for i := range count {
		object[m.text()+strconv.Itoa(i)] = m.value(values)
	}
	return object
}

func (m *Maker) integer(format string) json.Number {
	least, most := limits(format)
	switch m.rand.IntN(6) {
	case 0:
		return json.Number(least.String())
	case 1:
		return json.Number(most.String())
	case 2:
		if most.IsInt64() && most.Int64() < 1<<53 {
			return "1"
		}
		return "9007199254740993"
	case 3:
		return "7.0"
	case 4:
		return "1e1"
	}
	return json.Number(strconv.Itoa(m.rand.IntN(200)))
}

func (m *Maker) number() json.Number {
	edges := []float64{0, 0.1, -1.5, 1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, 123456789.125}
	v := edges[m.rand.IntN(len(edges))]
	if m.one(2) {
		v = m.rand.NormFloat64() * 1000
	}
	return json.Number(strconv.FormatFloat(v, 'e', -1, 64))
}

// texts are strings that are easily spoilt on the way.
var texts = []string{"", "x", "hello world", "héllo ✓ 𝄞", "quote \" backslash \\ slash /", "tab\tline\nreturn\r", "\u2028\u2029", "\x00\x1f\x7f", "</script>", "$ref", "2026-11-02T10:00:00Z", "日本語"}

func (m *Maker) text() string {
	text := texts[m.rand.IntN(len(texts))]
	if m.one(4) {
		text += fmt.Sprint(m.rand.IntN(1000))
	}
	return text
}

// formatted are strings for the formats and patterns of schemas.
var formatted = []string{"https://example.com/a?b=%20#c", "file:///tmp/a%20b", "urn:x:y", "2026-11-02T10:00:00Z", "2026-11-02T10:00:00.123+05:30", "EUR", "USD", "1.2.3", "0.10.0-rc.1+x", "0", "a", "A"}

// string makes a string that n accepts, by its format, too.
func (m *Maker) string(n *node) string {
	if n.pattern == nil && n.format != "uri" && n.format != "date-time" {
		text := m.text()
		for len([]rune(text)) < n.min("minLength") {
			text += "x"
		}
		return text
	}
	for first := m.rand.IntN(len(formatted)); ; first++ {
		text := formatted[first%len(formatted)]
		if n.pattern != nil && n.pattern.MatchString(text) ||
			n.format == "uri" && strings.Contains(text, ":") && !strings.Contains(text, "T") ||
			n.format == "date-time" && strings.Contains(text, "T") {
			return text
		}
		if first > 2*len(formatted) {
			panic(fmt.Sprintf("no string at hand for the pattern %s", n.pattern))
		}
	}
}

// bounded makes a number that lies between the bounds of n, one of them at times.
func (m *Maker) bounded(n *node, number func() json.Number) json.Number {
	for range 20 {
		if v := number(); n.within(v) {
			return v
		}
	}
	for _, keyword := range []string{"minimum", "maximum"} {
		if b := n.bounds[keyword]; b != nil {
			return json.Number(b.RatString())
		}
	}
	panic("no bounds, and no number between them")
}

// any makes any JSON value.
func (m *Maker) any() any {
	switch kind := m.rand.IntN(8); {
	case kind == 0:
		return nil
	case kind == 1:
		return true
	case kind == 2:
		return json.Number("12345678901234567890")
	case kind == 3:
		return json.Number("-0.10e+2")
	case kind < 6 || m.depth > maxDepth:
		return m.text()
	case kind == 6:
		m.depth++
		defer func() { m.depth-- }()
		return []any{m.any(), m.any()}
	}
	m.depth++
	defer func() { m.depth-- }()
	return map[string]any{"a": m.any(), m.text(): m.any()}
}
