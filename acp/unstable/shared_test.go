package unstable_test

import (
	"encoding/json"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/unstable"
)

// textOf is a helper that somebody wrote for the stable package.
func textOf(blocks ...acp.ContentBlock) (all string) {
	for _, b := range blocks {
		text, _ := b.Text()
		all += text
	}
	return all
}

// permission is one that takes and returns types of the stable package.
func permission(req *acp.RequestPermissionRequest) *acp.RequestPermissionResponse {
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}
}

func TestTypesAreShared(t *testing.T) {
	if got := textOf(unstable.TextBlock("a"), acp.TextBlock("b")); got != "ab" {
		t.Errorf("got %q", got)
	}
	var call unstable.ToolCallUpdate = acp.ToolCallUpdate{ToolCallID: "c", Kind: acp.Some(unstable.ToolKindEdit)}
	req := &unstable.RequestPermissionRequest{
		SessionID: acp.SessionID("s"), ToolCall: call,
		Options: []acp.PermissionOption{{OptionID: "o", Name: "n", Kind: unstable.PermissionOptionKindAllowOnce}},
	}
	if id, ok := permission(req).Outcome.Selected(); !ok || id != "o" {
		t.Errorf("got %q, %v", id, ok)
	}
	// A union that differs has variants of its own, over payloads that may be the same.
	chunk := acp.ContentChunk{Content: unstable.TextBlock("hi")}
	n := unstable.SessionNotification{SessionID: "s", Update: unstable.NewSessionUpdateAgentMessageChunk(chunk)}
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	var stable acp.SessionNotification
	if err := json.Unmarshal(text, &stable); err != nil {
		t.Fatal(err)
	}
	if got := acp.ContentChunk(*stable.Update.Variant.(*acp.SessionUpdateAgentMessageChunk)); textOf(got.Content) != "hi" {
		t.Errorf("got %v", got)
	}
}
