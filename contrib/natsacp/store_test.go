package natsacp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// named returns the options of a store for dir alone, in a server for many tests.
func named(dir string) *natsacp.Options {
	sum := sha256.Sum256([]byte(dir))
	return &natsacp.Options{Name: hex.EncodeToString(sum[:8]), InMemory: true}
}

func openIn(url string) storetest.Open {
	return func(tb testing.TB, dir string) sessionstore.Store {
		tb.Helper()
		store := must.Get(natsacp.OpenStore(tb.Context(), dial(tb, url), named(dir)))(tb)
		return store
	}
}

func TestStore(t *testing.T) { storetest.Run(t, openIn(serve(t))) }

func TestStoreProcesses(t *testing.T) {
	tier.Need(t, tier.Normal)
	url := serve(t)
	t.Setenv(envURL, url)
	storetest.RunProcesses(t, openIn(url), nil)
}
