// This file owns json_gen.go: every type as encoding/json sees it.

package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/gen/model"
)

func (g *generator) json(f *jen.File) {
	for _, d := range g.pkg.Decls {
		if s, ok := d.(*model.Struct); ok && s.Variant != nil {
			continue
		}
		name := d.Base().Go
		add(f,
			jen.Comment("// AppendJSON appends x as JSON to dst; on an error, a *codec.Error, dst comes back as it was."),
			method(name).Id("AppendJSON").Params(jen.Id("dst").Index().Byte()).Params(jen.Index().Byte(), jen.Error()).
				Add(oneLine(jen.Return(g.codecName("Append").Call(jen.Id("dst"), x)))))
		g.jsonMethods(f, name, jen.Op("&").Add(x), x)
	}
	for _, d := range g.pkg.Decls {
		u, ok := d.(*model.Union)
		if !ok || u.Merged() {
			continue
		}
		for _, v := range g.variants(u) {
			g.variantJSON(f, u, v)
		}
	}
}

// jsonMethods writes MarshalJSON and UnmarshalJSON, which encode and decode those values.
func (g *generator) jsonMethods(f *jen.File, name string, encode, decode jen.Code) {
	add(f,
		jen.Comment("// MarshalJSON implements json.Marshaler."),
		valueMethod(name).Id("MarshalJSON").Params().Params(jen.Index().Byte(), jen.Error()).
			Add(oneLine(jen.Return(g.codecName("Append").Call(jen.Nil(), encode)))))
	if decode == nil {
		return
	}
	add(f,
		jen.Comment("// UnmarshalJSON implements json.Unmarshaler."),
		method(name).Id("UnmarshalJSON").Params(jen.Id("data").Index().Byte()).Error().
			Add(oneLine(jen.Return(g.codecName("Unmarshal").Call(jen.Id("data"), decode)))))
}

// variantJSON makes a variant of an unmerged union encode as that union, with its tag.
func (g *generator) variantJSON(f *jen.File, u *model.Union, v *model.Variant) {
	if v.Self {
		return
	}
	variant := jen.Op("&").Add(x)
	if v.Type != nil {
		variant = x.Clone()
	}
	encode := jen.Op("&").Id(u.Go).Values(variant)
	switch {
	case v == u.Unknown || v.Type != nil:
		g.jsonMethods(f, v.Go, encode, nil)
	case v.Inline:
		g.jsonMethods(f, v.Go, encode, x)
	default:
		g.jsonMethods(f, v.Go, encode, jen.Parens(jen.Op("*").Id(v.Payload.Base().Go)).Call(x))
	}
}
