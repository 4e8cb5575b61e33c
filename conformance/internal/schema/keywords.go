// The keywords that replace those of the library in a compiled schema.

package schema

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// extension is the name of this package's keyword in a compiled schema.
const extension = "acp"

// prepare replaces keywords in a compiled schema, and in all schemas that it refers to, for which the library would do
// too much: it would try every branch of a union, and list every invalid element of an array or map. Schemas that it
// shares with definitions in use were prepared with those and are not changed.
func (s *Schema) prepare(c *jsonschema.Schema) {
	if c == nil || s.prepared[c] {
		return
	}
	s.prepared[c] = true
	s.prepare(c.Ref)
	s.prepare(c.Not)
	for _, list := range [][]*jsonschema.Schema{c.AllOf, c.AnyOf, c.OneOf} {
		for _, below := range list {
			s.prepare(below)
		}
	}
	for _, below := range c.Properties {
		s.prepare(below)
	}
	k := &keywords{named: c.Properties, patterns: c.PatternProperties, prefix: len(c.PrefixItems), all: s.unevaluated}
	if values, ok := c.AdditionalProperties.(*jsonschema.Schema); ok {
		s.prepare(values)
		k.values, c.AdditionalProperties = values, nil
	}
	if c.Items2020 != nil {
		s.prepare(c.Items2020)
		k.items, c.Items2020 = c.Items2020, nil
	}
	if len(c.AnyOf) > 0 {
		k.unions = append(k.unions, newUnion("anyOf", c, c.AnyOf))
		c.AnyOf = nil
	}
	if len(c.OneOf) > 0 {
		k.unions = append(k.unions, newUnion("oneOf", c, c.OneOf))
		c.OneOf = nil
	}
	if k.values != nil || k.items != nil || len(k.unions) > 0 {
		c.Extensions = map[string]jsonschema.ExtSchema{extension: k}
	}
}

// keywords are the replaced keywords of one schema.
type keywords struct {
	unions   []*union
	items    *jsonschema.Schema // the schema of the elements of an array after the first ones
	prefix   int                // the number of first ones
	values   *jsonschema.Schema // the schema of members that are neither named nor matched by a pattern
	named    map[string]*jsonschema.Schema
	patterns map[*regexp.Regexp]*jsonschema.Schema
	// all branches of unions are tried, because other keywords need to know which members and elements they evaluate
	all bool
}

// lists reports whether a member is named, or matched by a pattern.
func (k *keywords) lists(name string) bool {
	if k.named[name] != nil {
		return true
	}
	for pattern := range k.patterns {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}

// keywordsOf returns the replaced keywords of a schema, never nil.
func keywordsOf(s *jsonschema.Schema) *keywords {
	if k, ok := s.Extensions[extension].(*keywords); ok {
		return k
	}
	return &keywords{}
}

// Validate implements jsonschema.ExtSchema. It stops when a message has enough findings.
func (k *keywords) Validate(ctx jsonschema.ValidationContext, v any) error {
	var failed []error
	fail := func(err error) (enough bool) {
		if err != nil {
			failed = append(failed, err)
		}
		return len(failed) > MaxFindings
	}
	for _, u := range k.unions {
		fail(u.validate(ctx, v, k.all))
	}
	if items, ok := v.([]any); ok && k.items != nil {
		for i, item := range items {
			if i < k.prefix {
				continue
			}
			ctx.EvaluatedItem(i)
			if fail(ctx.Validate(k.items, "items", item, strconv.Itoa(i))) {
				break
			}
		}
	}
	if members, ok := v.(map[string]any); ok && k.values != nil {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if k.lists(name) {
				continue
			}
			ctx.EvaluatedProp(name)
			if fail(ctx.Validate(k.values, "additionalProperties", members[name], escapeLocation(name))) {
				break
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return jsonschema.ValidationError{}.Group(ctx.Error(extension, ""), failed...)
}

// noName represents the empty name in a location, because the library takes an empty location for that of the object
// itself. No escaped name equals it.
const noName = "%"

// escapeLocation escapes a member's name as the library does in locations.
func escapeLocation(name string) string {
	if name == "" {
		return noName
	}
	return url.PathEscape(escape.Replace(name))
}
