package gen

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// mark marks what pkg has beyond the stable schema as experimental, and gives each part of it that a message of a
// stable type can have, and each method, its feature. A feature comes from an override, or from the capability that
// gates the method, the member or the variant. An override for something that is stable by now is kept: programs name
// its feature.
func mark(pkg *model.Package, stable []byte, j *judgements, facade bool) error {
	doc, err := schema.Parse(stable, func(is ...string) bool { _, ok := j.of(Ignored, is...); return ok })
	if err != nil {
		return In("the stable schema", err)
	}
	old, err := build(doc)
	if err != nil {
		return In("the stable schema", err)
	}
	m := &marker{pkg: pkg, judgements: j, known: map[string]model.Decl{}, features: map[string]*model.Feature{}}
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
	for _, o := range j.list {
		if f := m.features[o.Value]; o.Kind == Feature && f != nil && !slices.Contains(pkg.Features, f) {
			pkg.Features = append(pkg.Features, f)
		}
	}
	slices.SortFunc(pkg.Features, func(a, b *model.Feature) int { return strings.Compare(a.Name, b.Name) })
	return errors.Join(m.problems...)
}

type marker struct {
	pkg        *model.Package
	judgements *judgements
	known      map[string]model.Decl // of the stable schema
	features   map[string]*model.Feature
	problems   []error
}

// given returns the feature that an override names for what goes by subject or pointer, or nil.
func (m *marker) given(subject, pointer string, experimental bool) *model.Feature {
	name, ok := m.judgements.of(Feature, subject, pointer)
	if !ok {
		return nil
	}
	f := m.features[name]
	if f == nil {
		f = &model.Feature{Name: name}
		m.features[name] = f
	}
	m.cover(f, subject, experimental)
	return f
}

// cover records that something belongs to a feature.
func (m *marker) cover(f *model.Feature, subject string, experimental bool) {
	if experimental && f != nil && !slices.Contains(f.Covers, subject) {
		f.Experimental = true
		f.Covers = append(f.Covers, subject)
	}
}

// decl marks a declaration and its parts.
func (m *marker) decl(d model.Decl) {
	c, path := d.Base(), pathOf(d)
	old := m.known[path]
	c.Experimental = old == nil
	c.Doc = withoutNotice(c.Doc)
	for _, f := range model.Fields(d) {
		f.Doc = withoutNotice(f.Doc)
		f.Experimental = old != nil && !slices.ContainsFunc(model.Fields(old), func(o *model.Field) bool { return o.JSON == f.JSON })
		f.Feature = m.given(path+"/"+schema.Escape(f.JSON), f.Pointer, f.Experimental)
	}
	switch d := d.(type) {
	case *model.Enum:
		known, _ := old.(*model.Enum)
		for _, v := range d.Values {
			v.Doc = withoutNotice(v.Doc)
			v.Experimental = known != nil && !known.Lists(v.Value)
			v.Feature = m.given(path+"/"+schema.Escape(fmt.Sprint(v.Value)), v.Pointer, v.Experimental)
		}
	case *model.Union:
		known, _ := old.(*model.Union)
		for _, v := range d.Variants {
			v.Doc = withoutNotice(v.Doc)
			v.Experimental = known == nil || !slices.ContainsFunc(known.Variants, func(o *model.Variant) bool { return o.Part == v.Part })
			v.Feature = m.given(path+"/"+schema.Escape(v.Part), v.Pointer, v.Experimental && known != nil)
		}
	}
}

// method gives a method, and what of its parameters needs a capability, the feature of that capability.
func (m *marker) method(method *model.Method) {
	method.Feature = m.given(method.Name, method.Pointer, method.Experimental)
	if f := featureOf(method.Capability); f != nil && method.Feature == nil {
		method.Feature = f
		m.cover(f, method.Name, method.Experimental)
	}
	params := method.Params.Base()
	for _, need := range method.Needs {
		f := featureOf(need.Capability)
		switch {
		case f == nil:
		case need.Variant != nil && need.Variant.Feature == nil && need.Variant.Experimental:
			need.Variant.Feature = f
			m.cover(f, pathOf(need.Variant.Union)+"/"+need.Variant.Part, true)
		case need.Variant == nil && need.Field != nil && need.Field.Feature == nil && (need.Field.Experimental || params.Experimental && advertisedExperimentally(need.Capability)):
			need.Field.Feature = f
			m.cover(f, pathOf(method.Params)+"/"+need.Field.JSON, true)
		}
	}
}

// advertisedExperimentally reports whether a part of a capability is experimental.
func advertisedExperimentally(path []*model.Field) bool {
	return slices.ContainsFunc(path, func(f *model.Field) bool { return f.Experimental })
}

// featureOf returns the feature of a capability, or nil.
func featureOf(path []*model.Field) *model.Feature {
	for _, f := range path {
		if f.Feature != nil {
			return f.Feature
		}
	}
	return nil
}

// check reports what is experimental and belongs to no feature, so that it could not be enabled.
func (m *marker) check() {
	want := func(subject, pointer string) {
		m.problems = append(m.problems, &schema.Error{Pointer: pointer, Err: &Wanted{
			Override{Feature, subject, exported(subject), "what it belongs to"}, errors.New("it is experimental and has no feature"),
		}})
	}
	for _, d := range m.pkg.Decls {
		for _, f := range model.Fields(d) {
			if f.Experimental && f.Feature == nil {
				want(pathOf(d)+"/"+schema.Escape(f.JSON), f.Pointer)
			}
		}
		switch d := d.(type) {
		case *model.Enum:
			for _, v := range d.Values {
				if v.Experimental && v.Feature == nil {
					want(pathOf(d)+"/"+schema.Escape(fmt.Sprint(v.Value)), v.Pointer)
				}
			}
		case *model.Union:
			for _, v := range d.Variants {
				if v.Experimental && !d.Experimental && v.Feature == nil {
					want(pathOf(d)+"/"+schema.Escape(v.Part), v.Pointer)
				}
			}
		}
	}
	for _, method := range m.pkg.Methods {
		if method.Experimental && method.Feature == nil && method.Side != model.Proxy {
			want(method.Name, method.Pointer)
		}
	}
}

// notice is how descriptions begin that say that what they describe is experimental.
var notice = regexp.MustCompile(`^\*\*UNSTABLE\*\*\s*(?:This (?:capability|feature) is not part of the spec yet, and may be removed or changed at any point\.\s*)?`)

// withoutNotice returns a description without that: the generated documentation says so in its own words.
func withoutNotice(doc string) string { return notice.ReplaceAllString(doc, "") }
