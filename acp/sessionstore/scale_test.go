package sessionstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// updates is how many updates a session has.
func updates() int { return tier.Pick(500, 1000, 1500, 300_000) }

// long makes a session as agents make them: prompts, thoughts, messages of some hundred bytes, and tool calls.
func long(tb testing.TB, store sessionstore.Store, id acp.SessionID, n int) {
	tb.Helper()
	var batch []acp.SessionUpdate
	flush := func() {
		must.Do(tb, store.Append(tb.Context(), id, batch...))
		batch = batch[:0]
	}
	for i := range n {
		call := acp.ToolCallID(fmt.Sprint("call_", i/5))
		switch i % 5 {
		case 0:
			batch = append(batch, acp.UserMessageText(strings.Repeat("please ", 10)))
		case 1:
			batch = append(batch, acp.AgentThoughtText(strings.Repeat("I think ", 30)))
		case 2:
			batch = append(batch, acp.StartToolCall(call, "Edit a file", acp.WithKind(acp.ToolKindEdit), acp.WithInput(map[string]int{"line": i})))
		case 3:
			batch = append(batch, acp.UpdateToolCall(call, acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithContent(acp.ToolEdit("/w/a.go", "old", "new"))))
		case 4:
			batch = append(batch, acp.AgentMessageText(strings.Repeat("It is done. ", 30)))
		}
		if len(batch) == 100 {
			flush()
		}
	}
	flush()
}

// A long session is read in time that grows with its length, and in memory that does not.
func TestLongSession(t *testing.T) {
	dir := t.TempDir()
	store, reported := watched(t, dir, sessionstore.Options{})
	create(t, store, "s")
	start := time.Now()
	long(t, store, "s", updates())
	t.Logf("%d updates appended in %v", updates(), time.Since(start).Round(time.Millisecond))

	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	start = time.Now()
	n, peak := 0, uint64(0)
	for _, err := range store.Updates(t.Context(), "s") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%1000 == 0 {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	took := time.Since(start)
	info := must.Get(os.Stat(filepath.Join(dir, "s-s.jsonl")))(t)
	growth := int64(peak) - int64(before.HeapAlloc)
	t.Logf("%d updates, %.1f MiB, read in %v; the heap grew by at most %.1f MiB", n, float64(info.Size())/(1<<20), took.Round(time.Millisecond), float64(growth)/(1<<20))
	if n != updates() {
		t.Errorf("%d updates were read", n)
	}
	if growth > 16<<20 {
		t.Errorf("the heap grew by %d bytes", growth)
	}
	if reports := reported(); len(reports) != 0 {
		t.Errorf("reported are %v", reports)
	}
}

func BenchmarkAppend(b *testing.B) {
	store := open(b, b.TempDir())
	defer store.Close()
	must.Do(b, store.Create(b.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "s"}}))
	update := acp.AgentMessageText(strings.Repeat("x", 500))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i++; i%100_000 == 0 { // within what a session may have
			must.Do(b, store.Delete(b.Context(), "s"))
			must.Do(b, store.Create(b.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "s"}}))
		}
		must.Do(b, store.Append(b.Context(), "s", update))
	}
}

func BenchmarkUpdates(b *testing.B) {
	store := open(b, b.TempDir())
	defer store.Close()
	must.Do(b, store.Create(b.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "s"}}))
	const n = 1000
	long(b, store, "s", n)
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range store.Updates(b.Context(), "s") {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/update")
}
