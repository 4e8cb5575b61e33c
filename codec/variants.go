package codec

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
)

// Variants says how a union is read and written.
type Variants struct {
	Of      string    // the union
	Tag     string    // the name of the member that distinguishes variants, or "" if none does
	Other   string    // the kinds of value, as Kind returns them, that mean the same as no tag
	Own     bool      // a variant has the tag among its own members
	Keeps   bool      // the variant without a tag may have one, which the field with the option tag has
	Names   []string  // of the members that all variants have; nil if the union has no fields for any
	List    []Variant // among those without a tag, those with a Key come in the order in which to look for it
	Unknown any       // a nil pointer to the type of variants with other tags, which is an [Unknown]
	Needs   []string  // the members that these must have, as for Fits
	Objects bool      // a value must be an object
	Keys    string    // the members of which an object must have one, for errors

	compiled atomic.Pointer[variants]
}

// Variant is one of [Variants].
type Variant struct {
	Tag   string // the value of the tag
	NoTag bool   // there is no tag
	As    any    // a nil pointer to the variant's type
	// By is a nil pointer to the type, with the same fields, that encodes and decodes the variant without its tag. It is
	// nil if the tags of the fields say how.
	By      any
	Union   bool   // By is a union
	OwnTag  bool   // By has the tag among its members
	Value   bool   // the variant is no pointer: a value that is no object
	Options string // those of a tag codec for By, of a value
	Off     uint64 // the bit of the feature that the variant belongs to, or 0
	// Room is a nil pointer to a [With] of the type of By and of one that its values nearly always point to.
	Room any

	// What distinguishes variants without a tag.
	Kinds    string   // the kinds of value, as Kind returns them
	Key      string   // a member of the object, or of the first item of the array, or "" for the variant that remains
	KeyValue string   // the value that the member must have, or ""
	Fits     []string // the required members, as for [Decoder.Fits]
	Drops    []string // the members of other variants
	Fallback bool     // it takes all that no other variant is
}

// With is allocated for a T that holds a pointer to an R.
type With[T, R any] struct {
	Value T
	Inner R
}

// Unknown is a variant of a union that the schema does not list: one of a newer version or, if its tag begins with an
// underscore, an extension.
type Unknown struct {
	Tag string          // the value of the member that distinguishes variants
	Raw json.RawMessage // the whole object as received, with its tag; it is written unchanged
}

// variants is what Variants say, by reflection.
type variants struct {
	*Variants
	list     []variant
	types    []*typeWord         // of the list
	tags     []string            // of the list, with noTag for variants without
	others   []*variant          // without a tag, in the order of the list
	byKind   map[byte][]*variant // those of others that are no fallback
	fallback *variant
	unknown  *typeWord
}

const noTag = "\xff" // is in no text

type variant struct {
	*Variant
	like   any          // a nil pointer to the type or, of a value, a zero value
	coder  *coder       // of By or, without it, of As
	inside bool         // a value that is in the interface itself
	head   string       // the tag as a member
	room   reflect.Type // of Room, or nil
	inner  any          // a nil pointer to the inner value of Room
	offset uintptr      // of the inner value
}

// compile returns u with what reflection tells about it.
func (u *Variants) compile() *variants {
	if c := u.compiled.Load(); c != nil {
		return c
	}
	c := &variants{Variants: u, list: make([]variant, len(u.List)), byKind: map[byte][]*variant{}}
	if u.Unknown != nil {
		c.unknown = typeOf(u.Unknown)
	}
	addLayouts(func(all map[*typeWord]*layout) {
		for i := range u.List {
			c.list[i] = newVariant(u, &u.List[i], all)
			c.types = append(c.types, typeOf(c.list[i].like))
		}
	})
	for i := range c.list {
		v := &c.list[i]
		c.tags = append(c.tags, v.Tag)
		switch {
		case v.Fallback:
			c.fallback = v
		case u.Tag == "" || v.NoTag:
			c.tags[i] = noTag
			c.others = append(c.others, v)
			for _, kind := range []byte(v.Kinds) {
				c.byKind[kind] = append(c.byKind[kind], v)
			}
		}
	}
	u.compiled.Store(c)
	return c
}

func newVariant(u *Variants, v *Variant, all map[*typeWord]*layout) variant {
	c := variant{Variant: v, like: v.As}
	as := reflect.TypeOf(v.As).Elem()
	by := as
	if v.By != nil {
		by = reflect.TypeOf(v.By).Elem()
	}
	c.coder = newCoder(by, strings.Split(v.Options, ","), all)
	if v.Value {
		c.like, c.inside = reflect.Zero(as).Interface(), as.Kind() == reflect.Map
	}
	c.head = string(AppendString(append(AppendString(nil, u.Tag), ':'), v.Tag))
	if v.Room != nil {
		c.room = reflect.TypeOf(v.Room).Elem()
		c.inner = reflect.Zero(reflect.PointerTo(c.room.Field(1).Type)).Interface()
		c.offset = c.room.Field(1).Offset
	}
	return c
}

// Encode writes the union that x points to, whose variant is v.
func (u *Variants) Encode(e *Encoder, x, v any) {
	c := u.compile()
	if u.Names == nil {
		c.encode(e, x, v, false)
		return
	}
	e.BeginObject()
	encodeMembers(e, x)
	c.encode(e, x, v, true)
	e.EndObject()
}

// encode writes v as a value or, if inside is set, its members into the open object.
func (u *variants) encode(e *Encoder, x, v any, inside bool) {
	switch c := u.find(v); {
	case v == nil:
		e.failIn(inside, "%s without a variant", u.Of)
	case c == nil && typeOf(v) == u.unknown:
		u.encodeUnknown(e, v, inside)
	case c == nil: // a type of an author, with the methods of a variant
		e.failIn(inside, "%s without a variant", u.Of)
	case c.Value:
		c.encodeValue(e, v)
	case inside:
		u.encodeInto(e, c, x, v)
	case c.By == nil || c.Union || c.NoTag && u.Keeps && !keptTag(layoutOf(x)).IsZero():
		e.BeginObject()
		u.encodeInto(e, c, x, v)
		e.EndObject()
	case addressOf(v).isNil():
		e.Failf("a variant that is a nil %T", c.By)
	case c.NoTag || c.OwnTag || u.Tag == "":
		c.coder.encode(e, addressOf(v))
	default:
		if !e.embedding {
			e.buf = append(e.buf, '{')
		}
		e.buf = append(e.separated(), c.head...)
		e.embedding = true
		c.coder.encode(e, addressOf(v))
		e.endVariant()
	}
}

// encodeInto writes v, which is c, into the open object.
func (u *variants) encodeInto(e *Encoder, c *variant, x, v any) {
	tagged := u.Tag != "" && !c.NoTag && !c.OwnTag
	if tagged {
		e.buf = append(e.separated(), c.head...)
	} else if c.NoTag && u.Keeps {
		u.encodeKept(e, keptTag(layoutOf(x)))
	}
	switch {
	case c.By == nil:
		encodeMembers(e, v)
	case addressOf(v).isNil():
		e.FailObject("a variant that is a nil %T", c.By)
	case c.Union && tagged:
		e.embed(pointTo(c.By, addressOf(v)), append([]string{u.Tag}, u.Names...)...)
	case c.Union:
		e.embed(pointTo(c.By, addressOf(v)), u.Names...)
	default:
		e.embed(pointTo(c.By, addressOf(v)))
	}
}

// encodeKept writes the tag of a variant that needs none.
func (u *variants) encodeKept(e *Encoder, tag *Opt[string]) {
	if tag.IsZero() {
		return
	}
	e.Key(u.Tag)
	if text, ok := tag.Get(); ok {
		e.Str(text)
	} else {
		e.Null()
	}
}

// keptTag returns the field of a union for the tag of the variant that needs none.
func keptTag(l *layout, p address) *Opt[string] {
	return valueAt[Opt[string]](p.add(l.tag.offset))
}

// find returns what v is, or nil.
func (u *variants) find(v any) *variant {
	typ := typeOf(v)
	for i, known := range u.types {
		if known == typ {
			return &u.list[i]
		}
	}
	return nil
}

func (c *variant) encodeValue(e *Encoder, v any) {
	p := addressOf(v)
	if c.inside {
		value := p
		p = addressOf(&value)
	}
	c.coder.encode(e, p)
}

// encodeUnknown writes v, after a check that a receiver takes it as a variant that it does not know.
func (u *variants) encodeUnknown(e *Encoder, v any, inside bool) {
	other := valueAt[Unknown](addressOf(v))
	if other == nil {
		e.failIn(inside, "a variant that is a nil %T", v)
		return
	}
	var read any
	e.CheckTag(u.Tag, other.Tag, other.Raw, func(d *Decoder) {
		if read = u.decode(d, nil); typeOf(read) == u.unknown {
			d.repairs = nil // characters of the tag, which is written as it was read
		}
	})
	if len(u.Needs) > 0 && typeOf(read) == u.unknown {
		e.CheckMembers(other.Raw, u.Needs...)
	}
	if inside {
		e.Members(other.Raw, u.Names...)
	} else {
		e.RawObject(other.Raw)
	}
}

// Decode reads the union that x points to, but for its variant, which it returns. It returns nil if that fails.
func (u *Variants) Decode(d *Decoder, x any) any {
	c := u.compile()
	if u.Names == nil && !u.Keeps {
		return c.decode(d, nil)
	}
	l, p := layoutOf(x)
	clearAt(l.typ, p)
	if u.Names != nil {
		start := d.Mark()
		l.decode(d, p)
		d.Rewind(start)
		if l.flat != nil {
			l.flat.decode(d, p.add(l.flat.offset))
			d.Rewind(start)
		}
	}
	if u.Keeps {
		return c.decode(d, keptTag(l, p))
	}
	return c.decode(d, nil)
}

// decode reads a variant, and its tag into kept if the union keeps it.
func (u *variants) decode(d *Decoder, kept *Opt[string]) any {
	if u.Tag == "" {
		return u.decodeUntagged(d)
	}
	fits := u.Keeps && d.Fits(u.others[0].Fits...)
	tag, ok := u.peek(d, fits)
	if !ok && len(u.others) == 0 {
		d.NoTag(u.Tag)
		return nil
	}
	if ok {
		c := u.tagged(tag)
		switch {
		case c == nil && !fits:
			return u.decodeUnknown(d, tag)
		case c != nil && (!fits || d.Fits(c.Fits...)):
			if c.Off&d.off == 0 {
				return c.decode(d)
			}
			at := d.Mark()
			v := c.decode(d)
			if d.Retry(at) {
				return u.decodeUnknown(d, tag)
			}
			return v
		case kept != nil:
			*kept = Some(string(tag))
		}
	}
	return u.others[0].decode(d)
}

// peek returns the tag of the next object.
func (u *variants) peek(d *Decoder, fits bool) (tag []byte, ok bool) {
	if u.Keeps {
		return d.DefaultTag(u.Tag, fits)
	}
	tag, ok = d.peekTag(u.Tag, u.Other)
	if u.Own {
		d.tagEnd = 0 // the variant's own decoder reads it
	}
	return tag, ok
}

func (u *variants) tagged(tag []byte) *variant {
	for i, known := range u.tags {
		if known == string(tag) {
			return &u.list[i]
		}
	}
	return nil
}

func (u *variants) decodeUnknown(d *Decoder, tag []byte) any {
	return pointTo(u.Unknown, addressOf(&Unknown{string(tag), d.Raw()}))
}

// decodeUntagged tells variants by the kind of value, and those of one kind by their members.
func (u *variants) decodeUntagged(d *Decoder) any {
	start := d.Mark()
	v := u.choose(d)
	if u.fallback != nil && d.Retry(start) {
		v = u.fallback.decode(d)
	}
	return v
}

func (u *variants) choose(d *Decoder) any {
	group := u.byKind[d.Kind()]
	if u.Objects {
		group = u.others
	}
	switch {
	case len(group) == 0:
		return u.none(d, "")
	case len(group) == 1:
		return group[0].decode(d)
	case group[0].Kinds[0] == '0' && d.Integral():
		return group[0].decode(d)
	case group[0].Kinds[0] == '0':
		return group[1].decode(d)
	}
	at := d.Mark()
	var v any
	if i := slices.IndexFunc(group, func(c *variant) bool { return c.isNext(d) }); i >= 0 {
		v = group[i].decodeAlone(d)
	} else {
		v = u.none(d, ": it has none of the members "+u.Keys)
	}
	for _, c := range group[1:] { // a value with the keys of several variants may match only a later one
		if d.RetryFitting(at, c.Fits...) {
			v = c.decodeAlone(d)
		}
	}
	return v
}

// none reads what no variant but the fallback fits.
func (u *variants) none(d *Decoder, why string) any {
	if u.fallback != nil {
		return u.fallback.decode(d)
	}
	d.Failf("no variant of %s fits%s", u.Of, why)
	return nil
}

// isNext reports whether the next value has what distinguishes c.
func (c *variant) isNext(d *Decoder) bool {
	switch {
	case c.Key == "":
		return true
	case c.Kinds[0] == '[':
		return d.ItemHas(c.Key)
	case c.KeyValue != "":
		return d.HasValue(c.Key, c.KeyValue)
	}
	return d.Has(c.Key)
}

// decodeAlone is decode, and reports the members of other variants.
func (c *variant) decodeAlone(d *Decoder) any {
	d.Drops(c.Drops...)
	return c.decode(d)
}

func (c *variant) decode(d *Decoder) any {
	var p address
	switch {
	case c.By != nil && typeOf(d.room) == typeOf(c.By):
		p = addressOf(d.room)
		d.room = nil
		c.coder.decode(d, p)
	case c.room != nil:
		p = allocate(c.room)
		d.room = pointTo(c.inner, p.add(c.offset))
		c.coder.decode(d, p)
		d.room = nil
	default:
		p = allocate(c.coder.typ)
		c.coder.decode(d, p)
	}
	if c.inside {
		p = *valueAt[address](p)
	}
	return pointTo(c.like, p)
}
