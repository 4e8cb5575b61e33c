package emit

import (
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

func (g *generator) gates(f *jen.File) {
	for _, r := range roles {
		capabilities := g.pkg.Capabilities[r.side]
		if capabilities == nil {
			continue
		}
		caps := capabilities.Base().Go
		groups := g.byCapability(r.side)
		g.serves(f, r, caps, groups)
		for _, m := range g.handled(r.side) {
			if len(m.Needs) > 0 {
				g.lacks(f, caps, m)
			}
		}
		g.derive(f, r, caps, groups)
	}
	g.enumNames(f)
}

// enumNames writes the function that lists the values of an enum, for errors.
func (g *generator) enumNames(f *jen.File) {
	var cases []jen.Code
	for _, d := range g.pkg.Decls {
		d, ok := d.(*model.Enum)
		if !ok || !d.Closed() {
			continue
		}
		names := make([]string, len(d.Values))
		for i, v := range d.Values {
			names[i] = v.Value.(string)
		}
		cases = append(cases, source("case %: return %", d.Go, jen.Lit(strings.Join(names, ", "))))
	}
	add(f, source(`// enumNames returns the values that the schema lists for the type of v.
func enumNames(v any) string {
	switch v.(type) {
	%
	}
	return ""
}`, cases))
}

// findIDs finds the required ids of parameters and results: the schema allows them to be empty, but then they identify
// nothing.
func (g *generator) findIDs() {
	for _, m := range slices.Concat(g.handled(model.Agent), g.handled(model.Client)) {
		for _, f := range slices.Concat(model.Fields(m.Params), model.Fields(m.Result)) {
			named, _ := f.Type.(model.Named)
			if t, ok := named.Decl.(*model.Newtype); ok && strings.HasSuffix(t.Schema, "Id") {
				basic, scalar := t.Type.(model.Basic)
				g.ids[f] = scalar && basic.Kind == model.String && f.Presence == model.Required
			}
		}
	}
}

// byCapability returns a side's methods that need a capability, in groups that need the same, in the order of the
// schema.
func (g *generator) byCapability(side model.Side) (groups [][]*model.Method) {
	for _, m := range g.handled(side) {
		path := model.DottedPath(m.Capability)
		i := slices.IndexFunc(groups, func(group []*model.Method) bool {
			return model.DottedPath(group[0].Capability) == path
		})
		switch {
		case path == "":
		case i < 0:
			groups = append(groups, []*model.Method{m})
		default:
			groups[i] = append(groups[i], m)
		}
	}
	return groups
}

// isAdvertised returns the condition that the capabilities c include the one at the end of the path.
func isAdvertised(c *jen.Statement, path []*model.Field) *jen.Statement {
	for i, f := range path {
		c = c.Dot(f.Go)
		switch {
		case !f.Opt():
		case i == len(path)-1:
			c = c.Dot("Present").Call()
		default:
			c = c.Dot("Value").Call()
		}
	}
	return c
}

// serves writes the function that reports whether a side that advertises some capabilities serves a method.
func (g *generator) serves(f *jen.File, r role, caps string, groups [][]*model.Method) {
	var cases, body []jen.Code
	for _, group := range groups {
		var names []jen.Code
		for _, m := range group {
			names = append(names, jen.Id(m.Const))
		}
		cases = append(cases, source("case %: return %", jen.List(names...), isAdvertised(jen.Id("x"), group[0].Capability)))
	}
	if len(cases) > 0 {
		body = append(body, source("switch method {\n%\n}", cases))
	}
	body = append(body, source("return true"))
	declare(f, paragraph("serves reports whether "+r.article+" that advertises x serves a method.", 0),
		source("func (x *%) serves(method string) bool {\n%\n}", caps, body))
}

// lacksName returns the name of the function that lacks writes.
func lacksName(m *model.Method) string { return "lacksFor" + m.Go }

// lacks writes the function that returns the capability that a call of m lacks.
func (g *generator) lacks(f *jen.File, caps string, m *model.Method) {
	params := paramName(m)
	var tests []jen.Code // expressions that are the missing capability, or ""
	lacking := func(needed *jen.Statement, path []*model.Field) {
		tests = append(tests,
			source("lacking(%, %, %)", needed, isAdvertised(jen.Id("x"), path), jen.Lit(model.DottedPath(path))))
	}
	if len(m.Capability) > 0 {
		lacking(jen.True(), m.Capability)
	}
	for i, need := range m.Needs {
		switch {
		case need.Field == nil && need.Variant == nil:
			lacking(jen.True(), need.Capability)
		case need.Variant == nil:
			lacking(isSet(params, need.Field), need.Capability)
		case i == 0 || m.Needs[i-1].Variant == nil || m.Needs[i-1].Field != need.Field: // the first of these variants
			tests = append(tests, source("x.%(%)", g.lacksForEach(f, caps, m, m.Needs[i:]), listOf(params, m, need.Field)))
		}
	}
	missing := tests[0]
	if len(tests) > 1 {
		missing = jen.Qual("cmp", "Or").Add(eachOnALine("()", tests...))
	}
	declare(f, paragraph(lacksName(m)+" returns the capability that a call of "+m.Name+" needs and x does not have, or "+
		"\"\".", 0),
		source("func (x *%) %(% *%) string {\nreturn %\n}", caps, lacksName(m), params, m.Params.Base().Go, missing))
}

// listOf returns the values of a field of the parameters, or the parameters, as a list.
func listOf(params string, m *model.Method, f *model.Field) *jen.Statement {
	if f == nil {
		return source("[]%{*%}", m.Params.Base().Go, params)
	}
	value := source("%.%", params, f.Go)
	if f.Opt() {
		value = source("%.Value()", value)
	}
	if _, slice := f.Type.(model.Slice); slice {
		return value
	}
	return source("[]%{%}", declOf(f.Type).Base().Go, value)
}

// lacksForEach writes the test of the variants at the beginning of needs, which belong to one union, and returns its
// name. Methods that need the same share it.
func (g *generator) lacksForEach(f *jen.File, caps string, m *model.Method, needs []model.Need) string {
	union := needs[0].Variant.Union.Go
	of := func(n model.Need) bool { return n.Variant != nil && n.Field == needs[0].Field }
	var cases []jen.Code
	for i := 0; i < len(needs) && of(needs[i]); {
		path := needs[i].Capability
		var types []jen.Code
		for ; i < len(needs) && of(needs[i]) && model.DottedPath(needs[i].Capability) == model.DottedPath(path); i++ {
			types = append(types, source("*%", needs[i].Variant.Go))
		}
		cases = append(cases, source("case %:\nif !% {\nreturn %\n}",
			jen.List(types...), isAdvertised(jen.Id("x"), path), jen.Lit(model.DottedPath(path))))
	}
	test := source("switch item.Variant.(type) {\n%\n}", cases)
	name, text := "lacksForEach"+union, test.GoString()
	if known := g.each[caps+name]; known != "" && known != text {
		name += "Of" + m.Go
	}
	if g.each[caps+name] == "" {
		g.each[caps+name] = text
		doc := paragraph(name+" returns the capability that an item of list needs and x does not have, or \"\".", 0)
		declare(f, doc, source(`func (x *%) %(list []%) string {
	for _, item := range list {
		%
	}
	return ""
}`, caps, name, union, test))
	}
	return name
}

// isSet returns the condition that a field of the parameters is sent, even if it is empty.
func isSet(params string, f *model.Field) *jen.Statement {
	x := source("%.%", params, f.Go)
	switch _, slice := f.Type.(model.Slice); {
	case f.Opt():
		return x.Dot("Present").Call()
	case slice:
		return x.Op("!=").Nil()
	}
	if basic, ok := f.Type.(model.Basic); ok && basic.Kind == model.Bool {
		return x
	}
	return jen.Op("!").Add(zeroOf(x, f))
}

// derive writes the method that returns the capabilities of the handlers that are set.
func (g *generator) derive(f *jen.File, r role, caps string, groups [][]*model.Method) {
	var body []jen.Code
	for _, group := range groups {
		value := jen.True()
		path := group[0].Capability
		if last := path[len(path)-1]; last.Opt() {
			value = g.codecName("Some").Call(g.goType(last.Type).Values())
		}
		set := g.assign(jen.Id("x"), path, value)
		if len(group) == 1 {
			body = append(body, source("if h.% != nil {\n%\n}", group[0].Go, set))
			continue
		}
		handlers := []jen.Code{jen.Lit(model.DottedPath(path))}
		for _, m := range group {
			handlers = append(handlers, source("handler{%, h.% != nil}", jen.Lit(m.Go), m.Go))
		}
		body = append(body, source("if all, err := allOrNone%; err != nil {\nreturn x, err\n} else if all {\n%\n}",
			eachOnALine("()", handlers...), set))
	}
	body = append(body, source("return x, nil"))
	doc := paragraph("capabilities returns the capabilities that the handlers imply. It is an error to set only some of "+
		"the handlers of one capability.", 0)
	declare(f, doc, source("func (h *%) capabilities() (x %, err error) {\n%\n}", r.handlers, caps, body))
}

// assign returns the statements that set the field at the end of a path.
func (g *generator) assign(x *jen.Statement, path []*model.Field, value *jen.Statement) []jen.Code {
	field := func() *jen.Statement { return x.Clone().Dot(path[0].Go) }
	switch {
	case len(path) == 1:
		return []jen.Code{field().Op("=").Add(value)}
	case !path[0].Opt():
		return g.assign(field(), path[1:], value)
	}
	part := parameter(path[0].Go)
	out := []jen.Code{source("% := %.Value()", part, field())}
	out = append(out, g.assign(jen.Id(part), path[1:], value)...)
	return append(out, source("% = %(%)", field(), g.codecName("Some"), part))
}
