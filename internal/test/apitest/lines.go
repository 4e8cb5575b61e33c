package apitest

import (
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/internal/gen/api"
)

// Lines returns the exported API of a package as sorted lines: one for each constant, variable, function, type, field
// and method.
func Lines(pkg *types.Package) []string {
	p := api.Printer{Package: pkg}
	var lines []string
	for _, obj := range api.Exported(pkg) {
		if named := api.Defined(obj); named != nil {
			lines = append(lines, definition(p, named)...)
		} else {
			lines = append(lines, declaration(p, obj))
		}
	}
	slices.Sort(lines)
	return lines
}

// declaration returns the line for an object that is not a defined type.
func declaration(p api.Printer, obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Const:
		return "const " + obj.Name() + p.Constant(obj)
	case *types.Func:
		return "func " + obj.Name() + p.TypeParams(obj.Signature().TypeParams()) + signature(p.Type(obj.Type()))
	}
	return p.Object(obj) // a variable or an alias
}

// signature returns the parameters and results of the type of a function.
func signature(typ string) string { return strings.TrimPrefix(typ, "func") }

// definition returns the lines for a defined type.
func definition(p api.Printer, named *types.Named) []string {
	name := named.Obj().Name()
	head := "type " + name + p.TypeParams(named.TypeParams()) + " " + p.Shape(named)
	lines := []string{head}
	for _, part := range p.Parts(named) {
		if part.Kind == api.Method {
			lines = append(lines, head+", "+part.Name()+signature(part.Type))
		}
	}
	if u, ok := named.Underlying().(*types.Struct); ok {
		for i := range u.NumFields() {
			if u.Field(i).Exported() {
				lines = append(lines, head+", "+field(p, u.Field(i), u.Tag(i)))
			}
		}
	}
	if api.Sealed(named) {
		lines = append(lines, head+", unexported methods")
		for _, v := range p.Variants(named) {
			lines = append(lines, head+", implemented by "+v.Type)
		}
	}
	for _, m := range p.Methods(named) {
		receiver := name
		if m.Pointer {
			receiver = "*" + name
		}
		lines = append(lines, "method ("+receiver+") "+m.Name()+signature(m.Type))
	}
	return lines
}

// field returns a field with its name in JSON.
func field(p api.Printer, f *types.Var, tag string) string {
	line := f.Name() + " " + p.Type(f.Type())
	if f.Embedded() {
		line = "embedded " + p.Type(f.Type())
	}
	if json, ok := reflect.StructTag(tag).Lookup("json"); ok {
		line += " " + strconv.Quote(json)
	}
	return line
}
