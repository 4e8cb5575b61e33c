package repo_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/test/apitest"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "rewrite the api.txt files, the tables of docs/leniency.md and docs/requirements.md, and the sizes in docs/design.md")

// apiDirs returns the folders of the packages that have an api.txt.
func apiDirs() []string {
	dirs := []string{"acp/rpc", "acp/codec", "acp/local", "acp/negotiate", "acp/remote", "acp/reconnect", "acp/proxy", "acp/conduct", "acp/translate", "acp/launch", "acp/registry", "acp/acptest", "acp/agentkit", "acp/agentkit/workspace", "acp/sessionstore", "acp/sessionstore/storetest", "acp/view", "acp/policy", "acp/acpv2/agentkit"}
	for _, target := range gen.Targets {
		dirs = append(dirs, target.Dir)
	}
	return dirs
}

// compiled returns an importer for the packages that users of the module import, and those in the guides. The go
// command compiles and lists them once.
var compiled = sync.OnceValues(func() (types.Importer, error) {
	paths := slices.Clone(imported)
	for _, dir := range apiDirs() {
		paths = append(paths, modulePath+dir)
	}
	return api.Importer(".", paths...)
})

func TestAPI(t *testing.T) {
	tier.Need(t, tier.Normal)
	imports, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range apiDirs() {
		t.Run(dir, func(t *testing.T) {
			if _, err := os.ReadDir(dir); err != nil { // so that the cache of go test notices changes there
				t.Fatal(err)
			}
			pkg, err := imports.Import(modulePath + dir)
			if err != nil {
				t.Fatal(err)
			}
			lines := markExperimental(t, dir, api.Lines(pkg))
			apitest.Compare(t, filepath.Join(filepath.FromSlash(dir), "api.txt"), lines, *update)
		})
	}
}

// apiLine matches a line of api.txt: the name, or the receiver of a method, its method or field, and the type of a constant.
var apiLine = regexp.MustCompile(`^(?:method \(\*?(\w+)[^)]*\)|\w+ (\w+))(?: (\w+)\(|[^,]* struct, (?:embedded )?\*?(?:\w+\.)?(\w+)| (\w+) = )?`)

// markExperimental marks the lines of declarations that the source of a package documents as experimental: names,
// members, and declarations related to an experimental type.
func markExperimental(t *testing.T, dir string, lines []string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	note := func(name string, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			if strings.Contains(doc.Text(), "\nExperimental: ") {
				names[name] = true
			}
		}
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
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
