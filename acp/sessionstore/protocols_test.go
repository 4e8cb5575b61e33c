package sessionstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// openV2 opens a store for version 2. What the updates are does not matter here: package acpv2 tests it with its own.
func openV2(tb testing.TB, dir string) sessionstore.Store {
	d, err := sessionstore.OpenOf[acp.SessionUpdate](dir, 2, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// The version changes nothing of what TestDir shows, so a slower tier repeats it.
func TestDirV2(t *testing.T) {
	tier.Need(t, tier.Nightly)
	storetest.Run(t, openV2)
}

// Processes share a folder in the same way whatever the version.
func TestDirV2Processes(t *testing.T) {
	tier.Need(t, tier.Nightly)
	storetest.RunProcesses(t, openV2, processes())
}

// A session of one version is not found by a store of another that has the same folder, and one of the same id is another one.
func TestVersionsShareAFolder(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var reports []sessionstore.Damage
	one, err := sessionstore.Open(dir, &sessionstore.Options{Damaged: func(d sessionstore.Damage) { reports = append(reports, d) }})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two := openV2(t, dir)
	defer two.Close()
	for _, id := range []acp.SessionID{"both", "Hashed"} {
		create(t, one, id, "one")
		if _, err := two.Get(ctx, id); !errors.Is(err, sessionstore.ErrNotFound) {
			t.Errorf("version 2 has %s: %v", id, err)
		}
		if page, err := two.List(ctx, sessionstore.Query{}); err != nil || len(page.Sessions) != 0 {
			t.Errorf("version 2 lists %v, %v", page.Sessions, err)
		}
		if err := two.Create(ctx, sessionstore.Record{Info: sessionstore.Info{ID: id, Cwd: "/two"}}); err != nil {
			t.Error(err)
		}
		if err := two.Delete(ctx, id); err != nil {
			t.Error(err)
		}
		if got := listed(t, one); len(got) != 1 || got[0] != id {
			t.Errorf("version 1 lists %q", got)
		}
		if err := one.Delete(ctx, id); err != nil {
			t.Error(err)
		}
	}

	// Also who renames a file does not make a session of another version of it.
	create(t, one, "renamed")
	head, err := os.ReadFile(filepath.Join(dir, "s-renamed.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "s2-renamed.json"), head, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Get(ctx, "renamed"); err == nil || errors.Is(err, sessionstore.ErrNotFound) || !strings.Contains(err.Error(), "version 1 of the protocol") {
		t.Errorf("a renamed file: %v", err)
	}
	if len(reports) != 0 {
		t.Errorf("reported are %v", reports)
	}
	if store, err := sessionstore.OpenOf[acp.SessionUpdate](dir, 0, nil); err == nil {
		t.Errorf("version 0 was opened: %v", store)
	}
}
