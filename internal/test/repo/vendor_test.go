package repo_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestVendorGenerated generates the package of examples/acme in this process, and requires that it equals the existing
// one.
func TestVendorGenerated(t *testing.T) {
	overrides, _, err := gen.ParseOverrides(readFile(t, "examples/acme/vendor.overrides"))
	if err != nil {
		t.Fatal(err)
	}
	files := must.Get(gen.Generate(gen.Config{
		Schema: []byte(readFile(t, "examples/acme/vendor.json")), Source: "vendor.json", Package: "vendoracp", Module: "github.com/acpgo/sdk", Overrides: overrides,
	}))(t)
	for name, text := range files {
		if readFile(t, filepath.Join("examples/acme/vendoracp", name)) != string(text) {
			t.Errorf("%s is not what acpgen generates; run go generate in examples/acme", name)
		}
	}
}

// TestVendor copies examples/acme to a directory away from this module, generates the package there, which must equal
// the one in the example, builds it, and makes its agent and client, which are two processes, call each other.
func TestVendor(t *testing.T) {
	tier.Need(t, tier.Full)
	root := must.Get(filepath.Abs("."))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("examples/acme")))
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("go", "mod", "edit", "-replace=github.com/acpgo/sdk="+root)
	if tier.Current() == tier.Nightly {
		regenerate(t, dir, run)
	}
	run("go", "vet", "./...")
	run("go", "test", ".")
	run("go", "build", "-o", "acme.exe", ".")

	// A runtime with another version of the handshake refuses the code at compile time.
	doc, other, overlay := filepath.Join(root, "codec", "doc.go"), filepath.Join(t.TempDir(), "doc.go"), filepath.Join(t.TempDir(), "overlay.json")
	writeFile(t, other, strings.ReplaceAll(readFile(t, doc), "SupportVersion1", "SupportVersion2"))
	writeFile(t, overlay, fmt.Sprintf(`{"Replace":{%q:%q}}`, doc, other))
	refused := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-overlay", overlay, "./vendoracp")
	refused.Dir, refused.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "undefined: codec.SupportVersion1") {
		t.Errorf("with another runtime: %v\n%s", err, out)
	}

	folder := t.TempDir()
	for _, name := range []string{"a.go", "b.ts", "c.txt", "d.json", "e.go"} {
		writeFile(t, filepath.Join(folder, name), "")
	}
	got := run(filepath.Join(dir, "acme.exe"), folder)
	if want := "indexed a.go go\nindexed b.ts typescript\nindexed d.json json\nthat is enough\nThere are files: 1 in go, 1 in json, 1 in typescript\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(run("go", "list", "-deps", ".")) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "github.com/acpgo/sdk/"); ok &&
			own != "acp" && own != "acp/rpc" && own != "codec" && own != "acp/view" && !strings.HasPrefix(own, "internal/") && !strings.HasPrefix(own, "acp/internal/") {
			t.Errorf("the program depends on %s", own)
		}
	}
}

// regenerate removes what acpgen generated, and generates it again. The go tool command that does it ignores GOFLAGS, so it
// compiles the standard library again: TestVendorGenerated has the same result for less.
func regenerate(t *testing.T, dir string, run func(name string, args ...string) string) {
	t.Helper()
	generated, err := filepath.Glob(filepath.Join(dir, "vendoracp", "*_gen.go"))
	if err != nil || len(generated) == 0 {
		t.Fatalf("the example has no generated files: %v", err)
	}
	want := map[string]string{}
	for _, path := range generated {
		want[path] = readFile(t, path)
		must.Do(t, os.Remove(path))
	}
	run("go", "generate", "./...")
	for path, text := range want {
		if readFile(t, path) != text {
			t.Errorf("%s is not what acpgen generates; run go generate in examples/acme", filepath.Base(path))
		}
	}
}

// TestVendorRecipe follows docs/methods.md in an empty module, with its schema and overrides, and with the schema of
// examples/acme.
func TestVendorRecipe(t *testing.T) {
	tier.Need(t, tier.Nightly)
	root := must.Get(filepath.Abs("."))(t)
	page := readFile(t, "docs/methods.md")
	setUp := strings.ReplaceAll(shown(t, readFile(t, "README.md"), "sh\n(go mod init [^`]*)"), "/path/to/clone", root)
	source := shown(t, page, "go\n([^`]*package vendoracp[^`]*)")
	recipe := shown(t, page, "sh\n(go mod edit -tool[^`]*)")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "vendoracp", "vendor.json"), readFile(t, "examples/acme/vendor.json"))
	writeFile(t, filepath.Join(dir, "vendoracp", "vendoracp.go"), source)
	writeFile(t, filepath.Join(dir, "shown", "vendor.json"), shown(t, page, "json\n([^`]*x-method[^`]*)"))
	writeFile(t, filepath.Join(dir, "shown", "vendoracp.go"), source)
	writeFile(t, filepath.Join(dir, "shown", "vendor.overrides"), shown(t, page, "text\n([^`]*IndexResponse[^`]*)"))
	override := "cd shown\n" + shown(t, page, "sh\n(go tool acpgen[^`]*)")
	cmd := exec.CommandContext(ctx, "sh", "-ec", setUp+recipe+override+"go vet ./...\n")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if mod := readFile(t, filepath.Join(dir, "go.mod")); !strings.Contains(mod, "\ntool github.com/acpgo/sdk/cmd/acpgen\n") {
		t.Errorf("go.mod has no tool line:\n%s", mod)
	}
	for _, name := range []string{"types_gen.go", "methods_gen.go"} {
		if readFile(t, filepath.Join(dir, "vendoracp", name)) != readFile(t, filepath.Join("examples/acme/vendoracp", name)) {
			t.Errorf("%s differs from the one in examples/acme", name)
		}
		if _, err := os.Stat(filepath.Join(dir, "shown", name)); err != nil {
			t.Error(err)
		}
	}
	if types := readFile(t, filepath.Join(dir, "shown", "types_gen.go")); !strings.Contains(types, "\tCount ") {
		t.Errorf("the override is not in\n%s", types)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
}
