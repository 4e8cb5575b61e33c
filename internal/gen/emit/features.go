package emit

import (
	"cmp"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// features writes the constants that enable experimental features, and the methods that return the features that a
// message or a set of handlers uses.
func (g *generator) features(f *jen.File) {
	var all []string
	var names, constants []jen.Code
	for _, feature := range g.pkg.Features {
		lines := []string{feature.Go() + " is stable and need not be enabled.", "", "Deprecated: it has no effect."}
		if feature.Experimental {
			lines = paragraph(feature.Go()+" enables "+enumerate(feature.Covers, "and")+".", 4)
			all = append(all, feature.Go())
		}
		constants = append(constants, comment(lines)...)
		constants = append(constants, source("% Features = 1 << %", feature.Go(), jen.Lit(feature.Bit)))
		names = append(names, source("%: %", jen.Lit(feature.Bit), jen.Lit(feature.Go())))
	}
	add(f, source(`// Features is a set of experimental features, which AgentOptions.Experimental and ClientOptions.Experimental enable:
// FeatureFork|FeatureUsage, for example, or AllFeatures.
type Features uint64

// The experimental features.
const (
	%
	// AllFeatures enables all experimental features.
	AllFeatures Features = %
)

// featureNames are the names of the constants, by bit.
var featureNames = [...]string{%}
`, constants, cmp.Or(strings.Join(all, " | "), "0"), jen.List(names...)))
	g.featuresOf(f)
}

// featuresOf writes the function that returns the features of parameters, variants and enums' values.
func (g *generator) featuresOf(f *jen.File) {
	used := map[*model.Feature][]jen.Code{}
	pointers := map[model.Decl]bool{}
	for _, m := range g.pkg.Methods {
		if m.Feature != nil && !pointers[m.Params] {
			pointers[m.Params] = true
			used[m.Feature] = append(used[m.Feature], jen.Op("*").Id(m.Params.Base().Go))
		}
	}
	var cases []jen.Code
	subject := source("x.(type)")
	for _, d := range g.pkg.Decls {
		switch d := d.(type) {
		case *model.Union:
			for _, v := range d.Variants {
				if v.Feature != nil && g.users[d] {
					used[v.Feature] = append(used[v.Feature], jen.Id(variantType(v)))
				}
			}
		case *model.Enum:
			var values []jen.Code
			for _, v := range d.Values {
				if v.Feature != nil {
					values = append(values, source("case %: return %", v.Go, bitOf(v.Feature)))
				}
			}
			if len(values) > 0 {
				subject = source("x := x.(type)")
				cases = append(cases, source("case %:\nswitch x {\n%\n}", d.Go, values))
			}
		}
	}
	for _, feature := range g.pkg.Features {
		if types := used[feature]; len(types) > 0 {
			cases = append(cases, source("case %: return %", jen.List(types...), bitOf(feature)))
		}
	}
	add(f, source(`// featuresOf returns the features of the type of parameters or of a variant.
func featuresOf(x any) uint64 {
	switch % {
	%
	}
	return 0
}`, subject, cases))
}

// bitOf returns the feature as the decoder knows it.
func bitOf(feature *model.Feature) jen.Code { return jen.Uint64().Call(jen.Id(feature.Go())) }
