package view_test

import (
	"fmt"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
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

// fold folds updates into a State, with a snapshot after each n of them.
func fold(s *view.State, updates []acp.SessionUpdate, n int) {
	for i := range updates {
		s.Update(updates[i])
		if n > 0 && i%n == 0 {
			s.Snapshot()
		}
	}
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
