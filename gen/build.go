// This file turns a schema into the model: which definitions are the runtime's, which Go construct
// each of the others is, how unions are told apart, what absence means. A form that has no Go shape
// is an error with its JSON pointer.

package gen

import (
	"errors"
	"fmt"
	"slices"

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
			b.decls[def.Name] = b.declare(def.Node, model.Common{Schema: def.Name, Pointer: def.Pointer, Doc: def.Description, Deprecated: def.Deprecated})
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
	c.Null = c.Schema != "" && mayBeNull(target)
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
		d.Type, _ = b.typeOf(n, d, "value")
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
	if more := n.AdditionalProperties; more != nil && (more.Bool == nil || *more.Bool) {
		return false
	}
	return !null && slices.Equal(kinds, []string{"object"})
}

// fields returns the members of the object n, but the one that is the tag of its union.
func (b *builder) fields(owner model.Decl, n *schema.Node, tag string) []*model.Field {
	var out []*model.Field
	for _, p := range n.Properties {
		if tag != "" && p.Name == tag {
			continue
		}
		f := &model.Field{Pointer: p.Pointer, JSON: p.Name, Doc: p.Description, Deprecated: p.Deprecated}
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
		t := b.named(ref)
		named, ok := t.(model.Named)
		return t, ok && named.Decl.Base().Null
	}
	if len(n.AllOf) == 1 && len(n.Properties) == 0 {
		return b.typeOf(n.AllOf[0], owner, part)
	}

	if shape := enumOf(n); shape != nil {
		if len(shape.values) == 0 && shape.null {
			return model.Null{}, false
		}
		return b.inPlace(n, owner, part), shape.null
	}
	kinds, null := n.Kinds()
	if len(kinds) == 0 && null {
		return model.Null{}, false
	}
	if n.Has("const") || n.Has("enum") {
		b.problem(n.Pointer, "the listed values are not of one scalar type")
		return model.Any{}, null
	}
	if len(kinds) != 1 || len(n.AllOf) > 0 || n.Not != nil {
		b.problem(n.Pointer, "the schema has no Go shape")
		return model.Any{}, null
	}
	switch kinds[0] {
	case "string":
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

// mayBeNull reports whether null is one of the values of a definition that has others too.
func mayBeNull(n *schema.Node) bool {
	if shape := enumOf(n); shape != nil {
		return shape.null && len(shape.values) > 0
	}
	kinds, null := n.Kinds()
	return null && len(kinds) > 0
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

func (b *builder) object(n *schema.Node, owner model.Decl, part string) model.Type {
	if isObject(n) && (len(n.Properties) > 0 || n.AdditionalProperties != nil) {
		return b.inPlace(n, owner, part)
	}
	t := model.Map{Elem: model.Any{}, Bounds: b.bounds(n, model.Maps, model.Basic{})}
	if n.AdditionalProperties != nil {
		t.Elem = b.element(n.AdditionalProperties, owner, part)
	}
	return t
}

// relate decides what depends on more than one definition: what absence means where, which unions
// share their object with another, what is allocated together, and that no value contains itself.
func (b *builder) relate() {
	b.point()
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
