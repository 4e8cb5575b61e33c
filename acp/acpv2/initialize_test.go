package v2draft_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	acp "github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// raw connects an agent of this package with a client that sends what it likes.
func raw(t *testing.T, handlers v2draft.AgentHandlers, opts *v2draft.AgentOptions) *rpc.Conn {
	t.Helper()
	near, far := v2draft.Pipe()
	served, err := v2draft.StartAgent(t.Context(), tapAgent(t, far, true), handlers, opts)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.Connect(t.Context(), near, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), served.Wait()); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func initialize(t *testing.T, conn *rpc.Conn, version int) (json.RawMessage, error) {
	t.Helper()
	res, err := rpc.Call[json.RawMessage](t.Context(), conn, "initialize",
		map[string]any{"protocolVersion": version, "info": map[string]string{"name": "n", "version": "1"}})
	if err != nil {
		return nil, err
	}
	return *res, nil
}

func TestVersions(t *testing.T) {
	conn := raw(t, handlers(unprompted), &v2draft.AgentOptions{Info: info})
	if _, err := rpc.Call[json.RawMessage](t.Context(), conn, "session/list", map[string]any{}); !errors.Is(err, v2draft.ErrInvalidRequest) {
		t.Errorf("before initialize: got %v", err)
	}
	for _, params := range []map[string]any{
		{"protocolVersion": 1, "info": map[string]string{"name": "n", "version": "1"}},
		{"clientCapabilities": map[string]any{"terminal": true}, "protocolVersion": 1}, // as version 1 has it
	} {
		_, err := rpc.Call[json.RawMessage](t.Context(), conn, "initialize", params)
		if failure, ok := errors.AsType[*v2draft.Error](err); !ok || failure.Code != -32022 ||
			string(failure.Data) != `{"requested":1,"supported":[2]}` {
			t.Errorf("%v: got %v", params, err)
		}
	}
	for _, params := range []map[string]any{{}, {"protocolVersion": 2}, {"protocolVersion": "1"}} {
		if _, err := rpc.Call[json.RawMessage](t.Context(), conn, "initialize", params); !errors.Is(err, v2draft.ErrInvalidParams) {
			t.Errorf("%v: got %v", params, err)
		}
	}
	for _, version := range []int{2, 2, 7} { // it may be repeated
		res, err := initialize(t, conn, version)
		if err != nil || !strings.Contains(string(res), `"protocolVersion":2`) {
			t.Errorf("version %d: got %s, %v", version, res, err)
		}
	}
	if _, err := rpc.Call[json.RawMessage](t.Context(), conn, "session/list", map[string]any{}); err != nil {
		t.Error(err)
	}
	if _, err := initialize(t, conn, 2); !errors.Is(err, v2draft.ErrInvalidRequest) {
		t.Errorf("after another request: got %v", err)
	}
}

// unprompted is a handler of prompts that is never called.
func unprompted(context.Context, *v2draft.AgentSession, *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
	return nil, errors.New("unexpected")
}

// A client of version 2 is told which version an agent of version 1 speaks, whose answer it cannot read
// otherwise.
func TestAgentOfVersion1(t *testing.T) {
	near, far := acp.Pipe()
	served, err := acp.StartAgent(t.Context(), far, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return nil, errors.New("unexpected")
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return nil, errors.New("unexpected")
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tap := &conformance.TapOptions{Schema: conformance.Negotiated(conformance.V1(), conformance.V2())}
	_, err = v2draft.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), v2draft.ClientHandlers{}, &v2draft.ClientOptions{Info: info})
	if other, ok := errors.AsType[*v2draft.VersionError](err); !ok || other.Got != 1 {
		t.Errorf("got %v", err)
	}
	if err := served.Wait(); err != nil {
		t.Error(err)
	}
}

func TestStartErrors(t *testing.T) {
	full := handlers(unprompted)
	login := func(context.Context, *v2draft.AgentConn, *v2draft.LoginAuthRequest) (*v2draft.LoginAuthResponse, error) {
		return nil, nil
	}
	some := full
	some.CloseSession = nil
	deletes := v2draft.AgentHandlers{DeleteSession: func(context.Context, *v2draft.AgentSession, *v2draft.DeleteSessionRequest) (*v2draft.DeleteSessionResponse, error) {
		return nil, nil
	}}
	half := full
	half.LoginAuth = login
	tests := map[string]struct {
		handlers v2draft.AgentHandlers
		opts     v2draft.AgentOptions
		want     string
	}{
		"no info":             {full, v2draft.AgentOptions{}, "Info.Name"},
		"some of session":     {some, v2draft.AgentOptions{Info: info}, "CloseSession is not"},
		"delete alone":        {deletes, v2draft.AgentOptions{Info: info}, "DeleteSession"},
		"methods, no handler": {half, v2draft.AgentOptions{Info: info, AuthMethods: []v2draft.AuthMethod{v2draft.NewAuthMethodAgent(v2draft.AuthMethodAgent{MethodID: "m", Name: "M"})}}, "LogoutAuth"},
	}
	for name, test := range tests {
		_, far := v2draft.Pipe()
		if _, err := v2draft.StartAgent(t.Context(), far, test.handlers, &test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestAdvertised(t *testing.T) {
	h := handlers(unprompted)
	h.DeleteSession = func(context.Context, *v2draft.AgentSession, *v2draft.DeleteSessionRequest) (*v2draft.DeleteSessionResponse, error) {
		return nil, nil
	}
	tests := map[string]struct {
		handlers v2draft.AgentHandlers
		opts     v2draft.AgentOptions
		want     string
	}{
		"nothing":  {v2draft.AgentHandlers{}, v2draft.AgentOptions{AdditionalDirectories: true}, `{}`},
		"sessions": {handlers(unprompted), v2draft.AgentOptions{}, `{"session":{}}`},
		"all": {h, v2draft.AgentOptions{
			Prompt:                v2draft.PromptCapabilities{Image: v2draft.Some(v2draft.PromptImageCapabilities{})},
			MCP:                   v2draft.MCPCapabilities{Stdio: v2draft.Some(v2draft.MCPStdioCapabilities{})},
			AdditionalDirectories: true,
		}, `{"session":{"prompt":{"image":{}},"mcp":{"stdio":{}},"delete":{},"additionalDirectories":{}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.opts.Info = info
			conn := raw(t, test.handlers, &test.opts)
			res, err := initialize(t, conn, 2)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Capabilities json.RawMessage `json:"capabilities"`
			}
			if err := json.Unmarshal(res, &got); err != nil || string(got.Capabilities) != test.want {
				t.Errorf("got %s, %v, want %s", got.Capabilities, err, test.want)
			}
		})
	}
}

// What was not advertised is not sent, and not served.
func TestGates(t *testing.T) {
	conn := connect(t, handlers(unprompted), v2draft.ClientHandlers{}, nil)
	s := newSession(t, conn)
	ctx := t.Context()
	calls := map[string]func() error{
		"session.delete":       func() error { return s.Delete(ctx) },
		"session.prompt.image": func() error { _, err := s.Prompt(ctx, v2draft.ImageBlock("", "image/png")); return err },
		"session.prompt.audio": func() error { _, err := s.Stream(ctx, v2draft.AudioBlock("", "audio/wav")).Result(); return err },
		"session.mcp.stdio": func() error {
			_, err := conn.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: "/", MCPServers: []v2draft.MCPServer{
				v2draft.NewMCPServerStdio(v2draft.MCPServerStdio{Name: "n", Command: "/c"}),
			}})
			return err
		},
		"session.additionalDirectories": func() error {
			_, err := conn.ResumeSession(ctx, &v2draft.ResumeSessionRequest{SessionID: session, Cwd: "/", AdditionalDirectories: []v2draft.AbsolutePath{"/b"}})
			return err
		},
		"authMethods": func() error { _, err := conn.LogoutAuth(ctx, nil); return err },
		"method":      func() error { _, err := conn.LoginAuth(ctx, &v2draft.LoginAuthRequest{MethodID: "m"}); return err },
	}
	for capability, call := range calls {
		if err := call(); !errors.Is(err, v2draft.ErrUnsupported) || !strings.Contains(err.Error(), capability) {
			t.Errorf("%s: got %v", capability, err)
		}
	}
	if _, err := conn.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: "here"}); !errors.Is(err, v2draft.ErrInvalidParams) {
		t.Errorf("a relative path: got %v", err)
	}
	client := raw(t, handlers(unprompted), &v2draft.AgentOptions{Info: info})
	if _, err := initialize(t, client, 2); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"session/delete", "auth/login", "auth/logout", "terminal/cancel", "fs/read_text_file"} {
		_, err := rpc.Call[json.RawMessage](ctx, client, method, map[string]string{"sessionId": "s", "methodId": "m"})
		if !errors.Is(err, v2draft.ErrMethodNotFound) {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

func TestAuthMethods(t *testing.T) {
	h := handlers(unprompted)
	h.LoginAuth = func(context.Context, *v2draft.AgentConn, *v2draft.LoginAuthRequest) (*v2draft.LoginAuthResponse, error) {
		return nil, nil
	}
	h.LogoutAuth = func(context.Context, *v2draft.AgentConn, *v2draft.LogoutAuthRequest) (*v2draft.LogoutAuthResponse, error) {
		return nil, nil
	}
	conn := connect(t, h, v2draft.ClientHandlers{}, &v2draft.AgentOptions{AuthMethods: []v2draft.AuthMethod{
		v2draft.NewAuthMethodAgent(v2draft.AuthMethodAgent{MethodID: "agent", Name: "A"}),
		v2draft.NewAuthMethodTerminal(v2draft.AuthMethodTerminal{MethodID: "terminal", Name: "T"}),
	}})
	if methods := conn.Initialized().AuthMethods; len(methods) != 1 {
		t.Errorf("got %d methods: a client without a terminal is offered one", len(methods))
	}
	if _, err := conn.LoginAuth(t.Context(), &v2draft.LoginAuthRequest{MethodID: "agent"}); err != nil {
		t.Error(err)
	}
	_, err := rpc.Call[json.RawMessage](t.Context(), conn.RPC(), "auth/login", map[string]string{"methodId": "terminal"})
	if !errors.Is(err, v2draft.ErrInvalidParams) {
		t.Errorf("a method that was not offered: got %v", err)
	}
	if _, err := conn.LogoutAuth(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A permission that the agent takes back by $/cancel_request is answered as cancelled.
func TestPermissionTakenBack(t *testing.T) {
	asked := make(chan struct{})
	near, far := v2draft.Pipe()
	answer := make(chan json.RawMessage, 1)
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(ext, "initialize", func(context.Context, *rpc.Conn, *json.RawMessage) (*v2draft.InitializeResponse, error) {
		return &v2draft.InitializeResponse{ProtocolVersion: 2, Info: info}, nil
	})
	agent, err := rpc.Connect(t.Context(), far, ext, &rpc.Options{Hooks: rpc.Hooks{Message: func(sent bool, message []byte) {
		var m struct{ Result json.RawMessage }
		if !sent && json.Unmarshal(message, &m) == nil && m.Result != nil {
			answer <- append(json.RawMessage(nil), m.Result...)
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	tapped := conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{
		Schema: conformance.V2(), Accept: map[string]string{"ADD-2": "no session is made"},
	})
	client, err := v2draft.Connect(t.Context(), tapped, v2draft.ClientHandlers{
		RequestPermission: func(ctx context.Context, _ *v2draft.ClientSession, _ *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}, &v2draft.ClientOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err = rpc.Call[json.RawMessage](ctx, agent, "session/request_permission", json.RawMessage(
		`{"sessionId":"s","title":"t","options":[{"optionId":"o","name":"n","kind":"allow_once"}]}`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := string(<-answer); got != `{"outcome":{"outcome":"cancelled"}}` {
		t.Errorf("got %s", got)
	}
	if err := errors.Join(client.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
}
