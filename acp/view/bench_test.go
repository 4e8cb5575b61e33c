package view_test

import (
	"fmt"
	"runtime"
	"strings"
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

// BenchmarkPlain compares State with the least code that folds the same updates: for one goroutine, without snapshots,
// turns, bounds or other kinds of updates. An operation is a turn and its result.
func BenchmarkPlain(b *testing.B) {
	for _, c := range []struct {
		kind  string
		calls int
		n     int
	}{{"chunks", 0, 1000}, {"tool calls", 10, 200}} {
		updates := updatesOf("chunks", c.n)
		text := strings.Repeat(fmt.Sprintf("%0*d", chunkSize, 0), c.n)
		if c.calls > 0 {
			text = ""
			for i := range updates { // each call begins, gets content, and ends
				id := acp.ToolCallID(fmt.Sprint("call_", i%c.calls))
				switch i / c.calls {
				case 0:
					updates[i] = acp.StartToolCall(id, "Edit", acp.WithKind(acp.ToolKindEdit), acp.WithLocation("/a/b", 1))
				case c.n/c.calls - 1:
					updates[i] = acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusCompleted))
				default:
					updates[i] = acp.UpdateToolCall(id, acp.WithContent(acp.ToolText(fmt.Sprintf("%0*d", chunkSize, i))))
				}
			}
		}
		check := func(b *testing.B, got string, calls map[acp.ToolCallID]acp.ToolCall) {
			if got != text || len(calls) != c.calls {
				b.Fatalf("%d bytes and %d calls, want %d and %d", len(got), len(calls), len(text), c.calls)
			}
			for id, call := range calls {
				shown := call.Content[0].Text()
				if last := id[len(id)-1]; shown[chunkSize-1] != last || call.Status != acp.ToolCallStatusCompleted || call.Locations == nil {
					b.Fatalf("%s: %v", id, call)
				}
			}
		}
		b.Run(c.kind+"/ours", func(b *testing.B) {
			var last *view.Snapshot
			b.ReportAllocs()
			for b.Loop() {
				s := view.New(nil)
				turn := s.Prompt(acp.TextBlock("go"))
				for i := range updates {
					s.Update(updates[i])
				}
				turn.End(&acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil)
				last = s.Snapshot()
			}
			got, calls := "", map[acp.ToolCallID]acp.ToolCall{}
			for item := range last.Items() {
				switch v := item.Variant.(type) {
				case *view.Message:
					if v.Role == view.Agent {
						got += v.Text()
					}
				case *view.ToolCall:
					calls[v.Call.ToolCallID] = v.Call
				}
			}
			check(b, got, calls)
		})
		b.Run(c.kind+"/plain", func(b *testing.B) {
			var last *byHand
			b.ReportAllocs()
			for b.Loop() {
				last = &byHand{calls: map[acp.ToolCallID]*acp.ToolCall{}}
				for i := range updates {
					last.update(updates[i])
				}
			}
			got, calls := "", map[acp.ToolCallID]acp.ToolCall{}
			for _, message := range last.messages {
				got += message.String()
			}
			for id, call := range last.calls {
				calls[id] = *call
			}
			check(b, got, calls)
		})
	}
}

// byHand is a conversation as an author writes it who needs no more.
type byHand struct {
	messages []*strings.Builder
	open     bool // the last message continues
	calls    map[acp.ToolCallID]*acp.ToolCall
}

func (p *byHand) update(update acp.SessionUpdate) {
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateAgentMessageChunk:
		if !p.open {
			p.messages, p.open = append(p.messages, &strings.Builder{}), true
		}
		if text, ok := u.Content.Variant.(*acp.ContentBlockText); ok {
			p.messages[len(p.messages)-1].WriteString(text.Text)
		}
	case *acp.SessionUpdateToolCall:
		call := acp.ToolCall(*u)
		p.calls[call.ToolCallID], p.open = &call, false
	case *acp.SessionUpdateToolCallUpdate:
		call := p.calls[u.ToolCallID]
		if call == nil {
			call = &acp.ToolCall{ToolCallID: u.ToolCallID}
			p.calls[u.ToolCallID] = call
		}
		p.open = false
		if title, ok := u.Title.Get(); ok {
			call.Title = title
		}
		if kind, ok := u.Kind.Get(); ok {
			call.Kind = kind
		}
		if status, ok := u.Status.Get(); ok {
			call.Status = status
		}
		if content, ok := u.Content.Get(); ok {
			call.Content = content
		}
		if locations, ok := u.Locations.Get(); ok {
			call.Locations = locations
		}
		if u.RawInput != nil {
			call.RawInput = u.RawInput
		}
		if u.RawOutput != nil {
			call.RawOutput = u.RawOutput
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
