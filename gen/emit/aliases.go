package emit

import (
	"path"
	"regexp"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/gen/model"
)

// own returns the declarations that are not the base's.
func (g *generator) own() []model.Decl {
	var out []model.Decl
	for _, d := range g.pkg.Decls {
		if !d.Base().InBase {
			out = append(out, d)
		}
	}
	return out
}

// base qualifies a name of the package that this one extends.
func (g *generator) base(name string) *jen.Statement { return jen.Qual(g.pkg.Base, name) }

// aliases writes what is declared in the base: types, the values of enums, and constructors.
func (g *generator) aliases(f *jen.File) {
	for _, d := range g.pkg.Decls {
		c := d.Base()
		if !c.InBase {
			continue
		}
		switch d := d.(type) {
		case *model.Struct:
			if d.Variant != nil {
				g.alias(f, c.Go, d.Variant.Doc, "is a variant of ["+d.Variant.Union.Go+"].")
				continue
			}
			g.alias(f, c.Go, c.Doc, "is an object of the protocol.")
		case *model.Newtype:
			g.alias(f, c.Go, c.Doc, "is a value of the protocol.")
		case *model.Enum:
			g.alias(f, c.Go, c.Doc, "is one of a list of values.")
			g.aliasValues(f, d)
		case *model.Union:
			g.alias(f, c.Go, c.Doc, "is a choice between variants.")
			g.aliasVariants(f, d)
		}
	}
}

// alias declares a type of the base, with the first sentence of what is said about it there.
func (g *generator) alias(f *jen.File, name, doc, instead string) {
	where := "It is documented at [" + path.Base(g.pkg.Base) + "." + name + "]."
	text := firstSentence(g.describe(name, doc, instead, 0)) + " " + where
	add(f, append(comment(wrap(text, "", "", width-3)), jen.Type().Id(name).Op("=").Add(g.base(name)))...)
}

// reference is a link of a comment whose target is not there.
var reference = regexp.MustCompile(`\[([^\]]+ [^\]]*)\]`)

// firstSentence returns the first sentence of a doc comment.
func firstSentence(lines []string) string {
	var words []string
	for _, line := range lines {
		if line == "" || strings.HasPrefix(line, "  ") {
			break
		}
		words = append(words, line)
	}
	text := strings.Join(words, " ")
	if sentence, _, more := strings.Cut(text, ". "); more {
		text = sentence + "."
	}
	return reference.ReplaceAllString(strings.TrimSuffix(text, ":"), "$1")
}

func (g *generator) aliasValues(f *jen.File, d *model.Enum) {
	knownValues(f, d)
	f.Const().DefsFunc(func(group *jen.Group) {
		for _, v := range d.Values {
			group.Id(v.Go).Op("=").Add(g.base(v.Go))
		}
	})
	f.Line()
}

func (g *generator) aliasVariants(f *jen.File, u *model.Union) {
	g.alias(f, u.VariantName, "", "is implemented by the variants of ["+u.Go+"] alone.")
	for _, v := range u.Variants {
		if !v.Self && !v.Inline {
			g.alias(f, v.Go, v.Doc, "is a variant of ["+u.Go+"].")
		}
	}
	if u.Unknown != nil {
		g.alias(f, u.Unknown.Go, "", "keeps a variant of ["+u.Go+"] that this package does not know.")
	}
	for _, v := range u.Variants {
		params, _ := g.constructed(v)
		var names []jen.Code
		for _, p := range params {
			names = append(names, jen.Id(p.name))
		}
		g.constructorFunc(f, v, params, jen.Return(g.base(v.Constructor).Call(names...)))
	}
}
