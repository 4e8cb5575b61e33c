// This file finds what a package has in common with its base: the package of another schema, most of which
// says the same. What is the same in both is declared in the base alone, and the package has an alias.

package gen

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/acpgo/sdk/gen/model"
)

// A Base is a generated package that another one extends.
type Base struct {
	Path      string // import path
	Schema    []byte
	Overrides []Override
}

// relate marks the declarations of pkg that base has too. Two are the same when they have one name and one
// shape, and what they refer to is the same in turn: whatever contradicts nothing is the same, so that
// types which refer to each other can be. Descriptions do not count.
//
// A type is declared anew although it looks the same where the package needs methods on it that are not
// exported: the payload that is itself a variant of a union declared anew, and the capabilities, which
// hold the gates of a facade.
func relate(pkg, base *model.Package) {
	r := &relation{others: map[string]model.Decl{}, same: map[string]bool{}}
	for _, d := range base.Decls {
		r.others[d.Base().Go] = d
	}
	for _, d := range pkg.Decls {
		r.same[d.Base().Go] = r.others[d.Base().Go] != nil
	}
	for _, d := range pkg.Capabilities {
		r.same[d.Base().Go] = false
	}
	for changed := true; changed; {
		changed = false
		for _, d := range pkg.Decls {
			if name := d.Base().Go; r.same[name] && !r.decl(d, r.others[name]) {
				r.same[name] = false
				changed = true
			}
			if u, ok := d.(*model.Union); ok && !r.same[u.Go] {
				changed = r.untie(u) || changed
			}
		}
	}
	for _, d := range pkg.Decls {
		d.Base().InBase = r.same[d.Base().Go]
	}
}

// relation knows which names of a package are, as far as is known, the same in its base.
type relation struct {
	others map[string]model.Decl // of the base
	same   map[string]bool
}

// untie marks as different the types that belong to a union which is: variants must be of its package.
func (r *relation) untie(u *model.Union) (changed bool) {
	for _, v := range u.Variants {
		if (v.Self || v.Inline) && r.same[v.Payload.Base().Go] {
			r.same[v.Payload.Base().Go] = false
			changed = true
		}
	}
	return changed
}

func (r *relation) decl(d, o model.Decl) bool {
	switch d := d.(type) {
	case *model.Struct:
		o, ok := o.(*model.Struct)
		return ok && (d.Variant == nil) == (o.Variant == nil) && (o.ZeroTest || !d.ZeroTest) && r.fields(d.Fields, o.Fields) &&
			slices.EqualFunc(d.Fixed, o.Fixed, func(a, b *model.Fixed) bool { return a.JSON == b.JSON && bytes.Equal(a.Value, b.Value) }) &&
			slices.Equal(d.Without, o.Without) && (d.Extra == nil) == (o.Extra == nil) && (d.Extra == nil || r.types(d.Extra.Elem, o.Extra.Elem))
	case *model.Enum:
		o, ok := o.(*model.Enum)
		return ok && d.Type == o.Type && d.Open == o.Open && slices.EqualFunc(d.Values, o.Values, func(a, b *model.EnumValue) bool {
			return a.Go == b.Go && a.Value == b.Value
		})
	case *model.Newtype:
		o, ok := o.(*model.Newtype)
		return ok && r.types(d.Type, o.Type)
	case *model.Union:
		o, ok := o.(*model.Union)
		return ok && r.union(d, o)
	}
	panic(fmt.Sprintf("no shape of %T", d))
}

func (r *relation) fields(a, b []*model.Field) bool { return slices.EqualFunc(a, b, r.field) }

func (r *relation) field(a, b *model.Field) bool {
	return a.JSON == b.JSON && a.Go == b.Go && a.Presence == b.Presence && a.Nullable == b.Nullable && a.Always == b.Always &&
		a.OnError == b.OnError && a.OnNull == b.OnNull && a.SkipItems == b.SkipItems && a.Flat == b.Flat &&
		a.Accessor == b.Accessor && bytes.Equal(a.Default, b.Default) && r.types(a.Type, b.Type)
}

func (r *relation) types(a, b model.Type) bool {
	switch a := a.(type) {
	case model.Named:
		b, ok := b.(model.Named)
		return ok && a.Decl.Base().Go == b.Decl.Base().Go && r.same[a.Decl.Base().Go]
	case model.Slice:
		b, ok := b.(model.Slice)
		return ok && a.Bounds == b.Bounds && r.types(a.Elem, b.Elem)
	case model.Map:
		b, ok := b.(model.Map)
		return ok && a.Bounds == b.Bounds && r.types(a.Elem, b.Elem)
	case model.Nullable:
		b, ok := b.(model.Nullable)
		return ok && r.types(a.Elem, b.Elem)
	case model.Pointer:
		b, ok := b.(model.Pointer)
		return ok && r.types(a.Elem, b.Elem)
	}
	return a == b
}

func (r *relation) union(a, b *model.Union) bool {
	return a.VariantName == b.VariantName && a.Tag == b.Tag && a.KeptTag == b.KeptTag && a.TagNull == b.TagNull && a.TagLenient == b.TagLenient &&
		(a.Unknown == nil) == (b.Unknown == nil) && slices.EqualFunc(a.UnknownHas, b.UnknownHas, sameMember) &&
		r.fields(a.Fields, b.Fields) && slices.EqualFunc(a.Variants, b.Variants, r.variant)
}

func sameMember(a, b model.Member) bool { return a.Name == b.Name && slices.Equal(a.Kinds, b.Kinds) }

func (r *relation) variant(a, b *model.Variant) bool {
	if a.Go != b.Go || a.Tag != b.Tag || a.Self != b.Self || a.Inline != b.Inline || a.Key != b.Key ||
		!bytes.Equal(a.KeyValue, b.KeyValue) || a.Rank != b.Rank || !slices.Equal(a.Drops, b.Drops) || a.OwnTag != b.OwnTag || a.Tagged != b.Tagged ||
		a.Constructor != b.Constructor || a.Spread != b.Spread || (a.Payload == nil) != (b.Payload == nil) {
		return false
	}
	if (a.Union.Fallback == a) != (b.Union.Fallback == b) {
		return false
	}
	if a.Payload != nil {
		return r.types(model.Named{Decl: a.Payload}, model.Named{Decl: b.Payload})
	}
	return r.types(a.Type, b.Type)
}
