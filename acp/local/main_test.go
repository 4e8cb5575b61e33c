package local

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is the one that tests use unless sessions are what they test.
const session acp.SessionID = "s1"

func openRoots(t *testing.T, dirs ...string) *Roots {
	t.Helper()
	roots, err := OpenRoots(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roots.Close() })
	return roots
}
