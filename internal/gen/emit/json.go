package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// json writes the methods by which encoding/json reads and writes the types, and those that print unions.
func (g *generator) json(f *jen.File) {
	var methods []jen.Code
	for _, d := range g.pkg.Decls {
		if s, ok := d.(*model.Struct); ok && s.Variant != nil || model.Scalar(d) {
			continue
		}
		name := d.Base().Go
		methods = append(methods, g.marshal(name, jen.Op("&").Add(x)),
			method(name).Id("UnmarshalJSON").Params(jen.Id("data").Index().Byte()).Error().
				Add(oneLine(jen.Return(g.codecName("Unmarshal").Call(jen.Id("data"), x)))))
		if _, ok := d.(*model.Union); ok {
			methods = append(methods, valueMethod(name).Id("String").Params().String().
				Add(oneLine(jen.Return(g.codecName("Text").Call(jen.Op("&").Add(x))))))
		}
	}
	for _, d := range g.pkg.Decls {
		if u, ok := d.(*model.Union); ok && !u.Merged() {
			for _, v := range g.variants(u) {
				methods = append(methods, g.variantJSON(u, v)...)
			}
		}
	}
	if len(methods) > 0 {
		f.Comment("With these methods, encoding/json reads and writes the types as package codec does.")
		f.Line()
		add(f, methods...)
	}
}

// marshal returns MarshalJSON, which encodes the given value.
func (g *generator) marshal(name string, encode jen.Code) jen.Code {
	return valueMethod(name).Id("MarshalJSON").Params().Params(jen.Index().Byte(), jen.Error()).
		Add(oneLine(jen.Return(g.codecName("Append").Call(jen.Nil(), encode))))
}

// variantJSON makes a variant of an unmerged union encode as that union, so that it does not lose its tag.
func (g *generator) variantJSON(u *model.Union, v *model.Variant) []jen.Code {
	if v.Self {
		return nil
	}
	variant := jen.Op("&").Add(x)
	if v.Type != nil {
		variant = x.Clone()
	}
	return []jen.Code{g.marshal(v.Go, jen.Op("&").Id(u.Go).Values(jen.Id("Variant").Op(":").Add(variant)))}
}
