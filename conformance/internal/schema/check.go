// Validation of a value by a definition: how the compiled schema is prepared, and how the library's tree
// of errors becomes a few findings.

package schema

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk/internal/fastpath"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// MaxFindings bounds the findings of one message.
const MaxFindings = 20

// extension names our keyword among those of a compiled schema.
const extension = "acp"

// prepare replaces keywords in a compiled schema, and in all that it refers to, where the library would do
// too much: try every branch of a union, and list every bad element of an array or map. Schemas that it
// shares with definitions in use were prepared with those, and are not changed.
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
	for name, below := range c.Properties {
		s.prepare(below)
		c.Properties[name] = resolve(below)
	}
	k := &keywords{named: c.Properties, patterns: c.PatternProperties, prefix: len(c.PrefixItems), all: s.unevaluated}
	if values, ok := c.AdditionalProperties.(*jsonschema.Schema); ok {
		s.prepare(values)
		k.values, c.AdditionalProperties = resolve(values), nil
	}
	if c.Items2020 != nil {
		s.prepare(c.Items2020)
		k.items, c.Items2020 = resolve(c.Items2020), nil
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

// resolve follows references that add nothing, such as {"allOf": [{"$ref": …}]}: each takes the library as
// long as an object.
func resolve(s *jsonschema.Schema) *jsonschema.Schema {
	for !demands(s) {
		switch {
		case s.Ref != nil && len(s.AllOf) == 0:
			s = s.Ref
		case s.Ref == nil && len(s.AllOf) == 1:
			s = s.AllOf[0]
		default:
			return s
		}
	}
	return s
}

// demands reports whether a schema has keywords that say something about values, beside $ref and allOf.
func demands(s *jsonschema.Schema) bool {
	return s.Always != nil || s.Types != nil || s.Constant != nil || s.Enum != nil || s.Format != "" ||
		s.Not != nil || s.AnyOf != nil || s.OneOf != nil || s.If != nil || s.Extensions != nil ||
		s.RecursiveRef != nil || s.DynamicRef != nil ||
		demandsOfObjects(s) || demandsOfArrays(s) ||
		s.MinLength >= 0 || s.MaxLength >= 0 || s.Pattern != nil ||
		s.ContentEncoding != "" || s.ContentMediaType != "" || s.ContentSchema != nil ||
		s.Minimum != nil || s.ExclusiveMinimum != nil || s.Maximum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil
}

func demandsOfObjects(s *jsonschema.Schema) bool {
	return s.Properties != nil || s.Required != nil || s.MinProperties >= 0 || s.MaxProperties >= 0 ||
		s.PropertyNames != nil || s.RegexProperties || s.PatternProperties != nil || s.AdditionalProperties != nil ||
		s.Dependencies != nil || s.DependentRequired != nil || s.DependentSchemas != nil || s.UnevaluatedProperties != nil
}

func demandsOfArrays(s *jsonschema.Schema) bool {
	return s.MinItems >= 0 || s.MaxItems >= 0 || s.UniqueItems || s.Items != nil || s.AdditionalItems != nil ||
		s.PrefixItems != nil || s.Items2020 != nil || s.Contains != nil || s.UnevaluatedItems != nil
}

// keywords are the replaced keywords of one schema.
type keywords struct {
	unions   []*union
	items    *jsonschema.Schema // what every element of an array must be, but the first ones
	prefix   int                // how many first ones
	values   *jsonschema.Schema // what every member that is neither named nor matched by a pattern must be
	named    map[string]*jsonschema.Schema
	patterns map[*regexp.Regexp]*jsonschema.Schema
	all      bool // all branches of unions are tried: what they say of members and elements matters to others
}

// known reports whether a member is named, or matched by a pattern.
func (k *keywords) known(name string) bool {
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

// keywordsOf returns the replaced keywords of a schema, none rather than nil.
func keywordsOf(s *jsonschema.Schema) *keywords {
	if k, ok := s.Extensions[extension].(*keywords); ok {
		return k
	}
	return &keywords{}
}

// Validate implements jsonschema.ExtSchema. It stops where a message has enough findings.
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
			if k.known(name) {
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

// noName stands for the empty name in a location, where no name is written like it: the library takes an
// empty location for that of the object itself.
const noName = "%"

// escapeLocation writes a member's name as the library does in locations.
func escapeLocation(name string) string {
	if name == "" {
		return noName
	}
	return url.PathEscape(escape.Replace(name))
}

// The requirements that most flaws break: that messages fit the agreed version, and that specified types have no members
// of one's own.
const (
	Agreed = "INI-6"
	Custom = "EXT-2"
)

// flaw is a finding before it is known which message it is about.
type flaw struct {
	rule       string
	pointer    string
	message    string
	definition string
}

// check validates a value by a definition, and then reports the members that the schema does not know.
func (s *Schema) check(name string, v *Value) []flaw {
	if s.surely(name, v) {
		return nil
	}
	return s.flaws(name, v.tree())
}

// surely reports whether check surely finds nothing, in far less time.
func (s *Schema) surely(name string, v *Value) bool {
	d := s.definition(name)
	return d.err == nil && v.document.again == 0 && fastpath.Enabled && d.plan.admits(v)
}

// flaws is check by the library, for a value that may also be none of a message.
func (s *Schema) flaws(name string, v any) []flaw {
	d := s.definition(name)
	if d.err != nil {
		return []flaw{{Agreed, "", finding.Clip(d.err.Error()), name}}
	}
	c := d.schema
	var flaws []flaw
	if err := c.Validate(v); err != nil {
		failure, ok := err.(*jsonschema.ValidationError)
		if !ok {
			return []flaw{{Agreed, "", finding.Clip(err.Error()), name}}
		}
		flaws = flatten(flaws, failure, "", "")
		slices.SortFunc(flaws, func(a, b flaw) int {
			return cmp.Or(
				strings.Compare(a.pointer, b.pointer),
				strings.Compare(a.message, b.message),
				strings.Compare(a.definition, b.definition))
		})
		flaws = slices.CompactFunc(flaws, redundant)
	}
	flaws = append(flaws, unknownMembers(c, v)...)
	if len(flaws) > MaxFindings {
		flaws = flaws[:MaxFindings]
		flaws[MaxFindings-1] = flaw{flaws[MaxFindings-1].rule, "", "more findings are left out", name}
	}
	return flaws
}

// flatten appends the leaves of an error. variant names the union's branch that an error at the
// location within belongs to.
func flatten(flaws []flaw, e *jsonschema.ValidationError, within, variant string) []flaw {
	_, member, own := strings.Cut(e.KeywordLocation, marker)
	if len(e.Causes) == 0 {
		f := flaw{Agreed, instance(e.InstanceLocation), e.Message, definitionOf(e.AbsoluteKeywordLocation)}
		switch {
		case own && member != "":
			f.pointer = Pointer(f.pointer, member)
		case !own:
			f.message = phrase(f.message)
		}
		if variant != "" && within == e.InstanceLocation && !own {
			f.definition = variant
		}
		f.message = finding.Clip(f.message)
		return append(flaws, f)
	}
	if own {
		within, variant = e.InstanceLocation, e.Message
	}
	for _, cause := range e.Causes {
		flaws = flatten(flaws, cause, within, variant)
	}
	return flaws
}

// instance turns the library's location of a value, whose tokens are percent-encoded, into a JSON
// pointer.
func instance(location string) string {
	if location == "" {
		return ""
	}
	tokens := strings.Split(location[1:], "/")
	for i, token := range tokens {
		if token == noName {
			tokens[i] = ""
			continue
		}
		if plain, err := url.PathUnescape(token); err == nil {
			tokens[i] = finding.Clip(plain)
		}
	}
	return "/" + strings.Join(tokens, "/")
}

// phrase rewords the library's most frequent errors.
func phrase(message string) string {
	if names, ok := strings.CutPrefix(message, "missing properties: "); ok {
		noun := "property "
		if strings.Contains(names, ", ") {
			noun = "properties "
		}
		return "missing " + noun + strings.ReplaceAll(names, "'", `"`)
	}
	if rest, ok := strings.CutPrefix(message, "expected "); ok {
		if want, got, ok := strings.Cut(rest, ", but got "); ok {
			return "got " + got + ", want " + want
		}
	}
	if got, want, ok := strings.Cut(message, " is not valid '"); ok {
		const most = 60
		if len(got) > most {
			got = strings.ToValidUTF8(got[:most], "") + "…"
		}
		return "got " + got + ", want " + strings.TrimSuffix(want, "'")
	}
	return message
}

// redundant reports whether a flaw adds nothing to the one before it: a number below its minimum is
// outside its format too.
func redundant(f, before flaw) bool {
	return f.pointer == before.pointer &&
		(f.message == before.message || strings.HasPrefix(f.message, "must be ") && strings.HasPrefix(before.message, "got "))
}
