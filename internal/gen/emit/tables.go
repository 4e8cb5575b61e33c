package emit

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// tabled reports whether the struct is read and written as its tags say.
func (g *generator) tabled(s *model.Struct) bool {
	if s.Extra != nil && (len(s.Elsewhere()) > 0 || !g.tabledType(s.Extra.Elem, true) || enumOf(s.Extra.Elem) != nil) {
		return false
	}
	return len(s.Fixed) == 0 && len(s.Without) == 0 && !slices.Contains(g.Hot, s.Go) && g.tabledFields(s.Fields)
}

func (g *generator) tabledFields(fields []*model.Field) bool {
	return !slices.ContainsFunc(fields, func(f *model.Field) bool {
		_, meta := f.Type.(model.Meta)
		if f.Flat || meta && f.Opt() {
			return true
		}
		if named, ok := f.Type.(model.Named); ok && f.Presence == model.Plain && !f.Always {
			switch named.Decl.(type) {
			case *model.Union, *model.Newtype: // have no method IsZero
				return true
			}
		}
		return !g.tabledType(f.Type, false)
	})
}

// tabledType reports whether a table can have members, or items, of the type.
func (g *generator) tabledType(t model.Type, item bool) bool {
	if checks := g.bounds(t, x); len(checks) > 0 && (item || len(checks) != len(boundOptions(t))) {
		return false
	}
	if readsItself(t) {
		return true
	}
	switch t := plain(t).(type) {
	case model.Basic, model.Any:
		return true
	case model.Meta:
		return !item
	case model.Map:
		_, basic := t.Elem.(model.Basic)
		return !item && (readsItself(t.Elem) || basic && !g.bounded(t.Elem) || t.Elem == model.Any{})
	case model.Slice:
		return !item && g.tabledType(t.Elem, true)
	}
	return false
}

// boundOptions returns the options for the bounds of a type, without those that no option can have.
func boundOptions(t model.Type) (out []string) {
	t = plain(t)
	basic, _ := t.(model.Basic)
	for i, limit := range model.BoundsOf(t) {
		k := model.BoundKeywords[i]
		number := integer.MatchString(limit) || limit != "" && basic.Kind == model.Float
		if k.Check != "" && k.Limit != model.Names && number {
			out = append(out, k.Keyword+"="+limit)
		}
	}
	return out
}

var integer = regexp.MustCompile(`^-?\d+$`)

// codecTag returns the options of a field's tag codec.
func (g *generator) codecTag(f *model.Field) (out []string) {
	_, meta := f.Type.(model.Meta)
	elem := f.Type
	if list, ok := elem.(model.Slice); ok {
		elem = list.Elem
	}
	enum := enumOf(elem)
	for _, option := range []struct {
		name string
		has  bool
	}{
		{"required", f.Required()},
		{"null", f.Nullable && f.Opt() || meta && (f.Nullable || f.OnError)},
		{"empty", f.OnNull},
		{"lenient", f.OnError && f.Type != model.Any{}},
		{"items", f.SkipItems},
		{"open", enum != nil && enum.Names() && enum.Open},
		{"id", g.ids[f]},
		{"features", g.usesFeatures(f.Type)},
	} {
		if option.has {
			out = append(out, option.name)
		}
	}
	out = append(out, boundOptions(f.Type)...)
	if g.Facade {
		out = append(out, featureOption(f.Feature)...)
	}
	if len(out) == 0 {
		out = []string{"optional"} // codec.IsTagged knows generated structs by this tag
	}
	return out
}

// featureOption returns the option that says to which feature something belongs, if it belongs to one.
func featureOption(feature *model.Feature) []string {
	if feature == nil {
		return nil
	}
	return []string{fmt.Sprintf("feature=%d", feature.Bit)}
}

// encodeMembers and decodeMembers return the statements that write and read the members of x, of the given type.
func (g *generator) encodeMembers(s *model.Struct, v *jen.Statement) *jen.Statement {
	if g.tabled(s) {
		return g.codecName("EncodeMembers").Call(e, v)
	}
	return call(v, "encodeMembers", e)
}

func (g *generator) decodeMembers(s *model.Struct, v *jen.Statement) *jen.Statement {
	if g.tabled(s) {
		return g.codecName("DecodeMembers").Call(d, v)
	}
	return call(v, "decodeMembers", d)
}

// tabledUnion reports whether a codec.Variants reads and writes the union.
func (g *generator) tabledUnion(u *model.Union) bool {
	if u.Tag == "" || u.Untagged != nil || u.Unknown == nil || len(u.UnknownHas) > 0 || u.TagNull || u.TagLenient ||
		slices.Contains(g.Hot, u.Go) || !g.tabledFields(u.Fields) {
		return false
	}
	return !slices.ContainsFunc(u.Variants, func(v *model.Variant) bool {
		inline, _ := v.Payload.(*model.Struct)
		return !v.Tagged || v.OwnTag || v.Payload == nil || v.Inline && !g.tabled(inline)
	})
}

// unionTable writes the table of the union's variants, and its methods.
func (g *generator) unionTable(f *jen.File, u *model.Union) {
	nilOf := func(name string) *jen.Statement { return jen.Parens(jen.Op("*").Id(name)).Call(jen.Nil()) }
	var rows []jen.Code
	for _, v := range u.Variants {
		row := []jen.Code{
			jen.Id("Tag").Op(":").Lit(v.Tag),
			jen.Id("As").Op(":").Add(nilOf(v.Go)),
		}
		if !v.Inline {
			row = append(row, jen.Id("By").Op(":").Add(nilOf(v.Payload.Base().Go)))
		}
		if _, ok := v.Payload.(*model.Union); ok {
			row = append(row, jen.Id("Union").Op(":").True())
		}
		if g.canBeOff(v.Feature) {
			row = append(row, jen.Id("Off").Op(":").Add(bitOf(v.Feature)))
		}
		rows = append(rows, jen.Values(row...))
	}
	table := jen.Id("variantsOf" + u.Go)
	head := []jen.Code{
		jen.Id("Of").Op(":").Lit(u.Go),
		jen.Id("Tag").Op(":").Lit(u.Tag),
		jen.Id("Unknown").Op(":").Add(nilOf(u.Unknown.Go)),
	}
	encode := call(table, "Encode", e, x.Clone().Dot("Variant"))
	decode := call(table, "Decode", d)
	if u.Merged() {
		head = append(head, jen.Id("Names").Op(":").Index().String().Values(standing(u.Names())...))
		encode = call(table, "EncodeMerged", e, x, x.Clone().Dot("Variant"))
		decode = call(table, "DecodeMerged", d, x)
	}
	list := jen.Id("List").Op(":").Index().Add(g.codecName("Variant")).
		Custom(jen.Options{Open: "{\n", Close: ",\n}", Separator: ",\n"}, rows...)
	add(f, jen.Var().Add(table).Op("=").Add(g.codecName("Variants")).Values(append(head, list)...))
	add(f, g.encoder(u.Go, "EncodeJSON").Add(oneLine(encode)),
		g.decoder(u.Go, "DecodeJSON").Block(
			jen.List(x.Clone().Dot("Variant"), jen.Id("_")).Op("=").Add(decode).Assert(jen.Id(u.VariantName))))
}
