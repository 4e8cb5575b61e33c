// This file owns the part of codec_gen.go that is about unions.

package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/gen/model"
)

func (g *generator) unionCodec(f *jen.File, u *model.Union) {
	g.unionEncoder(f, u)
	body := []jen.Code{jen.Op("*").Add(x).Op("=").Id(u.Go).Values()}
	if !u.Merged() {
		add(f, decodeDoc(), g.decoder(u.Go, "DecodeJSON").Block(append(body, g.decodeVariant(u)...)...))
		return
	}
	rewind := call(d, "Rewind", jen.Id("start"))
	body = append(body,
		jen.Id("start").Op(":=").Add(call(d, "Mark")),
		call(x, "decodeMembers", d),
		rewind)
	for _, field := range u.Fields {
		if field.Flat {
			body = append(body, call(x.Clone().Dot(field.Go), "DecodeJSON", d), rewind)
		}
	}
	add(f, decodeDoc(), g.decoder(u.Go, "DecodeJSON").Block(append(body, call(x, "decodeVariant", d))...))
	add(f,
		jen.Comment("// decodeMembers reads what the variants have in common."),
		g.decoder(u.Go, "decodeMembers").Block(g.decodeObject(u.Fields)...))
	add(f, g.decoder(u.Go, "decodeVariant").Block(g.decodeVariant(u)...))
}

// unionEncoder writes EncodeJSON, and encodeMembers where others write into the same object.
func (g *generator) unionEncoder(f *jen.File, u *model.Union) {
	if !u.Merged() && !u.Nested || !u.Objects() {
		add(f, encodeDoc(), g.encoder(u.Go, "EncodeJSON").Block(g.encodeSwitch(u, g.encodeWhole)))
		return
	}
	g.objectEncoder(f, u.Go)
	params := []jen.Code{jen.Id("e").Op("*").Add(g.codecName("Encoder"))}
	if takesWritten(u) {
		f.Comment("encodeMembers writes the members of x, but those of an unknown variant that were written already.")
		params = append(params, jen.Id("written").Op("...").String())
	}
	body := append(g.encodeFields(u.Fields), g.encodeSwitch(u, g.encodeInto))
	add(f, method(u.Go).Id("encodeMembers").Params(params...).Block(body...))
}

// takesWritten reports whether encodeMembers of u must be told which members are in the object already,
// because an unknown variant may hold them too.
func takesWritten(u *model.Union) bool {
	if !u.Nested {
		return false
	}
	return u.Unknown != nil || slices.ContainsFunc(u.Variants, func(v *model.Variant) bool {
		inner, ok := v.Payload.(*model.Union)
		return ok && takesWritten(inner)
	})
}

// written returns the names that an inner encoder must be told: those of u's own members, and what u was
// told.
func written(u *model.Union, own ...string) []jen.Code {
	var names []jen.Code
	for _, name := range append(own, u.Names()...) {
		names = append(names, jen.Lit(name))
	}
	switch told := jen.Id("written"); {
	case !takesWritten(u):
		return names
	case len(names) == 0:
		return []jen.Code{told.Op("...")}
	default:
		return []jen.Code{jen.Append(append([]jen.Code{told}, names...)...).Op("...")}
	}
}

func (g *generator) encodeSwitch(u *model.Union, arm func(*model.Variant) []jen.Code) jen.Code {
	var cases []jen.Code
	for _, v := range g.variants(u) {
		cases = append(cases, jen.Case(jen.Id(variantType(v))).Block(arm(v)...))
	}
	cases = append(cases, jen.Default().Block(call(e, "Failf", jen.Lit(u.Go+" without a variant"))))
	return jen.Switch(jen.Id("v").Op(":=").Add(x).Dot("Variant").Assert(jen.Type())).Block(cases...)
}

// encodeWhole writes a variant that is a value of its own.
func (g *generator) encodeWhole(v *model.Variant) []jen.Code {
	switch {
	case v == v.Union.Unknown:
		g.usesUnknown = true
		return []jen.Code{jen.Id("encodeUnknown").Call(e, jen.Id("v").Dot("Raw"))}
	case v.Type != nil:
		return append([]jen.Code{g.write(v.Type, jen.Id("v"), true)}, g.checkWritten(v.Type, jen.Id("v"))...)
	}
	return append(append([]jen.Code{call(e, "BeginObject")}, g.encodeInto(v)...), call(e, "EndObject"))
}

// encodeInto writes the members of a variant into the open object.
func (g *generator) encodeInto(v *model.Variant) []jen.Code {
	u := v.Union
	if v == u.Unknown {
		return []jen.Code{call(e, "Members", append([]jen.Code{jen.Id("v").Dot("Raw")}, written(u)...)...)}
	}
	var code []jen.Code
	if v.Tag != "" {
		code = append(code, call(e, "Tag", jen.Lit(u.Tag), jen.Lit(v.Tag)))
	}
	payload := jen.Id("v")
	if !v.Self && !v.Inline {
		payload = jen.Parens(jen.Op("*").Id(v.Payload.Base().Go)).Call(payload)
	}
	if inner, ok := v.Payload.(*model.Union); ok && takesWritten(inner) {
		var tag []string
		if u.Tag != "" {
			tag = []string{u.Tag}
		}
		return append(code, call(payload, "encodeMembers", append([]jen.Code{e}, written(u, tag...)...)...))
	}
	g.usesPayload = true
	return append(code, jen.Id("encodePayload").Call(e, payload))
}

// decodeVariant returns the statements that read the variant of x.
func (g *generator) decodeVariant(u *model.Union) []jen.Code {
	if u.Tag != "" {
		return g.decodeTagged(u)
	}
	return g.decodeUntagged(u)
}

func (g *generator) decodeTagged(u *model.Union) []jen.Code {
	name := "Tag"
	switch {
	case u.TagLenient:
		name = "LenientTag"
	case u.TagNull:
		name = "NullableTag"
	}
	noTag := []jen.Code{call(d, "NoTag", jen.Lit(u.Tag))}
	if u.Untagged != nil {
		noTag = g.decodeInto(u.Untagged)
	}
	var cases []jen.Code
	for _, v := range u.Variants {
		if v.Tag != "" {
			cases = append(cases, jen.Case(jen.Lit(v.Tag)).Block(g.decodeInto(v)...))
		}
	}
	cases = append(cases, jen.Default().Block(
		x.Clone().Dot("Variant").Op("=").Op("&").Id(u.Unknown.Go).Values(
			jen.Id("Tag").Op(":").String().Call(jen.Id("tag")),
			jen.Id("Raw").Op(":").Add(call(d, "Raw")))))
	return []jen.Code{
		jen.List(jen.Id("tag"), jen.Id("ok")).Op(":=").Add(call(d, name, jen.Lit(u.Tag))),
		jen.If(jen.Op("!").Id("ok")).Block(append(noTag, jen.Return())...),
		jen.Switch(jen.String().Call(jen.Id("tag"))).Block(cases...),
	}
}

// decodeInto reads x's variant as v.
func (g *generator) decodeInto(v *model.Variant) []jen.Code {
	variant := x.Clone().Dot("Variant").Op("=")
	switch {
	case v.Type != nil && g.bounded(v.Type):
		code := append([]jen.Code{jen.Id("v").Op(":=").Add(g.read(v.Type, false))}, g.checkRead(v.Type, jen.Id("v"))...)
		return append(code, variant.Id(v.Go).Call(jen.Id("v")))
	case v.Type != nil:
		return []jen.Code{variant.Add(g.readVariant(v))}
	}
	payload := g.codecName("New").Types(jen.Id(v.Payload.Base().Go)).Call(d)
	if v.Room != nil {
		payload = g.codecName("NewWith").Types(jen.Id(v.Payload.Base().Go), jen.Id(v.Room.Base().Go)).Call(d)
	}
	if !v.Self && !v.Inline {
		payload = jen.Parens(jen.Op("*").Id(v.Go)).Call(payload)
	}
	return []jen.Code{variant.Add(payload)}
}

// readVariant returns the expression that reads a variant which is no object.
func (g *generator) readVariant(v *model.Variant) *jen.Statement {
	if readsItself(v.Type) {
		return jen.Id(v.Go).Call(jen.Op("*").Add(g.codecName("New").Types(g.goType(v.Type)).Call(d)))
	}
	return jen.Id(v.Go).Call(g.read(v.Type, false))
}

// decodeUntagged tells the variants apart by the kind of value, and those of one kind by members.
func (g *generator) decodeUntagged(u *model.Union) []jen.Code {
	groups := byKind(u)
	if len(groups) == 1 && u.Variants[0].Type == nil && u.Fallback == nil {
		return g.decodeGroup(u, groups[0])
	}
	var cases []jen.Code
	for _, group := range groups {
		var kinds []jen.Code
		for _, k := range group.kinds {
			kinds = append(kinds, jen.LitRune(k))
		}
		cases = append(cases, jen.Case(kinds...).Block(g.decodeGroup(u, group)...))
	}
	cases = append(cases, jen.Default().Block(g.noVariant(u, "")...))
	choice := jen.Switch(call(d, "Kind")).Block(cases...)
	if u.Fallback == nil {
		return []jen.Code{choice}
	}
	return []jen.Code{
		jen.Id("start").Op(":=").Add(call(d, "Mark")),
		choice,
		jen.If(call(d, "Retry", jen.Id("start"))).Block(g.decodeInto(u.Fallback)...),
	}
}

// noVariant is for a value that is none of the variants which were looked for.
func (g *generator) noVariant(u *model.Union, why string) []jen.Code {
	if u.Fallback != nil {
		return g.decodeInto(u.Fallback)
	}
	return []jen.Code{call(d, "Failf", jen.Lit("no variant of "+u.Go+" fits"+why))}
}

// group is the variants of a union that begin with the same characters.
type group struct {
	kinds    []rune // as codec.Decoder.Kind returns them
	variants []*model.Variant
}

// byKind groups the variants, but the fallback.
func byKind(u *model.Union) []*group {
	var out []*group
	for _, v := range u.Variants {
		if v == u.Fallback {
			continue
		}
		kinds := kindsOf(v.Type)
		var found *group
		for _, g := range out {
			if string(g.kinds) == string(kinds) {
				found = g
			}
		}
		if found == nil {
			found = &group{kinds: kinds}
			out = append(out, found)
		}
		found.variants = append(found.variants, v)
	}
	return out
}

func kindsOf(t model.Type) []rune {
	switch t := t.(type) {
	case nil:
		return []rune{'{'}
	case model.Basic:
		switch t.Kind {
		case model.String:
			return []rune{'"'}
		case model.Bool:
			return []rune{'t', 'f'}
		}
		return []rune{'0'}
	case model.Slice:
		return []rune{'['}
	case model.Map, model.Meta:
		return []rune{'{'}
	case model.Null:
		return []rune{'n'}
	case model.Named:
		switch d := t.Decl.(type) {
		case *model.Enum:
			return kindsOf(d.Type)
		case *model.Newtype:
			return kindsOf(d.Type)
		}
		return []rune{'{'}
	}
	return nil
}

// decodeGroup reads x's variant from a value whose kind is known.
func (g *generator) decodeGroup(u *model.Union, group *group) []jen.Code {
	if len(group.variants) == 1 {
		return g.decodeInto(group.variants[0])
	}
	var cases []jen.Code
	switch group.kinds[0] {
	case '0':
		integer, number := group.variants[0], group.variants[1]
		if basic, ok := integer.Type.(model.Basic); !ok || basic.Kind == model.Float {
			integer, number = number, integer
		}
		return []jen.Code{jen.If(call(d, "Integral")).Block(g.decodeInto(integer)...).Else().Block(g.decodeInto(number)...)}
	case '[':
		first := group.variants[0]
		for _, v := range group.variants[1:] {
			cases = append(cases, jen.Case(call(d, "ItemHas", jen.Lit(v.Key))).Block(g.decodeInto(v)...))
		}
		cases = append(cases, jen.Default().Block(g.decodeInto(first)...))
	default:
		var keys []string
		for _, v := range group.variants {
			keys = append(keys, v.Key)
			cases = append(cases, jen.Case(call(d, "Has", jen.Lit(v.Key))).Block(g.decodeInto(v)...))
		}
		cases = append(cases, jen.Default().Block(g.noVariant(u, ": none of the members "+list(keys)+" is there")...))
	}
	return []jen.Code{jen.Switch().Block(cases...)}
}

// variantHelpers writes the functions that the encoders of unions share, if there are such.
func (g *generator) variantHelpers(f *jen.File) {
	if g.usesPayload {
		g.payloadHelper(f)
	}
	if g.usesUnknown {
		g.unknownHelper(f)
	}
}

func (g *generator) payloadHelper(f *jen.File) {
	add(f,
		jen.Comment("// encodePayload writes the members of a variant."),
		jen.Func().Id("encodePayload").
			Types(jen.Id("T").Any(), jen.Id("P").Interface(jen.Op("*").Id("T"), jen.Id("encodeMembers").Params(jen.Op("*").Add(g.codecName("Encoder"))))).
			Params(jen.Id("e").Op("*").Add(g.codecName("Encoder")), jen.Id("v").Id("P")).
			Block(
				jen.If(jen.Id("v").Op("==").Nil()).Block(
					call(e, "Failf", jen.Lit("a variant that is a nil %T"), jen.Id("v")),
					jen.Return()),
				jen.Id("v").Dot("encodeMembers").Call(e)))
}

func (g *generator) unknownHelper(f *jen.File) {
	add(f,
		jen.Comment("// encodeUnknown writes a variant as it came, which was an object."),
		jen.Func().Id("encodeUnknown").
			Params(jen.Id("e").Op("*").Add(g.codecName("Encoder")), jen.Id("raw").Qual(jsonPath, "RawMessage")).
			Block(
				jen.If(call(g.codecName("NewDecoder").Call(jen.Id("raw")), "Kind").Op("!=").LitRune('{')).Block(
					call(e, "Failf", jen.Lit("an unknown variant must be an object")),
					jen.Return()),
				call(e, "Raw", jen.Id("raw"))))
}
