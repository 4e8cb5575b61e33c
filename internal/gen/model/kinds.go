package model

import "slices"

// Kinds returns the JSON types that the values of a type can have, without duplicates. It includes null only for the
// type Null. It returns none if the values can have any type.
func Kinds(t Type) []string {
	switch t := t.(type) {
	case Basic:
		switch t.Kind {
		case String:
			return []string{"string"}
		case Bool:
			return []string{"boolean"}
		case Float:
			return []string{"number"}
		}
		return []string{"integer"}
	case Slice:
		return []string{"array"}
	case Map, Meta:
		return []string{"object"}
	case Null:
		return []string{"null"}
	case Pointer:
		return Kinds(t.Elem)
	case Named:
		switch d := t.Decl.(type) {
		case *Enum:
			return Kinds(d.Type)
		case *Newtype:
			return Kinds(d.Type)
		case *Union:
			return unionKinds(d)
		}
		return []string{"object"}
	}
	return nil
}

func unionKinds(u *Union) (out []string) {
	for _, v := range u.Variants {
		its := v.Kinds()
		if its == nil {
			return nil
		}
		for _, kind := range its {
			if !slices.Contains(out, kind) {
				out = append(out, kind)
			}
		}
	}
	return out
}

// Kinds is like the function [Kinds], for the values of the variant.
func (v *Variant) Kinds() []string {
	if v.Type == nil {
		return []string{"object"}
	}
	return Kinds(v.Type)
}

// Kind returns the JSON type of the value.
func (f *Fixed) Kind() string {
	switch f.Value[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	}
	return "number"
}
