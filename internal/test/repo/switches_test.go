package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// TestSwitchesOverUnions requires a default in every hand-written type switch over a union of the protocol. With a newer
// schema, a value that was read as the unknown variant gets a type of its own, which no case names: without a default, the
// program drops it silently.
func TestSwitchesOverUnions(t *testing.T) {
	fset := token.NewFileSet()
	variants := map[string]bool{} // types with the method that makes them a variant of a generated union
	var written []*ast.File
	walkTree(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		file := must.Get(parser.ParseFile(fset, path, readFile(t, path), parser.SkipObjectResolution|parser.ParseComments))(t)
		if !ast.IsGenerated(file) {
			written = append(written, file)
			return
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && len(f.Body.List) == 0 && strings.HasPrefix(f.Name.Name, "is") {
				variants[typeName(f.Recv.List[0].Type)] = true
			}
		}
	})
	if len(variants) < 100 || !variants["ContentBlockText"] {
		t.Fatalf("only %d variants of unions were found", len(variants))
	}
	switches := 0
	for _, file := range written {
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSwitchStmt)
			if !ok {
				return true
			}
			union, named := "", true
			for _, clause := range s.Body.List {
				types := clause.(*ast.CaseClause).List
				named = named && types != nil
				for _, expr := range types {
					if name := typeName(expr); variants[name] {
						union = name
					}
				}
			}
			if union != "" {
				switches++
				if named {
					t.Errorf("%s: this switch, which has a case for %s, needs a default: what happens to variants of newer schemas?",
						fset.Position(s.Pos()), union)
				}
			}
			return true
		})
	}
	t.Logf("%d switches over %d variants", switches, len(variants))
}

// typeName returns the name of a type, without its package, or of the type that it points to.
func typeName(expr ast.Expr) string {
	switch x := expr.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}
