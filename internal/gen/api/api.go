// Package api describes the exported API of a Go package as lines of text, and reports how a change of the schema
// affects its users. It reads type-checked packages, and the model for properties that Go's types do not show.
package api

import (
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Lines returns the exported API of a package as sorted lines: one for each constant, variable, function, type, field
// and method.
func Lines(pkg *types.Package) []string {
	p := printer{pkg}
	var lines []string
	for _, obj := range exported(pkg) {
		if named := defined(obj); named != nil {
			lines = append(lines, p.definition(named)...)
		} else {
			lines = append(lines, p.declaration(obj))
		}
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

// defined returns the type that obj declares, or nil if obj is an alias or not a type.
func defined(obj types.Object) *types.Named {
	if name, ok := obj.(*types.TypeName); !ok || name.IsAlias() {
		return nil
	}
	return obj.Type().(*types.Named)
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

// declaration returns the line for an object that is not a defined type.
func (p printer) declaration(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Const:
		return "const " + obj.Name() + p.constant(obj)
	case *types.Func:
		sig := obj.Signature()
		return "func " + obj.Name() + p.typeParams(sig.TypeParams()) + p.signature(sig)
	}
	return types.ObjectString(obj, p.qualify) // a variable or an alias
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

// definition returns the lines for a defined type.
func (p printer) definition(named *types.Named) []string {
	head := "type " + named.Obj().Name() + p.typeParams(named.TypeParams()) + " " + p.shape(named)
	lines := []string{head}
	for _, part := range p.parts(named) {
		lines = append(lines, head+", "+part.line)
	}
	if sealed(named) {
		lines = append(lines, head+", unexported methods")
		for _, v := range p.variants(named) {
			lines = append(lines, head+", implemented by "+v.typ)
		}
	}
	for _, m := range p.methods(named) {
		lines = append(lines, m.line)
	}
	return lines
}

// shape returns the underlying type of t, without the contents of a struct or interface.
func (p printer) shape(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return structs
	case *types.Interface:
		return interfaces
	default:
		return p.typ(u)
	}
}

const (
	structs    = "struct"
	interfaces = "interface"
)

// A part is a field or method of a type, or a variant of a sealed interface.
type part struct {
	kind, name, typ string
	pointer         bool   // only pointers have the method, or are the variant
	line            string // in the list of the API, except for a variant
}

// The kinds of part.
const (
	field   = "field"
	method  = "method"
	variant = "variant"
)

// parts returns the exported fields of a struct, or the exported methods of an interface.
func (p printer) parts(named *types.Named) (out []part) {
	switch u := named.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			f := u.Field(i)
			if !f.Exported() {
				continue
			}
			typ := p.typ(f.Type())
			line := f.Name() + " " + typ
			if f.Embedded() {
				line = "embedded " + typ
			}
			if json, ok := reflect.StructTag(u.Tag(i)).Lookup("json"); ok {
				line += " " + strconv.Quote(json)
			}
			out = append(out, part{field, f.Name(), typ, false, line})
		}
	case *types.Interface:
		for m := range u.Methods() {
			if m.Exported() {
				out = append(out, part{method, m.Name(), p.typ(m.Type()), false, m.Name() + p.signature(m.Signature())})
			}
		}
	}
	return out
}

// sealed reports whether t is an interface that only types of its own package can implement.
func sealed(t types.Type) bool {
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for m := range i.Methods() {
		if !m.Exported() {
			return true
		}
	}
	return false
}

// variants returns the exported types of the package that implement a sealed interface.
func (p printer) variants(sealed *types.Named) (out []part) {
	i := sealed.Underlying().(*types.Interface)
	for _, obj := range exported(p.pkg) {
		named := defined(obj)
		if named == nil || named.TypeParams().Len() > 0 || types.IsInterface(named) {
			continue
		}
		if types.Implements(named, i) {
			out = append(out, part{kind: variant, name: obj.Name(), typ: obj.Name()})
		} else if types.Implements(types.NewPointer(named), i) {
			out = append(out, part{kind: variant, name: obj.Name(), typ: "*" + obj.Name(), pointer: true})
		}
	}
	return out
}

// methods returns the exported methods of a type that is not an interface, those of embedded fields included.
func (p printer) methods(named *types.Named) (out []part) {
	if types.IsInterface(named) {
		return nil
	}
	values := types.NewMethodSet(named)
	for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		f, receiver := sel.Obj().(*types.Func), named.Obj().Name()
		pointer := values.Lookup(f.Pkg(), f.Name()) == nil
		if pointer {
			receiver = "*" + receiver
		}
		if f.Exported() {
			out = append(out, part{method, f.Name(), p.typ(f.Type()), pointer,
				"method (" + receiver + ") " + f.Name() + p.signature(f.Signature())})
		}
	}
	return out
}
