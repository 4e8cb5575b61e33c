// Package apitest compares what packages export with their api.txt.
package apitest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/test/must"
)

// Check compares what the package with a path exports with the api.txt in the current folder, or writes the file anew.
func Check(t *testing.T, path string, update bool) {
	t.Helper()
	imports := must.Get(api.Importer(".", path))(t)
	pkg := must.Get(imports.Import(path))(t)
	Compare(t, ".", pkg, update)
}

// Compare compares what a package exports with the api.txt in its folder, or writes the file anew.
func Compare(t *testing.T, dir string, pkg *types.Package, update bool) {
	t.Helper()
	file, lines := filepath.Join(dir, "api.txt"), markExperimental(t, dir, Lines(pkg))
	if update {
		must.Do(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
		return
	}
	text := must.Get(os.ReadFile(file))(t)
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("%s is not what the package exports; make generate writes it (-old +new):\n%s", file, diff)
	}
}

// apiLine matches a line of api.txt: the name, or the receiver of a method, its method or field, and the type of a constant.
var apiLine = regexp.MustCompile(`^(?:method \(\*?(\w+)[^)]*\)|\w+ (\w+))(?: (\w+)\(|[^,]* struct, (?:embedded )?\*?(?:\w+\.)?(\w+)| (\w+) = )?`)

// markExperimental marks the lines of declarations that the source of a package documents as experimental: names,
// members, and declarations related to an experimental type.
func markExperimental(t *testing.T, dir string, lines []string) []string {
	t.Helper()
	paths := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	names := map[string]bool{}
	note := func(name string, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			if strings.Contains(doc.Text(), "\nExperimental: ") {
				names[name] = true
			}
		}
	}
	for _, path := range paths {
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution))(t)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = strings.TrimLeft(types.ExprString(d.Recv.List[0].Type), "*") + "." + name
				}
				note(name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						note(s.Names[0].Name, s.Doc)
					case *ast.TypeSpec:
						note(s.Name.Name, d.Doc, s.Doc)
						if fields, ok := s.Type.(*ast.StructType); ok {
							for _, f := range fields.Fields.List {
								for _, name := range f.Names {
									note(s.Name.Name+"."+name.Name, f.Doc)
								}
							}
						}
					}
				}
			}
		}
	}
	for i, line := range lines {
		m := apiLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%s: cannot parse the line %q", dir, line)
		}
		name, member, constantOf := m[1]+m[2], m[3]+m[4], m[5]
		if names[name] || names[name+"."+member] || names[constantOf] {
			lines[i] += " (experimental)"
		}
	}
	return lines
}
