package schema

import "github.com/santhosh-tekuri/jsonschema/v5"

// resolve follows references that add nothing, such as {"allOf": [{"$ref": …}]}, because each of them costs the library
// as much time as an object.
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

// demands reports whether a schema has keywords other than $ref and allOf that restrict values.
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

// anything reports whether a schema allows every value, as those of raw input and extensions do.
func anything(s *jsonschema.Schema) bool {
	if s.Always != nil {
		return *s.Always
	}
	return s.Ref == nil && len(s.AllOf) == 0 && !demands(s)
}
