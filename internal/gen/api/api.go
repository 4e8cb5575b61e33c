// Package api describes the exported API of a Go package as lines of text, and reports how a change of the schema
// affects its users. It reads type-checked packages, and the model for properties that Go's types do not show.
package api

import (
	"fmt"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// Lines returns the exported API of a package as sorted lines: one for each constant, variable, function, type, field
// and method.
func Lines(pkg *types.Package) []string {
	p := printer{pkg}
	var lines []string
	for _, obj := range exported(pkg) {
		lines = append(lines, p.object(obj)...)
	}
	slices.Sort(lines)
	return lines
}

// exported returns the exported objects of a package, sorted by name.
func exported(pkg *types.Package) []types.Object {
	var out []types.Object
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) {
			out = append(out, pkg.Scope().Lookup(name))
		}
	}
	return out
}

// A printer writes types as the source of its package does, but without the names of parameters.
type printer struct{ pkg *types.Package }

func (p printer) qualify(other *types.Package) string {
	if other == p.pkg {
		return ""
	}
	return other.Name()
}

func (p printer) typ(t types.Type) string {
	if sig, ok := t.(*types.Signature); ok {
		return "func" + p.signature(sig)
	}
	return types.TypeString(t, p.qualify)
}

func (p printer) object(obj types.Object) []string {
	switch obj := obj.(type) {
	case *types.Const:
		return []string{"const " + obj.Name() + p.constant(obj)}
	case *types.Var:
		return []string{"var " + obj.Name() + " " + p.typ(obj.Type())}
	case *types.Func:
		sig := obj.Signature()
		return []string{"func " + obj.Name() + p.typeParams(sig.TypeParams()) + p.signature(sig)}
	case *types.TypeName:
		return p.typeName(obj)
	}
	panic(fmt.Sprintf("unexpected %T", obj))
}

// constant returns the type and value of a constant.
func (p printer) constant(c *types.Const) string {
	typ := ""
	if basic, ok := c.Type().(*types.Basic); !ok || basic.Info()&types.IsUntyped == 0 {
		typ = " " + p.typ(c.Type())
	}
	return typ + " = " + c.Val().ExactString()
}

// signature returns the parameters and results of a function.
func (p printer) signature(sig *types.Signature) string {
	var params []string
	for v := range sig.Params().Variables() {
		params = append(params, p.typ(v.Type()))
	}
	if sig.Variadic() {
		last := &params[len(params)-1]
		*last = "..." + strings.TrimPrefix(*last, "[]")
	}
	var results []string
	for v := range sig.Results().Variables() {
		results = append(results, p.typ(v.Type()))
	}
	out := "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return out
	case 1:
		return out + " " + results[0]
	}
	return out + " (" + strings.Join(results, ", ") + ")"
}

func (p printer) typeParams(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var out []string
	for t := range list.TypeParams() {
		out = append(out, t.Obj().Name()+" "+p.typ(t.Constraint()))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (p printer) typeName(obj *types.TypeName) []string {
	if obj.IsAlias() {
		return []string{types.ObjectString(obj, p.qualify)}
	}
	named := obj.Type().(*types.Named)
	head := "type " + obj.Name() + p.typeParams(named.TypeParams())
	var lines []string
	switch u := named.Underlying().(type) {
	case *types.Struct:
		lines = append(lines, head+" struct")
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				lines = append(lines, head+" struct, "+p.field(f, u.Tag(i)))
			}
		}
	case *types.Interface:
		lines = append(lines, head+" interface")
		for m := range u.Methods() {
			if m.Exported() {
				lines = append(lines, head+" interface, "+m.Name()+p.signature(m.Signature()))
			}
		}
		if sealed(u) {
			lines = append(lines, head+" interface, unexported methods")
			for _, v := range p.variants(u) {
				lines = append(lines, head+" interface, implemented by "+v)
			}
		}
	default:
		lines = append(lines, head+" "+p.typ(u))
	}
	for _, m := range methods(named) {
		lines = append(lines, fmt.Sprintf("method (%s) %s%s", m.receiver(obj.Name()), m.Name(), p.signature(m.Signature())))
	}
	return lines
}

func (p printer) field(f *types.Var, tag string) string {
	out := f.Name() + " " + p.typ(f.Type())
	if f.Embedded() {
		out = "embedded " + p.typ(f.Type())
	}
	if json, ok := reflect.StructTag(tag).Lookup("json"); ok {
		out += fmt.Sprintf(" %q", json)
	}
	return out
}

// sealed reports whether only types of its own package can implement the interface.
func sealed(i *types.Interface) bool {
	for m := range i.Methods() {
		if !m.Exported() {
			return true
		}
	}
	return false
}

// variants returns the exported types of the package that implement a sealed interface.
func (p printer) variants(i *types.Interface) []string {
	var out []string
	for _, obj := range exported(p.pkg) {
		named, ok := obj.Type().(*types.Named)
		if _, isType := obj.(*types.TypeName); !isType || !ok || named.TypeParams().Len() > 0 || types.IsInterface(named) {
			continue
		}
		if types.Implements(named, i) {
			out = append(out, obj.Name())
		} else if types.Implements(types.NewPointer(named), i) {
			out = append(out, "*"+obj.Name())
		}
	}
	return out
}

// A method is an exported method of a type, either its own or that of an embedded field.
type method struct {
	*types.Func
	pointer bool // only pointers have it
}

func (m method) receiver(name string) string {
	if m.pointer {
		return "*" + name
	}
	return name
}

func methods(named *types.Named) []method {
	if types.IsInterface(named) {
		return nil
	}
	values := types.NewMethodSet(named)
	var out []method
	for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if f := sel.Obj().(*types.Func); f.Exported() {
			out = append(out, method{f, values.Lookup(f.Pkg(), f.Name()) == nil})
		}
	}
	return out
}
