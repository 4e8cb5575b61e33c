package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/acpgo/sdk/internal/test/tier"
)

// TestCoder type-checks examples/coder and its tests. Only make heavy compiles and runs them, because the libraries of model
// providers that they use take minutes to compile. Type-checking does without the function bodies of dependencies.
func TestCoder(t *testing.T) {
	tier.Need(t, tier.Full)
	dir, err := filepath.Abs("../coder")
	if err != nil {
		t.Fatal(err)
	}
	checked, err := packages.Load(&packages.Config{
		Context: t.Context(),
		Dir:     dir,
		Env:     append(os.Environ(), "CGO_ENABLED=0"),
		Tests:   true,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		ParseFile: func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
			if file == nil || filepath.Dir(name) == dir {
				return file, err
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					f.Body = nil
				}
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, p := range checked {
		for _, f := range p.GoFiles {
			files[f] = true
		}
		for _, e := range p.Errors {
			if !strings.HasSuffix(p.ID, ".test") { // the main package of go test, without its function bodies
				t.Errorf("%s: %v", p.ID, e)
			}
		}
	}
	want, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range want {
		if !files[f] {
			t.Errorf("%s was not type-checked", f)
		}
	}
}
