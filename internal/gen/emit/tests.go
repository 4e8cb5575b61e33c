package emit

import (
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// definitions writes the table of the types that are definitions, for tests.
func (g *generator) definitions(f *jen.File) {
	if g.Facade {
		g.definedTypes(f)
		return
	}
	value := jen.Func().Params().Any()
	var definitions []jen.Code
	scalars := false
	for _, d := range g.pkg.Decls {
		c := d.Base()
		switch t := (model.Named{Decl: d}); {
		case c.Schema == "":
		case c.Null:
			definitions = append(definitions, g.scalar(c.Schema, model.Nullable{Elem: t}))
			scalars = true
		case model.Scalar(d):
			definitions = append(definitions, g.scalar(c.Schema, t))
			scalars = true
		default:
			definitions = append(definitions, jen.Lit(c.Schema).Op(":").Id("newValue").Types(jen.Id(c.Go)))
		}
	}
	add(f,
		jen.Comment("// definitions makes a new value of each definition that is a type of this package."),
		jen.Var().Id("definitions").Op("=").Map(jen.String()).Add(value).Add(eachOnALine("{}", definitions...)))
	add(f, jen.Func().Id("newValue").Types(jen.Id("T").Any()).Params().Any().
		Add(oneLine(jen.Return(jen.New(jen.Id("T"))))))

	if scalars {
		g.scalars(f)
	}
}

// definedTypes lists the types that are definitions. Their names follow from each other, and no scalar has bounds.
func (g *generator) definedTypes(f *jen.File) {
	var types, open []string
	for _, d := range g.pkg.Decls {
		c := d.Base()
		if enum, ok := d.(*model.Enum); ok && enum.Names() && enum.Open && c.Schema != "" {
			open = append(open, c.Go)
		} else if c.Schema != "" {
			types = append(types, c.Go)
		}
	}
	list := func(names []string) *jen.Statement {
		return jen.Index().Any().Values(
			wrapped(names, func(name string) *jen.Statement { return jen.New(jen.Id(name)) }))
	}
	add(f,
		jen.Comment("// types has a pointer to each definition of the schema, openEnums to enums that allow any name."),
		jen.Var().Id("types").Op("=").Add(list(types)),
		jen.Var().Id("openEnums").Op("=").Add(list(open)))
}

// scalar returns the row of a definition of a type without codec methods.
func (g *generator) scalar(schema string, t model.Type) jen.Code {
	return jen.Lit(schema).Op(":").Id("newScalar").Types(g.goType(t)).
		Call(jen.Lit(strings.Join(typeOptions(t), ",")))
}

// scalars writes the type that makes a codec.Value of a type without codec methods.
func (g *generator) scalars(f *jen.File) {
	const scalar = "scalar[T]"
	value, options := jen.Op("&").Add(x).Dot("value"), x.Clone().Dot("options")
	add(f,
		jen.Comment("// scalar is a value of a type without codec methods."),
		jen.Type().Id("scalar").Types(jen.Id("T").Any()).Add(structOf(jen.Id("value").Id("T"), jen.Id("options").String())))
	add(f, g.encoder(scalar).Add(oneLine(g.codecName("EncodeAs").Call(e, value, options))))
	add(f, g.decoder(scalar).Add(oneLine(g.codecName("DecodeAs").Call(d, value, options))))
	add(f, method(scalar).Id("MarshalJSON").Params().Params(jen.Index().Byte(), jen.Error()).
		Add(oneLine(jen.Return(jen.Qual(jsonPath, "Marshal").Call(x.Clone().Dot("value"))))))
	add(f, unmarshal(scalar, jen.Qual(jsonPath, "Unmarshal").Call(jen.Id("data"), value)))
	add(f, jen.Func().Id("newScalar").Types(jen.Id("T").Any()).Params(jen.Id("options").String()).Func().Params().Any().
		Block(jen.Return(jen.Func().Params().Any().Add(oneLine(
			jen.Return(jen.Op("&").Id(scalar).Values(jen.Id("options").Op(":").Id("options"))))))))
}
