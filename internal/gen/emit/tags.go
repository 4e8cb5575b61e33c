package emit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// memberOptions returns the options of the tag codec of a field.
func (g *generator) memberOptions(f *model.Field) (out []string) {
	_, meta := f.Type.(model.Meta)
	for _, option := range []struct {
		name string
		has  bool
	}{
		{"required", f.Required()},
		{"null", f.Nullable && f.Opt() || meta && (f.Nullable || f.OnError)},
		{"empty", f.OnNull},
		{"lenient", f.OnError && f.Type != model.Any{}},
		{"items", f.SkipItems},
		{"id", g.ids[f]},
		{"features", g.usesFeatures(f.Type)},
	} {
		if option.has {
			out = append(out, option.name)
		}
	}
	out = append(out, typeOptions(f.Type)...)
	if g.Facade {
		out = append(out, featureOption(f.Feature)...)
	}
	if len(out) == 0 {
		out = []string{"optional"} // codec.IsTagged knows generated structs by this tag
	}
	return out
}

// featureOption returns the option that says to which feature something belongs, if it belongs to one.
func featureOption(feature *model.Feature) []string {
	if feature == nil {
		return nil
	}
	return []string{fmt.Sprintf("feature=%d", feature.Bit)}
}

// typeOptions returns the options that say what the Go type does not.
func typeOptions(t model.Type) (out []string) {
	if enum := enumOf(t); enum != nil && enum.Open {
		out = append(out, "open")
	}
	t = plain(t)
	for i, limit := range model.BoundsOf(t) {
		switch k := model.BoundKeywords[i]; {
		case limit == "" || k.Limit == model.Unchecked:
		case k.Limit == model.Names:
			var names []string
			mustRead(json.RawMessage(limit), &names)
			out = append(out, nameOptions("member", names)...)
		default:
			out = append(out, k.Keyword+"="+limit)
		}
	}
	switch t := t.(type) {
	case model.Runtime:
		if t.Name == model.RuntimeID && t.Null {
			out = append(out, "requestIDOrNull")
		} else if t.Name == model.RuntimeID {
			out = append(out, "requestID")
		}
	case model.Slice:
		return append(out, itemOptions(t.Elem)...)
	case model.Map:
		return append(out, itemOptions(t.Elem)...)
	case model.Nullable:
		return append(out, typeOptions(t.Elem)...)
	}
	return out
}

func itemOptions(t model.Type) []string {
	options := typeOptions(t)
	for i, option := range options {
		options[i] = "item." + option
	}
	return options
}

// nameOptions returns an option for each name.
func nameOptions(option string, names []string) (out []string) {
	for _, name := range names {
		out = append(out, option+"="+strings.ReplaceAll(inJSON(name), ",", `\u002c`))
	}
	return out
}

// blank returns the blank field that describes the members of a struct which are not fields, if there are any.
func blank(s *model.Struct) []jen.Code {
	options := nameOptions("without", s.Without)
	var fixed string
	if len(s.Fixed) > 0 {
		var members []string
		for _, f := range s.Fixed {
			members = append(members, `"`+inJSON(f.JSON)+`":`+string(f.Value))
		}
		options = append(options, "fixed")
		fixed = "fixed:" + strconv.QuoteToASCII("{"+strings.Join(members, ",")+"}")
	}
	if len(options) == 0 {
		return nil
	}
	return []jen.Code{jen.Id("_").Struct().Add(fieldTag(codecTag(options), fixed))}
}

// plain returns the type that a named scalar is defined over, and any other type as it is.
func plain(t model.Type) model.Type {
	if named, ok := t.(model.Named); ok {
		switch d := named.Decl.(type) {
		case *model.Enum:
			return d.Type
		case *model.Newtype:
			if model.Scalar(d) {
				return d.Type
			}
		}
	}
	return t
}

// enumOf returns the enum of t, or nil.
func enumOf(t model.Type) *model.Enum {
	if named, ok := t.(model.Named); ok {
		d, _ := named.Decl.(*model.Enum)
		return d
	}
	return nil
}

// findUsers finds the declarations whose values can use a feature.
func (g *generator) findUsers() {
	for _, m := range g.pkg.Methods {
		if m.Feature != nil {
			g.users[m.Params] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, d := range g.pkg.Decls {
			if !g.users[d] && g.hasFeature(d) {
				g.users[d], changed = true, true
			}
		}
	}
}

// hasFeature reports whether a part of a declaration, or of one that it refers to, belongs to a feature.
func (g *generator) hasFeature(d model.Decl) bool {
	for _, f := range model.Fields(d) {
		if f.Feature != nil || g.usesFeatures(f.Type) {
			return true
		}
	}
	u, ok := d.(*model.Union)
	return ok && slices.ContainsFunc(u.Variants,
		func(v *model.Variant) bool { return v.Feature != nil || g.users[v.Payload] })
}

// usesFeatures reports whether values of the type can use features.
func (g *generator) usesFeatures(t model.Type) bool {
	enum := enumOf(t)
	return g.users[declOf(t)] || g.Facade && enum != nil &&
		slices.ContainsFunc(enum.Values, func(v *model.EnumValue) bool { return v.Feature != nil })
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

// mustRead reads a part of a default.
func mustRead(raw json.RawMessage, v any) {
	if err := json.Unmarshal(raw, v); err != nil {
		panic(err) // checked when the model was built
	}
}
