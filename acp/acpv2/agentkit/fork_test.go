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
		o.Commands = []acpv2.AvailableCommand{acpv2.NewAvailableCommandCommand(acpv2.SlashCommand{Name: "shout", Description: "Shouts"})}
		return nil
	}
	config.Prompt = func(ctx context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		s.State.Prompts++
		message := acpv2.MessageID(fmt.Sprint("m", s.State.Prompts))
		return acpv2.EndTurn(), errors.Join(s.SaveState(ctx), s.Update(ctx, acpv2.AgentMessageText(message, "did "+agentkit.PromptText(req))))
	}
	sessions := agentkit.NewSessions(config)
	theirs, ours := acpv2.Pipe()
	opts := &acpv2.AgentOptions{
		Info: acpv2.Implementation{Name: "a", Version: "1"}, MCP: acpv2.MCPCapabilities{Stdio: acpv2.Some(acpv2.MCPStdioCapabilities{})},
	}
	if _, err := acpv2.StartAgent(ctx, theirs, sessions.Handlers(), opts); !errors.Is(err, acpv2.ErrExperimental) {
		t.Errorf("without Sessions.Options: %v", err)
	}
	agent, err := acpv2.StartAgent(ctx, theirs, sessions.Handlers(), sessions.Options(opts))
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
	conn, err := acpv2.Connect(ctx, conformance.Tap(t, conformance.Client, ours, tap), acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			switch u := n.Update.Variant.(type) {
			case *acpv2.SessionUpdateUserMessage:
				text, _ := u.Content.Value()[0].Text()
				said = append(said, "user: "+text)
			case *acpv2.SessionUpdateAgentMessageChunk:
				text, _ := u.Content.Text()
				said = append(said, "agent: "+text)
			}
			return nil
		},
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "c", Version: "1"}, Experimental: acpv2.FeatureFork})
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(ctx, acpv2.TextBlock("one")); err != nil {
		t.Fatal(err)
	}
	fork, err := s.Fork(ctx, &acpv2.ForkSessionRequest{Cwd: "/fork"})
	if err != nil {
		t.Fatal(err)
	}
	if last := opened[len(opened)-1]; !last.Forked || last.Resumed || last.Cwd != "/fork" || len(fork.AvailableCommands()) != 1 {
		t.Errorf("opened was %+v, with %d commands", last, len(fork.AvailableCommands()))
	}
	if _, err := fork.Prompt(ctx, acpv2.TextBlock("two")); err != nil {
		t.Fatal(err)
	}
	heard()
	for id, want := range map[acpv2.SessionID][]string{
		fork.ID(): {"user: one", "agent: did one", "user: two", "agent: did two"},
		s.ID():    {"user: one", "agent: did one"},
	} {
		if _, err := conn.ResumeSession(ctx, &acpv2.ResumeSessionRequest{
			SessionID: id, Cwd: "/w", ReplayFrom: acpv2.Some(acpv2.NewReplayFromStart(acpv2.ReplayFromStart{})),
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, heard()); diff != "" {
			t.Errorf("replayed (-want +got):\n%s", diff)
		}
	}
	if _, err := conn.ForkSession(ctx, &acpv2.ForkSessionRequest{SessionID: "none", Cwd: "/fork"}); !errors.Is(err, acpv2.ErrResourceNotFound) {
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
		if err := call(params); !errors.Is(err, acpv2.ErrInvalidParams) {
			t.Errorf("%s: %v", params, err)
		}
	}
	if err := call(fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[{"type":"stdio","name":"s","command":"/bin/mcp"}]}`, s.ID())); err != nil {
		t.Errorf("a server that was advertised: %v", err)
	}
	if _, err := rpc.Call[json.RawMessage](ctx, conn.RPC(), "session/spoon", struct{}{}); !errors.Is(err, acpv2.ErrMethodNotFound) {
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
	var got []acpv2.SystemPromptMode
	config.Open = func(_ context.Context, _ *session, o *agentkit.Opening) error {
		got = append(got, o.SystemPrompt.Value().Mode)
		return nil
	}
	sessions := agentkit.NewSessions(config)
	theirs, ours := acpv2.Pipe()
	agent, err := acpv2.StartAgent(ctx, theirs, sessions.Handlers(), sessions.Options(&acpv2.AgentOptions{
		Info: acpv2.Implementation{Name: "a", Version: "1"}, Experimental: acpv2.FeatureSystemPrompt,
		SystemPrompt: acpv2.Some(acpv2.SessionSystemPromptCapabilities{}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := acpv2.Connect(ctx, conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V2Unstable()}),
		acpv2.ClientHandlers{}, &acpv2.ClientOptions{
			Info: acpv2.Implementation{Name: "c", Version: "1"}, Experimental: acpv2.FeatureFork | acpv2.FeatureSystemPrompt,
		})
	if err != nil {
		t.Fatal(err)
	}
	prompt := acpv2.Some(acpv2.SystemPrompt{Mode: acpv2.SystemPromptModeAppend, Content: []acpv2.ContentBlock{acpv2.TextBlock("Be brief.")}})
	s, err := conn.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "/w", SystemPrompt: prompt})
	if err != nil {
		t.Fatal(err)
	}
	_, resumed := conn.ResumeSession(ctx, &acpv2.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w", SystemPrompt: prompt})
	_, forked := s.Fork(ctx, &acpv2.ForkSessionRequest{Cwd: "/w", SystemPrompt: prompt})
	if err := errors.Join(resumed, forked, conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
	sessions.Close()
	if diff := cmp.Diff([]acpv2.SystemPromptMode{"append", "append", "append"}, got); diff != "" {
		t.Errorf("system prompts (-want +got):\n%s", diff)
	}
}
