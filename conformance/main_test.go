package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schemaOf returns one of the module's schemas.
func schemaOf(tb testing.TB, path ...string) *conformance.Schema {
	tb.Helper()
	text := must.Get(os.ReadFile(filepath.Join(append([]string{".."}, path...)...)))(tb)
	return must.Get(conformance.NewSchema(text))(tb)
}
