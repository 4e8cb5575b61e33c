package codec

import (
	"encoding/json"
	"reflect"
	"unsafe"
)

// Variants has the variants of a union, which a member distinguishes: the tag.
type Variants struct {
	Of      string    // the union
	Tag     string    // the name of the tag
	Names   []string  // of the members that all variants have, if the union has fields for some
	List    []Variant // the variants by the value of the tag
	Unknown any       // a nil pointer to the type of other variants, which is an [Unknown]
}

// Variant is one of [Variants].
type Variant struct {
	Tag string // the value of the tag
	As  any    // a nil pointer to the variant's type
	// By is a nil pointer to the type, with the same fields, that encodes and decodes the variant without its tag. It is
	// nil if the tags of the fields say how.
	By    any
	Union bool   // By is a union
	Off   uint64 // the bit of the feature that the variant belongs to, or 0
}

// Unknown is a variant of a union that the schema does not list: one of a newer version or, if its tag begins with an
// underscore, an extension.
type Unknown struct {
	Tag string          // the value of the member that distinguishes variants
	Raw json.RawMessage // the whole object as received, with its tag; it is written unchanged
}

// Encode writes v, a variant, as an object.
func (u *Variants) Encode(e *Encoder, v any) {
	switch c := u.variant(v); {
	case v == nil:
		e.Failf("%s without a variant", u.Of)
	case c == nil:
		if other := u.unknown(e, v); other == nil {
			e.Failf("a variant that is a nil %T", v)
		} else {
			e.RawObject(other.Raw)
		}
	case c.By == nil || c.Union:
		e.BeginObject()
		u.encodeInto(e, c, v)
		e.EndObject()
	case (*iface)(unsafe.Pointer(&v)).data == nil:
		e.Failf("a variant that is a nil %T", c.By)
	default:
		if !e.embedding {
			e.buf = append(e.buf, '{')
		}
		u.encodeTag(e, c)
		e.embedding = true
		Encode(e, c.value(v))
		e.endVariant()
	}
}

// EncodeMerged writes an object with the members of the union that x points to, and those of its variant v.
func (u *Variants) EncodeMerged(e *Encoder, x, v any) {
	e.BeginObject()
	EncodeMembers(e, x)
	switch c := u.variant(v); {
	case v == nil:
		e.FailObject("%s without a variant", u.Of)
	case c == nil:
		if other := u.unknown(e, v); other == nil {
			e.FailObject("a variant that is a nil %T", v)
		} else {
			e.Members(other.Raw, u.Names...)
		}
	default:
		u.encodeInto(e, c, v)
	}
	e.EndObject()
}

// encodeInto writes v, which is c, into the open object.
func (u *Variants) encodeInto(e *Encoder, c *Variant, v any) {
	u.encodeTag(e, c)
	switch {
	case c.By == nil:
		EncodeMembers(e, v)
	case (*iface)(unsafe.Pointer(&v)).data == nil:
		e.FailObject("a variant that is a nil %T", c.By)
	case c.Union:
		e.embed(c.value(v), append([]string{u.Tag}, u.Names...)...)
	default:
		e.embed(c.value(v))
	}
}

func (u *Variants) encodeTag(e *Encoder, c *Variant) {
	e.Key(u.Tag)
	e.Str(c.Tag)
}

// variant returns what v is, or nil.
func (u *Variants) variant(v any) *Variant {
	for i := range u.List {
		if (*iface)(unsafe.Pointer(&u.List[i].As)).typ == (*iface)(unsafe.Pointer(&v)).typ {
			return &u.List[i]
		}
	}
	return nil
}

// value returns v, which is c, as the type that encodes and decodes it.
func (c *Variant) value(v any) any {
	by := c.By
	(*iface)(unsafe.Pointer(&by)).data = (*iface)(unsafe.Pointer(&v)).data
	return by
}

// unknown returns v as the variant that it is, unless it is nil, and checks that a receiver takes it as such.
func (u *Variants) unknown(e *Encoder, v any) *Unknown {
	other := (*Unknown)((*iface)(unsafe.Pointer(&v)).data)
	if other != nil {
		e.CheckTag(u.Tag, other.Tag, other.Raw, func(d *Decoder) { u.Decode(d) })
	}
	return other
}

// Decode reads a variant. It returns nil if that fails.
func (u *Variants) Decode(d *Decoder) any {
	tag, ok := d.Tag(u.Tag)
	if !ok {
		d.NoTag(u.Tag)
		return nil
	}
	for i := range u.List {
		c := &u.List[i]
		if c.Tag != string(tag) {
			continue
		}
		var at Mark
		if c.Off&d.off != 0 {
			at = d.Mark()
		}
		v := c.decode(d)
		if c.Off&d.off == 0 || !d.Retry(at) {
			return v
		}
		break
	}
	other := reflect.New(reflect.TypeOf(u.Unknown).Elem())
	*(*Unknown)(other.UnsafePointer()) = Unknown{string(tag), d.Raw()}
	return other.Interface()
}

// DecodeMerged reads an object into the union that x points to, and returns its variant.
func (u *Variants) DecodeMerged(d *Decoder, x any) any {
	start := d.Mark()
	l, p := layoutOf(x)
	clearAt(l.typ, p)
	l.decode(d, p)
	d.Rewind(start)
	return u.Decode(d)
}

func (c *Variant) decode(d *Decoder) any {
	v := c.As
	if c.By == nil {
		(*iface)(unsafe.Pointer(&v)).data = reflect.New(reflect.TypeOf(c.As).Elem()).UnsafePointer()
		DecodeMembers(d, v)
		return v
	}
	if room := (*iface)(unsafe.Pointer(&d.room)); room.typ == (*iface)(unsafe.Pointer(&c.By)).typ {
		(*iface)(unsafe.Pointer(&v)).data = room.data
		d.room = nil
	} else {
		(*iface)(unsafe.Pointer(&v)).data = reflect.New(reflect.TypeOf(c.By).Elem()).UnsafePointer()
	}
	Decode(d, c.value(v))
	return v
}
