// Package acptest helps to test agents and clients. Everything that passes between the two sides is judged, as
// [conformance.Tap] does it, and a message that breaks the protocol fails the test.
//
// A test of an agent:
//
//	c := acptest.NewClient(t, sessions.Handlers(), sessions.Options(nil))
//	s := c.StartSession(t)
//	if got := c.Say(t, s, "/runs").Text; got != "No runs." {
//		t.Errorf("got %q", got)
//	}
//
// A test of a client gets the transport to an agent with a script:
//
//	agent := acptest.Script(t, func(ctx context.Context, turn *agentkit.Turn[any]) error {
//		return turn.Sayf(ctx, "Hello.")
//	})
package acptest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
)

// Client is a client that tests an agent. It serves files and terminals in Dir, shows boolean options, notices,
// compactions, forms and URLs, and ends with the test.
type Client struct {
	*acp.ClientConn

	// Dir is a temporary directory: that of the sessions of StartSession.
	Dir string

	// Permit, if set, answers requests for permission, with acp.PermissionSelected or acp.PermissionCancelled.
	// Otherwise the first option that allows the call is chosen, or the first of all. Set it while no turn is in progress.
	Permit func(*acp.RequestPermissionRequest) acp.RequestPermissionOutcome

	// Answer, if set, answers forms and URLs. Otherwise they are declined. Set it while no turn is in progress.
	Answer func(*acp.CreateElicitationRequest) acp.CreateElicitationResponse
}

// NewClient serves the handlers of an agent in memory, and returns a client of it. opts may be nil. If it enables
// experimental features, so does the client.
func NewClient(t testing.TB, agent acp.AgentHandlers, opts *acp.AgentOptions) *Client {
	t.Helper()
	o := acp.AgentOptions{}
	if opts != nil {
		o = *opts
	}
	if o.Conn.Logger == nil {
		o.Conn.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	near, far := acp.Pipe()
	conn, err := acp.StartAgent(t.Context(), far, agent, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the client has closed the connection
		if err := conn.Wait(); err != nil {
			t.Errorf("acptest: the agent: %v", err)
		}
	})
	return connect(t, near, o.Experimental)
}

// Dial returns a client of an agent that a transport reaches, such as acp.Command for a program.
func Dial(t testing.TB, transport acp.Transport) *Client {
	t.Helper()
	return connect(t, transport, 0)
}

func connect(t testing.TB, transport acp.Transport, features acp.Features) *Client {
	t.Helper()
	c := &Client{Dir: t.TempDir()}
	handlers := acp.ClientHandlers{RequestPermission: c.permit, CreateElicitation: c.answer}
	machine, err := local.Serve(&handlers, c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	c.ClientConn, err = acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, transport, tapOptions(features)), handlers, &acp.ClientOptions{
		Info: acp.Implementation{Name: "acptest", Version: "1"},
		Elicitation: acp.ElicitationCapabilities{
			Form: acp.Some(acp.ElicitationFormCapabilities{}), URL: acp.Some(acp.ElicitationURLCapabilities{}),
		},
		BooleanConfig: true,
		Session: acp.ClientSessionCapabilities{
			Notices: acp.Some(acp.NoticeCapabilities{}), Compaction: acp.Some(acp.CompactionCapabilities{}),
		},
		Plans: features&acp.FeaturePlans != 0, Subagents: features&acp.FeatureSubagents != 0, Experimental: features,
		Conn: acp.ConnOptions{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))},
	})
	if err != nil {
		t.Fatal(errors.Join(err, machine.Close()))
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), machine.Close()); err != nil {
			t.Errorf("acptest: closing: %v", err)
		}
	})
	return c
}

// tapOptions has the judge know experimental features if there are any.
func tapOptions(features acp.Features) *conformance.TapOptions {
	if features == 0 {
		return nil
	}
	return &conformance.TapOptions{Schema: conformance.V1Unstable()}
}

func (c *Client) permit(
	_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	if c.Permit != nil {
		return &acp.RequestPermissionResponse{Outcome: c.Permit(req)}, nil
	}
	i := slices.IndexFunc(req.Options, func(o acp.PermissionOption) bool {
		return o.Kind == acp.PermissionOptionKindAllowOnce || o.Kind == acp.PermissionOptionKindAllowAlways
	})
	if len(req.Options) == 0 {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[max(0, i)].OptionID)}, nil
}

func (c *Client) answer(
	_ context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest,
) (*acp.CreateElicitationResponse, error) {
	res := acp.NewCreateElicitationResponseDecline()
	if c.Answer != nil {
		res = c.Answer(req)
	}
	return &res, nil
}

// StartSession creates a session in Dir, or fails the test.
func (c *Client) StartSession(t testing.TB) *acp.ClientSession {
	t.Helper()
	s, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Reply is what an agent has done with a prompt.
type Reply struct {
	// Text is the text of the agent's messages, without its thoughts.
	Text string
	// ToolCalls are the tool calls, as they were at the end of the turn.
	ToolCalls []acp.ToolCall
	// Plan is the plan at the end of the turn, if the agent has sent one.
	Plan []acp.PlanEntry
	// StopReason says why the turn ended.
	StopReason acp.StopReason
	// Updates are all updates of the turn, in order.
	Updates []acp.SessionUpdate
}

// Say runs a turn with a text as the prompt, and returns the agent's reply when it has ended. If the agent answers with
// an error, the test fails. Tests that expect an error, or send other content, call ClientSession.Prompt.
func (c *Client) Say(t testing.TB, session *acp.ClientSession, text string) Reply {
	t.Helper()
	var reply Reply
	state := view.New(nil)
	turn := session.Stream(t.Context(), acp.TextBlock(text))
	for update := range turn.Updates() {
		reply.Updates = append(reply.Updates, update)
		state.Update(update)
	}
	res, err := turn.Result()
	if err != nil {
		t.Fatalf("the prompt %q: %v", text, err)
	}
	reply.StopReason = res.StopReason
	now := state.Snapshot()
	reply.Plan = now.Plan.Value().Entries
	var said strings.Builder
	for item := range now.Items() {
		switch v := item.Variant.(type) {
		case *view.Message:
			if v.Role == view.Agent {
				said.WriteString(v.Text())
			}
		case *view.ToolCall:
			reply.ToolCalls = append(reply.ToolCalls, v.Call)
		}
	}
	reply.Text = said.String()
	return reply
}

// Script returns the transport to an agent in memory whose first turn runs the first function, and so on; a turn ends
// when its function returns, with end_turn if the error is nil. The test fails if there are fewer or more prompts than
// functions. The agent has sessions without a store, and ends with the test.
func Script(t testing.TB, turns ...func(ctx context.Context, turn *agentkit.Turn[any]) error) acp.Transport {
	t.Helper()
	var mu sync.Mutex
	next := 0
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	sessions := agentkit.NewSessions(agentkit.Config[any]{
		Logger: logger,
		Title:  func([]acp.ContentBlock) string { return "" }, // the script sends the updates
		Prompt: func(ctx context.Context, turn *agentkit.Turn[any], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			mu.Lock()
			n := next
			next++
			mu.Unlock()
			if n >= len(turns) {
				t.Errorf("acptest: the script has %d turns, and there is prompt %d", len(turns), n+1)
				return nil, nil
			}
			return nil, turns[n](ctx, turn)
		},
	})
	near, far := acp.Pipe()
	conn, err := acp.StartAgent(t.Context(), far, sessions.Handlers(), sessions.Options(&acp.AgentOptions{
		Info: acp.Implementation{Name: "acptest", Version: "1"}, Conn: acp.ConnOptions{Logger: logger},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("acptest: closing: %v", err)
		}
		sessions.Close()
		if next < len(turns) {
			t.Errorf("acptest: the script has %d turns, and there were %d prompts", len(turns), next)
		}
	})
	return conformance.Tap(t, conformance.Client, near, nil)
}
