// This file turns a schema into the model: which definitions are the runtime's, which Go construct
// each of the others is, how unions are told apart, what absence means. A form that has no Go shape
// is an error with its JSON pointer.

package gen

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/gen/model"
	"github.com/acpgo/sdk/gen/schema"
)

// maxMembers is how many typed members an object may have: codec.Object counts them in one word.
const maxMembers = 64

type builder struct {
	doc      *schema.Document
	pkg      *model.Package
	env      *envelopes
	decls    map[string]model.Decl
	nodes    map[*model.Field]*schema.Node
	problems []error
}

// build returns the model of doc, without Go names.
func build(doc *schema.Document) (*model.Package, error) {
	b := &builder{
		doc:   doc,
		pkg:   &model.Package{},
		env:   findEnvelopes(doc),
		decls: map[string]model.Decl{},
		nodes: map[*model.Field]*schema.Node{},
	}
	for _, def := range doc.Defs {
		if b.env.kept[def.Name] {
			b.decls[def.Name] = b.declare(def.Node, model.Common{Schema: def.Name, Pointer: def.Pointer, Doc: def.Description})
		} else {
			b.pkg.Runtime = append(b.pkg.Runtime, def.Name)
		}
	}
	for _, def := range doc.Defs {
		if b.env.kept[def.Name] {
			b.fill(b.decls[def.Name], def.Node)
		}
	}
	if len(b.problems) == 0 {
		b.relate()
		b.methods()
	}
	return b.pkg, errors.Join(b.problems...)
}

func (b *builder) problem(at, format string, args ...any) {
	b.problems = append(b.problems, &schema.Error{Pointer: at, Msg: fmt.Sprintf(format, args...)})
}

// declare decides which construct n is; fill completes it once every definition is declared.
func (b *builder) declare(n *schema.Node, c model.Common) model.Decl {
	target := b.target(n)
	switch {
	case enumOf(target) != nil:
		return &model.Enum{Common: c}
	case len(target.Branches()) > 0:
		return &model.Union{Common: c}
	case isObject(target):
		return &model.Struct{Common: c}
	}
	return &model.Newtype{Common: c}
}

// fill completes what declare has made of n and appends it to the package.
func (b *builder) fill(d model.Decl, n *schema.Node) {
	b.pkg.Decls = append(b.pkg.Decls, d)
	n = b.target(n)
	switch d := d.(type) {
	case *model.Enum:
		b.fillEnum(d, n)
	case *model.Union:
		b.fillUnion(d, n)
	case *model.Struct:
		d.Fields = b.fields(d, n, "")
	case *model.Newtype:
		var null bool
		d.Type, null = b.typeOf(n, d, "value")
		if null {
			b.problem(n.Pointer, "a definition that may be null has no Go shape")
		}
	}
}

// target follows references and allOf wrappers to the schema that says what n is.
func (b *builder) target(n *schema.Node) *schema.Node {
	for len(n.Properties) == 0 && len(n.Branches()) == 0 {
		switch {
		case n.Ref() != "":
			n = b.doc.Def(n.Ref())
		case len(n.AllOf) == 1:
			n = n.AllOf[0]
		default:
			return n
		}
	}
	return n
}

// isObject reports whether n is an object with known members, even if none.
func isObject(n *schema.Node) bool {
	if len(n.Properties) > 0 {
		return true
	}
	kinds, null := n.Kinds()
	return !null && slices.Equal(kinds, []string{"object"}) && n.AdditionalProperties == nil
}

// An enumShape is a schema that lists values.
type enumShape struct {
	integer bool
	open    bool
	values  []enumValue
}

type enumValue struct {
	node *schema.Node // of the value, or of the whole list
	raw  json.RawMessage
}

// enumOf returns the values that n lists, or nil if it does not list values of one scalar type.
func enumOf(n *schema.Node) *enumShape {
	branches := n.Branches()
	if len(branches) == 0 {
		branches = []*schema.Node{n}
	}
	shape := &enumShape{}
	for i, br := range branches {
		kinds, null := br.Kinds()
		if null || len(kinds) != 1 || len(br.Properties) > 0 || len(br.AllOf) > 0 {
			return nil
		}
		integer := kinds[0] == "integer"
		if !integer && kinds[0] != "string" || i > 0 && integer != shape.integer {
			return nil
		}
		shape.integer = integer
		switch {
		case br.Const != nil:
			shape.values = append(shape.values, enumValue{br, br.Const})
		case br.Enum != nil:
			for _, raw := range br.Enum {
				shape.values = append(shape.values, enumValue{br, raw})
			}
		default:
			shape.open = true
		}
	}
	if len(shape.values) == 0 {
		return nil
	}
	return shape
}

func (b *builder) fillEnum(d *model.Enum, n *schema.Node) {
	shape := enumOf(n)
	d.Open = shape.open
	d.Type = model.Basic{Kind: model.String}
	if shape.integer {
		d.Type = b.integer(shape.values[0].node)
	}
	for _, v := range shape.values {
		value := &model.EnumValue{Common: model.Common{Pointer: v.node.Pointer, Owner: d}}
		if v.node != n && v.node.Const != nil {
			value.Doc, value.Part = v.node.Description, v.node.Title
		}
		var err error
		if shape.integer {
			var i int64
			err = json.Unmarshal(v.raw, &i)
			value.Value = i
		} else {
			var s string
			err = json.Unmarshal(v.raw, &s)
			value.Value, value.Part = s, s
		}
		if err != nil || value.Part == "" {
			b.problem(v.node.Pointer, "the value %s cannot be the name of a constant", v.raw)
			continue
		}
		if slices.ContainsFunc(d.Values, func(o *model.EnumValue) bool { return o.Value == value.Value }) {
			b.problem(v.node.Pointer, "the value %s is listed twice", v.raw)
		}
		d.Values = append(d.Values, value)
	}
}

// fields returns the members of the object n, but the one that is the tag of its union.
func (b *builder) fields(owner model.Decl, n *schema.Node, tag string) []*model.Field {
	var out []*model.Field
	for _, p := range n.Properties {
		if p.Name == tag {
			continue
		}
		f := &model.Field{Pointer: p.Pointer, JSON: p.Name, Doc: p.Description}
		f.Type, f.Nullable = b.typeOf(p.Node, owner, p.Name)
		f.Nullable = f.Nullable || f.Type == (model.Null{})
		if p.Name == "_meta" && f.Type == (model.Map{Elem: model.Any{}}) {
			f.Type = model.Meta{}
		}
		f.Presence = model.Tri
		if n.Requires(p.Name) {
			f.Presence = model.Required
		}
		f.OnError, f.OnNull, f.SkipItems = p.DefaultOnError, p.DefaultOnNull, p.SkipInvalidItems
		b.checkLeniency(f)
		b.nodes[f] = p.Node
		out = append(out, f)
	}
	for _, name := range n.Required {
		if n.Property(name) == nil {
			b.problem(n.Pointer, "the required member %q is not among the properties", name)
		}
	}
	if len(out) > maxMembers {
		b.problem(n.Pointer, "%d members are more than the %d that can be counted", len(out), maxMembers)
	}
	slot := 0
	for _, required := range []bool{true, false} {
		for _, f := range out {
			if (f.Presence == model.Required) == required {
				f.Slot = slot
				slot++
			}
		}
	}
	return out
}

// checkLeniency refuses x-deserialize keywords where they mean nothing.
func (b *builder) checkLeniency(f *model.Field) {
	_, slice := f.Type.(model.Slice)
	_, mapped := f.Type.(model.Map)
	if f.SkipItems && !slice {
		b.problem(f.Pointer, "x-deserialize-skip-invalid-items on what is not an array")
	}
	if f.OnNull && !slice && !mapped {
		b.problem(f.Pointer, "x-deserialize-default-on-null on what is neither an array nor a map")
	}
	if f.OnError && f.Presence == model.Required && !slice && !mapped {
		b.problem(f.Pointer, "x-deserialize-default-on-error on a required member that has no empty value")
	}
}

// typeOf returns the type of the schema n and whether null is one of its values. What n declares in
// place is named after its owner and the part of it that n is.
func (b *builder) typeOf(n *schema.Node, owner model.Decl, part string) (t model.Type, null bool) {
	if n.Any() {
		return model.Any{}, false
	}
	if branches := n.Branches(); len(branches) > 0 && len(n.Properties) == 0 {
		rest := slices.DeleteFunc(slices.Clone(branches), isNull)
		if null = len(rest) < len(branches); null && len(rest) == 1 {
			t, _ = b.typeOf(rest[0], owner, part)
			return t, true
		}
		if null {
			choice := *n
			choice.OneOf, choice.AnyOf = nil, rest
			return b.inPlace(&choice, owner, part), true
		}
		return b.inPlace(n, owner, part), false
	}
	if ref := n.Ref(); ref != "" {
		return b.named(ref), false
	}
	if len(n.AllOf) == 1 && len(n.Properties) == 0 {
		return b.typeOf(n.AllOf[0], owner, part)
	}

	kinds, null := n.Kinds()
	if len(kinds) == 0 && null {
		return model.Null{}, false
	}
	if len(kinds) != 1 || len(n.AllOf) > 0 || n.Not != nil {
		b.problem(n.Pointer, "the schema has no Go shape")
		return model.Any{}, null
	}
	switch kinds[0] {
	case "string":
		if n.Const != nil || n.Enum != nil {
			return b.inPlace(n, owner, part), null
		}
		return b.text(n), null
	case "boolean":
		return model.Basic{Kind: model.Bool}, null
	case "integer":
		return b.bounded(b.integer(n), n), null
	case "number":
		return b.bounded(model.Basic{Kind: model.Float}, n), null
	case "array":
		return b.array(n, owner, part), null
	case "object":
		return b.object(n, owner, part), null
	}
	b.problem(n.Pointer, "unknown type %q", kinds[0])
	return model.Any{}, null
}

func isNull(n *schema.Node) bool {
	kinds, null := n.Kinds()
	return null && len(kinds) == 0 && len(n.Properties) == 0
}

// named returns the type of a reference.
func (b *builder) named(ref string) model.Type {
	if name, ok := b.env.runtime[ref]; ok {
		return model.Runtime{Name: name, Null: slices.ContainsFunc(b.doc.Def(ref).Branches(), isNull)}
	}
	return model.Named{Decl: b.decls[ref]}
}

// inPlace declares what n says in the middle of another definition.
func (b *builder) inPlace(n *schema.Node, owner model.Decl, part string) model.Type {
	d := b.declare(n, model.Common{Pointer: n.Pointer, Doc: n.Description, Owner: owner, Part: part})
	b.fill(d, n)
	return model.Named{Decl: d}
}

func (b *builder) array(n *schema.Node, owner model.Decl, part string) model.Type {
	if n.Items == nil || n.PrefixItems != nil {
		b.problem(n.Pointer, "an array without a schema for its items has no Go shape")
		return model.Any{}
	}
	elem := b.element(n.Items, owner, part, model.Basic{Kind: model.String})
	return model.Slice{Elem: elem, Bounds: b.bounds(n, model.Slices, 0, 0)}
}

// element is typeOf for items and the values of maps, which may not be null. The codec has functions for
// those that read themselves, for plain strings and, in maps, for any value; what is anything else
// becomes a type of its own.
func (b *builder) element(n *schema.Node, owner model.Decl, part string, plain ...model.Type) model.Type {
	t, null := b.typeOf(n, owner, part)
	if null || t == (model.Null{}) {
		b.problem(n.Pointer, "items or members that may be null have no Go shape")
		return t
	}
	switch t.(type) {
	case model.Named, model.Runtime:
		return t
	}
	if slices.Contains(plain, t) {
		return t
	}
	return b.inPlace(n, owner, part+" item")
}

func (b *builder) object(n *schema.Node, owner model.Decl, part string) model.Type {
	if len(n.Properties) > 0 {
		return b.inPlace(n, owner, part)
	}
	if n.AdditionalProperties == nil || n.AdditionalProperties.Any() {
		return model.Map{Elem: model.Any{}}
	}
	return model.Map{Elem: b.element(n.AdditionalProperties, owner, part, model.Basic{Kind: model.String}, model.Any{})}
}

// text returns the type of a string.
func (b *builder) text(n *schema.Node) model.Basic {
	t := model.Basic{Kind: model.String, Bounds: b.bounds(n, model.Strings, 0, 0)}
	switch format := model.Format(n.Format); format {
	case model.URI, model.DateTime:
		t.Format = format
	}
	return t
}

// bounds returns what n asks of values of a kind. Least and most are those of the Go type.
func (b *builder) bounds(n *schema.Node, of model.Restricted, least, most float64) (out model.Bounds) {
	for i, k := range model.BoundKeywords {
		raw := n.Value(k.Keyword)
		if raw == nil || k.Of != of {
			continue
		}
		at := n.Pointer + "/" + k.Keyword
		if k.Limit == model.Regexp {
			var expr string
			if err := json.Unmarshal(raw, &expr); err != nil {
				b.problem(at, "must be a string")
			} else if _, err := regexp.Compile(expr); err != nil {
				b.problem(at, "the pattern is not one of Go: %v", err)
			}
			out[i] = strconv.Quote(expr)
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil {
			b.problem(at, "must be a number")
			continue
		}
		switch {
		case k.Limit == model.Least && v == 0, k.Limit == model.Lower && v <= least, k.Limit == model.Upper && v >= most:
		case (k.Limit == model.Least || k.Limit == model.Most) && (v < 0 || v != math.Trunc(v)):
			b.problem(at, "must be a number of things")
		default:
			out[i] = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return out
}

// bounded returns the number type t with those bounds of n that are narrower than the type.
func (b *builder) bounded(t model.Basic, n *schema.Node) model.Basic {
	least, most := math.Inf(-1), math.Inf(1)
	switch t.Kind {
	case model.Int:
		least, most = -math.Ldexp(1, t.Bits-1), math.Ldexp(1, t.Bits-1)-1
	case model.Uint:
		least, most = 0, math.Ldexp(1, t.Bits)-1
	}
	t.Bounds = b.bounds(n, model.Numbers, least, most)
	return t
}

// integer returns the Go type of an integer by its format.
func (b *builder) integer(n *schema.Node) model.Basic {
	switch n.Format {
	case "int32":
		return model.Basic{Kind: model.Int, Bits: 32}
	case "int64", "":
		return model.Basic{Kind: model.Int, Bits: 64}
	case "uint8":
		return model.Basic{Kind: model.Uint, Bits: 8}
	case "uint16":
		return model.Basic{Kind: model.Uint, Bits: 16}
	case "uint32":
		return model.Basic{Kind: model.Uint, Bits: 32}
	case "uint64", "uint":
		return model.Basic{Kind: model.Uint, Bits: 64}
	}
	b.problem(n.Pointer, "unknown format %q of an integer", n.Format)
	return model.Basic{Kind: model.Int, Bits: 64}
}

// relate decides what depends on more than one definition: what absence means where, which unions
// share their object with another, what is allocated together, and that no value contains itself.
func (b *builder) relate() {
	for _, d := range b.pkg.Decls {
		for _, f := range model.Fields(d) {
			b.presence(f)
		}
		if u, ok := d.(*model.Union); ok {
			for _, v := range u.Variants {
				if inner, ok := v.Payload.(*model.Union); ok {
					inner.Nested = true
				}
				v.Room = room(v)
			}
		}
	}
	for _, d := range b.pkg.Decls {
		if path := containsItself(d, d, nil); path != nil {
			b.problem(d.Base().Pointer, "the value contains itself by way of %s", strings.Join(path, ", "))
		}
	}
}

// room returns what the variant's payload nearly always holds by a pointer: if it must have one union,
// the first variant of that, because schemas begin with the plainest.
func room(v *model.Variant) model.Decl {
	s, ok := v.Payload.(*model.Struct)
	if !ok {
		return nil
	}
	for _, f := range s.Fields {
		if named, ok := f.Type.(model.Named); ok && f.Presence == model.Required {
			if u, ok := named.Decl.(*model.Union); ok && !u.Merged() {
				first, ok := u.Variants[0].Payload.(*model.Struct)
				if ok && len(first.Fields) > 0 {
					return first
				}
				return nil
			}
		}
	}
	return nil
}

// presence decides what the absence of f is in Go.
func (b *builder) presence(f *model.Field) {
	n := b.nodes[f]
	if n == nil {
		return // added by the builder, complete
	}
	_, raw := f.Type.(model.Any)
	_, meta := f.Type.(model.Meta)
	switch {
	case f.Presence == model.Required:
		if f.Nullable && !raw && !meta {
			f.Presence = model.RequiredNull
		}
	case raw || meta:
		f.Presence = model.Plain
	case f.Nullable:
		f.Presence = model.Tri
	case b.zeroMeansAbsent(f, n):
		f.Presence = model.Plain
		if named, ok := f.Type.(model.Named); ok {
			if s, ok := named.Decl.(*model.Struct); ok {
				markZeroTest(s)
			}
		}
	}
	absent := f.Presence == model.Plain || f.Presence == model.Tri
	if !absent || n.Default == nil || string(n.Default) == "null" || !f.Opt() && b.isZero(n.Default, f.Type) {
		return
	}
	f.Default = n.Default
	b.checkDefault(f)
}

// zeroMeansAbsent reports whether Go's zero value of an optional member, one that cannot be null, says
// the same as its absence.
func (b *builder) zeroMeansAbsent(f *model.Field, n *schema.Node) bool {
	switch t := f.Type.(type) {
	case model.Slice, model.Map:
		return true
	case model.Basic:
		return t.Kind == model.Bool && string(n.Default) == "false"
	case model.Named:
		switch d := t.Decl.(type) {
		case *model.Enum:
			return d.Type.Kind == model.String && !d.Open
		case *model.Struct:
			return n.Default != nil && b.isZero(n.Default, t)
		}
	}
	return false
}

// isZero reports whether a decoder makes Go's zero value of raw, apart from nil and empty.
func (b *builder) isZero(raw json.RawMessage, t model.Type) bool {
	switch t := t.(type) {
	case model.Basic:
		zero := map[model.Kind]string{model.Bool: "false", model.String: `""`}[t.Kind]
		return string(raw) == zero || zero == "" && string(raw) == "0"
	case model.Slice, model.Map, model.Meta:
		s := string(raw)
		return s == "[]" || s == "{}"
	case model.Named:
		s, ok := t.Decl.(*model.Struct)
		var members map[string]json.RawMessage
		if !ok || json.Unmarshal(raw, &members) != nil {
			return false
		}
		for name, value := range members {
			i := slices.IndexFunc(s.Fields, func(f *model.Field) bool { return f.JSON == name })
			if i < 0 || s.Fields[i].Nullable || !b.isZero(value, s.Fields[i].Type) {
				return false
			}
		}
		return true
	}
	return false
}

// checkDefault refuses a default that does not fit its type or that no accessor can return.
func (b *builder) checkDefault(f *model.Field) {
	var value any
	err := json.Unmarshal(f.Default, &value)
	ok := false
	switch t := f.Type.(type) {
	case model.Basic:
		switch value.(type) {
		case string:
			ok = t.Kind == model.String
		case bool:
			ok = t.Kind == model.Bool
		case float64:
			ok = t.Kind != model.String && t.Kind != model.Bool
		}
	case model.Named:
		if enum, isEnum := t.Decl.(*model.Enum); isEnum {
			ok = slices.ContainsFunc(enum.Values, func(v *model.EnumValue) bool { return v.Value == value })
		}
	}
	if err != nil || !ok {
		b.problem(f.Pointer, "the default %s has no Go shape", f.Default)
	}
}

// markZeroTest gives s an IsZero, and every struct that its own has to ask.
func markZeroTest(s *model.Struct) {
	if s.ZeroTest {
		return
	}
	s.ZeroTest = true
	for _, f := range s.Fields {
		if named, ok := f.Type.(model.Named); ok && !f.Opt() {
			if inner, ok := named.Decl.(*model.Struct); ok {
				markZeroTest(inner)
			}
		}
	}
}

// containsItself looks for goal inside the memory of d's own value and returns the way to it.
func containsItself(goal, d model.Decl, path []string) []string {
	for _, f := range model.Fields(d) {
		named, ok := f.Type.(model.Named)
		if !ok {
			continue
		}
		step := append(slices.Clone(path), f.Pointer)
		if named.Decl == goal {
			return step
		}
		if len(path) < maxMembers {
			if found := containsItself(goal, named.Decl, step); found != nil {
				return found
			}
		}
	}
	return nil
}
