package sessionstore_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A long session is read in time that grows with its length, and in memory that does not.
func TestLongSession(t *testing.T) {
	updates := tier.Pick(500, 1000, 1500, 300_000)
	dir := t.TempDir()
	store, reported := watched(t, dir, sessionstore.Options{})
	create(t, store, "s")
	start := time.Now()
	for range updates / 100 {
		batch := slices.Repeat([]acp.SessionUpdate{acp.AgentMessageText(strings.Repeat("It is done. ", 30))}, 100)
		must.Do(t, store.Append(t.Context(), "s", batch...))
	}
	t.Logf("%d updates appended in %v", updates, time.Since(start).Round(time.Millisecond))

	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	start = time.Now()
	n, peak := 0, uint64(0)
	for _, err := range store.Updates(t.Context(), "s") {
		must.Do(t, err)
		if n++; n%1000 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	took := time.Since(start)
	info := must.Get(os.Stat(filepath.Join(dir, "s-s.jsonl")))(t)
	growth := int64(peak) - int64(before.HeapAlloc)
	t.Logf("%d updates, %.1f MiB, read in %v; the heap grew by at most %.1f MiB", n, float64(info.Size())/(1<<20),
		took.Round(time.Millisecond), float64(growth)/(1<<20))
	if n != updates {
		t.Errorf("%d updates were read", n)
	}
	if growth > 16<<20 {
		t.Errorf("the heap grew by %d bytes", growth)
	}
	if reports := reported(); len(reports) != 0 {
		t.Errorf("reported are %v", reports)
	}
}
