package emit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// features writes the constants that enable experimental features, and the methods that return the features that a
// message or a set of handlers uses.
func (g *generator) features(f *jen.File) {
	add(f, append(comment(wrap("Features is a set of experimental features, which AgentOptions.Experimental and "+
		"ClientOptions.Experimental"+
		" enable: FeatureFork|FeatureUsage, for example, or AllFeatures.", "", "", width-3)),
		jen.Type().Id("Features").Uint64())...)
	var all []string
	var names []jen.Code
	f.Comment("The experimental features.")
	f.Const().DefsFunc(func(group *jen.Group) {
		for _, feature := range g.pkg.Features {
			lines := []string{feature.Go() + " is stable and need not be enabled.", "", "Deprecated: it has no effect."}
			if feature.Experimental {
				lines = wrap(feature.Go()+" enables "+enumerate(feature.Covers, "and")+".", "", "", width-3-4)
				all = append(all, feature.Go())
			}
			for _, line := range comment(lines) {
				group.Add(line)
			}
			group.Id(feature.Go()).Id("Features").Op("=").Lit(1).Op("<<").Lit(feature.Bit)
			names = append(names, jen.Lit(feature.Bit).Op(":").Lit(feature.Go()))
		}
		group.Comment("AllFeatures enables all experimental features.")
		group.Id("AllFeatures").Id("Features").Op("=").Id(cmp.Or(strings.Join(all, " | "), "0"))
	})
	f.Line()
	f.Comment("featureNames are the names of the constants, by bit.")
	f.Var().Id("featureNames").Op("=").Index(jen.Op("...")).String().Values(names...)
	f.Line()

	users := g.users()
	for _, d := range g.pkg.Decls {
		if users[d] {
			g.writeFeatures(f, d, users)
		}
	}
	for _, r := range roles {
		if r.session == "" {
			continue
		}
		var body []jen.Code
		for _, m := range g.handled(r.side) {
			if m.Feature != nil {
				body = append(body, jen.If(jen.Id("h").Dot(m.Go).Op("!=").Nil()).Block(addFeature(m.Feature)))
			}
		}
		add(f, jen.Comment("// features returns the features of the handlers that are set."),
			jen.Func().Params(jen.Id("h").Op("*").Id(r.handlers)).Id("features").Params().Params(jen.Id("f").Id("Features")).
				Block(append(body, jen.Return(jen.Id("f")))...))
	}
}

// canBeOff reports whether the package can switch a feature off.
func (g *generator) canBeOff(feature *model.Feature) bool { return g.Facade && feature != nil }

// bitOf returns the feature as the decoder knows it.
func bitOf(feature *model.Feature) jen.Code { return jen.Uint64().Call(jen.Id(feature.Go())) }

// markAt marks the next value as at.
func markAt() jen.Code { return jen.Id("at").Op(":=").Add(call(d, "Mark")) }

// addFeature records a feature in f.
func addFeature(feature *model.Feature) jen.Code { return jen.Id("f").Op("|=").Id(feature.Go()) }

// experimental appends to a doc comment the paragraph that marks a declaration as experimental.
func experimental(lines []string, is bool, feature *model.Feature, indent int) []string {
	if !is {
		return lines
	}
	text := "Experimental: any minor release may change or remove it."
	if feature != nil {
		text += " It needs [" + feature.Go() + "]."
	}
	return beforeLinks(lines, wrap(text, "", "", width-3-indent)...)
}

// users returns those declarations of messages whose values can use a feature.
func (g *generator) users() map[model.Decl]bool {
	users := map[model.Decl]bool{}
	for _, m := range g.pkg.Methods {
		if m.Feature != nil {
			users[m.Params] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, d := range g.pkg.Decls {
			if !users[d] && usesFeature(d, users) {
				users[d], changed = true, true
			}
		}
	}
	held := map[model.Decl]bool{}
	var hold func(d model.Decl)
	hold = func(d model.Decl) {
		if d == nil || held[d] || !users[d] {
			return
		}
		held[d] = true
		for _, f := range model.Fields(d) {
			hold(declOf(f.Type))
		}
		if u, ok := d.(*model.Union); ok {
			for _, v := range u.Variants {
				hold(v.Payload)
			}
		}
	}
	for _, m := range g.pkg.Methods {
		hold(m.Params)
		hold(m.Result)
	}
	return held
}

// usesFeature reports whether a part of a declaration, or of one that it refers to, belongs to a feature.
func usesFeature(d model.Decl, users map[model.Decl]bool) bool {
	for _, f := range model.Fields(d) {
		if f.Feature != nil || users[declOf(f.Type)] || len(valuesOf(f.Type)) > 0 {
			return true
		}
	}
	u, ok := d.(*model.Union)
	return ok && slices.ContainsFunc(u.Variants,
		func(v *model.Variant) bool { return v.Feature != nil || users[v.Payload] })
}

// declOf returns the declaration of a type, or of its items.
func declOf(t model.Type) model.Decl {
	switch t := t.(type) {
	case model.Named:
		return t.Decl
	case model.Slice:
		return declOf(t.Elem)
	case model.Pointer:
		return t.Elem.Decl
	}
	return nil
}

// valuesOf returns the experimental values of a type that is an enum.
func valuesOf(t model.Type) []*model.EnumValue {
	named, _ := t.(model.Named)
	enum, ok := named.Decl.(*model.Enum)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(enum.Values), func(v *model.EnumValue) bool { return v.Feature == nil })
}

// writeFeatures writes the method that returns the features that a value uses.
func (g *generator) writeFeatures(f *jen.File, d model.Decl, users map[model.Decl]bool) {
	var body []jen.Code
	for _, m := range g.pkg.Methods {
		if m.Params == d && m.Feature != nil {
			body = append(body, addFeature(m.Feature))
		}
	}
	for _, field := range model.Fields(d) {
		value := x.Clone().Dot(field.Go)
		if field.Feature != nil {
			body = append(body, jen.If(isSet(x, field)).Block(addFeature(field.Feature)))
		}
		if values := valuesOf(field.Type); len(values) > 0 {
			if field.Opt() {
				value = value.Dot("Value").Call()
			}
			body = append(body, jen.Switch(value).BlockFunc(func(cases *jen.Group) {
				for _, v := range values {
					cases.Case(jen.Id(v.Go)).Block(addFeature(v.Feature))
				}
			}))
			continue
		}
		if !users[declOf(field.Type)] {
			continue
		}
		_, slice := field.Type.(model.Slice)
		_, pointer := field.Type.(model.Pointer)
		more := func(v *jen.Statement) jen.Code { return jen.Id("f").Op("|=").Add(v).Dot("features").Call() }
		switch {
		case slice && field.Opt():
			body = append(body, jen.For(jen.List(jen.Id("_"), jen.Id("item")).Op(":=").Range().Add(value).Dot("Value").Call()).
				Block(more(jen.Id("item"))))
		case slice:
			body = append(body, jen.For(jen.Id("i").Op(":=").Range().Add(value)).Block(more(value.Clone().Index(jen.Id("i")))))
		case field.Opt():
			body = append(body, jen.If(jen.List(jen.Id("v"), jen.Id("ok")).Op(":=").Add(value).Dot("Get").Call(), jen.Id("ok")).
				Block(more(jen.Id("v"))))
		case pointer:
			body = append(body, jen.If(value.Clone().Op("!=").Nil()).Block(more(value)))
		default:
			body = append(body, more(value))
		}
	}
	if u, ok := d.(*model.Union); ok {
		body = append(body, g.variantFeatures(u, users)...)
	}
	add(f, method(d.Base().Go).Id("features").Params().Params(jen.Id("f").Id("Features")).
		Block(append(body, jen.Return(jen.Id("f")))...))
}

// variantFeatures returns the switch over the variants of a union that use a feature.
func (g *generator) variantFeatures(u *model.Union, users map[model.Decl]bool) []jen.Code {
	var cases []jen.Code
	bound := false
	byFeature := map[*model.Feature][]jen.Code{}
	var order []*model.Feature
	for _, v := range u.Variants {
		if v.Feature != nil {
			if byFeature[v.Feature] == nil {
				order = append(order, v.Feature)
			}
			byFeature[v.Feature] = append(byFeature[v.Feature], jen.Id(variantType(v)))
		} else if users[v.Payload] {
			bound = true
			value := jen.Id("v")
			if !v.Self && !v.Inline {
				value = jen.Parens(jen.Op("*").Id(v.Payload.Base().Go)).Call(value)
			}
			cases = append(cases, jen.Case(jen.Id(variantType(v))).Block(jen.If(jen.Id("v").Op("!=").Nil()).Block(
				jen.Id("f").Op("|=").Add(value).Dot("features").Call())))
		}
	}
	for _, feature := range order {
		cases = append(cases, jen.Case(byFeature[feature]...).Block(addFeature(feature)))
	}
	if len(cases) == 0 {
		return nil
	}
	subject := x.Clone().Dot("Variant").Assert(jen.Type())
	if bound {
		return []jen.Code{jen.Switch(jen.Id("v").Op(":=").Add(subject)).Block(cases...)}
	}
	return []jen.Code{jen.Switch(subject).Block(cases...)}
}
