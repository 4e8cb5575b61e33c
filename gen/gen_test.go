package gen

// This file owns what the tests of the generator share: type-checking its output in this process.

import (
	"bytes"
	"flag"
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
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

const module = "github.com/acpgo/sdk"

// exports maps the packages that generated code may import to their compiled form.
var exports = sync.OnceValues(func() (map[string]string, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", module+"/acp/rpc")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 2 {
			files[fields[0]] = fields[1]
		}
	}
	return files, nil
})

// A checker type-checks generated packages.
type checker struct {
	files    *token.FileSet
	importer types.Importer
}

func newChecker(t testing.TB) *checker {
	t.Helper()
	exported, err := exports()
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{files: token.NewFileSet()}
	c.importer = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exported[path]
		if !ok {
			return nil, fmt.Errorf("generated code imports %s", path)
		}
		return os.Open(file)
	})
	return c
}

// check type-checks the files of a package.
func (c *checker) check(sources map[string][]byte) (*types.Package, error) {
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		f, err := parser.ParseFile(c.files, name, sources[name], parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	config := types.Config{Importer: c.importer}
	return config.Check("generated", c.files, files, nil)
}

func TestDeterministic(t *testing.T) {
	schema, err := os.ReadFile("../schema.json")
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Schema: schema, Source: "schema.json", Package: "acp", Module: module, Overrides: Overrides["v1"], Facade: true, Tests: true}
	first, err := Generate(config)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Generate(config)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(first, second, bytes.Equal) {
		t.Error("the same schema gives different files")
	}
}

func TestWords(t *testing.T) {
	tests := map[string]string{
		"sessionId":     "SessionID",
		"_meta":         "Meta",
		"McpServerHttp": "MCPServerHTTP",
		"HTTPHeader":    "HTTPHeader",
		"switch_mode":   "SwitchMode",
		"date-time":     "DateTime",
		"Parse error":   "ParseError",
		"uri":           "URI",
		"utf8Text":      "Utf8Text",
		"x2Y":           "X2Y",
		"$ref":          "Ref",
	}
	for name, want := range tests {
		if got := exported(name); got != want {
			t.Errorf("exported(%q) = %s, want %s", name, got, want)
		}
	}
}
