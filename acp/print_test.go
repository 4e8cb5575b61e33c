package acp_test

import (
	"fmt"
	"testing"

	"github.com/acpgo/sdk/acp"
)

func TestUnionsPrint(t *testing.T) {
	call := acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Some("Read"), Content: acp.Null[[]acp.ToolCallContent]()}
	for _, test := range []struct {
		value any
		want  string
	}{
		{acp.TextBlock("hi"), `{"type":"text","text":"hi"}`},
		{[]acp.ContentBlock{acp.TextBlock("hi")}, `[{"type":"text","text":"hi"}]`},
		{acp.SessionNotification{SessionID: "s", Update: acp.AgentMessageText("hi")},
			`{SessionID:s Update:{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}} Meta:map[]}`},
		{acp.ContentBlock{}, "!(ContentBlock without a variant)"},
		{call.Title, "Read"},
		{call.Content, "null"},
		{call.Kind, "absent"},
	} {
		if got := fmt.Sprintf("%+v", test.value); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
