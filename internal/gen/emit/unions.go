package emit

import (
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

func (g *generator) unions(f *jen.File) {
	for _, d := range g.pkg.Decls {
		if d, ok := d.(*model.Union); ok {
			g.union(f, d)
		}
	}
}

func (g *generator) union(f *jen.File, u *model.Union) {
	doc := beforeLinks(g.describeDecl(&u.Common, "is a choice between variants."), g.howTold(u)...)
	doc = markDecl(doc, &u.Common)
	more := []jen.Code{
		jen.Comment("// Variant is what this is one of; it must not be nil."),
		jen.Id("Variant").Id(u.VariantName).Add(untagged()),
	}
	if u.KeepsTag() {
		text := u.KeptTag + " is the member " + u.Tag + " beside " + article(u.Untagged.Go) + " [" + u.Untagged.Go + "], which needs" +
			" none: a value that the schema does not know, or whose variant this is not. It is written as it came, and beside other" +
			" variants it means nothing."
		more = append(more, jen.Line())
		more = append(more, comment(wrap(text, "", "", width-3-4))...)
		more = append(more, jen.Id(u.KeptTag).Add(g.codecName("Opt")).Types(jen.String()).Add(untagged()))
	}
	g.structType(f, u.Go, doc, u.Fields, more...)
	g.accessors(f, u.Go, u.Fields)

	var names []string
	for _, v := range g.variants(u) {
		names = append(names, variantType(v))
	}
	add(f, append(
		comment(experimental(wrap(u.VariantName+" is implemented by the variants of ["+u.Go+"] alone: "+enumerate(names, "or")+".", "", "", width-3), u.Experimental, nil, 0)),
		jen.Type().Id(u.VariantName).Interface(jen.Id(seal(u)).Params()))...)

	for _, v := range u.Variants {
		g.variant(f, v)
	}
	if u.Unknown != nil {
		g.unknown(f, u)
	}
	var seals []jen.Code
	for _, v := range g.variants(u) {
		seals = append(seals, jen.Func().Params(jen.Id(variantType(v))).Id(seal(u)).Params().Op("{}"))
	}
	add(f, seals...)
	for _, v := range u.Variants {
		g.constructor(f, v)
	}
}

// variants returns the variants with the unknown one.
func (g *generator) variants(u *model.Union) []*model.Variant {
	if u.Unknown == nil {
		return u.Variants
	}
	return append(append([]*model.Variant(nil), u.Variants...), u.Unknown)
}

// seal is the name of the method that keeps other types from being variants of u.
func seal(u *model.Union) string { return "is" + u.Go }

// variantType is the type that implements the sealed interface.
func variantType(v *model.Variant) string {
	if v.Type != nil {
		return v.Go
	}
	return "*" + v.Go
}

// enumerate joins names as a sentence does, with "and" or "or" before the last.
func enumerate(names []string, conjunction string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}

// howTold says how the variants are told apart on the wire.
func (g *generator) howTold(u *model.Union) []string {
	if u.Tag != "" {
		text := "The member " + u.Tag + " tells the variants apart."
		if u.KeepsTag() {
			text += " Without it, or with a value whose variant this is not, the members that " + article(u.Untagged.Go) + " [" + u.Untagged.Go +
				"] must have make one; see " + u.KeptTag + "."
		}
		return wrap(text, "", "", width-3)
	}
	var keys []string
	for _, v := range u.Variants {
		if v.Key != "" {
			keys = append(keys, v.Key)
		}
	}
	if len(keys) > 0 {
		return wrap("The variants are told apart by the members "+enumerate(keys, "or")+".", "", "", width-3)
	}
	return []string{"The variants are told apart by the kind of JSON value."}
}

// variant declares the type of one variant, unless the payload is it.
func (g *generator) variant(f *jen.File, v *model.Variant) {
	if v.Self {
		return
	}
	instead := "is a variant of [" + v.Union.Go + "]."
	doc := g.describe(v.Go, v.Doc, instead, 0)
	if v.Tagged {
		doc = beforeLinks(doc, v.Union.Tag+": "+strconv.Quote(v.Tag))
	}
	doc = experimental(deprecate(doc, v.Deprecated), v.Experimental, v.Feature, 0)
	switch {
	case v.Inline:
		s := v.Payload.(*model.Struct)
		g.structType(f, v.Go, doc, s.Fields, g.extra(s)...)
		g.structMethods(f, s)
	case v.Payload != nil:
		add(f, append(comment(doc), jen.Type().Id(v.Go).Id(v.Payload.Base().Go))...)
		g.accessors(f, v.Go, model.Fields(v.Payload))
	default:
		add(f, append(comment(doc), jen.Type().Id(v.Go).Add(g.goType(v.Type)))...)
	}
}

func (g *generator) unknown(f *jen.File, u *model.Union) {
	v := u.Unknown
	doc := wrap(v.Go+" keeps a variant of ["+u.Go+"] that this package does not know.", "", "", width-3)
	if v.Doc != "" {
		doc = append(append(doc, ""), markdown(stop(v.Doc), 0)...)
	}
	doc = experimental(doc, u.Experimental, nil, 0)
	add(f, append(comment(doc), jen.Type().Id(v.Go).Custom(
		jen.Options{Open: "struct {\n", Close: "\n}", Separator: "\n"},
		comment([]string{"Tag is the value of " + u.Tag + "."})[0],
		jen.Id("Tag").String(),
		jen.Comment("// Raw is the whole object as it came, with its tag; it is written unchanged."),
		jen.Id("Raw").Qual(jsonPath, "RawMessage")))...)
}

// parameterOf is a parameter of a constructor.
type parameterOf struct {
	name string
	typ  *jen.Statement
}

// constructed returns the parameters of the function that makes a union of the variant, and what it makes.
func (g *generator) constructed(v *model.Variant) (params []parameterOf, made *jen.Statement) {
	u := v.Union
	var values []jen.Code
	set := func(field *model.Field) jen.Code {
		name := parameter(field.Go)
		for slices.ContainsFunc(params, func(p parameterOf) bool { return p.name == name }) {
			name += "_"
		}
		params = append(params, parameterOf{name, g.fieldType(field)})
		return jen.Id(field.Go).Op(":").Id(name)
	}
	for _, field := range u.Fields {
		if field.Presence == model.Required {
			values = append(values, set(field))
		}
	}

	var variant *jen.Statement
	switch {
	case v.Spread:
		var members []jen.Code
		for _, field := range model.Fields(v.Payload) {
			if field.Presence == model.Required {
				members = append(members, set(field))
			}
		}
		variant = jen.Op("&").Id(v.Go).Values(members...)
	case v.Payload != nil:
		params = append(params, parameterOf{"payload", jen.Id(v.Payload.Base().Go)})
		variant = jen.Op("&").Id("payload")
		if !v.Self {
			variant = jen.Parens(jen.Op("*").Id(v.Go)).Call(variant)
		}
	default:
		params = append(params, parameterOf{"value", g.goType(v.Type)})
		variant = jen.Id(v.Go).Call(jen.Id("value"))
	}
	values = append(values, jen.Id("Variant").Op(":").Add(variant))
	return params, jen.Id(u.Go).Values(values...)
}

// constructor declares the function that makes a union of the variant.
func (g *generator) constructor(f *jen.File, v *model.Variant) {
	params, made := g.constructed(v)
	u := v.Union
	var list []jen.Code
	for _, p := range params {
		list = append(list, jen.Id(p.name).Add(p.typ))
	}
	doc := wrap(v.Constructor+" returns "+article(u.Go)+" ["+u.Go+"] that is "+article(v.Go)+" ["+v.Go+"].", "", "", width-3)
	doc = experimental(doc, v.Experimental, v.Feature, 0)
	add(f, append(comment(doc), jen.Func().Id(v.Constructor).Params(list...).Id(u.Go).Block(jen.Return(made)))...)
}

// article is the indefinite article for a name. MCP is the only initialism that names begin with.
func article(name string) string {
	if strings.ContainsRune("AEIO", rune(name[0])) || strings.HasPrefix(name, "MCP") {
		return "an"
	}
	return "a"
}

// parameter returns the name of the parameter for an exported name: SessionID → sessionID, URI → uri.
func parameter(exported string) string {
	runes := []rune(exported)
	i := 0
	for i < len(runes) && unicode.IsUpper(runes[i]) {
		i++
	}
	if i > 1 && i < len(runes) {
		i-- // the capital that begins the next word
	}
	name := strings.ToLower(string(runes[:i])) + string(runes[i:])
	if token.IsKeyword(name) {
		return name + "_"
	}
	return name
}
