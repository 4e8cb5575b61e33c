package natsacp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// openIn opens the store of a folder in a server for many tests.
func openIn(url string) storetest.Open {
	return func(tb testing.TB, dir string) sessionstore.Store {
		tb.Helper()
		sum := sha256.Sum256([]byte(dir))
		opts := &natsacp.Options{Name: hex.EncodeToString(sum[:8]), InMemory: true}
		return must.Get(natsacp.OpenStore(tb.Context(), dial(tb, url), opts))(tb)
	}
}

func TestStore(t *testing.T) { storetest.Run(t, openIn(serve(t).ClientURL())) }

func TestStoreProcesses(t *testing.T) {
	tier.Need(t, tier.Normal)
	const inherited = "ACP_NATS_URL" // by the processes of the test
	url := os.Getenv(inherited)
	if url == "" {
		url = serve(t).ClientURL()
		t.Setenv(inherited, url)
	}
	storetest.RunProcesses(t, openIn(url), nil)
}
