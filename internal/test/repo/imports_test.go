package repo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestImports enforces the decisions on the import graph: packages that users import have few dependencies, and imports
// go in one direction.
func TestImports(t *testing.T) {
	tier.Need(t, tier.Normal)
	const module = "github.com/acpgo/sdk"
	type pkg struct {
		ImportPath string
		Standard   bool
		Imports    []string
		Deps       []string
	}
	all := map[string]pkg{}
	for _, dir := range []string{".", "acp/acpv2"} { // modules
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "./...")
		list.Dir = dir
		out := must.Get(list.Output())(t)
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var p pkg
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			all[p.ImportPath] = p
		}
	}

	for _, lean := range []string{
		"/acp", "/acp/acpv2",
		"/acp/rpc", "/codec", "/acp/local", "/acp/reconnect", "/acp/proxy", "/acp/conduct", "/acp/translate", "/acp/launch", "/acp/registry", "/internal/engine", "/internal/wire", "/acp/agentkit", "/acp/agentkit/workspace", "/acp/sessionstore", "/acp/view",
	} {
		p, ok := all[module+lean]
		if !ok {
			t.Fatalf("no package %s", lean)
		}
		for _, dep := range p.Deps {
			switch {
			case dep == "net/http" && (lean == "/acp" || lean == "/acp/agentkit"):
				t.Errorf("%s depends on %s, which makes each agent 2 MB larger", lean, dep)
			case dep == "crypto/rand" && lean == "/acp":
				t.Errorf("%s depends on %s, and with it on 32 other packages", lean, dep)
			case all[dep].Standard, strings.HasPrefix(dep, "vendor/"):
			case dep == "github.com/sourcegraph/jsonrpc2":
			case strings.HasPrefix(dep, module+"/acp"), strings.HasPrefix(dep, module+"/internal/"), dep == module+"/codec":
			default:
				t.Errorf("%s depends on %s", lean, dep)
			}
		}
	}
	// The module promises more than those nested in it, version 2 among them, and imports none: what go.mod does not require,
	// tests cannot import either.
	mod := must.Get(modfile.Parse("go.mod", []byte(readFile(t, "go.mod")), nil))(t)
	for _, r := range mod.Require {
		if strings.HasPrefix(r.Mod.Path, module) {
			t.Errorf("the module requires %s, which is nested in it", r.Mod.Path)
		}
	}
	// A program that uses one version of the protocol does not also import another.
	versions := []string{"/acp", "/acp/acpv2"}
	for _, p := range all {
		own, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok {
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			bad := imp == "github.com/sourcegraph/jsonrpc2" && own != "/internal/wire" ||
				strings.HasPrefix(imp, "github.com/coder/websocket") && own != "/acp/remote" ||
				ours && own == "/acp/remote" && slices.Contains(versions, to) ||
				ours && own == "/codec" ||
				ours && strings.HasPrefix(own, "/internal/") && !strings.HasPrefix(own, "/internal/test/") && !isGenerator(own) && strings.HasPrefix(to, "/acp") ||
				ours && slices.Contains(versions, own) && !slices.Contains([]string{"/acp/rpc", "/codec", "/internal/engine", "/acp/internal/serve"}, to) ||
				ours && own == "/internal/engine" && to != "/codec" && to != "/internal/wire" ||
				ours && own == "/internal/wire" && to != "/codec" && to != "/internal/fastpath" ||
				ours && own == "/acp/rpc" && !strings.HasPrefix(to, "/internal/") && to != "/codec" ||
				ours && strings.HasPrefix(own, "/acp") && (strings.HasPrefix(to, "/conformance") || isGenerator(to) || strings.HasPrefix(to, "/internal/test") || to == "") ||
				ours && isGenerator(own) && !isGenerator(to) ||
				ours && strings.HasPrefix(to, "/internal/test/") && !strings.HasPrefix(own, "/internal/test/") && !strings.HasPrefix(own, "/examples") && !strings.HasPrefix(own, "/bench")
			if bad {
				t.Errorf("%s imports %s", p.ImportPath, imp)
			}
		}
	}
}

// TestImportsOfFiles requires that the programs of the examples compile in any module: they import no internal packages.
// One file imports package unsafe, beside those with system calls.
func TestImportsOfFiles(t *testing.T) {
	mayBeUnsafe := regexp.MustCompile(`^(codec/unsafe\.go|conformance/recording/relay/.*|internal/tty/.*)$`)
	found := 0
	walkTree(t, func(path string) {
		path = filepath.ToSlash(path)
		if !strings.HasSuffix(path, ".go") {
			return
		}
		example := strings.HasPrefix(path, "examples/") && !strings.HasSuffix(path, "_test.go")
		if example {
			found++
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly))(t)
		for _, imp := range file.Imports {
			if example && strings.Contains(imp.Path.Value, "/internal/") ||
				imp.Path.Value == `"unsafe"` && !mayBeUnsafe.MatchString(path) {
				t.Errorf("%s imports %s", path, imp.Path.Value)
			}
		}
	})
	if found < 10 {
		t.Errorf("only %d files found", found)
	}
}

// isGenerator reports whether a package belongs to the generator, which no other part of the module needs.
func isGenerator(path string) bool {
	return path == "/gen" || strings.HasPrefix(path, "/internal/gen/")
}
