package sdk_test

import (
	"flag"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/gen/api"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "write the api.txt files, and the table of docs/leniency.md, anew")

// apiDirs are the folders of the packages that have an api.txt.
func apiDirs() []string {
	dirs := []string{"acp/rpc", "acp/codec", "acp/local", "acp/negotiate", "acp/remote", "acp/reconnect", "acp/launch", "acp/registry", "acp/agentkit", "acp/sessionstore", "acp/sessionstore/storetest", "acp/view", "acp/policy", "acp/v2draft/agentkit"}
	for _, target := range gen.Targets {
		dirs = append(dirs, target.Dir)
	}
	return dirs
}

// compiled imports what users of the module import, and what the guides do: the go command compiles and lists it once.
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
			if _, err := os.ReadDir(dir); err != nil { // so that a change there is none to go test's cache
				t.Fatal(err)
			}
			pkg, err := imports.Import(modulePath + dir)
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
