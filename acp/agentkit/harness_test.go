package agentkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/conformance"
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

// parrot repeats what it hears, word by word, and counts prompts.
func parrot(store sessionstore.Store) agentkit.Config[state] {
	return agentkit.Config[state]{
		Store: store,
		Open: func(_ context.Context, _ *agentkit.Session[state], o *agentkit.Opening) error {
			o.Modes = []acp.SessionMode{{ID: "plain", Name: "Plain"}, {ID: "loud", Name: "Loud"}}
			o.Commands = []acp.AvailableCommand{{Name: "shout", Description: "Shouts"}}
			return nil
		},
		Prompt: func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
			t.State.Prompts++
			if err := t.SaveState(ctx); err != nil {
				return nil, err
			}
			text := agentkit.PromptText(req)
			if t.Mode() == "loud" {
				text = strings.ToUpper(text)
			}
			if err := t.Update(ctx, acp.AgentThoughtText("hm")); err != nil {
				return nil, err
			}
			for _, word := range strings.SplitAfter(text, " ") {
				if err := t.Update(ctx, acp.AgentMessageText(word)); err != nil {
					return nil, err
				}
			}
			if err := t.Update(ctx, acp.StartToolCall(acp.ToolCallID(fmt.Sprint("call-", t.State.Prompts)), "Count")); err != nil {
				return nil, err
			}
			update := acp.UpdateToolCall(acp.ToolCallID(fmt.Sprint("call-", t.State.Prompts)), acp.WithStatus(acp.ToolCallStatusCompleted))
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, t.Update(ctx, update)
		},
	}
}

// client is the other side, and what it received.
type client struct {
	*acp.ClientConn

	mu   sync.Mutex
	told []string
}

// heard returns what updates have said since the last call, one line each.
func (c *client) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told
}

func (c *client) handlers() acp.ClientHandlers {
	return acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told = append(c.told, line(n.Update))
			return nil
		},
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
		},
	}
}

// line is an update as tests compare it.
func line(u acp.SessionUpdate) string {
	text := func(c acp.ContentChunk) string {
		if b, ok := c.Content.Variant.(*acp.ContentBlockText); ok {
			return short(b.Text)
		}
		return fmt.Sprintf("%T", c.Content.Variant)
	}
	switch u := u.Variant.(type) {
	case *acp.SessionUpdateUserMessageChunk:
		return "user: " + text(acp.ContentChunk(*u))
	case *acp.SessionUpdateAgentMessageChunk:
		return "agent: " + text(acp.ContentChunk(*u))
	case *acp.SessionUpdateAgentThoughtChunk:
		return "thought: " + text(acp.ContentChunk(*u))
	case *acp.SessionUpdateToolCall:
		known := acp.UpdateToolCall(u.ToolCallID, acp.WithStatus(u.Status), func(to *acp.ToolCallUpdate) {
			if to.Title = acp.Some(u.Title); u.Kind != "" {
				to.Kind = acp.Some(u.Kind)
			}
			if len(u.Content) > 0 {
				to.Content = acp.Some(u.Content)
			}
			if len(u.Locations) > 0 {
				to.Locations = acp.Some(u.Locations)
			}
			to.Name, to.RawInput, to.RawOutput, to.Meta = u.Name, u.RawInput, u.RawOutput, u.Meta
		})
		return line(known)
	case *acp.SessionUpdateToolCallUpdate:
		return callLine((*acp.ToolCallUpdate)(u))
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
	case *acp.SessionUpdateCompactionUpdate:
		return fmt.Sprint("compaction: ", u.CompactionID, " ", u.Status)
	case *acp.SessionUpdateCompactionSummaryChunk:
		return fmt.Sprint("summary: ", u.CompactionID)
	case *acp.SessionUpdateNotice:
		return fmt.Sprintf("notice: %s %s", u.Title, u.Description.Value())
	case *acp.SessionUpdatePlan:
		var text strings.Builder
		text.WriteString("plan:")
		for _, e := range u.Entries {
			text.WriteString(fmt.Sprintf(" %s (%s)", e.Content, e.Status))
		}
		return text.String()
	case *acp.SessionUpdateSubagentUpdate:
		state, _ := json.Marshal(u.State)
		return fmt.Sprintf("subagent: %s %s may be cancelled: %v", u.Title.Value(), state, u.Capabilities.Present())
	}
	return fmt.Sprintf("%T", u.Variant)
}

// callLine is what an update says of a tool call.
func callLine(u *acp.ToolCallUpdate) string {
	parts := []string{fmt.Sprint("call: ", u.ToolCallID)}
	for _, part := range []string{u.Title.Value(), string(u.Status.Value()), string(u.Kind.Value()), u.Name.Value()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	for _, l := range u.Locations.Value() {
		parts = append(parts, fmt.Sprint("at ", l.Path, ":", l.Line.Value()))
	}
	if content, ok := u.Content.Get(); ok {
		parts = append(parts, fmt.Sprintf("shows %q", shows(acp.ToolCall{Content: content})))
	}
	if u.RawInput != nil {
		parts = append(parts, "in "+string(u.RawInput))
	}
	if u.RawOutput != nil {
		parts = append(parts, "out "+string(u.RawOutput))
	}
	if u.Meta != nil {
		meta, _ := json.Marshal(u.Meta)
		parts = append(parts, string(meta))
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

// connect connects a client to an agent in memory. Both end with the test, the client first.
func connect[S any](t *testing.T, sessions *agentkit.Sessions[S], opts *acp.AgentOptions, tap *conformance.TapOptions) *client {
	t.Helper()
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(opts)))(t)
	t.Cleanup(func() {
		if err := agent.Wait(); err != nil {
			t.Errorf("the agent's connection: %v", err)
		}
		sessions.Close()
	})
	return dial(t, ours, tap)
}

func dial(t *testing.T, transport acp.Transport, tap *conformance.TapOptions) *client {
	t.Helper()
	c := &client{}
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, transport, tap), c.handlers(), &acp.ClientOptions{
		Session: acp.ClientSessionCapabilities{Compaction: acp.Some(acp.CompactionCapabilities{})},
	}))(t)
	c.ClientConn = conn
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c
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
