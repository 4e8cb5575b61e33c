package sample

// This file owns the judgement of values: a validator of others decides what a schema accepts, and from the
// bare schema it is decided what documented leniency accepts beyond that, and what must come out again.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// A Judge says what a schema's definitions accept. It is safe for concurrent use.
type Judge struct {
	strict, loose, formatted *document
	heights                  map[string]int // of definitions: how deep their values are at least
}

// NewJudge reads a schema document.
func NewJudge(schema []byte) (*Judge, error) {
	root, err := Parse(schema)
	if err != nil {
		return nil, err
	}
	object, _ := root.(map[string]any)
	if _, ok := object["$defs"].(map[string]any); !ok {
		return nil, fmt.Errorf("a schema without $defs")
	}
	j := &Judge{newDocument(object, false, false), newDocument(object, true, false), newDocument(object, false, true), map[string]int{}}
	j.measure()
	return j, nil
}

// Check compiles the definition, as far as it was not.
func (j *Judge) Check(definition string) error {
	for _, d := range []*document{j.strict, j.loose, j.formatted} {
		if _, err := d.compile(d.names[definition]); err != nil {
			return err
		}
	}
	return nil
}

// Valid reports whether the schema accepts v as a value of the definition. Formats of integers count as
// bounds, int64 where there is none; other formats say nothing.
func (j *Judge) Valid(definition string, v any) bool {
	return j.strict.valid(j.strict.names[definition], v)
}

// Sendable reports whether the schema accepts v, and its strings have their formats.
func (j *Judge) Sendable(definition string, v any) bool {
	return j.formatted.valid(j.formatted.names[definition], v)
}

// Tolerated reports whether v is a value of the definition but for what may be read without being reported:
// unknown members where the schema forbids them, names that an enum does not list, tags that a union does
// not list, an object that is more than one branch of a oneOf, a _meta that is null.
func (j *Judge) Tolerated(definition string, v any) bool {
	return j.loose.valid(j.loose.names[definition], v)
}

// Survives returns an error that shows, by a JSON pointer, what of the value want is not in got, or what of
// got was not in want. Members that no part of the schema declares may be missing, and so may one with the
// default of the schema, and a _meta that is null. Numbers are compared exactly.
func (j *Judge) Survives(definition string, want, got any) error {
	d := j.loose
	if j.Valid(definition, want) {
		d = j.strict
	}
	return d.survives("", []any{d.defs[d.names[definition]]}, want, got)
}

// document is a schema document whose definitions, and branches of choices, have plain names: a validator
// need not understand what names there are in the schema.
type document struct {
	loose, formats bool
	given          map[string]any    // the definitions as they are
	names          map[string]string // of definitions
	copies         map[string]string // of definitions in a context
	defs           map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
	broken   error
}

func newDocument(root map[string]any, loose, formats bool) *document {
	given, _ := root["$defs"].(map[string]any)
	d := &document{
		loose: loose, formats: formats, given: given, names: map[string]string{}, copies: map[string]string{}, defs: map[string]any{},
		compiled: map[string]*jsonschema.Schema{},
	}
	for i, name := range slices.Sorted(maps.Keys(given)) {
		d.names[name] = "d" + strconv.Itoa(i)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		d.defs[d.names[name]] = d.rewrite(given[name], context{})
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	for format := range integers {
		c.Formats[format] = func(v any) bool {
			n, ok := v.(json.Number)
			return !ok || !exact(n).IsInt() || fits(format, n)
		}
	}
	for _, format := range []string{"uri", "date-time"} {
		c.Formats[format] = func(v any) bool {
			s, ok := v.(string)
			return !ok || hasFormat(format, s)
		}
	}
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		text, err := json.Marshal(map[string]any{"$defs": d.defs})
		return io.NopCloser(bytes.NewReader(text)), err
	}
	d.compiler = c
	return d
}

// integers are the formats that bound integers.
var integers = map[string]bool{
	"int8": true, "int16": true, "int32": true, "int64": true,
	"uint8": true, "uint16": true, "uint32": true, "uint64": true, "uint": true,
}

// Where the schemas are in a schema.
var (
	oneSchema   = []string{"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items", "contains", "not", "if", "then", "else", "propertyNames"}
	branchLists = []string{"oneOf", "anyOf"}
	namedOnes   = []string{"properties", "patternProperties", "dependentSchemas"}
)

// A context says what the schema around one says of it.
type context struct {
	tags  string // members that tell the branches apart of which it is one, each quoted
	exact bool   // it is such a member, whose values are no names of an enum
	not   bool   // it is forbidden: what is tolerated would forbid more
}

func (c context) tag(name string) bool { return strings.Contains(c.tags, strconv.Quote(name)) }

func (c context) with(names []string) context {
	for _, name := range names {
		if !c.tag(name) {
			c.tags += strconv.Quote(name)
		}
	}
	return c
}

// rewrite returns a copy of a schema: references and branches by the plain names.
func (d *document) rewrite(schema any, c context) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	out := maps.Clone(m)
	for _, prose := range []string{"title", "description", "examples", "$comment", "$id", "$schema", "$defs"} {
		delete(out, prose)
	}
	if format, ok := m["format"].(string); ok && !integers[format] && !(d.formats && (format == "uri" || format == "date-time")) {
		delete(out, "format")
	}
	if types := listOf(m["type"]); m["format"] == nil && (m["type"] == "integer" || slices.Contains(types, any("integer")) && !slices.Contains(types, any("number"))) {
		out["format"] = "int64" // as Go has them
	}
	if ref, ok := m["$ref"].(string); ok {
		out["$ref"] = d.reference(ref, c)
	}
	for _, keyword := range oneSchema {
		if below, ok := m[keyword]; ok {
			out[keyword] = d.rewrite(below, context{not: c.not || keyword == "not" || keyword == "contains" || keyword == "propertyNames"})
		}
	}
	for _, keyword := range namedOnes {
		if named, ok := m[keyword].(map[string]any); ok {
			copied := map[string]any{}
			for name, below := range named {
				copied[name] = d.rewrite(below, context{exact: keyword == "properties" && c.tag(name), not: c.not})
			}
			out[keyword] = copied
		}
	}
	for keyword, inside := range map[string]context{"allOf": c, "prefixItems": {not: c.not}} {
		if list, ok := m[keyword].([]any); ok {
			copied := make([]any, len(list))
			for i, below := range list {
				copied[i] = d.rewrite(below, inside)
			}
			out[keyword] = copied
		}
	}
	for _, keyword := range branchLists {
		if list, ok := m[keyword].([]any); ok {
			d.branches(out, keyword, list, c)
		}
	}
	if d.loose && !c.not {
		d.loosen(m, out, c)
	}
	return out
}

// branches copies a choice.
func (d *document) branches(out map[string]any, keyword string, list []any, c context) {
	loose := d.loose && !c.not
	enum := loose && !c.exact
	tags, having, most := map[string][]any{}, map[string]int{}, 0
	var listed []any
	kind := ""
	for _, branch := range list {
		values, of := scalars(branch)
		enum = enum && of != "" && (kind == "" || of == kind)
		listed, kind = append(listed, values...), of
		own := map[string][]any{}
		d.tags(branch, own, map[string]bool{})
		for name, values := range own {
			tags[name] = append(tags[name], values...)
			having[name]++
			most = max(most, having[name])
		}
	}
	maps.DeleteFunc(tags, func(name string, _ []any) bool { return having[name] < most }) // as the tag is in most branches
	if enum {
		c.exact = true
	}
	inside := c
	if loose {
		inside = c.with(slices.Sorted(maps.Keys(tags)))
	}
	copied := make([]any, len(list))
	for i, branch := range list {
		listing := inside
		if _, of := scalars(branch); of != "" {
			listing.exact = listing.exact || slices.ContainsFunc(list, func(other any) bool { return d.unlisted(other, of) })
		}
		copied[i] = d.apart(d.rewrite(branch, listing))
	}
	out[keyword] = copied
	switch {
	case !loose:
		return
	case enum:
		out[keyword] = append(copied, d.apart(map[string]any{"type": kind, "not": map[string]any{"enum": listed}}))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		if _, text := tags[name][0].(string); !text || c.tag(name) {
			continue // tags of other types, and those of a choice around this one, are not open
		}
		copied = append(copied, d.apart(map[string]any{
			"$comment": otherTags, "type": "object", "required": []any{name}, "additionalProperties": true,
			"properties": map[string]any{name: map[string]any{"type": "string", "not": map[string]any{"enum": tags[name]}}},
		}))
	}
	if keyword == "anyOf" {
		out[keyword] = copied
		return
	}
	// An object with the members of several branches is one of them, with unknown members.
	delete(out, "oneOf")
	out["allOf"] = append(slices.Clone(listOf(out["allOf"])), map[string]any{"anyOf": []any{
		d.apart(map[string]any{"type": "object", "anyOf": copied}),
		d.apart(map[string]any{"not": map[string]any{"type": "object"}, "oneOf": copied}),
	}})
}

// otherTags marks the branch for tags that a union does not list. It says nothing of what fits another branch.
const otherTags = "other tags"

// scalars returns the strings or integers that a schema lists, beside null, and their type.
func scalars(schema any) (values []any, kind string) {
	m, _ := schema.(map[string]any)
	values = listOf(m["enum"])
	if c, ok := m["const"]; ok {
		values = []any{c}
	}
	for _, v := range values {
		of := ""
		switch v := v.(type) {
		case nil:
			continue
		case string:
			of = "string"
		case json.Number:
			if exact(v).IsInt() {
				of = "integer"
			}
		}
		if of == "" || kind != "" && of != kind {
			return nil, ""
		}
		kind = of
	}
	return values, kind
}

// unlisted reports whether a schema is for values of a type, and lists none.
func (d *document) unlisted(schema any, kind string) bool {
	for range 10 {
		m, _ := schema.(map[string]any)
		if ref, ok := m["$ref"].(string); ok {
			schema = d.target(ref)
			continue
		}
		_, isConst := m["const"]
		return m["enum"] == nil && !isConst && (m["type"] == kind || slices.Contains(listOf(m["type"]), any(kind)))
	}
	return false
}

func listOf(v any) []any { l, _ := v.([]any); return l }

// apart makes a schema a definition, and returns a reference to it.
func (d *document) apart(schema any) any {
	name := "b" + strconv.Itoa(len(d.defs))
	d.defs[name] = schema
	return map[string]any{"$ref": "#/$defs/" + name}
}

// reference returns a reference by plain names. In a context it is to a copy of the definition.
func (d *document) reference(ref string, c context) string {
	rest, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return ref
	}
	name, below, deeper := strings.Cut(rest, "/")
	plain, ok := d.names[unescape(name)]
	switch {
	case !ok:
		return ref
	case deeper:
		return "#/$defs/" + plain + "/" + below
	case !d.loose || c == context{}:
		return "#/$defs/" + plain
	}
	key := fmt.Sprintf("%s %v %v %s", plain, c.exact, c.not, c.tags)
	copied, ok := d.copies[key]
	if !ok {
		copied = "c" + strconv.Itoa(len(d.defs))
		d.copies[key], d.defs[copied] = copied, true
		d.defs[copied] = d.rewrite(d.given[unescape(name)], c)
	}
	return "#/$defs/" + copied
}

// loosen makes the copy of a schema accept what is tolerated.
func (d *document) loosen(m, out map[string]any, c context) {
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
		if out[keyword] == false {
			delete(out, keyword)
			if out["properties"] == nil {
				out["properties"] = map[string]any{} // others are unknown
			}
		}
	}
	if values, kind := scalars(m); kind != "" && !c.exact {
		delete(out, "enum")
		delete(out, "const")
		types := []any{kind}
		if slices.Contains(values, nil) {
			types = append(types, "null")
		}
		out["allOf"] = append(slices.Clone(listOf(out["allOf"])), map[string]any{"type": types})
	}
	if properties, ok := out["properties"].(map[string]any); ok {
		if meta, ok := properties["_meta"]; ok {
			properties["_meta"] = map[string]any{"anyOf": []any{d.apart(meta), d.apart(map[string]any{"type": "null"})}}
		}
	}
}

// tags adds the members for which a branch lists strings or numbers.
func (d *document) tags(branch any, tags map[string][]any, seen map[string]bool) {
	m, _ := branch.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	for name, p := range properties {
		if values := d.listed(p, map[string]bool{}); len(values) > 0 {
			tags[name] = append(tags[name], values...)
		}
	}
	if ref, ok := m["$ref"].(string); ok && !seen[ref] {
		seen[ref] = true
		d.tags(d.target(ref), tags, seen)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for _, below := range listOf(m[keyword]) {
			d.tags(below, tags, seen)
		}
	}
}

// listed returns the strings and numbers that a schema lists.
func (d *document) listed(schema any, seen map[string]bool) (out []any) {
	m, _ := schema.(map[string]any)
	values := listOf(m["enum"])
	if c, ok := m["const"]; ok {
		values = []any{c}
	}
	for _, v := range values {
		switch v.(type) {
		case string, json.Number:
			out = append(out, v)
		}
	}
	if ref, ok := m["$ref"].(string); ok && !seen[ref] {
		seen[ref] = true
		out = append(out, d.listed(d.target(ref), seen)...)
	}
	for _, below := range listOf(m["allOf"]) {
		out = append(out, d.listed(below, seen)...)
	}
	return out
}

// target returns the definition that a reference names.
func (d *document) target(ref string) any { return d.given[nameOf(ref)] }

// nameOf returns the name of the definition that a reference names.
func nameOf(ref string) string { return unescape(strings.TrimPrefix(ref, "#/$defs/")) }

// unescape returns the name that a part of a reference stands for.
func unescape(token string) string {
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

func (d *document) compile(name string) (s *jsonschema.Schema, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.compiled[name]; ok {
		return s, nil
	}
	if d.broken != nil {
		return nil, d.broken // the library keeps what it compiled by half
	}
	defer func() {
		if r := recover(); r != nil { // the library does so for some references
			err = fmt.Errorf("%v", r)
		}
		d.broken = err
	}()
	s, err = d.compiler.Compile("schema.json#/$defs/" + name)
	if err != nil {
		return nil, err
	}
	d.compiled[name] = s
	return s, nil
}

func (d *document) valid(name string, v any) bool {
	s, err := d.compile(name)
	if err != nil {
		panic(err) // Check returned it
	}
	return s.Validate(v) == nil
}

// resolve returns the schema that a plain reference names.
func (d *document) resolve(ref string) (name string, schema any) {
	name = strings.TrimPrefix(ref, "#/$defs/")
	return name, d.defs[name]
}

// inForce adds to parts the schemas that v must meet by a schema, or that it meets of its choices.
func (d *document) inForce(parts []map[string]any, schema, v any) []map[string]any {
	m, ok := schema.(map[string]any)
	if !ok {
		return parts
	}
	parts = append(parts, m)
	if ref, ok := m["$ref"].(string); ok {
		_, below := d.resolve(ref)
		parts = d.inForce(parts, below, v)
	}
	all, _ := m["allOf"].([]any)
	for _, below := range all {
		parts = d.inForce(parts, below, v)
	}
	for _, keyword := range branchLists {
		list, _ := m[keyword].([]any)
		known := false
		for _, branch := range list {
			ref, _ := branch.(map[string]any)["$ref"].(string)
			name, below := d.resolve(ref)
			if m, _ := below.(map[string]any); known && m["$comment"] == otherTags {
				continue
			}
			if d.valid(name, v) {
				known = true
				parts = d.inForce(parts, below, v)
			}
		}
	}
	return parts
}

// survives compares two values of schemas that all apply.
func (d *document) survives(at string, schemas []any, want, got any) error {
	var parts []map[string]any
	for _, s := range schemas {
		parts = d.inForce(parts, s, want)
	}
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[name]; !ok {
				return fmt.Errorf("%s/%s: got %s, want nothing", at, name, show(got[name]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			below, declared := memberSchemas(parts, name)
			value, ok := got[name]
			if !ok {
				if declared && !d.mayBeMissing(name, below, want[name]) {
					return fmt.Errorf("%s/%s: got nothing, want %s", at, name, show(want[name]))
				}
				continue
			}
			if err := d.survives(at+"/"+name, below, want[name], value); err != nil {
				return err
			}
		}
		return nil
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			break
		}
		for i := range want {
			if err := d.survives(at+"/"+strconv.Itoa(i), itemSchemas(parts, i), want[i], got[i]); err != nil {
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

// sameDouble reports whether two values are numbers that a schema says are numbers, and the same as such: Go
// has them as float64.
func sameDouble(parts []map[string]any, want, got any) bool {
	a, okA := want.(json.Number)
	b, okB := got.(json.Number)
	if !okA || !okB || !slices.ContainsFunc(parts, func(m map[string]any) bool {
		return m["type"] == "number" || slices.Contains(listOf(m["type"]), any("number"))
	}) {
		return false
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// memberSchemas returns the schemas of a member, and whether it must be kept: it is declared, or the object
// is none that declares members.
func memberSchemas(parts []map[string]any, name string) (below []any, declared bool) {
	closed := false
	for _, m := range parts {
		properties, declares := m["properties"].(map[string]any)
		closed = closed || declares
		if p, ok := properties[name]; ok {
			below, declared = append(below, p), true
			continue
		}
		if more, ok := m["additionalProperties"]; ok {
			below, declared = append(below, more), true
		}
	}
	for _, m := range parts {
		if more, ok := m["unevaluatedProperties"]; ok && !declared {
			return []any{more}, true
		}
	}
	return below, declared || !closed
}

func itemSchemas(parts []map[string]any, i int) (below []any) {
	for _, m := range parts {
		prefix, _ := m["prefixItems"].([]any)
		if i < len(prefix) {
			below = append(below, prefix[i])
		} else if items, ok := m["items"]; ok {
			below = append(below, items)
		}
	}
	return below
}

// mayBeMissing reports whether a member that holds v says the same as none.
func (d *document) mayBeMissing(name string, schemas []any, v any) bool {
	if name == "_meta" && v == nil {
		return true
	}
	for _, s := range schemas {
		for _, m := range d.inForce(nil, s, v) {
			if value, ok := m["default"]; ok && equal(value, v) {
				return true
			}
		}
	}
	return false
}

// equal compares values, numbers exactly.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	return reflect.DeepEqual(a, b)
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, okX := new(big.Rat).SetString(a.String())
	y, okY := new(big.Rat).SetString(b.String())
	return okX && okY && x.Cmp(y) == 0
}

// Equal returns an error that shows the first difference between two values, as a JSON pointer.
func Equal(want, got any) error {
	return (&document{}).survives("", []any{map[string]any{"additionalProperties": true}}, want, got)
}
