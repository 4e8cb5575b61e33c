// Package acptest helps test agents and clients. All messages between the two sides are checked by a [conformance.Tap],
// and a message that violates the protocol fails the test.
//
// A test of an agent:
//
//	c := acptest.NewClient(t, sessions.Handlers(), sessions.Options(nil), nil)
//	s := c.StartSession(t)
//	if got := c.Say(t, s, "/runs").Text; got != "No runs." {
//		t.Errorf("got %q", got)
//	}
//
// A test of a client gets the transport to a scripted agent:
//
//	agent := acptest.Script(t, nil, func(ctx context.Context, turn *agentkit.Turn[any]) error {
//		return turn.Sayf(ctx, "Hello.")
//	})
package acptest

import (
	"cmp"
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
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
)

// ClientOptions are options of NewClient and Dial. The zero value is a client that supports everything.
type ClientOptions struct {
	NoFiles       bool // the client serves no files
	NoTerminals   bool // the client serves no terminals
	NoElicitation bool // the client shows no forms and no URLs

	// Protocol is the only version of the protocol that Dial offers to the agent, 1 or 2. The default, 0, asks for
	// version 2 first, and translates for the Client; see package translate. The agents of NewClient have version 1.
	Protocol int
}

// Client is a client for tests of an agent. It serves files and terminals in Dir, and shows boolean options, notices,
// compactions, forms and URLs, unless its ClientOptions say otherwise. It ends with the test.
type Client struct {
	*acp.ClientConn

	// Dir is a temporary directory: the working directory of the sessions that StartSession creates.
	Dir string

	// Permit, if set, answers requests for permission, with acp.PermissionSelected or acp.PermissionCancelled.
	// Otherwise the first option that allows the call is chosen or, if there is none, the first option. Set it while no
	// turn is in progress.
	Permit func(*acp.RequestPermissionRequest) acp.RequestPermissionOutcome

	// Answer, if set, answers forms and URLs. Otherwise they are declined. Set it while no turn is in progress.
	Answer func(*acp.CreateElicitationRequest) acp.CreateElicitationResponse
}

// NewClient serves the handlers of an agent in memory, and returns a client of it. Both options may be nil. The client
// enables the experimental features that the agent's options enable.
func NewClient(t testing.TB, agent acp.AgentHandlers, opts *acp.AgentOptions, client *ClientOptions) *Client {
	t.Helper()
	o := *cmp.Or(opts, &acp.AgentOptions{})
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
	options := *cmp.Or(client, &ClientOptions{})
	options.Protocol = 1
	return connect(t, near, &options, o.Experimental)
}

// Dial returns a client of the agent that a transport reaches, such as acp.Command for a program. opts may be nil.
func Dial(t testing.TB, transport acp.Transport, opts *ClientOptions) *Client {
	t.Helper()
	return connect(t, transport, opts, 0)
}

func connect(t testing.TB, transport acp.Transport, opts *ClientOptions, features acp.Features) *Client {
	t.Helper()
	opts = cmp.Or(opts, &ClientOptions{})
	c := &Client{Dir: t.TempDir()}
	handlers := acp.ClientHandlers{RequestPermission: c.permit}
	machine, err := local.Serve(&handlers, local.Trusted(), c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if opts.NoFiles {
		handlers.ReadTextFile, handlers.WriteTextFile = nil, nil
	}
	if opts.NoTerminals {
		handlers.CreateTerminal, handlers.TerminalOutput, handlers.WaitForTerminalExit = nil, nil, nil
		handlers.KillTerminal, handlers.ReleaseTerminal = nil, nil
	}
	var elicitation acp.ElicitationCapabilities
	if !opts.NoElicitation {
		handlers.CreateElicitation = c.answer
		elicitation.Form = acp.Some(acp.ElicitationFormCapabilities{})
		elicitation.URL = acp.Some(acp.ElicitationURLCapabilities{})
	}
	transport = conformance.Tap(t, conformance.Client, transport, tapOptions(features, opts.Protocol != 1))
	if opts.Protocol != 1 {
		transport = translate.Transport(transport, translate.ClientSide, 1, &translate.Options{Only: opts.Protocol})
	}
	c.ClientConn, err = acp.Connect(t.Context(), transport, handlers, &acp.ClientOptions{
		Info:        acp.Implementation{Name: "acptest", Version: "1"},
		Elicitation: elicitation, BooleanConfig: true,
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

// tapOptions has the judge use version 1, or with either the version that is negotiated, and experimental features if
// there are any.
func tapOptions(features acp.Features, either bool) *conformance.TapOptions {
	v1, v2 := conformance.V1(), conformance.V2()
	if features != 0 {
		v1, v2 = conformance.V1Unstable(), conformance.V2Unstable()
	}
	if either {
		v1 = conformance.Negotiated(v1, v2)
	}
	return &conformance.TapOptions{Schema: v1}
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

// Reply is an agent's reply to a prompt.
type Reply struct {
	// Text is the text of the agent's messages, without its thoughts.
	Text string
	// ToolCalls are the tool calls, in their state at the end of the turn.
	ToolCalls []acp.ToolCall
	// Plan is the plan at the end of the turn, if the agent sent one.
	Plan []acp.PlanEntry
	// StopReason is the reason why the turn ended.
	StopReason acp.StopReason
	// Updates are all updates of the turn, in order.
	Updates []acp.SessionUpdate
}

// Say runs a turn with text as the prompt, waits for its end, and returns the agent's reply. If the agent answers with
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

// Script returns the transport to an in-memory agent whose first turn runs the first function, the second turn the
// second, and so on; a turn ends when its function returns, with end_turn if the error is nil. The test fails if there
// are fewer or more prompts than functions. config may be nil. Its Prompt is not called; if its Title is nil, sessions
// have no titles. Clients of both versions of the protocol can use it. The agent ends with the test.
func Script(
	t testing.TB, config *agentkit.Config[any], turns ...func(ctx context.Context, turn *agentkit.Turn[any]) error,
) acp.Transport {
	t.Helper()
	var mu sync.Mutex
	next := 0
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	script := *cmp.Or(config, &agentkit.Config[any]{})
	script.Logger = cmp.Or(script.Logger, logger)
	if script.Title == nil { // the script sends the updates
		script.Title = func([]acp.ContentBlock) string { return "" }
	}
	script.Prompt = func(ctx context.Context, turn *agentkit.Turn[any], _ *acp.PromptRequest) (*acp.PromptResponse,
		error) {
		mu.Lock()
		n := next
		next++
		mu.Unlock()
		if n >= len(turns) {
			t.Errorf("acptest: the script has %d turns, and there is prompt %d", len(turns), n+1)
			return nil, nil
		}
		return nil, turns[n](ctx, turn)
	}
	sessions := agentkit.NewSessions(script)
	opts := sessions.Options(&acp.AgentOptions{
		Info: acp.Implementation{Name: "acptest", Version: "1"}, Conn: acp.ConnOptions{Logger: logger},
	})
	near, far := acp.Pipe()
	conn, err := acp.StartAgent(t.Context(), translate.Agent(far), sessions.Handlers(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("acptest: closing: %v", err)
		}
		sessions.Close()
		mu.Lock()
		defer mu.Unlock()
		if next < len(turns) {
			t.Errorf("acptest: the script has %d turns, and there were %d prompts", len(turns), next)
		}
	})
	return conformance.Tap(t, conformance.Client, near, tapOptions(opts.Experimental, true))
}
