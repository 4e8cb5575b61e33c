// The canonical form of a schema is a single node that combines the schema with the parts of its allOf and the schemas
// that it refers to. Users of a schema read only this form, and report each keyword in it that they do not support.
//
// The canonical form has no allOf; a $ref is the only keyword of its node; type agrees with const and enum; a not that
// only restricts members is part of these members; keywords next to a choice that are not about the members of objects
// are part of each branch; several types are a choice between them.

package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/acpgo/sdk/internal/gen/model"
)

// maxMerged is the maximum number of schemas that merging can produce, for each node of the document. A schema that
// exceeds it combines members of several definitions over and over.
const maxMerged = 50

// maxParts is the maximum number of schemas that allOf can combine.
const maxParts = 500

// maxNested is the maximum number of canonical forms that can be computed inside one another.
const maxNested = 1000

// maxNot is the maximum number of alternatives that a not can exclude.
const maxNot = 500

// Canonical computes canonical forms, each only once.
type Canonical struct {
	doc      *Document
	problems []error
	reported map[string]bool

	parts  map[*Node]parts
	wholes map[*Node]*Node
	forms  map[*Node]*Node // canonical, $ref kept
	full   map[*Node]*Node // canonical, $ref followed
	bare   map[*Node]bare
	nulls  map[*Node]bool // whether null is a value
	merged map[[2]*Node]*Node
	open   map[*Node]bool
	denied map[*Node]bool // schemas that are being excluded
	budget int
	depth  int // the number of forms that are being computed inside one another
}

// parts has the parts of a schema: schemas without $ref and allOf, and references.
type parts struct {
	own  []*Node
	refs []string
}

// bare is a schema without null.
type bare struct {
	node *Node
	null bool
}

// NewCanonical returns a Canonical for the schemas of doc.
func NewCanonical(doc *Document) *Canonical {
	c := &Canonical{
		doc: doc, reported: map[string]bool{}, parts: map[*Node]parts{}, wholes: map[*Node]*Node{}, forms: map[*Node]*Node{},
		full: map[*Node]*Node{}, bare: map[*Node]bare{}, nulls: map[*Node]bool{}, merged: map[[2]*Node]*Node{},
		open: map[*Node]bool{}, denied: map[*Node]bool{},
	}
	doc.Walk(func(*Node) { c.budget += maxMerged })
	return c
}

// Problems returns the faults of the schemas whose forms were requested.
func (c *Canonical) Problems() []error { return c.problems }

func (c *Canonical) problem(at, format string, args ...any) {
	err := &Error{Pointer: at, Msg: fmt.Sprintf(format, args...)}
	if !c.reported[err.Error()] {
		c.reported[err.Error()] = true
		c.problems = append(c.problems, err)
	}
}

// Exhausted reports whether more schemas had to be merged than is allowed, which is one of the problems. Forms are then
// incorrect.
func (c *Canonical) Exhausted() bool { return c.budget < 0 }

// Of returns the canonical form of n. If n is only a reference, so is the form. While the form is being computed, Of
// returns nil.
func (c *Canonical) Of(n *Node) *Node {
	if form, ok := c.forms[n]; ok {
		return form
	}
	c.forms[n] = nil
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxNested {
		c.problem(n.Pointer, "too many combinations of schemas")
		c.budget = -1
		form := c.never(n, n.Pointer)
		c.forms[n], c.forms[form] = form, form
		return form
	}
	p := c.split(n)
	var form *Node
	if len(p.own) == 0 && len(p.refs) == 1 {
		form = n
		if n.ref == "" || len(n.AllOf) > 0 {
			form = c.annotated(n)
			form.ref = refPrefix + p.refs[0]
			form.name = p.refs[0]
			form.say("$ref", n.Pointer)
		}
	} else {
		form = c.finish(c.whole(n))
	}
	c.forms[n], c.forms[form] = form, form
	return form
}

// asForm records that a node that is not a reference is its own canonical form, and returns it.
func (c *Canonical) asForm(n *Node) *Node {
	c.forms[n], c.full[n] = n, n
	return n
}

// Full is like Of, but follows references. While the form is being computed, it returns nil.
func (c *Canonical) Full(n *Node) *Node {
	if form, ok := c.full[n]; ok {
		return form
	}
	c.full[n] = nil
	form := c.Of(n)
	if form != nil && form.Ref() != "" {
		form = c.Full(c.doc.Def(form.Ref()))
	}
	c.full[n] = form
	return form
}

// Parts returns the form of n's own keywords, or nil if there are none, and the names of the definitions that n refers
// to for the rest.
func (c *Canonical) Parts(n *Node) (own *Node, refs []string) {
	p := c.split(n)
	if len(p.own) > 0 {
		own = c.finish(c.merge(n, p.own))
	}
	return own, p.refs
}

// WithoutNull returns the form of n without null among its values, or nil if null is the only value, and whether null
// was one of the values. It does not follow references.
func (c *Canonical) WithoutNull(n *Node) (form *Node, null bool) {
	if known, ok := c.bare[n]; ok {
		return known.node, known.null
	}
	form = c.Of(n)
	c.bare[n] = bare{node: form}
	form, null = c.withoutNull(form)
	if form != nil {
		c.bare[form] = bare{node: form}
	}
	c.bare[n] = bare{form, null}
	return form, null
}

func (c *Canonical) withoutNull(form *Node) (*Node, bool) {
	if branches := form.Branches(); len(branches) > 0 {
		var rest []*Node
		null := false
		for _, br := range branches {
			without, isNull := c.WithoutNull(br)
			null = null || isNull
			if without != nil {
				rest = append(rest, without)
			}
		}
		c.checkNull(form)
		if !null {
			return form, false
		}
		if len(rest) == 0 {
			return nil, true
		}
		if len(rest) == 1 && len(form.Asserted()) == 1 {
			return rest[0], true
		}
		out := form.clone()
		if len(form.OneOf) > 0 {
			out.OneOf, out.AnyOf = rest, nil
			out.forget("anyOf")
		} else {
			out.AnyOf = rest
		}
		return c.asForm(out), true
	}
	if !slices.Contains(form.types, "null") {
		return form, false
	}
	out := form.clone()
	out.types = without(form.types, func(t string) bool { return t == "null" })
	if len(out.types) == 0 {
		for _, k := range form.Asserted() {
			if k != "type" && k != "const" && k != "enum" {
				c.problem(form.At(k), "it has no Go shape on null")
			}
		}
		return nil, true
	}
	out.Enum = without(form.Enum, isNull)
	return c.asForm(out), true
}

// checkNull reports a oneOf if null fits more than one of its branches, or if null fits any branch and there is an
// anyOf next to it.
func (c *Canonical) checkNull(form *Node) {
	if len(form.OneOf) == 0 {
		return
	}
	count := 0
	for _, br := range form.Branches() {
		if c.holdsNull(br) {
			count++
		}
	}
	switch {
	case count > 0 && len(form.AnyOf) > 0:
		c.problem(form.Pointer, "null among the branches of oneOf beside anyOf has no Go shape")
	case count > 1:
		c.problem(form.At("oneOf"), "null is a value of several branches, so that oneOf forbids it")
	}
}

// holdsNull reports whether null is a value of n, or of one of its branches. It follows references.
func (c *Canonical) holdsNull(n *Node) bool {
	seen := map[*Node]bool{}
	if c.reachesNull(n, seen) {
		return true
	}
	for n := range seen {
		c.nulls[n] = false
	}
	return false
}

// reachesNull implements holdsNull, except for schemas in seen.
func (c *Canonical) reachesNull(n *Node, seen map[*Node]bool) bool {
	if null, ok := c.nulls[n]; ok {
		return null
	}
	if seen[n] {
		return false
	}
	seen[n] = true
	form := c.Full(n)
	var found bool
	switch {
	case form == nil || form.Bool != nil && !*form.Bool:
	case len(form.Branches()) > 0:
		found = slices.ContainsFunc(form.Branches(), func(br *Node) bool { return c.reachesNull(br, seen) })
	case form.Has("type"):
		found = slices.Contains(form.types, "null")
	default:
		found = !slices.ContainsFunc(form.except, isNull)
	}
	if found {
		c.nulls[n] = true
	}
	return found
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// split returns the parts of n.
func (c *Canonical) split(n *Node) parts {
	if p, ok := c.parts[n]; ok {
		return p
	}
	var p parts
	owns, names := map[*Node]bool{}, map[string]bool{}
	add := func(more parts) {
		for _, own := range more.own {
			if !owns[own] {
				owns[own] = true
				p.own = append(p.own, own)
			}
		}
		for _, name := range more.refs {
			if !names[name] {
				names[name] = true
				p.refs = append(p.refs, name)
			}
		}
	}
	base := n
	if rest := n.UnevaluatedProperties; rest != nil && n.ref == "" && len(n.AllOf)+len(n.OneOf)+len(n.AnyOf) == 0 {
		base = n.clone() // the members that other parts know are unknown to this one
		c.unevaluated(base)
	}
	if n.ref != "" || len(n.AllOf) > 0 {
		base = n.clone()
		base.ref, base.name, base.AllOf = "", "", nil
		base.forget("$ref", "allOf")
	}
	if !base.Any() || n.Bool == nil && base.describes() {
		add(parts{own: []*Node{base}})
	}
	if n.ref != "" {
		add(parts{refs: []string{n.Ref()}})
	}
	for _, m := range n.AllOf {
		inner := c.split(m)
		for _, own := range inner.own {
			if len(n.AllOf) > 1 || len(p.own)+len(p.refs) > 0 {
				c.checkUnevaluated(own)
			}
		}
		if add(inner); len(p.own)+len(p.refs) > maxParts {
			c.problem(n.At("allOf"), "more than %d schemas together have no Go shape", maxParts)
			break
		}
	}
	c.parts[n] = p
	return p
}

// whole returns all parts of n merged into one, including those that n refers to.
func (c *Canonical) whole(n *Node) *Node {
	if w, ok := c.wholes[n]; ok {
		return w
	}
	if c.open[n] {
		c.problem(n.Pointer, "the schema is a part of itself")
		return c.annotated(n)
	}
	c.open[n] = true
	p := c.split(n)
	all := slices.Clone(p.own)
	for _, name := range p.refs {
		all = append(all, c.whole(c.doc.Def(name)))
		if len(p.own)+len(p.refs) > 1 {
			c.checkUnevaluated(all[len(all)-1])
		}
	}
	w := c.merge(n, all)
	c.open[n] = false
	c.wholes[n] = w
	return w
}

// annotated returns a schema at the place of n that does not restrict values, with n's description.
func (c *Canonical) annotated(n *Node) *Node {
	return &Node{Pointer: n.Pointer, Annotations: n.Annotations}
}

// intersect returns the schema of the values that a and b have in common, with the place and description of a.
func (c *Canonical) intersect(a, b *Node) *Node {
	if a == b {
		return a
	}
	key := [2]*Node{a, b}
	if n, ok := c.merged[key]; ok {
		return n
	}
	if c.budget--; c.budget < 0 {
		c.problem(a.Pointer, "too many combinations of schemas")
		return a
	}
	out := c.annotated(a)
	out.AllOf = []*Node{a, b}
	out.say("allOf", a.Pointer)
	c.merged[key] = out
	return out
}

// merge returns the schema, at the place of n, of the values that all parts have in common. No part has $ref or allOf.
func (c *Canonical) merge(n *Node, all []*Node) *Node {
	if len(all) == 1 && all[0] == n {
		return n
	}
	out := c.annotated(n)
	for i, p := range all {
		if p.Bool != nil {
			if !*p.Bool {
				out := c.never(n, p.Pointer)
				out.forbidden = true
				return out
			}
			continue
		}
		for _, w := range p.words {
			c.add(out, p, w.name)
		}
		c.checkRest(p, all[:i])
		c.checkRest(p, all[i+1:])
	}
	if out.Has("type") && len(out.types) == 0 {
		return c.never(n, out.At("type"))
	}
	return out
}

// never returns the schema without values, which results from the keyword at that place.
func (c *Canonical) never(n *Node, at string) *Node {
	out := c.annotated(n)
	out.Bool = new(bool)
	out.reason = at
	return out
}

// checkRest reports a part whose rule for all other members applies to members of another part.
func (c *Canonical) checkRest(p *Node, others []*Node) {
	rest := p.AdditionalProperties
	if rest == nil || rest.Any() || len(others) == 0 {
		return
	}
	own := names(p.Properties)
	for _, o := range others {
		for _, m := range o.Properties {
			if _, ok := own[m.Name]; !ok {
				c.problem(p.At("additionalProperties"), "it is also about the member %q at %s, which has no Go shape", m.Name,
					m.Pointer)
				return
			}
		}
	}
}

// checkUnevaluated reports a part, one of several, that restricts the members that its own parts do not know, because
// the members that the other parts know are also among them.
func (c *Canonical) checkUnevaluated(p *Node) {
	if rest := p.UnevaluatedProperties; rest != nil && !rest.Any() {
		c.problem(p.At("unevaluatedProperties"), "beside other parts it has no Go shape")
	}
}

// names returns the indexes of properties by name.
func names(list []Property) map[string]int {
	out := make(map[string]int, len(list))
	for i, p := range list {
		out[p.Name] = i
	}
	return out
}

// add merges the keyword of p into out.
func (c *Canonical) add(out, p *Node, keyword string) {
	had := out.Has(keyword)
	isValues := keyword == "const" || keyword == "enum" // which may end up as the other one
	if !had && !isValues && (roleOf(keyword) != annotates || keyword == "format" || keyword == "contentEncoding") {
		out.say(keyword, p.At(keyword))
	}
	switch keyword {
	case "type":
		if had {
			out.types = bothTypes(out.types, p.types)
		} else {
			out.types = p.types
		}
	case "const", "enum":
		c.addValues(out, p, keyword)
	case "properties":
		c.addProperties(out, p)
	case "required":
		c.addRequired(out, p)
	case "additionalProperties", "unevaluatedProperties", "items":
		a, b := out.field(keyword).(**Node), p.field(keyword).(**Node)
		if *a == nil {
			*a = *b
		} else {
			*a = c.intersect(*a, *b)
		}
	case "prefixItems", "oneOf", "anyOf":
		a, b := out.field(keyword).(*[]*Node), p.field(keyword).(*[]*Node)
		if len(*a) > 0 && (*a)[0] != (*b)[0] {
			c.clash(out, p, keyword)
		}
		*a = *b
	case "not":
		out.not = unite(out.not, p.not, itself)
		out.except = unite(out.except, p.except, ValueKey)
	case "format":
		if had && out.Format != p.Format {
			c.clash(out, p, keyword)
		}
		out.Format = p.Format
	default:
		if keywords[keyword] == asserts || keyword == "contentEncoding" {
			c.addPlain(out, p, keyword)
		}
	}
}

func (c *Canonical) addProperties(out, p *Node) {
	if len(out.Properties) == 0 {
		out.Properties = p.Properties
		return
	}
	if c.tooMany(p, "properties", len(out.Properties)+len(p.Properties)) {
		return
	}
	out.Properties = slices.Clone(out.Properties)
	known := names(out.Properties)
	for _, m := range p.Properties {
		if i, ok := known[m.Name]; ok {
			out.Properties[i].Node = c.intersect(out.Properties[i].Node, m.Node)
		} else {
			out.Properties = append(out.Properties, m)
		}
	}
}

func (c *Canonical) addRequired(out, p *Node) {
	if len(out.Required) == 0 {
		out.Required = p.Required
		return
	}
	if !c.tooMany(p, "required", len(out.Required)+len(p.Required)) {
		out.Required = unite(out.Required, p.Required, itself)
	}
}

// tooMany reports whether a keyword of p makes so many members of an object that they cannot be counted, which is a
// problem.
func (c *Canonical) tooMany(p *Node, keyword string, count int) bool {
	if count <= 2*model.MaxMembers {
		return false
	}
	c.problem(p.At(keyword), "these are more members than the %d that can be counted", model.MaxMembers)
	return true
}

func (c *Canonical) clash(out, p *Node, keyword string) {
	c.problem(out.Pointer, "%s of %s and %s together has no Go shape", keyword, out.At(keyword), p.At(keyword))
}

// addPlain merges a keyword whose value is kept as written, such as a bound.
func (c *Canonical) addPlain(out, p *Node, keyword string) {
	a, b := out.Value(keyword), p.Value(keyword)
	switch {
	case b == nil:
		return
	case a == nil:
	default:
		var differ bool
		if b, differ = narrower(keyword, a, b); differ {
			c.clash(out, p, keyword)
		}
	}
	out.word(keyword).raw = b
}

// narrower returns the more restrictive bound, or reports that neither is.
func narrower(keyword string, a, b json.RawMessage) (bound json.RawMessage, differ bool) {
	if bytes.Equal(a, b) {
		return a, false
	}
	limit, ok := limitOf(keyword)
	switch {
	case !ok:
		return a, true
	case limit == model.Unchecked:
		return json.RawMessage(string(a) + " and " + string(b)), false
	}
	x, err := model.Rational(a)
	y, err2 := model.Rational(b)
	if err != nil || err2 != nil {
		return a, true
	}
	switch limit {
	case model.Least, model.Lower, model.Above:
		if x.Cmp(y) < 0 {
			return b, false
		}
		return a, false
	case model.Most, model.Upper, model.Below:
		if x.Cmp(y) > 0 {
			return b, false
		}
		return a, false
	}
	return a, x.Cmp(y) != 0
}

// bothTypes returns the types that are in both lists. An integer is also a number.
func bothTypes(a, b []string) []string {
	var out []string
	for _, t := range a {
		switch {
		case hasKind(b, t):
			out = append(out, t)
		case t == "number" && slices.Contains(b, "integer"):
			out = append(out, "integer")
		}
	}
	return out
}

// addValues merges the values that p lists with the keyword.
func (c *Canonical) addValues(out, p *Node, keyword string) {
	values := p.Enum
	if keyword == "const" {
		values = []json.RawMessage{p.Const}
	}
	known, listed := out.values()
	if !listed {
		out.say(keyword, p.At(keyword))
		if keyword == "const" {
			out.Const = p.Const
		} else {
			out.Enum = p.Enum
		}
		return
	}
	common := valueKeys(values)
	out.setValues(without(known, func(v json.RawMessage) bool { return !common[ValueKey(v)] }),
		p.At(keyword))
}

// values returns the values that const or enum lists.
func (n *Node) values() (values []json.RawMessage, listed bool) {
	if n.Const != nil {
		return []json.RawMessage{n.Const}, true
	}
	return n.Enum, n.Enum != nil
}

// setValues replaces the list of values.
func (n *Node) setValues(values []json.RawMessage, at string) {
	if n.Const != nil && len(values) == 1 {
		n.Const = values[0]
		n.Enum = nil
		n.forget("enum")
		return
	}
	if values == nil {
		values = []json.RawMessage{}
	}
	if n.Const != nil {
		n.Const = nil
		n.forget("const")
	}
	n.Enum = values
	n.say("enum", at)
}

// unite returns the items of both lists without duplicates. Otherwise, merging parts again and again would double them.
func unite[T any, K comparable](a, b []T, key func(T) K) []T {
	known := map[K]bool{}
	var out []T
	for _, item := range slices.Concat(a, b) {
		if k := key(item); !known[k] {
			known[k] = true
			out = append(out, item)
		}
	}
	return out
}

func itself[T any](item T) T { return item }

// valueKeys returns the set of the values' keys; see ValueKey.
func valueKeys(values []json.RawMessage) map[string]bool {
	out := make(map[string]bool, len(values))
	for _, v := range values {
		out[ValueKey(v)] = true
	}
	return out
}

// ValueKey returns a text that is the same for equal values, whatever the notation of numbers and strings.
func ValueKey(raw json.RawMessage) string {
	switch KindOfValue(raw) {
	case "string":
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return strconv.Quote(s)
		}
	case "integer", "number":
		if r, err := model.Rational(raw); err == nil {
			return r.RatString()
		}
	}
	return string(raw)
}

// KindOfValue returns the JSON type of a value. For an integer, that is "integer" and not "number".
func KindOfValue(raw json.RawMessage) string {
	switch raw[0] {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	}
	if r, err := model.Rational(raw); err == nil && r.IsInt() {
		return "integer"
	}
	return "number"
}

// finish returns the canonical form of a schema whose parts are merged into w.
func (c *Canonical) finish(w *Node) *Node {
	if w.Bool != nil {
		return w
	}
	out := w.clone()
	c.unevaluated(out)
	nots := out.not
	out.not = nil
	for _, not := range nots {
		c.negate(out, not)
	}
	if c.settle(out); out.Bool != nil {
		return out
	}
	if len(out.not)+len(out.except) == 0 {
		out.forget("not")
	}
	for _, name := range out.Required {
		p, at := out.Property(name), ""
		if p != nil {
			at = p.Pointer
		} else if p = out.AdditionalProperties; p != nil {
			at = out.At("required")
		}
		if p != nil && slices.Equal(out.types, []string{"object"}) && c.impossible(p) {
			return c.never(out, at)
		}
	}
	if len(out.Branches()) > 0 {
		return c.choice(out)
	}
	return c.byKind(out)
}

// unevaluated replaces unevaluatedProperties if it means the same as additionalProperties of all parts.
func (c *Canonical) unevaluated(out *Node) {
	rest := out.UnevaluatedProperties
	switch {
	case rest == nil:
		return
	case out.AdditionalProperties != nil: // which leaves no members for it
	case len(out.Branches()) == 0 || rest.Any():
		out.AdditionalProperties = rest
		out.say("additionalProperties", out.At("unevaluatedProperties"))
	default:
		return
	}
	out.UnevaluatedProperties = nil
	out.forget("unevaluatedProperties")
}

// negate merges a not into the other keywords of out, if it is about one value or one member.
func (c *Canonical) negate(out, not *Node) {
	not = c.whole(not)
	if not.Bool != nil {
		if *not.Bool {
			*out = *c.never(out, out.At("not"))
		}
		return
	}
	asserted := not.Asserted()
	only := func(some ...string) bool {
		return !slices.ContainsFunc(asserted, func(k string) bool { return !slices.Contains(some, k) })
	}
	objects := slices.Equal(not.types, []string{"object"}) || !not.Has("type") &&
		slices.Equal(out.types, []string{"object"})
	values, listed := not.values()
	switch {
	case len(asserted) == 0:
		*out = *c.never(out, out.At("not"))
		return
	case len(not.AnyOf) > maxNot || c.denied[not]:
	case len(not.AnyOf) == 0 && only("type"): // and no keyword that restricts members
	case only("anyOf"), only("anyOf", "type") && objects && slices.Equal(out.types, []string{"object"}):
		c.denied[not] = true
		for _, br := range not.AnyOf {
			c.negate(out, br)
		}
		delete(c.denied, not)
		return
	case listed && only("const", "enum", "type"):
		out.except = unite(out.except, not.typed(values), ValueKey)
		return
	case objects && only("type", "properties", "required") && len(not.Properties) <= 1 && len(not.Required) <= 1 &&
		len(not.Properties)+len(not.Required) > 0:
		if c.negateMember(out, not) {
			return
		}
	}
	out.not = unite(out.not, []*Node{not}, itself)
	out.word("not").at = not.Pointer
}

// negateMember merges a not that is about one member of objects into the member's schema, and reports whether it did.
func (c *Canonical) negateMember(out, not *Node) bool {
	var name string
	var schema *Node
	if len(not.Properties) == 1 {
		name, schema = not.Properties[0].Name, not.Properties[0].Node
	}
	if len(not.Required) == 1 {
		if name != "" && name != not.Required[0] {
			return false
		}
		name = not.Required[0]
	} else if !slices.Contains(out.Required, name) {
		return false // without the member, the not is not satisfied
	}
	var allowed *Node
	if schema == nil || schema.Any() {
		allowed = &Node{Pointer: not.Pointer, Bool: new(bool)}
	} else {
		allowed = (&Node{Pointer: not.Pointer, not: []*Node{schema}}).with("not")
	}
	i := slices.IndexFunc(out.Properties, func(p Property) bool { return p.Name == name })
	out.Properties = slices.Clone(out.Properties)
	switch rest := out.AdditionalProperties; {
	case i >= 0:
		out.Properties[i].Node = c.intersect(out.Properties[i].Node, allowed)
	case rest != nil && !rest.Any():
		out.Properties = append(out.Properties, Property{name, c.intersect(rest, allowed)})
	default:
		out.Properties = append(out.Properties, Property{name, allowed})
	}
	if rest := out.AdditionalProperties; rest == nil && !out.Has("properties") {
		out.AdditionalProperties = &Node{Pointer: not.Pointer} // no members are named, so all are kept
		out.say("additionalProperties", not.Pointer)
	}
	out.say("properties", not.Pointer)
	return true
}

// hasKind reports whether values of the kind have one of the types.
func hasKind(types []string, kind string) bool {
	return slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
}

// settle makes type agree with the listed and the excluded values.
func (c *Canonical) settle(out *Node) {
	if out.Const != nil && out.Enum != nil {
		one := ValueKey(out.Const)
		if !valueKeys(out.Enum)[one] {
			*out = *c.never(out, out.At("enum"))
			return
		}
		out.Enum = nil
		out.forget("enum")
	}
	values, listed := out.values()
	if !listed {
		out.except = out.typed(out.except)
		return
	}
	at := out.At("enum")
	if out.Const != nil {
		at = out.At("const")
	}
	except := valueKeys(out.except)
	left := without(out.typed(values), func(v json.RawMessage) bool { return except[ValueKey(v)] })
	if len(left) == 0 {
		*out = *c.never(out, at)
		return
	}
	if len(left) < len(values) {
		out.setValues(left, at)
	}
	out.except = nil
	var types []string
	for _, v := range left {
		kind := KindOfValue(v)
		if kind == "integer" && slices.Contains(out.types, "number") {
			kind = "number"
		}
		if !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	out.types = types
	out.say("type", out.At("type"))
}

// impossible reports whether no value fits the schema.
func (c *Canonical) impossible(n *Node) bool {
	if n.Bool != nil {
		return !*n.Bool
	}
	if c.open[n] || len(n.AllOf) == 0 && n.not == nil {
		return false
	}
	form := c.Of(n)
	return form != nil && form.Bool != nil && !*form.Bool
}

// byKind turns several types into a choice between them.
func (c *Canonical) byKind(out *Node) *Node {
	kinds, null := out.Kinds()
	if slices.Contains(kinds, "number") {
		kinds = slices.DeleteFunc(kinds, func(t string) bool { return t == "integer" })
	}
	if len(kinds) == 5 && null && len(out.Asserted()) == 1 {
		return c.annotated(out) // any value
	}
	if len(kinds) <= 1 {
		if len(kinds) == 1 {
			out.types = kinds
			if null {
				out.types = append(slices.Clone(kinds), "null")
			}
		}
		return out
	}
	choice := c.annotated(out)
	choice.say("anyOf", out.At("type"))
	if null {
		kinds = append(kinds, "null")
	}
	used := map[string]bool{"type": true}
	for _, kind := range kinds {
		br := &Node{Pointer: out.Pointer}
		br.types = []string{kind}
		br.say("type", out.At("type"))
		for _, w := range out.words {
			if keywordOf(w.name, kind) {
				used[w.name] = true
				c.add(br, out, w.name)
			}
		}
		if br.except = br.typed(out.except); len(br.except) > 0 {
			br.say("not", out.At("not"))
		}
		choice.AnyOf = append(choice.AnyOf, br)
	}
	used["not"] = len(out.not) == 0
	for _, k := range out.Asserted() {
		if !used[k] {
			c.problem(out.At(k), "beside several types it has no Go shape")
		}
	}
	return choice
}

// keywordOf reports whether a keyword applies to values of the kind.
func keywordOf(keyword, kind string) bool {
	switch keyword {
	case "properties", "required", "additionalProperties", "unevaluatedProperties":
		return kind == "object"
	case "items", "prefixItems":
		return kind == "array"
	case "format":
		return kind != "array" && kind != "object"
	case "contentEncoding":
		return kind == "string"
	}
	of := map[string]model.Restricted{"string": model.Strings, "integer": model.Numbers, "number": model.Numbers,
		"array": model.Slices, "object": model.Maps}
	restricted, ok := of[kind]
	return ok && slices.ContainsFunc(model.BoundKeywords[:], func(k model.BoundKeyword) bool {
		return k.Keyword == keyword && k.Of == restricted
	})
}

// choice merges the keywords next to a choice into each branch, unless they are about members.
func (c *Canonical) choice(out *Node) *Node {
	isObject := slices.Equal(out.types, []string{"object"})
	beside := slices.DeleteFunc(out.Asserted(), func(k string) bool {
		switch k {
		case "oneOf", "anyOf":
			return true
		case "type", "properties", "required", "additionalProperties", "unevaluatedProperties":
			return isObject
		}
		return false
	})
	switch {
	case len(beside) > 0 && len(out.OneOf) > 0 && len(out.AnyOf) > 0:
		c.problem(out.At(beside[0]), "beside oneOf and anyOf it has no Go shape")
		return out
	case len(beside) > 0:
		return c.Distribute(out)
	}
	form := out
	if isObject {
		typed := c.annotated(out)
		typed.types = out.types
		typed.say("type", out.At("type"))
		restrict := func(list []*Node) (left []*Node) {
			for _, br := range list {
				if w := c.wholeOrNil(br); w != nil && w.Bool == nil && !slices.Equal(w.types, out.types) {
					br = c.intersect(br, typed)
				}
				if !c.impossible(br) {
					left = append(left, br)
				}
			}
			return left
		}
		for _, list := range []*[]*Node{&form.OneOf, &form.AnyOf} {
			if had := len(*list) > 0; !had {
				continue
			}
			if *list = restrict(*list); len(*list) == 0 {
				return c.never(out, out.At("type"))
			}
		}
	}
	if len(form.OneOf) == 0 || len(form.AnyOf) == 0 {
		return c.flatten(form)
	}
	return form
}

// wholeOrNil is like whole, but returns nil while that is being computed.
func (c *Canonical) wholeOrNil(n *Node) *Node {
	if c.open[n] {
		return nil
	}
	return c.whole(n)
}

// Distribute returns the choice in which each branch is combined with all keywords next to the choice.
func (c *Canonical) Distribute(form *Node) *Node {
	if len(form.Properties) > model.MaxMembers {
		c.problem(form.At("properties"), "%d members are more than the %d that can be counted", len(form.Properties),
			model.MaxMembers)
		return form
	}
	if c.Exhausted() {
		return c.never(form, form.Pointer)
	}
	rest := form.clone()
	rest.OneOf, rest.AnyOf = nil, nil
	rest.forget("oneOf", "anyOf")
	out := c.annotated(form)
	out.Discriminator = form.Discriminator
	keyword := "anyOf"
	if len(form.OneOf) > 0 {
		keyword = "oneOf"
	}
	out.say(keyword, form.At(keyword))
	for _, br := range form.Branches() {
		if both := c.intersect(br, rest); !c.impossible(both) {
			out.AnyOf = append(out.AnyOf, both)
		}
	}
	if keyword == "oneOf" {
		out.OneOf, out.AnyOf = out.AnyOf, nil
	}
	if len(out.Branches()) == 0 {
		return c.never(form, form.At(keyword))
	}
	return c.flatten(out)
}

// Undistributed returns the branch of a choice without the keywords that [Canonical.Distribute] combined with it.
func (c *Canonical) Undistributed(br *Node) *Node {
	for len(br.AllOf) == 2 && br.AllOf[0].Pointer == br.Pointer {
		br = br.AllOf[0]
	}
	return br
}

// Choice returns the form that is only the choice between the given branches of n.
func (c *Canonical) Choice(n *Node, branches []*Node) *Node {
	return c.asForm((&Node{Pointer: n.Pointer, AnyOf: branches}).with("anyOf"))
}

// Members returns the properties of a form, and the members that it only lists as required.
func (c *Canonical) Members(form *Node) []Property {
	out := form.Properties
	known := names(out)
	for _, name := range form.Required {
		if _, ok := known[name]; ok {
			continue
		}
		known[name] = len(out)
		m := form.AdditionalProperties
		if m == nil {
			m = &Node{Pointer: form.At("required")}
		}
		out = append(slices.Clip(out), Property{name, m})
	}
	return out
}

// Require returns the form of objects with the member added to the required ones.
func (c *Canonical) Require(form *Node, name string) *Node {
	out := form.clone()
	out.Required = append(slices.Clone(form.Required), name)
	out.say("required", form.At("discriminator"))
	return out
}

// Forbid returns the form of objects that do not have the member.
func (c *Canonical) Forbid(form *Node, name string) *Node {
	out := form.clone()
	out.Properties = slices.Clone(form.Properties)
	for i, p := range out.Properties {
		if p.Name == name {
			out.Properties[i].Node = &Node{Pointer: p.Pointer, Bool: new(bool)}
		}
	}
	return c.asForm(out)
}

// Pin returns the schema of the objects that have the value as a member.
func (c *Canonical) Pin(n *Node, name string, value json.RawMessage) *Node {
	constant := (&Node{Pointer: n.Pointer, Const: value}).with("const")
	return c.intersect(n, (&Node{Pointer: n.Pointer, Properties: []Property{{name, constant}}}).with("properties"))
}

// Group returns the schema of the objects that fit one of the branches and have the member besides.
func (c *Canonical) Group(n *Node, name string, member *Node, branches []*Node) *Node {
	out := &Node{Pointer: n.Pointer, types: []string{"object"}, AnyOf: branches,
		Properties: []Property{{name, member}}, Required: []string{name}}
	return out.with("type", "properties", "required", "anyOf")
}

// WithoutMember returns the form of objects without its keywords about the member itself.
func (c *Canonical) WithoutMember(form *Node, name string) *Node {
	out := form.clone()
	out.Properties = without(form.Properties, func(p Property) bool { return p.Name == name })
	out.Required = without(form.Required, func(n string) bool { return n == name })
	return c.asForm(out)
}

// flatten replaces a branch that is only a choice with the branches of that choice, and a branch that refers to a list
// of values with these values. A oneOf that may forbid a value stays unchanged.
func (c *Canonical) flatten(form *Node) *Node {
	var out []*Node
	others := 0 // branches other than null
	for _, br := range form.Branches() {
		p := c.split(br)
		if len(p.own) == 1 && len(p.refs) == 0 && br.Title == "" {
			if w := c.Of(br); w != nil && w.Bool == nil && len(w.Branches()) > 0 && len(w.Asserted()) == 1 && !c.demands(w) {
				if len(w.OneOf) == 0 || len(form.OneOf) > 0 || c.disjoint(w) {
					out = append(out, w.Branches()...)
					continue
				}
			}
		}
		if len(p.refs) == 0 {
			if w := c.Of(br); w != nil && w.Bool != nil && !*w.Bool {
				continue // no value fits this branch
			}
		}
		out = append(out, br)
	}
	for _, br := range out {
		if p := c.split(br); len(p.refs) > 0 || !slices.Equal(c.whole(br).types, []string{"null"}) {
			others++
		}
	}
	if others > 1 {
		if expanded, ok := c.expandValues(out); ok {
			out = expanded
		}
	}
	switch {
	case len(out) == 0:
		return c.never(form, form.Pointer)
	case len(form.OneOf) > 0:
		form.OneOf = out
	default:
		form.AnyOf = out
	}
	return form
}

// demands reports whether a choice has a discriminator that not all branches require, and so restricts more than they
// do.
func (c *Canonical) demands(form *Node) bool {
	return form.Discriminator != "" && slices.ContainsFunc(form.Branches(), func(br *Node) bool {
		w := c.wholeOrNil(br)
		return w != nil && !w.Requires(form.Discriminator)
	})
}

// disjoint reports whether no value can fit two branches of a oneOf, as far as their types and listed values show.
// Objects, and arrays, are distinguished by their members, or refused.
func (c *Canonical) disjoint(form *Node) bool {
	plain, listed, values := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, br := range form.OneOf {
		w := c.wholeOrNil(br)
		switch {
		case w == nil || w.Bool != nil && *w.Bool:
			return false
		case w.Bool != nil:
			continue
		}
		list, isList := w.values()
		if !isList && !w.Has("type") {
			return false
		}
		types := w.types
		if isList {
			types = nil
			for _, v := range w.typed(list) {
				key := ValueKey(v)
				if values[key] {
					return false
				}
				values[key] = true
				types = append(types, KindOfValue(v))
			}
		}
		for _, t := range types {
			if t == "integer" {
				t = "number"
			}
			if isList && plain[t] || !isList && (listed[t] || plain[t] && t != "object" && t != "array") {
				return false
			}
			if isList {
				listed[t] = true
			} else {
				plain[t] = true
			}
		}
	}
	return true
}

// expandValues returns the branches with references followed, if all are lists of values or plain types and at least
// one is a list. A definition that is a choice counts if the choice is between values that the definition itself lists.
func (c *Canonical) expandValues(branches []*Node) ([]*Node, bool) {
	var out []*Node
	listed := false
	for _, br := range branches {
		inner := []*Node{br}
		if p := c.split(br); len(p.own) == 0 && len(p.refs) == 1 {
			w := c.whole(c.doc.Def(p.refs[0]))
			if len(w.Branches()) > 0 {
				if len(w.Asserted()) > 1 {
					return nil, false
				}
				inner = w.Branches()
			} else {
				inner[0] = c.doc.Def(p.refs[0])
			}
		}
		for _, m := range inner {
			p := c.split(m)
			if len(p.refs) > 0 || slices.ContainsFunc(p.own, func(own *Node) bool { return len(own.Branches()) > 0 }) {
				return nil, false
			}
			form := c.Of(m)
			if form == nil || !form.scalar() {
				return nil, false
			}
			_, isList := form.values()
			listed = listed || isList
			out = append(out, form)
		}
	}
	return out, listed
}

// scalar reports whether the schema has a single type that is scalar or null, or lists such values.
func (n *Node) scalar() bool {
	return n.Bool == nil && n.ref == "" && len(n.types) == 1 && n.types[0] != "array" && n.types[0] != "object" &&
		len(n.Branches()) == 0
}

// clone returns a copy of n whose keywords can be changed.
func (n *Node) clone() *Node {
	out := *n
	out.words = slices.Clone(n.words)
	return &out
}

// say records that n has the keyword, and its place if it is new.
func (n *Node) say(keyword, at string) {
	if !n.Has(keyword) {
		n.words = append(n.words, word{name: keyword, at: at})
	}
}

// with records that n, which is new, has the keywords, and returns it. Their place is that of n.
func (n *Node) with(keywords ...string) *Node {
	for _, keyword := range keywords {
		n.say(keyword, n.Pointer)
	}
	return n
}

// forget removes keywords.
func (n *Node) forget(keywords ...string) {
	n.words = slices.DeleteFunc(n.words, func(w word) bool { return slices.Contains(keywords, w.name) })
}

// without returns a copy of the list without the items for which drop returns true.
func without[T any](list []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), drop)
}

// typed returns those of the values that type allows.
func (n *Node) typed(values []json.RawMessage) []json.RawMessage {
	return without(values, func(v json.RawMessage) bool { return n.Has("type") && !hasKind(n.types, KindOfValue(v)) })
}

// Asserted returns the keywords of n that restrict the values that it accepts.
func (n *Node) Asserted() (out []string) {
	for _, w := range n.words {
		if keywords[w.name] == asserts {
			out = append(out, w.name)
		}
	}
	return out
}

// describes reports whether n has an annotation that determines its type.
func (n *Node) describes() bool { return n.Format != "" || n.Value("contentEncoding") != nil }

// Except returns the values that not excludes.
func (n *Node) Except() []json.RawMessage { return n.except }

// Forbidden reports whether the canonical form is the schema false.
func (n *Node) Forbidden() bool { return n.Bool != nil && !*n.Bool && (n.forbidden || n.reason == "") }

// Impossible reports whether no value fits the canonical form, and returns the place of the keyword that is the reason.
func (n *Node) Impossible() (at string, ok bool) {
	if n.Bool == nil || *n.Bool {
		return "", false
	}
	return cmp.Or(n.reason, n.Pointer), true
}

// At returns the place of a keyword of n.
func (n *Node) At(keyword string) string {
	return cmp.Or(n.word(keyword).at, n.Pointer+"/"+Escape(keyword))
}
