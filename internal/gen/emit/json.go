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
		methods = append(methods, marshal(name, g.codecName("Append").Call(jen.Nil(), jen.Op("&").Add(x))),
			unmarshal(name, g.codecName("Unmarshal").Call(jen.Id("data"), x)))
		if _, ok := d.(*model.Union); ok {
			methods = append(methods, valueMethod(name).Id("String").Params().String().
				Add(oneLine(jen.Return(g.codecName("Text").Call(jen.Op("&").Add(x))))))
		}
	}
	var cases []jen.Code
	for _, d := range g.pkg.Decls {
		u, ok := d.(*model.Union)
		if !ok || u.Merged() {
			continue
		}
		had := len(methods)
		for _, v := range g.variants(u) {
			if !v.Self {
				pointer := x
				if v.Type == nil {
					pointer = jen.Op("&").Add(x)
				}
				methods = append(methods, marshal(v.Go, jen.Id("variantJSON").Call(pointer)))
			}
		}
		if len(methods) > had {
			whole := jen.Op("&").Id(u.Go).Values(jen.Id("Variant").Op(":").Id("v"))
			cases = append(cases, jen.Case(jen.Id(u.VariantName)).
				Block(jen.Return(g.codecName("Append").Call(jen.Nil(), whole))))
		}
	}
	if len(methods) > 0 {
		f.Comment("With these methods, encoding/json reads and writes the types as package codec does.")
		f.Line()
		add(f, methods...)
	}
	if len(cases) > 0 {
		cases = append(cases, jen.Default().Block(jen.Panic(jen.Lit("not a variant"))))
		add(f,
			jen.Comment("// variantJSON encodes a variant as its union, so that it does not lose its tag."),
			jen.Func().Id("variantJSON").Params(jen.Id("v").Any()).Params(jen.Index().Byte(), jen.Error()).Block(
				jen.Switch(jen.Id("v").Op(":=").Id("v").Assert(jen.Type())).Block(cases...)))
	}
}

// marshal returns MarshalJSON, which returns encoded.
func marshal(name string, encoded jen.Code) jen.Code {
	return valueMethod(name).Id("MarshalJSON").Params().Params(jen.Index().Byte(), jen.Error()).
		Add(oneLine(jen.Return(encoded)))
}

// unmarshal returns UnmarshalJSON, which returns the error of decoding.
func unmarshal(name string, decoding jen.Code) jen.Code {
	return method(name).Id("UnmarshalJSON").Params(jen.Id("data").Index().Byte()).Error().
		Add(oneLine(jen.Return(decoding)))
}
