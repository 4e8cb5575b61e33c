// This file owns enums_gen.go: named types with known values.

package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/gen/model"
)

func (g *generator) enums(f *jen.File) {
	for _, d := range g.own() {
		if d, ok := d.(*model.Enum); ok {
			g.enum(f, d)
		}
	}
}

func (g *generator) enum(f *jen.File, d *model.Enum) {
	more := []string{"Newer peers may send values that are not listed here; they are kept, see Known."}
	if d.Open {
		more = []string{"Other values than the ones listed here are allowed; see Known."}
	}
	doc := beforeLinks(g.declDoc(&d.Common, "is one of a list of values."), more...)
	add(f, append(comment(doc), jen.Type().Id(d.Go).Id(basicName(d.Type)))...)

	f.Comment("The known values of " + d.Go + ".")
	f.Const().DefsFunc(func(group *jen.Group) {
		for _, v := range d.Values {
			if v.Doc != "" {
				for _, line := range comment(markdown(stop(v.Doc), 4)) {
					group.Add(line)
				}
			}
			group.Id(v.Go).Id(d.Go).Op("=").Lit(literal(v.Value))
		}
	})
	f.Line()

	names := make([]jen.Code, len(d.Values))
	for i, v := range d.Values {
		names[i] = jen.Id(v.Go)
	}
	known := valueMethod(d.Go).Id("Known").Params().Bool()
	if len(names) == 1 {
		known.Add(oneLine(jen.Return(jen.Id("x").Op("==").Add(names[0]))))
	} else {
		known.Block(
			jen.Switch(jen.Id("x")).Block(
				jen.Case(jen.Custom(jen.Options{Separator: ",\n"}, names...)).Block(jen.Return(jen.True()))),
			jen.Return(jen.False()))
	}
	add(f, jen.Comment("// Known reports whether x is one of the values that the schema lists."), known)
}

// literal returns an enum value as jennifer writes it best.
func literal(v any) any {
	if i, ok := v.(int64); ok {
		return int(i)
	}
	return v
}
