package api

import (
	"cmp"
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/text"
)

// wire compares two versions of a model.
type wire struct {
	changes []Change
	tried   *types.Package // the old package with experimental features, or nil
}

func (w *wire) add(level Level, subject, format string, args ...any) {
	w.changes = append(w.changes, Change{level, subject, fmt.Sprintf(format, args...)})
}

// toggled adds a change if something was switched on, which relaxes what is accepted, or off, which restricts it.
func (w *wire) toggled(subject string, before, after bool, on, off string) {
	switch {
	case after && !before:
		w.add(OnWire, subject, "%s", on)
	case before && !after:
		w.add(Notable, subject, "%s", off)
	}
}

// marks compares the marks of something that both versions have.
func (w *wire) marks(subject string, wasExperimental, experimental, wasDeprecated, deprecated bool) {
	if wasExperimental && !experimental {
		w.add(Promoted, subject, "it was experimental")
	}
	switch {
	case deprecated && !wasDeprecated:
		w.add(Notable, subject, "it is deprecated")
	case wasDeprecated && !deprecated:
		w.add(Addition, subject, "it is no longer deprecated")
	}
}

// compareWire returns the differences between two versions of a protocol. Declarations, fields and variants that only
// one of them has are left to the comparison of the Go packages.
func compareWire(old, new *model.Package, tried *types.Package) []Change {
	w := &wire{tried: tried}
	after := map[string]model.Decl{}
	for _, d := range new.Decls {
		after[d.Base().Go] = d
	}
	for _, before := range old.Decls {
		if d := after[before.Base().Go]; d != nil {
			w.decl(before, d)
		}
	}
	w.methods(old.Methods, new.Methods)
	for _, f := range old.Features {
		i := slices.IndexFunc(new.Features, func(g *model.Feature) bool { return g.Name == f.Name })
		w.marks(f.Go(), f.Experimental, i < 0 || new.Features[i].Experimental, false, false)
	}
	return w.changes
}

func (w *wire) decl(before, after model.Decl) {
	name := before.Base().Go
	o, n := before.Base(), after.Base()
	w.marks(name, o.Experimental, n.Experimental, o.Deprecated, n.Deprecated)
	w.fields(name, model.Fields(before), model.Fields(after))
	switch before := before.(type) {
	case *model.Enum:
		if after, ok := after.(*model.Enum); ok {
			w.toggled(name, before.Open, after.Open, "other values are part of the protocol",
				"other values are no part of the protocol any more")
			for _, v := range before.Values {
				i := slices.IndexFunc(after.Values, func(o *model.EnumValue) bool { return o.Go == v.Go })
				if i >= 0 {
					w.marks(v.Go, v.Experimental, after.Values[i].Experimental, v.Deprecated, after.Values[i].Deprecated)
				}
			}
			w.bounds(name, before.Type, after.Type)
		}
	case *model.Newtype:
		if after, ok := after.(*model.Newtype); ok {
			w.bounds(name, before.Type, after.Type)
		}
	case *model.Struct:
		if after, ok := after.(*model.Struct); ok {
			w.fixed(name, before, after)
		}
	case *model.Union:
		if after, ok := after.(*model.Union); ok {
			w.union(before, after)
		}
	}
}

// fixed compares the members that always have the same value, which Go does not show.
func (w *wire) fixed(owner string, before, after *model.Struct) {
	find := func(s *model.Struct, name string) *model.Fixed {
		if i := slices.IndexFunc(s.Fixed, func(f *model.Fixed) bool { return f.JSON == name }); i >= 0 {
			return s.Fixed[i]
		}
		return nil
	}
	for _, f := range before.Fixed {
		switch g := find(after, f.JSON); {
		case g == nil:
			w.add(Silent, owner, "its member %s is no longer always %s", code(f.JSON), code(string(f.Value)))
		case string(f.Value) != string(g.Value):
			w.add(Silent, owner, "its member %s is always %s, and was %s", code(f.JSON), code(string(g.Value)),
				code(string(f.Value)))
		}
	}
	for _, f := range after.Fixed {
		if find(before, f.JSON) == nil {
			w.add(Silent, owner, "its member %s must be there, and be %s", code(f.JSON), code(string(f.Value)))
		}
	}
}

func (w *wire) fields(owner string, before, after []*model.Field) {
	for _, f := range before {
		i := slices.IndexFunc(after, func(g *model.Field) bool { return g.Go == f.Go })
		if i >= 0 && !f.Flat && !after[i].Flat {
			w.field(owner+"."+f.Go, f, after[i])
		}
	}
	for _, f := range after {
		if f.Required() && !slices.ContainsFunc(before, func(g *model.Field) bool { return g.Go == f.Go }) {
			w.add(Notable, owner+"."+f.Go, mustBe)
		}
	}
}

const mustBe = "the member must be there: it is always written, and refused without"

func (w *wire) field(subject string, f, g *model.Field) {
	if f.JSON != g.JSON {
		w.add(Silent, subject, "its member is %s, and was %s", code(g.JSON), code(f.JSON))
	}
	w.marks(subject, f.Experimental, g.Experimental, f.Deprecated, g.Deprecated)
	w.toggled(subject, !f.Required(), !g.Required(), "the member may be left out", mustBe)
	w.toggled(subject, f.Nullable, g.Nullable, "null is part of the protocol", "null is not part of the protocol any more")
	w.toggled(subject, f.OnNull, g.OnNull, "null is read as empty", "null is not read as empty any more")
	w.toggled(subject, f.OnError, g.OnError, "a bad value is read as if it were absent",
		"a bad value is refused, and not read as if it were absent")
	w.toggled(subject, f.SkipItems, g.SkipItems, "bad items are left out", "bad items are refused, and not left out")
	if before, after := string(f.Default), string(g.Default); before != after {
		w.add(Notable, subject, "the default is %s, and was %s", cmp.Or(code(after), "none"), cmp.Or(code(before), "none"))
	}
	w.bounds(subject, f.Type, g.Type)
}

// code returns s as code in Markdown, or "" if s is empty.
func code(s string) string { return text.Code(s) }

// bounds compares the restrictions on the values of a type.
func (w *wire) bounds(subject string, before, after model.Type) {
	switch b, a := code(bounds(before)), code(bounds(after)); {
	case a == b:
	case a == "":
		w.add(OnWire, subject, "its values are not bounded any more by %s", b)
	case b == "":
		w.add(Notable, subject, "its values are bounded by %s", a)
	default:
		w.add(Notable, subject, "its values are bounded by %s, and were by %s", a, b)
	}
}

func bounds(t model.Type) string {
	var out []string
	add := func(what, limit string) {
		if limit != "" {
			out = append(out, what+" "+limit)
		}
	}
	for i, limit := range model.BoundsOf(t) {
		add(model.BoundKeywords[i].Keyword, limit)
	}
	switch t := t.(type) {
	case model.Slice:
		add("items:", bounds(t.Elem))
	case model.Map:
		add("values:", bounds(t.Elem))
	case model.Nullable:
		return bounds(t.Elem)
	}
	return strings.Join(out, ", ")
}

func (w *wire) union(before, after *model.Union) {
	name := before.Go
	if before.Tag != after.Tag {
		w.add(Silent, name, "its variants are told apart by %s, and were by %s", tagName(after), tagName(before))
	}
	w.toggled(name, before.TagNull || before.TagLenient, after.TagNull || after.TagLenient,
		"a tag that is not a string is read as if there were none", "a tag that is not a string is refused")
	for _, v := range before.Variants {
		i := slices.IndexFunc(after.Variants, func(o *model.Variant) bool { return o.Go == v.Go })
		if i < 0 {
			continue
		}
		o := after.Variants[i]
		w.marks(v.Go, v.Experimental && !before.Experimental, o.Experimental, v.Deprecated, o.Deprecated)
		if v.Tag != o.Tag || v.Key != o.Key || string(v.KeyValue) != string(o.KeyValue) {
			by := func(v *model.Variant) string {
				return cmp.Or(code(strings.TrimSpace(v.Tag+v.Key+" "+string(v.KeyValue))), "its kind")
			}
			w.add(Silent, v.Go, "as a variant of %s it is known by %s, and was by %s", code(name), by(o), by(v))
		}
	}
}

func tagName(u *model.Union) string {
	if u.Tag == "" {
		return "their own members or kinds"
	}
	return "the member " + code(u.Tag)
}

func (w *wire) methods(before, after []*model.Method) {
	same := func(m *model.Method) func(*model.Method) bool {
		return func(o *model.Method) bool {
			return m.Name == o.Name && m.Side == o.Side && m.Request() == o.Request()
		}
	}
	for _, m := range before {
		if i := slices.IndexFunc(after, same(m)); i < 0 {
			w.add(Silent, m.Const, "%s is gone", describe(m))
		} else {
			w.method(m, after[i])
		}
	}
	for _, m := range after {
		if !slices.ContainsFunc(before, same(m)) {
			level, was := Addition, ""
			if has(w.tried, m.Const) {
				level, was = Promoted, ", which was experimental"
			}
			w.add(level, m.Const, "new %s%s", describe(m), was)
		}
	}
}

// describe returns a description of a method.
func describe(m *model.Method) string {
	kind, types := "notification", code(m.Params.Base().Go)
	if m.Request() {
		kind, types = "request", types+" → "+code(m.Result.Base().Go)
	}
	out := fmt.Sprintf("%s %s (side: %s), %s", kind, code(m.Name), m.Side, types)
	if needs := needs(m); needs != "" {
		out += ", needs " + needs
	}
	return out
}

func (w *wire) method(m, n *model.Method) {
	w.marks(m.Const, m.Experimental, n.Experimental, false, false)
	if p, q := m.Params.Base().Go, n.Params.Base().Go; p != q {
		w.add(Silent, m.Const, "the parameters of %s are %s, and were %s", code(m.Name), code(q), code(p))
	}
	if m.Request() {
		if r, s := m.Result.Base().Go, n.Result.Base().Go; r != s {
			w.add(Silent, m.Const, "the result of %s is %s, and was %s", code(m.Name), code(s), code(r))
		}
		w.toggled(m.Const, m.NullResult, n.NullResult, "null is accepted as the result",
			"null is not accepted as the result any more")
	}
	if before, after := needs(m), needs(n); before != after {
		w.add(Notable, m.Const, "needs %s, and needed %s", cmp.Or(after, "nothing"), cmp.Or(before, "nothing"))
	}
	w.toggled(m.Const, m.Session != nil, n.Session != nil, "it belongs to a session, and waits for what came before in it",
		"it belongs to no session any more")
}

// needs lists the capabilities that calls of a method need.
func needs(m *model.Method) string {
	var out []string
	if len(m.Capability) > 0 {
		out = append(out, code(model.DottedPath(m.Capability)))
	}
	for _, need := range m.Needs {
		what := code(model.DottedPath(need.Capability))
		switch {
		case need.Variant != nil:
			what += " for " + code(need.Variant.Go)
		case need.Field != nil:
			what += " for " + code(need.Field.JSON)
		}
		out = append(out, what)
	}
	return strings.Join(out, ", ")
}
