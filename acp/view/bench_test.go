package view_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/tier"
)

const (
	chunkSize = 64
	long      = 100_000 // updates
)

// updatesOf are updates of a kind, made before they are measured.
func updatesOf(kind string, n int) []acp.SessionUpdate {
	text := fmt.Sprintf("%0*d", chunkSize, 0)
	updates := make([]acp.SessionUpdate, n)
	for i := range updates {
		id := acp.ToolCallID(fmt.Sprint(i / 10))
		switch {
		case kind == "chunks":
			updates[i] = acp.AgentMessageText(text)
		case kind == "messages":
			updates[i] = acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{
				Content: acp.TextBlock(text), MessageID: acp.Some(acp.MessageID(fmt.Sprint(i))),
			})
		case kind == "updates of the first call":
			updates[i] = acp.UpdateToolCall("0", acp.WithStatus(acp.ToolCallStatusInProgress))
		case i%10 == 0: // tool calls
			updates[i] = acp.StartToolCall(id, "Edit", acp.WithKind(acp.ToolKindEdit), acp.WithLocation("/a/b", 1))
		case i%10 == 9:
			updates[i] = acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusCompleted))
		default:
			updates[i] = acp.UpdateToolCall(id, acp.WithContent(acp.ToolText(text)))
		}
	}
	return updates
}

var kinds = []string{"chunks", "messages", "tool calls", "updates of the first call"}

// fold folds updates into a State, with a snapshot after each n of them, and returns the last.
func fold(s *view.State, updates []acp.SessionUpdate, n int) (last *view.Snapshot) {
	for i := range updates {
		s.Update(updates[i])
		if n > 0 && i%n == 0 {
			last = s.Snapshot()
		}
	}
	return last
}

func BenchmarkUpdate(b *testing.B) {
	for _, kind := range kinds {
		for _, every := range []int{0, 10, 1} {
			b.Run(fmt.Sprintf("%s/snapshot after %d", kind, every), func(b *testing.B) {
				updates := updatesOf(kind, long)
				b.ReportAllocs()
				b.ResetTimer()
				for n := b.N; n > 0; n -= long {
					s := view.New(nil)
					fold(s, updates[:min(n, long)], every)
				}
			})
		}
	}
}

func BenchmarkChanged(b *testing.B) {
	s := view.New(nil)
	fold(s, updatesOf("messages", long), 0)
	old := s.Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		s.Update(acp.AgentMessageText("x"))
		now := s.Snapshot()
		for range now.Changed(old) {
		}
		old = now
	}
}

// An update costs the same at the beginning of a long conversation and at its end, with a snapshot after each, and the
// memory is that of the text.
func TestGrowth(t *testing.T) {
	tier.Need(t, tier.Normal)
	long := tier.Pick(10_000, 20_000, long, long)
	for _, kind := range kinds {
		updates := updatesOf(kind, long)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := view.New(nil)
		// The fastest of several rounds, so that other programs matter less; and what is copied is allocated.
		times := [2]time.Duration{1 << 62, 1 << 62}
		allocated := [3]uint64{before.TotalAlloc}
		const rounds = 10
		for i := range rounds {
			began := time.Now()
			fold(s, updates[i*long/rounds:(i+1)*long/rounds], 1)
			took := time.Since(began)
			times[i*2/rounds] = min(times[i*2/rounds], took)
			runtime.ReadMemStats(&after)
			allocated[1+i*2/rounds] = after.TotalAlloc
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		t.Logf("%s: %v, then %v for an update and a snapshot; %d bytes held, %d allocated for an update", kind,
			times[0]/time.Duration(long/rounds), times[1]/time.Duration(long/rounds), held/int64(long), (after.TotalAlloc-before.TotalAlloc)/uint64(long))
		if first, last := allocated[1]-allocated[0], allocated[2]-allocated[1]; last > 2*first {
			t.Errorf("%s: %d bytes allocated in the second half, %d in the first", kind, last, first)
		}
		if times[1] > 5*times[0] && tier.Current() == tier.Nightly {
			t.Errorf("%s: %v for the last updates, %v for the first", kind, times[1], times[0])
		}
		if held > int64(long)*1500 {
			t.Errorf("%s: %d bytes are held", kind, held)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(updates)
	}
}

// Chunks and updates of tool calls allocate nothing of their own.
func TestAllocations(t *testing.T) {
	for kind, most := range map[string]float64{"chunks": 0, "updates of the first call": 0, "messages": 8} {
		updates := updatesOf(kind, 20_000)
		s := view.New(nil)
		fold(s, updates[:10_000], 0)
		i := 10_000
		got := testing.AllocsPerRun(5_000, func() {
			s.Update(updates[i])
			i++
		})
		if got > most {
			t.Errorf("%s: %v allocations for an update, want at most %v", kind, got, most)
		}
	}
}
