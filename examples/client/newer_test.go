//go:build acp_newer

package main

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
)

// TestNewer is run by TestNewerSchema, with a package acp that has a variant for which this program has no case.
func TestNewer(t *testing.T) {
	var out strings.Builder
	p := &printer{w: &out}
	p.update(acp.NewSessionUpdateHologram(acp.Hologram{Beam: "an update"}))
	p.update(acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: "c", Status: acp.ToolCallStatusCompleted,
		Content: []acp.ToolCallContent{acp.NewToolCallContentHologram(acp.Hologram{Beam: "content"})}}))
	for _, text := range []string{"an update", "content"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is not printed:\n%s", text, out.String())
		}
	}
}
