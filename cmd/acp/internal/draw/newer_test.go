//go:build acp_newer

package draw

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// TestNewer is run by TestNewerSchema, with a package acp that has a variant for which this package has no case. It is
// drawn with its kind and its JSON.
func TestNewer(t *testing.T) {
	beam := func(text string) acp.Hologram { return acp.Hologram{ID: "h", PlanID: "p", Beam: text} }
	s := view.New(nil)
	s.Update(acp.NewSessionUpdateHologram(beam("an update")))
	s.Update(acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.NewContentBlockHologram(beam("a block"))}))
	s.Update(acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: "c", Title: "Project", Status: acp.ToolCallStatusCompleted,
		Content: []acp.ToolCallContent{acp.NewToolCallContentHologram(beam("content"))}}))

	tr := NewTranscript(&Options{Theme: Plain(), Width: 200, Unfolded: true})
	tr.Update(s.Snapshot())
	drawn := strings.Join(all(tr), "\n")
	for _, text := range []string{"an update", "a block", "content"} {
		if !strings.Contains(drawn, `"beam": "`+text) && !strings.Contains(drawn, `"beam":"`+text) {
			t.Errorf("%q is not drawn:\n%s", text, drawn)
		}
	}
}
