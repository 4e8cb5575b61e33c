package gen

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/gen/model"
)

// Every schema that is there becomes Go that compiles: the current ones of the repository, and the
// published ones in the folder that ACP_SHARED names.
func TestCorpus(t *testing.T) {
	paths := []string{"../schema.json", "../schema/v1.unstable.json", "../schema/v2.json", "../schema/v2.unstable.json"}
	root := os.Getenv("ACP_SHARED")
	if root == "" {
		root = "../shared"
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", root) // from the module's root
	}
	published, err := filepath.Glob(filepath.Join(root, "schemas", "*", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(published) == 0 {
		t.Logf("no schemas in %s, so only the current ones: set ACP_SHARED", filepath.Join(root, "schemas"))
	}
	if testing.Short() {
		published = nil
	}
	check := newChecker(t)
	for _, path := range append(paths, published...) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files, pkg, err := generate(Config{Schema: data, Source: path, Package: "acp", Module: module, Tests: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := check.check(files); err != nil {
				t.Errorf("it does not compile: %v", err)
			}
			unions := 0
			for _, d := range pkg.Decls {
				if _, ok := d.(*model.Union); ok {
					unions++
				}
			}
			t.Logf("%d types, %d of them unions, %d methods", len(pkg.Decls), unions, len(pkg.Methods))
		})
	}
	t.Logf("%d schemas", len(paths)+len(published))
}
