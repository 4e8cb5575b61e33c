package repo_test

import (
	"flag"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/test/apitest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "rewrite the api.txt files, the tables of docs/reference/leniency.md and docs/reference/requirements.md, and the sizes in docs/design.md")

// apiDirs returns the folders of the packages of the module that have an api.txt.
func apiDirs() []string {
	return []string{"acp", "acp/rpc", "codec", "acp/local", "acp/remote", "acp/reconnect", "acp/proxy", "acp/conduct", "acp/translate", "acp/launch", "acp/registry", "conformance/acptest", "acp/agentkit", "acp/agentkit/workspace", "acp/sessionstore", "acp/sessionstore/storetest", "acp/view", "acp/policy"}
}

// compiled returns an importer for the packages that users of the module import, and those in the guides. The go
// command compiles and lists them once.
var compiled = sync.OnceValues(func() (types.Importer, error) {
	paths := slices.Clone(imported)
	for _, dir := range apiDirs() {
		paths = append(paths, modulePath+dir)
	}
	return api.Importer(".", paths...)
})

func TestAPI(t *testing.T) {
	tier.Need(t, tier.Normal)
	imports := must.Get(compiled())(t)
	for _, dir := range apiDirs() {
		t.Run(dir, func(t *testing.T) {
			if _, err := os.ReadDir(dir); err != nil { // so that the cache of go test notices changes there
				t.Fatal(err)
			}
			pkg := must.Get(imports.Import(modulePath + dir))(t)
			apitest.Compare(t, filepath.FromSlash(dir), pkg, *update)
		})
	}
}
