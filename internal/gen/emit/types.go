package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

func (g *generator) types(f *jen.File) {
	for _, d := range g.pkg.Decls {
		switch d := d.(type) {
		case *model.Struct:
			if d.Variant == nil {
				g.structDecl(f, d, g.declDoc(&d.Common, ""))
			}
		case *model.Newtype:
			declare(f, g.declDoc(&d.Common, ""), jen.Type().Id(d.Go).Add(g.goType(d.Type)))
		}
	}
}

// structDecl declares a struct and its methods besides those for JSON.
func (g *generator) structDecl(f *jen.File, s *model.Struct, doc []string) {
	g.structType(f, s.Go, doc, blank(s), s.Fields, g.extra(s)...)
	if s.ZeroTest {
		declare(f, []string{"IsZero reports whether nothing is set, which means the same as leaving x out."},
			source("func (x %) IsZero() bool { return %(&x) }", s.Go, g.codecName("IsZero")))
	}
	g.accessors(f, s.Go, s.Fields)
}

// structType declares a struct with the given fields, between others.
func (g *generator) structType(f *jen.File, name string, doc []string, first []jen.Code, fields []*model.Field,
	more ...jen.Code) {
	body := first
	for _, field := range fields {
		if len(body) > 0 {
			body = append(body, jen.Line())
		}
		body = append(body, g.field(field)...)
	}
	if len(body) > 0 && len(more) > 0 {
		body = append(body, jen.Line())
	}
	body = append(body, more...)
	typ := jen.Struct()
	if len(body) > 0 {
		typ = source("struct {\n%\n}", body)
	}
	declare(f, doc, jen.Type().Id(name).Add(typ))
}

// extra returns the field for members that the schema does not name, if the struct keeps them.
func (g *generator) extra(s *model.Struct) []jen.Code {
	if s.Extra == nil {
		return nil
	}
	text := s.Extra.Go + " holds the members that the schema allows but does not name. They are written after the others."
	options := append([]string{"extra"}, nameOptions("beside", s.Elsewhere())...)
	return append(comment(paragraph(text, 4)),
		jen.Id(s.Extra.Go).Map(jen.String()).Add(g.goType(s.Extra.Elem)).
			Add(untagged(append(options, itemOptions(s.Extra.Elem)...)...)))
}

func (g *generator) field(f *model.Field) []jen.Code {
	const indent = 4
	if f.Flat {
		return []jen.Code{
			comment([]string{f.Go + " is a second choice, whose members are in the same object."})[0],
			jen.Id(f.Go).Add(g.goType(f.Type)).Add(untagged("flat")),
		}
	}
	var lines []string
	if _, meta := f.Type.(model.Meta); !meta && f.Doc != "" { // codec.Meta says the same
		lines = markdown(stop(f.Doc), indent)
	}
	lines = marked(lines, &f.Common, indent)
	omit := f.Presence == model.Tri || f.Presence == model.Plain && !f.Always
	return append(comment(lines), jen.Id(f.Go).Add(g.fieldType(f)).Add(tag(f.JSON, g.memberOptions(f), omit)))
}

// accessors writes the methods of owner that return the defaults of the schema for absent fields.
func (g *generator) accessors(f *jen.File, owner string, fields []*model.Field) {
	for _, field := range fields {
		if field.Accessor == "" {
			continue
		}
		absent := "absent"
		if field.Opt() && field.Nullable {
			absent = "absent or null"
		}
		value := g.value(field.Value)
		body := source(" return x.%.Or(%) ", field.Go, value)
		if !field.Opt() {
			body = source("\nif % {\nreturn %\n}\nreturn x.%\n", zeroOf(jen.Id("x").Dot(field.Go), field), value, field.Go)
		}
		declare(f, paragraph(field.Accessor+" returns "+field.Go+" or, if it is "+absent+", the schema's default, "+
			string(field.Default)+".", 0),
			source("func (x *%) %() % {%}", owner, field.Accessor, g.goType(field.Type), body))
	}
}

// value returns a value as a Go expression.
func (g *generator) value(v *model.Value) *jen.Statement {
	var parts []jen.Code
	switch t := v.Type.(type) {
	case model.Basic:
		return literal(v.Scalar)
	case model.Any:
		return jen.Qual(jsonPath, "RawMessage").Call(jen.Lit(v.Scalar))
	case model.Null:
		return source("struct{}{}")
	case model.Nullable:
		return g.optValue(v.Of[0])
	case model.Pointer:
		return source("&%", g.value(v.Of[0]))
	case model.Named:
		switch d := t.Decl.(type) {
		case *model.Enum:
			if i := slices.IndexFunc(d.Values, func(o *model.EnumValue) bool { return o.Value == v.Scalar }); i >= 0 {
				return jen.Id(d.Values[i].Go)
			}
			return source("%(%)", d.Go, literal(v.Scalar))
		case *model.Newtype:
			return source("%(%)", d.Go, g.value(v.Of[0]))
		case *model.Struct:
			for _, f := range d.Fields {
				if i := slices.Index(v.Names, f.JSON); i >= 0 && f.Opt() {
					parts = append(parts, source("%: %", f.Go, g.optValue(v.Of[i])))
				} else if i >= 0 {
					parts = append(parts, source("%: %", f.Go, g.value(v.Of[i])))
				}
			}
		}
	default:
		for i, item := range v.Of {
			part := g.value(item)
			if v.Names != nil {
				part = source("%: %", jen.Lit(v.Names[i]), part)
			}
			parts = append(parts, part)
		}
	}
	return g.goType(v.Type).Values(jen.List(parts...))
}

// optValue returns a value as an Opt of its type.
func (g *generator) optValue(v *model.Value) *jen.Statement {
	if v.Null {
		return source("%[%]()", g.codecName("Null"), g.goType(v.Type))
	}
	return source("%[%](%)", g.codecName("Some"), g.goType(v.Type), g.value(v))
}
