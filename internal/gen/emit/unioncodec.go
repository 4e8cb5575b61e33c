package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

func (g *generator) unionCodec(f *jen.File, u *model.Union) {
	if g.tabledUnion(u) {
		g.unionTable(f, u)
		return
	}
	g.unionEncoder(f, u)
	body := []jen.Code{jen.Op("*").Add(x).Op("=").Id(u.Go).Values()}
	if !u.Merged() {
		add(f, g.decoder(u.Go, "DecodeJSON").Block(append(body, g.decodeVariant(u)...)...))
		return
	}
	rewind := call(d, "Rewind", jen.Id("start"))
	members, tabled := call(x, "decodeMembers", d), g.tabledFields(u.Fields)
	if tabled {
		members = g.codecName("DecodeMembers").Call(d, x)
	}
	body = append(body, jen.Id("start").Op(":=").Add(call(d, "Mark")), members, rewind)
	for _, field := range u.Fields {
		if field.Flat {
			body = append(body, call(x.Clone().Dot(field.Go), "DecodeJSON", d), rewind)
		}
	}
	add(f, g.decoder(u.Go, "DecodeJSON").Block(append(body, call(x, "decodeVariant", d))...))
	if !tabled {
		add(f,
			jen.Comment("// decodeMembers reads the members that all variants share."),
			g.decoder(u.Go, "decodeMembers").Block(g.decodeObject(u.Fields, nil)...))
	}
	add(f, g.decoder(u.Go, "decodeVariant").Block(g.decodeVariant(u)...))
}

// unionEncoder writes EncodeJSON.
func (g *generator) unionEncoder(f *jen.File, u *model.Union) {
	if !u.Merged() {
		add(f, g.encoder(u.Go, "EncodeJSON").Block(g.encodeSwitch(u, "Failf", g.encodeWhole)))
		return
	}
	fields := g.encodeFields(u.Fields)
	if g.tabledFields(u.Fields) {
		fields = []jen.Code{g.codecName("EncodeMembers").Call(e, x)}
	}
	members := append(fields, g.encodeSwitch(u, "FailObject", g.encodeInto))
	add(f, g.encoder(u.Go, "EncodeJSON").Block(object(members...)...))
}

// encodeSwitch writes the variant of x by arm; fail is the method to call if there is none.
func (g *generator) encodeSwitch(u *model.Union, fail string, arm func(*model.Variant) []jen.Code) jen.Code {
	var cases []jen.Code
	for _, v := range g.variants(u) {
		code := arm(v)
		if v == u.Unknown { // the code that writes the others refuses nil
			missing := call(e, fail, jen.Lit("a variant that is a nil %T"), jen.Id("v"))
			code = append([]jen.Code{jen.If(jen.Id("v").Op("==").Nil()).Block(missing, jen.Break())}, code...)
		}
		cases = append(cases, jen.Case(jen.Id(variantType(v))).Block(code...))
	}
	cases = append(cases, jen.Default().Block(call(e, fail, jen.Lit(u.Go+" without a variant"))))
	return jen.Switch(jen.Id("v").Op(":=").Add(x).Dot("Variant").Assert(jen.Type())).Block(cases...)
}

// encodeWhole writes a variant that is not part of an object.
func (g *generator) encodeWhole(v *model.Variant) []jen.Code {
	switch {
	case v == v.Union.Unknown:
		return append(g.checkUnknown(v.Union), call(e, "RawObject", jen.Id("v").Dot("Raw")))
	case v.Type != nil:
		if enumOf(v.Type) != nil { // the type of the variant has no Known method
			value := g.goType(v.Type).Call(jen.Id("v"))
			return append([]jen.Code{g.write(v.Type, value, false)}, g.checkWritten(v.Type, value)...)
		}
		return append([]jen.Code{g.write(v.Type, jen.Id("v"), true)}, g.checkWritten(v.Type, jen.Id("v"))...)
	}
	if _, ok := v.Payload.(*model.Struct); !ok || v.Inline {
		return object(g.encodeInto(v)...)
	}
	switch {
	case v == v.Union.Untagged && v.Union.KeepsTag():
		return []jen.Code{g.codecName("EncodeDefault").
			Call(e, written(v.Union.Tag), x.Clone().Dot(v.Union.KeptTag), payload(v))}
	case !v.Tagged || v.OwnTag:
		return []jen.Code{g.codecName("EncodePayload").Call(e, payload(v))}
	}
	return []jen.Code{g.codecName("EncodeVariant").Call(e, written(v.Union.Tag), written(v.Tag), payload(v))}
}

// payload returns the variant v as its payload's type.
func payload(v *model.Variant) *jen.Statement {
	if v.Self {
		return jen.Id("v")
	}
	return jen.Parens(jen.Op("*").Id(v.Payload.Base().Go)).Call(jen.Id("v"))
}

// checkUnknown checks that an unknown variant is written with its tag, that it is not a variant that this package
// knows, and that it has the members that unknown tags require.
func (g *generator) checkUnknown(u *model.Union) []jen.Code {
	decode := "DecodeJSON"
	if u.Merged() {
		decode = "decodeVariant" // the other members are written from the fields
	}
	check := func(read *jen.Statement) *jen.Statement {
		return call(e, "CheckTag", jen.Lit(u.Tag), jen.Id("v").Dot("Tag"), jen.Id("v").Dot("Raw"), read.Dot(decode))
	}
	if len(u.UnknownHas) == 0 {
		return []jen.Code{check(jen.New(jen.Id(u.Go)))}
	}
	members := []jen.Code{jen.Id("v").Dot("Raw")}
	for _, m := range u.UnknownHas {
		members = append(members, jen.Lit(m.Name), kinds(string(runes(m.Kinds))))
	}
	return []jen.Code{
		jen.Var().Id("read").Id(u.Go),
		check(jen.Id("read")),
		jen.If(jen.List(jen.Id("_"), jen.Id("unknown")).Op(":=").Id("read").Dot("Variant").
			Assert(jen.Op("*").Id(u.Unknown.Go)), jen.Id("unknown")).Block(
			call(e, "CheckMembers", members...)),
	}
}

// encodeInto writes the members of a variant into the open object.
func (g *generator) encodeInto(v *model.Variant) []jen.Code {
	u := v.Union
	if v == u.Unknown {
		return append(g.checkUnknown(u),
			call(e, "Members", append([]jen.Code{jen.Id("v").Dot("Raw")}, standing(u.Names())...)...))
	}
	var code []jen.Code
	var names []string
	if v.Tagged && !v.OwnTag {
		code = append(code, call(e, "Tag", written(u.Tag), written(v.Tag)))
		names = append(names, u.Tag)
	}
	if v == u.Untagged && u.KeepsTag() {
		code = append(code, g.codecName("EncodeOpt").
			Call(e, written(u.Tag), x.Clone().Dot(u.KeptTag), g.codecMethod("Encoder", "Str")))
	}
	if v.Inline {
		return append(code, g.encodeMembers(v.Payload.(*model.Struct), jen.Id("v")))
	}
	args := []jen.Code{e, payload(v)}
	if _, ok := v.Payload.(*model.Union); ok {
		args = append(args, standing(append(names, u.Names()...))...)
	}
	return append(code, g.codecName("Embed").Call(args...))
}

// standing returns the names of members that the object already has, for a variant that may have them too.
func standing(names []string) []jen.Code {
	var out []jen.Code
	for _, name := range names {
		out = append(out, jen.Lit(name))
	}
	return out
}

// decodeVariant returns the statements that read the variant of x.
func (g *generator) decodeVariant(u *model.Union) []jen.Code {
	if u.Tag != "" {
		return g.decodeTagged(u)
	}
	return g.decodeUntagged(u)
}

func (g *generator) decodeTagged(u *model.Union) []jen.Code {
	if u.KeepsTag() {
		return g.decodeOrDefault(u)
	}
	name := "Tag"
	switch {
	case u.TagLenient, u.Untagged != nil && !u.Open && nested(u.Untagged):
		name = "LenientTag"
	case u.TagNull:
		name = "NullableTag"
	case slices.ContainsFunc(u.Variants, func(v *model.Variant) bool { return v.OwnTag }):
		name = "OwnTag"
	}
	noTag := []jen.Code{call(d, "NoTag", jen.Lit(u.Tag))}
	if u.Untagged != nil {
		noTag = g.decodeInto(u.Untagged)
	}
	var cases []jen.Code
	for _, v := range u.Variants {
		if v.Tagged {
			cases = append(cases, jen.Case(jen.Lit(v.Tag)).Block(g.decodeNamed(v)...))
		}
	}
	cases = append(cases, jen.Default().Block(g.decodeUnknown(u)...))
	return []jen.Code{
		jen.List(jen.Id("tag"), jen.Id("ok")).Op(":=").Add(call(d, name, jen.Lit(u.Tag))),
		jen.If(jen.Op("!").Id("ok")).Block(append(noTag, jen.Return())...),
		jen.Switch(jen.String().Call(jen.Id("tag"))).Block(cases...),
	}
}

// nested reports whether the variant is itself a union without a tag.
func nested(v *model.Variant) bool {
	_, ok := v.Payload.(*model.Union)
	return ok
}

// decodeOrDefault returns the statements that read the variant of x if one variant is the default: any value with its
// members, whatever the tag, unless it has the tag and the members of another variant.
func (g *generator) decodeOrDefault(u *model.Union) []jen.Code {
	fits := jen.Id("fits")
	var cases []jen.Code
	for _, v := range u.Variants {
		if v.Tagged {
			cases = append(cases, jen.Case(jen.Lit(v.Tag)).Block(
				jen.If(jen.Op("!").Add(fits).Op("||").Add(call(d, "Fits", memberKinds(v)...))).
					Block(append(g.decodeNamed(v), jen.Return())...)))
		}
	}
	cases = append(cases, jen.Default().Block(
		jen.If(jen.Op("!").Add(fits)).Block(append(g.decodeUnknown(u), jen.Return())...)))
	return append([]jen.Code{
		fits.Clone().Op(":=").Add(call(d, "Fits", memberKinds(u.Untagged)...)),
		jen.List(jen.Id("tag"), jen.Id("ok")).Op(":=").Add(call(d, "DefaultTag", jen.Lit(u.Tag), fits)),
		jen.If(jen.Id("ok")).Block(
			jen.Switch(jen.String().Call(jen.Id("tag"))).Block(cases...),
			x.Clone().Dot(u.KeptTag).Op("=").Add(g.codecName("Some")).Call(jen.String().Call(jen.Id("tag")))),
	}, g.decodeInto(u.Untagged)...)
}

// decodeNamed reads x's variant as v, which the tag names. A value that v does not fit is unknown if v is of a feature
// that is off.
func (g *generator) decodeNamed(v *model.Variant) []jen.Code {
	code := g.decodeInto(v)
	if !g.canBeOff(v.Feature) {
		return code
	}
	return append(append([]jen.Code{markAt()}, code...),
		jen.If(call(d, "RetryOff", jen.Id("at"), bitOf(v.Feature))).Block(g.decodeUnknown(v.Union)...))
}

func (g *generator) decodeUnknown(u *model.Union) []jen.Code {
	return []jen.Code{x.Clone().Dot("Variant").Op("=").Op("&").Id(u.Unknown.Go).Values(
		jen.Id("Tag").Op(":").String().Call(jen.Id("tag")),
		jen.Id("Raw").Op(":").Add(call(d, "Raw")))}
}

// memberKinds returns the names of the required members of a variant or, if it is an array, of its items, each with the
// kinds of value that it allows.
func memberKinds(v *model.Variant) []jen.Code {
	var out []jen.Code
	payload := v.Payload
	if list, ok := v.Type.(model.Slice); ok {
		if item, ok := list.Elem.(model.Named); ok {
			payload = item.Decl
		}
	}
	if s, ok := payload.(*model.Struct); ok {
		for _, f := range s.Fixed {
			out = append(out, jen.Lit(f.JSON), kinds(string(runes([]string{f.Kind()}))))
		}
	}
	for _, f := range model.Fields(payload) {
		if f.Required() {
			out = append(out, jen.Lit(f.JSON), kinds(kindsOfMember(f)))
		}
	}
	return out
}

// kindsOfMember returns the kinds of value that a member allows, or "" if it allows all.
func kindsOfMember(f *model.Field) string {
	kinds := string(runes(model.Kinds(f.Type)))
	if kinds == "" || f.OnError {
		return ""
	}
	if f.Nullable || f.OnNull {
		kinds += "n"
	}
	return kinds
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
	case v.Inline:
		return []jen.Code{
			jen.Id("v").Op(":=").New(jen.Id(v.Go)),
			g.decodeMembers(v.Payload.(*model.Struct), jen.Id("v")),
			variant.Id("v"),
		}
	}
	payload := g.codecName("New").Types(jen.Id(v.Payload.Base().Go)).Call(d)
	if v.Room != nil {
		payload = g.codecName("NewWith").Types(jen.Id(v.Payload.Base().Go), jen.Id(v.Room.Base().Go)).Call(d)
	}
	if !v.Self {
		payload = jen.Parens(jen.Op("*").Id(v.Go)).Call(payload)
	}
	return []jen.Code{variant.Add(payload)}
}

// readVariant returns the expression that reads a variant which is not an object.
func (g *generator) readVariant(v *model.Variant) *jen.Statement {
	if readsItself(v.Type) {
		return jen.Id(v.Go).Call(jen.Op("*").Add(g.codecName("New").Types(g.goType(v.Type)).Call(d)))
	}
	return jen.Id(v.Go).Call(g.read(v.Type, false))
}

// decodeUntagged distinguishes variants by the kind of value, and those of one kind by their members.
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

// noVariant returns the statements for a value that matches no variant.
func (g *generator) noVariant(u *model.Union, why string) []jen.Code {
	if u.Fallback != nil {
		return g.decodeInto(u.Fallback)
	}
	return []jen.Code{call(d, "Failf", message("no variant of "+u.Go+" fits", why))}
}

// group has the variants of a union whose values begin with the same characters.
type group struct {
	kinds    []rune // as codec.Decoder.Kind returns them
	variants []*model.Variant
}

// byKind groups the variants without the fallback.
func byKind(u *model.Union) []*group {
	var out []*group
	for _, v := range u.Variants {
		if v == u.Fallback {
			continue
		}
		kinds := runes(v.Kinds())
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
	for _, g := range out {
		slices.SortStableFunc(g.variants, func(a, b *model.Variant) int { return a.Rank - b.Rank })
	}
	return out
}

// runes returns kinds as codec.Decoder.Kind does.
func runes(kinds []string) (out []rune) {
	for _, kind := range kinds {
		for _, r := range map[string]string{"object": "{", "array": "[", "string": `"`, "boolean": "tf", "integer": "0", "number": "0", "null": "n"}[kind] {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// drops returns the statements that report members of other variants, which v cannot hold.
func drops(v *model.Variant) []jen.Code {
	if len(v.Drops) == 0 {
		return nil
	}
	var names []jen.Code
	for _, name := range v.Drops {
		names = append(names, jen.Lit(name))
	}
	return []jen.Code{call(d, "Drops", names...)}
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
	case '[': // the first item chooses, but may have the keys of several variants
		first := group.variants[0]
		out := []jen.Code{jen.Id("at").Op(":=").Add(call(d, "Mark")), nil}
		for _, v := range append(group.variants[1:len(group.variants):len(group.variants)], first) {
			if v != first {
				cases = append(cases, jen.Case(call(d, "ItemHas", jen.Lit(v.Key))).Block(g.decodeInto(v)...))
			}
			out = append(out, jen.If(call(d, "RetryFitting", append([]jen.Code{jen.Id("at")}, memberKinds(v)...)...)).
				Block(g.decodeInto(v)...))
		}
		out[1] = jen.Switch().Block(append(cases, jen.Default().Block(g.decodeInto(first)...))...)
		return out
	default:
		var keys []string
		var last *model.Variant
		for _, v := range group.variants {
			if v.Key == "" {
				last = v
				continue
			}
			keys = append(keys, v.Key)
			test := call(d, "Has", jen.Lit(v.Key))
			if v.KeyValue != nil {
				test = call(d, "HasValue", jen.Lit(v.Key), jen.Lit(string(v.KeyValue)))
			}
			cases = append(cases, jen.Case(test).Block(append(drops(v), g.decodeInto(v)...)...))
		}
		others := group.variants[1:] // a value with the keys of several variants may match only a later one
		if last != nil {             // it also reads values with the key of another variant that do not match that
			cases = append(cases, jen.Default().Block(append(drops(last), g.decodeInto(last)...)...))
			others = slices.DeleteFunc(slices.Clone(group.variants), func(v *model.Variant) bool { return v.Key == "" })[1:]
			others = append(others, last)
		} else {
			cases = append(cases, jen.Default().Block(g.noVariant(u, ": it has none of the members "+enumerate(keys, "and"))...))
		}
		out := []jen.Code{jen.Id("at").Op(":=").Add(call(d, "Mark")), jen.Switch().Block(cases...)}
		for _, v := range others {
			fits := memberKinds(v)
			if len(fits) == 0 && v != last {
				fits = []jen.Code{jen.Lit(v.Key), kinds("")}
			}
			retry := call(d, "RetryFitting", append([]jen.Code{jen.Id("at")}, fits...)...)
			out = append(out, jen.If(retry).Block(append(drops(v), g.decodeInto(v)...)...))
		}
		return out
	}
}
