package acp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/ways"
)

// pair runs an agent and a client against each other, and returns both ends. Unlike with connect, what
// is sent may be wrong.
func pair(
	t *testing.T, agent acp.AgentHandlers, agentOpts *acp.AgentOptions, client acp.ClientHandlers, clientOpts *acp.ClientOptions,
) (*acp.ClientConn, *acp.AgentConn) {
	t.Helper()
	return pairThat(t, nil, agent, agentOpts, client, clientOpts)
}

// unmade is what a test breaks that uses a session which nobody has made.
var unmade = map[string]string{"PRM-1": "no session is made", "ADD-2": "no session is made"}

// pairThat is pair for a test that breaks rules on purpose: their ids, with the reasons.
func pairThat(
	t *testing.T, breaks map[string]string,
	agent acp.AgentHandlers, agentOpts *acp.AgentOptions, client acp.ClientHandlers, clientOpts *acp.ClientOptions,
) (*acp.ClientConn, *acp.AgentConn) {
	t.Helper()
	a, c := ways.Pipe(t)
	tap := &conformance.TapOptions{Accept: breaks}
	serving, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, tap), complete(agent), agentOpts)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, tap), client, clientOpts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), serving.Wait()); err != nil {
			t.Error(err)
		}
	})
	return conn, serving
}

// unopened is why some tests are only in memory.
const unopened = "over HTTP, what an agent sends for a session that nobody has opened waits for who reads it"

// bareClient is a client that knows nothing of the protocol, and its agent.
func bareClient(t *testing.T, handlers acp.AgentHandlers, opts *acp.AgentOptions) *rpc.Conn {
	t.Helper()
	a, c := ways.Pipe(t)
	tap := sentBy(conformance.Agent)
	if opts != nil {
		experiment(tap, opts.Experimental)
	}
	serving, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, tap), complete(handlers), opts)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Connect(t.Context(), c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), serving.Wait()); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// experiment has what is sent judged with the unstable schema if there are features.
func experiment(tap *conformance.TapOptions, features acp.Features) {
	if features != 0 {
		tap.Schema = conformance.V1Unstable()
	}
}

// complete adds the handlers that an agent must have.
func complete(h acp.AgentHandlers) acp.AgentHandlers {
	if h.NewSession == nil {
		h.NewSession = newSession
	}
	if h.Prompt == nil {
		h.Prompt = func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		}
	}
	return h
}

// call sends a request whose parameters nothing checks.
func call(t *testing.T, conn *rpc.Conn, method, params string) error {
	t.Helper()
	_, err := rpc.Call[json.RawMessage](t.Context(), conn, method, json.RawMessage(params))
	return err
}

const initializeParams = `{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}`

// INI-1, ERR-6: before initialize nothing is served, known or not.
func TestRequestsBeforeInitialize(t *testing.T) {
	ways.InMemory(t, "a server lets nothing pass before initialize")
	for name, fallback := range map[string]bool{"no fallback": false, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			var ext acp.Extensions[acp.AgentConn]
			served := 0
			if fallback {
				ext.Fallback = func(context.Context, *acp.AgentConn, string, json.RawMessage) (any, error) {
					served++
					return struct{}{}, nil
				}
			}
			conn := bareClient(t, acp.AgentHandlers{Extensions: &ext}, nil)
			for _, method := range []string{acp.MethodNewSession, acp.MethodLoadSession, acp.MethodPrompt, "_x", "nope"} {
				if err := call(t, conn, method, `{}`); !errors.Is(err, acp.ErrInvalidRequest) {
					t.Errorf("%s: %v", method, err)
				}
			}
			if served != 0 {
				t.Error("a handler was reached before initialize")
			}
			if err := call(t, conn, acp.MethodInitialize, initializeParams); err != nil {
				t.Error(err)
			}
			if err := call(t, conn, "_x", `{}`); fallback && err != nil || !fallback && !errors.Is(err, acp.ErrMethodNotFound) {
				t.Errorf("after initialize: %v", err)
			}
			if err := call(t, conn, acp.MethodInitialize, initializeParams); !errors.Is(err, acp.ErrInvalidRequest) {
				t.Errorf("a second initialize: %v", err)
			}
		})
	}
}

// What follows at once upon the answer to initialize finds that answer, also when the goroutine that
// waits in Connect comes later.
func TestHandlersFindWhatTheAgentSaid(t *testing.T) {
	ways.InMemory(t, unopened)
	a, c := ways.Pipe(t)
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(ext, acp.MethodInitialize, func(ctx context.Context, conn *rpc.Conn, _ *json.RawMessage) (*json.RawMessage, error) {
		rpc.AfterResponse(ctx, func(ctx context.Context) {
			update := `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}`
			if err := rpc.Notify(ctx, conn, acp.MethodSessionUpdate, json.RawMessage(update)); err != nil {
				t.Error(err)
			}
		})
		return new(json.RawMessage(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`)), nil
	})
	agent, err := rpc.Connect(t.Context(), a, ext, nil)
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan struct{})
	tap := &conformance.TapOptions{Accept: unmade}
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, tap), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, session *acp.ClientSession, _ *acp.SessionNotification) error {
			defer close(handled)
			if session.Conn().Initialized() == nil || !session.Conn().Capabilities().LoadSession {
				t.Errorf("the agent said %+v", session.Conn().Initialized())
			}
			return nil
		},
	}, &acp.ClientOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{
		Call: func(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
			err := next(ctx)
			if call.Method == acp.MethodInitialize {
				<-handled // Connect continues after the handler
			}
			return err
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
}

// Rule 8 of package rpc: both sides are held to what they said, also when a hook edited it.
func TestEditedCapabilities(t *testing.T) {
	conn, agent := pairThat(t, map[string]string{
		"SES-4": "what is not advertised is called", "FS-2": "likewise", "ELI-5": "likewise",
	}, acp.AgentHandlers{
		LoadSession: func(context.Context, *acp.AgentSession, *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			t.Error("session/load was not advertised and is served")
			return nil, nil
		},
	}, &acp.AgentOptions{
		Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			res.AgentCapabilities.LoadSession = false
			return nil
		},
	}, acp.ClientHandlers{
		ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			t.Error("fs/read_text_file was not advertised and is served")
			return nil, nil
		},
		CreateElicitation: func(_ context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
			if _, ok := req.Variant.(*acp.CreateElicitationRequestURL); !ok {
				t.Errorf("%T was not advertised and is served", req.Variant)
			}
			return nil, acp.ErrResourceNotFound
		},
	}, &acp.ClientOptions{
		Elicitation: acp.ElicitationCapabilities{Form: acp.Some(acp.ElicitationFormCapabilities{})},
		Initialize: func(req *acp.InitializeRequest) {
			req.ClientCapabilities.FS.ReadTextFile = false
			req.ClientCapabilities.Elicitation = acp.Some(acp.ElicitationCapabilities{
				URL: acp.Some(acp.ElicitationURLCapabilities{}),
			})
		},
	})
	for _, test := range []struct {
		conn           *rpc.Conn
		method, params string
		want           error
	}{
		{conn.RPC(), acp.MethodLoadSession, `{"sessionId":"s","cwd":"/","mcpServers":[]}`, acp.ErrMethodNotFound},
		{agent.RPC(), acp.MethodReadTextFile, `{"sessionId":"s","path":"/x"}`, acp.ErrMethodNotFound},
		{agent.RPC(), acp.MethodCreateElicitation, `{"mode":"form","sessionId":"s","message":"?","requestedSchema":{"type":"object"}}`, acp.ErrInvalidParams},
		{agent.RPC(), acp.MethodCreateElicitation, `{"mode":"url","sessionId":"s","message":"?","elicitationId":"e","url":"https://example.com"}`, acp.ErrResourceNotFound},
	} {
		if err := call(t, test.conn, test.method, test.params); !errors.Is(err, test.want) {
			t.Errorf("%s %s: %v, want %v", test.method, test.params, err, test.want)
		}
	}
}

// terminals are the handlers of a client's terminals, which all must be there.
func terminals(
	create func(context.Context, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error), release func(acp.TerminalID),
) acp.ClientHandlers {
	return acp.ClientHandlers{
		CreateTerminal: func(ctx context.Context, _ *acp.ClientSession, req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
			return create(ctx, req)
		},
		TerminalOutput: func(context.Context, *acp.ClientSession, *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
			return &acp.TerminalOutputResponse{}, nil
		},
		ReleaseTerminal: func(_ context.Context, _ *acp.ClientSession, req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
			release(req.TerminalID)
			return nil, nil
		},
		WaitForTerminalExit: func(context.Context, *acp.ClientSession, *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
			return &acp.WaitForTerminalExitResponse{}, nil
		},
		KillTerminal: func(context.Context, *acp.ClientSession, *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
			return nil, nil
		},
	}
}

// OVW-1, OVW-2, SES-17, SES-20, SES-29, FS-4, TRM-3: paths are absolute, on whatever system, and lines
// count from 1. Whoever is asked otherwise refuses.
func TestPathsAndLinesAreChecked(t *testing.T) {
	client := terminals(func(context.Context, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
		return &acp.CreateTerminalResponse{TerminalID: "t"}, nil
	}, func(acp.TerminalID) {})
	client.ReadTextFile = func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
		return &acp.ReadTextFileResponse{}, nil
	}
	client.WriteTextFile = func(context.Context, *acp.ClientSession, *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error) {
		return nil, nil
	}
	const relative = "relative paths are sent"
	conn, agent := pairThat(t, map[string]string{
		"SES-17": relative, "SES-20": relative, "OVW-1": relative, "OVW-2": "a line 0 is sent", "SES-2": "all sessions have one id",
	}, acp.AgentHandlers{
		LoadSession: func(context.Context, *acp.AgentSession, *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			return nil, nil
		},
		ResumeSession: func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			return nil, nil
		},
		ListSessions: func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			return &acp.ListSessionsResponse{}, nil
		},
	}, &acp.AgentOptions{AdditionalDirectories: true}, client, nil)
	for _, test := range []struct {
		conn                    *rpc.Conn
		method, params, pointer string // the pointer to what is wrong, if anything is
	}{
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"/a","mcpServers":[]}`, ""},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"C:\\a","mcpServers":[],"additionalDirectories":["c:/b","\\\\host\\share"]}`, ""},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"a","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"C:a","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"~/a","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"1:/a","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"@:\\a","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"ab:\\a","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodNewSession, `{"cwd":"/a","mcpServers":[],"additionalDirectories":["/b","./c"]}`, "/additionalDirectories/1"},
		{conn.RPC(), acp.MethodLoadSession, `{"sessionId":"s","cwd":"a","mcpServers":[]}`, "/cwd"},
		{conn.RPC(), acp.MethodResumeSession, `{"sessionId":"s","cwd":"a"}`, "/cwd"},
		{conn.RPC(), acp.MethodListSessions, `{"cwd":"a"}`, "/cwd"},
		{conn.RPC(), acp.MethodListSessions, `{}`, ""},
		{agent.RPC(), acp.MethodReadTextFile, `{"sessionId":"s","path":"/a","line":1}`, ""},
		{agent.RPC(), acp.MethodReadTextFile, `{"sessionId":"s","path":"a"}`, "/path"},
		{agent.RPC(), acp.MethodReadTextFile, `{"sessionId":"s","path":"/a","line":0}`, "/line"},
		{agent.RPC(), acp.MethodWriteTextFile, `{"sessionId":"s","path":"a","content":""}`, "/path"},
		{agent.RPC(), acp.MethodCreateTerminal, `{"sessionId":"s","command":"x","cwd":"a"}`, "/cwd"},
		{agent.RPC(), acp.MethodCreateTerminal, `{"sessionId":"s","command":"x"}`, ""},
	} {
		err := call(t, test.conn, test.method, test.params)
		if test.pointer == "" {
			if err != nil {
				t.Errorf("%s %s: %v", test.method, test.params, err)
			}
			continue
		}
		var data struct{ Pointer string }
		if e, ok := errors.AsType[*acp.Error](err); ok {
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Error(err)
			}
		}
		if !errors.Is(err, acp.ErrInvalidParams) || data.Pointer != test.pointer {
			t.Errorf("%s %s: %v, want pointer %q", test.method, test.params, err, test.pointer)
		}
	}

	// A client of this package does not even ask.
	for name, setup := range map[string]func() error{
		"new": func() error { _, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "a"}); return err },
		"load": func() error {
			_, err := conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "s", Cwd: "a"})
			return err
		},
		"resume": func() error {
			_, err := conn.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: "s", Cwd: "a"})
			return err
		},
	} {
		err := setup()
		if _, asked := errors.AsType[*acp.CallError](err); asked || !errors.Is(err, acp.ErrInvalidParams) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Content and directories that the agent did not advertise reach its handlers.
func TestAgentTakesWhatItDidNotAdvertise(t *testing.T) {
	conn := bareClient(t, acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: acp.SessionID(strings.Join(req.AdditionalDirectories, ","))}, nil
		},
		Prompt: func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if _, image := req.Prompt[0].Variant.(*acp.ContentBlockImage); !image {
				t.Errorf("got %+v", req.Prompt[0])
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
	if err := call(t, conn, acp.MethodInitialize, initializeParams); err != nil {
		t.Fatal(err)
	}
	res, err := rpc.Call[acp.NewSessionResponse](t.Context(), conn, acp.MethodNewSession,
		json.RawMessage(`{"cwd":"/","mcpServers":[],"additionalDirectories":["/x"]}`))
	if err != nil || res.SessionID != "/x" {
		t.Errorf("got %v, %v", res, err)
	}
	const image = `{"sessionId":"s","prompt":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`
	if err := call(t, conn, acp.MethodPrompt, image); err != nil {
		t.Error(err)
	}
}

// AUT-2, AUT-3: authenticate is for the methods that were offered and are not run in a terminal.
func TestAuthenticateWithWhatWasNotOffered(t *testing.T) {
	var used []acp.AuthMethodID
	conn := bareClient(t, acp.AgentHandlers{
		Authenticate: func(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
			used = append(used, req.MethodID)
			return nil, nil
		},
	}, &acp.AgentOptions{AuthMethods: []acp.AuthMethod{
		acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "login", Name: "Log in"}),
		acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "shell", Name: "Log in there"}),
	}})
	if err := call(t, conn, acp.MethodInitialize, initializeParams); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"nope", "", "shell"} {
		if err := call(t, conn, acp.MethodAuthenticate, fmt.Sprintf(`{"methodId":%q}`, id)); !errors.Is(err, acp.ErrInvalidParams) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := call(t, conn, acp.MethodAuthenticate, `{"methodId":"login"}`); err != nil {
		t.Error(err)
	}
	if len(used) != 1 || used[0] != "login" {
		t.Errorf("the handler saw %q", used)
	}
}

// An answer to initialize that cannot be sent is none: the client may ask again, and nothing else is served before.
func TestInitializeThatCannotBeAnswered(t *testing.T) {
	ways.InMemory(t, "without an answer there is no connection")
	asked := 0
	conn := bareClient(t, acp.AgentHandlers{}, &acp.AgentOptions{
		Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			if asked++; asked == 1 {
				res.Meta = acp.Meta{"a": json.RawMessage("no JSON")}
			}
			return nil
		},
	})
	if err := call(t, conn, acp.MethodInitialize, initializeParams); !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("got %v", err)
	}
	if err := call(t, conn, acp.MethodNewSession, `{"cwd":"/","mcpServers":[]}`); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("served before initialize was answered: %v", err)
	}
	if err := call(t, conn, acp.MethodInitialize, initializeParams); err != nil {
		t.Error(err)
	}
}

// TOL-5: a choice that nobody offered must not pass for consent.
func TestPermissionOptionThatWasNotOffered(t *testing.T) {
	ways.InMemory(t, unopened)
	choice := acp.PermissionSelected("always")
	_, agent := pairThat(t, unmade, acp.AgentHandlers{}, nil, acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: choice}, nil
		},
	}, nil)
	ask := func() (acp.RequestPermissionOutcome, error) {
		return agent.Session("s").RequestPermission(t.Context(), acp.ToolCallUpdate{ToolCallID: "t"}, options("Yes", "No")...)
	}
	if outcome, err := ask(); err == nil {
		t.Errorf("chosen %+v", outcome)
	}
	choice = acp.PermissionSelected("no")
	outcome, err := ask()
	if chosen, _ := outcome.Selected(); err != nil || chosen != "no" {
		t.Errorf("chosen %q, %v", chosen, err)
	}
}

// ERR-5, ERR-9: that a client does not know a method, say, must not read as if its agent did not.
func TestErrorOfAPeerIsNotPassedOn(t *testing.T) {
	conn, _ := pairThat(t, unmade, acp.AgentHandlers{
		Prompt: func(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			_, err := rpc.Call[json.RawMessage](ctx, session.Conn().RPC(), "_upstream", nil)
			if !errors.Is(err, acp.ErrMethodNotFound) {
				t.Errorf("the agent's own call: %v", err)
			}
			return nil, fmt.Errorf("asking: %w", err)
		},
	}, nil, acp.ClientHandlers{}, nil)
	_, err := conn.Session("s").Prompt(t.Context(), acp.TextBlock("x"))
	if !errors.Is(err, rpc.ErrInternal) || errors.Is(err, acp.ErrMethodNotFound) {
		t.Error(err)
	}
}

// ERR-9: that an agent's own call was refused here must not read as if the client's request was wrong.
func TestErrorOfAnUnsentCallIsNotPassedOn(t *testing.T) {
	conn, _ := pairThat(t, unmade, acp.AgentHandlers{
		Prompt: func(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			err := session.Update(ctx, acp.UpdatePlan(acp.PlanEntry{Content: "no priority"}))
			e, ok := errors.AsType[*acp.Error](err)
			if !ok || !errors.Is(err, acp.ErrInvalidParams) || !strings.Contains(e.Message, "/update/entries/0/priority") ||
				!strings.HasPrefix(err.Error(), "session/update: ") {
				t.Errorf("the agent's own call: %v", err)
			}
			return nil, fmt.Errorf("planning: %w", err)
		},
	}, nil, acp.ClientHandlers{}, nil)
	_, err := conn.Session("s").Prompt(t.Context(), acp.TextBlock("x"))
	if !errors.Is(err, rpc.ErrInternal) || strings.Contains(err.Error(), "priority") {
		t.Error(err)
	}
}

// Requests whose members are all optional may be nil.
func TestNilRequest(t *testing.T) {
	conn, _ := pair(t, acp.AgentHandlers{
		ListSessions: func(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{{SessionID: "a", Cwd: "/"}}}, nil
		},
		Logout: func(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
			return nil, nil
		},
	}, nil, acp.ClientHandlers{}, nil)
	if res, err := conn.ListSessions(t.Context(), nil); err != nil || len(res.Sessions) != 1 {
		t.Error(res, err)
	}
	if _, err := conn.Logout(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// PRM-9: what an author puts into session/cancel arrives, also while a turn of this side runs.
func TestCancelCarriesMeta(t *testing.T) {
	running := make(chan struct{}, 1)
	seen := make(chan acp.Meta, 1)
	conn := connect(t, acp.AgentHandlers{
		Prompt: func(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			running <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
		Cancel: func(_ context.Context, _ *acp.AgentSession, n *acp.CancelNotification) error {
			seen <- n.Meta
			return nil
		},
	}, nil, acp.ClientHandlers{}, nil)
	session := start(t, conn)
	turn := session.Stream(t.Context(), acp.TextBlock("x"))
	<-running
	meta := acp.Meta{"example.com/why": json.RawMessage(`"bored"`)}
	if err := conn.Cancel(t.Context(), &acp.CancelNotification{SessionID: session.ID(), Meta: meta}); err != nil {
		t.Error(err)
	}
	if got := <-seen; string(got["example.com/why"]) != `"bored"` {
		t.Errorf("meta %v", got)
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Error(res, err)
	}
}

// TRM-7: a client may ask its user before it runs a command, however long that takes. An agent that gives up waiting
// continues at once, and a terminal that is created within ten seconds is released.
func TestTerminalThatTakesLong(t *testing.T) {
	why := errors.New("changed my mind")
	for name, test := range map[string]struct {
		answer, cancel time.Duration // when the client answers, and when the context ends
		released       bool
	}{
		"wanted":                {answer: time.Hour},
		"created 5 s too late":  {answer: time.Minute, cancel: 55 * time.Second, released: true},
		"created 55 s too late": {answer: time.Minute, cancel: 5 * time.Second},
		"created 9 s too late":  {answer: time.Minute, cancel: 51 * time.Second, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var released []acp.TerminalID
				_, agent := pairThat(t, unmade, acp.AgentHandlers{}, nil, terminals(
					func(ctx context.Context, _ *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
						select {
						case <-time.After(test.answer):
							return &acp.CreateTerminalResponse{TerminalID: "t"}, nil
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}, func(id acp.TerminalID) { released = append(released, id) }), nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				if test.cancel != 0 {
					time.AfterFunc(test.cancel, func() { cancel(why) })
				}
				begin := time.Now()
				terminal, err := agent.Session("s").CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "x"})
				if d, want := time.Since(begin), cmp.Or(test.cancel, test.answer); d != want {
					t.Errorf("returned after %v, want %v", d, want)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if test.cancel == 0 {
					if err != nil || terminal.ID() != "t" {
						t.Error(terminal, err)
					}
				} else if !errors.Is(err, why) {
					t.Error(err)
				}
				if (len(released) == 1) != test.released {
					t.Errorf("released %q", released)
				}
				cancel(nil)
			})
		})
	}
}
