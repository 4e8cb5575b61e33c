// Package sample creates JSON values from a schema to test generated code: valid values with every variant and limit,
// and values with a known mistake. It also compares values, ignoring differences that bindings may introduce. It reads
// the structure of schemas by itself, so that a misreading in the generator is not repeated here; what single values
// must be, a validator of a third party decides.
package sample

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema decides which values a schema's definitions accept. It is safe for concurrent use.
type Schema struct {
	root    any
	defs    map[string]any
	choices sync.Map // of *any, the first branch, to *choice
	leaves  sync.Map // of leafKey to *jsonschema.Schema
}

// Load reads a schema document.
func Load(text string) (*Schema, error) {
	root, err := Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	object, _ := root.(map[string]any)
	defs, ok := object["$defs"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a schema without $defs")
	}
	return &Schema{root: root, defs: defs}, nil
}

// Check compiles the definition with a validator of a third party.
func (s *Schema) Check(definition string) (err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics for some references
			err = fmt.Errorf("%v", r)
		}
	}()
	c := newCompiler()
	if err := c.AddResource(location, strings.NewReader(show(s.root))); err != nil {
		return err
	}
	definition = strings.NewReplacer("~", "~0", "/", "~1").Replace(definition)
	_, err = c.Compile(location + "#/$defs/" + url.PathEscape(definition))
	return err
}

// Valid reports whether the schema accepts v as a value of the definition. Integer
// formats count as bounds, with int64 if there is none; other formats are ignored. An object with the tag of a branch
// and the members that the branch requires, each of an allowed type, is not a value of a branch without a tag.
func (s *Schema) Valid(definition string, v any) bool {
	_, ok := s.apply(s.defs[definition], v, context{})
	return ok
}

// Tolerated reports whether v is a value of the definition except for deviations that may be read without being
// reported: unknown members where the schema forbids them, names that an enum does not list, tags that a union does not
// list, an object that matches more than one branch of a oneOf, and a _meta that is null.
func (s *Schema) Tolerated(definition string, v any) bool {
	_, ok := s.apply(s.defs[definition], v, context{loose: true})
	return ok
}

// Same returns an error that shows, with a JSON pointer, a part of want that is not in got, or a part of got that is
// not in want. Members that no part of the schema declares may be missing in got. Members with the schema's default,
// and a _meta that is null, may be missing in either. Numbers are compared exactly.
func (s *Schema) Same(definition string, want, got any) error {
	if equal(want, got) {
		return nil
	}
	c := context{loose: !s.Valid(definition, want)}
	return s.survives("", []any{s.defs[definition]}, want, got, c)
}

// Equal returns an error that shows the first difference between two values, with a JSON pointer.
func Equal(want, got any) error {
	return new(Schema).survives("", []any{map[string]any{"additionalProperties": true}}, want, got, context{})
}

// A context holds what decides about a value beside its schema.
type context struct {
	loose bool     // tolerated values are accepted
	plain bool     // branches with a tag are like others
	exact bool     // the value is a tag, and not a name of an open enum
	tags  []string // the members that distinguish the branches of which the schema is one
	refs  []string // the references that led here from the same value
}

// below is the context of the members and items of the value.
func (c context) below() context { return context{loose: c.loose, plain: c.plain} }

// apply reports whether a schema accepts v. It returns the schemas that apply to v: those that the schema requires, and
// the branches of its choices that v matches.
func (s *Schema) apply(schema, v any, c context) (parts []map[string]any, ok bool) {
	m, object := schema.(map[string]any)
	if !object {
		return nil, schema != false
	}
	parts, ok = []map[string]any{m}, s.accepts(m, v, c)
	also := func(schema any, c context) {
		more, fine := s.apply(schema, v, c)
		parts, ok = append(parts, more...), ok && fine
	}
	if ref, is := m["$ref"].(string); is {
		if slices.Contains(c.refs, ref) { // a schema that refers to itself accepts nothing by that
			return parts, false
		}
		inside := c
		inside.refs = append(slices.Clip(c.refs), ref)
		also(s.target(ref), inside)
	}
	for _, below := range listOf(m["allOf"]) {
		also(below, c)
	}
	for _, keyword := range branchLists {
		if list := listOf(m[keyword]); len(list) > 0 {
			more, fine := s.choose(m, keyword, v, c)
			parts, ok = append(parts, more...), ok && fine
		}
	}
	if not, is := m["not"]; is && ok {
		_, forbidden := s.apply(not, v, context{plain: true, refs: c.refs})
		ok = !forbidden
	}
	return parts, ok && s.acceptsInside(m, parts, v, c)
}

// branchLists are the keywords whose schemas are branches of a choice.
var branchLists = []string{"oneOf", "anyOf"}

// accepts reports whether the keywords of a schema that are not about other schemas accept a value.
func (s *Schema) accepts(m map[string]any, v any, c context) bool {
	values := listed(m)
	kind := kindOf(values)
	open := c.loose && !c.exact && kind != ""
	if open && !isType(v, kind) && !(v == nil && slices.Contains(values, nil)) {
		return false
	}
	return s.leaf(m, c.loose, open).Validate(v) == nil
}

// The keywords that are not about other schemas, those of them that need not hold in a tolerated value, and those whose
// values a later schema may add to.
var (
	plainKeywords = []string{"type", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
	uncheckedKeywords = []string{"pattern", "multipleOf", "uniqueItems"}
	openKeywords      = []string{"const", "enum"}
)

type leafKey struct {
	schema      uintptr
	loose, open bool
}

// leaf compiles the keywords of a schema that are not about other schemas, without those of an open enum.
func (s *Schema) leaf(m map[string]any, loose, open bool) *jsonschema.Schema {
	key := leafKey{reflect.ValueOf(m).Pointer(), loose, open}
	if known, ok := s.leaves.Load(key); ok {
		return known.(*jsonschema.Schema)
	}
	kept := map[string]any{"format": integerFormat(m)}
	for keyword, value := range m {
		if slices.Contains(plainKeywords, keyword) || !loose && slices.Contains(uncheckedKeywords, keyword) ||
			!open && slices.Contains(openKeywords, keyword) {
			kept[keyword] = value
		}
	}
	compiler := newCompiler()
	if err := compiler.AddResource(location, strings.NewReader(show(kept))); err != nil {
		panic(err) // it is JSON
	}
	compiled := compiler.MustCompile(location) // Check has returned the error
	s.leaves.Store(key, compiled)
	return compiled
}

// location is where a validator finds a schema.
const location = "sample:///schema"

func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	for format := range integers {
		least, most := limits(format)
		c.Formats[format] = func(v any) bool {
			n := number(v)
			return n == nil || !n.IsInt() || n.Num().Cmp(least) >= 0 && n.Num().Cmp(most) <= 0
		}
	}
	return c
}

// integers has the number of bits for each format of integers, negative without a sign.
var integers = map[string]int{
	"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": -8, "uint16": -16, "uint32": -32, "uint64": -64, "uint": -64,
}

// integerFormat returns the format of a schema's integers, which is int64 if the schema does not say any, as in Go.
func integerFormat(m map[string]any) string {
	types := typesOf(m)
	format, stated := m["format"].(string)
	switch {
	case !stated && slices.Contains(types, any("integer")) && !slices.Contains(types, any("number")):
		return "int64"
	case integers[format] == 0 || m["type"] == "number":
		return ""
	}
	return format
}

// limits returns the smallest and the greatest integer of a format, which is int64 if it is not known.
func limits(format string) (least, most *big.Int) {
	bits, one := cmp.Or(integers[format], 64), big.NewInt(1)
	if bits < 0 {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(-bits)), one)
	}
	most = new(big.Int).Lsh(one, uint(bits-1))
	return new(big.Int).Neg(most), new(big.Int).Sub(most, one)
}

// acceptsInside reports whether a schema accepts the members or items of v, to which the parts apply.
func (s *Schema) acceptsInside(m map[string]any, parts []map[string]any, v any, c context) bool {
	fine := func(schema, v any, c context) bool { _, ok := s.apply(schema, v, c); return ok }
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			for _, schema := range itemSchemas([]map[string]any{m}, i) {
				if !fine(schema, item, c.below()) {
					return false
				}
			}
		}
	case map[string]any:
		for name, value := range v {
			if names, ok := m["propertyNames"]; ok && !c.loose && !fine(names, name, context{plain: true}) {
				return false
			}
			schema, below := m["additionalProperties"], c.below()
			if p, ok := properties(m)[name]; ok {
				schema, below.exact = p, slices.Contains(c.tags, name)
				if c.loose && name == "_meta" && value == nil {
					continue
				}
			} else if more, ok := m["unevaluatedProperties"]; ok && !evaluated(parts, name) {
				schema = more
			}
			if unknown := schema == nil || c.loose && schema == false && properties(m)[name] == nil; !unknown &&
				!fine(schema, value, below) {
				return false
			}
		}
	}
	return true
}

// evaluated reports whether one of the parts declares a member, so that unevaluatedProperties does not apply to it.
func evaluated(parts []map[string]any, name string) bool {
	return slices.ContainsFunc(parts, func(m map[string]any) bool {
		_, named := properties(m)[name]
		_, more := m["additionalProperties"]
		return named || more
	})
}

// A choice is what distinguishes the branches of a oneOf or anyOf.
type choice struct {
	names []any            // the names or integers of an open enum whose branches list them one by one
	kind  string           // their type
	open  []bool           // for each branch: another one takes any value of the type that this one lists
	tags  map[string][]any // the members that tell the branches apart, with their values
	aware map[string][]any // the branches that have each of the tags that are strings
	other map[string]bool  // a branch is for other values of the tag
}

func (s *Schema) choiceOf(m map[string]any, keyword string) *choice {
	list := listOf(m[keyword])
	if known, ok := s.choices.Load(&list[0]); ok {
		return known.(*choice)
	}
	c := &choice{tags: s.tagsOf(m, list), aware: map[string][]any{}, other: map[string]bool{}}
	enum := true
	for _, branch := range list {
		values := listed(s.referred(branch))
		kind := kindOf(values)
		enum = enum && kind != "" && (c.kind == "" || kind == c.kind)
		c.names, c.kind = append(c.names, values...), kind
		c.open = append(c.open, slices.ContainsFunc(list, func(other any) bool {
			m := s.referred(other)
			return kind != "" && listed(m) == nil && slices.Contains(typesOf(m), any(kind))
		}))
	}
	if !enum {
		c.kind = ""
	}
	for tag, values := range c.tags {
		for _, branch := range list {
			required, members := s.members(branch)
			if _, text := values[0].(string); text && members[tag] != nil {
				c.aware[tag] = append(c.aware[tag], branch)
				unlisted := slices.Contains(required, any(tag)) && len(s.listedBy(members[tag]...)) == 0
				c.other[tag] = c.other[tag] || unlisted
			}
		}
	}
	s.choices.Store(&list[0], c)
	return c
}

// choose is apply for the branches of a choice.
func (s *Schema) choose(m map[string]any, keyword string, v any, c context) (parts []map[string]any, ok bool) {
	choice := s.choiceOf(m, keyword)
	inside := c
	if c.loose && !c.exact && choice.kind != "" {
		if isType(v, choice.kind) && !slices.ContainsFunc(choice.names, func(name any) bool { return equal(v, name) }) {
			return nil, true
		}
		inside.exact = true
	}
	if c.loose {
		inside.tags = slices.AppendSeq(slices.Clip(c.tags), maps.Keys(choice.tags))
	}
	matching := 0
	for i, branch := range listOf(m[keyword]) {
		its := inside
		its.exact = its.exact || choice.open[i]
		if more, fine := s.apply(branch, v, its); fine {
			parts, matching = append(parts, more...), matching+1
		}
	}
	object, is := v.(map[string]any)
	if !is {
		return parts, matching == 1 || matching > 1 && keyword == "anyOf"
	}
	if matching == 0 && c.loose {
		for tag, values := range choice.tags {
			_, strings := values[0].(string) // tags of other types, and those of a choice around this one, are not open
			text, ok := object[tag].(string)
			if ok && strings && !slices.Contains(values, any(text)) && !slices.Contains(c.tags, tag) {
				parts, matching = append(parts, map[string]any{"required": []any{tag}, "additionalProperties": true}), 1
			}
		}
	}
	// An object with the members of several branches is a value of one of them, with unknown members.
	ok = matching == 1 || matching > 1 && (keyword == "anyOf" || c.loose)
	return parts, ok && (c.plain || s.commits(choice, object, inside))
}

// commits reports whether an object belongs to the branch for its tag, if it has one. An object with the tag of a branch,
// and the members that the branch requires, each of an allowed type, belongs to that branch, even if a branch without
// the tag accepts it. A mistake elsewhere in the object makes it invalid, and does not make it a value of another
// branch. If a branch is for other tags, any object with a known tag belongs to a branch with the tag.
func (s *Schema) commits(choice *choice, object map[string]any, c context) bool {
	takes := func(branch any) bool { _, ok := s.apply(branch, object, c); return ok }
	for tag, aware := range choice.aware {
		value, has := object[tag]
		_, text := value.(string)
		broken := func(branch any) bool { return s.signed(branch, tag, object) && !takes(branch) }
		switch {
		case !has, len(aware) == len(choice.open):
		case choice.other[tag]:
			if known := !text || slices.Contains(choice.tags[tag], value); known && !slices.ContainsFunc(aware, takes) {
				return false
			}
		case slices.ContainsFunc(aware, broken):
			return false
		}
	}
	return true
}

// signed reports whether an object has the value of a tag that a branch requires, and the members that the branch
// requires, each of an allowed type.
func (s *Schema) signed(branch any, tag string, object map[string]any) bool {
	required, members := s.members(branch)
	values := s.listedBy(members[tag]...)
	if !slices.Contains(required, any(tag)) || len(values) != 1 || values[0] != object[tag] {
		return false
	}
	for _, name := range required {
		schemas := members[name.(string)]
		value, ok := object[name.(string)]
		if !ok || name != tag && !hasTrue(schemas, onError) && !(value == nil && hasTrue(schemas, onNull)) &&
			slices.ContainsFunc(schemas, func(schema any) bool { return !s.mayBe(value, schema, 0) }) {
			return false
		}
	}
	return true
}

// tagsOf returns the members that tell the branches of a choice apart, with the strings and numbers that the branches
// list for them. They are in most branches, and not only in choices inside branches. A choice only between one branch
// and null has none.
func (s *Schema) tagsOf(choice map[string]any, branches []any) map[string][]any {
	tags, own, having, most, count := map[string][]any{}, map[string]bool{}, map[string]int{}, 0, 0
	for _, branch := range branches {
		if slices.ContainsFunc(kinds, func(v any) bool { return s.mayBe(v, branch, 0) != (v == nil) }) {
			count++
		}
		its := map[string][]any{}
		s.addTags(branch, its, own, map[string]bool{})
		for name, values := range its {
			tags[name] = append(tags[name], values...)
			having[name]++
			most = max(most, having[name])
		}
	}
	maps.DeleteFunc(tags, func(name string, _ []any) bool { return !own[name] || having[name] < most || count < 2 })
	d, _ := choice["discriminator"].(map[string]any)
	if name, _ := d["propertyName"].(string); tags[name] != nil {
		return map[string][]any{name: tags[name]}
	}
	return tags
}

// addTags adds the members for which a branch lists strings or numbers to tags. It adds those with one value that are
// not in choices inside the branch to own, unless own is nil.
func (s *Schema) addTags(branch any, tags map[string][]any, own, seen map[string]bool) {
	for _, m := range s.parts(branch, seen) {
		for name, p := range properties(m) {
			if values := s.listedBy(p); len(values) > 0 {
				tags[name] = append(tags[name], values...)
				if own != nil && len(values) == 1 {
					own[name] = true
				}
			}
		}
		for _, keyword := range branchLists {
			for _, below := range listOf(m[keyword]) {
				s.addTags(below, tags, nil, seen)
			}
		}
	}
}

// alone reports whether the keyword is the only one in a schema that restricts values.
func alone(schema map[string]any, keyword string) bool {
	for k := range schema {
		switch k {
		case keyword, "title", "description", "discriminator":
		default:
			return false
		}
	}
	return true
}

// parts returns a schema with those that it refers to and combines, but not the branches of choices.
func (s *Schema) parts(schema any, seen map[string]bool) (out []map[string]any) {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	out = append(out, m)
	if ref, ok := m["$ref"].(string); ok && !seen[ref] {
		seen[ref] = true
		out = append(out, s.parts(s.target(ref), seen)...)
	}
	for _, below := range listOf(m["allOf"]) {
		out = append(out, s.parts(below, seen)...)
	}
	return out
}

// members returns the names of the members that the objects of a schema must have, and the schemas of all members.
func (s *Schema) members(schema any) (required []any, members map[string][]any) {
	members = map[string][]any{}
	for _, m := range s.parts(schema, map[string]bool{}) {
		required = append(required, listOf(m["required"])...)
		for name, p := range properties(m) {
			members[name] = append(members[name], p)
		}
	}
	return required, members
}

// mayBe reports whether a schema allows the type of a value. It treats integers and numbers alike.
func (s *Schema) mayBe(v, schema any, depth int) bool {
	alike := func(w any) bool { return typeOf(w) == typeOf(v) }
	for _, m := range s.parts(schema, map[string]bool{}) {
		types, values := typesOf(m), listed(m)
		if types != nil && !slices.Contains(types, any(typeOf(v))) &&
			!(typeOf(v) == "number" && slices.Contains(types, any("integer"))) ||
			values != nil && !slices.ContainsFunc(values, alike) {
			return false
		}
		for _, keyword := range branchLists {
			if branches, ok := m[keyword].([]any); ok && depth < 20 &&
				!slices.ContainsFunc(branches, func(branch any) bool { return s.mayBe(v, branch, depth+1) }) {
				return false
			}
		}
	}
	return true
}

// typesOf returns the types that a schema names, or nil if it names none.
func typesOf(m map[string]any) []any {
	if t, ok := m["type"].(string); ok {
		return []any{t}
	}
	return listOf(m["type"])
}

// typeOf returns the JSON type of a value.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

func isType(v, t any) bool {
	n, ok := v.(json.Number)
	return t == typeOf(v) || t == "integer" && ok && exact(n).IsInt()
}

// listed returns the values that a schema lists, or nil.
func listed(m map[string]any) []any {
	if c, ok := m["const"]; ok {
		return []any{c}
	}
	return listOf(m["enum"])
}

// kindOf returns the type of values that are all strings or all integers, possibly with null, or "".
func kindOf(values []any) (kind string) {
	for _, v := range values {
		of := ""
		for _, t := range []string{"string", "integer"} {
			if isType(v, t) {
				of = t
			}
		}
		if v != nil && (of == "" || kind != "" && of != kind) {
			return ""
		}
		kind = cmp.Or(of, kind)
	}
	return kind
}

// listedBy returns the strings and numbers that the schemas list.
func (s *Schema) listedBy(schemas ...any) (out []any) {
	for _, schema := range schemas {
		for _, m := range s.parts(schema, map[string]bool{}) {
			for _, v := range listed(m) {
				switch v.(type) {
				case string, json.Number:
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// referred returns the target of a schema that is only a reference, and otherwise the schema itself.
func (s *Schema) referred(schema any) map[string]any {
	m, _ := schema.(map[string]any)
	for range 20 {
		ref, ok := m["$ref"].(string)
		if !ok || !alone(m, "$ref") {
			break
		}
		m, _ = s.target(ref).(map[string]any)
	}
	return m
}

// target returns the schema to which a reference points.
func (s *Schema) target(ref string) any {
	schema := s.root
	for token := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if plain, err := url.PathUnescape(token); err == nil {
			token = plain
		}
		m, _ := schema.(map[string]any)
		schema = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return schema
}

func listOf(v any) []any { l, _ := v.([]any); return l }

func properties(m map[string]any) map[string]any { p, _ := m["properties"].(map[string]any); return p }

// survives compares two values to which all the schemas apply.
func (s *Schema) survives(at string, schemas []any, want, got any, c context) error {
	parts := s.inForce(schemas, want, c)
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			below, _ := memberSchemas(parts, name)
			if _, ok := want[name]; !ok && !s.mayBeMissing(name, below, got[name], c) {
				return fmt.Errorf("%s/%s: got %s, want nothing", at, name, show(got[name]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			below, declared := memberSchemas(parts, name)
			value, ok := got[name]
			if !declared {
				continue // if it is there, it may have lost members
			}
			if !ok && !s.mayBeMissing(name, below, want[name], c) {
				return fmt.Errorf("%s/%s: got nothing, want %s", at, name, show(want[name]))
			}
			if ok {
				if err := s.survives(at+"/"+name, below, want[name], value, c); err != nil {
					return err
				}
			}
		}
		return nil
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			break
		}
		for i := range want {
			if err := s.survives(at+"/"+strconv.Itoa(i), itemSchemas(parts, i), want[i], got[i], c); err != nil {
				return err
			}
		}
		return nil
	}
	if !equal(want, got) && !sameDouble(parts, want, got) {
		return fmt.Errorf("%s: got %s, want %s", at, show(got), show(want))
	}
	return nil
}

// inForce returns all parts of the schemas that apply to v.
func (s *Schema) inForce(schemas []any, v any, c context) (parts []map[string]any) {
	for _, schema := range schemas {
		more, _ := s.apply(schema, v, c)
		parts = append(parts, more...)
	}
	return parts
}

// sameDouble reports whether two values are numbers, have the type number in a schema, and are equal as float64, which
// is their type in Go.
func sameDouble(parts []map[string]any, want, got any) bool {
	a, okA := want.(json.Number)
	b, okB := got.(json.Number)
	if !okA || !okB ||
		!slices.ContainsFunc(parts, func(m map[string]any) bool { return slices.Contains(typesOf(m), any("number")) }) {
		return false
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// memberSchemas returns the schemas of a member, and whether it must be kept because it is declared or the object does
// not declare members.
func memberSchemas(parts []map[string]any, name string) (below []any, declared bool) {
	closed := false
	add := func(schema any) {
		below = append(below, schema)
		declared, closed = declared || schema != false, closed || schema == false
	}
	for _, m := range parts {
		closed = closed || m["properties"] != nil
		if p, ok := properties(m)[name]; ok {
			add(p)
		} else if more, ok := m["additionalProperties"]; ok {
			add(more)
		}
	}
	for _, m := range parts {
		if more, ok := m["unevaluatedProperties"]; ok && !declared {
			add(more)
		}
	}
	return below, declared || !closed
}

func itemSchemas(parts []map[string]any, i int) (below []any) {
	for _, m := range parts {
		if prefix := listOf(m["prefixItems"]); i < len(prefix) {
			below = append(below, prefix[i])
		} else if items, ok := m["items"]; ok {
			below = append(below, items)
		}
	}
	return below
}

// mayBeMissing reports whether a member that holds v means the same as no member.
func (s *Schema) mayBeMissing(name string, schemas []any, v any, c context) bool {
	return name == "_meta" && v == nil || slices.ContainsFunc(s.inForce(schemas, v, c), func(m map[string]any) bool {
		value, ok := m["default"]
		return ok && (s.survives("", schemas, v, value, c) == nil || s.survives("", schemas, value, v, c) == nil)
	})
}

// equal compares values, numbers exactly.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || exact(a).Cmp(exact(b)) == 0)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	return reflect.DeepEqual(a, b)
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// Parse reads a JSON value. Numbers are json.Number.
func Parse(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// exact returns the exact value of a number.
func exact(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("not a number: " + n)
	}
	return r
}

// number returns a keyword's number, or nil.
func number(v any) *big.Rat {
	if n, ok := v.(json.Number); ok {
		return exact(n)
	}
	return nil
}
