//go:build acp_newer

package view_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// TestNewer is run by TestNewerSchema, with a package acp that has a variant for which this package has no case. It is
// shown and bounded like one that package acp does not know.
func TestNewer(t *testing.T) {
	const big = 1 << 20
	beam := acp.Hologram{ID: "h", PlanID: "p", Beam: strings.Repeat("x", big/2)}
	for name, update := range map[string]func(n int) acp.SessionUpdate{
		"update": func(int) acp.SessionUpdate { return acp.NewSessionUpdateHologram(beam) },
		"tool content": func(n int) acp.SessionUpdate {
			content := []acp.ToolCallContent{acp.NewToolCallContentHologram(beam)}
			return acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: acp.ToolCallID(strconv.Itoa(n)), Content: content})
		},
		"block": func(n int) acp.SessionUpdate {
			return acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{
				Content: acp.NewContentBlockHologram(beam), MessageID: acp.Some(acp.MessageID(strconv.Itoa(n))),
			})
		},
	} {
		s := view.New(&view.Options{MaxBytes: big})
		for n := range 10 {
			s.Update(update(n))
		}
		shown := s.Snapshot()
		if shown.First() != 9 || shown.End() != 10 {
			t.Errorf("%s: items %d to %d are kept", name, shown.First(), shown.End())
		}
		for item := range shown.Items() {
			if u, ok := item.Variant.(*view.Unknown); ok != (name == "update") || ok && (u.Tag != "hologram" || len(u.Raw) < len(beam.Beam)) {
				t.Errorf("%s: the item is %T", name, item.Variant)
			}
		}
	}
	s := view.New(nil)
	for range 2 {
		s.Update(acp.NewSessionUpdatePlanUpdate(acp.PlanUpdate{Plan: acp.NewPlanUpdateContentHologram(beam)}))
	}
	if plans := s.Snapshot().Plans; len(plans) != 1 || plans[0].ID != "p" {
		t.Errorf("plans: %v", plans)
	}
}
