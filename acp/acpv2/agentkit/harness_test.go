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
			o.Commands = []acpv2.AvailableCommand{acpv2.NewAvailableCommandCommand(acpv2.SlashCommand{Name: "shout", Description: "Shouts"})}
			return nil
		},
		Prompt: func(ctx context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
			s.State.Prompts++
			if err := s.SaveState(ctx); err != nil {
				return acpv2.IdleStateUpdate{}, err
			}
			n := s.State.Prompts
			text, _ := req.Prompt[0].Text()
			message, thought := acpv2.MessageID(fmt.Sprint("answer-", n)), acpv2.MessageID(fmt.Sprint("thought-", n))
			call, terminal := acpv2.ToolCallID(fmt.Sprint("call-", n)), acpv2.TerminalID(fmt.Sprint("terminal-", n))
			compaction := acpv2.CompactionID(fmt.Sprint("compaction-", n))
			var updates []acpv2.SessionUpdate
			for _, word := range strings.SplitAfter(text, " ") { // the two interleave
				for letter := range strings.SplitSeq(word, "") {
					updates = append(updates, acpv2.AgentMessageText(message, letter))
				}
				updates = append(updates, acpv2.AgentThoughtText(thought, "hm "))
			}
			updates = append(updates,
				acpv2.StartToolCall(call, "Count"),
				acpv2.NewSessionUpdateToolCallContentChunk(acpv2.ToolCallContentChunk{ToolCallID: call, Content: acpv2.ToolText("one")}),
				acpv2.NewSessionUpdateToolCallContentChunk(acpv2.ToolCallContentChunk{ToolCallID: call, Content: acpv2.ToolText("two")}),
				acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{TerminalID: terminal, Command: acpv2.Some("wc")}),
				output(terminal, "3 "), output(terminal, "words\n"),
				acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
					TerminalID: terminal, ExitStatus: acpv2.Some(acpv2.TerminalExitStatus{ExitCode: acpv2.Some(int64(0))}),
				}),
				acpv2.UpdateToolCall(call, acpv2.WithStatus(acpv2.ToolCallStatusCompleted)),
				acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{CompactionID: compaction, Status: acpv2.CompactionStatusInProgress}),
				acpv2.NewSessionUpdateCompactionSummaryChunk(acpv2.CompactionSummaryChunk{CompactionID: compaction, Content: acpv2.TextBlock("short")}),
				acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{CompactionID: compaction, Status: acpv2.CompactionStatusCompleted}),
				acpv2.AgentMessageText(message, "!"),
			)
			for _, update := range updates {
				if err := s.Update(ctx, update); err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
			}
			return acpv2.EndTurn(), nil
		},
	}
}

func output(id acpv2.TerminalID, text string) acpv2.SessionUpdate {
	return acpv2.NewSessionUpdateTerminalOutputChunk(acpv2.TerminalOutputChunk{
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

func blocks(content []acpv2.ContentBlock) (all string) {
	for _, block := range content {
		text, _ := block.Text()
		all += text
	}
	return all
}

func (s *shown) update(u acpv2.SessionUpdate) {
	message := func(kind string, id acpv2.MessageID, content acpv2.Opt[[]acpv2.ContentBlock]) {
		if !content.IsZero() {
			s.set(kind+string(id), blocks(content.Value()))
		}
	}
	chunk := func(kind string, c acpv2.ContentChunk) {
		s.set(kind+string(c.MessageID), s.Items[kind+string(c.MessageID)]+blocks([]acpv2.ContentBlock{c.Content}))
	}
	tool := func(content acpv2.ToolCallContent) string { return shownContent(content) + "," }
	switch u := u.Variant.(type) {
	case *acpv2.SessionUpdateUserMessage:
		message("user ", u.MessageID, u.Content)
	case *acpv2.SessionUpdateAgentMessage:
		message("agent ", u.MessageID, u.Content)
	case *acpv2.SessionUpdateAgentThought:
		message("thought ", u.MessageID, u.Content)
	case *acpv2.SessionUpdateUserMessageChunk:
		chunk("user ", acpv2.ContentChunk(*u))
	case *acpv2.SessionUpdateAgentMessageChunk:
		chunk("agent ", acpv2.ContentChunk(*u))
	case *acpv2.SessionUpdateAgentThoughtChunk:
		chunk("thought ", acpv2.ContentChunk(*u))
	case *acpv2.SessionUpdateToolCallUpdate:
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
	case *acpv2.SessionUpdateToolCallContentChunk:
		s.set("call "+string(u.ToolCallID), s.Items["call "+string(u.ToolCallID)]+tool(u.Content))
	case *acpv2.SessionUpdateCompactionUpdate:
		s.set("compaction status "+string(u.CompactionID), string(u.Status))
		if !u.Summary.IsZero() {
			s.set("compaction "+string(u.CompactionID), blocks(u.Summary.Value()))
		}
	case *acpv2.SessionUpdateCompactionSummaryChunk:
		s.set("compaction "+string(u.CompactionID), s.Items["compaction "+string(u.CompactionID)]+blocks([]acpv2.ContentBlock{u.Content}))
	case *acpv2.SessionUpdateTerminalUpdate:
		if u.Output.Present() {
			s.set("terminal "+string(u.TerminalID), u.Output.Value().Data)
		}
		if exit, ok := u.ExitStatus.Get(); ok {
			s.set("exit "+string(u.TerminalID), fmt.Sprint(exit.ExitCode.Get()))
		}
	case *acpv2.SessionUpdateTerminalOutputChunk:
		data, _ := base64.StdEncoding.DecodeString(u.Data)
		s.set("terminal "+string(u.TerminalID), s.Items["terminal "+string(u.TerminalID)]+string(data))
	}
}

// client is the other side, and what it was told.
type client struct {
	*acpv2.ClientConn

	// choose, if set, answers the agent's questions.
	choose func(*acpv2.RequestPermissionRequest) acpv2.RequestPermissionOutcome

	mu    sync.Mutex
	shown shown
	told  []acpv2.SessionUpdate
}

// heard returns the updates since the last call, and what the client shows.
func (c *client) heard() ([]acpv2.SessionUpdate, shown) {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told, c.shown.copy()
}

// connect connects a client to an agent. Both end with the test, and with end.
func connect(t *testing.T, config agentkit.Config[state], opts acpv2.AgentOptions) (c *client, end func()) {
	t.Helper()
	return connectTo(t, agentkit.NewSessions(config), opts)
}

func connectTo(t *testing.T, sessions *agentkit.Sessions[state], opts acpv2.AgentOptions) (c *client, end func()) {
	t.Helper()
	theirs, ours := acpv2.Pipe()
	opts.Info = acpv2.Implementation{Name: "parrot", Version: "1"}
	agent, err := acpv2.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(&opts))
	if err != nil {
		t.Fatal(err)
	}
	c = &client{shown: newShown()}
	handlers := acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told = append(c.told, n.Update)
			c.shown.update(n.Update)
			return nil
		},
		RequestPermission: func(_ context.Context, _ *acpv2.ClientSession, req *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
			if c.choose != nil {
				return &acpv2.RequestPermissionResponse{Outcome: c.choose(req)}, nil
			}
			return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionCancelled()}, nil
		},
		CreateElicitation: func(context.Context, *acpv2.ClientConn, *acpv2.CreateElicitationRequest) (*acpv2.CreateElicitationResponse, error) {
			res := acpv2.NewCreateElicitationResponseDecline()
			return &res, nil
		},
	}
	tapped := conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V2()})
	c.ClientConn, err = acpv2.Connect(t.Context(), tapped, handlers, &acpv2.ClientOptions{
		Info: acpv2.Implementation{Name: "test", Version: "1"},
		Elicitation: acpv2.ElicitationCapabilities{
			Form: acpv2.Some(acpv2.ElicitationFormCapabilities{}), URL: acpv2.Some(acpv2.ElicitationURLCapabilities{}),
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

func (c *client) create(t *testing.T, cwd acpv2.AbsolutePath) *acpv2.ClientSession {
	t.Helper()
	s, err := c.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: cwd})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *client) resume(t *testing.T, id acpv2.SessionID) (*acpv2.ClientSession, error) {
	t.Helper()
	return c.ResumeSession(t.Context(), &acpv2.ResumeSessionRequest{
		SessionID: id, Cwd: "/w", ReplayFrom: acpv2.Some(acpv2.NewReplayFromStart(acpv2.ReplayFromStart{})),
	})
}

func prompt(t *testing.T, s *acpv2.ClientSession, text string) {
	t.Helper()
	res, err := s.Prompt(t.Context(), acpv2.TextBlock(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := res.Idle.Variant.(*acpv2.IdleStateUpdateEndTurn); !ok {
		t.Fatalf("%s ended with %T: %+v", text, res.Idle.Variant, res.Idle.Variant)
	}
}
