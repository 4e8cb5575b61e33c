package codec

import (
	"encoding/json"
	"maps"
	"math/bits"
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
//   - minLength=n, minimum=n and so on: the keyword of the schema, which bounds its value
//   - extra: it has the members that no other field has
//
// They take pointers. That is slower than code for each type, but much smaller, and builds faster.

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

// EncodeMembers writes the members of x, which must not be nil, into the open object.
func EncodeMembers(e *Encoder, x any) {
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

// DecodeMembers reads the members of x, as the tags of its fields say, and leaves fields without a member as they are.
func DecodeMembers(d *Decoder, x any) {
	l, p := layoutOf(x)
	l.decode(d, p)
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
	t := reflect.TypeOf(x) // without layoutOf, which would not end for an author's type that contains itself
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && hasTags(t.Elem())
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
	required uint64        // bit set of members
	ids      []int         // members that are ids
	uses     []int         // members of features, and those whose values can use some
	extra    *member       // has the members without a field, or is nil
	variant  *variantField // of a union whose variants can use features
	tagged   bool          // a field has the tag codec
	value    *coder        // of a type that is no struct
}

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
	plain     bool   // none of opt, null, lenient, empty and bounds
	empty     string // what null is read as, or ""
	feature   uint64 // the bit of its feature, or 0
	features  bool   // its value can use features
	bounds    []func(reflect.Value) error
}

// coder reads and writes values of a type.
type coder struct {
	op     op
	typ    reflect.Type
	items  bool    // items that cannot be read are dropped
	item   *coder  // of an array or a map
	size   uintptr // of the type
	layout *layout // of an object
	self   Value   // a nil pointer to a type that encodes and decodes itself
	known  known   // likewise to an enum
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
)

// layoutOf returns the layout of the struct that x points to, and its address.
func layoutOf(x any) (*layout, unsafe.Pointer) {
	pointer := (*iface)(unsafe.Pointer(&x))
	if l := knownLayout(x); l != nil {
		return l, pointer.data
	}
	layoutMu.Lock()
	defer layoutMu.Unlock()
	all := map[unsafe.Pointer]*layout{}
	if known := layouts.Load(); known != nil {
		maps.Copy(all, *known)
	}
	switch t := reflect.TypeOf(x); {
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		newLayout(t.Elem(), all)
	case t.Kind() == reflect.Pointer:
		value := newCoder(t.Elem(), false, all)
		all[pointer.typ] = &layout{value: &value}
	default:
		all[pointer.typ] = &layout{value: &coder{typ: t, op: opNone}} // only Features and EmptyID are called for it
	}
	layouts.Store(&all)
	return all[pointer.typ], pointer.data
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
		tag := f.Tag.Get("codec")
		options := "," + tag + ","
		has := func(option string) bool { return strings.Contains(options, ","+option+",") }
		name, omit, more := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && !more { // it is no member
			if has("features") {
				l.variant = &variantField{typ: f.Type, offset: f.Offset}
			} else if has("extra") {
				l.extra = &member{coder: newMap(f.Type, all), offset: f.Offset}
			}
			continue
		}
		if unusual, ok := f.Tag.Lookup("member"); ok {
			name = unusual
		}
		m := member{name: name, offset: f.Offset}
		m.written = string(AppendString(nil, name))
		m.written = m.written[1 : len(m.written)-1]
		valueType := f.Type
		if t := f.Type; t.Kind() == reflect.Struct && t.NumField() == 2 && t.Field(1).Type == reflect.TypeFor[presence]() {
			valueType, m.opt, m.state = t.Field(0).Type, true, t.Field(1).Offset
		}
		m.coder = newCoder(valueType, has("open"), all)
		m.items = has("items")
		m.omitEmpty = omit == "omitzero" || has("omitzero")
		m.required, m.null, m.lenient = has("required"), has("null"), has("lenient")
		if has("empty") {
			if m.empty = "{}"; m.op == opSlice {
				m.empty = "[]"
			}
		}
		if _, after, ok := strings.Cut(options, ",feature="); ok {
			bit, _, _ := strings.Cut(after, ",")
			n, err := strconv.Atoi(bit)
			if err != nil {
				panic(err) // a fault of the generator
			}
			m.feature = 1 << n
		}
		if m.features = has("features"); m.features {
			m.look(all)
		}
		if m.features || m.feature != 0 {
			l.uses = append(l.uses, len(l.members))
		}
		if has("id") {
			l.ids = append(l.ids, len(l.members))
		}
		for option := range strings.SplitSeq(tag, ",") {
			if keyword, limit, ok := strings.Cut(option, "="); ok && keyword != "feature" {
				m.bounds = append(m.bounds, newBound(keyword, limit, valueType))
			}
		}
		m.plain = !m.opt && !m.null && !m.lenient && m.empty == "" && m.bounds == nil
		if m.required {
			l.required |= 1 << len(l.members)
		}
		l.members = append(l.members, m)
	}
	return l
}

func newCoder(t reflect.Type, open bool, all map[unsafe.Pointer]*layout) coder {
	c := coder{typ: t, size: t.Size()}
	pointer := reflect.Zero(reflect.PointerTo(t)).Interface()
	if self, ok := pointer.(Value); ok {
		c.op, c.self = opValue, self
		return c
	}
	switch t.Kind() {
	case reflect.Struct:
		c.op, c.layout = opObject, newLayout(t, all)
		return c
	case reflect.String:
		c.op = opName
		if t == reflect.TypeFor[string]() {
			c.op = opString
		} else if known, ok := pointer.(known); ok && !open {
			c.op, c.known = opEnum, known
		}
		return c
	case reflect.Bool:
		c.op = opBool
		return c
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		c.op = opInt
		return c
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.op = opUint
		return c
	case reflect.Float64:
		c.op = opFloat
		return c
	case reflect.Slice:
		if c.op = opRaw; t != reflect.TypeFor[json.RawMessage]() {
			item := newCoder(t.Elem(), open, all)
			c.op, c.item = opSlice, &item
		}
		return c
	case reflect.Map:
		switch t.Elem() {
		case reflect.TypeFor[string]():
			c.op = opStringMap
		case reflect.TypeFor[json.RawMessage]():
			c.op = opRawMap
		default:
			c = newMap(t, all)
		}
		return c
	}
	c.op = opNone
	return c
}

func newMap(t reflect.Type, all map[unsafe.Pointer]*layout) coder {
	item := newCoder(t.Elem(), false, all)
	return coder{op: opMap, typ: t, size: t.Size(), item: &item}
}

// iface is what an interface that holds a pointer consists of: its type or, for an interface with methods, the type's
// table of them, and the pointer.
type iface struct{ typ, data unsafe.Pointer }

// isNil reports whether v is a nil pointer.
func isNil(v any) bool { return (*iface)(unsafe.Pointer(&v)).data == nil }

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
	for i := range l.members {
		m := &l.members[i]
		at := unsafe.Add(p, m.offset)
		if m.opt {
			state := *(*presence)(unsafe.Add(at, m.state))
			if state == absent && !m.required {
				continue
			}
			if state != present {
				e.Name(m.written)
				e.Null()
				continue
			}
		} else if m.omitEmpty && m.coder.zero(at) {
			continue
		}
		e.Name(m.written)
		m.encode(e, at)
		for _, bound := range m.bounds {
			e.Check(bound(reflect.NewAt(m.typ, at).Elem()))
		}
	}
	if l.extra != nil {
		l.encodeExtra(e, reflect.NewAt(l.extra.typ, unsafe.Add(p, l.extra.offset)).Elem())
	}
}

// encodeExtra writes the members that have no field.
func (l *layout) encodeExtra(e *Encoder, members reflect.Value) {
	for i := range l.members {
		if name := l.members[i].name; members.MapIndex(reflect.ValueOf(name)).IsValid() {
			e.FailObject("the extra member %.64q is one that has a field", name)
			return
		}
	}
	l.extra.encodeMap(e, members)
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
	case opRaw, opSlice, opRawMap, opStringMap, opMap:
		return *(*unsafe.Pointer)(p) == nil
	case opObject:
		return c.layout.zero(p)
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
			if i = l.find(d.name); i < 0 {
				if l.extra == nil {
					d.Skip()
					continue
				}
				members := reflect.NewAt(l.extra.typ, unsafe.Add(p, l.extra.offset)).Elem()
				if members.IsNil() {
					members.Set(reflect.MakeMap(l.extra.typ))
				}
				l.extra.decodeEntry(&o, members)
				continue
			}
		}
		m := &l.members[i]
		at := unsafe.Add(p, m.offset)
		if m.feature&d.off != 0 {
			m.decodeOff(d, &o, i, at)
		} else if o.Once(i); m.plain {
			m.decode(d, at)
		} else {
			m.decodeMember(d, at)
		}
		next = i + 1
	}
	if missing := l.required &^ o.seen; missing != 0 && d.err == nil {
		d.failText(o.start, "missing member "+strconv.Quote(l.members[bits.TrailingZeros64(missing)].name))
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
		for _, bound := range m.bounds {
			d.Check(bound(reflect.NewAt(m.typ, p).Elem()))
		}
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
	case opSlice:
		c.decodeSlice(d, p)
	case opObject:
		c.layout.decode(d, p)
	case opValue:
		c.value(p).DecodeJSON(d)
	default:
		c.unreadable()
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
