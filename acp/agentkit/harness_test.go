package agentkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
)

// state is the state of sessions in tests.
type state struct {
	Prompts int
	Quoted  quoted
	Style   string
	Loud    bool
	Model   string
	secret  string // which is not stored
}

// quoted is stored as a string, by methods of its pointer.
type quoted int

func (q *quoted) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(int(*q))) }
func (q *quoted) UnmarshalJSON(data []byte) error {
	_, err := fmt.Sscanf(string(data), `"%d"`, (*int)(q))
	return err
}

// silent does nothing in a turn.
func silent[S any](context.Context, *agentkit.Turn[S], *acp.PromptRequest) (*acp.PromptResponse, error) {
	return nil, nil
}

// line is an update as tests compare it.
func line(u acp.SessionUpdate) string {
	text := func(block acp.ContentBlock) string {
		if b, ok := block.Variant.(*acp.ContentBlockText); ok {
			return short(b.Text)
		}
		return asJSON(block)
	}
	switch u := u.Variant.(type) { // of others, their JSON
	case *acp.SessionUpdateUserMessageChunk:
		return "user: " + text(u.Content)
	case *acp.SessionUpdateAgentMessageChunk:
		return "agent: " + text(u.Content)
	case *acp.SessionUpdateAgentThoughtChunk:
		return "thought: " + text(u.Content)
	case *acp.SessionUpdateToolCall:
		return callLine(acp.ToolCall(*u), len(u.Content) > 0)
	case *acp.SessionUpdateToolCallUpdate:
		said := acp.ToolCall{ToolCallID: u.ToolCallID}
		said.Apply(acp.ToolCallUpdate(*u))
		return callLine(said, u.Content.Present())
	case *acp.SessionUpdateAvailableCommandsUpdate:
		return fmt.Sprint("commands: ", len(u.AvailableCommands))
	case *acp.SessionUpdateConfigOptionUpdate:
		var values []string
		for _, option := range u.ConfigOptions {
			switch v := option.Variant.(type) {
			case *acp.SessionConfigOptionSelect:
				values = append(values, fmt.Sprint(option.ID, "=", v.CurrentValue))
			case *acp.SessionConfigOptionBoolean:
				values = append(values, fmt.Sprint(option.ID, "=", v.CurrentValue))
			}
		}
		return "options: " + strings.Join(values, " ")
	case *acp.SessionUpdateCurrentModeUpdate:
		return fmt.Sprint("mode: ", u.CurrentModeID)
	case *acp.SessionUpdateSessionInfoUpdate:
		return fmt.Sprint("title: ", short(u.Title.Value()))
	}
	return asJSON(u)
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// callLine is what is said of a tool call, perhaps of its content.
func callLine(u acp.ToolCall, content bool) string {
	parts := []string{fmt.Sprint("call: ", u.ToolCallID)}
	for _, part := range []string{u.Title, string(u.Status), string(u.Kind), u.Name.Value()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	for _, l := range u.Locations {
		parts = append(parts, fmt.Sprint("at ", l.Path, ":", l.Line.Value()))
	}
	if content {
		parts = append(parts, fmt.Sprintf("shows %q", shows(u)))
	}
	if u.RawInput != nil {
		parts = append(parts, "in "+string(u.RawInput))
	}
	if u.RawOutput != nil {
		parts = append(parts, "out "+string(u.RawOutput))
	}
	if u.Meta != nil {
		parts = append(parts, asJSON(u.Meta))
	}
	return strings.Join(parts, " ")
}

// short is a text, of which long ones show how long they are.
func short(text string) string {
	if len(text) > 100 && len([]rune(text)) > 60 {
		return fmt.Sprintf("%.20s… of %d bytes", text, len(text))
	}
	return text
}

func open(t *testing.T, dir string) *sessionstore.Dir {
	t.Helper()
	store := must.Get(sessionstore.Open(dir, nil))(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return store
}

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q\nwant %q", what, got, want)
	}
}

var quiet = slog.New(slog.DiscardHandler)
