package acp

// This file owns the comparison of the package with the schema that it is generated from: nothing of the
// protocol is missing.

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/acpgo/sdk"
)

// leftOut lists the definitions that are not types of this package: the envelopes of messages, which
// the runtime owns with all that only they use, and what rpc.ID and rpc.Error stand for.
var leftOut = []string{
	"AgentNotification", "AgentRequest", "AgentResponse",
	"ClientNotification", "ClientRequest", "ClientResponse",
	"Error", "ErrorCode",
	"ExtNotification", "ExtRequest", "ExtResponse",
	"RequestId",
}

// goNames is how definitions are called in Go whose names are written otherwise.
var goNames = strings.NewReplacer("Id", "ID", "Mcp", "MCP", "Http", "HTTP", "Sse", "SSE", "Url", "URL")

type schemaDefinition struct {
	Method string `json:"x-method"`
	Side   string `json:"x-side"`
}

func readDefinitions(t *testing.T) map[string]schemaDefinition {
	t.Helper()
	var doc struct {
		Defs map[string]schemaDefinition `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(sdk.SchemaV1()), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Defs
}

// declared returns the types of this package's source, and its other identifiers: fields and methods as
// Type.Name, constants also as Name=value.
func declared(t *testing.T) (types, others map[string]bool) {
	t.Helper()
	types, others = map[string]bool{}, map[string]bool{}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				others[receiver(decl)+decl.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						types[spec.Name.Name] = true
						if s, ok := spec.Type.(*ast.StructType); ok {
							for _, field := range s.Fields.List {
								for _, name := range field.Names {
									others[spec.Name.Name+"."+name.Name] = true
								}
							}
						}
					case *ast.ValueSpec:
						for i, name := range spec.Names {
							others[name.Name] = true
							if i < len(spec.Values) {
								if lit, ok := spec.Values[i].(*ast.BasicLit); ok {
									others[name.Name+"="+lit.Value] = true
								}
							}
						}
					}
				}
			}
		}
	}
	return types, others
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return "?."
}

func TestEveryDefinitionIsAType(t *testing.T) {
	types, others := declared(t)
	schema := readDefinitions(t)
	count := 0
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		goName := goNames.Replace(name)
		if slices.Contains(leftOut, name) {
			if definitions[name] != nil {
				t.Errorf("%s is a type of this package, and listed as left out", name)
			}
			continue
		}
		count++
		if !types[goName] {
			t.Errorf("%s: no type %s", name, goName)
			continue
		}
		if definitions[name] == nil {
			t.Errorf("%s is missing in the table of the tests", name)
		}
		for _, method := range []string{"EncodeJSON", "DecodeJSON", "AppendJSON", "MarshalJSON", "UnmarshalJSON"} {
			if !others[goName+"."+method] {
				t.Errorf("%s has no method %s", goName, method)
			}
		}
	}
	for _, name := range leftOut {
		if _, ok := schema[name]; !ok {
			t.Errorf("%s is listed as left out, but the schema does not have it", name)
		}
	}
	if count != 166 {
		t.Errorf("got %d definitions, want 166", count)
	}
}

func TestEveryMethodIsThere(t *testing.T) {
	_, others := declared(t)
	names := map[string]bool{}
	schema := readDefinitions(t)
	for _, definition := range slices.Sorted(maps.Keys(schema)) {
		d := schema[definition]
		if d.Method == "" || strings.HasSuffix(definition, "Response") {
			continue
		}
		names[d.Method] = true
		handler := goNames.Replace(strings.TrimSuffix(strings.TrimSuffix(definition, "Request"), "Notification"))
		if definition == "SessionNotification" {
			handler = "SessionUpdate"
		}
		if !others[`Method`+handler+`="`+d.Method+`"`] {
			t.Errorf("%s: no constant Method%s", d.Method, handler)
		}
		var want []string
		switch d.Side {
		case "agent":
			want = []string{"AgentHandlers." + handler, "AgentPeer." + handler}
		case "client":
			want = []string{"ClientHandlers." + handler, "ClientPeer." + handler}
		}
		for _, w := range want {
			if !others[w] && d.Method != "initialize" {
				t.Errorf("%s: no %s", d.Method, w)
			}
		}
	}
	if len(names) != 25 {
		t.Errorf("got %d methods, want 25: %v", len(names), slices.Sorted(maps.Keys(names)))
	}
}
