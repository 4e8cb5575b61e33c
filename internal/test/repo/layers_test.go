package repo_test

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"
)

// TestLayers checks that the files of packages that declare layers use each other in only one direction, so that a file
// can be read with only those below it.
func TestLayers(t *testing.T) {
	tier.Need(t, tier.Normal)
	dirs := []string{"internal/engine", "acp/remote"}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./" + dirs[0], "./" + dirs[1]}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{} // packages, and the files of their exported names
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[name] = file
	}
	fset := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(compiled[name])
	})}
	for _, dir := range dirs {
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		var files []*ast.File
		for _, name := range pkg.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		checked, err := config.Check(dir, fset, files, info)
		if err != nil {
			t.Fatal(err)
		}
		uses := map[string]map[string]string{} // of a file, the files that it uses, and a name of each
		for id, object := range info.Uses {
			if object.Pkg() != checked || !object.Pos().IsValid() {
				continue
			}
			from := filepath.Base(fset.Position(id.Pos()).Filename)
			to := filepath.Base(fset.Position(object.Pos()).Filename)
			if uses[from] == nil {
				uses[from] = map[string]string{}
			}
			if from != to {
				uses[from][to] = id.Name
			}
		}
		if len(uses) < 10 {
			t.Errorf("%s: only %d files use others", dir, len(uses))
		}
		var path, done []string
		var visit func(file string)
		visit = func(file string) {
			if i := slices.Index(path, file); i >= 0 {
				t.Errorf("%s: a cycle of files:", dir)
				for j, from := range path[i:] {
					to := append(path[i+j+1:], file)[0]
					t.Errorf("\t%s uses %s of %s", from, uses[from][to], to)
				}
			}
			if slices.Contains(path, file) || slices.Contains(done, file) {
				return
			}
			path = append(path, file)
			for to := range uses[file] {
				visit(to)
			}
			path = path[:len(path)-1]
			done = append(done, file)
		}
		for file := range uses {
			visit(file)
		}
	}
}
