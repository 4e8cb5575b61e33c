package acp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
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
	serving := must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, tap), complete(agent), agentOpts))(t)
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, tap), client, clientOpts))(t)
	t.Cleanup(func() { must.Do(t, errors.Join(conn.Close(), serving.Wait())) })
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
	serving := must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, tap), complete(handlers), opts))(t)
	conn := must.Get(rpc.Connect(t.Context(), c, nil, nil))(t)
	t.Cleanup(func() { must.Do(t, errors.Join(conn.Close(), serving.Wait())) })
	return conn
}

// experiment has what is sent judged with the unstable schema if there are features.
func experiment(tap *conformance.TapOptions, features acp.Features) {
	if features != 0 {
		tap.Schema = conformance.V1Unstable()
	}
}

// sentBy judges what one side sends: the other may send what is wrong on purpose.
func sentBy(side conformance.Side) *conformance.TapOptions {
	return &conformance.TapOptions{
		Ignore: func(f conformance.Finding) bool { return f.Side != side },
		Accept: map[string]string{"PRM-1": "a conversation begins with what it is about, in a session that nobody has made"},
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

// The fallback of an agent's extensions is not reached before initialize.
func TestFallbackBeforeInitialize(t *testing.T) {
	ways.InMemory(t, "a server lets nothing pass before initialize")
	served := 0
	conn := bareClient(t, acp.AgentHandlers{Extensions: &acp.Extensions[acp.AgentConn]{
		Fallback: func(context.Context, *acp.AgentConn, string, json.RawMessage) (any, error) {
			served++
			return struct{}{}, nil
		},
	}}, nil)
	early := call(t, conn, "_x", `{}`)
	if !errors.Is(early, acp.ErrInvalidRequest) || served != 0 {
		t.Errorf("before: %v, served %d times", early, served)
	}
	if err := errors.Join(call(t, conn, acp.MethodInitialize, initializeParams), call(t, conn, "_x", `{}`)); err != nil || served != 1 {
		t.Errorf("after: %v, served %d times", err, served)
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
	agent := must.Get(rpc.Connect(t.Context(), a, ext, nil))(t)
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
	must.Do(t, errors.Join(conn.Close(), agent.Wait()))
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
	h := acp.ClientHandlers{
		CreateTerminal: func(ctx context.Context, _ *acp.ClientSession, req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
			return create(ctx, req)
		},
		ReleaseTerminal: func(_ context.Context, _ *acp.ClientSession, req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
			release(req.TerminalID)
			return nil, nil
		},
	}
	h.TerminalOutput, h.WaitForTerminalExit, h.KillTerminal = nothing, nothing, nothing
	return h
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
	must.Do(t, call(t, conn, acp.MethodInitialize, initializeParams))
}

// A terminal without an id is not the answer to terminal/create.
func TestTerminalWithoutID(t *testing.T) {
	_, agent := pairThat(t, unmade, acp.AgentHandlers{}, nil, terminals(
		func(context.Context, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
			return &acp.CreateTerminalResponse{}, nil
		}, func(acp.TerminalID) {}), nil)
	_, err := agent.Session("s").CreateTerminal(t.Context(), &acp.CreateTerminalRequest{Command: "x"})
	if !errors.Is(err, rpc.ErrInternal) || !strings.Contains(err.Error(), "/terminalId") {
		t.Errorf("got %v", err)
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
