// codec_gen.go has what package codec cannot learn from the tags of fields: the variants of each union.

package emit

import (
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/text"
)

func (g *generator) codec(f *jen.File) {
	add(f, source(`// This does not compile with a runtime of another generation, which lacks the constant.
const _ = %`, g.codecName("SupportVersion1")))
	for _, decl := range g.pkg.Decls {
		switch decl := decl.(type) {
		case *model.Struct:
			if g.hot(decl) {
				g.hotStruct(f, decl)
			}
		case *model.Newtype:
			if !model.Scalar(decl) {
				of, options := g.goType(decl.Type), jen.Lit(strings.Join(typeOptions(decl.Type), ","))
				g.coders(f, decl.Go,
					source("%(e, (*%)(x), %)", g.codecName("EncodeAs"), of, options),
					source("%(d, (*%)(x), %)", g.codecName("DecodeAs"), of, options))
			}
		case *model.Union:
			g.unionTable(f, decl)
		}
	}
}

// coders writes EncodeJSON and DecodeJSON, which do what the statements say.
func (g *generator) coders(f *jen.File, name string, encode, decode jen.Code) {
	add(f,
		source("func (x *%) EncodeJSON(e *%) { % }", name, g.codecName("Encoder"), encode),
		source("func (x *%) DecodeJSON(d *%) { % }", name, g.codecName("Decoder"), decode))
}

// fields are those of a composite literal: names, each followed by the value, which is left out if it is nil.
type fields []jen.Code

func (f *fields) set(name string, value jen.Code) {
	*f = append(*f, jen.Id(name).Op(":").Add(value))
}

func (f *fields) setIf(name string, is bool) {
	if is {
		f.set(name, jen.True())
	}
}

func (f *fields) setText(name, value string) {
	if value != "" {
		f.set(name, jen.Lit(value))
	}
}

func (f *fields) setTexts(name string, values []string) {
	if len(values) > 0 {
		f.set(name, texts(values))
	}
}

func texts(values []string) jen.Code {
	return jen.Index().String().ValuesFunc(func(list *jen.Group) {
		for _, v := range values {
			list.Lit(v)
		}
	})
}

// unionTable writes the table of the union's variants, and its methods.
func (g *generator) unionTable(f *jen.File, u *model.Union) {
	var head fields
	head.setText("Of", u.Go)
	head.setText("Tag", u.Tag)
	head.setText("Other", otherTags(u))
	head.setIf("Own", slices.ContainsFunc(u.Variants, func(v *model.Variant) bool { return v.OwnTag }) &&
		otherTags(u) == "")
	head.setIf("Keeps", u.KeepsTag())
	if u.Merged() {
		head.set("Names", texts(u.Names()))
	}
	if u.Unknown != nil {
		head.set("Unknown", nilOf(jen.Id(u.Unknown.Go)))
		head.setTexts("Needs", fits(u.UnknownHas))
	}
	variants, rest := u.Variants, (*model.Variant)(nil)
	if u.Tag == "" {
		variants, rest = told(u)
		var keys []string
		for _, v := range variants {
			if v.Key != "" && firstKind(v) == '{' {
				keys = append(keys, v.Key)
			}
		}
		head.setIf("Objects", u.Objects() && u.Fallback == nil)
		if len(keys) > 1 {
			head.setText("Keys", text.Line(enumerate(keys, "and")))
		}
	}
	var rows []jen.Code
	for _, v := range variants {
		rows = append(rows, jen.Values(g.variantRow(v, v != rest)...))
	}
	head.set("List", jen.Index().Add(g.codecName("Variant")).Add(eachOnALine("{}", rows...)))
	table := "variantsOf" + u.Go
	add(f, source("var % = %", table, g.codecName("Variants").Values(head...)))
	encode := source("%.Encode(e, x, x.Variant)", table)
	decode := source("x.Variant, _ = %.Decode(d, x).(%)", table, u.VariantName)
	if g.hot(u) && !u.Merged() {
		g.hotUnion(f, u, encode, decode)
	} else {
		g.coders(f, u.Go, encode, decode)
	}
}

// otherTags returns the kinds of tags that mean the same as none, as codec.Decoder.Kind returns them.
func otherTags(u *model.Union) string {
	nested := false
	if u.Untagged != nil {
		_, nested = u.Untagged.Payload.(*model.Union)
	}
	switch {
	case u.TagLenient, nested && !u.Open:
		return "n0tf[{"
	case u.TagNull:
		return "n"
	}
	return ""
}

// variantRow returns the fields of a codec.Variant. Some are told by their keys.
func (g *generator) variantRow(v *model.Variant, byKey bool) (row fields) {
	tagged := v.Union.Tag != ""
	row.setText("Tag", v.Tag)
	row.setIf("NoTag", tagged && !v.Tagged)
	row.set("As", nilOf(jen.Id(v.Go)))
	switch {
	case v.Type != nil:
		row.set("By", nilOf(g.goType(v.Type)))
		row.setIf("Value", true)
		row.setText("Options", strings.Join(typeOptions(v.Type), ","))
	case !v.Inline:
		row.set("By", nilOf(jen.Id(v.Payload.Base().Go)))
		_, union := v.Payload.(*model.Union)
		row.setIf("Union", union)
	}
	row.setIf("OwnTag", v.OwnTag)
	if v.Room != nil {
		row.set("Room", nilOf(g.codecName("With").Types(jen.Id(v.Payload.Base().Go), jen.Id(v.Room.Base().Go))))
	}
	if v.Tagged && g.Facade && v.Feature != nil {
		row.set("Off", bitOf(v.Feature))
	}
	if tagged {
		if v.Union.KeepsTag() {
			row.setTexts("Fits", memberKinds(v))
		}
		return row
	}
	row.setText("Kinds", string(runes(v.Kinds())))
	needed := memberKinds(v)
	if byKey {
		row.setText("Key", v.Key)
		row.setText("KeyValue", string(v.KeyValue))
		if len(needed) == 0 && v.Key != "" {
			needed = []string{v.Key, ""}
		}
	}
	row.setTexts("Fits", needed)
	row.setTexts("Drops", v.Drops)
	row.setIf("Fallback", v == v.Union.Fallback)
	return row
}

// nilOf returns a nil pointer to a type.
func nilOf(t *jen.Statement) jen.Code { return jen.Parens(jen.Op("*").Add(t)).Call(jen.Nil()) }

// told returns the variants of a union without a tag in the order in which a decoder looks for them, and the array that
// remains if the first item has the key of no other.
func told(u *model.Union) (variants []*model.Variant, rest *model.Variant) {
	ranked := slices.Clone(u.Variants)
	slices.SortStableFunc(ranked, func(a, b *model.Variant) int { return a.Rank - b.Rank })
	first := map[rune]*model.Variant{}
	remains := func(v *model.Variant) bool {
		switch kind := firstKind(v); kind {
		case '0': // integers come first
			basic, ok := v.Type.(model.Basic)
			return v == first[kind] && (!ok || basic.Kind == model.Float)
		case '[':
			return v == first[kind]
		}
		return v.Key == ""
	}
	var last []*model.Variant
	for _, v := range ranked {
		if kind := firstKind(v); v != u.Fallback && first[kind] == nil {
			first[kind] = v
		}
		if v != u.Fallback && remains(v) {
			last = append(last, v)
		} else {
			variants = append(variants, v)
		}
	}
	return append(variants, last...), first['[']
}

// firstKind returns the first kind of the variant's values, or 0 if there are all.
func firstKind(v *model.Variant) rune { return append(runes(v.Kinds()), 0)[0] }

// runes returns kinds as codec.Decoder.Kind does.
func runes(kinds []string) (out []rune) {
	of := map[string]string{"object": "{", "array": "[", "string": `"`, "boolean": "tf", "integer": "0", "number": "0",
		"null": "n"}
	for _, kind := range kinds {
		for _, r := range of[kind] {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// fits returns members as codec.Decoder.Fits takes them: names, each with the kinds of value that it allows.
func fits(members []model.Member) (out []string) {
	for _, m := range members {
		out = append(out, m.Name, string(runes(m.Kinds)))
	}
	return out
}

// memberKinds returns the required members of a variant or, if it is an array, of its items.
func memberKinds(v *model.Variant) []string {
	var out []model.Member
	payload := v.Payload
	if list, ok := v.Type.(model.Slice); ok {
		if item, ok := list.Elem.(model.Named); ok {
			payload = item.Decl
		}
	}
	if s, ok := payload.(*model.Struct); ok {
		for _, f := range s.Fixed {
			out = append(out, model.Member{Name: f.JSON, Kinds: []string{f.Kind()}})
		}
	}
	for _, f := range model.Fields(payload) {
		if f.Required() {
			out = append(out, model.Member{Name: f.JSON, Kinds: kindsOfMember(f)})
		}
	}
	return fits(out)
}

// kindsOfMember returns the kinds of value that a member allows, or none if it allows all.
func kindsOfMember(f *model.Field) []string {
	kinds := model.Kinds(f.Type)
	if len(kinds) == 0 || f.OnError {
		return nil
	}
	if f.Nullable || f.OnNull {
		kinds = append(kinds, "null")
	}
	return kinds
}
