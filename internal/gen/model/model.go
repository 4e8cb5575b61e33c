// Package model is the intermediate representation between a schema and the generated Go code: plain data, without I/O,
// with all decisions made. Package gen builds it and assigns the names, and package emit writes the code.
package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// Package is one schema as a Go package.
type Package struct {
	// Decls are the declarations in the order of the schema's definitions; what is declared for a
	// part of a definition follows it.
	Decls []Decl
	// Methods are the protocol's methods in the order of their parameters' definitions.
	Methods []*Method
	// Capabilities has the capabilities of each side, as far as they are known.
	Capabilities map[Side]Decl
	// Features are the experimental features, and those that were experimental once, by name.
	Features []*Feature
	// Runtime holds the definitions that the runtime owns, in the order of the schema: the envelopes
	// and what nothing but envelopes uses.
	Runtime []string
}

// Feature is a set of experimental methods, members and variants that a program enables together.
type Feature struct {
	Name         string
	Experimental bool // a part of it is not stable yet
	// Covers are the methods, members and variants, by the names of the schema.
	Covers []string
}

// Go returns the name of the constant that enables the feature.
func (f *Feature) Go() string { return "Feature" + f.Name }

// Decl is a declared Go type: *Struct, *Enum, *Newtype or *Union.
type Decl interface{ Base() *Common }

// Common has the fields that all declarations and variants share.
type Common struct {
	Schema  string // name of the definition, or "" for a part of one
	Pointer string // place in the schema
	Go      string // the Go identifier, set by naming
	Doc     string // the schema's description, as it is

	// Deprecated says that the schema marks it so.
	Deprecated bool
	// Null says that a definition allows null too. Go's type has no place for it: who refers to it does.
	Null bool

	// Experimental is set if the stable schema does not have it.
	Experimental bool
	// Feature is the feature that an experimental variant or value of something stable belongs to.
	Feature *Feature

	// Owner and Part name what has no definition of its own: the declaration that it belongs to, and
	// the property, tag, title or value by which it is known there.
	Owner Decl
	Part  string
}

// Base returns c itself.
func (c *Common) Base() *Common { return c }

// Struct is an object with fixed members.
type Struct struct {
	Common
	Fields []*Field
	// Fixed are the members that always have the same value: they are no fields.
	Fixed []*Fixed
	// Without are the names of members that must not be there.
	Without []string
	// Extra is where members are kept that the schema does not name, nil where they are dropped.
	Extra *Extra
	// Variant is set for the members that one variant of a union adds in place, without a definition
	// of their own.
	Variant *Variant
	// ZeroTest says that the struct is somewhere left out when it is zero, which needs an IsZero.
	ZeroTest bool
}

// Fixed is a required member with one value.
type Fixed struct {
	Pointer string
	JSON    string // the member's name
	Doc     string
	Value   json.RawMessage // a string, a number or a boolean
}

// Extra is the map of the members that the schema allows but does not name.
type Extra struct {
	Pointer string
	Elem    Type   // of their values
	Go      string // the Go field, set by naming
}

// Elsewhere returns the names of members that stand in the object of s but are not its own: of a variant, the tag
// and the members that all variants share.
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

// Names reports whether the values are strings: names of things, to which a later schema may add. Those that
// are not listed are kept. Other scalars must be listed, unless d is open.
func (d *Enum) Names() bool { return d.Type.Kind == String }

// Lists reports whether v, as [EnumValue] has values, is listed.
func (d *Enum) Lists(v any) bool {
	return slices.ContainsFunc(d.Values, func(o *EnumValue) bool { return o.Value == v })
}

// ZeroIsNone reports whether Go's zero value is none of the enum's values, so that it says that nothing is set.
func (d *Enum) ZeroIsNone() bool { return d.Closed() && !d.Lists("") }

// Closed reports whether the values are names of which all that are allowed are listed.
func (d *Enum) Closed() bool { return d.Names() && !d.Open }

// Scalar reports whether values of d are strings, numbers or booleans. Such types have no methods that
// write and read JSON: who has a value of one writes and reads what it is defined over.
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
	// Value is a string, a bool or, of a number, a [Number].
	Value any
}

// Number is a number as Go writes it; what is the same number is the same text.
type Number string

// Newtype is a named type over a scalar, a slice, a map or a raw value.
type Newtype struct {
	Common
	Type Type
}

// Union is a choice between variants. On the wire the members of the chosen variant stand in the same
// object as the common fields and the tag.
type Union struct {
	Common
	// Fields are the members that all variants share; only a union merged with properties has any.
	Fields []*Field
	// Tag is the member whose value names the variant, "" for a union without one.
	Tag string
	// TagNull says that the tag may be null, TagLenient that it may be anything: what is not a string
	// means the same as no tag.
	TagNull, TagLenient bool
	// Variants are in the order of the schema.
	Variants []*Variant
	// Untagged is the variant of a tagged union that has no tag, or nil.
	Untagged *Variant
	// Open says that the schema itself has a place for tags that it does not list.
	Open bool
	// KeptTag is the Go name of the field that keeps a tag beside Untagged, set by naming where
	// KeepsTag.
	KeptTag string
	// Unknown says that a tag without a variant is kept as it came, in a variant of its own. The schema may require
	// UnknownHas of it.
	Unknown    *Variant
	UnknownHas []Member
	// Fallback is the variant of a union without tag that takes any value which is none of the
	// others, or nil.
	Fallback *Variant
	// Nested says that another union has this one as a payload, so that the object holds members
	// which are not this union's.
	Nested bool

	VariantName string // Go name of the sealed interface, set by naming
}

// KeepsTag reports whether any tag may stand beside the members of Untagged: the schema says nothing
// about the tag there, nor has it another place for tags that it does not list.
func (u *Union) KeepsTag() bool {
	if u.Tag == "" || u.Untagged == nil || u.Untagged.Closed || u.Open || u.TagNull {
		return false
	}
	s, ok := u.Untagged.Payload.(*Struct)
	return ok && !slices.Contains(s.Without, u.Tag) && !slices.ContainsFunc(s.Fields, func(f *Field) bool { return f.JSON == u.Tag })
}

// Merged reports whether the union shares its object with common fields.
func (u *Union) Merged() bool { return len(u.Fields) > 0 }

// Names returns the names of the members that the common fields stand for.
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
	for _, v := range u.Variants {
		if v.Type != nil {
			return false
		}
	}
	return true
}

// Member is the name of a member, and the JSON types that its values may be of, none for all.
type Member struct {
	Name  string
	Kinds []string
}

// Variant is one choice of a Union.
type Variant struct {
	Common
	Union *Union
	// Tag is the tag's value, if Tagged says that there is one.
	Tag    string
	Tagged bool
	// Payload is what the variant consists of beside the tag: a *Struct or a *Union, nil for values
	// that are no objects.
	Payload Decl
	// Closed says, of the variant without a tag, that the schema allows no members but those which it names, so
	// that the tag is none of them.
	Closed bool
	// OwnTag says that the payload has the tag among its own members and writes it.
	OwnTag bool
	// Self says that the payload's own type is the variant.
	Self bool
	// Inline says that Payload is declared by this variant. Its schema may refer to the definitions Refs.
	Inline bool
	Refs   []string
	// Type is the value of a variant that is not an object, else nil.
	Type Type
	// Key is the required member that tells an object, or the first item of an array, from the other
	// untagged variants; "" when nothing has to be told apart, or when none of the others being there does.
	Key string
	// KeyValue is the value that the member must have for that, nil if any does.
	KeyValue json.RawMessage
	// Rank is the order in which a decoder asks for Key.
	Rank int
	// Drops are the members of the other untagged variants that this one has no place for.
	Drops []string
	// Room is what Payload nearly always holds by a pointer, so that both are allocated together, or
	// nil.
	Room Decl
	// Constructor is the Go name of the function that makes a union of this variant. It takes the
	// required members of the payload one by one if Spread is set, else the payload.
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

// Presence describes how a member may be absent, and how Go represents that.
type Presence int

const (
	// Required members are always there.
	Required Presence = iota
	// RequiredNull members are always there but may be null: an Opt.
	RequiredNull
	// Plain members may be missing, which is the Go zero value.
	Plain
	// Tri members may be missing, and that is not a value of their type: an Opt. Whether they may
	// also be null is Nullable.
	Tri
)

// Field is a member of an object.
type Field struct {
	Pointer  string
	JSON     string // the member's name
	Go       string // the Go field, set by naming
	Doc      string
	Type     Type
	Presence Presence
	Nullable bool // null is a value of the schema

	// Deprecated says that the schema marks it so.
	Deprecated bool
	// Experimental says that the stable schema has the object, but not this member of it.
	Experimental bool
	// Feature is the feature that an experimental member belongs to.
	Feature *Feature

	// Always says that a Plain member is written even when it is zero.
	Always bool

	// OnError: a bad value counts as absent. OnNull: null counts as empty. SkipItems: bad items of an
	// array are dropped. All three are reported.
	OnError, OnNull, SkipItems bool

	// Default is the schema's default, nil when it has none or when Go's zero value is as good.
	Default json.RawMessage
	// Accessor is the Go name of the method that falls back on Default, set by naming.
	Accessor string

	// Slot numbers the typed members of an object, the required ones first.
	Slot int

	// Flat says that this is no member but a union whose members stand in the same object.
	Flat bool
}

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
	// Format is what is sent must be beyond that; what comes in is taken as it is.
	Format Format
}

// Format is a syntax of strings.
type Format string

// The formats that are checked.
const (
	URI      Format = "uri"
	DateTime Format = "date-time"
)

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

// Nullable is an item of an array or a map that is null or a value of Elem. In Go it is an Opt, as members that
// may be null are: one way to say null, which needs no allocation. An absent one is written as null.
type Nullable struct{ Elem Type }

// Pointer points to a value that would otherwise contain itself; nil is none.
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

// DottedPath returns the path of a capability as overrides and messages have it, such as "sessionCapabilities.list".
func DottedPath(path []*Field) string {
	var names []string
	for _, f := range path {
		names = append(names, f.JSON)
	}
	return strings.Join(names, ".")
}

// Method is a request or a notification of the protocol. A name can be both, and then there are two.
type Method struct {
	Pointer string
	Name    string // on the wire
	Doc     string // the schema's description of the method
	Side    Side   // who handles it
	Params  Decl
	Result  Decl // nil for a notification
	// Experimental says that the stable schema does not have it, and Feature is what it belongs to.
	Experimental bool
	Feature      *Feature
	// NullResult says that the result has no required members, so that null is as good as {}.
	NullResult bool
	// Session is the parameter that holds the session's id, or nil.
	Session *Field

	// Capability is the path of the capability that the handling side must advertise; empty when the
	// method is always there.
	Capability []*Field
	// Needs are what calls need further, by what they say.
	Needs []Need
	// Derived says that the runtime deals with the method itself, so that there is neither handler nor
	// call for it.
	Derived bool
	// CallNote and HandlerNote are what the documentation of the call, and of the handler, says beyond Doc.
	CallNote, HandlerNote string
	// ConnByHand and SessionByHand say that the call of the connection, or of a session, is written by
	// hand.
	ConnByHand, SessionByHand bool
	// UsesAnswer says that the call is unexported, for a hand-written one that does something with the
	// answer.
	UsesAnswer bool

	Go    string // the handler's name, set by naming
	Const string // the name of the constant that holds Name
	Desc  string // the name of the typed descriptor that a facade uses
	Var   string // the name of the one that is for users, in packages without a facade
}

// Need says that calls need a capability of the handling side: all of them, those in which a field is
// set, or those in which it, or an item of it, is a variant. Without a field the parameters are the
// variant.
type Need struct {
	Field      *Field
	Variant    *Variant
	Capability []*Field
}

// Request reports whether the method has an answer.
func (m *Method) Request() bool { return m.Result != nil }
