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
		methods = append(methods,
			source("func (x %) MarshalJSON() ([]byte, error) { return %(nil, &x) }", name, g.codecName("Append")),
			source("func (x *%) UnmarshalJSON(data []byte) error { return %(data, x) }", name, g.codecName("Unmarshal")))
		if _, ok := d.(*model.Union); ok {
			methods = append(methods, source("func (x %) String() string { return %(&x) }", name, g.codecName("Text")))
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
				pointer := jen.Id("x")
				if v.Type == nil {
					pointer = jen.Op("&x")
				}
				methods = append(methods,
					source("func (x %) MarshalJSON() ([]byte, error) { return variantJSON(%) }", v.Go, pointer))
			}
		}
		if len(methods) > had {
			cases = append(cases,
				source("case %: return %(nil, &%{Variant: v})", u.VariantName, g.codecName("Append"), u.Go))
		}
	}
	if len(methods) > 0 {
		f.Comment("With these methods, encoding/json reads and writes the types as package codec does.")
		f.Line()
		add(f, methods...)
	}
	if len(cases) > 0 {
		add(f, source(`// variantJSON encodes a variant as its union, so that it does not lose its tag.
func variantJSON(v any) ([]byte, error) {
	switch v := v.(type) {
	%
	default: panic("not a variant")
	}
}`, cases))
	}
}
