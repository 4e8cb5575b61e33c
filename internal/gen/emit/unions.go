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
	doc := g.declDoc(&u.Common, "is one of several variants.", g.howTold(u)...)
	var options []string
	if g.users[u] {
		options = []string{"features"}
	}
	more := []jen.Code{
		jen.Comment("// Variant is the value; it must not be nil."),
		jen.Id("Variant").Id(u.VariantName).Add(untagged(options...)),
	}
	if u.KeepsTag() {
		text := u.KeptTag + " is the member " + u.Tag + " of " + article(u.Untagged.Go) + " [" + u.Untagged.Go +
			"], which needs" +
			" none: a value that the schema does not know, or the value of another variant. It is written unchanged, and" +
			" ignored for other variants."
		more = append(append(more, jen.Line()), comment(paragraph(text, 4))...)
		more = append(more, jen.Id(u.KeptTag).Add(g.codecName("Opt")).Types(jen.String()).Add(untagged("tag")))
	}
	g.structType(f, u.Go, doc, nil, u.Fields, more...)
	g.accessors(f, u.Go, u.Fields)

	var names []string
	for _, v := range g.variants(u) {
		names = append(names, variantType(v))
	}
	doc = paragraph(u.VariantName+" is implemented only by the variants of ["+u.Go+"]: "+enumerate(names, "and")+".", 0)
	declare(f, experimental(doc, u.Experimental, nil, 0), source("type % interface{ %() }", u.VariantName, seal(u)))

	for _, v := range u.Variants {
		g.variant(f, v)
	}
	if u.Unknown != nil {
		g.unknown(f, u)
	}
	var seals []jen.Code
	for _, v := range g.variants(u) {
		seals = append(seals, source("func (%) %() {}", variantType(v), seal(u)))
	}
	add(f, seals...)
	for _, v := range u.Variants {
		g.constructor(f, v)
	}
}

// variants returns the variants, including the unknown one.
func (g *generator) variants(u *model.Union) []*model.Variant {
	if u.Unknown == nil {
		return u.Variants
	}
	return append(slices.Clone(u.Variants), u.Unknown)
}

// seal returns the name of the unexported method that only the variants of u have.
func seal(u *model.Union) string { return "is" + u.Go }

// variantType returns the type that implements the sealed interface.
func variantType(v *model.Variant) string {
	if v.Type != nil {
		return v.Go
	}
	return "*" + v.Go
}

// howTold returns the paragraph about how the variants are distinguished.
func (g *generator) howTold(u *model.Union) []string {
	switch {
	case u.KeepsTag():
		return paragraph("An object without the member "+u.Tag+", or that does not match the variant of its value, is "+
			article(u.Untagged.Go)+" ["+u.Untagged.Go+"] if it has the required members; see "+u.KeptTag+".", 0)
	case u.Tag != "":
		return nil // each variant says its value
	}
	var keys []string
	for _, v := range u.Variants {
		if v.Key != "" {
			keys = append(keys, v.Key)
		}
	}
	if len(keys) > 0 {
		return paragraph("The members "+enumerate(keys, "and")+" distinguish the variants.", 0)
	}
	return []string{"The kind of JSON value distinguishes the variants."}
}

// variant declares the type of a variant, unless its payload is that type.
func (g *generator) variant(f *jen.File, v *model.Variant) {
	if v.Self {
		return
	}
	doc := g.describe(v.Go, v.Doc, "is a variant of ["+v.Union.Go+"].")
	if v.Tagged {
		doc = beforeLinks(doc, v.Union.Tag+": "+strconv.Quote(v.Tag))
	}
	doc = marked(doc, &v.Common, 0)
	switch {
	case v.Inline:
		g.structDecl(f, v.Payload.(*model.Struct), doc)
	case v.Payload != nil:
		declare(f, doc, source("type % %", v.Go, v.Payload.Base().Go))
		g.accessors(f, v.Go, model.Fields(v.Payload))
	default:
		declare(f, doc, source("type % %", v.Go, g.goType(v.Type)))
	}
}

func (g *generator) unknown(f *jen.File, u *model.Union) {
	v := u.Unknown
	doc := paragraph(v.Go+" is a variant of ["+u.Go+"] that this package does not know.", 0)
	if text := g.withoutFiller(v.Doc); text != "" {
		doc = append(append(doc, ""), markdown(stop(text), 0)...)
	}
	doc = experimental(doc, u.Experimental, nil, 0)
	declare(f, doc, source("type % %", v.Go, g.codecName("Unknown")))
}

// constructor declares the function that returns a union with the variant.
func (g *generator) constructor(f *jen.File, v *model.Variant) {
	u := v.Union
	var params, values, members []jen.Code
	var names []string
	// required adds a parameter for each required field, and a value of the field.
	required := func(values []jen.Code, fields []*model.Field) []jen.Code {
		for _, field := range fields {
			if field.Presence != model.Required {
				continue
			}
			name := parameter(field.Go)
			for slices.Contains(names, name) {
				name += "_"
			}
			names, params = append(names, name), append(params, source("% %", name, g.fieldType(field)))
			values = append(values, source("%: %", field.Go, name))
		}
		return values
	}
	values = required(values, u.Fields)
	var variant *jen.Statement
	switch {
	case v.Spread:
		variant = source("&%{%}", v.Go, jen.List(required(members, model.Fields(v.Payload))...))
	case v.Payload != nil:
		params = append(params, source("payload %", v.Payload.Base().Go))
		variant = source("&payload")
		if !v.Self {
			variant = source("(*%)(&payload)", v.Go)
		}
	default:
		params = append(params, source("value %", g.goType(v.Type)))
		variant = source("%(value)", v.Go)
	}
	values = append(values, source("Variant: %", variant))
	doc := paragraph(v.Constructor+" returns "+article(u.Go)+" ["+u.Go+"] that is "+article(v.Go)+" ["+v.Go+"].", 0)
	doc = experimental(doc, v.Experimental, v.Feature, 0)
	declare(f, doc, source("func %(%) % {\nreturn %{%}\n}",
		v.Constructor, jen.List(params...), u.Go, u.Go, jen.List(values...)))
}

// article returns the indefinite article for a name. MCP is the only initialism at the beginning of names.
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
