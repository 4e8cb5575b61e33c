package acpv2_test

import (
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestStore: a store keeps the updates of version 2 like those of version 1.
func TestStore(t *testing.T) {
	tier.Need(t, tier.Normal)
	storetest.RunOf(t, func(tb testing.TB, dir string) sessionstore.StoreOf[acpv2.SessionUpdate] {
		tb.Helper()
		d, err := sessionstore.OpenOf[acpv2.SessionUpdate](dir, 2, nil)
		if err != nil {
			tb.Fatal(err)
		}
		return d
	})
}
