// Several generated packages share hand-written files. Like go/types, which is generated from the compiler's types2,
// these are written once, in one package, and copied: the code is the same, but in each package it uses that package's
// types.

package gen

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
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
	var edits []edit
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	start := at(file.Package)
	edits = append(edits, edit{at(file.Name.Pos()), at(file.Name.End()), pkg})
	remove := func(doc *ast.CommentGroup, n ast.Node) {
		begin := n.Pos()
		if doc != nil {
			begin = doc.Pos()
		}
		edits = append(edits, edit{at(begin), at(n.End()), ""})
	}
	var kept []ast.Decl
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if own[key(d)] {
				base := "base" + exported(d.Name.Name)
				if d.Doc != nil && strings.HasPrefix(d.Doc.Text(), d.Name.Name+" ") {
					name := at(d.Doc.Pos()) + len("// ")
					edits = append(edits, edit{name, name + len(d.Name.Name), base})
				}
				edits = append(edits, edit{at(d.Name.Pos()), at(d.Name.End()), base})
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			if t, ok := typeSpec(d); ok && own[t.Name.Name] {
				remove(d.Doc, d)
				continue
			}
		}
		kept = append(kept, decl)
	}
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			unused := slices.DeleteFunc(slices.Clone(d.Specs), func(s ast.Spec) bool { return uses(kept, s.(*ast.ImportSpec)) })
			if len(unused) == len(d.Specs) {
				remove(d.Doc, d)
				continue
			}
			for _, spec := range unused {
				remove(nil, spec)
			}
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n// Copied from %s.\n\n", emit.Header, from)
	out.Write(bytes.TrimSpace(source[:start]))
	out.WriteString("\n\n")
	pos := start
	for _, e := range edits {
		out.Write(source[pos:e.from])
		out.WriteString(e.text)
		pos = e.to
	}
	out.Write(source[pos:])
	return format.Source(out.Bytes())
}

// uses reports whether code uses an import.
func uses(code []ast.Decl, spec *ast.ImportSpec) bool {
	name := path.Base(strings.TrimSuffix(strings.Trim(spec.Path.Value, `"`), "/v2"))
	if spec.Name != nil {
		name = spec.Name.Name
	}
	found := false
	for _, decl := range code {
		ast.Inspect(decl, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				id, ok := sel.X.(*ast.Ident)
				found = found || ok && id.Name == name
			}
			return !found
		})
	}
	return found
}

// edit replaces a part of a source file. Edits do not overlap.
type edit struct {
	from, to int
	text     string
}

// typeSpec returns the type that a declaration declares, if it declares nothing else.
func typeSpec(d *ast.GenDecl) (*ast.TypeSpec, bool) {
	if d.Tok != token.TYPE || len(d.Specs) != 1 {
		return nil, false
	}
	t, ok := d.Specs[0].(*ast.TypeSpec)
	return t, ok
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
	if of := receiver(d); of != "" {
		return of + "." + d.Name.Name
	}
	return d.Name.Name
}

// receiver returns the name of a method's receiver type, or "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
