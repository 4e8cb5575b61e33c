package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

func (g *generator) enums(f *jen.File) {
	for _, d := range g.pkg.Decls {
		if d, ok := d.(*model.Enum); ok {
			g.enum(f, d)
		}
	}
}

func (g *generator) enum(f *jen.File, d *model.Enum) {
	doc := markDecl(g.describeDecl(&d.Common, "is one of a list of values."), &d.Common)
	declare(f, doc, jen.Type().Id(d.Go).Id(d.Type.Go()))

	f.Add(comment([]string{"The known values of " + d.Go + "."})...)
	f.Const().DefsFunc(func(group *jen.Group) {
		for _, v := range d.Values {
			var lines []string
			if v.Doc != "" {
				lines = markdown(stop(v.Doc), 4)
			}
			if v.Deprecated && len(lines) == 0 {
				lines = []string{v.Go + " is a value that peers may still use."}
			}
			if v.Experimental && len(lines) == 0 {
				lines = []string{v.Go + " is a value of " + d.Go + "."}
			}
			commentIn(group, experimental(deprecate(lines, v.Deprecated), v.Experimental, v.Feature, 4))
			group.Id(v.Go).Id(d.Go).Op("=").Add(literal(v.Value))
		}
	})
	f.Line()

	var names []string
	for _, v := range d.Values {
		names = append(names, v.Go)
	}
	known := valueMethod(d.Go).Id("Known").Params().Bool()
	all, length := jen.Return(), 0
	for i, v := range d.Values {
		if i > 0 {
			all.Op("||")
		}
		all.Id("x").Op("==").Id(v.Go)
		length += len("x ==  || ") + len(v.Go)
	}
	if length <= width {
		known.Block(all)
	} else {
		known.Block(
			jen.Switch(jen.Id("x")).Block(
				jen.Case(wrapped(names, jen.Id)).Block(jen.Return(jen.True()))),
			jen.Return(jen.False()))
	}
	others := "newer peers may send others, which are kept"
	switch {
	case d.Open:
		others = "others are allowed too"
	case !d.Names():
		others = "others are refused"
	}
	declare(f, []string{"Known reports whether x is one of the values that the schema lists; " + others + "."}, known)
}

// wrapped returns a list of code made of names, a few items to a line.
func wrapped(names []string, item func(name string) *jen.Statement) *jen.Statement {
	var list []jen.Code
	column := 0
	for i, name := range names {
		code := item(name)
		length := len(code.GoString())
		if column += length + len(", "); column > width && i > 0 {
			code, column = jen.Line().Add(code), length
		}
		list = append(list, code)
	}
	return jen.Custom(jen.Options{Separator: ", "}, list...)
}

// literal returns an enum value in Go.
func literal(v any) *jen.Statement {
	if n, ok := v.(model.Number); ok {
		return verbatim(string(n))
	}
	return jen.Lit(v)
}
