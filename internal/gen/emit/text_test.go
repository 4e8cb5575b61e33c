package emit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// Text that is written unchanged, such as comments, operators and tags, comes from text.go or is constant. All other
// source text is an identifier, or a literal quoted by strconv.
func TestTextPassesOnePlace(t *testing.T) {
	raw := map[string]bool{
		"Comment": true, "Commentf": true, "HeaderComment": true, "PackageComment": true, "CgoPreamble": true,
		"Op": true, "Tag": true, "LitFunc": true, "source": true,
	}
	paths, err := filepath.Glob("*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	calls := 0
	for _, path := range paths {
		if path == "text.go" || strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file := must.Get(parser.ParseFile(fset, path, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, args := "", call.Args
			switch fun := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			case *ast.Ident:
				if name = fun.Name; name == "source" {
					args = args[:1]
				}
			}
			if !raw[name] {
				return true
			}
			calls++
			for _, arg := range args {
				if lit, ok := arg.(*ast.BasicLit); !ok || lit.Kind != token.STRING {
					t.Errorf("%s: the argument of %s is not constant: let it pass through text.go", fset.Position(arg.Pos()), name)
				}
			}
			return true
		})
	}
	if calls < 50 {
		t.Errorf("found only %d calls", calls)
	}
}
