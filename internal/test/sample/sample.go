// Package sample creates JSON values from a schema to test generated code: valid values with every variant and limit,
// and values with a known mistake. It also compares values, ignoring differences that bindings may introduce. A
// third-party schema validator decides which values are valid; everything else is read directly from the schema, so
// that a misreading in the generator is not repeated here.
package sample

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Schema decides which values a schema's definitions accept. It is safe for concurrent use.
type Schema struct {
	strict, loose *document
}

// Load reads a schema document.
func Load(text string) (*Schema, error) {
	root, err := Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	object, _ := root.(map[string]any)
	if _, ok := object["$defs"].(map[string]any); !ok {
		return nil, fmt.Errorf("a schema without $defs")
	}
	return &Schema{newDocument(object, false), newDocument(object, true)}, nil
}

// Check compiles the definition, unless it is already compiled.
func (j *Schema) Check(definition string) error {
	for _, d := range []*document{j.strict, j.loose} {
		if _, err := d.compile(d.names[definition]); err != nil {
			return err
		}
	}
	return nil
}

// Valid reports whether the schema accepts v as a value of the definition. Integer
// formats count as bounds, with int64 if there is none; other formats are ignored. An object with the tag of a branch
// and the members that the branch requires, each of an allowed type, is not a value of a branch without a tag.
func (j *Schema) Valid(definition string, v any) bool {
	return j.strict.valid(j.strict.names[definition], v)
}

// Tolerated reports whether v is a value of the definition except for deviations that may be read without being
// reported: unknown members where the schema forbids them, names that an enum does not list, tags that a union does not
// list, an object that matches more than one branch of a oneOf, and a _meta that is null.
func (j *Schema) Tolerated(definition string, v any) bool {
	return j.loose.valid(j.loose.names[definition], v)
}

// Same returns an error that shows, with a JSON pointer, a part of want that is not in got, or a part of got that is
// not in want. Members that no part of the schema declares may be missing in got. Members with the schema's default,
// and a _meta that is null, may be missing in either. Numbers are compared exactly.
func (j *Schema) Same(definition string, want, got any) error {
	if equal(want, got) {
		return nil
	}
	d := j.loose
	if j.Valid(definition, want) {
		d = j.strict
	}
	return d.survives("", []any{d.defs[d.names[definition]]}, want, got)
}

// document is a schema document whose definitions and branches of choices have plain names, so that a validator need
// not understand the names in the schema.
type document struct {
	loose  bool              // it accepts tolerated values
	given  map[string]any    // the original definitions
	names  map[string]string // of definitions
	copies map[string]string // of definitions in a context
	defs   map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
	broken   error
}

func newDocument(root map[string]any, loose bool) *document {
	given, _ := root["$defs"].(map[string]any)
	d := &document{
		loose: loose, given: given, names: map[string]string{}, copies: map[string]string{},
		defs:     map[string]any{},
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
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		name := strings.TrimPrefix(url, definitionURL)
		definition, ok := d.defs[name]
		if !ok {
			return nil, fmt.Errorf("no definition %q", name)
		}
		text, err := json.Marshal(map[string]any{"$defs": map[string]any{name: definition}})
		return io.NopCloser(bytes.NewReader(text)), err
	}
	d.compiler = c
	return d
}

// definitionURL is where the validator finds the definitions. Each has its own document, because for each part of a
// schema that the validator compiles, it goes through all parts of the document.
const definitionURL = "sample:///"

// refTo returns a reference to the definition with a plain name, in its document.
func refTo(name string) string { return definitionURL + name + "#/$defs/" + name }

// integers has the number of bits for each format of integers, negative without a sign.
var integers = map[string]int{
	"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": -8, "uint16": -16, "uint32": -32, "uint64": -64, "uint": -64,
}

// The keywords with schemas inside a schema.
var (
	oneSchema = []string{"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items", "contains", "not",
		"if", "then", "else", "propertyNames"}
	branchLists = []string{"oneOf", "anyOf"}
	namedOnes   = []string{"properties", "patternProperties", "dependentSchemas"}
)

// A context holds the information about a schema that comes from the schemas around it.
type context struct {
	tags  string // members that distinguish the branches of which it is one, each quoted
	exact bool   // it is such a member, and its values are not names of an enum
	not   bool   // it is forbidden, so tolerance would forbid more
}

func (c context) tag(name string) bool { return strings.Contains(c.tags, strconv.Quote(name)) }

func (c context) add(names []string) context {
	for _, name := range names {
		if !c.tag(name) {
			c.tags += strconv.Quote(name)
		}
	}
	return c
}

// rewrite returns a copy of a schema that uses the plain names for references and branches.
func (d *document) rewrite(schema any, c context) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	out := maps.Clone(m)
	for _, prose := range []string{"title", "description", "examples", "$comment", "$id", "$schema", "$defs"} {
		delete(out, prose)
	}
	if format, ok := m["format"].(string); ok && (integers[format] == 0 || m["type"] == "number") {
		delete(out, "format")
	}
	if types := listOf(m["type"]); m["format"] == nil &&
		(m["type"] == "integer" || slices.Contains(types, any("integer")) && !slices.Contains(types, any("number"))) {
		out["format"] = "int64" // as in Go
	}
	if d.loose && !c.not {
		for _, unchecked := range []string{"pattern", "multipleOf", "uniqueItems"} {
			delete(out, unchecked)
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		out["$ref"] = d.reference(ref, c)
	}
	for _, keyword := range oneSchema {
		if below, ok := m[keyword]; ok {
			out[keyword] = d.rewrite(below, context{
				not: c.not || keyword == "not" || keyword == "contains" || keyword == "propertyNames",
			})
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
		delete(out, "propertyNames")
		d.loosen(m, out, c)
	}
	return out
}

// tagsOf returns the tags of branches with their values, the tags that do not occur only in choices inside branches,
// the number of branches that have each tag, and the number of branches that have the most frequent tag.
func (d *document) tagsOf(branches []any) (tags map[string][]any, own map[string]bool, having map[string]int,
	most int) {
	tags, own, having = map[string][]any{}, map[string]bool{}, map[string]int{}
	for _, branch := range branches {
		its := map[string][]any{}
		d.tags(branch, its, own, map[string]bool{})
		for name, values := range its {
			tags[name] = append(tags[name], values...)
			having[name]++
			most = max(most, having[name])
		}
	}
	return tags, own, having, most
}

// branches copies a choice.
func (d *document) branches(out map[string]any, keyword string, list []any, c context) {
	loose := d.loose && !c.not
	enum := loose && !c.exact
	var listed []any
	kind := ""
	for _, branch := range list {
		values, of := scalars(d.referred(branch))
		enum = enum && of != "" && (kind == "" || of == kind)
		listed, kind = append(listed, values...), of
	}
	tags, own, having, most := d.tagsOf(list)
	// The tag is in most branches. A choice only between one branch and null has no tag.
	values := slices.DeleteFunc(slices.Clone(list),
		func(branch any) bool { return slices.Equal(d.types(branch, 0), []string{"null"}) })
	maps.DeleteFunc(tags, func(name string, _ []any) bool { return having[name] < most || len(values) < 2 })
	maps.DeleteFunc(own, func(name string, _ bool) bool { return tags[name] == nil })
	discriminated(out, own)
	if enum {
		c.exact = true
	}
	inside := c
	if loose {
		inside = c.add(slices.Sorted(maps.Keys(own)))
	}
	copied := make([]any, len(list))
	for i, branch := range list {
		listing := inside
		if _, of := scalars(d.referred(branch)); of != "" {
			listing.exact = listing.exact || slices.ContainsFunc(list, func(other any) bool { return d.unlisted(other, of) })
		}
		copied[i] = d.define(d.rewrite(branch, listing))
	}
	out[keyword] = copied
	if !c.not {
		d.commitNested(out, list, copied, own, tags, inside)
	}
	switch {
	case !loose:
		return
	case enum:
		out[keyword] = append(copied, d.define(map[string]any{"type": kind, "not": map[string]any{"enum": listed}}))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if _, text := tags[name][0].(string); !text || c.tag(name) {
			continue // tags of other types, and those of a choice around this one, are not open
		}
		copied = append(copied, d.define(map[string]any{
			"$comment": otherTags, "type": "object", "required": []any{name}, "additionalProperties": true,
			"properties": map[string]any{name: map[string]any{"type": "string", "not": map[string]any{"enum": tags[name]}}},
		}))
	}
	if keyword == "anyOf" {
		out[keyword] = copied
		return
	}
	// An object with the members of several branches is a value of one of them, with unknown members.
	delete(out, "oneOf")
	out["allOf"] = append(slices.Clone(listOf(out["allOf"])), map[string]any{"anyOf": []any{
		d.define(map[string]any{"type": "object", "anyOf": copied}),
		d.define(map[string]any{"not": map[string]any{"type": "object"}, "oneOf": copied}),
	}})
}

// discriminated keeps only one of the members that could be the tag of a choice if the choice's discriminator names it.
func discriminated(choice map[string]any, tags map[string]bool) {
	d, _ := choice["discriminator"].(map[string]any)
	if name, ok := d["propertyName"].(string); ok && tags[name] {
		maps.DeleteFunc(tags, func(other string, _ bool) bool { return other != name })
	}
}

// otherTags marks the branch for tags that a union does not list. It does not apply to values that match another
// branch.
const otherTags = "other tags"

// commit adds a rule to the copy of a schema with a choice: an object with the tag of a branch, and the members that
// the branch requires, each of an allowed type, belongs to that branch, even if a branch without the tag accepts it. A
// mistake elsewhere in the object makes it invalid, and does not make it a value of another branch. If a branch is for
// other tags, any object with the tag belongs to a branch with the tag.
func (d *document) commit(out map[string]any, list, copied []any, own map[string]bool, tags map[string][]any) {
	for _, tag := range slices.Sorted(maps.Keys(own)) {
		if _, text := tags[tag][0].(string); !text {
			continue
		}
		var signatures, aware []any
		open, fallback := false, false
		for i, branch := range list {
			fallback = fallback || out["type"] != "object" && len(d.types(branch, 0)) == len(allTypes)
			required, members := d.members(branch)
			if members[tag] != nil {
				aware = append(aware, copied[i])
			}
			if signature := d.signature(required, members, tag); signature != nil {
				signatures = append(signatures, map[string]any{"if": signature, "then": copied[i]})
			} else if slices.Contains(required, any(tag)) && len(d.listedValues(members[tag]...)) == 0 {
				open = true
			}
		}
		switch {
		case fallback || len(aware) == len(list): // the branch for any value accepts values of no other branch
		case open:
			unlisted := map[string]any{"type": "string", "not": map[string]any{"enum": tags[tag]}}
			out["allOf"] = append(slices.Clone(listOf(out["allOf"])), map[string]any{
				"if": map[string]any{"type": "object", "required": []any{tag},
					"properties": map[string]any{tag: map[string]any{"not": unlisted}}},
				"then": map[string]any{"anyOf": aware},
			})
		case len(signatures) > 0:
			out["allOf"] = append(slices.Clone(listOf(out["allOf"])), signatures...)
		}
	}
}

// commitNested is like commit, but a branch that is only a choice is replaced with the branches of that choice.
func (d *document) commitNested(out map[string]any, list, copied []any, own map[string]bool, tags map[string][]any,
	c context) {
	var flat, copies []any
	var add func(branch, copied any, depth int)
	add = func(branch, copied any, depth int) {
		m, _ := branch.(map[string]any)
		for _, keyword := range branchLists {
			if nested := listOf(m[keyword]); nested != nil && depth < 10 && alone(m, keyword) {
				for _, below := range nested {
					add(below, nil, depth+1)
				}
				return
			}
		}
		if copied == nil {
			copied = d.define(d.rewrite(branch, c))
		}
		flat, copies = append(flat, branch), append(copies, copied)
	}
	for i, branch := range list {
		add(branch, copied[i], 0)
	}
	if len(flat) > len(list) {
		var having map[string]int
		var most int
		tags, own, having, most = d.tagsOf(flat)
		maps.DeleteFunc(own, func(name string, _ bool) bool { return having[name] < most })
		discriminated(out, own)
	}
	d.commit(out, flat, copies, own, tags)
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

// signature returns the schema of objects with the tag of a branch and the members that the branch requires, or nil if
// the branch does not require a single value for the tag.
func (d *document) signature(required []any, members map[string][]any, tag string) any {
	if !slices.Contains(required, any(tag)) {
		return nil
	}
	properties := map[string]any{}
	for _, name := range required {
		schemas := members[name.(string)]
		if hasTrue(schemas, onError) {
			continue
		}
		types := []any{}
		for _, t := range allTypes {
			fits := func(schema any) bool { return slices.Contains(d.types(schema, 0), t) }
			if !slices.ContainsFunc(schemas, func(schema any) bool { return !fits(schema) }) || t == "null" &&
				hasTrue(schemas, onNull) {
				types = append(types, t)
			}
		}
		if properties[name.(string)] = false; len(types) > 0 {
			properties[name.(string)] = map[string]any{"type": types}
		}
	}
	values := d.listedValues(members[tag]...)
	if len(values) != 1 {
		return nil
	}
	if _, text := values[0].(string); !text {
		return nil
	}
	properties[tag] = map[string]any{"const": values[0]}
	return map[string]any{"type": "object", "required": required, "properties": properties}
}

// parts returns a schema with those that it refers to and combines, but not the branches of choices.
func (d *document) parts(schema any, seen map[string]bool) (out []map[string]any) {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	out = append(out, m)
	if ref, ok := m["$ref"].(string); ok && !seen[ref] {
		seen[ref] = true
		out = append(out, d.parts(d.target(ref), seen)...)
	}
	for _, below := range listOf(m["allOf"]) {
		out = append(out, d.parts(below, seen)...)
	}
	return out
}

// members returns the names of the members that the objects of a schema must have, and the schemas of all members.
func (d *document) members(schema any) (required []any, members map[string][]any) {
	required, members = []any{}, map[string][]any{}
	for _, m := range d.parts(schema, map[string]bool{}) {
		for _, name := range listOf(m["required"]) {
			if !slices.Contains(required, name) {
				required = append(required, name)
			}
		}
		properties, _ := m["properties"].(map[string]any)
		for name, p := range properties {
			members[name] = append(members[name], p)
		}
	}
	return required, members
}

// types returns the types that the values of a schema may have. It treats integers and numbers alike.
func (d *document) types(schema any, depth int) []string {
	out := slices.Clone(allTypes)
	if depth > 20 {
		return out
	}
	both := func(types []string) {
		out = slices.DeleteFunc(out, func(t string) bool { return !slices.Contains(types, t) })
	}
	for _, m := range d.parts(schema, map[string]bool{}) {
		list := listOf(m["type"])
		if t, ok := m["type"].(string); ok {
			list = []any{t}
		}
		if list != nil {
			both(typesOf(list, func(t any) string { s, _ := t.(string); return s }))
		}
		if values, ok := m["enum"].([]any); ok {
			both(typesOf(values, typeOf))
		}
		if c, ok := m["const"]; ok {
			both(typesOf([]any{c}, typeOf))
		}
		for _, keyword := range branchLists {
			if branches, ok := m[keyword].([]any); ok {
				var any []string
				for _, below := range branches {
					any = append(any, d.types(below, depth+1)...)
				}
				both(any)
			}
		}
	}
	return out
}

// typesOf returns the types of a list. It adds both number and integer for either of them.
func typesOf(list []any, of func(any) string) (out []string) {
	for _, v := range list {
		if t := of(v); t == "number" || t == "integer" {
			out = append(out, "number", "integer")
		} else {
			out = append(out, t)
		}
	}
	return out
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

// scalars returns the strings or integers that a schema lists, possibly with null, and their type.
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

// unlisted reports whether a schema is for values of a type and does not list them.
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

// define makes a schema a definition, and returns a reference to it.
func (d *document) define(schema any) any {
	name := "b" + strconv.Itoa(len(d.defs))
	d.defs[name] = schema
	return map[string]any{"$ref": refTo(name)}
}

// reference returns a reference with plain names. In a context, it refers to a copy of the definition.
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
		return refTo(plain) + "/" + below
	case !d.loose || c == context{}:
		return refTo(plain)
	}
	key := fmt.Sprintf("%s %v %v %s", plain, c.exact, c.not, c.tags)
	copied, ok := d.copies[key]
	if !ok {
		copied = "c" + strconv.Itoa(len(d.defs))
		d.copies[key], d.defs[copied] = copied, true
		d.defs[copied] = d.rewrite(d.given[unescape(name)], c)
	}
	return refTo(copied)
}

// loosen makes the copy of a schema accept tolerated values.
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
			nullable := map[string]any{"anyOf": []any{d.define(meta), d.define(map[string]any{"type": "null"})}}
			if hasTrue([]any{meta}, onError) {
				nullable[onError] = true
			}
			properties["_meta"] = nullable
		}
	}
}

// tags adds the members for which a branch lists strings or numbers to tags. It adds those with one value that are not
// in choices inside the branch to own, unless own is nil.
func (d *document) tags(branch any, tags map[string][]any, own, seen map[string]bool) {
	for _, m := range d.parts(branch, seen) {
		properties, _ := m["properties"].(map[string]any)
		for name, p := range properties {
			if values := d.listedValues(p); len(values) > 0 {
				tags[name] = append(tags[name], values...)
				if own != nil && len(values) == 1 {
					own[name] = true
				}
			}
		}
		for _, keyword := range branchLists {
			for _, below := range listOf(m[keyword]) {
				d.tags(below, tags, nil, seen)
			}
		}
	}
}

// listedValues returns the strings and numbers that the schemas list.
func (d *document) listedValues(schemas ...any) (out []any) {
	for _, schema := range schemas {
		for _, m := range d.parts(schema, map[string]bool{}) {
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
		}
	}
	return out
}

// referred returns the target of a schema that is only a reference, and otherwise the schema itself.
func (d *document) referred(schema any) any {
	for range 20 {
		m, _ := schema.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok || !alone(m, "$ref") {
			break
		}
		schema = d.target(ref)
	}
	return schema
}

// target returns the definition that a reference names.
func (d *document) target(ref string) any { return d.given[nameOf(ref)] }

// nameOf returns the name of the definition that a reference names.
func nameOf(ref string) string { return unescape(strings.TrimPrefix(ref, "#/$defs/")) }

// unescape returns the name that a part of a reference represents.
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
		return nil, d.broken // the library keeps partially compiled schemas
	}
	defer func() {
		if r := recover(); r != nil { // the library panics for some references
			err = fmt.Errorf("%v", r)
		}
		d.broken = err
	}()
	s, err = d.compiler.Compile(refTo(name))
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
	name = ref[strings.LastIndex(ref, "/")+1:]
	return name, d.defs[name]
}

// inForce adds the schemas that apply to v to parts: those that the schema requires, and the branches of its choices
// that v matches.
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
	for _, below := range listOf(m["allOf"]) {
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

// survives compares two values to which all the schemas apply.
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
			if _, ok := want[name]; ok {
				continue
			}
			if below, _ := memberSchemas(parts, name); !d.mayBeMissing(name, below, got[name]) {
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
			if !declared {
				continue // it may also have lost members
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

// sameDouble reports whether two values are numbers, have the type number in a schema, and are equal as float64, which
// is their type in Go.
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

// memberSchemas returns the schemas of a member, and whether it must be kept because it is declared or the object does
// not declare members.
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

// mayBeMissing reports whether a member that holds v means the same as no member.
func (d *document) mayBeMissing(name string, schemas []any, v any) bool {
	if name == "_meta" && v == nil {
		return true
	}
	for _, s := range schemas {
		for _, m := range d.inForce(nil, s, v) {
			if value, ok := m["default"]; ok &&
				(d.survives("", schemas, v, value) == nil || d.survives("", schemas, value, v) == nil) {
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

// Equal returns an error that shows the first difference between two values, with a JSON pointer.
func Equal(want, got any) error {
	return (&document{}).survives("", []any{map[string]any{"additionalProperties": true}}, want, got)
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

// limits returns the smallest and the greatest integer of a format, which is int64 if it is not known.
func limits(format string) (least, most *big.Int) {
	bits, one := cmp.Or(integers[format], 64), big.NewInt(1)
	if bits < 0 {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(-bits)), one)
	}
	most = new(big.Int).Lsh(one, uint(bits-1))
	return new(big.Int).Neg(most), new(big.Int).Sub(most, one)
}

func fits(format string, n json.Number) bool {
	r := exact(n)
	least, most := limits(format)
	return r.IsInt() && r.Num().Cmp(least) >= 0 && r.Num().Cmp(most) <= 0
}

// Closure returns a text that is equal for definitions of the same name in different schemas if the definitions, and
// all definitions that they refer to, are the same except for their descriptions.
func (j *Schema) Closure(definition string) string {
	all := map[string]string{}
	for names := []string{definition}; len(names) > 0; names = names[1:] {
		name := names[0]
		if _, ok := all[name]; ok {
			continue
		}
		all[name] = descriptions.ReplaceAllString(show(j.strict.given[name]), "")
		for _, ref := range references.FindAllStringSubmatch(all[name], -1) {
			names = append(names, nameOf(ref[1]))
		}
	}
	return definition + " " + show(all)
}

var (
	descriptions = regexp.MustCompile(`"description":"(\\.|[^"\\])*",?`)
	references   = regexp.MustCompile(`"\$ref":"([^"]*)"`)
)

// mapItems returns a copy of a list with do applied to each item. Other values are left to the library.
func mapItems(list any, do func(any) any) any {
	items, ok := list.([]any)
	if !ok {
		return list
	}
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = do(item)
	}
	return out
}
