package sample

import (
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
	least   bool // numbers and strings are as short as possible
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
		m.depth, m.steps = 0, 0
		v = m.value(m.schema.strict.given[definition])
		if m.schema.Valid(definition, v) {
			return v, true
		}
	}
	return nil, false
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
	if m.one(25) {
		return m.any()
	}
	return m.spoil(v)
}

func (m *Maker) spoil(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 && !m.one(6) {
			name := m.key(v)
			out := maps.Clone(v)
			if m.one(5) {
				delete(out, name)
			} else {
				out[name] = m.spoil(v[name])
			}
			return out
		}
		if m.one(2) {
			out := maps.Clone(v)
			name := "zzUnknown"
			if m.one(3) {
				name = m.text()
			}
			out[name] = m.any()
			return out
		}
	case []any:
		if len(v) > 0 && !m.one(4) {
			out := slices.Clone(v)
			i := m.rand.IntN(len(v))
			switch m.rand.IntN(5) {
			case 0:
				return slices.Delete(out, i, i+1)
			case 1:
				return append(out, v[i])
			}
			out[i] = m.spoil(v[i])
			return out
		}
		if m.one(2) {
			return append(slices.Clone(v), m.any())
		}
	case string:
		switch m.rand.IntN(6) {
		case 0:
			return v + "x"
		case 1:
			return ""
		case 2:
			return m.text()
		case 3:
			return strings.ToUpper(v)
		}
	case json.Number:
		one := big.NewRat(1, 1)
		n := exact(v)
		switch m.rand.IntN(6) {
		case 0:
			return number10(n.Add(n, one))
		case 1:
			return number10(n.Sub(n, one))
		case 2:
			if _, exact := n.Add(n, big.NewRat(1, 2)).Float64(); exact {
				return number10(n)
			}
		case 3:
			return number10(n.Neg(n))
		case 4:
			return m.integer("")
		}
	case bool:
		if m.one(2) {
			return !v
		}
	}
	return m.any()
}

func (m *Maker) key(v map[string]any) string {
	names := slices.Sorted(maps.Keys(v))
	return names[m.rand.IntN(len(names))]
}

// number10 writes a number whose denominator divides a power of ten.
func number10(n *big.Rat) json.Number {
	if n.IsInt() {
		return json.Number(n.Num().String())
	}
	digits, _ := n.FloatPrec()
	return json.Number(n.FloatString(digits))
}

func (m *Maker) one(in int) bool { return m.rand.IntN(in) == 0 }

// small reports whether the value must not grow any further.
func (m *Maker) small() bool { return m.depth > m.deepest || m.steps > m.longest }

// value makes a value that a schema may accept.
func (m *Maker) value(schema any) any {
	m.depth++
	m.steps++
	defer func() { m.depth-- }()
	if m.depth > m.deepest+12 || m.steps > 20*m.longest { // it is endless
		return nil
	}
	f := facets{}
	m.collect(&f, schema, 0)
	return m.meeting(&f)
}

// facets are the schemas that a value must satisfy together.
type facets struct {
	parts   []map[string]any
	listed  [][]any // the values that each enum or const allows
	nothing bool
}

// collect adds the parts of a schema, with one branch of each choice.
func (m *Maker) collect(f *facets, schema any, depth int) {
	if depth > 60 {
		f.nothing = true
		return
	}
	node, ok := schema.(map[string]any)
	if !ok {
		f.nothing = f.nothing || schema == false
		return
	}
	f.parts = append(f.parts, node)
	if c, ok := node["const"]; ok {
		f.listed = append(f.listed, []any{c})
	}
	if values, ok := node["enum"].([]any); ok {
		f.listed = append(f.listed, values)
	}
	if ref, ok := node["$ref"].(string); ok {
		m.collect(f, m.schema.strict.target(ref), depth+1)
	}
	for _, below := range listOf(node["allOf"]) {
		m.collect(f, below, depth+1)
	}
	for _, keyword := range branchLists {
		branches := listOf(node[keyword])
		if len(branches) == 0 {
			continue
		}
		m.collect(f, branches[m.rand.IntN(len(branches))], depth+1)
	}
}

// allTypes are the JSON types, with integer as a separate type.
var allTypes = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// meeting makes a value that meets the facets.
func (m *Maker) meeting(f *facets) any {
	if f.nothing {
		return m.any()
	}
	if len(f.listed) > 0 {
		list := f.listed[m.rand.IntN(len(f.listed))]
		for _, other := range f.listed {
			list = slices.DeleteFunc(slices.Clone(list), func(v any) bool {
				return !slices.ContainsFunc(other, func(w any) bool { return equal(v, w) })
			})
		}
		if len(list) == 0 {
			return m.any()
		}
		if m.least {
			return list[0]
		}
		return list[m.rand.IntN(len(list))]
	}
	types := m.types(f)
	if len(types) == 0 {
		return m.any()
	}
	if m.small() && slices.Contains(types, "null") {
		return nil
	}
	switch types[m.rand.IntN(len(types))] {
	case "null":
		return nil
	case "boolean":
		return m.one(2)
	case "integer":
		return m.numeric(f, true)
	case "number":
		return m.numeric(f, m.one(4))
	case "string":
		return m.stringFor(f)
	case "array":
		return m.array(f)
	}
	return m.object(f)
}

// types returns the types that all facets allow.
func (m *Maker) types(f *facets) []string {
	out, stated := slices.Clone(allTypes), false
	structured := ""
	for _, part := range f.parts {
		list := listOf(part["type"])
		if t, ok := part["type"].(string); ok {
			list = []any{t}
		}
		for keyword, kind := range map[string]string{"properties": "object", "required": "object",
			"additionalProperties": "object", "items": "array", "prefixItems": "array"} {
			if _, ok := part[keyword]; ok {
				structured = kind
			}
		}
		if list == nil {
			continue
		}
		stated = true
		out = slices.DeleteFunc(out, func(t string) bool {
			return !slices.Contains(list, any(t)) && (t != "integer" || !slices.Contains(list, any("number")))
		})
	}
	if m.full && len(out) > 1 {
		out = slices.DeleteFunc(out, func(t string) bool { return t == "null" })
	}
	if !stated && structured != "" && !m.one(8) {
		return []string{structured}
	}
	return out
}

// limit returns the strictest bound that the facets give for a keyword: the greatest of the lower bounds, or the least
// of the upper bounds.
func (f *facets) limit(keyword string, greatest bool) *big.Rat {
	var out *big.Rat
	for _, part := range f.parts {
		if n, ok := part[keyword].(json.Number); ok {
			if r := exact(n); out == nil || greatest == (r.Cmp(out) > 0) {
				out = r
			}
		}
	}
	return out
}

func (f *facets) count(keyword string, greatest bool, otherwise int) int {
	if r := f.limit(keyword, greatest); r != nil && r.IsInt() && r.Num().IsInt64() {
		return int(min(r.Num().Int64(), 1<<20))
	}
	return otherwise
}

func (f *facets) text(keyword string) (out []string) {
	for _, part := range f.parts {
		if s, ok := part[keyword].(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// numeric makes a number between the bounds, and often a bound itself.
func (m *Maker) numeric(f *facets, whole bool) json.Number {
	format := ""
	for _, name := range f.text("format") {
		if integers[name] != 0 {
			format = name
		}
	}
	var candidates []*big.Rat
	for _, keyword := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		inward := int64(1)
		if strings.HasSuffix(strings.ToLower(keyword), "maximum") {
			inward = -1
		}
		if r := f.limit(keyword, inward > 0); r != nil {
			candidates = append(candidates, r, new(big.Rat).Add(r, big.NewRat(inward, 1)), new(big.Rat).Add(r, big.NewRat(inward, 4)))
		}
	}
	if len(candidates) > 0 && !m.one(4) {
		c := candidates[m.rand.IntN(len(candidates))]
		if !whole || c.IsInt() {
			return number10(c)
		}
	}
	if whole {
		return m.integer(format)
	}
	edges := []json.Number{"0", "0.1", "-1.5", "1e21", "1e-7", "1.7976931348623157e308", "5e-324", "123456789.125", "0.0",
		"-0", "1E2", "100"}
	if m.one(2) {
		return json.Number(strconv.FormatFloat(m.rand.NormFloat64()*1000, 'g', -1, 64))
	}
	return edges[m.rand.IntN(len(edges))]
}

// integer makes an integer of a format, often one of its limits.
func (m *Maker) integer(format string) json.Number {
	if m.least {
		return "0"
	}
	least, most := limits(format)
	switch m.rand.IntN(8) {
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
	case 5:
		return "0"
	}
	return json.Number(strconv.Itoa(m.rand.IntN(120)))
}

// awkward holds strings that are easily corrupted in transit.
var awkward = []string{"", "x", "hello world", "héllo ✓ 𝄞", "quote \" backslash \\ slash /", "tab\tline\nreturn\r",
	"\u2028\u2029", "\x00\x1f\x7f", "</script>", "$ref", "2026-11-02T10:00:00Z", "日本語", "null", "1"}

func (m *Maker) text() string {
	if m.least {
		return ""
	}
	text := awkward[m.rand.IntN(len(awkward))]
	if m.one(4) {
		text += strconv.Itoa(m.rand.IntN(1000))
	}
	return text
}

var (
	uris  = []string{"https://example.com/a?b=%20#c", "file:///tmp/a%20b", "urn:x:y"}
	times = []string{"2026-11-02T10:00:00Z", "2026-11-02T10:00:00.123+05:30"}
)

func (m *Maker) stringFor(f *facets) string {
	text := m.text()
	for _, format := range f.text("format") {
		switch format {
		case "uri":
			text = uris[m.rand.IntN(len(uris))]
		case "date-time":
			text = times[m.rand.IntN(len(times))]
		}
	}
	// A schema may demand more than fits into memory. Then the validator refuses the value.
	if missing := min(f.count("minLength", true, 0), 1<<16) - utf8.RuneCountInString(text); missing > 0 {
		text += strings.Repeat(string([]rune("aé💥")[m.rand.IntN(3)]), missing)
	}
	if most := f.count("maxLength", false, -1); most >= 0 && utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	return text
}

func (m *Maker) array(f *facets) any {
	var prefix int
	for _, part := range f.parts {
		prefix = max(prefix, len(listOf(part["prefixItems"])))
	}
	least := f.count("minItems", true, 0)
	most := f.count("maxItems", false, least+prefix+2)
	count := least
	if m.full && !m.small() {
		count = max(least, min(most, 2))
	} else if !m.small() && most > least {
		count += m.rand.IntN(min(most-least, 4) + 1)
	}
	out := []any{}
	for i := range min(count, 2000) {
		schemas := itemSchemas(f.parts, i)
		if slices.Contains(schemas, any(false)) && i >= least {
			break
		}
		out = append(out, m.valueOfAll(schemas))
	}
	return out
}

// valueOfAll makes a value that all schemas may accept.
func (m *Maker) valueOfAll(schemas []any) any {
	if len(schemas) == 1 {
		return m.value(schemas[0])
	}
	return m.value(map[string]any{"allOf": schemas})
}

func (m *Maker) object(f *facets) any {
	out := map[string]any{}
	required := map[string]bool{}
	names := map[string]bool{}
	declares, closed := false, false
	for _, part := range f.parts {
		properties, _ := part["properties"].(map[string]any)
		declares = declares || part["properties"] != nil
		for name := range properties {
			names[name] = true
		}
		for _, name := range listOf(part["required"]) {
			if name, ok := name.(string); ok {
				required[name], names[name] = true, true
			}
		}
		closed = closed || part["additionalProperties"] == false || part["unevaluatedProperties"] == false
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !required[name] && (m.small() || !m.full && m.one(2)) {
			continue
		}
		below, _ := memberSchemas(f.parts, name)
		if !required[name] && slices.Contains(below, any(false)) {
			continue
		}
		out[name] = m.valueOfAll(below)
	}
	if closed || m.small() {
		return out
	}
	below, open := memberSchemas(f.parts, "zz never declared")
	count := 0
	switch {
	case declares && !open && (m.known || !m.one(4)):
	case open && m.full:
		count = 2
	default:
		count = m.rand.IntN(3)
	}
	for range count {
		name := m.text()
		if m.one(3) {
			name = "zzUnknown"
		}
		if _, ok := out[name]; !ok && !names[name] {
			out[name] = m.valueOfAll(below)
		}
	}
	return out
}

// any makes any JSON value.
func (m *Maker) any() any {
	m.depth++
	m.steps++
	defer func() { m.depth-- }()
	switch kind := m.rand.IntN(9); {
	case kind == 0:
		return nil
	case kind == 1:
		return m.one(2)
	case kind == 2:
		return json.Number("12345678901234567890")
	case kind == 3:
		return json.Number("-0.10e+2")
	case kind == 4:
		return json.Number("42")
	case kind < 7 || m.depth > m.deepest:
		return m.text()
	case kind == 7:
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
func (j *Schema) Lists(definition string) (out []List) {
	m := NewKnownMaker(j, 1)
	m.least, m.deepest = true, 0
	smallest := func(schemas []any) (f facets, v any) {
		m.depth, m.steps = 0, 0
		for _, schema := range schemas {
			m.collect(&f, schema, 0)
		}
		m.depth = 1
		return f, m.meeting(&f)
	}
	seen := map[string]bool{}
	first := func(what string) bool {
		before := seen[what]
		seen[what] = true
		return !before
	}
	for range tries {
		of, owner := smallest([]any{j.strict.given[definition]})
		if _, ok := owner.(map[string]any); !ok || !first(show(owner)) {
			continue
		}
		for _, part := range of.parts {
			properties, _ := part["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				below, _ := memberSchemas(of.parts, name)
				held, _ := smallest(below)
				list := List{Owner: maps.Clone(owner.(map[string]any)), Member: name}
				items := itemSchemas(held.parts, 0)
				for _, part := range held.parts {
					if more, ok := part["additionalProperties"]; ok && part["properties"] == nil {
						list.Map, items = true, append(items, more)
					}
				}
				if len(items) == 0 {
					continue
				}
				for range tries {
					if _, item := smallest(items); first(name + " " + show(item)) {
						list.Items = append(list.Items, item)
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
