package codec

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// The following functions write and read structs as the tags of their fields say. The tag json has a member's name, as
// for encoding/json, which cannot express all names: the tag member has the others. The tag codec is a list of:
//
//   - required: the member is always there
//   - optional: nothing else is said of it
//   - null: it can be null
//   - empty: null means no items, and is a repair
//   - lenient: a value that cannot be read is dropped, as a repair
//   - items: likewise for its items
//   - open: it is a name that need not be listed
//   - omitzero: as in the tag json
//   - feature=n: it belongs to the feature of bit n; see [Decoder.SetOff]
//   - features: its value can use features; see [Features]
//   - id: it is an id, which must not be empty; see [EmptyID]
//   - requestID, requestIDOrNull: it is the id of a request; a string, a 64-bit integer or null
//   - minLength=n, minimum=n and so on: the keyword of the schema, which bounds its value
//   - member=name: it is a map that must have this member
//   - item.option: the option is about the items of an array or a map
//
// The following options are of fields that are no members:
//
//   - extra: it has the members that no other field has
//   - beside=name: the object has this member, which is neither in a field nor extra
//   - flat: it is a union whose members are in the same object
//   - tag: it has the tag of a union's variant that needs none; see [Variants]
//   - without=name: there must be no such member
//   - fixed: the tag fixed has an object with the members that always have the same value
//
// Names in options are as JSON has them, with \u002c for a comma. The functions take pointers.

// Encode writes the value that x points to: with its method EncodeJSON if it has one, and otherwise by its type, or as
// the tags of the struct say. A nil pointer is null, as in encoding/json.
func Encode(e *Encoder, x any) {
	if isNil(x) {
		e.Null()
		return
	}
	if v, ok := x.(interface{ EncodeJSON(*Encoder) }); ok {
		v.EncodeJSON(e)
		return
	}
	l, p := layoutOf(x)
	if l.value != nil {
		l.value.encode(e, p)
	} else {
		l.encodeObject(e, p)
	}
}

// isNil reports whether x is nil or a nil pointer. A map that is nil can have the method EncodeJSON.
func isNil(x any) bool {
	return addressOf(x).isNil() && (x == nil || reflect.TypeOf(x).Kind() == reflect.Pointer)
}

// encodeMembers writes the members of x, which must not be nil, into the open object.
func encodeMembers(e *Encoder, x any) {
	l, p := layoutOf(x)
	if p.isNil() {
		e.FailObject("a variant that is a nil %T", x)
		return
	}
	l.encode(e, p)
}

// Decode replaces the value that x points to by the one that it reads, in the way in which Encode writes it. It fails
// if x is a nil pointer.
func Decode(d *Decoder, x any) {
	if isNil(x) {
		d.Failf("cannot read into a nil %T", x)
		return
	}
	if v, ok := x.(interface{ DecodeJSON(*Decoder) }); ok {
		v.DecodeJSON(d)
		return
	}
	l, p := layoutOf(x)
	if l.value != nil {
		l.value.decode(d, p)
		return
	}
	clearAt(l.typ, p)
	l.decode(d, p)
}

// EncodeAs writes the value that x points to, by its type and the options of a tag codec.
func EncodeAs(e *Encoder, x any, tag string) { coderOf(x, tag).encode(e, addressOf(x)) }

// DecodeAs reads the value that x points to, as EncodeAs writes it.
func DecodeAs(d *Decoder, x any, tag string) {
	c, p := coderOf(x, tag), addressOf(x)
	clearAt(c.typ, p)
	c.decode(d, p)
}

// EncodeMember writes the member of x that is in field i.
func EncodeMember(e *Encoder, x any, i int) {
	l, p := layoutOf(x)
	l.members[i].encodeMember(e, p.add(l.members[i].offset))
}

// DecodeMember reads the current member of o, which is of x.
func DecodeMember(o *Object, x any) {
	l, p := layoutOf(x)
	l.decodeMember(o.d, o, l.find(o.d.name), p)
}

// EncodeVariant writes an object that begins with the tag and continues with the members of v.
func EncodeVariant(e *Encoder, name, value string, v interface{ EncodeJSON(*Encoder) }) {
	if addressOf(v).isNil() {
		e.Failf("a variant that is a nil %T", v)
		return
	}
	if e.embedding {
		e.buf = append(e.separated(), '"')
	} else {
		e.buf = append(e.buf, `{"`...)
	}
	b := append(e.buf, name...)
	b = append(b, `":"`...)
	b = append(b, value...)
	e.buf = append(b, '"')
	e.embedding = true
	v.EncodeJSON(e)
	e.endVariant()
}

// IsTagged reports whether x is a pointer to a generated struct, which has the method UnmarshalJSON and fields with the
// tag codec. Encode and Decode take it even if it has no methods for them.
func IsTagged(x any) bool {
	if _, ok := x.(json.Unmarshaler); !ok {
		return false
	}
	if l := knownLayout(x); l != nil {
		return l.tagged
	}
	return pointsToTags(x)
}

// pointsToTags reports whether x is a pointer to a struct with tags. It does not use layoutOf, which does not end for
// an author's type that contains itself.
func pointsToTags(x any) bool {
	t := reflect.TypeOf(x)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && hasTags(t.Elem())
}

func hasTags(t reflect.Type) bool {
	for f := range t.Fields() {
		if _, ok := f.Tag.Lookup("codec"); ok {
			return true
		}
	}
	return false
}

// IsZero reports whether no field of the struct that x points to is set.
func IsZero(x any) bool {
	l, p := layoutOf(x)
	return l.zero(p)
}

// layout is what the tags of a type say.
type layout struct {
	typ      reflect.Type
	members  []member
	fixed    []fixed
	required uint64        // bit set of members, followed by those that are fixed
	ids      []int         // members that are ids
	uses     []int         // members of features, and those whose values can use some
	extra    *member       // has the members without a field, or is nil
	beside   []string      // members that are neither in a field nor extra
	without  []string      // members that must be absent
	flat     *member       // a union in the same object, or nil
	tag      *member       // the tag of a variant that needs none, or nil
	variant  *variantField // of a union whose variants can use features
	tagged   bool          // a field has the tag codec
	value    *coder        // of a type that is no struct
}

// fixed is a member that always has the same value, which is JSON.
type fixed struct{ name, value string }

// member is a field of a struct.
type member struct {
	coder
	name      string
	written   string // the name in JSON, without quotes
	offset    uintptr
	state     uintptr // of an Opt: the offset of its state in it
	opt       bool
	required  bool
	omitEmpty bool
	null      bool
	lenient   bool
	plain     bool   // none of opt, null, lenient and empty
	empty     string // what null is read as, or ""
	feature   uint64 // the bit of its feature, or 0
	features  bool   // its value can use features
}

// coder reads and writes values of a type.
type coder struct {
	op     op
	typ    reflect.Type
	items  bool    // items that cannot be read are dropped
	item   *coder  // of an array, a map, an Opt or a pointer
	size   uintptr // of the type
	offset uintptr // of the state of an Opt
	layout *layout // of an object
	self   Value   // a nil pointer to a type that encodes and decodes itself
	known  known   // likewise to an enum
	bounds []bound
}

type known interface{ Known() bool }

type op uint8

const (
	opString op = iota // a string
	opName             // a named string
	opEnum             // a named string that must be listed, or have been read
	opBool
	opInt
	opUint
	opFloat
	opRaw
	opRawMap
	opStringMap
	opMap
	opNull // a struct{}
	opOpt
	opPointer
	opSlice
	opObject
	opValue // a type that encodes and decodes itself
	opNone  // a type that tags cannot describe
)

// layouts has the layouts of the types used so far, by the type of pointers to them. A program uses few types, so the
// map is copied to add some.
var (
	layouts  atomic.Pointer[map[*typeWord]*layout]
	layoutMu sync.Mutex // held to change layouts
	coders   sync.Map   // coders with the options of a tag, by withTag
)

type withTag struct {
	typ *typeWord
	tag string
}

// coderOf returns the coder of the type that x points to with the options of a tag codec.
func coderOf(x any, tag string) *coder {
	key := withTag{typeOf(x), tag}
	if c, ok := coders.Load(key); ok {
		return c.(*coder)
	}
	var c *coder
	addLayouts(func(all map[*typeWord]*layout) {
		c = newCoder(reflect.TypeOf(x).Elem(), strings.Split(tag, ","), all)
	})
	coders.Store(key, c)
	return c
}

// layoutOf returns the layout of the struct that x points to, and its address.
func layoutOf(x any) (*layout, address) {
	typ := typeOf(x)
	if l := knownLayout(x); l != nil {
		return l, addressOf(x)
	}
	var l *layout
	addLayouts(func(all map[*typeWord]*layout) {
		switch t := reflect.TypeOf(x); {
		case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
			newLayout(t.Elem(), all)
		case t.Kind() == reflect.Pointer:
			all[typ] = &layout{value: newCoder(t.Elem(), nil, all)}
		default:
			all[typ] = &layout{value: &coder{typ: t, op: opNone}}
		}
		l = all[typ]
	})
	return l, addressOf(x)
}

// addLayouts calls add with a copy of the layouts, which replaces them.
func addLayouts(add func(all map[*typeWord]*layout)) {
	layoutMu.Lock()
	defer layoutMu.Unlock()
	all := map[*typeWord]*layout{}
	if known := layouts.Load(); known != nil {
		maps.Copy(all, *known)
	}
	add(all)
	layouts.Store(&all)
}

// knownLayout is layoutOf for a type that was used before, and nil for others.
func knownLayout(x any) *layout {
	known := layouts.Load()
	if known == nil {
		return nil
	}
	return (*known)[typeOf(x)]
}

// newLayout returns the layout of a type. It adds those that are missing to all.
func newLayout(t reflect.Type, all map[*typeWord]*layout) *layout {
	pointer := reflect.Zero(reflect.PointerTo(t)).Interface()
	key := typeOf(pointer)
	if l := all[key]; l != nil {
		return l
	}
	l := &layout{typ: t, tagged: hasTags(t)}
	all[key] = l
	for f := range t.Fields() {
		name, omit, more := strings.Cut(f.Tag.Get("json"), ",")
		unusual, named := f.Tag.Lookup("member")
		switch o := options(strings.Split(f.Tag.Get("codec"), ",")); {
		case f.Name == "_" || name == "-" && !more:
			l.addOther(f, o, all)
		case named:
			l.addMember(f, unusual, o.has("omitzero"), o, all)
		default:
			l.addMember(f, name, omit == "omitzero", o, all)
		}
	}
	for i := range l.fixed {
		l.required |= 1 << (len(l.members) + i)
	}
	return l
}

// addOther adds a field that is no member.
func (l *layout) addOther(f reflect.StructField, o options, all map[*typeWord]*layout) {
	field := func() *member { return &member{coder: *newCoder(f.Type, o, all), offset: f.Offset} }
	switch {
	case o.has("features"):
		l.variant = &variantField{typ: f.Type, offset: f.Offset}
	case o.has("extra"):
		l.extra, l.beside = field(), o.names("beside")
		l.extra.coder = newMap(f.Type, o, all)
	case o.has("flat"):
		l.flat = field()
	case o.has("tag"):
		l.tag = field()
	case f.Name == "_":
		l.without = o.names("without")
		d := NewDecoder([]byte(f.Tag.Get("fixed")))
		for object := d.Object(); object.Next(); {
			l.fixed = append(l.fixed, fixed{string(object.Name()), string(d.Raw())})
		}
	}
}

func (l *layout) addMember(f reflect.StructField, name string, omit bool, o options, all map[*typeWord]*layout) {
	m := member{name: name, offset: f.Offset, omitEmpty: omit,
		required: o.has("required"), null: o.has("null"), lenient: o.has("lenient"), features: o.has("features")}
	m.written = string(AppendString(nil, name))
	m.written = m.written[1 : len(m.written)-1]
	m.coder = *newCoder(f.Type, o, all)
	if m.opt = m.op == opOpt; m.opt {
		m.state, m.coder = m.coder.offset, *m.item
	}
	if o.has("empty") {
		if m.empty = "{}"; m.op == opSlice {
			m.empty = "[]"
		}
	}
	for _, bit := range o.values("feature") {
		n, err := strconv.Atoi(bit)
		if err != nil {
			panic(err) // a fault of the generator
		}
		m.feature = 1 << n
	}
	if m.features {
		m.look(all)
	}
	if m.features || m.feature != 0 {
		l.uses = append(l.uses, len(l.members))
	}
	if o.has("id") {
		l.ids = append(l.ids, len(l.members))
	}
	m.plain = !m.opt && !m.null && !m.lenient && m.empty == ""
	if m.required {
		l.required |= 1 << len(l.members)
	}
	l.members = append(l.members, m)
}

// options are those of a tag codec.
type options []string

func (o options) has(option string) bool { return slices.Contains(o, option) }

// values returns the values of an option.
func (o options) values(name string) (out []string) {
	for _, option := range o {
		if value, ok := strings.CutPrefix(option, name+"="); ok {
			out = append(out, value)
		}
	}
	return out
}

// names returns the values of an option that are names.
func (o options) names(name string) []string {
	names := o.values(name)
	for i, escaped := range names {
		names[i] = NewDecoder([]byte(`"` + escaped + `"`)).Str()
	}
	return names
}

// ofItems returns the options for the items of an array or a map.
func (o options) ofItems() (out options) {
	for _, option := range o {
		if its, ok := strings.CutPrefix(option, "item."); ok || option == "open" {
			out = append(out, its)
		}
	}
	return out
}

// newCoder returns the coder of a type, with the options of a tag. It adds the layouts that are missing to all.
func newCoder(t reflect.Type, o options, all map[*typeWord]*layout) *coder {
	c := &coder{typ: t, size: t.Size()}
	pointer := reflect.Zero(reflect.PointerTo(t)).Interface()
	self, ok := pointer.(Value)
	if c.self = self; ok {
		c.op, c.bounds = opValue, newBounds(t, o)
		return c
	}
	enum, listed := pointer.(known)
	listed = listed && !o.has("open")
	switch t.Kind() {
	case reflect.Struct:
		switch {
		case t == reflect.TypeFor[struct{}]():
			c.op = opNull
		case t.NumField() == 2 && t.Field(1).Type == reflect.TypeFor[presence]():
			c.op, c.item, c.offset = opOpt, newCoder(t.Field(0).Type, o, all), t.Field(1).Offset
		default:
			c.op, c.layout = opObject, newLayout(t, all)
		}
		return c
	case reflect.String:
		c.op = opName
		if t == reflect.TypeFor[string]() {
			c.op = opString
		} else if listed {
			c.op, c.known = opEnum, enum
		}
	case reflect.Bool:
		c.op = opBool
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		c.op = opInt
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.op = opUint
	case reflect.Float64:
		c.op = opFloat
	case reflect.Pointer:
		c.op, c.item = opPointer, newCoder(t.Elem(), nil, all)
	case reflect.Slice:
		if c.op = opRaw; t != reflect.TypeFor[json.RawMessage]() {
			c.op, c.item, c.items = opSlice, newCoder(t.Elem(), o.ofItems(), all), o.has("items")
		}
	case reflect.Map:
		switch *c = newMap(t, o, all); {
		case t.Elem() == reflect.TypeFor[string]() && c.item.bounds == nil:
			c.op = opStringMap
		case t.Elem() == reflect.TypeFor[json.RawMessage]():
			c.op = opRawMap
		}
	default:
		c.op = opNone
	}
	if listed && c.op != opEnum {
		c.bounds = append(c.bounds, isListed)
	}
	c.bounds = append(c.bounds, newBounds(t, o)...)
	return c
}

func newMap(t reflect.Type, o options, all map[*typeWord]*layout) coder {
	item := newCoder(t.Elem(), o.ofItems(), all)
	return coder{op: opMap, typ: t, size: t.Size(), item: item}
}

// clearAt sets the value at p to zero.
func clearAt(t reflect.Type, p address) { p.as(t).SetZero() }

func (l *layout) encodeObject(e *Encoder, p address) {
	e.BeginObject()
	l.encode(e, p)
	e.EndObject()
}

func (l *layout) encode(e *Encoder, p address) {
	for _, f := range l.fixed {
		e.Key(f.name)
		e.buf = append(e.buf, f.value...)
	}
	for i := range l.members {
		m := &l.members[i]
		m.encodeMember(e, p.add(m.offset))
	}
	if l.flat != nil {
		e.embed(pointTo(l.flat.self, p.add(l.flat.offset)))
	}
	if l.extra != nil {
		l.encodeExtra(e, p.add(l.extra.offset).as(l.extra.typ))
	}
}

func (m *member) encodeMember(e *Encoder, p address) {
	if m.opt {
		state := *valueAt[presence](p.add(m.state))
		if state == absent && !m.required {
			return
		}
		if state != present {
			e.Name(m.written)
			e.Null()
			return
		}
	} else if m.omitEmpty && m.coder.zero(p) {
		return
	}
	e.Name(m.written)
	m.encode(e, p)
}

// encodeExtra writes the members that have no field.
func (l *layout) encodeExtra(e *Encoder, members reflect.Value) {
	if members.Len() == 0 {
		return
	}
	for _, name := range l.names() {
		if members.MapIndex(reflect.ValueOf(name)).IsValid() {
			e.FailObject("the extra member %.64q is one that has a field", name)
			return
		}
	}
	l.extra.encodeMap(e, members)
}

// names returns the names of the members that are not extra.
func (l *layout) names() (names []string) {
	for _, f := range l.fixed {
		names = append(names, f.name)
	}
	for i := range l.members {
		names = append(names, l.members[i].name)
	}
	return append(names, l.beside...)
}

func (l *layout) zero(p address) bool {
	for i := range l.members {
		m := &l.members[i]
		at := p.add(m.offset)
		if m.opt && *valueAt[presence](at.add(m.state)) != absent || !m.opt && !m.coder.zero(at) {
			return false
		}
	}
	return l.extra == nil || p.add(l.extra.offset).as(l.extra.typ).Len() == 0
}

// zero reports whether the value at p is what an absent member means.
func (c *coder) zero(p address) bool {
	switch c.op {
	case opBool:
		return !*valueAt[bool](p)
	case opString, opName, opEnum:
		return *valueAt[string](p) == ""
	case opRaw, opSlice, opRawMap, opStringMap, opMap, opPointer:
		return valueAt[address](p).isNil()
	case opObject:
		return c.layout.zero(p)
	case opValue:
		if c.typ.Kind() == reflect.Struct {
			if variant := p.as(c.typ).FieldByName("Variant"); variant.IsValid() {
				return variant.IsNil()
			}
		}
	}
	return p.as(c.typ).IsZero()
}

func (c *coder) encode(e *Encoder, p address) {
	switch c.op {
	case opString, opName:
		e.Str(*valueAt[string](p))
	case opEnum:
		v := *valueAt[string](p)
		if v == "" && !pointTo(c.known, p).Known() {
			e.Failf("empty %v", c.typ)
		}
		e.Str(v)
	case opBool:
		e.Bool(*valueAt[bool](p))
	case opInt:
		e.Int(p.as(c.typ).Int())
	case opUint:
		e.Uint(p.as(c.typ).Uint())
	case opFloat:
		e.Float(*valueAt[float64](p))
	case opRaw:
		e.Raw(*valueAt[json.RawMessage](p))
	case opRawMap:
		EncodeRawMap(e, *valueAt[map[string]json.RawMessage](p))
	case opStringMap:
		EncodeStringMap(e, *valueAt[map[string]string](p))
	case opMap:
		e.BeginObject()
		c.encodeMap(e, p.as(c.typ))
		e.EndObject()
	case opNull:
		e.Null()
	case opOpt:
		if *valueAt[presence](p.add(c.offset)) == present {
			c.item.encode(e, p)
		} else {
			e.Null()
		}
	case opPointer:
		if to := *valueAt[address](p); to.isNil() {
			e.Failf("a nil %v", c.typ)
		} else if e.err == nil { // which bounds the depth of a value that contains itself
			c.item.encode(e, to)
		}
	case opSlice:
		e.BeginArray()
		list := valueAt[slice](p)
		for i := range list.len {
			e.Elem()
			c.item.encode(e, list.first.add(uintptr(i)*c.item.size))
		}
		e.EndArray()
	case opObject:
		c.layout.encodeObject(e, p)
	case opValue:
		pointTo(c.self, p).EncodeJSON(e)
	default:
		c.unreadable()
	}
	for _, bound := range c.bounds {
		if err := bound(p.as(c.typ)); err != nil {
			e.Fail(err)
		}
	}
}

// encodeMap writes members into the open object, sorted by name.
func (c *coder) encodeMap(e *Encoder, members reflect.Value) {
	names := members.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	value := allocate(c.item.typ)
	for _, name := range names {
		e.Key(name.String())
		value.as(c.item.typ).Set(members.MapIndex(name))
		c.item.encode(e, value)
	}
}

// decodeEntry reads the current member of o into a map, which must not have one with its name.
func (c *coder) decodeEntry(o *Object, members reflect.Value) {
	name := reflect.ValueOf(o.key())
	if members.MapIndex(name).IsValid() {
		o.duplicate()
		return
	}
	value := allocate(c.item.typ)
	c.item.decode(o.d, value)
	members.SetMapIndex(name, value.as(c.item.typ))
}

// unreadable reports a fault of the generator.
func (c *coder) unreadable() { panic("codec: tags cannot say how to read a " + c.typ.String()) }

func (l *layout) decode(d *Decoder, p address) {
	o := d.Object()
	next := 0 // members often come in the order of the schema
	for o.Next() {
		i := next
		if i >= len(l.members) || l.members[i].name != string(d.name) {
			i = l.find(d.name)
		}
		l.decodeMember(d, &o, i, p)
		next = i + 1
	}
	if l.required&^o.seen != 0 {
		o.require(l.required, l.name)
	}
}

// decodeMember reads the current member of o, which is member i or, if that is less than 0, in no field.
func (l *layout) decodeMember(d *Decoder, o *Object, i int, p address) {
	if i < 0 {
		l.decodeOther(d, o, p)
		return
	}
	m := &l.members[i]
	at := p.add(m.offset)
	if m.feature&d.off != 0 {
		m.decodeOff(d, o, i, at)
	} else if o.Once(i); m.plain {
		m.decode(d, at)
	} else {
		m.decodeMember(d, at)
	}
}

// Require fails unless all members of x were read that the bit set has; see [Object.Once]. Call it after o.Next has
// returned false.
func Require(o *Object, members uint64, x any) {
	if members&^o.seen != 0 {
		l, _ := layoutOf(x)
		o.require(members, l.name)
	}
}

// name returns the name of a member by its bit.
func (l *layout) name(bit int) string {
	if bit < len(l.members) {
		return l.members[bit].name
	}
	return l.fixed[bit-len(l.members)].name
}

// decodeOther reads the current member of o, which is in no field.
func (l *layout) decodeOther(d *Decoder, o *Object, p address) {
	isIt := func(name string) bool { return name == string(d.name) }
	if i := slices.IndexFunc(l.fixed, func(f fixed) bool { return isIt(f.name) }); i >= 0 {
		o.Once(len(l.members) + i)
		d.Fixed(l.fixed[i].value)
		return
	}
	switch {
	case slices.ContainsFunc(l.without, isIt):
		o.Refuse()
	case l.extra == nil || slices.ContainsFunc(l.beside, isIt):
		d.Skip()
	default:
		members := p.add(l.extra.offset).as(l.extra.typ)
		if members.IsNil() {
			members.Set(reflect.MakeMap(l.extra.typ))
		}
		l.extra.decodeEntry(o, members)
	}
}

// find returns the index of the member with the given name, or -1.
func (l *layout) find(name []byte) int {
	for i := range l.members {
		if l.members[i].name == string(name) {
			return i
		}
	}
	return -1
}

func (m *member) decodeMember(d *Decoder, p address) {
	if m.empty != "" && d.NullAs(m.empty) {
		return
	}
	var at Mark
	if m.lenient {
		at = d.Mark()
	}
	state := present
	if m.null && d.Null() {
		state = null
	} else {
		m.decode(d, p)
	}
	if m.opt {
		*valueAt[presence](p.add(m.state)) = state
	}
	if m.lenient && d.Recover(at) {
		m.clear(p)
	}
}

// decodeOff is decodeMember for member i of o, which belongs to a feature that is off.
func (m *member) decodeOff(d *Decoder, o *Object, i int, p address) {
	at := d.Mark()
	o.Once(i)
	if m.decodeMember(d, p); d.Recover(at) {
		m.clear(p)
	}
}

// clear makes the member absent.
func (m *member) clear(p address) {
	clearAt(m.typ, p)
	if m.opt {
		*valueAt[presence](p.add(m.state)) = absent
	}
}

func (c *coder) decode(d *Decoder, p address) {
	switch c.op {
	case opString:
		*valueAt[string](p) = d.Str()
	case opName:
		*valueAt[string](p) = d.Intern()
	case opEnum:
		v := d.Intern()
		*valueAt[string](p) = v
		switch {
		case pointTo(c.known, p).Known() || d.err != nil:
		case v == "":
			d.failText(d.i, "empty name")
		default:
			unlisted.add(p.as(c.typ).Interface(), len(v))
		}
	case opBool:
		*valueAt[bool](p) = d.Bool()
	case opInt:
		p.as(c.typ).SetInt(d.Int(c.typ.Bits()))
	case opUint:
		p.as(c.typ).SetUint(d.Uint(c.typ.Bits()))
	case opFloat:
		*valueAt[float64](p) = d.Float()
	case opRaw:
		*valueAt[json.RawMessage](p) = d.Raw()
	case opRawMap:
		*valueAt[map[string]json.RawMessage](p) = DecodeRawMap(d)
	case opStringMap:
		*valueAt[map[string]string](p) = DecodeStringMap(d)
	case opMap:
		c.decodeMap(d, p)
	case opNull:
		if !d.Null() {
			d.mismatch("null")
		}
	case opOpt:
		state := null
		if !d.Null() {
			state = present
			c.item.decode(d, p)
		}
		*valueAt[presence](p.add(c.offset)) = state
	case opPointer:
		to := allocate(c.item.typ)
		*valueAt[address](p) = to
		c.item.decode(d, to)
	case opSlice:
		c.decodeSlice(d, p)
	case opObject:
		c.layout.decode(d, p)
	case opValue:
		pointTo(c.self, p).DecodeJSON(d)
	default:
		c.unreadable()
	}
	for _, bound := range c.bounds {
		if err := bound(p.as(c.typ)); err != nil {
			d.Fail(err)
		}
	}
}

func (c *coder) decodeMap(d *Decoder, p address) {
	members := reflect.MakeMap(c.typ)
	for o := d.Object(); o.Next(); {
		c.decodeEntry(&o, members)
	}
	if d.err != nil {
		members = reflect.Zero(c.typ)
	}
	p.as(c.typ).Set(members)
}

func (c *coder) decodeSlice(d *Decoder, p address) {
	*valueAt[[]struct{}](p) = []struct{}{} // the result is not nil unless reading fails
	list := valueAt[slice](p)
	for a := d.Array(); a.Next(); {
		var at Mark
		if c.items {
			at = d.Mark()
		}
		if list.len == list.cap {
			more := 1
			if list.len == 0 && c.item.op >= opObject {
				more = fewItems
			}
			p.as(c.typ).Grow(more)
		}
		list.len++
		item := list.first.add(uintptr(list.len-1) * c.item.size)
		c.item.decode(d, item)
		if c.items && d.Recover(at) {
			clearAt(c.item.typ, item)
			list.len--
		}
	}
	if d.err != nil {
		*valueAt[[]struct{}](p) = nil
	}
}
