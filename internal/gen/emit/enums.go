package emit

import (
	"strings"

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
	declare(f, g.declDoc(&d.Common, "is one of a list of values."), source("type % %", d.Go, d.Type.Go()))

	var names []string
	var values, each []jen.Code
	for _, v := range d.Values {
		var lines []string
		switch {
		case strings.TrimSpace(v.Doc) != "":
			lines = markdown(stop(v.Doc), 4)
		case v.Deprecated:
			lines = []string{v.Go + " is a value that peers may still use."}
		case v.Experimental:
			lines = []string{v.Go + " is a value of " + d.Go + "."}
		}
		values = append(values, comment(marked(lines, &v.Common, 4))...)
		values = append(values, source("% % = %", v.Go, d.Go, literal(v.Value)))
		names, each = append(names, v.Go), append(each, source("x == %", v.Go))
	}
	declare(f, []string{"The known values of " + d.Go + "."}, source("const (\n%\n)\n", values))
	known := source("return %", jen.Custom(jen.Options{Separator: " || "}, each...))
	if len(strings.Join(names, "x ==  || "))+len("x ==  || ") > width {
		known = source("switch x {\ncase %:\nreturn true\n}\nreturn false", wrapped(names, jen.Id))
	}
	others := "newer peers may send others, which are kept"
	switch {
	case d.Open:
		others = "others are allowed too"
	case !d.Names():
		others = "others are refused"
	}
	declare(f, []string{"Known reports whether x is one of the values that the schema lists; " + others + "."},
		source("func (x %) Known() bool {\n%\n}", d.Go, known))
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
