package view_test

import (
	"fmt"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// updatesOf are updates of a kind, made before they are measured.
func updatesOf(kind string, n int) []acp.SessionUpdate {
	text := fmt.Sprintf("%0*d", 64, 0)
	updates := make([]acp.SessionUpdate, n)
	for i := range updates {
		switch kind {
		case "chunks":
			updates[i] = acp.AgentMessageText(text)
		case "messages":
			updates[i] = acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{
				Content: acp.TextBlock(text), MessageID: acp.Some(acp.MessageID(fmt.Sprint(i))),
			})
		default:
			updates[i] = acp.UpdateToolCall("0", acp.WithStatus(acp.ToolCallStatusInProgress))
		}
	}
	return updates
}

// Chunks and updates of tool calls allocate nothing of their own.
func TestAllocations(t *testing.T) {
	for kind, most := range map[string]float64{"chunks": 0, "updates of the first call": 0, "messages": 8} {
		updates := updatesOf(kind, 20_000)
		s := view.New(nil)
		for _, update := range updates[:10_000] {
			s.Update(update)
		}
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
