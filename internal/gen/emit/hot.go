package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// hot reports whether the declaration is read and written by code of its own: for the required members of a struct, or
// for the variants of a union that are hot themselves. Package codec does the rest as for other types.
func (g *generator) hot(d model.Decl) bool { return d != nil && slices.Contains(g.Hot, d.Base().Go) }

// hotStruct writes the codec methods of a hot struct.
func (g *generator) hotStruct(f *jen.File, s *model.Struct) {
	var encode, cases []jen.Code
	required := uint64(0)
	for i, field := range s.Fields {
		v := x.Clone().Dot(field.Go)
		write, read := g.hotMember(field, v)
		if read == nil {
			other := g.codecName("EncodeMember").Call(e, x, jen.Lit(i))
			if field.Opt() {
				other = jen.If(jen.Op("!").Add(call(v, "IsZero"))).Block(other)
			} else if field.Type == (model.Meta{}) {
				other = jen.If(v.Clone().Op("!=").Nil()).Block(other)
			}
			encode = append(encode, other)
			continue
		}
		required |= 1 << i
		encode = append(encode, call(e, "Name", jen.Lit(inJSON(field.JSON))), write)
		cases = append(cases, jen.Case(jen.Lit(field.JSON)).Block(call(jen.Id("o"), "Once", jen.Lit(i)), read))
	}
	cases = append(cases, jen.Default().Block(g.codecName("DecodeMember").Call(jen.Op("&").Id("o"), x)))
	add(f, g.encoder(s.Go).Block(slices.Concat(
		[]jen.Code{call(e, "BeginObject")}, encode, []jen.Code{call(e, "EndObject")})...))
	add(f, g.decoder(s.Go).Block(
		jen.Op("*").Add(x).Op("=").Id(s.Go).Values(),
		jen.Id("o").Op(":=").Add(call(d, "Object")),
		jen.For(call(jen.Id("o"), "Next")).Block(jen.Switch(jen.String().Call(call(jen.Id("o"), "Name"))).Block(cases...)),
		g.codecName("Require").Call(jen.Op("&").Id("o"), bitSet(required), x)))
}

// hotMember returns the statements that write and read a required member of a simple kind, or nil for others.
func (g *generator) hotMember(f *model.Field, v *jen.Statement) (write, read jen.Code) {
	if f.Presence != model.Required || f.Feature != nil || f.OnError || f.OnNull || len(typeOptions(f.Type)) > 0 {
		return nil, nil
	}
	if f.Type == anyString {
		return call(e, "Str", v), v.Clone().Op("=").Add(call(d, "Str"))
	}
	named, _ := f.Type.(model.Named)
	switch decl := named.Decl.(type) {
	case *model.Union:
		return call(v, "EncodeJSON", e), call(v, "DecodeJSON", d)
	case *model.Newtype:
		if decl.Type == anyString {
			return call(e, "Str", jen.String().Call(v)), v.Clone().Op("=").Id(decl.Go).Call(call(d, "Intern"))
		}
	}
	return nil, nil
}

// anyString is a string without constraints.
var anyString model.Type = model.Basic{Kind: model.String}

// hotUnion writes the codec methods of a hot union, which are encode and decode for variants that are not hot.
func (g *generator) hotUnion(f *jen.File, u *model.Union, encode, decode jen.Code) {
	var writes, reads []jen.Code
	for _, v := range u.Variants {
		if !v.Tagged || !g.hot(v.Payload) || v.Feature != nil {
			continue
		}
		payload := jen.Id(v.Payload.Base().Go)
		read := g.codecName("New").Types(payload)
		if v.Room != nil {
			read = g.codecName("NewWith").Types(payload, jen.Id(v.Room.Base().Go))
		}
		writes = append(writes, jen.Case(jen.Op("*").Id(v.Go)).Block(g.codecName("EncodeVariant").Call(
			e, jen.Lit(inJSON(u.Tag)), jen.Lit(inJSON(v.Tag)), jen.Parens(jen.Op("*").Add(payload)).Call(jen.Id("v")))))
		reads = append(reads, jen.Case(jen.Lit(v.Tag)).Block(
			x.Clone().Dot("Variant").Op("=").Parens(jen.Op("*").Id(v.Go)).Call(read.Call(d))))
	}
	add(f, g.encoder(u.Go).Block(
		jen.Switch(jen.Id("v").Op(":=").Add(x).Dot("Variant").Assert(jen.Type())).Block(
			append(writes, jen.Default().Block(encode))...)))
	add(f, g.decoder(u.Go).Block(
		jen.List(jen.Id("tag"), jen.Id("_")).Op(":=").Add(call(d, "Tag", jen.Lit(u.Tag))),
		jen.Switch(jen.String().Call(jen.Id("tag"))).Block(append(reads, jen.Default().Block(decode))...)))
}
