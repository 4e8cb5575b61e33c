package gen

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "write the golden files anew")

const module = "github.com/acpgo/sdk"

// runtime returns an importer of the packages that generated code may import.
var runtime = sync.OnceValues(func() (types.Importer, error) { return api.Importer("..", module+"/acp/rpc") })

// A checker type-checks generated packages.
type checker struct {
	files    *token.FileSet
	importer types.Importer
}

func newChecker(t testing.TB) *checker {
	t.Helper()
	imports := must.Get(runtime())(t)
	return &checker{token.NewFileSet(), imports}
}

// check type-checks the files of a package.
func (c *checker) check(sources map[string][]byte) (*types.Package, error) {
	return c.checkAs("generated", sources)
}

func (c *checker) checkAs(path string, sources map[string][]byte) (*types.Package, error) {
	files, err := c.parse(sources)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: c.importer}
	return config.Check(path, c.files, files, nil)
}

func (c *checker) parse(sources map[string][]byte) ([]*ast.File, error) {
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		f, err := parser.ParseFile(c.files, name, sources[name], parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// bodies generates code, and returns the files without their headers, which have a digest of the schema.
func bodies(schema string, overrides ...Override) (map[string][]byte, error) {
	files, err := Generate(Config{Schema: []byte(schema), Source: "schema.json", Package: "golden", Module: module, Overrides: overrides})
	for name, file := range files {
		_, files[name], _ = bytes.Cut(file, []byte("\n\n"))
	}
	return files, err
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
		"éa_Öb_名":       "ÉaÖb名",
		"ßx":            "ßx",
		"3d":            "3d",
		"$":             "",
	}
	for name, want := range tests {
		if got := exported(name); got != want {
			t.Errorf("exported(%q) = %s, want %s", name, got, want)
		}
	}
	first := map[string]string{"3d": "X3d", "ßx": "Xßx", "名": "X名", "ǆ": "Ǆ", "ǅ": "Ǆ", "_a": "A", "$": "", "xa": "Xa"}
	for name, want := range first {
		if got := leading(name); got != want {
			t.Errorf("leading(%q) = %s, want %s", name, got, want)
		}
	}
}

// Every opening is used at the start of a description.
func TestOpeningsAreUsed(t *testing.T) {
	tier.Need(t, tier.Normal)
	var descriptions []string
	for _, target := range Targets {
		data := must.Get(os.ReadFile(filepath.Join("..", filepath.FromSlash(target.Schema))))(t)
		doc := must.Get(schema.Parse(data, nil))(t)
		doc.Walk(func(n *schema.Node) { descriptions = append(descriptions, n.Description) })
	}
	for _, o := range openings {
		if !slices.ContainsFunc(descriptions, func(text string) bool { return strings.HasPrefix(text, o[0]) }) {
			t.Errorf("no description begins with %q", o[0])
		}
	}
}
