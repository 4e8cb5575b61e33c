package acp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// connect runs an agent and a client against each other, every message validated on both ends.
func connect(
	t *testing.T, agent acp.AgentHandlers, agentOpts *acp.AgentOptions, client acp.ClientHandlers, clientOpts *acp.ClientOptions,
) *acp.ClientConn {
	t.Helper()
	conn, _ := pair(t, agent, agentOpts, client, clientOpts)
	return conn
}

func newSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: "s1"}, nil
}

func start(t *testing.T, conn *acp.ClientConn) *acp.ClientSession {
	t.Helper()
	session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/home/ada"}))(t)
	return session
}

// An agent that is served until its context ends returns the cause.
func TestServeAgentUntilItsContextEnds(t *testing.T) {
	ours, theirs := acp.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	served, stop := make(chan error, 1), errors.New("stop")
	go func() {
		tapped := conformance.Tap(t, conformance.Agent, ours, nil)
		served <- acp.ServeAgent(ctx, tapped, complete(acp.AgentHandlers{}), nil)
	}()
	client := must.Get(acp.Connect(t.Context(), theirs, acp.ClientHandlers{}, &acp.ClientOptions{
		Info: acp.Implementation{Name: "test", Version: "0"},
	}))(t)
	cancel(stop)
	if err := <-served; !errors.Is(err, stop) {
		t.Errorf("ended with %v", err)
	}
	must.Do(t, client.Wait())
}

func TestAgentNeedsHandlers(t *testing.T) {
	a, _ := acp.Pipe()
	if err := acp.ServeAgent(t.Context(), a, acp.AgentHandlers{NewSession: newSession}, nil); err == nil {
		t.Error("an agent without Prompt was started")
	}
}

func TestClientNeedsAllTerminalHandlers(t *testing.T) {
	_, c := acp.Pipe()
	var killer acp.ClientHandlers
	killer.KillTerminal = nothing
	if _, err := acp.Connect(t.Context(), c, killer, nil); err == nil {
		t.Error("a client with one terminal handler was started")
	}
	_, err := acp.Connect(t.Context(), c, acp.ClientHandlers{}, &acp.ClientOptions{
		Elicitation: acp.ElicitationCapabilities{Form: acp.Some(acp.ElicitationFormCapabilities{})},
	})
	if err == nil {
		t.Error("a client that advertises elicitation without a handler was started")
	}
}

// Pages end with a missing cursor, which is otherwise handed back as it came, also if it is empty.
func TestLST9_LST10_SessionsArePaged(t *testing.T) {
	const cursor = " \x00é\n\u2028😀%2F\"\\=="
	pages := map[acp.Opt[string]]acp.ListSessionsResponse{
		{}:               {Sessions: []acp.SessionInfo{{SessionID: "a", Cwd: "/"}, {SessionID: "b", Cwd: "/"}}, NextCursor: acp.Some(cursor)},
		acp.Some(cursor): {NextCursor: acp.Some("")},
		acp.Some(""):     {Sessions: []acp.SessionInfo{{SessionID: "c", Cwd: "/"}}, NextCursor: acp.Null[string]()},
	}
	conn := connect(t, acp.AgentHandlers{
		ListSessions: func(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			page, ok := pages[req.Cursor]
			if !ok || req.Cwd.Value() != "/" {
				return nil, acp.ErrInvalidParams
			}
			return &page, nil
		},
	}, nil, acp.ClientHandlers{}, nil)
	var got []acp.SessionID
	for info, err := range conn.Sessions(t.Context(), "/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.SessionID)
	}
	if !slices.Equal(got, []acp.SessionID{"a", "b", "c"}) {
		t.Error(got)
	}
}

// A handler of an extension whose name is the protocol's, or could become it, is an error at the start, on both
// sides. So is an empty one.
func TestEXT3_ExtensionNames(t *testing.T) {
	for _, name := range []string{acp.MethodPrompt, acp.MethodSessionUpdate, acp.MethodCancelRequest, "vendor/ping", ""} {
		var forAgent acp.Extensions[acp.AgentConn]
		rpc.Handle(&forAgent, name, func(context.Context, *acp.AgentConn, *struct{}) (*struct{}, error) { return nil, nil })
		near, far := acp.Pipe()
		handlers := acp.AgentHandlers{NewSession: newSession, Prompt: noPrompt, Extensions: &forAgent}
		if conn, err := acp.StartAgent(t.Context(), far, handlers, nil); err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("an agent that handles %q: %v, %v", name, conn, err)
		}
		var forClient acp.Extensions[acp.ClientConn]
		rpc.HandleNotification(&forClient, name, func(context.Context, *acp.ClientConn, *struct{}) error { return nil })
		if conn, err := acp.Connect(t.Context(), near, acp.ClientHandlers{Extensions: &forClient}, nil); err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("a client that handles %q: %v, %v", name, conn, err)
		}
	}
}

// A handler of an extension that is nil is an error at the start, on both sides, and also without the protocol's
// methods.
func TestNilExtensions(t *testing.T) {
	const name = "_example.com/ping"
	wrong := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), `"`+name+`" is nil`) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	var forAgent acp.Extensions[acp.AgentConn]
	rpc.Handle[acp.AgentConn, struct{}, struct{}](&forAgent, name, nil)
	near, far := acp.Pipe()
	_, err := acp.StartAgent(t.Context(), far, acp.AgentHandlers{NewSession: newSession, Prompt: noPrompt, Extensions: &forAgent}, nil)
	wrong("agent", err)
	var forClient acp.Extensions[acp.ClientConn]
	rpc.HandleNotification[acp.ClientConn, struct{}](&forClient, name, nil)
	_, err = acp.Connect(t.Context(), near, acp.ClientHandlers{Extensions: &forClient}, nil)
	wrong("client", err)
	var raw acp.Extensions[rpc.Conn]
	rpc.Handle[rpc.Conn, struct{}, struct{}](&raw, name, nil)
	near, _ = acp.Pipe()
	_, err = rpc.Connect(t.Context(), near, &raw, nil)
	wrong("raw", err)
}

// Methods with types, as acpgen makes them of a vendor's schema, are called on the connections of both sides and
// handled beside the protocol's own; their handlers are given the connection.
func TestVendorMethods(t *testing.T) {
	type ping struct {
		N int `json:"n"`
	}
	methodPing := rpc.RequestMethod[ping, ping]{Name: "_example.com/ping"}
	methodTold := rpc.NotificationMethod[ping]{Name: "_example.com/told"}
	var agent acp.Extensions[acp.AgentConn]
	rpc.HandleMethod(&agent, methodPing, func(ctx context.Context, conn *acp.AgentConn, p *ping) (*ping, error) {
		return &ping{p.N + 1}, methodTold.Notify(ctx, conn, p)
	})
	told := make(chan int, 1)
	var client acp.Extensions[acp.ClientConn]
	rpc.HandleNotificationMethod(&client, methodTold, func(_ context.Context, conn *acp.ClientConn, p *ping) error {
		if !conn.Capabilities().LoadSession {
			told <- p.N
		}
		return nil
	})
	conn := connect(t, acp.AgentHandlers{Extensions: &agent}, nil, acp.ClientHandlers{Extensions: &client}, nil)
	res, err := methodPing.Call(t.Context(), conn, &ping{1})
	if err != nil || res.N != 2 {
		t.Error(res, err)
	}
	if n := <-told; n != 1 {
		t.Errorf("told %d", n)
	}
}

func noPrompt(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
	return nil, acp.ErrMethodNotFound
}

// When a handler hears of a mode, the session has it already.
func TestModesFollowTheAgent(t *testing.T) {
	modes := acp.SessionModeState{CurrentModeID: "ask", AvailableModes: []acp.SessionMode{{ID: "ask", Name: "Ask"}, {ID: "code", Name: "Code"}}}
	heard := make(chan acp.SessionModeID, 1)
	s := start(t, connect(t, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s", Modes: acp.Some(modes)}, nil
		},
		SetSessionMode: func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
			return nil, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, s.Update(ctx, acp.ModeUpdate("code"))
		},
	}, nil, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, s *acp.ClientSession, _ *acp.SessionNotification) error {
			heard <- s.Modes().Value().CurrentModeID
			return nil
		},
	}, nil))
	must.Get(s.Prompt(t.Context(), acp.TextBlock("x")))(t)
	if got := <-heard; got != "code" || s.Modes().Value().CurrentModeID != "code" {
		t.Errorf("got %q, then %q", got, s.Modes().Value().CurrentModeID)
	}
}
