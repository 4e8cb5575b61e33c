package acpv2_test

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
	"github.com/acpgo/sdk/internal/test/must"
)

// raw connects an agent of this package with a client that sends what it likes.
func raw(t *testing.T, handlers acpv2.AgentHandlers, opts *acpv2.AgentOptions) *rpc.Conn {
	t.Helper()
	near, far := acpv2.Pipe()
	served := must.Get(acpv2.StartAgent(t.Context(), tapAgent(t, far, true), handlers, opts))(t)
	conn := must.Get(rpc.Connect(t.Context(), near, nil, nil))(t)
	t.Cleanup(func() { must.Do(t, errors.Join(conn.Close(), served.Wait())) })
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
	conn := raw(t, handlers(unprompted), &acpv2.AgentOptions{Info: info})
	if _, err := rpc.Call[json.RawMessage](t.Context(), conn, "session/list", map[string]any{}); !errors.Is(err, acpv2.ErrInvalidRequest) {
		t.Errorf("before initialize: got %v", err)
	}
	for _, params := range []map[string]any{
		{"protocolVersion": 1, "info": map[string]string{"name": "n", "version": "1"}},
		{"clientCapabilities": map[string]any{"terminal": true}, "protocolVersion": 1}, // as version 1 has it
	} {
		_, err := rpc.Call[json.RawMessage](t.Context(), conn, "initialize", params)
		if failure, ok := errors.AsType[*acpv2.Error](err); !ok || failure.Code != -32022 ||
			string(failure.Data) != `{"requested":1,"supported":[2]}` {
			t.Errorf("%v: got %v", params, err)
		}
	}
	for _, params := range []map[string]any{{}, {"protocolVersion": 2}, {"protocolVersion": "1"}} {
		if _, err := rpc.Call[json.RawMessage](t.Context(), conn, "initialize", params); !errors.Is(err, acpv2.ErrInvalidParams) {
			t.Errorf("%v: got %v", params, err)
		}
	}
	for _, version := range []int{2, 2, 7} { // it may be repeated
		res, err := initialize(t, conn, version)
		if err != nil || !strings.Contains(string(res), `"protocolVersion":2`) {
			t.Errorf("version %d: got %s, %v", version, res, err)
		}
	}
	must.Get(rpc.Call[json.RawMessage](t.Context(), conn, "session/list", map[string]any{}))(t)
	if _, err := initialize(t, conn, 2); !errors.Is(err, acpv2.ErrInvalidRequest) {
		t.Errorf("after another request: got %v", err)
	}
}

// unprompted is a handler of prompts that is never called.
func unprompted(context.Context, *acpv2.AgentSession, *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
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
	_, err = acpv2.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), acpv2.ClientHandlers{}, &acpv2.ClientOptions{Info: info})
	if other, ok := errors.AsType[*acpv2.VersionError](err); !ok || other.Got != 1 {
		t.Errorf("got %v", err)
	}
	must.Do(t, served.Wait())
}

func TestStartErrors(t *testing.T) {
	full := handlers(unprompted)
	some := full
	some.CloseSession = nil
	var deletes acpv2.AgentHandlers
	deletes.DeleteSession = nothing
	half := full
	half.LoginAuth = nothing
	tests := map[string]struct {
		handlers acpv2.AgentHandlers
		opts     acpv2.AgentOptions
		want     string
	}{
		"no info":             {full, acpv2.AgentOptions{}, "Info.Name"},
		"some of session":     {some, acpv2.AgentOptions{Info: info}, "CloseSession is not"},
		"delete alone":        {deletes, acpv2.AgentOptions{Info: info}, "DeleteSession"},
		"methods, no handler": {half, acpv2.AgentOptions{Info: info, AuthMethods: []acpv2.AuthMethod{acpv2.NewAuthMethodAgent(acpv2.AuthMethodAgent{MethodID: "m", Name: "M"})}}, "LogoutAuth"},
	}
	for name, test := range tests {
		_, far := acpv2.Pipe()
		if _, err := acpv2.StartAgent(t.Context(), far, test.handlers, &test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestAdvertised(t *testing.T) {
	h := handlers(unprompted)
	h.DeleteSession = nothing
	tests := map[string]struct {
		handlers acpv2.AgentHandlers
		opts     acpv2.AgentOptions
		want     string
	}{
		"nothing":  {acpv2.AgentHandlers{}, acpv2.AgentOptions{AdditionalDirectories: true}, `{}`},
		"sessions": {handlers(unprompted), acpv2.AgentOptions{}, `{"session":{}}`},
		"all": {h, acpv2.AgentOptions{
			Prompt:                acpv2.PromptCapabilities{Image: acpv2.Some(acpv2.PromptImageCapabilities{})},
			MCP:                   acpv2.MCPCapabilities{Stdio: acpv2.Some(acpv2.MCPStdioCapabilities{})},
			AdditionalDirectories: true,
		}, `{"session":{"prompt":{"image":{}},"mcp":{"stdio":{}},"delete":{},"additionalDirectories":{}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.opts.Info = info
			conn := raw(t, test.handlers, &test.opts)
			res := must.Get(initialize(t, conn, 2))(t)
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
	conn := connect(t, handlers(unprompted), acpv2.ClientHandlers{}, nil)
	s := newSession(t, conn)
	ctx := t.Context()
	calls := map[string]func() error{
		"session.delete":       func() error { return s.Delete(ctx) },
		"session.prompt.image": func() error { _, err := s.Prompt(ctx, acpv2.ImageBlock("", "image/png")); return err },
		"session.prompt.audio": func() error { _, err := s.Stream(ctx, acpv2.AudioBlock("", "audio/wav")).Result(); return err },
		"session.mcp.stdio": func() error {
			_, err := conn.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "/", MCPServers: []acpv2.MCPServer{
				acpv2.NewMCPServerStdio(acpv2.MCPServerStdio{Name: "n", Command: "/c"}),
			}})
			return err
		},
		"session.additionalDirectories": func() error {
			_, err := conn.ResumeSession(ctx, &acpv2.ResumeSessionRequest{SessionID: session, Cwd: "/", AdditionalDirectories: []acpv2.AbsolutePath{"/b"}})
			return err
		},
		"authMethods": func() error { _, err := conn.LogoutAuth(ctx, nil); return err },
		"method":      func() error { _, err := conn.LoginAuth(ctx, &acpv2.LoginAuthRequest{MethodID: "m"}); return err },
	}
	for capability, call := range calls {
		if err := call(); !errors.Is(err, acpv2.ErrUnsupported) || !strings.Contains(err.Error(), capability) {
			t.Errorf("%s: got %v", capability, err)
		}
	}
	if _, err := conn.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "here"}); !errors.Is(err, acpv2.ErrInvalidParams) {
		t.Errorf("a relative path: got %v", err)
	}
	client := raw(t, handlers(unprompted), &acpv2.AgentOptions{Info: info})
	must.Get(initialize(t, client, 2))(t)
	for _, method := range []string{"session/delete", "auth/login", "auth/logout", "terminal/cancel", "fs/read_text_file"} {
		_, err := rpc.Call[json.RawMessage](ctx, client, method, map[string]string{"sessionId": "s", "methodId": "m"})
		if !errors.Is(err, acpv2.ErrMethodNotFound) {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

// A permission that the agent takes back by $/cancel_request is answered as cancelled.
func TestPermissionTakenBack(t *testing.T) {
	asked := make(chan struct{})
	near, far := acpv2.Pipe()
	answer := make(chan json.RawMessage, 1)
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(ext, "initialize", func(context.Context, *rpc.Conn, *json.RawMessage) (*acpv2.InitializeResponse, error) {
		return &acpv2.InitializeResponse{ProtocolVersion: 2, Info: info}, nil
	})
	agent := must.Get(rpc.Connect(t.Context(), far, ext, &rpc.Options{Hooks: rpc.Hooks{Message: func(sent bool, message []byte) {
		var m struct{ Result json.RawMessage }
		if !sent && json.Unmarshal(message, &m) == nil && m.Result != nil {
			answer <- append(json.RawMessage(nil), m.Result...)
		}
	}}}))(t)
	tapped := conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{
		Schema: conformance.V2(), Accept: map[string]string{"ADD-2": "no session is made"},
	})
	client := must.Get(acpv2.Connect(t.Context(), tapped, acpv2.ClientHandlers{RequestPermission: holds(asked)}, &acpv2.ClientOptions{Info: info}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := rpc.Call[json.RawMessage](ctx, agent, "session/request_permission", json.RawMessage(
		`{"sessionId":"s","title":"t","options":[{"optionId":"o","name":"n","kind":"allow_once"}]}`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := string(<-answer); got != `{"outcome":{"outcome":"cancelled"}}` {
		t.Errorf("got %s", got)
	}
	must.Do(t, errors.Join(client.Close(), agent.Wait()))
}
