// Package sample makes JSON values from a schema, to try generated code with: valid ones, with every
// variant and limit, and ones with a known mistake. It also says which values are the same up to what
// bindings may change. It reads schemas by itself, so that a misreading in the generator is not
// repeated here.
//
// This file owns reading a schema and finding the parts of it that describe a given value.
package sample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Schema is a schema document.
type Schema struct {
	defs    map[string]*node
	formats bool // strings must have their format to be accepted
}

// node is a schema object, or one of the boolean schemas.
type node struct {
	ref      string // name of the definition
	types    []string
	format   string
	props    map[string]*node
	names    []string // of props, sorted
	required []string
	items    *node
	values   *node // additionalProperties
	allOf    []*node
	branches []*node             // of oneOf and anyOf
	tag      string              // the member whose constants tell the branches apart
	consts   []any               // values of const or enum
	catchAll bool                // has a not
	bounds   map[string]*big.Rat // of those keywords whose limit is a number
	pattern  *regexp.Regexp
	def      any
	hasDef   bool

	defaultOnError, defaultOnNull, skipInvalidItems bool
}

// min returns the least number that a keyword allows, 0 if it is absent.
func (n *node) min(keyword string) int {
	if b := n.bounds[keyword]; b != nil {
		return int(b.Num().Int64())
	}
	return 0
}

// measures are the keywords that bound values by a number: what each measures of a value, and whether the
// number is the most that it may be, or the least. Of values that it says nothing about, it measures nil.
var measures = map[string]struct {
	of   func(v any) *big.Rat
	most bool
}{
	"minLength": {length, false},
	"minItems":  {items, false},
	"maxItems":  {items, true},
	"minimum":   {number, false},
	"maximum":   {number, true},
}

func length(v any) *big.Rat {
	if s, ok := v.(string); ok {
		return big.NewRat(int64(utf8.RuneCountInString(s)), 1)
	}
	return nil
}

func items(v any) *big.Rat {
	if list, ok := v.([]any); ok {
		return big.NewRat(int64(len(list)), 1)
	}
	return nil
}

func number(v any) *big.Rat {
	if n, ok := v.(json.Number); ok {
		return exact(n)
	}
	return nil
}

// within reports whether a value keeps to the bounds of n.
func (n *node) within(v any) bool {
	for keyword, limit := range n.bounds {
		measure := measures[keyword]
		if got := measure.of(v); got != nil && (measure.most && got.Cmp(limit) > 0 || !measure.most && got.Cmp(limit) < 0) {
			return false
		}
	}
	return true
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
	s := &Schema{defs: map[string]*node{}}
	for name, def := range defs {
		s.defs[name] = newNode(def)
	}
	return s, nil
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

func newNode(v any) *node {
	m, _ := v.(map[string]any)
	str := func(keyword string) string { s, _ := m[keyword].(string); return s }
	flag := func(keyword string) bool { b, _ := m[keyword].(bool); return b }
	list := func(keyword string) []any { l, _ := m[keyword].([]any); return l }
	nodes := func(keyword string) (out []*node) {
		for _, v := range list(keyword) {
			out = append(out, newNode(v))
		}
		return out
	}
	n := &node{
		ref:              strings.TrimPrefix(str("$ref"), "#/$defs/"),
		format:           str("format"),
		allOf:            nodes("allOf"),
		branches:         append(nodes("oneOf"), nodes("anyOf")...),
		consts:           list("enum"),
		catchAll:         m["not"] != nil,
		bounds:           map[string]*big.Rat{},
		defaultOnError:   flag("x-deserialize-default-on-error"),
		defaultOnNull:    flag("x-deserialize-default-on-null"),
		skipInvalidItems: flag("x-deserialize-skip-invalid-items"),
	}
	n.def, n.hasDef = m["default"]
	if c, ok := m["const"]; ok {
		n.consts = []any{c}
	}
	if t := str("type"); t != "" {
		n.types = []string{t}
	}
	for _, t := range list("type") {
		n.types = append(n.types, t.(string))
	}
	for _, name := range list("required") {
		n.required = append(n.required, name.(string))
	}
	if props, ok := m["properties"].(map[string]any); ok {
		n.props = map[string]*node{}
		for name, p := range props {
			n.props[name] = newNode(p)
		}
		n.names = slices.Sorted(maps.Keys(n.props))
	}
	if v, ok := m["items"]; ok {
		n.items = newNode(v)
	}
	if v, ok := m["additionalProperties"]; ok {
		n.values = newNode(v)
	}
	for keyword := range measures {
		if number, ok := m[keyword].(json.Number); ok {
			n.bounds[keyword] = exact(number)
		}
	}
	if expr := str("pattern"); expr != "" {
		n.pattern = regexp.MustCompile(expr)
	}
	if m["oneOf"] != nil && m["anyOf"] != nil { // two choices, which both hold
		n.branches = nodes("oneOf")
		n.allOf = append(n.allOf, newNode(map[string]any{"anyOf": m["anyOf"]}))
	}
	n.tag = tagOf(n.branches)
	return n
}

// constant returns the only string that n accepts.
func (n *node) constant() (string, bool) {
	if n == nil || len(n.consts) != 1 {
		return "", false
	}
	s, ok := n.consts[0].(string)
	return s, ok
}

// target follows references that stand alone.
func (s *Schema) target(n *node) *node {
	for {
		switch {
		case n.ref != "" && n.props == nil:
			n = s.defs[n.ref]
		case len(n.allOf) == 1 && n.props == nil && len(n.branches) == 0:
			n = n.allOf[0]
		default:
			return n
		}
	}
}

// anything reports whether n accepts every value.
func (n *node) anything() bool {
	return n == nil || n.types == nil && n.ref == "" && n.allOf == nil && n.branches == nil && n.consts == nil && n.props == nil
}

// closed reports whether n is an object without known members, not a map.
func (n *node) closed() bool {
	return slices.Equal(n.types, []string{"object"}) && n.values == nil && n.props == nil
}

// enumerates reports whether n lists values of a scalar.
func (n *node) enumerates() bool {
	if n.consts != nil {
		return true
	}
	return n.props == nil &&
		slices.ContainsFunc(n.branches, func(b *node) bool { return b.consts != nil }) &&
		!slices.ContainsFunc(n.branches, func(b *node) bool { return len(b.types) != 1 || b.props != nil })
}

// tagOf returns the member whose constants tell the branches apart, or "".
func tagOf(branches []*node) string {
	count := map[string]int{}
	for _, b := range branches {
		for name, p := range b.props {
			if _, ok := p.constant(); ok {
				count[name]++
			}
		}
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if best == "" || count[name] > count[best] {
			best = name
		}
	}
	return best
}

// isNull reports whether n accepts null alone.
func isNull(n *node) bool { return n != nil && slices.Equal(n.types, []string{"null"}) }

// A view is the schema of one given value: the parts that describe it together.
type view struct {
	objects []*node  // schemas with properties that describe an object's members
	leaf    *node    // what describes any other value
	tags    []string // the members that tell which objects these are
	kept    []string // those of them that say nothing about what was chosen, and are kept if they are strings
	opaque  bool     // what no part describes is kept as it is
	invalid bool     // no branch fits the value
}

// member returns the schema of a member, and whether there is one.
func (w view) member(name string) (*node, bool) {
	for _, o := range w.objects {
		if p, ok := o.props[name]; ok {
			return p, true
		}
	}
	return nil, false
}

// look finds the parts of n that describe v.
func (s *Schema) look(n *node, v any) view {
	if n.anything() {
		return view{opaque: true}
	}
	n = s.target(n)
	var out view
	merge := func(o view) {
		out.objects = append(out.objects, o.objects...)
		out.tags = append(out.tags, o.tags...)
		out.kept = append(out.kept, o.kept...)
		out.opaque = out.opaque || o.opaque
		out.invalid = out.invalid || o.invalid
		if o.leaf != nil {
			out.leaf = o.leaf
		}
	}
	switch {
	case n.anything():
		return view{opaque: true}
	case n.enumerates():
		return view{leaf: n}
	case n.props != nil || n.closed():
		out.objects = append(out.objects, n)
	case len(n.branches) == 0 && len(n.allOf) == 0:
		out.leaf = n
	}
	for _, all := range n.allOf {
		merge(s.look(all, v))
	}
	if n.ref != "" {
		merge(s.look(s.defs[n.ref], v))
	}
	if len(n.branches) > 0 {
		if n.tag != "" {
			out.tags = append(out.tags, n.tag)
		}
		if b, opaque := s.choose(n, v); opaque {
			out.opaque = true
		} else if b == nil {
			out.invalid = true
		} else {
			if b == n.defaultBranch() {
				out.kept = append(out.kept, n.tag)
			}
			merge(s.look(b, v))
		}
	}
	return out
}

// choose finds the branch that v is meant to be; opaque says that it is one which nobody knows yet.
func (s *Schema) choose(n *node, v any) (branch *node, opaque bool) {
	object, isObject := v.(map[string]any)
	if def := n.defaultBranch(); def != nil && isObject {
		name, isString := object[n.tag].(string)
		if !isString {
			return def, false
		}
		fits := s.fits(def, object)
		for _, b := range n.branches {
			if c, ok := b.props[n.tag].constant(); ok && c == name && (!fits || s.fits(b, object)) {
				return b, false
			}
		}
		if !fits {
			return nil, true
		}
		return def, false
	}
	if n.tag != "" && isObject {
		value, present := object[n.tag]
		own := n.props[n.tag]
		if value == nil && (!present || own.nullable()) {
			for _, b := range n.branches {
				if p, named := b.props[n.tag]; !named || isNull(p) {
					return b, false
				}
			}
			return nil, false
		}
		name, isString := value.(string)
		for _, b := range n.branches {
			if c, ok := b.props[n.tag].constant(); ok && c == name && isString {
				return b, false
			}
		}
		return nil, isString
	}
	for i, b := range n.branches {
		if b.anything() { // takes what is not quite one of the others
			rest := slices.Delete(slices.Clone(n.branches), i, i+1)
			if j := slices.IndexFunc(rest, func(b *node) bool { return s.accepts(b, v) }); j >= 0 {
				return rest[j], false
			}
			return b, false
		}
	}
	for _, b := range n.branches {
		if s.resembles(b, v) {
			return b, false
		}
	}
	return nil, false
}

// defaultBranch returns the branch that says nothing about the tag, whatever that is, if no other branch is
// for tags that are not listed.
func (n *node) defaultBranch() *node {
	var out *node
	for _, b := range n.branches {
		_, named := b.props[n.tag]
		switch {
		case n.tag == "" || b.catchAll:
			return nil
		case !named:
			out = b
		}
	}
	return out
}

// fits reports whether an object has the members that n requires, with values of their kinds.
func (s *Schema) fits(n *node, object map[string]any) bool {
	for _, name := range n.required {
		value, ok := object[name]
		if !ok || !s.ofKind(n.props[name], value) {
			return false
		}
	}
	return (n.ref == "" || s.fits(s.defs[n.ref], object)) &&
		!slices.ContainsFunc(n.allOf, func(all *node) bool { return !s.fits(all, object) })
}

// ofKind reports whether v is of a kind that n knows or is lenient about.
func (s *Schema) ofKind(n *node, v any) bool {
	if n.anything() || n.defaultOnError || n.defaultOnNull && v == nil {
		return true
	}
	n = s.target(n)
	if len(n.types) == 0 && len(n.branches) > 0 {
		return slices.ContainsFunc(n.branches, func(b *node) bool { return s.ofKind(b, v) })
	}
	_, number := v.(json.Number)
	return slices.ContainsFunc(n.types, func(t string) bool { return isKind(t, v) || t == "integer" && number })
}

// nullable reports whether n names null among its types.
func (n *node) nullable() bool { return n != nil && slices.Contains(n.types, "null") }

// resembles reports whether v is of the kind of the branch b and has the members that b requires.
func (s *Schema) resembles(b *node, v any) bool {
	if b.anything() {
		return true
	}
	b = s.target(b)
	if len(b.branches) > 0 && b.props == nil {
		return slices.ContainsFunc(b.branches, func(n *node) bool { return s.resembles(n, v) })
	}
	switch v := v.(type) {
	case []any:
		return slices.Contains(b.types, "array") && (len(v) == 0 || s.resembles(b.items, v[0]))
	case map[string]any:
		if b.props == nil && !slices.Contains(b.types, "object") {
			return false
		}
		return !slices.ContainsFunc(b.required, func(name string) bool { _, ok := v[name]; return !ok })
	}
	return len(b.types) > 0 && s.acceptsLeaf(b, v)
}
