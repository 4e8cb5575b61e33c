// Schemas without members are converted to the model here: scalars, lists of values, arrays and the values of maps,
// with their bounds, the meaning of their absence, and their defaults.

package gen

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// An enumShape is a schema that lists values.
type enumShape struct {
	kind   string // the type of the values
	null   bool   // null is also listed
	open   bool   // other values of the type are allowed
	values []enumValue
}

type enumValue struct {
	node *schema.Node // of the value, or of the whole list
	at   string
	raw  json.RawMessage
}

// enumOf returns the values that n lists, or nil if it does not list values of one scalar type.
func (b *builder) enumOf(n *schema.Node) *enumShape {
	branches := b.choices(n)
	if len(branches) == 0 {
		branches = []*schema.Node{n}
	}
	shape := &enumShape{}
	listed := false
	for _, br := range branches {
		values, isList := listedValues(br)
		kinds, null := br.Kinds()
		switch {
		case len(br.Properties) > 0 || len(br.AllOf) > 0 || br.Ref() != "":
			return nil
		case isList:
			listed = true
		case len(kinds) == 0 && null:
			shape.null = true
		case len(kinds) == 1 && !null && shape.widen(kinds[0]):
			shape.open = true
		default:
			return nil
		}
		for _, v := range values {
			switch kind := schema.KindOfValue(v.raw); {
			case kind == "null":
				shape.null = true
			case slices.Contains(kinds, "number") && kind == "integer" && shape.widen("number"), shape.widen(kind):
				shape.values = append(shape.values, v)
			default:
				return nil
			}
		}
	}
	if !listed || shape.open && len(n.OneOf) > 0 { // a oneOf would forbid the listed values
		return nil
	}
	return shape
}

// choices returns the branches of n in their canonical form.
func (b *builder) choices(n *schema.Node) []*schema.Node {
	var out []*schema.Node
	for _, br := range n.Branches() {
		out = append(out, b.shapes.Of(br))
	}
	return out
}

// listedValues returns the values of const or enum, if n has one of them.
func listedValues(n *schema.Node) (values []enumValue, ok bool) {
	if n.Has("const") {
		return []enumValue{{n, n.Pointer, n.Const}}, true
	}
	for i, raw := range n.Enum {
		values = append(values, enumValue{n, n.At("enum") + "/" + strconv.Itoa(i), raw})
	}
	return values, n.Has("enum")
}

// widen combines values of another kind with those of the shape, and reports whether that is possible. Integers can be
// combined with numbers.
func (s *enumShape) widen(kind string) bool {
	switch {
	case s.kind == "" && isScalar(kind), s.kind == "integer" && kind == "number":
		s.kind = kind
	case s.kind == "number" && kind == "integer":
	default:
		return s.kind == kind
	}
	return true
}

// scalars has the kinds of values that contain no others, with the kind of the keywords that restrict them.
var scalars = map[string]struct {
	name   string
	bounds model.Restricted // -1 for none
}{
	"string": {"a string", model.Strings}, "boolean": {"a boolean", -1},
	"integer": {"an integer", model.Numbers}, "number": {"a number", model.Numbers},
}

func isScalar(kind string) bool { return scalars[kind].name != "" }

func (b *builder) fillEnum(d *model.Enum, n *schema.Node) {
	shape := b.enumOf(n)
	d.Open = shape.open
	if len(shape.values) == 0 {
		b.problem(n.At("enum"), "no value is listed")
		return
	}
	d.Type = b.scalar(shape.kind, shape.values[0].node)
	listed := map[any]bool{}
	for _, v := range shape.values {
		value := &model.EnumValue{Common: model.Common{Pointer: v.at, Owner: d}}
		if v.node != n && v.node.Const != nil {
			value.Doc, value.Part, value.Deprecated = v.node.Description, v.node.Title, v.node.Deprecated
		}
		var err error
		if value.Value, err = model.ScalarOf(v.raw, d.Type); err != nil {
			b.problem(v.at, "%v", err)
			continue
		}
		if name := nameOf(value.Value); value.Part == "" || shape.kind == "string" {
			value.Part = name
		}
		if listed[value.Value] {
			b.problem(v.at, "the value %s is listed twice", v.raw)
		}
		listed[value.Value] = true
		d.Values = append(d.Values, value)
	}
}

// nameOf returns the name of a value.
func nameOf(v any) string {
	switch v := v.(type) {
	case model.Number:
		text := strings.NewReplacer(".", " point ", "e-", " e minus ", "e+", " e ").Replace(string(v))
		if number, negative := strings.CutPrefix(text, "-"); negative {
			return "minus" + number
		}
		return "value" + text
	case bool:
		return strconv.FormatBool(v)
	case string:
		if v != "" {
			return v
		}
	}
	return "empty"
}

func (b *builder) array(n *schema.Node, owner model.Decl, part string) model.Type {
	if n.PrefixItems != nil {
		b.problem(n.At("prefixItems"), "items of different schemas have no Go shape")
		return model.Any{}
	}
	t := model.Slice{Elem: model.Any{}, Bounds: b.bounds(n, model.Slices, model.Basic{})}
	if n.Items != nil {
		t.Elem = b.element(n.Items, owner, part)
	}
	return t
}

// element is like typeOf, for items and the values of maps.
func (b *builder) element(n *schema.Node, owner model.Decl, part string) model.Type {
	t, null := b.typeOf(n, owner, part)
	if null && t != (model.Type)(model.Any{}) {
		return model.Nullable{Elem: t}
	}
	return t
}

// scalar returns the type of scalars of a kind, with the bounds of n that are narrower than the type.
func (b *builder) scalar(kind string, n *schema.Node) (t model.Basic) {
	switch kind {
	case "string":
		t.Kind = model.String
	case "boolean":
		t.Kind = model.Bool
	case "integer":
		t = b.integer(n)
	default:
		t.Kind = model.Float
	}
	t.Bounds = b.bounds(n, scalars[kind].bounds, t)
	return t
}

// bounds returns the restrictions of n on values of a kind. For numbers, t is the type.
func (b *builder) bounds(n *schema.Node, of model.Restricted, t model.Basic) (out model.Bounds) {
	for i, k := range model.BoundKeywords {
		if k.Of != of || !n.Has(k.Keyword) {
			continue
		}
		limit, err := limitOf(k, n, t)
		if err != nil {
			b.problem(n.At(k.Keyword), "%v", err)
		}
		out[i] = limit
	}
	return out
}

// limitOf returns the value of a keyword as a Go literal, or "" if it restricts nothing.
func limitOf(k model.BoundKeyword, n *schema.Node, t model.Basic) (string, error) {
	raw := n.Value(k.Keyword)
	switch k.Limit {
	case model.Unchecked:
		return string(raw), nil
	case model.Names:
		names, err := json.Marshal(append([]string{}, n.Required...))
		return string(names), err
	}
	r, err := model.Rational(raw)
	if err != nil {
		return "", err
	}
	if k.Limit == model.Least || k.Limit == model.Most {
		return countOf(k.Limit, r)
	}
	if t.Kind == model.Float {
		limit, err := model.NumberOf(r, t, r.RatString())
		return string(limit), err
	}
	return integerLimit(k.Limit, r, t)
}

// countOf returns a limit of a number of items, members or characters.
func countOf(limit model.Limit, r *big.Rat) (string, error) {
	switch {
	case r.Cmp(big.NewRat(math.MaxInt32, 1)) > 0: // the maximum of int on all platforms
		if limit == model.Most {
			return "", nil
		}
		return "", fmt.Errorf("nothing is that large")
	case limit == model.Least && r.Sign() == 0:
		return "", nil
	}
	return r.Num().String(), nil
}

// integerLimit returns a bound as the integer that is equivalent for integers, or "" if all values of the type satisfy
// it.
func integerLimit(limit model.Limit, r *big.Rat, t model.Basic) (string, error) {
	least, most := t.Limits()
	floor := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean, and the denominator is positive
	ceil := new(big.Int).Set(floor)
	if !r.IsInt() {
		ceil.Add(ceil, big.NewInt(1))
	}
	var bound *big.Int
	var all, none bool
	switch limit {
	case model.Lower:
		bound, all, none = ceil, ceil.Cmp(least) <= 0, ceil.Cmp(most) > 0
	case model.Above:
		bound, all, none = floor, floor.Cmp(least) < 0, floor.Cmp(most) >= 0
	case model.Upper:
		bound, all, none = floor, floor.Cmp(most) >= 0, floor.Cmp(least) < 0
	case model.Below:
		bound, all, none = ceil, ceil.Cmp(most) > 0, ceil.Cmp(least) <= 0
	default:
		return "", fmt.Errorf("the keyword is not known")
	}
	switch {
	case none:
		return "", fmt.Errorf("no %s keeps to it", t.Go())
	case all:
		return "", nil
	}
	return bound.String(), nil
}

// integer returns the Go type of an integer by its format.
func (b *builder) integer(n *schema.Node) model.Basic {
	if t, ok := integers[n.Format]; ok {
		return t
	}
	if n.Format == "" {
		wide := integers["int64"]
		_, signed := wide.Limits()
		least, err := model.Rational(n.Value("minimum"))
		most, err2 := model.Rational(n.Value("maximum"))
		if err == nil && err2 == nil && least.Sign() >= 0 && most.Cmp(new(big.Rat).SetInt(signed)) > 0 {
			return integers["uint64"]
		}
		return wide
	}
	b.problem(n.Pointer, "unknown format %q of an integer", n.Format)
	return integers["int64"]
}

// integers has the types of integers by their formats.
var integers = map[string]model.Basic{
	"int8": {Kind: model.Int, Bits: 8}, "int16": {Kind: model.Int, Bits: 16},
	"int32": {Kind: model.Int, Bits: 32}, "int64": {Kind: model.Int, Bits: 64},
	"uint8": {Kind: model.Uint, Bits: 8}, "uint16": {Kind: model.Uint, Bits: 16},
	"uint32": {Kind: model.Uint, Bits: 32}, "uint64": {Kind: model.Uint, Bits: 64}, "uint": {Kind: model.Uint, Bits: 64},
}

// presence determines how Go represents the absence of f.
func (b *builder) presence(f *model.Field) {
	n := b.nodes[f]
	if n == nil {
		return // the builder added it, complete
	}
	_, raw := f.Type.(model.Any)
	_, meta := f.Type.(model.Meta)
	switch {
	case f.Presence == model.Required:
		if f.Nullable && !raw && !meta {
			f.Presence = model.RequiredNull
		}
	case raw || meta:
		f.Presence = model.Plain
	case f.Nullable:
		f.Presence = model.Tri
	case b.zeroMeansAbsent(f, n):
		f.Presence = model.Plain
		if named, ok := f.Type.(model.Named); ok {
			if s, ok := named.Decl.(*model.Struct); ok {
				markZeroTest(s)
			}
		}
	}
	absent := f.Presence == model.Plain || f.Presence == model.Tri
	value := b.defaultOf(n)
	if !absent || value == nil || string(value) == "null" || !f.Opt() && isZero(value, f.Type) {
		return
	}
	f.Default = value
	f.Value = b.value(f.Type, value, f.Pointer+"/default")
}

// defaultOf returns the default of a schema, which can be that of the definition that it refers to.
func (b *builder) defaultOf(n *schema.Node) json.RawMessage {
	for n.Default == nil {
		form := b.shapes.Of(n)
		if form == nil || form.Ref() == "" {
			return nil
		}
		n = b.doc.Def(form.Ref())
	}
	return n.Default
}

// zeroMeansAbsent reports whether Go's zero value of an optional member that cannot be null means the same as its
// absence.
func (b *builder) zeroMeansAbsent(f *model.Field, n *schema.Node) bool {
	switch t := f.Type.(type) {
	case model.Slice, model.Map, model.Pointer:
		return true
	case model.Basic:
		return t.Kind == model.Bool && string(n.Default) == "false"
	case model.Named:
		switch d := t.Decl.(type) {
		case *model.Enum:
			return d.ZeroIsNone()
		case *model.Struct:
			return n.Default != nil && isZero(n.Default, t)
		}
	}
	return false
}

// isZero reports whether a decoder returns Go's zero value for raw. It does not distinguish nil and empty.
func isZero(raw json.RawMessage, t model.Type) bool {
	switch t := t.(type) {
	case model.Basic:
		v, err := model.ScalarOf(raw, t)
		return err == nil && (v == "" || v == false || v == model.Number("0"))
	case model.Slice, model.Map, model.Meta:
		s := string(raw)
		return s == "[]" || s == "{}"
	case model.Named:
		s, ok := t.Decl.(*model.Struct)
		var members map[string]json.RawMessage
		if !ok || json.Unmarshal(raw, &members) != nil || slices.ContainsFunc(s.Fields, (*model.Field).Required) {
			return false
		}
		for name, value := range members {
			i := slices.IndexFunc(s.Fields, func(f *model.Field) bool { return f.JSON == name })
			if i < 0 || s.Fields[i].Nullable || !isZero(value, s.Fields[i].Type) {
				return false
			}
		}
		return true
	}
	return false
}

// value returns a default as a value of its type. It reports one that is none, or that Go cannot express.
func (b *builder) value(t model.Type, raw json.RawMessage, at string) *model.Value {
	v, err := &model.Value{Type: t}, error(nil)
	wrong := fmt.Errorf("the default %s has no Go shape", raw)
	switch t := t.(type) {
	case model.Basic:
		v.Scalar, err = model.ScalarOf(raw, t)
	case model.Any:
		v.Scalar = string(raw)
	case model.Null:
		if string(raw) != "null" {
			err = wrong
		}
	case model.Nullable:
		v.Of = append(v.Of, b.nullableValue(t.Elem, raw, at, true))
	case model.Pointer:
		v.Of = append(v.Of, b.value(t.Elem, raw, at))
	case model.Slice:
		var items []json.RawMessage
		if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
			err = wrong
		}
		for i, item := range items {
			v.Of = append(v.Of, b.value(t.Elem, item, at+"/"+strconv.Itoa(i)))
		}
	case model.Map:
		b.memberValues(v, raw, at, func(string) *model.Field { return &model.Field{Type: t.Elem} })
	case model.Meta:
		b.memberValues(v, raw, at, func(string) *model.Field { return &model.Field{Type: model.Any{}} })
	case model.Named:
		switch d := t.Decl.(type) {
		case *model.Enum:
			if v.Scalar, err = model.ScalarOf(raw, d.Type); err != nil || !d.Open && !d.Lists(v.Scalar) {
				err = wrong
			}
		case *model.Newtype:
			v.Of = append(v.Of, b.value(d.Type, raw, at))
		case *model.Struct:
			b.memberValues(v, raw, at, func(name string) *model.Field {
				if i := slices.IndexFunc(d.Fields, func(f *model.Field) bool { return f.JSON == name }); i >= 0 {
					return d.Fields[i]
				}
				return nil
			})
			for _, f := range d.Fields {
				if f.Required() && !slices.Contains(v.Names, f.JSON) {
					b.problem(at, "the default lacks the member %q", f.JSON)
				}
			}
		default:
			err = errors.New("a default that is one of the variants of a union has no Go shape")
		}
	default:
		err = wrong
	}
	if err != nil {
		b.problem(at, "%v", err)
	}
	return v
}

// nullableValue is like value, but the default may be null.
func (b *builder) nullableValue(t model.Type, raw json.RawMessage, at string, nullable bool) *model.Value {
	if nullable && string(raw) == "null" {
		return &model.Value{Type: t, Null: true, Scalar: "null"}
	}
	return b.value(t, raw, at)
}

// memberValues adds the members of a default to its value. field returns nil for a member that the type does not have.
func (b *builder) memberValues(v *model.Value, raw json.RawMessage, at string, field func(string) *model.Field) {
	var members map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
		b.problem(at, "the default %s has no Go shape", raw)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := at + "/" + schema.Escape(name)
		v.Names = append(v.Names, name)
		f := field(name)
		if f == nil {
			b.problem(at, "the type has no such member")
			continue
		}
		v.Of = append(v.Of, b.nullableValue(f.Type, members[name], at, f.Nullable))
	}
}

// markZeroTest gives an IsZero method to s and to every struct whose method s needs.
func markZeroTest(s *model.Struct) {
	if s.ZeroTest {
		return
	}
	s.ZeroTest = true
	for _, f := range s.Fields {
		if named, ok := f.Type.(model.Named); ok && !f.Opt() {
			if inner, ok := named.Decl.(*model.Struct); ok {
				markZeroTest(inner)
			}
		}
	}
}
