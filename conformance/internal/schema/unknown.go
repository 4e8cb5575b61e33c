// Unknown members are those that no schema declares at their place. JSON Schema allows them, but ACP reserves their
// names; custom data belongs in _meta.

package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// unknownMembers returns the unknown members of a value. It follows the branch that the value means even if the value
// is invalid, so that a misspelt member is reported together with the missing one.
func unknownMembers(c *jsonschema.Schema, v any) []flaw {
	var w closedPass
	w.visit([]*jsonschema.Schema{c}, v, "")
	return w.flaws
}

type closedPass struct {
	flaws []flaw
}

// visit checks a value to which all of the schemas apply.
func (w *closedPass) visit(at []*jsonschema.Schema, v any, where string) {
	if len(w.flaws) >= MaxFindings {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		f := inForce(at, v)
		if f.open {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below := Pointer(where, name)
			switch schemas := f.members(name); {
			case len(schemas) > 0:
				w.visit(schemas, v[name], below)
			case name != "_meta": // allowed everywhere, even if the schema forgot it
				w.flaws = append(w.flaws, flaw{Custom, below, fmt.Sprintf("unknown member %q", finding.Clip(name)), f.name})
			}
		}
	case []any:
		f := inForce(at, v)
		for i, item := range v {
			if schemas := f.elements(i); len(schemas) > 0 {
				w.visit(schemas, item, Pointer(where, strconv.Itoa(i)))
			}
		}
	}
}

// force combines the schemas that apply to one value.
type force struct {
	name  string // the definition to name in a finding
	open  bool   // all members are allowed
	parts []*jsonschema.Schema
}

// members returns the schemas of a member.
func (f *force) members(name string) (schemas []*jsonschema.Schema) {
	for _, s := range f.parts {
		if p := s.Properties[name]; p != nil {
			schemas = append(schemas, p)
		}
		for pattern, p := range s.PatternProperties {
			if pattern.MatchString(name) {
				schemas = append(schemas, p)
			}
		}
		if k := keywordsOf(s); k.values != nil && !k.lists(name) {
			schemas = append(schemas, k.values)
		}
	}
	return schemas
}

// elements returns the schemas of an element.
func (f *force) elements(i int) (schemas []*jsonschema.Schema) {
	for _, s := range f.parts {
		if i < len(s.PrefixItems) {
			schemas = append(schemas, s.PrefixItems[i])
		} else if k := keywordsOf(s); k.items != nil {
			schemas = append(schemas, k.items)
		}
	}
	return schemas
}

func inForce(at []*jsonschema.Schema, v any) *force {
	f := &force{}
	for _, s := range at {
		f.add(s, v)
	}
	return f
}

// add collects a schema and the schemas that it refers to. Of a union, it collects the branches that the value means.
func (f *force) add(s *jsonschema.Schema, v any) {
	k := keywordsOf(s)
	if anything(s) || s.AdditionalProperties == true || s.UnevaluatedProperties != nil || s.If != nil ||
		s.DependentSchemas != nil {
		f.open = true
		return
	}
	f.parts = append(f.parts, s)
	if f.name == "" && (s.Properties != nil || s.Types != nil) {
		f.name = definitionOf(s.Location)
	}
	if s.Ref != nil {
		f.add(s.Ref, v)
	}
	for _, below := range s.AllOf {
		f.add(below, v)
	}
	for _, u := range k.unions {
		branches := u.possible(v)
		if len(branches) > 1 {
			branches = slices.DeleteFunc(branches, func(b branch) bool { return b.schema.Validate(v) != nil })
		}
		if len(branches) == 0 {
			if c := u.choose(v); c.otherwise == "" {
				branches = c.branches // the value is invalid; it means one of these
			}
		}
		if len(branches) == 0 {
			f.open = true // there is nothing to compare the members with
			return
		}
		for _, b := range branches {
			f.add(b.schema, v)
		}
	}
}

// anything reports whether a schema says nothing of objects, as those of raw input and extensions do.
func anything(s *jsonschema.Schema) bool {
	if s.Always != nil {
		return *s.Always
	}
	return s.Ref == nil && s.Types == nil && s.Constant == nil && s.Enum == nil && s.Not == nil && len(s.AllOf) == 0 &&
		s.Extensions == nil && s.Properties == nil && s.PatternProperties == nil && s.AdditionalProperties == nil &&
		s.Required == nil && s.PropertyNames == nil && s.MinProperties < 0 && s.MaxProperties < 0
}
