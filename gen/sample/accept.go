// This file owns which values bindings accept: what the schema accepts, and variants and names that
// only a later schema knows.

package sample

import (
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"time"
)

// Sendable reports whether v may be sent as a value of the definition: it is one, read without leniency,
// and its strings have their formats.
func (s *Schema) Sendable(definition string, v any) bool {
	strict := &Schema{defs: s.defs, formats: true}
	return strict.accepts(s.defs[definition], v)
}

// accepts reports whether v, read without leniency, is a value of n.
func (s *Schema) accepts(n *node, v any) bool {
	if n.anything() {
		return true
	}
	n = s.target(n)
	if v == nil && slices.ContainsFunc(n.branches, isNull) {
		return true
	}
	look := s.look(n, v)
	if look.invalid {
		return false
	}
	if object, ok := v.(map[string]any); ok && len(look.objects) > 0 {
		for _, part := range look.objects {
			for _, name := range part.required {
				if _, ok := object[name]; !ok {
					return false
				}
			}
			for name, p := range part.props {
				if value, ok := object[name]; ok && !s.acceptsMember(p, value) {
					return false
				}
			}
		}
		return true
	}
	if len(look.objects) > 0 {
		return false
	}
	if look.leaf == nil {
		return look.opaque
	}
	return s.acceptsLeaf(look.leaf, v)
}

// acceptsMember is accepts for a member; a tag that is a string was accepted when its branch was
// chosen.
func (s *Schema) acceptsMember(p *node, v any) bool {
	if _, ok := p.constant(); ok {
		_, isString := v.(string)
		return isString
	}
	return s.accepts(p, v)
}

func (s *Schema) acceptsLeaf(n *node, v any) bool {
	if n.enumerates() {
		first := n
		if len(n.branches) > 0 {
			first = n.branches[0]
		}
		number, ok := v.(json.Number)
		return len(first.types) == 0 || isKind(first.types[0], v) && (!ok || fits(first.format, number))
	}
	if !slices.ContainsFunc(n.types, func(t string) bool { return isKind(t, v) }) {
		return false
	}
	if !n.within(v) {
		return false
	}
	switch v := v.(type) {
	case string:
		return (n.pattern == nil || n.pattern.MatchString(v)) && (!s.formats || hasFormat(n.format, v))
	case json.Number:
		return (!slices.Contains(n.types, "integer") || fits(n.format, v))
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !s.accepts(n.items, item) })
	case map[string]any:
		for _, value := range v {
			if !s.accepts(n.values, value) {
				return false
			}
		}
	}
	return true
}

func hasFormat(format, v string) bool {
	switch format {
	case "uri":
		u, err := url.Parse(v)
		return err == nil && u.IsAbs()
	case "date-time":
		_, err := time.Parse(time.RFC3339, v)
		return err == nil
	}
	return true
}

func isKind(kind string, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	case json.Number:
		return kind == "number" || kind == "integer" && exact(v).IsInt()
	}
	return false
}

// exact returns the value of a number.
func exact(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("not a number: " + n)
	}
	return r
}

// limits returns the least and the greatest integer of a format.
func limits(format string) (least, most *big.Int) {
	bits, signed := uint(64), true
	switch format {
	case "int8":
		bits = 8
	case "int16":
		bits = 16
	case "int32":
		bits = 32
	case "uint8":
		bits, signed = 8, false
	case "uint16":
		bits, signed = 16, false
	case "uint32":
		bits, signed = 32, false
	case "uint64", "uint":
		signed = false
	}
	one := big.NewInt(1)
	if !signed {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, bits), one)
	}
	most = new(big.Int).Lsh(one, bits-1)
	return new(big.Int).Neg(most), new(big.Int).Sub(most, one)
}

func fits(format string, n json.Number) bool {
	r := exact(n)
	least, most := limits(format)
	return r.IsInt() && r.Num().Cmp(least) >= 0 && r.Num().Cmp(most) <= 0
}
