package repo_test

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestLayers checks that the files of packages that declare layers use each other in only one direction, so that a file
// can be read with only those below it. A few files may form a circle where a package says so.
func TestLayers(t *testing.T) {
	tier.Need(t, tier.Full)
	circles := map[string]int{
		"acp": 4, "acp/acpv2": 4, "acp/agentkit": 6, "acp/translate": 4, "acp/registry": 4, "acp/remote": 1, "internal/engine": 1,
		"conformance/internal/player": 1, "conformance/internal/schema": 3, "conformance/probe": 6, "gen": 6, "internal/gen/emit": 2,
		"cmd/acp": 4, "cmd/acp/internal/tui": 6, "cmd/acp/internal/draw": 5, "cmd/acp/internal/talk": 4,
	}
	compiled := map[string]string{} // packages, and the files of their exported names
	for dir := range circles {
		list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".")
		list.Dir = dir // it may be in another module
		out := must.Get(list.Output())(t)
		for line := range strings.Lines(string(out)) {
			name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
			compiled[name] = file
		}
	}
	fset := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(compiled[name])
	})}
	for dir, most := range circles {
		pkg := must.Get(build.ImportDir(dir, 0))(t)
		var files []*ast.File
		for _, name := range pkg.GoFiles {
			file := must.Get(parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution))(t)
			files = append(files, file)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		checked := must.Get(config.Check(dir, fset, files, info))(t)
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
		if len(uses) < 2 {
			t.Errorf("%s: only %d files use others", dir, len(uses))
		}
		reached := map[string]map[string]bool{} // from a file, over any number of others
		var visit func(from, file string)
		visit = func(from, file string) {
			for to := range uses[file] {
				if !reached[from][to] {
					reached[from][to] = true
					visit(from, to)
				}
			}
		}
		for file := range uses {
			reached[file] = map[string]bool{}
			visit(file, file)
		}
		for file := range uses {
			circle := slices.DeleteFunc(slices.Sorted(maps.Keys(reached[file])), func(other string) bool { return !reached[other][file] })
			if len(circle) <= most || circle[0] != file {
				continue // it is reported with its first file
			}
			t.Errorf("%s: a circle of %d files, at most %d may use each other:", dir, len(circle), most)
			for _, from := range circle {
				for _, to := range circle {
					if name := uses[from][to]; name != "" {
						t.Errorf("\t%s uses %s of %s", from, name, to)
					}
				}
			}
		}
	}
}
