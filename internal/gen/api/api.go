// Package api reports how a change of the schema affects the users of a generated package. It reads type-checked
// packages, and the model for properties that Go's types do not show.
package api

import (
	"go/token"
	"go/types"
	"strings"
)

// Exported returns the exported objects of a package, sorted by name.
func Exported(pkg *types.Package) []types.Object {
	var out []types.Object
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) {
			out = append(out, pkg.Scope().Lookup(name))
		}
	}
	return out
}

// Defined returns the type that obj declares, or nil if obj is an alias or not a type.
func Defined(obj types.Object) *types.Named {
	if name, ok := obj.(*types.TypeName); !ok || name.IsAlias() {
		return nil
	}
	return obj.Type().(*types.Named)
}

// A Printer writes types as the source of its package does, but without the names of parameters.
type Printer struct{ Package *types.Package }

func (p Printer) qualify(other *types.Package) string {
	if other == p.Package {
		return ""
	}
	return other.Name()
}

// Type returns the source of a type.
func (p Printer) Type(t types.Type) string { return types.TypeString(unnamed(t), p.qualify) }

// unnamed returns the type of a function without the names of its parameters. It returns other types unchanged.
func unnamed(t types.Type) types.Type {
	sig, ok := t.(*types.Signature)
	if !ok {
		return t
	}
	tuple := func(named *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range named.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", unnamed(v.Type())))
		}
		return types.NewTuple(vars...)
	}
	return types.NewSignatureType(nil, nil, nil, tuple(sig.Params()), tuple(sig.Results()), sig.Variadic())
}

// Object returns the source of a variable or an alias.
func (p Printer) Object(obj types.Object) string { return types.ObjectString(obj, p.qualify) }

// Constant returns the type and value of a constant.
func (p Printer) Constant(c *types.Const) string {
	typ := ""
	if basic, ok := c.Type().(*types.Basic); !ok || basic.Info()&types.IsUntyped == 0 {
		typ = " " + p.Type(c.Type())
	}
	return typ + " = " + c.Val().ExactString()
}

// TypeParams returns a list of type parameters in brackets, or "" if it is empty.
func (p Printer) TypeParams(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var out []string
	for t := range list.TypeParams() {
		out = append(out, t.Obj().Name()+" "+p.Type(t.Constraint()))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// Shape returns the underlying type of t, without the contents of a struct or interface.
func (p Printer) Shape(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return structs
	case *types.Interface:
		return interfaces
	default:
		return p.Type(u)
	}
}

const (
	structs    = "struct"
	interfaces = "interface"
)

// A Part is a field or method of a type, or a variant of a sealed interface.
type Part struct {
	Object     types.Object
	Kind, Type string
	Pointer    bool // only pointers have the method, or are the variant
}

// Name returns the name of a part.
func (p Part) Name() string { return p.Object.Name() }

// The kinds of Part.
const (
	Field   = "field"
	Method  = "method"
	Variant = "variant"
)

// Parts returns the exported fields of a struct, or the exported methods of an interface.
func (p Printer) Parts(named *types.Named) (out []Part) {
	switch u := named.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				out = append(out, Part{f, Field, p.Type(f.Type()), false})
			}
		}
	case *types.Interface:
		for m := range u.Methods() {
			if m.Exported() {
				out = append(out, Part{m, Method, p.Type(m.Type()), false})
			}
		}
	}
	return out
}

// Sealed reports whether t is an interface that only types of its own package can implement.
func Sealed(t types.Type) bool {
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

// Variants returns the exported types of the package that implement a sealed interface.
func (p Printer) Variants(sealed *types.Named) (out []Part) {
	i := sealed.Underlying().(*types.Interface)
	for _, obj := range Exported(p.Package) {
		named := Defined(obj)
		if named == nil || named.TypeParams().Len() > 0 || types.IsInterface(named) {
			continue
		}
		if types.Implements(named, i) {
			out = append(out, Part{obj, Variant, obj.Name(), false})
		} else if types.Implements(types.NewPointer(named), i) {
			out = append(out, Part{obj, Variant, "*" + obj.Name(), true})
		}
	}
	return out
}

// Methods returns the exported methods of a type that is not an interface, those of embedded fields included.
func (p Printer) Methods(named *types.Named) (out []Part) {
	if types.IsInterface(named) {
		return nil
	}
	values := types.NewMethodSet(named)
	for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if f := sel.Obj(); f.Exported() {
			out = append(out, Part{f, Method, p.Type(f.Type()), values.Lookup(f.Pkg(), f.Name()) == nil})
		}
	}
	return out
}
