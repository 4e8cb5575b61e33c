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
	"unsafe"
)

// This file, members.go and variants.go have all uses of package unsafe. Offsets and types of fields come from package
// reflect, and a field is read and written as the type that reflect says it has, or as one with the same
// representation.

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
// the tags of the struct say.
func Encode(e *Encoder, x any) {
	if v, ok := x.(interface{ EncodeJSON(*Encoder) }); ok {
		v.EncodeJSON(e)
		return
	}
	switch l, p := layoutOf(x); {
	case p == nil:
		e.Failf("a nil %T", x)
	case l.value != nil:
		l.value.encode(e, p)
	default:
		l.encodeObject(e, p)
	}
}

// encodeMembers writes the members of x, which must not be nil, into the open object.
func encodeMembers(e *Encoder, x any) {
	l, p := layoutOf(x)
	if p == nil {
		e.FailObject("a variant that is a nil %T", x)
		return
	}
	l.encode(e, p)
}

// Decode replaces the value that x points to by the one that it reads, in the way in which Encode writes it.
func Decode(d *Decoder, x any) {
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
func EncodeAs(e *Encoder, x any, tag string) { coderOf(x, tag).encode(e, dataOf(x)) }

// DecodeAs reads the value that x points to, as EncodeAs writes it.
func DecodeAs(d *Decoder, x any, tag string) {
	c, p := coderOf(x, tag), dataOf(x)
	clearAt(c.typ, p)
	c.decode(d, p)
}

// EncodeMember writes the member of x that is in field i.
func EncodeMember(e *Encoder, x any, i int) {
	l, p := layoutOf(x)
	l.members[i].encodeMember(e, unsafe.Add(p, l.members[i].offset))
}

// DecodeMember reads the current member of o, which is of x.
func DecodeMember(o *Object, x any) {
	l, p := layoutOf(x)
	l.decodeMember(o.d, o, l.find(o.d.name), p)
}

// EncodeVariant writes an object that begins with the tag and continues with the members of v.
func EncodeVariant(e *Encoder, name, value string, v interface{ EncodeJSON(*Encoder) }) {
	if dataOf(v) == nil {
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
	layouts  atomic.Pointer[map[unsafe.Pointer]*layout]
	layoutMu sync.Mutex // held to change layouts
	coders   sync.Map   // coders with the options of a tag, by withTag
)

type withTag struct {
	typ unsafe.Pointer
	tag string
}

// coderOf returns the coder of the type that x points to with the options of a tag codec.
func coderOf(x any, tag string) *coder {
	key := withTag{(*iface)(unsafe.Pointer(&x)).typ, tag}
	if c, ok := coders.Load(key); ok {
		return c.(*coder)
	}
	var c *coder
	addLayouts(func(all map[unsafe.Pointer]*layout) {
		c = newCoder(reflect.TypeOf(x).Elem(), strings.Split(tag, ","), all)
	})
	coders.Store(key, c)
	return c
}

// layoutOf returns the layout of the struct that x points to, and its address.
func layoutOf(x any) (*layout, unsafe.Pointer) {
	pointer := (*iface)(unsafe.Pointer(&x))
	if l := knownLayout(x); l != nil {
		return l, pointer.data
	}
	var l *layout
	addLayouts(func(all map[unsafe.Pointer]*layout) {
		switch t := reflect.TypeOf(x); {
		case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
			newLayout(t.Elem(), all)
		case t.Kind() == reflect.Pointer:
			all[pointer.typ] = &layout{value: newCoder(t.Elem(), nil, all)}
		default:
			all[pointer.typ] = &layout{value: &coder{typ: t, op: opNone}}
		}
		l = all[pointer.typ]
	})
	return l, pointer.data
}

// addLayouts calls add with a copy of the layouts, which replaces them.
func addLayouts(add func(all map[unsafe.Pointer]*layout)) {
	layoutMu.Lock()
	defer layoutMu.Unlock()
	all := map[unsafe.Pointer]*layout{}
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
	return (*known)[(*iface)(unsafe.Pointer(&x)).typ]
}

// newLayout returns the layout of a type. It adds those that are missing to all.
func newLayout(t reflect.Type, all map[unsafe.Pointer]*layout) *layout {
	pointer := reflect.Zero(reflect.PointerTo(t)).Interface()
	key := (*iface)(unsafe.Pointer(&pointer)).typ
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
func (l *layout) addOther(f reflect.StructField, o options, all map[unsafe.Pointer]*layout) {
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

func (l *layout) addMember(f reflect.StructField, name string, omit bool, o options, all map[unsafe.Pointer]*layout) {
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
func newCoder(t reflect.Type, o options, all map[unsafe.Pointer]*layout) *coder {
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

func newMap(t reflect.Type, o options, all map[unsafe.Pointer]*layout) coder {
	item := newCoder(t.Elem(), o.ofItems(), all)
	return coder{op: opMap, typ: t, size: t.Size(), item: item}
}

// iface is what an interface that holds a pointer consists of: its type or, for an interface with methods, the type's
// table of them, and the pointer.
type iface struct{ typ, data unsafe.Pointer }

// dataOf returns the address of what v points to.
func dataOf(v any) unsafe.Pointer { return (*iface)(unsafe.Pointer(&v)).data }

// value returns c.self as a pointer to the value at p, and isKnown whether the enum at p is listed.
func (c *coder) value(p unsafe.Pointer) Value {
	v := c.self
	(*iface)(unsafe.Pointer(&v)).data = p
	return v
}

func (c *coder) isKnown(p unsafe.Pointer) bool {
	v := c.known
	(*iface)(unsafe.Pointer(&v)).data = p
	return v.Known()
}

// clearAt sets the value at p to zero.
func clearAt(t reflect.Type, p unsafe.Pointer) { reflect.NewAt(t, p).Elem().SetZero() }

func (l *layout) encodeObject(e *Encoder, p unsafe.Pointer) {
	e.BeginObject()
	l.encode(e, p)
	e.EndObject()
}

func (l *layout) encode(e *Encoder, p unsafe.Pointer) {
	for _, f := range l.fixed {
		e.Key(f.name)
		e.buf = append(e.buf, f.value...)
	}
	for i := range l.members {
		m := &l.members[i]
		m.encodeMember(e, unsafe.Add(p, m.offset))
	}
	if l.flat != nil {
		e.embed(l.flat.value(unsafe.Add(p, l.flat.offset)))
	}
	if l.extra != nil {
		l.encodeExtra(e, reflect.NewAt(l.extra.typ, unsafe.Add(p, l.extra.offset)).Elem())
	}
}

func (m *member) encodeMember(e *Encoder, p unsafe.Pointer) {
	if m.opt {
		state := *(*presence)(unsafe.Add(p, m.state))
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

func (l *layout) zero(p unsafe.Pointer) bool {
	for i := range l.members {
		m := &l.members[i]
		at := unsafe.Add(p, m.offset)
		if m.opt && *(*presence)(unsafe.Add(at, m.state)) != absent || !m.opt && !m.coder.zero(at) {
			return false
		}
	}
	return l.extra == nil || reflect.NewAt(l.extra.typ, unsafe.Add(p, l.extra.offset)).Elem().Len() == 0
}

// zero reports whether the value at p is what an absent member means.
func (c *coder) zero(p unsafe.Pointer) bool {
	switch c.op {
	case opBool:
		return !*(*bool)(p)
	case opString, opName, opEnum:
		return *(*string)(p) == ""
	case opRaw, opSlice, opRawMap, opStringMap, opMap, opPointer:
		return *(*unsafe.Pointer)(p) == nil
	case opObject:
		return c.layout.zero(p)
	case opValue:
		if c.typ.Kind() == reflect.Struct {
			if variant := reflect.NewAt(c.typ, p).Elem().FieldByName("Variant"); variant.IsValid() {
				return variant.IsNil()
			}
		}
	}
	return reflect.NewAt(c.typ, p).Elem().IsZero()
}

func (c *coder) encode(e *Encoder, p unsafe.Pointer) {
	switch c.op {
	case opString, opName:
		e.Str(*(*string)(p))
	case opEnum:
		v := *(*string)(p)
		if v == "" && !c.isKnown(p) {
			e.Failf("empty %v", c.typ)
		}
		e.Str(v)
	case opBool:
		e.Bool(*(*bool)(p))
	case opInt:
		e.Int(reflect.NewAt(c.typ, p).Elem().Int())
	case opUint:
		e.Uint(reflect.NewAt(c.typ, p).Elem().Uint())
	case opFloat:
		e.Float(*(*float64)(p))
	case opRaw:
		e.Raw(*(*json.RawMessage)(p))
	case opRawMap:
		EncodeRawMap(e, *(*map[string]json.RawMessage)(p))
	case opStringMap:
		EncodeStringMap(e, *(*map[string]string)(p))
	case opMap:
		e.BeginObject()
		c.encodeMap(e, reflect.NewAt(c.typ, p).Elem())
		e.EndObject()
	case opNull:
		e.Null()
	case opOpt:
		if *(*presence)(unsafe.Add(p, c.offset)) == present {
			c.item.encode(e, p)
		} else {
			e.Null()
		}
	case opPointer:
		if to := *(*unsafe.Pointer)(p); to == nil {
			e.Failf("a nil %v", c.typ)
		} else if e.err == nil { // which bounds the depth of a value that contains itself
			c.item.encode(e, to)
		}
	case opSlice:
		e.BeginArray()
		list := (*slice)(p)
		for i := range list.len {
			e.Elem()
			c.item.encode(e, unsafe.Add(list.first, uintptr(i)*c.item.size))
		}
		e.EndArray()
	case opObject:
		c.layout.encodeObject(e, p)
	case opValue:
		c.value(p).EncodeJSON(e)
	default:
		c.unreadable()
	}
	for _, bound := range c.bounds {
		if err := bound(reflect.NewAt(c.typ, p).Elem()); err != nil {
			e.Fail(err)
		}
	}
}

// encodeMap writes members into the open object, sorted by name.
func (c *coder) encodeMap(e *Encoder, members reflect.Value) {
	names := members.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	value := reflect.New(c.item.typ)
	for _, name := range names {
		e.Key(name.String())
		value.Elem().Set(members.MapIndex(name))
		c.item.encode(e, value.UnsafePointer())
	}
}

// decodeEntry reads the current member of o into a map, which must not have one with its name.
func (c *coder) decodeEntry(o *Object, members reflect.Value) {
	name := reflect.ValueOf(o.key())
	if members.MapIndex(name).IsValid() {
		o.duplicate()
		return
	}
	value := reflect.New(c.item.typ)
	c.item.decode(o.d, value.UnsafePointer())
	members.SetMapIndex(name, value.Elem())
}

// unreadable reports a fault of the generator.
func (c *coder) unreadable() { panic("codec: tags cannot say how to read a " + c.typ.String()) }

// slice is what a slice consists of.
type slice struct {
	first    unsafe.Pointer
	len, cap int
}

func (l *layout) decode(d *Decoder, p unsafe.Pointer) {
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
func (l *layout) decodeMember(d *Decoder, o *Object, i int, p unsafe.Pointer) {
	if i < 0 {
		l.decodeOther(d, o, p)
		return
	}
	m := &l.members[i]
	at := unsafe.Add(p, m.offset)
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
func (l *layout) decodeOther(d *Decoder, o *Object, p unsafe.Pointer) {
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
		members := reflect.NewAt(l.extra.typ, unsafe.Add(p, l.extra.offset)).Elem()
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

func (m *member) decodeMember(d *Decoder, p unsafe.Pointer) {
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
		*(*presence)(unsafe.Add(p, m.state)) = state
	}
	if m.lenient && d.Recover(at) {
		m.clear(p)
	}
}

// decodeOff is decodeMember for member i of o, which belongs to a feature that is off.
func (m *member) decodeOff(d *Decoder, o *Object, i int, p unsafe.Pointer) {
	at := d.Mark()
	o.Once(i)
	if m.decodeMember(d, p); d.Recover(at) {
		m.clear(p)
	}
}

// clear makes the member absent.
func (m *member) clear(p unsafe.Pointer) {
	clearAt(m.typ, p)
	if m.opt {
		*(*presence)(unsafe.Add(p, m.state)) = absent
	}
}

func (c *coder) decode(d *Decoder, p unsafe.Pointer) {
	switch c.op {
	case opString:
		*(*string)(p) = d.Str()
	case opName:
		*(*string)(p) = d.Intern()
	case opEnum:
		v := d.Intern()
		*(*string)(p) = v
		switch {
		case c.isKnown(p) || d.err != nil:
		case v == "":
			d.failText(d.i, "empty name")
		default:
			unlisted.add(reflect.NewAt(c.typ, p).Elem().Interface(), len(v))
		}
	case opBool:
		*(*bool)(p) = d.Bool()
	case opInt:
		reflect.NewAt(c.typ, p).Elem().SetInt(d.Int(c.typ.Bits()))
	case opUint:
		reflect.NewAt(c.typ, p).Elem().SetUint(d.Uint(c.typ.Bits()))
	case opFloat:
		*(*float64)(p) = d.Float()
	case opRaw:
		*(*json.RawMessage)(p) = d.Raw()
	case opRawMap:
		*(*map[string]json.RawMessage)(p) = DecodeRawMap(d)
	case opStringMap:
		*(*map[string]string)(p) = DecodeStringMap(d)
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
		*(*presence)(unsafe.Add(p, c.offset)) = state
	case opPointer:
		to := reflect.New(c.item.typ).UnsafePointer()
		*(*unsafe.Pointer)(p) = to
		c.item.decode(d, to)
	case opSlice:
		c.decodeSlice(d, p)
	case opObject:
		c.layout.decode(d, p)
	case opValue:
		c.value(p).DecodeJSON(d)
	default:
		c.unreadable()
	}
	for _, bound := range c.bounds {
		if err := bound(reflect.NewAt(c.typ, p).Elem()); err != nil {
			d.Fail(err)
		}
	}
}

func (c *coder) decodeMap(d *Decoder, p unsafe.Pointer) {
	members := reflect.MakeMap(c.typ)
	for o := d.Object(); o.Next(); {
		c.decodeEntry(&o, members)
	}
	if d.err != nil {
		members = reflect.Zero(c.typ)
	}
	reflect.NewAt(c.typ, p).Elem().Set(members)
}

func (c *coder) decodeSlice(d *Decoder, p unsafe.Pointer) {
	*(*[]struct{})(p) = []struct{}{} // the result is not nil unless reading fails
	list := (*slice)(p)
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
			reflect.NewAt(c.typ, p).Elem().Grow(more)
		}
		list.len++
		item := unsafe.Add(list.first, uintptr(list.len-1)*c.item.size)
		c.item.decode(d, item)
		if c.items && d.Recover(at) {
			clearAt(c.item.typ, item)
			list.len--
		}
	}
	if d.err != nil {
		*(*[]struct{})(p) = nil
	}
}
