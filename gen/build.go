// A schema is converted to the model: which definitions the runtime declares, which Go construct each of the others is,
// how the variants of unions are distinguished, and what absence means. A form that Go cannot express is an error with
// its JSON pointer.

package gen

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// maxPlaced is the maximum depth of types that are declared in place, each inside another.
const maxPlaced = 200

// The number of types that can be declared in place is limited to placedOfNode for each schema of the document, plus
// placedMore. A choice that is a base of the branches of another choice is declared for each of these branches, so that
// the number can double with each.
const (
	placedOfNode = 2
	placedMore   = 1000
)

// maxFields is the maximum number of members of all objects together. Definitions that include each other can have
// many more members than the document.
const maxFields = 50_000

type builder struct {
	doc      *schema.Document
	shapes   *schema.Canonical
	kinds    map[*schema.Node]map[string]bool
	nulls    map[*schema.Node]bool
	known    map[*schema.Node]*memberNames
	placing  map[*schema.Node]bool // the schemas that are being declared in place
	inside   map[*schema.Node]bool // the arrays and maps whose types are being determined
	room     int                   // how many more types may be declared in place
	total    int                   // the number of members of all objects so far
	endless  bool                  // declarations in place would be infinite, or nearly so
	before   int                   // the number of problems at that time; later ones may be consequences
	pkg      *model.Package
	env      *envelopes
	decls    map[string]model.Decl
	nodes    map[*model.Field]*schema.Node
	problems []error
}

// build returns the model of doc, without Go names.
func build(doc *schema.Document) (*model.Package, error) {
	b := &builder{
		doc:    doc,
		shapes: schema.NewCanonical(doc),
		kinds:  map[*schema.Node]map[string]bool{}, nulls: map[*schema.Node]bool{},
		known: map[*schema.Node]*memberNames{}, placing: map[*schema.Node]bool{}, inside: map[*schema.Node]bool{},
		pkg:   &model.Package{},
		env:   findEnvelopes(doc),
		decls: map[string]model.Decl{},
		nodes: map[*model.Field]*schema.Node{},
	}
	b.room = placedMore
	doc.Walk(func(*schema.Node) { b.room += placedOfNode })
	if root := doc.Root; len(root.Properties) > 0 && !isFrame(root) {
		b.problem(root.Pointer+"/properties", "the root describes values instead of messages")
	}
	for _, def := range doc.Defs {
		if b.env.kept[def.Name] {
			b.decls[def.Name] = b.declare(def.Node,
				model.Common{Schema: def.Name, Pointer: def.Pointer, Doc: def.Description, Deprecated: def.Deprecated})
		}
	}
	for _, def := range doc.Defs {
		if b.env.kept[def.Name] {
			b.fill(b.decls[def.Name], def.Node)
		}
	}
	if b.endless {
		b.problems = b.problems[:b.before]
	}
	b.problems = append(b.problems, b.shapes.Problems()...)
	if len(b.problems) == 0 {
		b.relate()
		b.methods()
	}
	return b.pkg, errors.Join(b.problems...)
}

func (b *builder) problem(at, format string, args ...any) {
	b.problems = append(b.problems, &schema.Error{Pointer: at, Msg: fmt.Sprintf(format, args...)})
}

// form returns the canonical form of n, with references followed and without null, and whether null is one of its
// values. The form is nil if null is the only value.
func (b *builder) form(n *schema.Node) (form *schema.Node, null bool) {
	seen := map[*schema.Node]bool{}
	for {
		full := b.shapes.Full(n)
		if seen[full] {
			b.problem(n.Pointer, "the definition refers to nothing but itself")
			return &schema.Node{Pointer: n.Pointer}, null
		}
		seen[full] = true
		without, isNull := b.shapes.WithoutNull(full)
		null = null || isNull
		if without == nil || without.Ref() == "" {
			return without, null
		}
		n = without
	}
}

// declare determines the Go construct for n. After every definition is declared, fill completes it.
func (b *builder) declare(n *schema.Node, c model.Common) model.Decl {
	form, null := b.form(n)
	c.Null = c.Schema != "" && form != nil && (null || b.nullable(form))
	switch {
	case form == nil:
	case b.enumOf(form) != nil:
		return &model.Enum{Common: c}
	case len(form.Branches()) > 0:
		return &model.Union{Common: c}
	case isObject(form):
		return &model.Struct{Common: c}
	}
	return &model.Newtype{Common: c}
}

// fill completes the declaration of n and appends it to the package.
func (b *builder) fill(d model.Decl, n *schema.Node) {
	b.pkg.Decls = append(b.pkg.Decls, d)
	form, _ := b.form(n)
	switch d := d.(type) {
	case *model.Enum:
		b.takeValues(form)
		b.fillEnum(d, form)
	case *model.Union:
		b.fillUnion(d, form)
	case *model.Struct:
		b.fillStruct(d, form, "")
	case *model.Newtype:
		switch {
		case form == nil:
			d.Type = model.Null{}
		case form.Any():
			d.Type = model.Any{}
		default:
			d.Type = b.valueOf(form, d, "value")
		}
	}
}

// isObject reports whether a form is an object with known members, even if none.
func isObject(form *schema.Node) bool {
	if kinds, null := form.Kinds(); null || !slices.Equal(kinds, []string{"object"}) {
		return false
	}
	more := form.AdditionalProperties
	return len(form.Properties) > 0 || !form.Has("required") && (more == nil || more.Bool != nil && !*more.Bool)
}

// take reports each keyword of a form that its Go construct does not use.
func (b *builder) take(form *schema.Node, shape string, used ...string) {
	if at, ok := form.Impossible(); ok {
		b.problem(at, "no value fits the schema")
		return
	}
	for _, k := range form.Asserted() {
		switch {
		case slices.Contains(used, k):
		case k == "not":
			b.problems = append(b.problems, &schema.Error{Pointer: form.At(k), Err: &Wanted{
				Override{Kind: Ignored, Subject: form.At(k), Why: "what it forbids is not checked"},
				fmt.Errorf("it has no Go shape on %s", shape)}})
		default:
			b.problem(form.At(k), "it has no Go shape on %s", shape)
		}
	}
}

// boundsOf returns the given keywords and those that restrict values of a kind.
func boundsOf(of model.Restricted, more ...string) []string {
	for _, k := range model.BoundKeywords {
		if k.Of == of {
			more = append(more, k.Keyword)
		}
	}
	return more
}

// fillStruct completes an object, except for the member that is the tag of its union.
func (b *builder) fillStruct(s *model.Struct, form *schema.Node, tag string) {
	b.take(form, "an object with members", "type", "properties", "required", "additionalProperties")
	s.Fields = b.fields(s, form, tag)
	if more := others(form); more != nil {
		s.Extra = &model.Extra{Pointer: form.At("additionalProperties"), Elem: b.element(more, s, "extra")}
		if len(s.Without) > 0 {
			b.problem(form.At("additionalProperties"), "any member but %q has no Go shape", s.Without[0])
		}
	}
}

// others returns the schema of the unnamed members that a form of objects allows. It returns nil if they are dropped,
// because the form names some members and either does not mention others or forbids them.
func others(form *schema.Node) *schema.Node {
	switch more := form.AdditionalProperties; {
	case more == nil && len(form.Properties) == 0:
		return &schema.Node{Pointer: form.Pointer}
	case more == nil || more.Bool != nil && !*more.Bool:
		return nil
	default:
		return more
	}
}

// fields returns the members of the object n, except the one that is the tag of its union. Members of a struct that
// have only one possible value, or none, are not fields.
func (b *builder) fields(owner model.Decl, n *schema.Node, tag string) []*model.Field {
	if count := max(len(n.Properties), len(n.Required)); count > model.MaxMembers {
		b.problem(n.Pointer, "%d members are more than the %d that can be counted", count, model.MaxMembers)
		return nil
	}
	s, _ := owner.(*model.Struct)
	var out []*model.Field
	for _, p := range b.shapes.Members(n) {
		if tag != "" && p.Name == tag {
			continue
		}
		if s != nil && b.pinned(s, n, p) {
			continue
		}
		f := &model.Field{JSON: p.Name,
			Common: model.Common{Pointer: p.Pointer, Doc: p.Description, Deprecated: p.Deprecated}}
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
	if len(out) > model.MaxMembers {
		b.problem(n.Pointer, "%d members are more than the %d that can be counted", len(out), model.MaxMembers)
		return nil
	}
	if before := b.total; before <= maxFields {
		if b.total += len(out); b.total > maxFields {
			b.problem(n.Pointer, "the objects have more than %d members in all", maxFields)
		}
	}
	return out
}

// pinned records a member that always has the same value or must be absent, and reports whether the member is one.
func (b *builder) pinned(s *model.Struct, n *schema.Node, p schema.Property) bool {
	form := b.shapes.Of(p.Node)
	if form.Forbidden() {
		s.Without = append(s.Without, p.Name)
		return true
	}
	value, ok := constant(form)
	if !ok || !n.Requires(p.Name) {
		return false
	}
	b.take(form, "a constant", "type", "const", "enum")
	s.Fixed = append(s.Fixed, &model.Fixed{JSON: p.Name, Value: value})
	return true
}

// constant returns the only value that a form accepts, unless it is null, an array or an object.
func constant(form *schema.Node) (value json.RawMessage, ok bool) {
	switch {
	case form.Ref() != "" || len(form.Branches()) > 0:
	case form.Const != nil:
		value = form.Const
	case len(form.Enum) == 1:
		value = form.Enum[0]
	}
	return value, value != nil && isScalar(schema.KindOfValue(value))
}

// checkLeniency reports x-deserialize keywords that have no meaning at their place.
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

// typeOf returns the type of the schema n and whether null is one of its values. Types that n declares in place are
// named after the owner and the part of it that n is.
func (b *builder) typeOf(n *schema.Node, owner model.Decl, part string) (t model.Type, null bool) {
	form, null := b.shapes.WithoutNull(n)
	switch {
	case form == nil:
		return model.Null{}, false
	case form.Any():
		return model.Any{}, false
	case form.Ref() != "":
		t := b.refType(form.Ref())
		named, ok := t.(model.Named)
		return t, null || ok && named.Decl.Base().Null
	}
	return b.valueOf(form, owner, part), null || b.nullable(form)
}

// valueOf returns the type of a form without null.
func (b *builder) valueOf(form *schema.Node, owner model.Decl, part string) model.Type {
	if len(form.Branches()) > 0 || b.enumOf(form) != nil {
		return b.inPlace(form, owner, part)
	}
	kind := b.kindOf(form)
	if isScalar(kind) {
		b.take(form, scalars[kind].name, boundsOf(scalars[kind].bounds, "type")...)
		return b.scalar(kind, form)
	}
	switch kind {
	case "array":
		b.take(form, "an array", boundsOf(model.Slices, "type", "items", "prefixItems")...)
		return b.guardCycle(form, func() model.Type { return b.array(form, owner, part) })
	case "object":
		return b.guardCycle(form, func() model.Type { return b.object(form, owner, part) })
	default:
		b.take(form, "a schema without a type")
	}
	return model.Any{}
}

// guardCycle returns the type of an array or map, unless it contains itself without a definition in between.
func (b *builder) guardCycle(form *schema.Node, typeOf func() model.Type) model.Type {
	if b.inside[form] {
		b.problem(form.Pointer, "the schema has itself as a part")
		return model.Any{}
	}
	b.inside[form] = true
	defer delete(b.inside, form)
	return typeOf()
}

// takeValues reports the keywords of a list of values, or of a choice between such lists, other than the values.
func (b *builder) takeValues(form *schema.Node) {
	branches := b.choices(form)
	if len(branches) == 0 {
		of := model.Numbers
		if b.kindOf(form) == "string" {
			of = model.Strings
		}
		b.take(form, "a list of values", boundsOf(of, "type", "const", "enum")...)
		return
	}
	b.take(form, "a choice of values", "oneOf", "anyOf")
	format := branches[0].Format
	for _, br := range branches {
		b.take(br, "a value of a choice", "type", "const", "enum")
		if br.Format != format {
			at := br.Pointer
			if br.Format != "" {
				at = br.At("format")
			}
			b.problem(at, "values of different formats have no Go shape")
		}
	}
}

func isNull(n *schema.Node) bool {
	kinds, null := n.Kinds()
	return null && len(kinds) == 0 && len(n.Properties) == 0
}

// refType returns the type of a reference.
func (b *builder) refType(ref string) model.Type {
	if name, ok := b.env.runtime[ref]; ok {
		return model.Runtime{Name: name, Null: slices.ContainsFunc(b.doc.Def(ref).Branches(), isNull)}
	}
	return model.Named{Decl: b.decls[ref]}
}

// stop prevents further declarations in place.
func (b *builder) stop(n *schema.Node, why string) model.Type {
	b.endless = true
	b.problem(n.Pointer, "%s", why)
	b.before = len(b.problems)
	return model.Any{}
}

// inPlace declares the type of n, which is inside another definition.
func (b *builder) inPlace(n *schema.Node, owner model.Decl, part string) model.Type {
	if b.endless || b.shapes.Exhausted() {
		return model.Any{} // already reported
	}
	if b.placing[n] || len(b.placing) > maxPlaced {
		return b.stop(n, "the schema has itself as a part")
	}
	if b.room--; b.room < 0 {
		return b.stop(n, "too many combinations of schemas")
	}
	b.placing[n] = true
	defer delete(b.placing, n)
	d := b.declare(n, model.Common{Pointer: n.Pointer, Doc: n.Description, Owner: owner, Part: part})
	b.fill(d, n)
	return model.Named{Decl: d}
}

func (b *builder) object(n *schema.Node, owner model.Decl, part string) model.Type {
	if isObject(n) && (len(n.Properties) > 0 || n.AdditionalProperties != nil) {
		return b.inPlace(n, owner, part)
	}
	used := boundsOf(model.Maps, "type", "additionalProperties")
	if len(n.Properties) == 0 {
		used = append(used, "properties")
	}
	b.take(n, "a map", used...)
	t := model.Map{Elem: model.Any{}, Bounds: b.bounds(n, model.Maps, model.Basic{})}
	if n.AdditionalProperties != nil {
		t.Elem = b.element(n.AdditionalProperties, owner, part)
	}
	return t
}

// relate determines properties that depend on several definitions: what absence means, which unions share their object
// with another one, and which values are allocated together. It also ensures that no value contains itself.
func (b *builder) relate() {
	b.checkUnions()
	b.point()
	for _, d := range b.pkg.Decls {
		for _, f := range model.Fields(d) {
			b.presence(f)
		}
		if u, ok := d.(*model.Union); ok {
			for _, v := range u.Variants {
				v.Room = room(v)
			}
		}
	}
}

// room returns the type to which the variant's payload nearly always points. If the payload requires exactly one union,
// that is the union's first variant, because schemas list the simplest variant first.
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
