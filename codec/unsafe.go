package codec

import (
	"reflect"
	"unsafe"
)

// Only this file imports package unsafe. Offsets and types come from package reflect, and a value is read and written
// as the type that reflect says it has, or as one with the same representation.

// address is where a value is.
type address struct{ p unsafe.Pointer }

// valueAt returns a pointer to the value, which must be a T or have its representation.
func valueAt[T any](a address) *T { return (*T)(a.p) }

// add returns the address of what is at an offset of the value: a field of a struct or an item of an array.
func (a address) add(offset uintptr) address { return address{unsafe.Add(a.p, offset)} }

func (a address) isNil() bool { return a.p == nil }

// as returns the value, which is a t.
func (a address) as(t reflect.Type) reflect.Value { return reflect.NewAt(t, a.p).Elem() }

// allocate returns the address of a new t.
func allocate(t reflect.Type) address { return address{reflect.New(t).UnsafePointer()} }

// slice is what a slice consists of.
type slice struct {
	first    address
	len, cap int
}

// iface is what an interface that holds a pointer consists of.
type iface struct {
	typ  *typeWord
	data address
}

// typeWord stands for a type or, in an interface with methods, for the type's table of them.
type typeWord struct{ _ byte }

// typeOf returns the type of x, and addressOf the address of what it points to.
func typeOf(x any) *typeWord { return (*iface)(unsafe.Pointer(&x)).typ }

func addressOf(x any) address { return (*iface)(unsafe.Pointer(&x)).data }

// pointTo returns x, an interface that holds a pointer, with another pointer of the same type.
func pointTo[T any](x T, a address) T {
	(*iface)(unsafe.Pointer(&x)).data = a
	return x
}
