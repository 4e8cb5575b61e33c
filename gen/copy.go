// Several generated packages share hand-written files. Like go/types, which is generated from the compiler's types2,
// these are written once, in one package, and copied: the code is the same, but in each package it uses that package's
// types.

package gen

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/emit"
)

// Copy returns a copy of a source file for another package, with that package's name and a header that names the
// origin. The declarations in own, the hand-written files of that package, have precedence: a type that own declares is
// left out of the copy, and a function or method that own declares is copied under a name that begins with "base", so
// that the package's own one can call it.
func Copy(source []byte, from, pkg string, own Declared) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, from, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	file.Name.Name = pkg
	remove := func(d *ast.GenDecl) bool {
		file.Comments = slices.DeleteFunc(file.Comments, func(c *ast.CommentGroup) bool {
			return c == d.Doc || d.Pos() <= c.Pos() && c.End() <= d.End()
		})
		return true
	}
	file.Decls = slices.DeleteFunc(file.Decls, func(decl ast.Decl) bool {
		d, ok := decl.(*ast.GenDecl)
		alone := ok && d.Tok == token.TYPE && len(d.Specs) == 1
		return alone && own[d.Specs[0].(*ast.TypeSpec).Name.Name] && remove(d)
	})
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok && own[key(d)] {
			base := "base" + exported(d.Name.Name)
			if d.Doc != nil && strings.HasPrefix(d.Doc.Text(), d.Name.Name+" ") {
				d.Doc.List[0].Text = strings.Replace(d.Doc.List[0].Text, d.Name.Name, base, 1)
			}
			d.Name.Name = base
		}
	}
	code := slices.Clone(file.Decls)
	file.Decls = slices.DeleteFunc(file.Decls, func(decl ast.Decl) bool {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.IMPORT {
			return false
		}
		d.Specs = slices.DeleteFunc(d.Specs, func(s ast.Spec) bool { return !uses(code, s.(*ast.ImportSpec)) })
		return len(d.Specs) == 0 && remove(d)
	})
	out := bytes.NewBufferString(emit.Header + "\n// Copied from " + from + ".\n\n")
	err = format.Node(out, fset, file)
	return out.Bytes(), err
}

// uses reports whether code uses an import.
func uses(code []ast.Decl, spec *ast.ImportSpec) bool {
	name := path.Base(strings.TrimSuffix(strings.Trim(spec.Path.Value, `"`), "/v2"))
	if spec.Name != nil {
		name = spec.Name.Name
	}
	for _, decl := range code {
		for n := range ast.Preorder(decl) {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
					return true
				}
			}
		}
	}
	return false
}

// Declared has the types, functions and methods that a package's hand-written files declare. A method is its type, a
// dot and its name.
type Declared map[string]bool

// Add adds the declarations of a file.
func (own Declared) Add(name string, source []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			own[key(d)] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					own[t.Name.Name] = true
				}
			}
		}
	}
	return nil
}

// key returns the name of a function or method in Declared.
func key(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + d.Name.Name
}
