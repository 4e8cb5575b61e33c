package agentkit_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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
	secret  string // which is not stored
}

// serve is an agent as a process of its own, over its standard input and output.
func serve(dir string) error {
	store, err := sessionstore.Open(dir, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	sessions := agentkit.NewSessions(parrot(store))
	defer sessions.Close()
	return acp.ServeAgent(context.Background(), acp.Stdio(), sessions.Handlers(), sessions.Options(nil))
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
			text := promptText(req)
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

func promptText(req *acp.PromptRequest) string {
	var text strings.Builder
	for _, block := range req.Prompt {
		if b, ok := block.Variant.(*acp.ContentBlockText); ok {
			text.WriteString(b.Text)
		}
	}
	return text.String()
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
			return b.Text
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
		return fmt.Sprint("call: ", u.ToolCallID, " ", u.Title, " ", u.Status)
	case *acp.SessionUpdateToolCallUpdate:
		return fmt.Sprint("call: ", u.ToolCallID, " ", u.Status.Value())
	case *acp.SessionUpdateAvailableCommandsUpdate:
		return fmt.Sprint("commands: ", len(u.AvailableCommands))
	case *acp.SessionUpdateConfigOptionUpdate:
		var values []string
		for _, option := range u.ConfigOptions {
			values = append(values, fmt.Sprint(option.ID, "=", option.Variant.(*acp.SessionConfigOptionSelect).CurrentValue))
		}
		return "options: " + strings.Join(values, " ")
	case *acp.SessionUpdateCurrentModeUpdate:
		return fmt.Sprint("mode: ", u.CurrentModeID)
	case *acp.SessionUpdateSessionInfoUpdate:
		return fmt.Sprint("title: ", u.Title.Value())
	case *acp.SessionUpdateCompactionUpdate:
		return fmt.Sprint("compaction: ", u.CompactionID, " ", u.Status)
	case *acp.SessionUpdateCompactionSummaryChunk:
		return fmt.Sprint("summary: ", u.CompactionID)
	}
	return fmt.Sprintf("%T", u.Variant)
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

// process connects a client to the agent as a process, whose sessions are in dir.
func process(t *testing.T, dir string) *client {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ACP_TEST_STORE="+dir)
	cmd.Stderr = os.Stderr
	return dial(t, acp.Command(cmd), nil)
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
