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

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestModules type-checks the modules, with their tests, that only make heavy compiles and runs: the databases, brokers and
// model providers that they use take minutes to compile. Type-checking does without the function bodies of dependencies.
func TestModules(t *testing.T) {
	tier.Need(t, tier.Full)
	files, err := filepath.Glob("../contrib/*/go.mod")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../examples/coder/go.mod", "../examples/kit-agent/go.mod", "../examples/kit-client/go.mod") {
		dir, err := filepath.Abs(filepath.Dir(file))
		must.Do(t, err)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			checkTypes(t, dir)
		})
	}
}

func checkTypes(t *testing.T, dir string) {
	checked, err := packages.Load(&packages.Config{
		Context: t.Context(),
		Dir:     dir,
		Env:     append(os.Environ(), "CGO_ENABLED=0"),
		Tests:   true,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		ParseFile: func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
			if file == nil || strings.HasPrefix(name, dir+string(filepath.Separator)) {
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
	must.Do(t, err)
	tests := 0
	for _, p := range checked {
		for _, f := range p.GoFiles {
			if strings.HasSuffix(f, "_test.go") {
				tests++
			}
		}
		for _, e := range p.Errors {
			if !strings.HasSuffix(p.ID, ".test") { // the main package of go test, without its function bodies
				t.Errorf("%s: %v", p.ID, e)
			}
		}
	}
	if tests == 0 {
		t.Error("no test was type-checked")
	}
}
