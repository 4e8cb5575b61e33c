package codec

import (
	"reflect"
	"sync/atomic"
	"unsafe"
)

// Features returns the features, as a set of bits, that the struct uses that x points to: those of the members that are
// there, and of the values in them. Of returns the features of a type, given a pointer to it, or of a value of an enum.
func Features(x any, of func(any) uint64) uint64 {
	bits := of(x)
	if l, p := generated(x); p != nil {
		bits |= l.usedFeatures(p, of)
	}
	return bits
}

// generated is layoutOf for pointers to generated types, and returns nil for all others.
func generated(x any) (*layout, unsafe.Pointer) {
	if l := knownLayout(x); l != nil {
		return l, dataOf(x)
	}
	if _, value := x.(Value); value || pointsToTags(x) {
		return layoutOf(x)
	}
	return nil, nil
}

func (l *layout) usedFeatures(p unsafe.Pointer, of func(any) uint64) (bits uint64) {
	for _, i := range l.uses {
		m := &l.members[i]
		at := unsafe.Add(p, m.offset)
		if m.opt && *(*presence)(unsafe.Add(at, m.state)) != present {
			continue
		}
		if m.feature != 0 && (m.opt || !m.coder.zero(at)) {
			bits |= m.feature
		}
		if m.features {
			bits |= m.coder.usedFeatures(at, of)
		}
	}
	if l.variant != nil {
		bits |= l.variant.usedFeatures(unsafe.Add(p, l.variant.offset), of)
	}
	return bits
}

// variantField is the field of a union that holds the variant.
type variantField struct {
	typ    reflect.Type
	offset uintptr
	plain  unsafe.Pointer // what iface has as the type of the variant that was last found to use no features
}

func (f *variantField) usedFeatures(p unsafe.Pointer, of func(any) uint64) uint64 {
	typ := (*iface)(p).typ
	if typ == atomic.LoadPointer(&f.plain) { // also if there is no variant
		return 0
	}
	v := reflect.NewAt(f.typ, p).Elem().Elem()
	if v.Kind() != reflect.Pointer {
		return 0
	}
	x := v.Interface()
	bits := Features(x, of)
	if l, _ := generated(x); bits == 0 && (l == nil || len(l.uses) == 0 && l.variant == nil) {
		atomic.StorePointer(&f.plain, typ)
	}
	return bits
}

func (c *coder) usedFeatures(p unsafe.Pointer, of func(any) uint64) (bits uint64) {
	switch {
	case c.op == opSlice:
		list := (*slice)(p)
		for i := range list.len {
			bits |= c.item.usedFeatures(unsafe.Add(list.first, uintptr(i)*c.item.size), of)
		}
	case c.layout != nil:
		return c.layout.usedFeatures(p, of)
	default:
		return of(reflect.NewAt(c.typ, p).Elem().Interface())
	}
	return bits
}

// look makes the layout of the struct that c, or its items, are.
func (c *coder) look(all map[unsafe.Pointer]*layout) {
	for c.op == opSlice {
		c = c.item
	}
	if c.typ.Kind() == reflect.Struct {
		c.layout = newLayout(c.typ, all)
	}
}

// EmptyID returns the JSON pointer of the first id that is empty in the struct that x points to, or "".
func EmptyID(x any) string {
	l, p := generated(x)
	if p == nil {
		return ""
	}
	for _, i := range l.ids {
		if m := &l.members[i]; *(*string)(unsafe.Add(p, m.offset)) == "" {
			return "/" + m.name
		}
	}
	return ""
}
