package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/ways"
)

// connect runs an agent and a client against each other, every message validated on both ends.
func connect(
	t *testing.T, agent acp.AgentHandlers, agentOpts *acp.AgentOptions, client acp.ClientHandlers, clientOpts *acp.ClientOptions,
) *acp.ClientConn {
	t.Helper()
	return connectThat(t, nil, agent, agentOpts, client, clientOpts)
}

// connectThat is connect for a test that breaks rules on purpose: their ids, with the reasons.
func connectThat(
	t *testing.T, breaks map[string]string,
	agent acp.AgentHandlers, agentOpts *acp.AgentOptions, client acp.ClientHandlers, clientOpts *acp.ClientOptions,
) *acp.ClientConn {
	t.Helper()
	a, c := ways.Pipe(t)
	if agent.NewSession == nil {
		agent.NewSession = newSession
	}
	if agent.Prompt == nil {
		agent.Prompt = func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		}
	}
	tap := &conformance.TapOptions{Accept: breaks}
	serving, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, tap), agent, agentOpts)
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
	return conn
}

func newSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: "s1"}, nil
}

func start(t *testing.T, conn *acp.ClientConn) *acp.ClientSession {
	t.Helper()
	session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		t.Fatal(err)
	}
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
	client, err := acp.Connect(t.Context(), theirs, acp.ClientHandlers{}, &acp.ClientOptions{
		Info: acp.Implementation{Name: "test", Version: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel(stop)
	if err := <-served; !errors.Is(err, stop) {
		t.Errorf("ended with %v", err)
	}
	if err := client.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAgentNeedsHandlers(t *testing.T) {
	a, _ := acp.Pipe()
	if err := acp.ServeAgent(t.Context(), a, acp.AgentHandlers{NewSession: newSession}, nil); err == nil {
		t.Error("an agent without Prompt was started")
	}
}

func TestClientNeedsAllTerminalHandlers(t *testing.T) {
	_, c := acp.Pipe()
	_, err := acp.Connect(t.Context(), c, acp.ClientHandlers{
		KillTerminal: func(context.Context, *acp.ClientSession, *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
			return nil, nil
		},
	}, nil)
	if err == nil {
		t.Error("a client with one terminal handler was started")
	}
	_, err = acp.Connect(t.Context(), c, acp.ClientHandlers{}, &acp.ClientOptions{
		Elicitation: acp.ElicitationCapabilities{Form: acp.Some(acp.ElicitationFormCapabilities{})},
	})
	if err == nil {
		t.Error("a client that advertises elicitation without a handler was started")
	}
}

// SES-4, SES-9, SES-13, LST-3, DEL-3, AUT-1, PRM-2, SES-19, SES-27: what was not advertised is not
// called.
func TestCallsAreGated(t *testing.T) {
	conn := connect(t, acp.AgentHandlers{}, nil, acp.ClientHandlers{}, nil)
	session := start(t, conn)
	ctx := t.Context()
	calls := map[string]func() error{
		"load": func() error {
			_, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "s1", Cwd: "/"})
			return err
		},
		"resume": func() error {
			_, err := conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: "s1", Cwd: "/"})
			return err
		},
		"list": func() error { _, err := conn.ListSessions(ctx, &acp.ListSessionsRequest{}); return err },
		"sessions": func() error {
			for _, err := range conn.Sessions(ctx, "") {
				return err
			}
			return nil
		},
		"close":  func() error { return session.Close(ctx) },
		"delete": func() error { return session.Delete(ctx) },
		"logout": func() error { _, err := conn.Logout(ctx, &acp.LogoutRequest{}); return err },
		"authenticate": func() error {
			_, err := conn.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: "nope"})
			return err
		},
		"image": func() error { _, err := session.Prompt(ctx, acp.ImageBlock("aGk=", "image/png")); return err },
		"audio in a stream": func() error {
			_, err := session.Stream(ctx, acp.AudioBlock("aGk=", "audio/wav")).Result()
			return err
		},
		"more roots": func() error {
			_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", AdditionalDirectories: []string{"/x"}})
			return err
		},
		"http MCP server": func() error {
			_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{
				acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "x", URL: "https://example.com"}),
			}})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, acp.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FS-2, TRM-2, ELI-5, SCH-12, SCH-13: the same from the agent's side.
func TestAgentsCallsAreGated(t *testing.T) {
	conn := connect(t, acp.AgentHandlers{
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			calls := map[string]func() error{
				"read":     func() error { _, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/x"}); return err },
				"write":    func() error { _, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: "/x"}); return err },
				"terminal": func() error { _, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "x"}); return err },
				"form": func() error {
					_, err := s.Conn().CreateElicitation(ctx, new(acp.NewCreateElicitationRequestForm("?",
						acp.NewElicitationFormModeSession(acp.ElicitationSchema{}, acp.ElicitationSessionScope{SessionID: s.ID()}))))
					return err
				},
				"notice": func() error {
					return s.Update(ctx, acp.NewSessionUpdateNotice(acp.Notice{Severity: "info", Title: "x"}))
				},
				"compaction": func() error {
					return s.Update(ctx, acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "x", Status: "completed"}))
				},
			}
			for name, call := range calls {
				if err := call(); !errors.Is(err, acp.ErrUnsupported) {
					t.Errorf("%s: %v", name, err)
				}
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil, acp.ClientHandlers{}, nil)
	if _, err := start(t, conn).Prompt(t.Context(), acp.TextBlock("try")); err != nil {
		t.Error(err)
	}
}

// INI-8, INI-13, INI-14, INI-19: what both sides learn of each other.
func TestCapabilitiesFollowFromHandlers(t *testing.T) {
	var client *acp.InitializeRequest
	conn := connect(t, acp.AgentHandlers{
		LoadSession: func(context.Context, *acp.AgentSession, *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			return nil, nil
		},
		ListSessions: func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			return &acp.ListSessionsResponse{}, nil
		},
		Logout: func(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
			return nil, nil
		},
	}, &acp.AgentOptions{
		Info:   acp.Implementation{Name: "a", Version: "1"},
		Prompt: acp.PromptCapabilities{Image: true},
		AuthMethods: []acp.AuthMethod{
			acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "t", Name: "T"}),
			acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "a", Name: "A"}),
		},
		Initialize: func(_ context.Context, req *acp.InitializeRequest, res *acp.InitializeResponse) error {
			client = req
			return res.Meta.Set("example.com/x", 1)
		},
	}, acp.ClientHandlers{
		ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			return &acp.ReadTextFileResponse{}, nil
		},
	}, &acp.ClientOptions{Info: acp.Implementation{Name: "c", Version: "2"}})

	if got := client.ClientInfo.Value().Name; got != "c" || !client.ClientCapabilities.FS.ReadTextFile ||
		client.ClientCapabilities.FS.WriteTextFile || client.ClientCapabilities.Terminal {
		t.Errorf("the agent sees %+v", client)
	}
	res := conn.Initialized()
	caps := res.AgentCapabilities
	if !caps.LoadSession || !caps.SessionCapabilities.List.Present() || caps.SessionCapabilities.Close.Present() ||
		!caps.Auth.Logout.Present() || !caps.PromptCapabilities.Image || caps.PromptCapabilities.Audio {
		t.Errorf("the client sees %+v", caps)
	}
	if len(res.AuthMethods) != 1 {
		t.Errorf("auth methods %+v", res.AuthMethods)
	}
	var x int
	if ok, err := res.Meta.Get("example.com/x", &x); !ok || err != nil || x != 1 {
		t.Errorf("meta %v", res.Meta)
	}
	if _, err := conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "s", Cwd: "/"}); err != nil {
		t.Errorf("a nil answer to session/load: %v", err)
	}
}

// INI-10: a version that is not ours.
func TestVersionOfTheAgent(t *testing.T) {
	a, c := ways.Pipe(t)
	tap := &conformance.TapOptions{Accept: map[string]string{"ADD-7": "there is no such version"}}
	agent, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, a, tap), acp.AgentHandlers{
		NewSession: newSession,
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return nil, nil
		},
	}, &acp.AgentOptions{Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
		res.ProtocolVersion = 99
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, tap), acp.ClientHandlers{}, nil)
	if v, ok := errors.AsType[*acp.VersionError](err); !ok || v.Got != 99 {
		t.Error(err)
	}
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
}

func TestWholeTurn(t *testing.T) {
	var mu sync.Mutex
	files := map[string]string{"/home/ada/a.txt": "one\ntwo\n"}
	terminals := map[acp.TerminalID]bool{}
	var seen []string
	announced := make(chan struct{})
	conn := connect(t, acp.AgentHandlers{
		NewSession: func(ctx context.Context, client *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			acp.AfterResponse(ctx, func(ctx context.Context) {
				err := client.Session("s1").Update(ctx, acp.NewSessionUpdateAvailableCommandsUpdate(acp.AvailableCommandsUpdate{
					AvailableCommands: []acp.AvailableCommand{{Name: "test", Description: "Runs the tests"}},
				}))
				if err != nil {
					t.Error(err)
				}
			})
			return &acp.NewSessionResponse{SessionID: "s1"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			file, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/home/ada/a.txt"})
			if err != nil {
				return nil, err
			}
			err = s.Update(ctx, acp.NewSessionUpdateToolCall(acp.ToolCall{
				ToolCallID: "c1", Title: "Edit", Content: []acp.ToolCallContent{acp.ToolDiff("/home/ada/a.txt", file.Content+"three\n")},
				RawInput: json.RawMessage("{\n\"n\": 12345678901234567890\n}"),
			}))
			if err != nil {
				return nil, err
			}
			outcome, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "c1"}, options("Yes", "No")...)
			if err != nil {
				return nil, err
			}
			if option, _ := outcome.Selected(); option != "yes" {
				return &acp.PromptResponse{StopReason: acp.StopReasonRefusal}, nil
			}
			if _, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: "/home/ada/a.txt", Content: ""}); err != nil {
				return nil, err
			}
			terminal, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
			if err != nil {
				return nil, err
			}
			if _, err := terminal.Wait(ctx); err != nil {
				return nil, err
			}
			out, err := terminal.Output(ctx)
			if err != nil || out.Output != "ok" {
				t.Error(out, err)
			}
			if err := errors.Join(terminal.Kill(ctx), terminal.Close(ctx)); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateAvailableCommandsUpdate:
				seen = append(seen, "commands")
				close(announced)
			case *acp.SessionUpdateToolCall:
				seen = append(seen, "tool_call "+string(u.RawInput))
			}
			return nil
		},
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, "permission")
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
		},
		ReadTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			return &acp.ReadTextFileResponse{Content: files[req.Path]}, nil
		},
		WriteTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error) {
			files[req.Path] = req.Content
			return nil, nil
		},
		CreateTerminal: func(context.Context, *acp.ClientSession, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
			terminals["t1"] = true
			return &acp.CreateTerminalResponse{TerminalID: "t1"}, nil
		},
		TerminalOutput: func(context.Context, *acp.ClientSession, *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
			return &acp.TerminalOutputResponse{Output: "ok", ExitStatus: acp.Some(acp.TerminalExitStatus{ExitCode: acp.Some[uint32](0)})}, nil
		},
		WaitForTerminalExit: func(context.Context, *acp.ClientSession, *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
			return &acp.WaitForTerminalExitResponse{ExitCode: acp.Some[uint32](0)}, nil
		},
		KillTerminal: func(context.Context, *acp.ClientSession, *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
			return nil, nil
		},
		ReleaseTerminal: func(_ context.Context, _ *acp.ClientSession, req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
			delete(terminals, req.TerminalID)
			return nil, nil
		},
	}, nil)
	session := start(t, conn)
	<-announced
	res, err := session.Prompt(t.Context(), acp.TextBlock("add a line"))
	if err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Fatal(res, err)
	}
	want := []string{"commands", `tool_call {"n":12345678901234567890}`, "permission"}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q", seen)
	}
	if files["/home/ada/a.txt"] != "" || len(terminals) != 0 {
		t.Error(files, terminals)
	}
}

// A cancelled turn answers by itself, whatever its handler returns.
func TestCancelledTurnIsNoError(t *testing.T) {
	running := make(chan struct{}, 1)
	conn := connect(t, acp.AgentHandlers{
		Prompt: func(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			running <- struct{}{}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), acp.ErrTurnCancelled) {
				t.Error(context.Cause(ctx))
			}
			return nil, errors.New("the model's connection broke")
		},
	}, nil, acp.ClientHandlers{}, nil)
	session := start(t, conn)
	go func() {
		<-running
		if err := session.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	res, err := session.Prompt(t.Context(), acp.TextBlock("x"))
	if err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Error(res, err)
	}
}

// ERR-9, AUT-9: authentication is asked for, and then not.
func TestAuthentication(t *testing.T) {
	authenticated := false
	conn := connect(t, acp.AgentHandlers{
		NewSession: func(ctx context.Context, c *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			if !authenticated {
				return nil, acp.ErrAuthRequired
			}
			return newSession(ctx, c, req)
		},
		Authenticate: func(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
			authenticated = req.MethodID == "login"
			return nil, nil
		},
	}, &acp.AgentOptions{
		AuthMethods: []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "login", Name: "Log in"})},
	}, acp.ClientHandlers{}, nil)
	if _, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}); !errors.Is(err, acp.ErrAuthRequired) {
		t.Fatal(err)
	}
	if _, err := conn.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: "login"}); err != nil {
		t.Fatal(err)
	}
	start(t, conn)
}

func TestExtensionMethods(t *testing.T) {
	type ping struct {
		N int `json:"n"`
	}
	var ext acp.Extensions[acp.AgentConn]
	rpc.Handle(&ext, "_example.com/ping", func(_ context.Context, _ *acp.AgentConn, p *ping) (*ping, error) { return &ping{p.N + 1}, nil })
	conn := connect(t, acp.AgentHandlers{Extensions: &ext}, nil, acp.ClientHandlers{}, nil)
	res, err := rpc.Call[ping](t.Context(), conn.RPC(), "_example.com/ping", &ping{1})
	if err != nil || res.N != 2 {
		t.Error(res, err)
	}
	if _, err := rpc.Call[ping](t.Context(), conn.RPC(), "_example.com/pong", nil); !errors.Is(err, acp.ErrMethodNotFound) {
		t.Error(err)
	}
}

// LST-9, LST-10: pages end with a missing cursor, which is otherwise handed back as it came.
func TestSessionsArePaged(t *testing.T) {
	conn := connect(t, acp.AgentHandlers{
		ListSessions: func(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			if !req.Cursor.Present() {
				return &acp.ListSessionsResponse{
					Sessions:   []acp.SessionInfo{{SessionID: "a", Cwd: "/"}, {SessionID: "b", Cwd: "/"}},
					NextCursor: acp.Some("\x00é\n"),
				}, nil
			}
			if req.Cursor.Value() != "\x00é\n" || req.Cwd.Value() != "/" {
				return nil, acp.ErrInvalidParams
			}
			return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{{SessionID: "c", Cwd: "/"}}}, nil
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
