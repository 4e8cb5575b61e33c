package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

func (g *generator) json(f *jen.File) {
	for _, d := range g.pkg.Decls {
		if s, ok := d.(*model.Struct); ok && s.Variant != nil {
			continue
		}
		if model.Scalar(d) {
			continue
		}
		name := d.Base().Go
		g.marshal(f, name, jen.Op("&").Add(x))
		add(f,
			jen.Comment("// UnmarshalJSON implements json.Unmarshaler."),
			method(name).Id("UnmarshalJSON").Params(jen.Id("data").Index().Byte()).Error().
				Add(oneLine(jen.Return(g.codecName("Unmarshal").Call(jen.Id("data"), x)))))
		if _, ok := d.(*model.Union); ok {
			add(f,
				jen.Comment("// String returns x as JSON, cut off if it is long, for people to read."),
				valueMethod(name).Id("String").Params().String().
					Add(oneLine(jen.Return(g.codecName("Text").Call(jen.Op("&").Add(x))))))
		}
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

// marshal writes MarshalJSON, which encodes the given value.
func (g *generator) marshal(f *jen.File, name string, encode jen.Code) {
	add(f,
		jen.Comment("// MarshalJSON implements json.Marshaler."),
		valueMethod(name).Id("MarshalJSON").Params().Params(jen.Index().Byte(), jen.Error()).
			Add(oneLine(jen.Return(g.codecName("Append").Call(jen.Nil(), encode)))))
}

// variantJSON makes a variant of an unmerged union encode as that union, so that it does not lose its tag.
func (g *generator) variantJSON(f *jen.File, u *model.Union, v *model.Variant) {
	if v.Self {
		return
	}
	variant := jen.Op("&").Add(x)
	if v.Type != nil {
		variant = x.Clone()
	}
	g.marshal(f, v.Go, jen.Op("&").Id(u.Go).Values(jen.Id("Variant").Op(":").Add(variant)))
}
