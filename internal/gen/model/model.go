// Package model is the intermediate representation between a schema and the generated Go code. It is plain data,
// without I/O, in which all decisions have been made. Package gen builds it and assigns the names, and package emit
// writes the code.
package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// Package is one schema as a Go package.
type Package struct {
	// Decls has the declarations in the order of the schema's definitions. Declarations for parts of a definition
	// follow that of the definition.
	Decls []Decl
	// Methods has the protocol's methods in the order of the definitions of their parameters.
	Methods []*Method
	// Capabilities has the known capabilities of each side.
	Capabilities map[Side]Decl
	// Features has the features that are experimental, or once were, sorted by name.
	Features []*Feature
}

// Feature is a set of experimental methods, members and variants that a program enables together.
type Feature struct {
	Name         string
	Bit          int  // of its constant
	Experimental bool // a part of it is not stable yet
	// Covers has the methods, members and variants, as the schema names them.
	Covers []string
}

// Go returns the name of the constant that enables the feature.
func (f *Feature) Go() string { return "Feature" + f.Name }

// Decl is a declared Go type: *Struct, *Enum, *Newtype or *Union.
type Decl interface{ Base() *Common }

// Common has the fields that all declarations and their members, values and variants share.
type Common struct {
	Schema  string // name of the definition, or "" for a part of one
	Pointer string // JSON pointer of its place in the schema
	Go      string // the Go identifier, set by naming
	Doc     string // the schema's description

	// Deprecated is set if the schema marks it as deprecated.
	Deprecated bool
	// Null is set if a definition also allows null. The Go type cannot represent null, so references to it do.
	Null bool

	// Experimental is set if the stable schema does not have it. A member or value is so only in what is stable itself.
	Experimental bool
	// Feature is the feature of an experimental part of a stable declaration.
	Feature *Feature

	// Owner and Part identify something without a definition of its own: Owner is the declaration that it belongs to,
	// and Part is the property, tag, title or value that identifies it there.
	Owner Decl
	Part  string
}

// Base returns c itself.
func (c *Common) Base() *Common { return c }

// Struct is an object with fixed members.
type Struct struct {
	Common
	Fields []*Field
	// Fixed has the members that always have the same value. They are not fields.
	Fixed []*Fixed
	// Without has the names of members that must be absent.
	Without []string
	// Extra holds the members that the schema does not name. It is nil if they are dropped.
	Extra *Extra
	// Variant is set for the members that one variant of a union adds in place, without a definition of their own.
	Variant *Variant
	// ZeroTest is set if the struct is left out somewhere when it is zero, and therefore needs the method IsZero.
	ZeroTest bool
}

// Fixed is a required member with one value.
type Fixed struct {
	JSON  string          // the member's name
	Value json.RawMessage // a string, a number or a boolean
}

// Extra is the map of the members that the schema allows but does not name.
type Extra struct {
	Pointer string
	Elem    Type   // of their values
	Go      string // the Go field, set by naming
}

// Elsewhere returns the names of the members in the object of s that are not members of s itself. For a variant, these
// are the tag and the members that all variants share.
func (s *Struct) Elsewhere() []string {
	if s.Variant == nil {
		return nil
	}
	u := s.Variant.Union
	names := u.Names()
	if u.Tag != "" && !slices.ContainsFunc(s.Fields, func(f *Field) bool { return f.JSON == u.Tag }) {
		names = append([]string{u.Tag}, names...)
	}
	return names
}

// Enum is a named scalar type with known values.
type Enum struct {
	Common
	Type   Basic
	Open   bool // the schema itself allows other values
	Values []*EnumValue
}

// Names reports whether the values are strings. Such values are names, and a later schema may add some, so unlisted
// ones are kept. Values of other types must be listed, unless d is open.
func (d *Enum) Names() bool { return d.Type.Kind == String }

// Lists reports whether v, represented as in [EnumValue], is listed.
func (d *Enum) Lists(v any) bool {
	return slices.ContainsFunc(d.Values, func(o *EnumValue) bool { return o.Value == v })
}

// ZeroIsNone reports whether Go's zero value is not one of the enum's values, and therefore means that no value is set.
func (d *Enum) ZeroIsNone() bool { return d.Closed() && !d.Lists("") }

// Closed reports whether the values are strings and all allowed values are listed.
func (d *Enum) Closed() bool { return d.Names() && !d.Open }

// Scalar reports whether values of d are strings, numbers or booleans. Such types do not have methods that encode and
// decode JSON. The code that uses a value of such a type encodes and decodes it as the underlying type.
func Scalar(d Decl) bool {
	switch d := d.(type) {
	case *Enum:
		return true
	case *Newtype:
		_, ok := d.Type.(Basic)
		return ok
	}
	return false
}

// EnumValue is one known value of an Enum.
type EnumValue struct {
	Common
	// Value is a string, a bool or, for numbers, a [Number].
	Value any
}

// Number is a number in Go's notation. Equal numbers have the same text.
type Number string

// Newtype is a named type over a scalar, a slice, a map or a raw value.
type Newtype struct {
	Common
	Type Type
}

// Union is a choice between variants. On the wire, the members of the chosen variant are in the same object as the
// common fields and the tag.
type Union struct {
	Common
	// Fields has the members that all variants share. Only a union merged with properties has any.
	Fields []*Field
	// Tag is the name of the member whose value identifies the variant, or "" for a union without a tag.
	Tag string
	// TagNull is set if the tag can be null, TagLenient if it can be any value. A tag that is not a string then means
	// the same as no tag.
	TagNull, TagLenient bool
	// Variants has the variants in the order of the schema.
	Variants []*Variant
	// Untagged is the variant of a tagged union that has no tag, or nil.
	Untagged *Variant
	// Open is set if the schema itself provides for tags that it does not list.
	Open bool
	// KeptTag is the Go name of the field that keeps a tag next to Untagged, set by naming if KeepsTag reports true.
	KeptTag string
	// Unknown is the variant that keeps values with an unlisted tag unchanged, or nil. The schema can require that such
	// values have the members UnknownHas.
	Unknown    *Variant
	UnknownHas []Member
	// Fallback is the variant of an untagged union that accepts any value that is not one of the other variants, or
	// nil.
	Fallback *Variant

	VariantName string // Go name of the sealed interface, set by naming
}

// KeepsTag reports whether any tag can occur next to the members of Untagged. This is the case if the schema does not
// mention the tag there, and does not provide elsewhere for tags that it does not list.
func (u *Union) KeepsTag() bool {
	if u.Tag == "" || u.Untagged == nil || u.Untagged.Closed || u.Open || u.TagNull {
		return false
	}
	s, ok := u.Untagged.Payload.(*Struct)
	return ok && !slices.Contains(s.Without, u.Tag) &&
		!slices.ContainsFunc(s.Fields, func(f *Field) bool { return f.JSON == u.Tag })
}

// Merged reports whether the union shares its object with common fields.
func (u *Union) Merged() bool { return len(u.Fields) > 0 }

// Names returns the names of the members that the common fields represent.
func (u *Union) Names() []string {
	var names []string
	for _, f := range u.Fields {
		if !f.Flat {
			names = append(names, f.JSON)
			continue
		}
		for _, v := range f.Type.(Named).Decl.(*Union).Variants {
			for _, inner := range v.Payload.(*Struct).Fields {
				names = append(names, inner.JSON)
			}
		}
	}
	return names
}

// Objects reports whether every variant is an object, so that the union's members can be written into
// an object that is already open.
func (u *Union) Objects() bool {
	return !slices.ContainsFunc(u.Variants, func(v *Variant) bool { return v.Type != nil })
}

// Member is the name of a member and the JSON types that its values can have. No types means any type.
type Member struct {
	Name  string
	Kinds []string
}

// Variant is one choice of a Union.
type Variant struct {
	Common
	Union *Union
	// Tag is the value of the tag, if Tagged is set.
	Tag    string
	Tagged bool
	// Payload is the content of the variant apart from the tag: a *Struct or a *Union, or nil for values that are not
	// objects.
	Payload Decl
	// Closed is set on the variant without a tag if the schema allows only the members that it names there, and the tag
	// is not one of them.
	Closed bool
	// OwnTag is set if the payload has the tag among its own members and encodes it.
	OwnTag bool
	// Self is set if the payload's own type is the variant.
	Self bool
	// Inline is set if this variant declares Payload. Its schema may refer to the definitions Refs.
	Inline bool
	Refs   []string
	// Type is the type of a variant whose values are not objects, or nil.
	Type Type
	// Key is the required member that distinguishes an object, or the first item of an array, from the other untagged
	// variants. It is "" if there is nothing to distinguish, or if the variant is the one that remains when none of the
	// others matches.
	Key string
	// KeyValue is the value that Key must have for that, or nil if any value will do.
	KeyValue json.RawMessage
	// Rank is the position of the variant in the order in which a decoder looks for Key.
	Rank int
	// Drops has the members of the other untagged variants that this variant does not keep.
	Drops []string
	// Room is the declaration that Payload nearly always points to, so that both are allocated together, or nil.
	Room Decl
	// Constructor is the Go name of the function that creates a union of this variant. It has a parameter for each
	// required member of the payload if Spread is set, and otherwise one for the payload.
	Constructor string
	Spread      bool
}

// Fields returns the members of an object, or those that all variants of a union share.
func Fields(d Decl) []*Field {
	switch d := d.(type) {
	case *Struct:
		return d.Fields
	case *Union:
		return d.Fields
	}
	return nil
}

// Presence describes how a member can be absent, and how Go represents that.
type Presence int

const (
	// Required members are always present.
	Required Presence = iota
	// RequiredNull members are always present but can be null. In Go they are an Opt.
	RequiredNull
	// Plain members can be absent, which Go's zero value represents.
	Plain
	// Tri members can be absent, which is not a value of their type. In Go they are an Opt. Nullable tells whether they
	// can also be null.
	Tri
)

// Field is a member of an object.
type Field struct {
	Common
	JSON     string // the member's name
	Type     Type
	Presence Presence
	Nullable bool // the schema allows null

	// Always is set if a Plain member is encoded even when it is zero.
	Always bool

	// OnError means that an invalid value counts as absent, OnNull that null counts as empty, and SkipItems that
	// invalid items of an array are dropped. All three are reported.
	OnError, OnNull, SkipItems bool

	// Default is the schema's default, or nil if it has none or Go's zero value is equivalent. Value is the same as a
	// value of Type.
	Default json.RawMessage
	Value   *Value
	// Accessor is the Go name of the method that falls back to Default, set by naming.
	Accessor string

	// Flat is set if this is not a member but a union whose members are in the same object.
	Flat bool
}

// Value is a JSON value of a type.
type Value struct {
	Type   Type
	Null   bool     // the value is null, which is not of the type
	Scalar any      // of a Basic or Enum, as in [EnumValue]; the text of an Any
	Of     []*Value // the items or members, or the value of the element type
	Names  []string // of the members
}

// Required reports whether the member is always present.
func (f *Field) Required() bool { return f.Presence == Required || f.Presence == RequiredNull }

// Opt reports whether the field is an Opt of its type.
func (f *Field) Opt() bool { return f.Presence == Tri || f.Presence == RequiredNull }

// Type is the type of a field, an item or a value: Basic, Any, Meta, Null, Named, Runtime, Slice, Map, Nullable
// or Pointer.
type Type interface{ isType() }

// Kind is a kind of Basic.
type Kind int

// The kinds of Basic.
const (
	String Kind = iota
	Bool
	Int
	Uint
	Float
)

// Basic is one of Go's basic types.
type Basic struct {
	Kind Kind
	Bits int // of an Int or Uint

	Bounds Bounds
}

// Any is a JSON value that is kept unchanged.
type Any struct{}

// Meta is the _meta member.
type Meta struct{}

// Null is the type whose only value is null.
type Null struct{}

// Named is a declared type.
type Named struct{ Decl Decl }

// Runtime is a type that the runtime declares in place of a definition: RuntimeID or RuntimeError.
type Runtime struct {
	Name string
	Null bool // the definition of an id allows null
}

// The names of declarations in the runtime.
const (
	RuntimeID    = "ID"
	RuntimeError = "Error"
)

// Slice is an array of Elem.
type Slice struct {
	Elem   Type
	Bounds Bounds
}

// Map is an object whose members all have the type Elem.
type Map struct {
	Elem   Type
	Bounds Bounds
}

// Nullable is an item of an array or a map that is null or a value of Elem. In Go it is an Opt, like members that can
// be null, so that there is one way to represent null, which needs no allocation. An absent item is encoded as null.
type Nullable struct{ Elem Type }

// Pointer points to a value that would otherwise contain itself. nil means that there is no value.
type Pointer struct{ Elem Named }

func (Basic) isType()    {}
func (Any) isType()      {}
func (Meta) isType()     {}
func (Null) isType()     {}
func (Named) isType()    {}
func (Runtime) isType()  {}
func (Slice) isType()    {}
func (Map) isType()      {}
func (Nullable) isType() {}
func (Pointer) isType()  {}

// Side is the side that handles a method.
type Side string

// The sides that schemas name.
const (
	Agent    Side = "agent"
	Client   Side = "client"
	Both     Side = "both"
	Protocol Side = "protocol"
	Proxy    Side = "proxy"
)

// DottedPath returns the path of a capability in the notation of overrides and messages, such as
// "sessionCapabilities.list".
func DottedPath(path []*Field) string {
	var names []string
	for _, f := range path {
		names = append(names, f.JSON)
	}
	return strings.Join(names, ".")
}

// Method is a request or a notification of the protocol. If a name is both, there are two Methods.
type Method struct {
	Pointer string
	Name    string // on the wire
	Doc     string // the schema's description of the method
	Side    Side   // the side that handles it
	Params  Decl
	Result  Decl // nil for a notification
	// Experimental is set if the stable schema does not have the method. Feature is the feature that it belongs to.
	Experimental bool
	Feature      *Feature
	// NullResult is set if the result has no required members, so that null is equivalent to {}.
	NullResult bool
	// Session is the parameter that holds the session's id, or nil.
	Session *Field

	// Capability is the path of the capability that the handling side must advertise. It is empty if the method is
	// always available.
	Capability []*Field
	// Needs has the further capabilities that calls need, depending on their content.
	Needs []Need
	// Derived is set if the runtime handles the method itself, so that there is neither a handler nor a call for it.
	Derived bool
	// CallNote and HandlerNote are text that the documentation of the call and of the handler has in addition to Doc.
	CallNote, HandlerNote string
	// ConnByHand and SessionByHand are set if the call of the connection or of a session is hand-written.
	ConnByHand, SessionByHand bool
	// UsesAnswer is set if the call is unexported, because a hand-written call around it processes the answer.
	UsesAnswer bool

	Go    string // the handler's name, set by naming
	Const string // the name of the constant that holds Name
	Desc  string // the name of the typed descriptor that a facade uses
	Var   string // the name of the descriptor for users, in packages without a facade
}

// Need says which calls need a capability of the handling side: all calls, those in which Field is set, or those in
// which Field, or an item of it, is the variant Variant. Without Field, the parameters are the variant.
type Need struct {
	Field      *Field
	Variant    *Variant
	Capability []*Field
}

// Request reports whether the method has an answer.
func (m *Method) Request() bool { return m.Result != nil }
