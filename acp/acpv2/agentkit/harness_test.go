package agentkit_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// state is the state of sessions in tests.
type state struct{ Prompts int }

type session = agentkit.Session[state]

// parrot repeats what it hears, word by word, and shows a tool call, a terminal and a plan.
func parrot(store agentkit.Store) agentkit.Config[state] {
	return agentkit.Config[state]{
		Store: store,
		Open: func(_ context.Context, _ *session, o *agentkit.Opening) error {
			o.Commands = []v2draft.AvailableCommand{v2draft.NewAvailableCommandCommand(v2draft.SlashCommand{Name: "shout", Description: "Shouts"})}
			return nil
		},
		Prompt: func(ctx context.Context, s *session, req *v2draft.PromptRequest) (v2draft.IdleStateUpdate, error) {
			s.State.Prompts++
			if err := s.SaveState(ctx); err != nil {
				return v2draft.IdleStateUpdate{}, err
			}
			n := s.State.Prompts
			text, _ := req.Prompt[0].Text()
			message, thought := v2draft.MessageID(fmt.Sprint("answer-", n)), v2draft.MessageID(fmt.Sprint("thought-", n))
			call, terminal := v2draft.ToolCallID(fmt.Sprint("call-", n)), v2draft.TerminalID(fmt.Sprint("terminal-", n))
			compaction := v2draft.CompactionID(fmt.Sprint("compaction-", n))
			var updates []v2draft.SessionUpdate
			for _, word := range strings.SplitAfter(text, " ") { // the two interleave
				for letter := range strings.SplitSeq(word, "") {
					updates = append(updates, v2draft.AgentMessageText(message, letter))
				}
				updates = append(updates, v2draft.AgentThoughtText(thought, "hm "))
			}
			updates = append(updates,
				v2draft.StartToolCall(call, "Count"),
				v2draft.NewSessionUpdateToolCallContentChunk(v2draft.ToolCallContentChunk{ToolCallID: call, Content: v2draft.ToolText("one")}),
				v2draft.NewSessionUpdateToolCallContentChunk(v2draft.ToolCallContentChunk{ToolCallID: call, Content: v2draft.ToolText("two")}),
				v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{TerminalID: terminal, Command: v2draft.Some("wc")}),
				output(terminal, "3 "), output(terminal, "words\n"),
				v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
					TerminalID: terminal, ExitStatus: v2draft.Some(v2draft.TerminalExitStatus{ExitCode: v2draft.Some(int64(0))}),
				}),
				v2draft.UpdateToolCall(call, v2draft.WithStatus(v2draft.ToolCallStatusCompleted)),
				v2draft.NewSessionUpdateCompactionUpdate(v2draft.CompactionUpdate{CompactionID: compaction, Status: v2draft.CompactionStatusInProgress}),
				v2draft.NewSessionUpdateCompactionSummaryChunk(v2draft.CompactionSummaryChunk{CompactionID: compaction, Content: v2draft.TextBlock("short")}),
				v2draft.NewSessionUpdateCompactionUpdate(v2draft.CompactionUpdate{CompactionID: compaction, Status: v2draft.CompactionStatusCompleted}),
				v2draft.AgentMessageText(message, "!"),
			)
			for _, update := range updates {
				if err := s.Update(ctx, update); err != nil {
					return v2draft.IdleStateUpdate{}, err
				}
			}
			return v2draft.EndTurn(), nil
		},
	}
}

func output(id v2draft.TerminalID, text string) v2draft.SessionUpdate {
	return v2draft.NewSessionUpdateTerminalOutputChunk(v2draft.TerminalOutputChunk{
		TerminalID: id, Data: base64.StdEncoding.EncodeToString([]byte(text)),
	})
}

// shown is what a client shows of a session: what an update replaces is replaced, what a chunk adds is added.
type shown struct {
	Order []string // of what was first seen
	Items map[string]string
}

func newShown() shown { return shown{Items: map[string]string{}} }

func (s *shown) copy() shown { return shown{slices.Clone(s.Order), maps.Clone(s.Items)} }

func (s *shown) set(id, text string) {
	if _, known := s.Items[id]; !known {
		s.Order = append(s.Order, id)
	}
	s.Items[id] = text
}

func blocks(content []v2draft.ContentBlock) (all string) {
	for _, block := range content {
		text, _ := block.Text()
		all += text
	}
	return all
}

func (s *shown) update(u v2draft.SessionUpdate) {
	message := func(kind string, id v2draft.MessageID, content v2draft.Opt[[]v2draft.ContentBlock]) {
		if !content.IsZero() {
			s.set(kind+string(id), blocks(content.Value()))
		}
	}
	chunk := func(kind string, c v2draft.ContentChunk) {
		s.set(kind+string(c.MessageID), s.Items[kind+string(c.MessageID)]+blocks([]v2draft.ContentBlock{c.Content}))
	}
	tool := func(content v2draft.ToolCallContent) string { return shownContent(content) + "," }
	switch u := u.Variant.(type) {
	case *v2draft.SessionUpdateUserMessage:
		message("user ", u.MessageID, u.Content)
	case *v2draft.SessionUpdateAgentMessage:
		message("agent ", u.MessageID, u.Content)
	case *v2draft.SessionUpdateAgentThought:
		message("thought ", u.MessageID, u.Content)
	case *v2draft.SessionUpdateUserMessageChunk:
		chunk("user ", v2draft.ContentChunk(*u))
	case *v2draft.SessionUpdateAgentMessageChunk:
		chunk("agent ", v2draft.ContentChunk(*u))
	case *v2draft.SessionUpdateAgentThoughtChunk:
		chunk("thought ", v2draft.ContentChunk(*u))
	case *v2draft.SessionUpdateToolCallUpdate:
		if u.Status.Present() {
			s.set("status "+string(u.ToolCallID), string(u.Status.Value()))
		}
		if !u.Content.IsZero() {
			var all strings.Builder
			for _, content := range u.Content.Value() {
				all.WriteString(tool(content))
			}
			s.set("call "+string(u.ToolCallID), all.String())
		}
	case *v2draft.SessionUpdateToolCallContentChunk:
		s.set("call "+string(u.ToolCallID), s.Items["call "+string(u.ToolCallID)]+tool(u.Content))
	case *v2draft.SessionUpdateCompactionUpdate:
		s.set("compaction status "+string(u.CompactionID), string(u.Status))
		if !u.Summary.IsZero() {
			s.set("compaction "+string(u.CompactionID), blocks(u.Summary.Value()))
		}
	case *v2draft.SessionUpdateCompactionSummaryChunk:
		s.set("compaction "+string(u.CompactionID), s.Items["compaction "+string(u.CompactionID)]+blocks([]v2draft.ContentBlock{u.Content}))
	case *v2draft.SessionUpdateTerminalUpdate:
		if u.Output.Present() {
			s.set("terminal "+string(u.TerminalID), u.Output.Value().Data)
		}
		if exit, ok := u.ExitStatus.Get(); ok {
			s.set("exit "+string(u.TerminalID), fmt.Sprint(exit.ExitCode.Get()))
		}
	case *v2draft.SessionUpdateTerminalOutputChunk:
		data, _ := base64.StdEncoding.DecodeString(u.Data)
		s.set("terminal "+string(u.TerminalID), s.Items["terminal "+string(u.TerminalID)]+string(data))
	}
}

// client is the other side, and what it was told.
type client struct {
	*v2draft.ClientConn

	// choose, if set, answers the agent's questions.
	choose func(*v2draft.RequestPermissionRequest) v2draft.RequestPermissionOutcome

	mu    sync.Mutex
	shown shown
	told  []v2draft.SessionUpdate
}

// heard returns the updates since the last call, and what the client shows.
func (c *client) heard() ([]v2draft.SessionUpdate, shown) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told, c.shown.copy()
}

// connect connects a client to an agent. Both end with the test, and with end.
func connect(t *testing.T, config agentkit.Config[state], opts v2draft.AgentOptions) (c *client, end func()) {
	t.Helper()
	return connectTo(t, agentkit.NewSessions(config), opts)
}

func connectTo(t *testing.T, sessions *agentkit.Sessions[state], opts v2draft.AgentOptions) (c *client, end func()) {
	t.Helper()
	theirs, ours := v2draft.Pipe()
	opts.Info = v2draft.Implementation{Name: "parrot", Version: "1"}
	agent, err := v2draft.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(&opts))
	if err != nil {
		t.Fatal(err)
	}
	c = &client{shown: newShown()}
	handlers := v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told = append(c.told, n.Update)
			c.shown.update(n.Update)
			return nil
		},
		RequestPermission: func(_ context.Context, _ *v2draft.ClientSession, req *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
			if c.choose != nil {
				return &v2draft.RequestPermissionResponse{Outcome: c.choose(req)}, nil
			}
			return &v2draft.RequestPermissionResponse{Outcome: v2draft.PermissionCancelled()}, nil
		},
		CreateElicitation: func(context.Context, *v2draft.ClientConn, *v2draft.CreateElicitationRequest) (*v2draft.CreateElicitationResponse, error) {
			res := v2draft.NewCreateElicitationResponseDecline()
			return &res, nil
		},
	}
	tapped := conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V2()})
	c.ClientConn, err = v2draft.Connect(t.Context(), tapped, handlers, &v2draft.ClientOptions{
		Info: v2draft.Implementation{Name: "test", Version: "1"},
		Elicitation: v2draft.ElicitationCapabilities{
			Form: v2draft.Some(v2draft.ElicitationFormCapabilities{}), URL: v2draft.Some(v2draft.ElicitationURLCapabilities{}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		if err := agent.Wait(); err != nil {
			t.Errorf("the agent's connection: %v", err)
		}
		sessions.Close()
	})
	t.Cleanup(end)
	return c, end
}

func open(t *testing.T, dir string, opts *sessionstore.Options) agentkit.Store {
	t.Helper()
	store, err := agentkit.OpenStore(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return store
}

func (c *client) create(t *testing.T, cwd v2draft.AbsolutePath) *v2draft.ClientSession {
	t.Helper()
	s, err := c.NewSession(t.Context(), &v2draft.NewSessionRequest{Cwd: cwd})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *client) resume(t *testing.T, id v2draft.SessionID) (*v2draft.ClientSession, error) {
	t.Helper()
	return c.ResumeSession(t.Context(), &v2draft.ResumeSessionRequest{
		SessionID: id, Cwd: "/w", ReplayFrom: v2draft.Some(v2draft.NewReplayFromStart(v2draft.ReplayFromStart{})),
	})
}

func prompt(t *testing.T, s *v2draft.ClientSession, text string) {
	t.Helper()
	res, err := s.Prompt(t.Context(), v2draft.TextBlock(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := res.Idle.Variant.(*v2draft.IdleStateUpdateEndTurn); !ok {
		t.Fatalf("%s ended with %T: %+v", text, res.Idle.Variant, res.Idle.Variant)
	}
}
