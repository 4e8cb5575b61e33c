// Package emit writes a model as Go source. It makes no decisions: the model has all declarations, names, and the ways
// to distinguish variants. Each file of this package writes one or two of the generated files, or has code that these
// share: generator.go, doc.go, tags.go and text.go.
package emit

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// Files returns the generated files by name.
func Files(pkg *model.Package, c Config) (map[string][]byte, error) {
	g := &generator{Config: c, pkg: pkg, each: map[string]string{}, ids: map[*model.Field]bool{},
		users: map[model.Decl]bool{}}
	if c.Facade {
		g.findUsers()
		g.findIDs()
	}
	files := []struct {
		name  string
		write func(*jen.File)
		want  bool
	}{
		{"doc_gen.go", func(f *jen.File) { packageComment(f, paragraph(c.Doc, 0)) }, c.Doc != ""},
		{"types_gen.go", g.types, true},
		{"enums_gen.go", g.enums, true},
		{"unions_gen.go", g.unions, true},
		{"codec_gen.go", g.codec, true},
		{"json_gen.go", g.json, true},
		{"methods_gen.go", g.methods, len(pkg.Methods) > 0},
		{"handlers_gen.go", g.handlers, c.Facade},
		{"conns_gen.go", g.conns, c.Facade},
		{"sessions_gen.go", g.sessions, c.Facade},
		{"gates_gen.go", g.gates, c.Facade},
		{"features_gen.go", g.features, c.Facade && len(pkg.Features) > 0},
		{"definitions_gen_test.go", g.definitions, c.Tests},
	}
	out := map[string][]byte{}
	for _, file := range files {
		if !file.want {
			continue
		}
		f := newFile(c.Package, c.Source)
		f.ImportName(c.Module+"/acp/rpc", "rpc")
		file.write(f)
		source, err := render(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
		// a file without declarations is left out, except for the package comment
		if file.name == "doc_gen.go" || !bytes.HasSuffix(bytes.TrimSpace(source), []byte("\npackage "+c.Package)) {
			out[file.name] = source
		}
	}
	return out, nil
}

// standard matches the last import of the standard library and the first of a module.
var standard = regexp.MustCompile(`(?m)^(\t"[^".]+"\n)(\t"[^"/]+\.)`)

// render returns the file in the format of gofmt, with the imports in two groups.
func render(f *jen.File) ([]byte, error) {
	f.NoFormat = true // errors would contain the whole source
	var buf bytes.Buffer
	if err := f.Render(&buf); err != nil {
		return nil, err
	}
	source, err := format.Source(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the generated source is not Go: %w", err)
	}
	return format.Source(standard.ReplaceAll(source, []byte("$1\n$2")))
}
