package api

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Importer returns an importer of the packages that match the patterns, and of those that they import, as the go
// command compiles them in a directory.
func Importer(dir string, patterns ...string) (types.Importer, error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "--"},
		patterns...)...)
	list.Dir = dir
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", strings.Join(patterns, " "), err, stderr.String())
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			compiled[path] = file
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		file, ok := compiled[path]
		if !ok {
			return nil, fmt.Errorf("package %s was not compiled", path)
		}
		return os.Open(file)
	}), nil
}

// Declarations type-checks the declarations of a generated package, but not the bodies of its functions. Types that are
// used through a pointer but not declared would be declared by hand-written files; they count as structs without
// exported fields. Test files are ignored.
func Declarations(path string, sources map[string][]byte, imports types.Importer) (*types.Package, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, sources[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return types.NewPackage(path, ""), nil
	}
	rest, err := parser.ParseFile(fset, "by hand", handWritten(files), parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: imports, IgnoreFuncBodies: true}
	return config.Check(path, fset, append(files, rest), nil)
}

// handWritten returns a file that declares the types that the files use through a pointer but do not declare.
func handWritten(files []*ast.File) string {
	declared, used := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				return false
			case *ast.TypeSpec:
				declared[n.Name.Name] = true
			case *ast.FuncType:
				if n.TypeParams != nil {
					for _, param := range n.TypeParams.List {
						for _, name := range param.Names {
							declared[name.Name] = true
						}
					}
				}
			case *ast.StarExpr:
				if id, ok := n.X.(*ast.Ident); ok && types.Universe.Lookup(id.Name) == nil {
					used[id.Name] = true
				}
			}
			return true
		})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "package %s\n", files[0].Name.Name)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !declared[name] {
			fmt.Fprintf(&out, "type %s struct { %s int }\n", name, marker)
		}
	}
	return out.String()
}

// marker is the name of the field of types that only hand-written files declare.
const marker = "byHand"

func byHand(obj types.Object) bool {
	s, ok := obj.Type().Underlying().(*types.Struct)
	return ok && s.NumFields() == 1 && s.Field(0).Name() == marker
}
