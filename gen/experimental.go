package gen

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// mark marks the parts of pkg that the stable schema does not have as experimental. It assigns a feature to each
// experimental method, and to each part that a message of a stable type can have. The feature comes from an override,
// or from the capability that gates the method, member or variant. An override for something that has become stable is
// kept, because programs use the constant of its feature.
func mark(pkg *model.Package, stable []byte, j *decisions, facade bool) error {
	doc, err := schema.Parse(stable, func(is ...string) bool { _, ok := j.find(Ignored, is...); return ok })
	if err != nil {
		return In("the stable schema", err)
	}
	old, err := build(doc)
	if err != nil {
		return In("the stable schema", err)
	}
	m := &marker{pkg: pkg, decisions: j, known: map[string]model.Decl{}, features: map[string]*model.Feature{}}
	for _, d := range old.Decls {
		m.known[pathOf(d)] = d
	}
	for _, d := range pkg.Decls {
		m.decl(d)
	}
	for _, method := range pkg.Methods {
		method.Doc = withoutNotice(method.Doc)
		method.Experimental = !slices.ContainsFunc(old.Methods, func(o *model.Method) bool {
			return o.Name == method.Name && o.Side == method.Side && o.Request() == method.Request()
		})
		m.method(method)
	}
	if facade {
		m.check()
	}
	next := len(featureBits)
	for _, name := range slices.Sorted(maps.Keys(m.features)) {
		f := m.features[name]
		if f.Bit = slices.Index(featureBits, name); f.Bit < 0 {
			f.Bit = next
			next++
		}
		pkg.Features = append(pkg.Features, f)
	}
	if next > 64 {
		m.problems = append(m.problems, fmt.Errorf("%d features are more than the 64 bits of a set", next))
	}
	return errors.Join(m.problems...)
}

type marker struct {
	pkg       *model.Package
	decisions *decisions
	known     map[string]model.Decl // of the stable schema
	features  map[string]*model.Feature
	parts     []marked // that need a feature
	problems  []error
}

// marked is a part of a declaration, with its subject in overrides.
type marked struct {
	*model.Common
	subject string
}

// feature returns the feature that an override gives to the experimental thing with this subject or pointer, or nil. It
// also records the features of stable things, because programs use their constants.
func (m *marker) feature(subject, pointer string, experimental bool) *model.Feature {
	name, ok := m.decisions.find(Feature, subject, pointer)
	if !ok {
		return nil
	}
	f := m.features[name]
	if f == nil {
		f = &model.Feature{Name: name}
		m.features[name] = f
	}
	if !experimental {
		return nil
	}
	cover(f, subject)
	return f
}

// cover records the feature of something experimental.
func cover(f *model.Feature, subject string) {
	f.Experimental = true
	if !slices.Contains(f.Covers, subject) {
		f.Covers = append(f.Covers, subject)
	}
}

// decl marks a declaration and its parts.
func (m *marker) decl(d model.Decl) {
	c, old := d.Base(), m.known[pathOf(d)]
	c.Experimental = old == nil
	c.Doc = withoutNotice(c.Doc)
	for _, f := range model.Fields(d) {
		m.part(d, &f.Common, f.JSON, old != nil &&
			!slices.ContainsFunc(model.Fields(old), func(o *model.Field) bool { return o.JSON == f.JSON }))
	}
	switch d := d.(type) {
	case *model.Enum:
		known, _ := old.(*model.Enum)
		for _, v := range d.Values {
			m.part(d, &v.Common, fmt.Sprint(v.Value), known != nil && !known.Lists(v.Value))
		}
	case *model.Union:
		known, _ := old.(*model.Union)
		for _, v := range d.Variants {
			m.part(d, &v.Common, v.Part, known == nil ||
				!slices.ContainsFunc(known.Variants, func(o *model.Variant) bool { return o.Part == v.Part }))
		}
	}
}

// part marks a member, value or variant of a declaration. It needs a feature unless all of the declaration is
// experimental.
func (m *marker) part(d model.Decl, c *model.Common, name string, experimental bool) {
	c.Doc, c.Experimental = withoutNotice(c.Doc), experimental
	p := marked{c, pathOf(d) + "/" + schema.Escape(name)}
	needs := experimental && !d.Base().Experimental
	c.Feature = m.feature(p.subject, c.Pointer, needs)
	if needs {
		m.parts = append(m.parts, p)
	}
}

// method assigns the feature of a capability to the method that it gates, and to the parts of its parameters that it
// gates.
func (m *marker) method(method *model.Method) {
	method.Feature = m.feature(method.Name, method.Pointer, method.Experimental)
	if f := featureOf(method.Capability); method.Experimental && method.Feature == nil && f != nil {
		method.Feature = f
		cover(f, method.Name)
	}
	for _, need := range method.Needs {
		f := featureOf(need.Capability)
		switch {
		case f == nil:
		case need.Variant != nil && need.Variant.Feature == nil && need.Variant.Experimental:
			need.Variant.Feature = f
			cover(f, pathOf(need.Variant.Union)+"/"+need.Variant.Part)
		case need.Variant == nil && need.Field != nil && need.Field.Feature == nil &&
			(need.Field.Experimental || method.Params.Base().Experimental):
			need.Field.Feature = f
			cover(f, pathOf(method.Params)+"/"+need.Field.JSON)
		}
	}
}

// featureOf returns the feature of an experimental capability, or nil.
func featureOf(path []*model.Field) *model.Feature {
	for _, f := range path {
		if f.Feature != nil {
			return f.Feature
		}
	}
	return nil
}

// check reports experimental things without a feature, which could not be enabled. If the gate of one is stale, only
// the stale gate is reported.
func (m *marker) check() {
	want := func(subject, pointer string) {
		m.problems = append(m.problems, &schema.Error{Pointer: pointer, Err: &Wanted{
			Override{Feature, subject, exported(subject), "what it belongs to"},
			errors.New("it is experimental and has no feature"),
		}})
	}
	for _, p := range m.parts {
		if p.Feature == nil && !m.decisions.gateless[p.Common] {
			want(p.subject, p.Pointer)
		}
	}
	for _, method := range m.pkg.Methods {
		if method.Experimental && method.Feature == nil && method.Side != model.Proxy && !m.decisions.gateless[method] {
			want(method.Name, method.Pointer)
		}
	}
}

// notice matches the beginning of descriptions of experimental things.
var notice = regexp.MustCompile(`^\*\*UNSTABLE\*\*\s*(?:This (?:capability|feature) is not part of the spec yet, and may be removed or changed at any point\.\s*)?`)

// withoutNotice returns a description without the notice, because the generated documentation has its own.
func withoutNotice(doc string) string { return notice.ReplaceAllString(doc, "") }
