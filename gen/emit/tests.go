// This file owns definitions_gen_test.go: what tests of a generated package look types up in.

package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/gen/model"
)

func (g *generator) definitions(f *jen.File) {
	value := jen.Func().Params().Add(g.codecName("Value"))
	rows := func(rows []jen.Code) *jen.Statement {
		if len(rows) == 0 {
			return jen.Values()
		}
		return jen.Custom(jen.Options{Open: "{\n", Close: ",\n}", Separator: ",\n"}, rows...)
	}

	var definitions []jen.Code
	for _, d := range g.pkg.Decls {
		if c := d.Base(); c.Schema != "" {
			definitions = append(definitions, jen.Lit(c.Schema).Op(":").Id("newValue").Types(jen.Id(c.Go)))
		}
	}
	add(f,
		jen.Comment("// definitions makes a new value of each definition that is a type of this package."),
		jen.Var().Id("definitions").Op("=").Map(jen.String()).Add(value).Add(rows(definitions)))
	add(f,
		jen.Func().Id("newValue").Types(
			jen.Id("T").Any(),
			jen.Id("P").Interface(jen.Op("*").Id("T"), g.codecName("Value")),
		).Params().Add(g.codecName("Value")).Add(oneLine(jen.Return(jen.Id("P").Call(jen.New(jen.Id("T")))))))

	var methods []jen.Code
	for _, m := range g.pkg.Methods {
		methods = append(methods, jen.Values(jen.Id(m.Const), jen.Lit(string(m.Side)), jen.Lit(m.Params.Base().Schema), jen.Lit(resultName(m))))
	}
	add(f,
		jen.Comment("// methods lists the methods, with the definitions of their parameters and results."),
		jen.Var().Id("methods").Op("=").Index().Struct(jen.List(jen.Id("name"), jen.Id("side"), jen.Id("params"), jen.Id("result")).String()).Add(rows(methods)))
}

func resultName(m *model.Method) string {
	if m.Request() {
		return m.Result.Base().Schema
	}
	return ""
}
