package sample

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Maker makes values of definitions. Equal seeds produce equal values. It is not safe for concurrent use.
type Maker struct {
	schema  *Schema
	rand    *rand.Rand
	full    bool // every member is present
	known   bool // only members and values that the schema knows
	least   bool // values are as short as possible, but a list that is the whole value has one item
	depth   int
	steps   int // of the value that is being made
	deepest int // beyond this depth, or longest steps, only required parts are made
	longest int
}

// NewMaker returns a maker of all kinds of values: with members that are present, null or absent, with unknown members,
// variants and enum values, and with numbers at their limits.
func NewMaker(s *Schema, seed uint64) *Maker {
	return &Maker{schema: s, rand: rand.New(rand.NewPCG(seed, 2)), deepest: 9, longest: 150}
}

// NewKnownMaker returns a maker of values that have only members and values known to the schema, and are therefore
// valid.
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

// NewSmallMaker returns a maker of valid values that are not deep.
func NewSmallMaker(s *Schema, seed uint64) *Maker {
	m := NewMaker(s, seed)
	m.deepest, m.longest = 4, 60
	return m
}

// Value makes a value of a definition.
func (m *Maker) Value(definition string) any {
	v, ok := m.Valid(definition)
	if !ok {
		panic("no value of " + definition + " is found")
	}
	if m.known || m.one(2) {
		return v
	}
	for range 5 {
		w, more := m.opened(v)
		// With a wrong member in a map, a value may become a value of the branch that needs no tag.
		if m.schema.Tolerated(definition, w) && !(more && m.schema.Valid(definition, w)) {
			return w
		}
	}
	return v
}

// Valid makes a value that the schema accepts. It reports false if there is no such value or none is easily found.
func (m *Maker) Valid(definition string) (v any, ok bool) {
	for range 60 {
		if v = m.whole(m.schema.defs[definition]); m.schema.Valid(definition, v) {
			return v, true
		}
	}
	return nil, false
}

// whole makes a value that is not inside another one.
func (m *Maker) whole(schemas ...any) any {
	m.depth, m.steps = 0, 0
	return m.value(schemas...)
}

// opened changes a value in one place to something that a later schema may know: another string, with or without
// additional members next to it.
func (m *Maker) opened(v any) (w any, more bool) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return v, false
		}
		out := maps.Clone(v)
		name := m.key(v)
		out[name], more = m.opened(v[name])
		if _, text := v[name].(string); text && m.one(2) {
			out["zzKept"], out["zzNumber"], more = m.any(), json.Number("12345678901234567890"), true
		}
		return out, more
	case []any:
		if len(v) > 0 {
			out := slices.Clone(v)
			i := m.rand.IntN(len(v))
			out[i], more = m.opened(v[i])
			return out, more
		}
	case string:
		return "future_" + strconv.Itoa(m.rand.IntN(1000)), false
	}
	return v, false
}

// Spoilt returns a value with one place changed. The result may be valid.
func (m *Maker) Spoilt(v any) any {
	m.depth, m.steps = 0, 0
	return m.spoil(v)
}

func (m *Maker) spoil(v any) any {
	if m.one(12) {
		return m.any()
	}
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		switch {
		case len(v) == 0 || m.one(8):
			out[pick(m, "zzUnknown", m.text())] = m.any()
		case m.one(5):
			delete(out, m.key(v))
		default:
			name := m.key(v)
			out[name] = m.spoil(v[name])
		}
		return out
	case []any:
		out := slices.Clone(v)
		if len(v) == 0 {
			return append(out, m.any())
		}
		i := m.rand.IntN(len(v))
		switch m.rand.IntN(6) {
		case 0:
			return slices.Delete(out, i, i+1)
		case 1:
			return append(out, pick(m, v[i], m.any()))
		}
		out[i] = m.spoil(v[i])
		return out
	case string:
		return pick[any](m, v+"x", "", m.text(), strings.ToUpper(v), m.any())
	case json.Number:
		n := exact(v)
		more, less := new(big.Rat).Add(n, big.NewRat(1, 1)), new(big.Rat).Sub(n, big.NewRat(1, 1))
		return pick[any](m, decimal(more), decimal(less), decimal(n.Neg(n)), json.Number("0.5"), m.integer(""), m.any())
	case bool:
		return pick(m, any(!v), m.any())
	}
	return m.any()
}

func (m *Maker) key(v map[string]any) string { return pick(m, slices.Sorted(maps.Keys(v))...) }

func (m *Maker) one(in int) bool { return m.rand.IntN(in) == 0 }

func pick[T any](m *Maker, of ...T) T { return of[m.rand.IntN(len(of))] }

// decimal writes a number whose denominator divides a power of ten.
func decimal(n *big.Rat) json.Number {
	digits, _ := n.FloatPrec()
	return json.Number(n.FloatString(digits))
}

// small reports whether the value must not grow any further.
func (m *Maker) small() bool { return m.depth > m.deepest || m.steps > m.longest }

// value makes a value that all schemas may accept.
func (m *Maker) value(schemas ...any) any {
	m.depth++
	m.steps++
	defer func() { m.depth-- }()
	if m.depth > m.deepest+12 || m.steps > 20*m.longest { // it is endless
		return nil
	}
	var parts []map[string]any
	for _, schema := range schemas {
		more, ok := m.collect(schema, 0)
		if parts = append(parts, more...); !ok {
			return m.any()
		}
	}
	return m.meeting(parts)
}

// collect returns the parts of a schema, with one branch of each choice, and false if nothing matches them.
func (m *Maker) collect(schema any, depth int) (parts []map[string]any, ok bool) {
	node, is := schema.(map[string]any)
	if !is || depth > 60 {
		return nil, schema != false && depth <= 60
	}
	below := listOf(node["allOf"])
	if ref, is := node["$ref"].(string); is {
		below = append(slices.Clip(below), m.schema.target(ref))
	}
	for _, keyword := range branchLists {
		if branches := listOf(node[keyword]); len(branches) > 0 {
			below = append(slices.Clip(below), pick(m, branches...))
		}
	}
	parts, ok = []map[string]any{node}, true
	for _, schema := range below {
		more, fine := m.collect(schema, depth+1)
		parts, ok = append(parts, more...), ok && fine
	}
	return parts, ok
}

// meeting makes a value to which the parts may apply.
func (m *Maker) meeting(parts []map[string]any) any {
	for _, part := range parts {
		if values := listed(part); len(values) > 0 && m.least {
			return values[0]
		} else if len(values) > 0 {
			return pick(m, values...)
		}
	}
	types := m.types(parts)
	if m.small() && slices.Contains(types, "null") {
		return nil
	}
	if len(types) == 0 {
		return m.any()
	}
	switch pick(m, types...) {
	case "null":
		return nil
	case "boolean":
		return m.one(2)
	case "integer":
		return m.numeric(parts, true)
	case "number":
		return m.numeric(parts, m.one(4))
	case "string":
		return m.stringFor(parts)
	case "array":
		return m.array(parts)
	}
	return m.object(parts)
}

// types returns the types that all parts allow.
func (m *Maker) types(parts []map[string]any) []string {
	out := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
	stated, likely := false, ""
	for _, part := range parts {
		for _, keyword := range []string{"items", "prefixItems"} {
			if part[keyword] != nil {
				likely = "array"
			}
		}
		for _, keyword := range []string{"properties", "required", "additionalProperties"} {
			if part[keyword] != nil {
				likely = "object"
			}
		}
		if list := typesOf(part); list != nil {
			stated = true
			out = slices.DeleteFunc(out, func(t string) bool {
				return !slices.Contains(list, any(t)) && (t != "integer" || !slices.Contains(list, any("number")))
			})
		}
	}
	if m.full && len(out) > 1 {
		out = slices.DeleteFunc(out, func(t string) bool { return t == "null" })
	}
	if !stated && likely != "" && !m.one(8) {
		return []string{likely}
	}
	return out
}

// limit returns the strictest bound that the parts give for a keyword: the greatest of the lower bounds, or the least
// of the upper bounds.
func limit(parts []map[string]any, keyword string, greatest bool) (out *big.Rat) {
	for _, part := range parts {
		if r := number(part[keyword]); r != nil && (out == nil || greatest == (r.Cmp(out) > 0)) {
			out = r
		}
	}
	return out
}

// count returns a bound of a length. A schema may demand more than fits into memory. Then the schema refuses the value.
func count(parts []map[string]any, keyword string, greatest bool, otherwise int) int {
	if r := limit(parts, keyword, greatest); r != nil && r.IsInt() && r.Num().IsInt64() {
		return int(min(r.Num().Int64(), 1<<16))
	}
	return otherwise
}

// numeric makes a number between the bounds, and often a bound itself.
func (m *Maker) numeric(parts []map[string]any, whole bool) json.Number {
	var candidates []*big.Rat
	for keyword, inward := range bounds {
		if r := limit(parts, keyword, inward > 0); r != nil {
			next, near := new(big.Rat).Add(r, big.NewRat(inward, 1)), new(big.Rat).Add(r, big.NewRat(inward, 4))
			candidates = append(candidates, r, next, near)
		}
	}
	slices.SortFunc(candidates, (*big.Rat).Cmp)
	if len(candidates) > 0 && !m.one(4) {
		if c := pick(m, candidates...); !whole || c.IsInt() {
			return decimal(c)
		}
	}
	if whole {
		format := ""
		for _, part := range parts {
			format = cmp.Or(integerFormat(part), format)
		}
		return m.integer(format)
	}
	if m.one(2) {
		return json.Number(strconv.FormatFloat(m.rand.NormFloat64()*1000, 'g', -1, 64))
	}
	return pick[json.Number](m, "0", "0.1", "-1.5", "1e21", "1e-7", "1.7976931348623157e308", "5e-324", "123456789.125",
		"0.0", "-0", "1E2", "100")
}

// bounds are the keywords that bound numbers, with the direction in which the numbers are.
var bounds = map[string]int64{"minimum": 1, "exclusiveMinimum": 1, "maximum": -1, "exclusiveMaximum": -1}

// integer makes an integer of a format, often one of its limits.
func (m *Maker) integer(format string) json.Number {
	if m.least {
		return "0"
	}
	least, most := limits(format)
	if m.one(3) {
		return json.Number(strconv.Itoa(m.rand.IntN(120)))
	}
	out := pick(m, json.Number(least.String()), json.Number(most.String()), "9007199254740993", "7.0", "1e1", "0")
	if out == "9007199254740993" && most.BitLen() <= 53 {
		return "1"
	}
	return out
}

// awkward holds strings that are easily corrupted in transit.
var awkward = []string{"", "x", "hello world", "héllo ✓ 𝄞", "quote \" backslash \\ slash /", "tab\tline\nreturn\r",
	"\u2028\u2029", "\x00\x1f\x7f", "</script>", "$ref", "2026-11-02T10:00:00Z", "日本語", "null", "1"}

func (m *Maker) text() string {
	if m.least {
		return ""
	}
	text := pick(m, awkward...)
	if m.one(4) {
		text += strconv.Itoa(m.rand.IntN(1000))
	}
	return text
}

func (m *Maker) stringFor(parts []map[string]any) string {
	text := m.text()
	for _, part := range parts {
		switch part["format"] {
		case "uri":
			text = pick(m, "https://example.com/a?b=%20#c", "file:///tmp/a%20b", "urn:x:y")
		case "date-time":
			text = pick(m, "2026-11-02T10:00:00Z", "2026-11-02T10:00:00.123+05:30")
		}
	}
	if missing := count(parts, "minLength", true, 0) - utf8.RuneCountInString(text); missing > 0 {
		text += strings.Repeat(pick(m, "a", "é", "💥"), missing)
	}
	if most := count(parts, "maxLength", false, -1); most >= 0 && utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	return text
}

func (m *Maker) array(parts []map[string]any) any {
	prefix := 0
	for _, part := range parts {
		prefix = max(prefix, len(listOf(part["prefixItems"])))
	}
	least := count(parts, "minItems", true, 0)
	most := count(parts, "maxItems", false, least+prefix+2)
	size := least
	switch {
	case m.least && m.depth == 1:
		size = max(least, 1)
	case m.small() || most <= least:
	case m.full:
		size = max(least, min(most, 2))
	default:
		size += m.rand.IntN(min(most-least, 4) + 1)
	}
	out := []any{}
	for i := range min(size, 2000) {
		schemas := itemSchemas(parts, i)
		if slices.Contains(schemas, any(false)) && i >= least {
			break
		}
		out = append(out, m.value(schemas...))
	}
	return out
}

func (m *Maker) object(parts []map[string]any) any {
	out := map[string]any{}
	names, required := map[string]bool{}, map[string]bool{}
	declares, closed := false, false
	for _, part := range parts {
		declares = declares || part["properties"] != nil
		for name := range properties(part) {
			names[name] = true
		}
		for _, name := range listOf(part["required"]) {
			if name, ok := name.(string); ok {
				names[name], required[name] = true, true
			}
		}
		closed = closed || part["additionalProperties"] == false || part["unevaluatedProperties"] == false
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		below, _ := memberSchemas(parts, name)
		left := m.small() || !m.full && m.one(2) || slices.Contains(below, any(false))
		if required[name] || !left {
			out[name] = m.value(below...)
		}
	}
	below, open := memberSchemas(parts, "zz never declared")
	more := 0
	switch {
	case closed:
	case m.least && m.depth == 1 && len(names) == 0:
		more = 1
	case m.small() || declares && !open && (m.known || !m.one(4)):
	case open && m.full:
		more = 2
	default:
		more = m.rand.IntN(3)
	}
	for range more {
		name := pick(m, m.text(), "zzUnknown")
		if !names[name] {
			out[name] = m.value(below...)
		}
	}
	return out
}

// any makes any JSON value.
func (m *Maker) any() any {
	m.depth++
	m.steps++
	defer func() { m.depth-- }()
	switch kind := m.rand.IntN(8); {
	case kind == 0:
		return nil
	case kind == 1:
		return m.one(2)
	case kind < 4:
		return pick[json.Number](m, "12345678901234567890", "-0.10e+2", "42")
	case kind < 6 || m.depth > m.deepest:
		return m.text()
	case kind == 6:
		list := []any{}
		for range m.rand.IntN(3) {
			list = append(list, m.any())
		}
		return list
	}
	object := map[string]any{}
	for range m.rand.IntN(3) {
		object[m.text()] = m.any()
	}
	return object
}

// A List is an array, or an object without fixed members, that a member of a definition's values can hold.
type List struct {
	Owner  map[string]any // a small value of the definition
	Member string
	Map    bool
	Items  []any // small ones, of each form
}

// Lists returns the lists that each variant of a definition can hold.
func (s *Schema) Lists(definition string) (out []List) {
	m := NewKnownMaker(s, 1)
	m.least, m.deepest = true, 0
	seen := map[string]bool{}
	first := func(what string) bool {
		before := seen[what]
		seen[what] = true
		return !before
	}
	for range tries {
		owner, ok := m.whole(s.defs[definition]).(map[string]any)
		if !ok || !first(show(owner)) {
			continue
		}
		parts := s.inForce([]any{s.defs[definition]}, owner, context{})
		for _, part := range parts {
			for _, name := range slices.Sorted(maps.Keys(properties(part))) {
				below, _ := memberSchemas(parts, name)
				list := List{Owner: maps.Clone(owner), Member: name}
				for range tries {
					var items []any
					switch held := m.whole(below...).(type) {
					case []any:
						items = held
					case map[string]any:
						if item, ok := held["zzUnknown"]; ok {
							list.Map, items = true, []any{item}
						}
					}
					for _, item := range items {
						if first(name + " " + show(item)) {
							list.Items = append(list.Items, item)
						}
					}
				}
				if len(list.Items) > 0 {
					out = append(out, list)
				}
			}
		}
	}
	return out
}

// tries is how many values Lists makes to find all forms.
const tries = 60
