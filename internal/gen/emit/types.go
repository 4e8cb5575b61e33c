package emit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

func (g *generator) types(f *jen.File) {
	for _, d := range g.pkg.Decls {
		switch d := d.(type) {
		case *model.Struct:
			if d.Variant == nil {
				g.structDecl(f, d, g.declDoc(&d.Common))
			}
		case *model.Newtype:
			declare(f, g.declDoc(&d.Common), jen.Type().Id(d.Go).Add(g.goType(d.Type)))
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
		typ = structOf(body...)
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
	lines = experimental(deprecate(lines, f.Deprecated), f.Experimental, f.Feature, indent)
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
		value := g.value(field.Type, field.Default)
		body := source(" return x.%.Or(%) ", field.Go, value)
		if !field.Opt() {
			body = source("\nif % {\nreturn %\n}\nreturn x.%\n", zeroOf(jen.Id("x").Dot(field.Go), field), value, field.Go)
		}
		declare(f, paragraph(field.Accessor+" returns "+field.Go+" or, if it is "+absent+", the schema's default, "+
			string(field.Default)+".", 0),
			source("func (x *%) %() % {%}", owner, field.Accessor, g.goType(field.Type), body))
	}
}

// value returns a JSON value as a Go expression of a type. The model was checked to have only such values.
func (g *generator) value(t model.Type, raw json.RawMessage) *jen.Statement {
	switch t := t.(type) {
	case model.Basic:
		v, err := model.ScalarOf(raw, t)
		if err != nil {
			panic(err)
		}
		return literal(v)
	case model.Any:
		return jen.Qual(jsonPath, "RawMessage").Call(jen.Lit(string(raw)))
	case model.Null:
		return jen.Struct().Values()
	case model.Nullable:
		if string(raw) == "null" {
			return g.codecName("Null").Types(g.goType(t.Elem)).Call()
		}
		return g.codecName("Some").Types(g.goType(t.Elem)).Call(g.value(t.Elem, raw))
	case model.Pointer:
		return jen.Op("&").Add(g.value(t.Elem, raw))
	case model.Named:
		switch d := t.Decl.(type) {
		case *model.Enum:
			v, err := model.ScalarOf(raw, d.Type)
			if err != nil {
				panic(err)
			}
			for _, o := range d.Values {
				if o.Value == v {
					return jen.Id(o.Go)
				}
			}
			return jen.Id(d.Go).Call(literal(v))
		case *model.Newtype:
			return jen.Id(d.Go).Call(g.value(d.Type, raw))
		case *model.Struct:
			return g.structValue(d, raw)
		}
	case model.Slice:
		var items []json.RawMessage
		mustRead(raw, &items)
		return g.goType(t).Values(jen.ListFunc(func(list *jen.Group) {
			for _, item := range items {
				list.Add(g.value(t.Elem, item))
			}
		}))
	case model.Map, model.Meta:
		return g.mapValue(t, raw)
	}
	panic(fmt.Sprintf("no value of a %T", t))
}

func (g *generator) mapValue(t model.Type, raw json.RawMessage) *jen.Statement {
	var elem model.Type = model.Any{}
	if m, ok := t.(model.Map); ok {
		elem = m.Elem
	}
	var members map[string]json.RawMessage
	mustRead(raw, &members)
	return g.goType(t).Values(jen.ListFunc(func(list *jen.Group) {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			list.Lit(name).Op(":").Add(g.value(elem, members[name]))
		}
	}))
}

func (g *generator) structValue(d *model.Struct, raw json.RawMessage) *jen.Statement {
	var members map[string]json.RawMessage
	mustRead(raw, &members)
	return jen.Id(d.Go).Values(jen.ListFunc(func(list *jen.Group) {
		for _, f := range d.Fields {
			member, ok := members[f.JSON]
			if !ok {
				continue
			}
			t := f.Type
			if f.Opt() {
				t = model.Nullable{Elem: t}
			}
			list.Id(f.Go).Op(":").Add(g.value(t, member))
		}
	}))
}
