package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schemaOf reads one of the module's schemas.
func schemaOf(tb testing.TB, path ...string) *conformance.Schema {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{".."}, path...)...))
	if err != nil {
		tb.Fatal(err)
	}
	schema, err := conformance.NewSchema(text)
	if err != nil {
		tb.Fatal(err)
	}
	return schema
}

// shared is a folder of the material that is not in the module; a test that needs it skips where it
// is absent.
func shared(tb testing.TB, folder string) string {
	tb.Helper()
	root := os.Getenv("ACP_SHARED")
	if root == "" {
		root = "../shared"
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", root) // relative to the module
	}
	path := filepath.Join(root, folder)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("SKIPPED: no %s here (set ACP_SHARED)", folder)
	}
	return path
}
