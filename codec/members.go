package codec

import (
	"reflect"
	"sync/atomic"
)

// Features returns the features, as a set of bits, that the struct uses that x points to: those of the members that are
// there, and of the values in them. Of returns the features of a type, given a pointer to it, or of a value of an enum.
func Features(x any, of func(any) uint64) uint64 {
	bits := of(x)
	if l, p := generated(x); !p.isNil() {
		bits |= l.usedFeatures(p, of)
	}
	return bits
}

// generated is layoutOf for pointers to generated types, and returns nil for all others.
func generated(x any) (*layout, address) {
	if l := knownLayout(x); l != nil {
		return l, addressOf(x)
	}
	if _, value := x.(Value); value || pointsToTags(x) {
		return layoutOf(x)
	}
	return nil, address{}
}

func (l *layout) usedFeatures(p address, of func(any) uint64) (bits uint64) {
	for _, i := range l.uses {
		m := &l.members[i]
		at := p.add(m.offset)
		if m.opt && *valueAt[presence](at.add(m.state)) != present {
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
		bits |= l.variant.usedFeatures(p.add(l.variant.offset), of)
	}
	return bits
}

// variantField is the field of a union that holds the variant.
type variantField struct {
	typ    reflect.Type
	offset uintptr
	plain  atomic.Pointer[typeWord] // the type of the variant that was last found to use no features
}

func (f *variantField) usedFeatures(p address, of func(any) uint64) uint64 {
	typ := valueAt[iface](p).typ
	if typ == f.plain.Load() { // also if there is no variant
		return 0
	}
	v := p.as(f.typ).Elem()
	if v.Kind() != reflect.Pointer {
		return 0
	}
	x := v.Interface()
	bits := Features(x, of)
	if l, _ := generated(x); bits == 0 && (l == nil || len(l.uses) == 0 && l.variant == nil) {
		f.plain.Store(typ)
	}
	return bits
}

func (c *coder) usedFeatures(p address, of func(any) uint64) (bits uint64) {
	switch {
	case c.op == opSlice:
		list := valueAt[slice](p)
		for i := range list.len {
			bits |= c.item.usedFeatures(list.first.add(uintptr(i)*c.item.size), of)
		}
	case c.layout != nil:
		return c.layout.usedFeatures(p, of)
	default:
		return of(p.as(c.typ).Interface())
	}
	return bits
}

// look makes the layout of the struct that c, or its items, are.
func (c *coder) look(all map[*typeWord]*layout) {
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
	if p.isNil() {
		return ""
	}
	for _, i := range l.ids {
		if m := &l.members[i]; *valueAt[string](p.add(m.offset)) == "" {
			return "/" + m.name
		}
	}
	return ""
}
