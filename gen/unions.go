// This file reads the schema's choices: what names the variants of a union, what each consists of, and
// by which member or kind of value a decoder tells those apart that have no tag. What cannot be told
// apart without trying is an error.

package gen

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/acpgo/sdk/gen/model"
	"github.com/acpgo/sdk/gen/schema"
)

func (b *builder) fillUnion(u *model.Union, n *schema.Node) {
	branches := n.Branches()
	var beside []*schema.Node
	if len(n.OneOf) > 0 && len(n.AnyOf) > 0 {
		branches, beside = n.OneOf, n.AnyOf
		if b.tagOf(n.Pointer, branches) == "" || b.tagOf(n.Pointer, beside) != "" {
			b.problem(n.Pointer, "oneOf and anyOf on one schema need a tag in oneOf and none in anyOf")
		}
	}
	u.Tag = b.tagOf(n.Pointer, branches)
	u.Fields = b.fields(u, n, u.Tag)
	if beside != nil {
		u.Fields = append(u.Fields, b.flat(u, n, beside))
	}
	if p := n.Property(u.Tag); p != nil && u.Tag != "" {
		_, u.TagNull = p.Kinds()
		u.TagLenient = p.DefaultOnError
	}
	b.variants(u, n, branches)
	if u.Untagged != nil && u.Untagged.Inline && u.TagNull {
		keepNull(u)
	} else {
		u.TagLenient = false
	}
}

// keepNull gives the untagged variant of u a member for the tag that is there but null, and where u is
// lenient for the one that is no string.
func keepNull(u *model.Union) {
	s := u.Untagged.Payload.(*model.Struct)
	s.Fields = append(s.Fields, &model.Field{
		Pointer: s.Pointer, JSON: u.Tag, Doc: "It is null if it is there: a value makes another variant.",
		Type: model.Null{}, Presence: model.Tri, Nullable: true, OnError: u.TagLenient, Slot: len(s.Fields),
	})
}

// flat declares the union of a second choice in the object of u, and the field that holds it.
func (b *builder) flat(u *model.Union, n *schema.Node, branches []*schema.Node) *model.Field {
	inner := &model.Union{Common: model.Common{Pointer: n.Pointer + "/anyOf", Owner: u, Part: "anyOf"}, Nested: true}
	b.pkg.Decls = append(b.pkg.Decls, inner)
	b.variants(inner, n, branches)
	for _, v := range inner.Variants {
		if _, ok := v.Payload.(*model.Struct); !ok {
			b.problem(v.Pointer, "a second choice must be between objects")
		}
	}
	f := &model.Field{Pointer: inner.Pointer, Type: model.Named{Decl: inner}, Flat: true}
	return f
}

// variants adds the variants of u, which the branches of n describe.
func (b *builder) variants(u *model.Union, n *schema.Node, branches []*schema.Node) {
	if u.Tag != "" {
		u.Unknown = &model.Variant{Common: model.Common{Pointer: n.Pointer, Owner: u, Part: "unknown"}, Union: u}
	}
	for _, br := range branches {
		b.branch(u, br)
	}
	if u.Tag == "" {
		b.tellApart(u, branches)
	}
	for _, v := range u.Variants {
		if v.Part == "" {
			v.Part = v.Key
			if v.Inline {
				v.Payload.Base().Part = v.Key
			}
		}
		if v.Part == "" {
			b.problem(v.Pointer, "the variant has no tag, title, payload or member to name it by")
		}
	}
}

// tagOf returns the property whose constants name the variants, or "" if there is none: the one that
// most branches have a constant for, when each other branch leaves it open or has nothing of the name.
func (b *builder) tagOf(at string, branches []*schema.Node) string {
	var names []string
	count := map[string]int{}
	for _, br := range branches {
		for _, p := range br.Properties {
			if _, ok := constant(p.Node); ok {
				names = append(names, p.Name)
				count[p.Name]++
			}
		}
	}
	best, tie := "", false
	for _, name := range names {
		switch {
		case name == best:
		case count[name] > count[best]:
			best, tie = name, false
		case count[name] == count[best]:
			tie = true
		}
	}
	if tie {
		b.problem(at, "the variants have more than one constant member in common")
	}
	return best
}

// constant returns the only string that a schema accepts.
func constant(n *schema.Node) (string, bool) {
	raw := n.Const
	if raw == nil && len(n.Enum) == 1 {
		raw = n.Enum[0]
	}
	var s string
	return s, raw != nil && json.Unmarshal(raw, &s) == nil
}

// branch adds the variant that br describes to u.
func (b *builder) branch(u *model.Union, br *schema.Node) {
	v := &model.Variant{Union: u, Common: model.Common{Pointer: br.Pointer, Doc: br.Description, Deprecated: br.Deprecated, Owner: u, Part: br.Title}}
	if tag := br.Property(u.Tag); tag != nil && u.Tag != "" {
		value, isConst := constant(tag)
		switch {
		case isConst && value != "":
			v.Tag, v.Part = value, value
		case isNull(tag):
			u.TagNull = true
		case br.Not != nil:
			u.Unknown.Pointer, u.Unknown.Doc = br.Pointer, br.Description
			u.Open = true
			return
		default:
			b.problem(tag.Pointer, "the tag is neither a constant nor left open by a not")
			return
		}
	}
	if u.Tag != "" && v.Tag == "" {
		if u.Untagged != nil {
			b.problem(br.Pointer, "a second variant without the tag %q", u.Tag)
		}
		u.Untagged = v
	}
	for _, o := range u.Variants {
		if v.Tag != "" && o.Tag == v.Tag {
			b.problem(br.Pointer, "the variant shares its tag %q with the one at %s", v.Tag, o.Pointer)
		}
	}
	b.content(v, br)
	u.Variants = append(u.Variants, v)
}

// content decides what the variant consists of.
func (b *builder) content(v *model.Variant, br *schema.Node) {
	own := slices.DeleteFunc(slices.Clone(br.Properties), func(p schema.Property) bool {
		return p.Name == v.Union.Tag
	})
	ref := br.Ref()
	if ref == "" && len(br.AllOf) == 1 {
		ref = br.AllOf[0].Ref()
	}
	switch {
	case ref != "" && len(own) == 0:
		if v.Part == "" {
			v.Part = ref
		}
		t := b.named(ref)
		if named, ok := t.(model.Named); ok && b.isMembers(named.Decl) {
			v.Payload = named.Decl
		} else {
			v.Type = t
		}
		if v.Type != nil && v.Union.Tag != "" {
			b.problem(br.Pointer, "the payload %s is no object, so the tag %q has no place", ref, v.Union.Tag)
		}
	case ref != "" || len(br.AllOf) > 0:
		b.problem(br.Pointer, "a variant with a payload and members of its own has no Go shape")
	case len(br.Branches()) > 0:
		b.problem(br.Pointer, "a choice inside a variant has no Go shape")
	case len(own) > 0 || v.Union.Tag != "":
		s := &model.Struct{Common: model.Common{Pointer: br.Pointer, Doc: v.Doc, Owner: v.Union, Part: v.Part}, Variant: v}
		b.pkg.Decls = append(b.pkg.Decls, s)
		s.Fields = b.fields(s, br, v.Union.Tag)
		v.Payload, v.Inline = s, true
	default:
		var null bool
		v.Type, null = b.typeOf(br, v.Union, v.Part)
		if _, any := v.Type.(model.Any); any {
			v.Union.Fallback = v
		}
		if null {
			b.problem(br.Pointer, "a variant that may be null has no Go shape")
		}
	}
}

// isMembers reports whether the declaration is always an object with known members.
func (b *builder) isMembers(d model.Decl) bool {
	switch d := d.(type) {
	case *model.Struct:
		return true
	case *model.Union:
		def := b.doc.Def(d.Schema)
		return !slices.ContainsFunc(b.target(def).Branches(), func(br *schema.Node) bool {
			return kindOf(b.target(br)) != "object"
		})
	}
	return false
}

// tellApart finds for each variant of an untagged union how a decoder knows it: by its kind of value,
// or among objects, and among arrays by their first item, by a required member that no other has.
func (b *builder) tellApart(u *model.Union, branches []*schema.Node) {
	groups := map[string][]int{}
	for i, br := range branches {
		kind := kindOf(b.target(br))
		groups[kind] = append(groups[kind], i)
	}
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		group := groups[kind]
		if len(group) == 1 {
			continue
		}
		if kind != "object" && kind != "array" {
			b.problem(u.Pointer, "the variants %q and %q are both of the kind %s", u.Variants[group[0]].Part, u.Variants[group[1]].Part, kind)
			continue
		}
		for _, i := range group {
			u.Variants[i].Key = b.ownKey(branches, group, i, kind)
			if u.Variants[i].Key == "" {
				b.problem(branches[i].Pointer, "no required member tells the variant from the others")
			}
		}
	}
}

// kindOf returns the JSON kind of all values of n, or "any".
func kindOf(n *schema.Node) string {
	kinds, _ := n.Kinds()
	switch {
	case len(kinds) == 1:
		return kinds[0]
	case len(n.Properties) > 0 || len(n.AllOf) > 0 || n.Ref() != "":
		return "object"
	}
	if branches := n.Branches(); len(branches) > 0 {
		kind := kindOf(branches[0])
		for _, br := range branches {
			if kindOf(br) != kind {
				return "any"
			}
		}
		return kind
	}
	return "any"
}

// ownKey returns the first member that the variant i requires and no other of the group knows.
func (b *builder) ownKey(branches []*schema.Node, group []int, i int, kind string) string {
	part := func(i int) *schema.Node {
		n := b.target(branches[i])
		if kind == "array" {
			n = b.target(n.Items)
		}
		return n
	}
	required, _ := b.members(part(i), 0)
	for _, name := range required {
		own := !slices.ContainsFunc(group, func(j int) bool {
			_, all := b.members(part(j), 0)
			return j != i && slices.Contains(all, name)
		})
		if own {
			return name
		}
	}
	return ""
}

// members returns the names that every object of the schema has, and those that it may have.
func (b *builder) members(n *schema.Node, depth int) (required, all []string) {
	if depth > maxMembers {
		return nil, nil
	}
	required = slices.Clone(n.Required)
	for _, p := range n.Properties {
		all = append(all, p.Name)
	}
	inner := slices.Clone(n.AllOf)
	if n.Ref() != "" {
		inner = append(inner, b.doc.Def(n.Ref()))
	}
	for _, m := range inner {
		r, a := b.members(m, depth+1)
		required, all = append(required, r...), append(all, a...)
	}
	for i, br := range n.Branches() {
		r, a := b.members(br, depth+1)
		all = append(all, a...)
		if i == 0 {
			inner = n.Branches()[1:]
			for _, name := range r {
				if !slices.ContainsFunc(inner, func(o *schema.Node) bool {
					other, _ := b.members(o, depth+1)
					return !slices.Contains(other, name)
				}) {
					required = append(required, name)
				}
			}
		}
	}
	return required, all
}
