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
		write, read := g.hotMember(field)
		if read == nil {
			other := source("%(e, x, %)", g.codecName("EncodeMember"), jen.Lit(i))
			if field.Opt() {
				other = source("if !x.%.IsZero() {\n%\n}", field.Go, other)
			} else if field.Type == (model.Meta{}) {
				other = source("if x.% != nil {\n%\n}", field.Go, other)
			}
			encode = append(encode, other)
			continue
		}
		required |= 1 << i
		encode = append(encode, source("e.Name(%)", jen.Lit(inJSON(field.JSON))), write)
		cases = append(cases, source("case %:\no.Once(%)\n%", jen.Lit(field.JSON), jen.Lit(i), read))
	}
	add(f, source(`func (x *%) EncodeJSON(e *%) {
	e.BeginObject()
	%
	e.EndObject()
}

func (x *%) DecodeJSON(d *%) {
	*x = %{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		%
		default: %(&o, x)
		}
	}
	%(&o, %, x)
}`, s.Go, g.codecName("Encoder"), encode, s.Go, g.codecName("Decoder"), s.Go, cases, g.codecName("DecodeMember"),
		g.codecName("Require"), bitSet(required)))
}

// hotMember returns the statements that write and read a required member of a simple kind, or nil for others.
func (g *generator) hotMember(f *model.Field) (write, read jen.Code) {
	if f.Presence != model.Required || f.Feature != nil || f.OnError || f.OnNull || len(typeOptions(f.Type)) > 0 {
		return nil, nil
	}
	if f.Type == anyString {
		return source("e.Str(x.%)", f.Go), source("x.% = d.Str()", f.Go)
	}
	named, _ := f.Type.(model.Named)
	switch decl := named.Decl.(type) {
	case *model.Union:
		return source("x.%.EncodeJSON(e)", f.Go), source("x.%.DecodeJSON(d)", f.Go)
	case *model.Newtype:
		if decl.Type == anyString {
			return source("e.Str(string(x.%))", f.Go), source("x.% = %(d.Intern())", f.Go, decl.Go)
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
		writes = append(writes, source("case *%: %(e, %, %, (*%)(v))",
			v.Go, g.codecName("EncodeVariant"), jen.Lit(inJSON(u.Tag)), jen.Lit(inJSON(v.Tag)), payload))
		reads = append(reads, source("case %: x.Variant = (*%)(%(d))", jen.Lit(v.Tag), v.Go, read))
	}
	add(f, source(`func (x *%) EncodeJSON(e *%) {
	switch v := x.Variant.(type) {
	%
	default: %
	}
}

func (x *%) DecodeJSON(d *%) {
	tag, _ := d.Tag(%)
	switch string(tag) {
	%
	default: %
	}
}`, u.Go, g.codecName("Encoder"), writes, encode, u.Go, g.codecName("Decoder"), jen.Lit(u.Tag), reads, decode))
}
