package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// A client forks a session, which begins with its history and state and goes on by itself.
func TestFork(t *testing.T) {
	ctx := t.Context()
	config := parrot(open(t, t.TempDir(), nil))
	config.Fork = true
	var mu sync.Mutex
	var opened []agentkit.Opening
	config.Open = func(_ context.Context, s *session, o *agentkit.Opening) error {
		mu.Lock()
		defer mu.Unlock()
		opened = append(opened, *o)
		if o.Forked && s.State.Prompts != 1 {
			t.Errorf("the state of a fork is %+v", s.State)
		}
		o.Commands = []v2draft.AvailableCommand{v2draft.NewAvailableCommandCommand(v2draft.SlashCommand{Name: "shout", Description: "Shouts"})}
		return nil
	}
	config.Prompt = func(ctx context.Context, s *session, req *v2draft.PromptRequest) (v2draft.IdleStateUpdate, error) {
		s.State.Prompts++
		message := v2draft.MessageID(fmt.Sprint("m", s.State.Prompts))
		return v2draft.EndTurn(), errors.Join(s.SaveState(ctx), s.Update(ctx, v2draft.AgentMessageText(message, "did "+agentkit.PromptText(req))))
	}
	sessions := agentkit.NewSessions(config)
	theirs, ours := v2draft.Pipe()
	opts := &v2draft.AgentOptions{
		Info: v2draft.Implementation{Name: "a", Version: "1"}, MCP: v2draft.MCPCapabilities{Stdio: v2draft.Some(v2draft.MCPStdioCapabilities{})},
	}
	if _, err := v2draft.StartAgent(ctx, theirs, sessions.Handlers(), opts); !errors.Is(err, v2draft.ErrExperimental) {
		t.Errorf("without Sessions.Options: %v", err)
	}
	agent, err := v2draft.StartAgent(ctx, theirs, sessions.Handlers(), sessions.Options(opts))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	heard := func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := said
		said = nil
		return all
	}
	tap := &conformance.TapOptions{Schema: conformance.V2Unstable(), Accept: map[string]string{
		"INI-6": "parameters that are refused are what is tested", "EXT-3": "as are methods", "SES-20": "and directories", "SES-27": "and servers", "PRM-1": "and sessions",
	}}
	conn, err := v2draft.Connect(ctx, conformance.Tap(t, conformance.Client, ours, tap), v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			switch u := n.Update.Variant.(type) {
			case *v2draft.SessionUpdateUserMessage:
				text, _ := u.Content.Value()[0].Text()
				said = append(said, "user: "+text)
			case *v2draft.SessionUpdateAgentMessageChunk:
				text, _ := u.Content.Text()
				said = append(said, "agent: "+text)
			}
			return nil
		},
	}, &v2draft.ClientOptions{Info: v2draft.Implementation{Name: "c", Version: "1"}, Experimental: v2draft.FeatureFork})
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(ctx, v2draft.TextBlock("one")); err != nil {
		t.Fatal(err)
	}
	fork, err := s.Fork(ctx, &v2draft.ForkSessionRequest{Cwd: "/fork"})
	if err != nil {
		t.Fatal(err)
	}
	if last := opened[len(opened)-1]; !last.Forked || last.Resumed || last.Cwd != "/fork" || len(fork.AvailableCommands()) != 1 {
		t.Errorf("opened was %+v, with %d commands", last, len(fork.AvailableCommands()))
	}
	if _, err := fork.Prompt(ctx, v2draft.TextBlock("two")); err != nil {
		t.Fatal(err)
	}
	heard()
	for id, want := range map[v2draft.SessionID][]string{
		fork.ID(): {"user: one", "agent: did one", "user: two", "agent: did two"},
		s.ID():    {"user: one", "agent: did one"},
	} {
		if _, err := conn.ResumeSession(ctx, &v2draft.ResumeSessionRequest{
			SessionID: id, Cwd: "/w", ReplayFrom: v2draft.Some(v2draft.NewReplayFromStart(v2draft.ReplayFromStart{})),
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, heard()); diff != "" {
			t.Errorf("replayed (-want +got):\n%s", diff)
		}
	}
	if _, err := conn.ForkSession(ctx, &v2draft.ForkSessionRequest{SessionID: "none", Cwd: "/fork"}); !errors.Is(err, v2draft.ErrResourceNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
	call := func(params string) error {
		_, err := rpc.Call[json.RawMessage](ctx, conn.RPC(), "session/fork", json.RawMessage(params))
		return err
	}
	for _, params := range []string{
		`{"sessionId":"s","cwd":"relative"}`, `{"cwd":"/w"}`, `[]`,
		fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[{"type":"http","name":"s","url":"http://localhost"}]}`, s.ID()),
		fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[{"type":"_pigeon","name":"s"}]}`, s.ID()),
	} {
		if err := call(params); !errors.Is(err, v2draft.ErrInvalidParams) {
			t.Errorf("%s: %v", params, err)
		}
	}
	if err := call(fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[{"type":"stdio","name":"s","command":"/bin/mcp"}]}`, s.ID())); err != nil {
		t.Errorf("a server that was advertised: %v", err)
	}
	if _, err := rpc.Call[json.RawMessage](ctx, conn.RPC(), "session/spoon", struct{}{}); !errors.Is(err, v2draft.ErrMethodNotFound) {
		t.Errorf("another method: %v", err)
	}
	listed := 0
	for _, err := range conn.Sessions(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if listed != 3 {
		t.Errorf("%d sessions are listed", listed)
	}
	if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
	sessions.Close()
}

// An author whose agent advertises system prompts gets them however a session is opened.
func TestSystemPrompt(t *testing.T) {
	ctx := t.Context()
	config := parrot(open(t, t.TempDir(), nil))
	config.Fork = true
	var got []v2draft.SystemPromptMode
	config.Open = func(_ context.Context, _ *session, o *agentkit.Opening) error {
		got = append(got, o.SystemPrompt.Value().Mode)
		return nil
	}
	sessions := agentkit.NewSessions(config)
	theirs, ours := v2draft.Pipe()
	agent, err := v2draft.StartAgent(ctx, theirs, sessions.Handlers(), sessions.Options(&v2draft.AgentOptions{
		Info: v2draft.Implementation{Name: "a", Version: "1"}, Experimental: v2draft.FeatureSystemPrompt,
		SystemPrompt: v2draft.Some(v2draft.SessionSystemPromptCapabilities{}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := v2draft.Connect(ctx, conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V2Unstable()}),
		v2draft.ClientHandlers{}, &v2draft.ClientOptions{
			Info: v2draft.Implementation{Name: "c", Version: "1"}, Experimental: v2draft.FeatureFork | v2draft.FeatureSystemPrompt,
		})
	if err != nil {
		t.Fatal(err)
	}
	prompt := v2draft.Some(v2draft.SystemPrompt{Mode: v2draft.SystemPromptModeAppend, Content: []v2draft.ContentBlock{v2draft.TextBlock("Be brief.")}})
	s, err := conn.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: "/w", SystemPrompt: prompt})
	if err != nil {
		t.Fatal(err)
	}
	_, resumed := conn.ResumeSession(ctx, &v2draft.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w", SystemPrompt: prompt})
	_, forked := s.Fork(ctx, &v2draft.ForkSessionRequest{Cwd: "/w", SystemPrompt: prompt})
	if err := errors.Join(resumed, forked, conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
	sessions.Close()
	if diff := cmp.Diff([]v2draft.SystemPromptMode{"append", "append", "append"}, got); diff != "" {
		t.Errorf("system prompts (-want +got):\n%s", diff)
	}
}
