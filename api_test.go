package sdk_test

// This file owns the goldens of the exported API, an api.txt in each package's folder: what a bump of the
// schema changes for users is a diff of these files.

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/gen/api"
)

var update = flag.Bool("update", false, "write the api.txt files, and the table of docs/leniency.md, anew")

func TestAPI(t *testing.T) {
	const module = "github.com/acpgo/sdk/"
	dirs := []string{"acp/rpc", "acp/codec", "acp/local", "acp/negotiate", "acp/remote", "acp/reconnect", "acp/launch", "acp/registry", "acp/agentkit", "acp/sessionstore", "acp/sessionstore/storetest", "acp/view", "acp/policy", "acp/v2draft/agentkit"}
	for _, target := range gen.Targets {
		dirs = append(dirs, target.Dir)
	}
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, module+dir)
	}
	imports, err := api.Importer(".", paths...)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			if _, err := os.ReadDir(dir); err != nil { // so that a change there is none to go test's cache
				t.Fatal(err)
			}
			pkg, err := imports.Import(module + dir)
			if err != nil {
				t.Fatal(err)
			}
			lines := api.Lines(pkg)
			golden := filepath.Join(filepath.FromSlash(dir), "api.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			text, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("%s is not what the package exports; make generate writes it (-old +new):\n%s", golden, diff)
			}
		})
	}
}
