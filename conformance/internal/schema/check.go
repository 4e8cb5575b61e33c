// Validation of a value by a definition, and the conversion of the library's tree of errors to a few flaws.

package schema

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// check validates a value, in the form of the schema library, by a definition, and also reports the members that the
// schema does not know.
func (s *Schema) check(name string, v any) []flaw {
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

// flatten appends the leaves of an error. variant names the union's branch to which errors at the location within
// belong.
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

// instance converts the library's location of a value, which has percent-encoded tokens, to a JSON pointer.
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

// redundant reports whether a flaw adds nothing to the one before it. For example, a number below its minimum is also
// outside its format.
func redundant(f, before flaw) bool {
	return f.pointer == before.pointer &&
		(f.message == before.message || strings.HasPrefix(f.message, "must be ") && strings.HasPrefix(before.message, "got "))
}
