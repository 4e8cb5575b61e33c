package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schemaOf returns one of the module's schemas.
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
