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
	"github.com/acpgo/sdk/internal/test/tier"
)

// sessions is how many sessions are listed, and updates how many updates a session has.
func sessions() int { return tier.Pick(200, 300, 500, 10_000) }
func updates() int  { return tier.Pick(500, 1000, 1500, 300_000) }

// A list takes the time that its sessions take, and not that of their content, which it does not even open.
func TestManySessions(t *testing.T) {
	tier.Need(t, tier.Normal)
	timed := func(what string, f func()) time.Duration {
		start := time.Now()
		f()
		took := time.Since(start)
		t.Logf("%s: %v", what, took.Round(10*time.Microsecond))
		return took
	}
	var cold []time.Duration
	for _, length := range []int64{0, 10 << 20} {
		dir := t.TempDir()
		writer, _ := watched(t, dir, sessionstore.Options{})
		timed(fmt.Sprintf("making %d sessions", sessions()), func() {
			for i := range sessions() {
				id := acp.SessionID(fmt.Sprintf("session-%06d", i))
				r := sessionstore.Record{Info: sessionstore.Info{
					ID: id, Cwd: fmt.Sprint("/w", i%10), Title: "A title of the usual length, " + fmt.Sprint(i), Updated: time.Unix(int64(i), 0),
				}}
				if err := writer.Create(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, sessionstore.FileName(id)+".jsonl"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(filepath.Join(dir, sessionstore.FileName(id)+".jsonl"), length); err != nil {
					t.Fatal(err)
				}
			}
		})
		store, reported := watched(t, dir, sessionstore.Options{})
		list := func(cwd string) (n int) {
			for q := (sessionstore.Query{Cwd: cwd}); ; {
				page, err := store.List(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				n += len(page.Sessions)
				if q.Cursor = page.Next; q.Cursor == "" {
					return n
				}
			}
		}
		what := fmt.Sprintf("with %d MiB each", length>>20)
		took := timed("the first page, "+what, func() {
			page, err := store.List(t.Context(), sessionstore.Query{})
			if err != nil || len(page.Sessions) != sessionstore.DefaultLimit || page.Sessions[0].Title != "A title of the usual length, "+fmt.Sprint(sessions()-1) {
				t.Fatalf("got %+v, %v", page, err)
			}
		})
		cold = append(cold, took)
		timed("a page again, "+what, func() {
			if _, err := store.List(t.Context(), sessionstore.Query{}); err != nil {
				t.Fatal(err)
			}
		})
		err := writer.Change(t.Context(), "session-000000", func(r *sessionstore.Record) error { r.Updated = time.Unix(1<<30, 0); return nil })
		if err != nil {
			t.Fatal(err)
		}
		timed("a page after a change, "+what, func() {
			page, err := store.List(t.Context(), sessionstore.Query{})
			if err != nil || page.Sessions[0].ID != "session-000000" {
				t.Fatalf("got %+v, %v", page, err)
			}
		})
		// Times are told apart when the folder has not changed for a while.
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
		timed("all pages, "+what, func() {
			if n := list(""); n != sessions() {
				t.Errorf("%d sessions are listed", n)
			}
		})
		timed("all of one folder, "+what, func() {
			if n := list("/w3"); n != sessions()/10 {
				t.Errorf("%d sessions are listed", n)
			}
		})
		if reports := reported(); len(reports) != 0 {
			t.Errorf("reported are %v", reports)
		}
	}
	if sessions() >= 10_000 && cold[1] > 3*cold[0]+100*time.Millisecond {
		t.Errorf("with content a list takes %v, without %v", cold[1], cold[0])
	}
}

// long makes a session as agents make them: prompts, thoughts, messages of some hundred bytes, and tool calls.
func long(tb testing.TB, store sessionstore.Store, id acp.SessionID, n int) {
	tb.Helper()
	var batch []acp.SessionUpdate
	flush := func() {
		if err := store.Append(tb.Context(), id, batch...); err != nil {
			tb.Fatal(err)
		}
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
	info, err := os.Stat(filepath.Join(dir, "s-s.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := store.Create(b.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "s"}}); err != nil {
		b.Fatal(err)
	}
	update := acp.AgentMessageText(strings.Repeat("x", 500))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if i++; i%100_000 == 0 { // within what a session may have
			if err := store.Delete(b.Context(), "s"); err != nil {
				b.Fatal(err)
			}
			if err := store.Create(b.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "s"}}); err != nil {
				b.Fatal(err)
			}
		}
		if err := store.Append(b.Context(), "s", update); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdates(b *testing.B) {
	store := open(b, b.TempDir())
	defer store.Close()
	if err := store.Create(b.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "s"}}); err != nil {
		b.Fatal(err)
	}
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
