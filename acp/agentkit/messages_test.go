package agentkit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/test/must"
)

// told is messages as lines.
func told(messages []agentkit.Message) (lines []string) {
	for _, m := range messages {
		var line strings.Builder
		fmt.Fprint(&line, [...]string{"", "user", "agent", "summary"}[m.Role], ":")
		for _, block := range m.Content {
			fmt.Fprintf(&line, " %q", agentkit.ContentText(block))
		}
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&line, " [%s %s %s %s]", call.Name.Value(), call.Status, call.RawInput, call.RawOutput)
		}
		lines = append(lines, line.String())
	}
	return lines
}

// The history becomes messages for a model, also when the session is loaded.
func TestMessages(t *testing.T) {
	var got []agentkit.Message
	say := func(ctx context.Context, t *agentkit.Turn[struct{}], updates ...acp.SessionUpdate) error {
		for _, u := range updates {
			if err := t.Update(ctx, u); err != nil {
				return err
			}
		}
		return nil
	}
	config := agentkit.Config[struct{}]{
		Store: open(t, t.TempDir()),
		Prompt: func(ctx context.Context, turn *agentkit.Turn[struct{}], req *acp.PromptRequest) (res *acp.PromptResponse, err error) {
			if got, err = turn.Messages(ctx); err != nil {
				return nil, err
			}
			if promptText(req) == "compact" {
				done := acp.CompactionUpdate{CompactionID: "k", Status: acp.CompactionStatusCompleted, Summary: acp.Some([]acp.ContentBlock{acp.TextBlock("so far")})}
				return nil, say(ctx, turn, acp.NewSessionUpdateCompactionUpdate(done), acp.AgentMessageText("Compacted."))
			}
			if err := say(ctx, turn, acp.AgentThoughtText("hm"), acp.AgentMessageText("I lo"), acp.AgentMessageText("ok.")); err != nil {
				return nil, err
			}
			err = turn.Tool(ctx, acp.ToolKindRead, "Read", func(call *agentkit.ToolCall) error {
				return call.Update(acp.WithOutput("text"))
			}, acp.WithName("read"), acp.WithInput(map[string]int{"line": 1}))
			if err != nil {
				return nil, err
			}
			return nil, turn.Sayf(ctx, "Done.")
		},
	}
	sessions := agentkit.NewSessions(config)
	c := connect(t, sessions, &acp.AgentOptions{Prompt: acp.PromptCapabilities{Image: true, EmbeddedContext: true}}, nil)
	s := begin(t, c, "/w")
	prompt := func(blocks ...acp.ContentBlock) {
		t.Helper()
		must.Get(s.Prompt(t.Context(), blocks...))(t)
	}
	resource := acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: &acp.TextResourceContents{URI: "file:///a", Text: "A"}})
	prompt(acp.TextBlock("Look"), acp.ImageBlock("aGk=", "image/png"), acp.ResourceLinkBlock("b", "file:///b"), resource)
	first := `user: "Look" "(This is not text.)" "[b](file:///b)" "<resource uri=\"file:///a\">\nA\n</resource>"`
	wantLines(t, "the first turn", told(got), first)
	must.Do(t, s.Close(t.Context()))
	var err error
	if s, err = c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}); err != nil {
		t.Fatal(err)
	}
	prompt(acp.TextBlock("compact"))
	wantLines(t, "the second turn", told(got), first, `agent: "I look." [read completed {"line":1} "text"]`, `agent: "Done."`, `user: "compact"`)
	prompt(acp.TextBlock("more"))
	wantLines(t, "after the compaction", told(got), `summary: "so far"`, `agent: "Compacted."`, `user: "more"`)
}
