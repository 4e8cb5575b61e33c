package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
)

// basicAgent are the handlers that every agent has.
func basicAgent() acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
}

// connectAll starts an agent and a client of it, both with all experimental features. A test may break rules on purpose: their ids, with the reasons.
func connectAll(
	t *testing.T, breaks map[string]string,
	agent acp.AgentHandlers, agentOptions *acp.AgentOptions, client acp.ClientHandlers, clientOptions *acp.ClientOptions,
) (*acp.ClientConn, *acp.AgentConn) {
	t.Helper()
	if agentOptions == nil {
		agentOptions = &acp.AgentOptions{}
	}
	if clientOptions == nil {
		clientOptions = &acp.ClientOptions{}
	}
	agentOptions.Experimental, clientOptions.Experimental = acp.AllFeatures, acp.AllFeatures
	near, far := acp.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V1Unstable(), Accept: breaks}
	served, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), agent, agentOptions)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), client, clientOptions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), served.Wait()); err != nil {
			t.Error(err)
		}
	})
	return conn, served
}

// What was not advertised is not sent, and not served.
func TestExperimentalGates(t *testing.T) {
	conn, served := connectAll(t, map[string]string{"ADD-10": "what is not advertised is called"}, basicAgent(), nil, acp.ClientHandlers{}, nil)
	ctx := t.Context()
	s := conn.Session("s")
	prompt := acp.Some(acp.SystemPrompt{Mode: acp.SystemPromptModeAppend, Content: []acp.ContentBlock{acp.TextBlock("x")}})
	remove := acp.NewSessionUpdatePlanRemoved(acp.PlanRemoved{PlanID: "p"})
	calls := map[string]func() error{
		"sessionCapabilities.fork":    func() error { _, err := s.Fork(ctx, &acp.ForkSessionRequest{Cwd: "/"}); return err },
		"sessionCapabilities.archive": func() error { return s.Archive(ctx) },
		"sessionCapabilities.title":   func() error { _, err := s.SetTitle(ctx, "x"); return err },
		"sessionCapabilities.status":  func() error { _, err := s.Status(ctx); return err },
		"auth.status":                 func() error { _, err := conn.AuthStatus(ctx, nil); return err },
		"providers":                   func() error { _, err := conn.ListProviders(ctx, nil); return err },
		"sessionCapabilities.systemPrompt": func() error {
			_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", SystemPrompt: prompt})
			return err
		},
		"mcpCapabilities.acp": func() error {
			_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{
				acp.NewMCPServerACP(acp.MCPServerACP{Name: "n", ServerID: "1"}),
			}})
			return err
		},
		"plan": func() error { return served.Session("s").Update(ctx, remove) },
	}
	for capability, call := range calls {
		if err := call(); !errors.Is(err, acp.ErrUnsupported) || !strings.Contains(err.Error(), "capability "+capability) {
			t.Errorf("%s: got %v", capability, err)
		}
	}
	for method, params := range map[string]string{
		"session/fork": `{"sessionId":"s","cwd":"/"}`, "session/archive": `{"sessionId":"s"}`, "session/unarchive": `{"sessionId":"s"}`,
		"session/set_title": `{"sessionId":"s","title":"t"}`, "session/status": `{"sessionId":"s"}`, "auth/status": `{}`,
		"providers/set": `{"providerId":"p","apiType":"openai","baseUrl":"https://a.test"}`,
	} {
		_, err := rpc.Call[json.RawMessage](ctx, conn.RPC(), method, json.RawMessage(params))
		if !errors.Is(err, acp.ErrMethodNotFound) {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

// What handlers and options advertise is sent and served.
func TestExperimentalAdvertised(t *testing.T) {
	agent := basicAgent()
	agent.ForkSession = func(_ context.Context, _ *acp.AgentSession, req *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
		return &acp.ForkSessionResponse{SessionID: req.SessionID + "'"}, nil
	}
	agent.SetSessionTitle = func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionTitleRequest) (*acp.SetSessionTitleResponse, error) {
		return &acp.SetSessionTitleResponse{Title: string(req.SessionID) + ": " + req.Title}, nil
	}
	updates := make(chan acp.SessionUpdate, 1)
	conn, served := connectAll(t, map[string]string{"ADD-2": "no session is made"}, agent, &acp.AgentOptions{SystemPrompt: acp.Some(acp.SessionSystemPromptCapabilities{})}, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			updates <- n.Update
			return nil
		},
	}, &acp.ClientOptions{Plans: true, Subagents: true})
	caps, err := json.Marshal(conn.Capabilities().SessionCapabilities)
	if want := `{"systemPrompt":{},"fork":{},"title":{}}`; err != nil || string(caps) != want {
		t.Errorf("got %s, %v, want %s", caps, err, want)
	}
	if !served.Capabilities().Subagents.Present() {
		t.Error("the client's capability subagents is missing")
	}
	fork, err := conn.Session("s").Fork(t.Context(), &acp.ForkSessionRequest{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if title, err := fork.SetTitle(t.Context(), "T"); err != nil || title != "s': T" {
		t.Errorf("got %q, %v", title, err)
	}
	if _, err := conn.Session("s").Fork(t.Context(), &acp.ForkSessionRequest{Cwd: "here"}); !errors.Is(err, acp.ErrInvalidParams) {
		t.Errorf("a relative path: got %v", err)
	}
	if err := served.Session("s").Update(t.Context(), acp.NewSessionUpdatePlanRemoved(acp.PlanRemoved{PlanID: "p"})); err != nil {
		t.Error(err)
	}
	if u := <-updates; u.Variant.(*acp.SessionUpdatePlanRemoved).PlanID != "p" {
		t.Errorf("got %+v", u)
	}
}

// An agent serves what it has said, whatever handlers it has.
func TestForkHeldToItsWord(t *testing.T) {
	agent := basicAgent()
	agent.ForkSession = func(context.Context, *acp.AgentSession, *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
		return nil, errors.New("unexpected")
	}
	conn, _ := connectAll(t, map[string]string{"ADD-10": "what is not advertised is called"}, agent, &acp.AgentOptions{
		Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			res.AgentCapabilities.SessionCapabilities.Fork = acp.Opt[acp.SessionForkCapabilities]{}
			return nil
		},
	}, acp.ClientHandlers{}, nil)
	_, err := rpc.Call[json.RawMessage](t.Context(), conn.RPC(), "session/fork", map[string]string{"sessionId": "s", "cwd": "/"})
	if !errors.Is(err, acp.ErrMethodNotFound) {
		t.Errorf("got %v", err)
	}
}

// Handlers of one capability are set together.
func TestExperimentalTogether(t *testing.T) {
	agent := basicAgent()
	agent.ArchiveSession = func(context.Context, *acp.AgentSession, *acp.ArchiveSessionRequest) (*acp.ArchiveSessionResponse, error) {
		return nil, nil
	}
	_, far := acp.Pipe()
	_, err := acp.StartAgent(t.Context(), far, agent, &acp.AgentOptions{Experimental: acp.AllFeatures})
	if err == nil || !strings.Contains(err.Error(), "ArchiveSession is set, UnarchiveSession is not") {
		t.Errorf("got %v", err)
	}
}

// A conductor and a proxy: the handshake, messages to and from the successor, and those of the protocol
// itself.
func TestProxy(t *testing.T) {
	near, far := acp.Pipe()
	notified := make(chan string, 2)
	ext := &acp.Extensions[acp.ProxyConn]{Fallback: func(_ context.Context, _ *acp.ProxyConn, method string, params json.RawMessage) (any, error) {
		return map[string]string{"method": method, "params": string(params)}, nil
	}}
	proxy, err := acp.StartProxy(t.Context(), far, acp.ProxyHandlers{
		InitializeProxy: func(ctx context.Context, conductor *acp.ProxyConn, req *acp.InitializeProxyRequest) (*acp.InitializeProxyResponse, error) {
			params, err := json.Marshal(req)
			if err != nil {
				return nil, err
			}
			res, err := conductor.ProxySuccessor(ctx, &acp.ProxySuccessorRequest{Method: "initialize", Params: params})
			if err != nil {
				return nil, err
			}
			var answer acp.InitializeProxyResponse
			return &answer, json.Unmarshal(*res, &answer)
		},
		ProxySuccessorNotification: func(_ context.Context, _ *acp.ProxyConn, n *acp.ProxySuccessorNotification) error {
			notified <- "from the successor: " + n.Method
			return nil
		},
		Extensions: ext,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	conductor, err := acp.StartProxy(t.Context(), near, acp.ProxyHandlers{
		ProxySuccessor: func(_ context.Context, _ *acp.ProxyConn, req *acp.ProxySuccessorRequest) (*acp.ProxySuccessorResponse, error) {
			if req.Method != "initialize" {
				return nil, acp.ErrMethodNotFound
			}
			res := acp.ProxySuccessorResponse(`{"protocolVersion":1,"agentInfo":{"name":"end of the chain","version":"1"}}`)
			return &res, nil
		},
		ProxySuccessorNotification: func(_ context.Context, _ *acp.ProxyConn, n *acp.ProxySuccessorNotification) error {
			notified <- "to the successor: " + n.Method
			return nil
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	res, err := conductor.InitializeProxy(ctx, &acp.InitializeProxyRequest{ProtocolVersion: 1})
	if err != nil || res.AgentInfo.Value().Name != "end of the chain" {
		t.Errorf("got %+v, %v", res, err)
	}
	if err := conductor.ProxySuccessorNotification(ctx, &acp.ProxySuccessorNotification{Method: "session/update"}); err != nil {
		t.Error(err)
	}
	if got := <-notified; got != "from the successor: session/update" {
		t.Errorf("got %q", got)
	}
	if err := proxy.ProxySuccessorNotification(ctx, &acp.ProxySuccessorNotification{Method: "session/cancel"}); err != nil {
		t.Error(err)
	}
	if got := <-notified; got != "to the successor: session/cancel" {
		t.Errorf("got %q", got)
	}
	raw, err := rpc.Call[map[string]string](ctx, conductor.RPC(), "session/new", map[string]string{"cwd": "/"})
	if err != nil || (*raw)["method"] != "session/new" || (*raw)["params"] != `{"cwd":"/"}` {
		t.Errorf("got %v, %v", raw, err)
	}
	if _, err := proxy.ProxySuccessor(ctx, &acp.ProxySuccessorRequest{Method: "x"}); !errors.Is(err, acp.ErrMethodNotFound) {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(conductor.Close(), proxy.Wait()); err != nil {
		t.Error(err)
	}
}

// A fork that offers config options which no handler sets is warned of, as other ways to open a session are.
func TestForkOffersWithoutHandlers(t *testing.T) {
	agent := basicAgent()
	agent.ForkSession = func(context.Context, *acp.AgentSession, *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
		options := []acp.SessionConfigOption{acp.SelectOption("o", "O", "v", acp.SelectValue("v", "V"))}
		return &acp.ForkSessionResponse{SessionID: "f", ConfigOptions: acp.Some(options)}, nil
	}
	var logged bytes.Buffer
	opts := &acp.AgentOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))}}
	conn, _ := connectAll(t, map[string]string{"ADD-2": "no session is made"}, agent, opts, acp.ClientHandlers{}, nil)
	if _, err := conn.Session("s").Fork(t.Context(), &acp.ForkSessionRequest{Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	if got := logged.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "method=session/set_config_option") {
		t.Errorf("logged %q", got)
	}
}

// A fork with an MCP server of a type that the agent did not advertise is refused.
func TestForkWithServersNotAdvertised(t *testing.T) {
	agent := basicAgent()
	agent.ForkSession = func(context.Context, *acp.AgentSession, *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
		return &acp.ForkSessionResponse{SessionID: "f"}, nil
	}
	conn, _ := connectAll(t, map[string]string{"SES-27": "a server that is not advertised is sent"}, agent, nil, acp.ClientHandlers{}, nil)
	req := &acp.ForkSessionRequest{SessionID: "s", Cwd: "/", MCPServers: []acp.MCPServer{
		acp.NewMCPServerACP(acp.MCPServerACP{Name: "n", ServerID: "1"}),
	}}
	// Past the client's own check.
	_, err := rpc.Call[acp.ForkSessionResponse](t.Context(), conn.RPC(), "session/fork", req)
	if !errors.Is(err, acp.ErrInvalidParams) || !strings.Contains(err.Error(), "/mcpServers/0/type") {
		t.Errorf("got %v", err)
	}
}

// Experimental updates are checked as stable ones are.
func TestExperimentalUpdatesAreChecked(t *testing.T) {
	_, served := connectAll(t, map[string]string{"ADD-2": "no session is made"}, basicAgent(), nil, acp.ClientHandlers{}, &acp.ClientOptions{Plans: true, Subagents: true})
	plan := func(v acp.PlanUpdateContentVariant) acp.SessionUpdate {
		return acp.NewSessionUpdatePlanUpdate(acp.PlanUpdate{Plan: acp.PlanUpdateContent{Variant: v}})
	}
	entry := acp.PlanEntry{Content: "x", Priority: acp.PlanEntryPriorityLow, Status: "soon"}
	for pointer, updates := range map[string][]acp.SessionUpdate{
		"/update/plan/planId": {
			plan(&acp.PlanUpdateContentItems{}), plan(&acp.PlanUpdateContentFile{URI: "file:///a"}), plan(&acp.PlanUpdateContentMarkdown{}),
		},
		"/update/plan/entries/0/status": {plan(&acp.PlanUpdateContentItems{PlanID: "p", Entries: []acp.PlanEntry{entry}})},
		"/update/planId":                {acp.NewSessionUpdatePlanRemoved(acp.PlanRemoved{})},
		"/update/sessionId":             {acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{})},
		"/update/cwd":                   {acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{SessionID: "s", Cwd: acp.Some("a")})},
		"/update/additionalDirectories/1": {acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{
			SessionID: "s", AdditionalDirectories: acp.Some([]string{"/a", "b"}),
		})},
		"/update/messageId": {
			acp.NewSessionUpdateSessionMessage(acp.SessionMessage{}),
			acp.NewSessionUpdateSessionMessageChunk(acp.SessionMessageChunk{Content: acp.TextBlock("x")}),
		},
		"/update/toolCallId": {acp.UpdateToolCall("")}, // a stable one
	} {
		for _, u := range updates {
			err := served.Session("s").Update(t.Context(), u)
			if e, ok := errors.AsType[*acp.Error](err); !ok || !errors.Is(err, acp.ErrInvalidParams) || !strings.Contains(string(e.Data), `"`+pointer+`"`) {
				t.Errorf("%s: %v", pointer, err)
			}
		}
	}
	for _, u := range []acp.SessionUpdate{
		plan(&acp.PlanUpdateContentItems{PlanID: "p"}), plan(&acp.PlanUpdateContentMarkdown{PlanID: "p"}),
		acp.NewSessionUpdateSubagentUpdate(acp.SubagentUpdate{SessionID: "s"}),
	} {
		if err := served.Session("s").Update(t.Context(), u); err != nil {
			t.Error(err)
		}
	}
	// A variant that is a nil pointer is an error too.
	for _, v := range []acp.SessionUpdateVariant{(*acp.SessionUpdatePlanRemoved)(nil), (*acp.SessionUpdateToolCall)(nil)} {
		if err := served.Session("s").Update(t.Context(), acp.SessionUpdate{Variant: v}); err == nil {
			t.Errorf("%T was sent", v)
		}
	}
	if err := served.Session("s").Update(t.Context(), plan((*acp.PlanUpdateContentItems)(nil))); err == nil {
		t.Error("a nil plan was sent")
	}
}

// What is not enabled is not sent, not served and not advertised, and the error names the option.
func TestExperimentalIsOff(t *testing.T) {
	const tested = acp.FeatureArchive | acp.FeatureAuthStatus | acp.FeatureFork | acp.FeatureMCPOverACP | acp.FeaturePlans |
		acp.FeatureProviders | acp.FeatureSessionStatus | acp.FeatureSessionTitle | acp.FeatureSubagents |
		acp.FeatureSystemPrompt | acp.FeatureUsage
	if tested != acp.AllFeatures {
		t.Fatalf("no longer experimental, remove from this test: %v; not tested: %v", tested&^acp.AllFeatures, acp.AllFeatures&^tested)
	}
	fails := func(err error, feature acp.Features, option string) {
		t.Helper()
		if !errors.Is(err, acp.ErrExperimental) || !strings.Contains(err.Error(), option+".Experimental lacks "+feature.String()) {
			t.Errorf("%v of %s: got %v", feature, option, err)
		}
	}
	fork := func(context.Context, *acp.AgentSession, *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
		return &acp.ForkSessionResponse{SessionID: "f"}, nil
	}
	start := func(agent acp.AgentHandlers, opts acp.AgentOptions) error {
		_, far := acp.Pipe()
		_, err := acp.StartAgent(t.Context(), far, agent, &opts)
		return err
	}
	agent := basicAgent()
	agent.ForkSession = fork
	fails(start(agent, acp.AgentOptions{}), acp.FeatureFork, "AgentOptions")
	fails(start(agent, acp.AgentOptions{Experimental: acp.AllFeatures &^ acp.FeatureFork}), acp.FeatureFork, "AgentOptions")
	fails(start(basicAgent(), acp.AgentOptions{SystemPrompt: acp.Some(acp.SessionSystemPromptCapabilities{})}), acp.FeatureSystemPrompt, "AgentOptions")
	fails(start(basicAgent(), acp.AgentOptions{MCP: acp.MCPCapabilities{ACP: true}}), acp.FeatureMCPOverACP, "AgentOptions")
	dial := func(client acp.ClientHandlers, opts acp.ClientOptions) error {
		near, _ := acp.Pipe()
		_, err := acp.Connect(t.Context(), near, client, &opts)
		return err
	}
	fails(dial(acp.ClientHandlers{}, acp.ClientOptions{Plans: true}), acp.FeaturePlans, "ClientOptions")
	fails(dial(acp.ClientHandlers{}, acp.ClientOptions{Plans: true, Subagents: true}), acp.FeaturePlans|acp.FeatureSubagents, "ClientOptions")
	fails(dial(acp.ClientHandlers{}, acp.ClientOptions{Initialize: func(req *acp.InitializeRequest) {
		req.ClientCapabilities.Subagents = acp.Some(acp.SubagentCapabilities{})
	}}), acp.FeatureSubagents, "ClientOptions")
	fails(dial(acp.ClientHandlers{MessageMCP: func(context.Context, *acp.ClientConn, *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
		return nil, nil
	}}, acp.ClientOptions{}), acp.FeatureMCPOverACP, "ClientOptions")

	// The peers advertise everything, and still nothing is sent.
	var logged bytes.Buffer
	agent = basicAgent()
	agent.Prompt = func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn, Usage: acp.Some(acp.Usage{TotalTokens: 7})}, nil
	}
	updates := make(chan acp.SessionUpdate, 1)
	near, far := acp.Pipe()
	tap := &conformance.TapOptions{Accept: map[string]string{
		"ADD-10": "what is not advertised is called", "EXT-3": "so is a method that the stable schema does not have",
		"INI-6": "an update that it does not have is sent",
	}}
	near = conformance.Tap(t, conformance.Client, near, tap)
	served, err := acp.StartAgent(t.Context(), far, agent, &acp.AgentOptions{
		Info: acp.Implementation{Name: "a", Version: "1"}, Conn: acp.ConnOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := acp.Connect(t.Context(), near, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			updates <- n.Update
			return nil
		},
	}, &acp.ClientOptions{Info: acp.Implementation{Name: "c", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	s, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	for feature, call := range map[acp.Features]func() error{
		acp.FeatureFork:          func() error { _, err := s.Fork(ctx, &acp.ForkSessionRequest{Cwd: "/"}); return err },
		acp.FeatureArchive:       func() error { return s.Archive(ctx) },
		acp.FeatureSessionTitle:  func() error { _, err := s.SetTitle(ctx, "x"); return err },
		acp.FeatureSessionStatus: func() error { _, err := s.Status(ctx); return err },
		acp.FeatureAuthStatus:    func() error { _, err := conn.AuthStatus(ctx, nil); return err },
		acp.FeatureProviders:     func() error { _, err := conn.ListProviders(ctx, nil); return err },
		acp.FeatureSystemPrompt: func() error {
			_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", SystemPrompt: acp.Some(acp.SystemPrompt{})})
			return err
		},
		acp.FeatureMCPOverACP: func() error {
			_, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{acp.NewMCPServerACP(acp.MCPServerACP{})}})
			return err
		},
	} {
		fails(call(), feature, "ClientOptions")
	}
	removed := acp.NewSessionUpdatePlanRemoved(acp.PlanRemoved{PlanID: "p"})
	fails(served.Session("s").Update(ctx, removed), acp.FeaturePlans, "AgentOptions")
	if _, err := s.Prompt(ctx, acp.TextBlock("x")); !errors.Is(err, rpc.ErrInternal) || strings.Contains(err.Error(), "Experimental") {
		t.Errorf("a result with usage: got %v", err)
	}
	if !strings.Contains(logged.String(), "AgentOptions.Experimental lacks FeatureUsage") {
		t.Errorf("logged %q", logged.String())
	}
	// What arrives all the same is typed.
	if err := rpc.Notify(ctx, served.RPC(), acp.MethodSessionUpdate, &acp.SessionNotification{SessionID: "s", Update: removed}); err != nil {
		t.Fatal(err)
	}
	if u, ok := (<-updates).Variant.(*acp.SessionUpdatePlanRemoved); !ok || u.PlanID != "p" {
		t.Errorf("got %+v", u)
	}
	_, err = rpc.Call[json.RawMessage](ctx, conn.RPC(), "session/fork", map[string]string{"sessionId": "s", "cwd": "/"})
	if !errors.Is(err, acp.ErrMethodNotFound) {
		t.Errorf("session/fork: got %v", err)
	}
	if err := errors.Join(conn.Close(), served.Wait()); err != nil {
		t.Error(err)
	}
}

func TestFeaturesString(t *testing.T) {
	for features, want := range map[acp.Features]string{
		0: "0", acp.FeatureFork: "FeatureFork", acp.FeaturePlans | acp.FeatureFork: "FeatureFork|FeaturePlans", 1<<63 | acp.FeatureUsage: "FeatureUsage|0x8000000000000000",
	} {
		if got := features.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What has malformed members or variants of features breaks nothing where the features are off, and is refused where
// they are on.
func TestMalformedPartsOfFeatures(t *testing.T) {
	const at = `{"sessionId":"s","cwd":"/","mcpServers":[],`
	read := func(off acp.Features, text string, v interface{ DecodeJSON(*codec.Decoder) }) error {
		d := codec.NewDecoder([]byte(text))
		d.SetOff(uint64(off))
		v.DecodeJSON(d)
		return d.End()
	}
	for _, tt := range []struct {
		feature acp.Features
		text    string
		v       interface{ DecodeJSON(*codec.Decoder) }
	}{
		{acp.FeatureSystemPrompt, `{"cwd":"/","mcpServers":[],"systemPrompt":"be brief"}`, new(acp.NewSessionRequest)},
		{acp.FeatureSystemPrompt, `{"systemPrompt":{},"systemPrompt":[],"cwd":"/","mcpServers":[]}`, new(acp.NewSessionRequest)},
		{acp.FeatureSystemPrompt, at + `"systemPrompt":{"content":[{"type":"text"}]}}`, new(acp.LoadSessionRequest)},
		{acp.FeatureSystemPrompt, at + `"systemPrompt":[]}`, new(acp.ResumeSessionRequest)},
		{acp.FeatureSystemPrompt, at + `"systemPrompt":7}`, new(acp.ForkSessionRequest)},
		{acp.FeatureArchive, `{"archived":true}`, new(acp.ListSessionsRequest)},
		{acp.FeatureMCPOverACP, `{"cwd":"/","mcpServers":[{"type":"acp"}]}`, new(acp.NewSessionRequest)},
		{acp.FeaturePlans, `{"sessionId":"s","update":{"sessionUpdate":"plan_update","plan":[]}}`, new(acp.SessionNotification)},
		{acp.FeaturePlans, `{"sessionId":"s","update":{"planId":1,"sessionUpdate":"plan_removed"}}`, new(acp.SessionNotification)},
		{acp.FeatureSubagents, `{"sessionId":"s","update":{"sessionUpdate":"subagent_update"}}`, new(acp.SessionNotification)},
		{acp.FeatureSubagents, `{"sessionId":"s","update":{"sessionUpdate":"session_message"}}`, new(acp.SessionNotification)},
		{acp.FeatureSubagents, `{"sessionId":"s","update":{"sessionUpdate":"session_message_chunk"}}`, new(acp.SessionNotification)},
	} {
		if err := read(tt.feature, tt.text, tt.v); err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		if err := read(acp.AllFeatures&^tt.feature, tt.text, tt.v); err == nil {
			t.Errorf("%s: read although the feature is on", tt.text)
		}
	}
	n := new(acp.SessionNotification)
	err := read(acp.AllFeatures, `{"sessionId":"s","update":{"sessionUpdate":"plan_removed"}}`, n)
	if u, ok := n.Update.Variant.(*acp.SessionUpdateUnknown); err != nil || !ok || string(u.Raw) != `{"sessionUpdate":"plan_removed"}` {
		t.Errorf("read %+v (%v)", n.Update.Variant, err)
	}

	listed := acp.AgentHandlers{
		ListSessions: func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			return &acp.ListSessionsResponse{}, nil
		},
	}
	for _, on := range []acp.Features{0, acp.FeatureSystemPrompt | acp.FeatureArchive} {
		conn := bareClient(t, listed, &acp.AgentOptions{Experimental: on})
		if err := call(t, conn, "initialize", initializeParams); err != nil {
			t.Fatal(err)
		}
		for method, params := range map[string]string{
			"session/new": `{"cwd":"/","mcpServers":[],"systemPrompt":"be brief"}`, "session/list": `{"archived":true}`,
		} {
			if err := call(t, conn, method, params); (err != nil) != (on != 0) {
				t.Errorf("%v: %s answered %v", on, method, err)
			}
		}
	}
}

// A client does not send what the agent's capabilities, or the protocol, do not allow in a system prompt, and an agent
// refuses it.
func TestSystemPromptsAreChecked(t *testing.T) {
	const text = `[{"type":"text","text":"x"}]`
	prompts := map[string]struct {
		advertised string // of the capability systemPrompt
		refused    error
		missing    string
	}{
		`{"mode":"append","content":` + text + `}`:                                        {"{}", nil, ""},
		`{"mode":"_own","content":` + text + `}`:                                          {"{}", nil, ""},
		`{"mode":"override","content":` + text + `}`:                                      {"{}", acp.ErrUnsupported, "sessionCapabilities.systemPrompt.mode.override"},
		`{"mode":"override","content":` + text + ` }`:                                     {`{"mode":{"override":{}}}`, nil, ""},
		`{"mode":"append","content":` + text + ` }`:                                       {"null", acp.ErrUnsupported, "sessionCapabilities.systemPrompt"},
		`{"mode":"replace","content":` + text + `}`:                                       {"{}", acp.ErrInvalidParams, "/systemPrompt/mode"},
		`{"mode":"append","content":[]}`:                                                  {"{}", acp.ErrInvalidParams, "/systemPrompt/content"},
		`{"mode":"append","content":[{"type":"image","data":"","mimeType":"image/png"}]}`: {"{}", acp.ErrInvalidParams, "/systemPrompt/content/0/type"},
	}
	for prompt, want := range prompts {
		var advertised acp.Opt[acp.SessionSystemPromptCapabilities]
		if err := json.Unmarshal([]byte(want.advertised), &advertised); err != nil {
			t.Fatal(err)
		}
		opts := func() *acp.AgentOptions {
			return &acp.AgentOptions{SystemPrompt: advertised, Prompt: acp.PromptCapabilities{Image: true}, Experimental: acp.AllFeatures}
		}
		conn, _ := connectAll(t, nil, basicAgent(), opts(), acp.ClientHandlers{}, nil)
		req := &acp.NewSessionRequest{Cwd: "/"}
		if err := json.Unmarshal([]byte(prompt), &req.SystemPrompt); err != nil {
			t.Fatal(err)
		}
		_, err := conn.NewSession(t.Context(), req)
		if !errors.Is(err, want.refused) || err != nil && !strings.Contains(err.Error(), want.missing) {
			t.Errorf("a client sent %s for %s: %v", prompt, want.advertised, err)
		}

		for _, on := range []acp.Features{acp.AllFeatures, 0} {
			opened := false
			handlers := basicAgent()
			handlers.NewSession = func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				opened = req.SystemPrompt.Present()
				return &acp.NewSessionResponse{SessionID: "s"}, nil
			}
			o := opts()
			if o.Experimental = on; on == 0 {
				o.SystemPrompt = acp.Opt[acp.SessionSystemPromptCapabilities]{}
			}
			raw := bareClient(t, handlers, o)
			err := errors.Join(call(t, raw, "initialize", initializeParams),
				call(t, raw, "session/new", `{"cwd":"/","mcpServers":[],"systemPrompt":`+prompt+`}`))
			// A program without the feature ignores the member.
			if refused := want.refused != nil && on != 0; opened == refused || refused != errors.Is(err, acp.ErrInvalidParams) {
				t.Errorf("%s for %s, features %v: opened %v (%v)", prompt, want.advertised, on, opened, err)
			}
		}
	}
}

// Archiving needs session/list, whose sessions say whether they are archived, and whose filter is refused without it.
func TestArchived(t *testing.T) {
	handlers := basicAgent()
	handlers.ArchiveSession = func(context.Context, *acp.AgentSession, *acp.ArchiveSessionRequest) (*acp.ArchiveSessionResponse, error) {
		return nil, nil
	}
	handlers.UnarchiveSession = func(context.Context, *acp.AgentSession, *acp.UnarchiveSessionRequest) (*acp.UnarchiveSessionResponse, error) {
		return nil, nil
	}
	all := &acp.AgentOptions{Experimental: acp.AllFeatures}
	if err := acp.ServeAgent(t.Context(), nil, handlers, all); err == nil || !strings.Contains(err.Error(), "ListSessions") {
		t.Errorf("an agent that archives without a list: %v", err)
	}
	listed := []acp.SessionInfo{{SessionID: "a", Cwd: "/"}, {SessionID: "b", Cwd: "/", Archived: acp.Some(true)}}
	handlers.ListSessions = func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
		return &acp.ListSessionsResponse{Sessions: listed}, nil
	}
	conn, _ := connectAll(t, nil, handlers, nil, acp.ClientHandlers{}, nil)
	for filter, want := range map[acp.SessionArchiveFilter]bool{acp.SessionArchiveFilterInclude: false, acp.SessionArchiveFilterOnly: true} {
		res, err := conn.ListSessions(t.Context(), &acp.ListSessionsRequest{Archived: acp.Some(filter)})
		if err != nil {
			t.Fatal(err)
		}
		first, told := res.Sessions[0].Archived.Get()
		if !told || first != want || !res.Sessions[1].Archived.Value() || listed[0].Archived.Present() {
			t.Errorf("%s: listed %+v", filter, res.Sessions)
		}
	}

	late := &acp.AgentOptions{Experimental: acp.AllFeatures, Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
		res.AgentCapabilities.SessionCapabilities.List = acp.Opt[acp.SessionListCapabilities]{}
		return nil
	}}
	if err := call(t, bareClient(t, handlers, late), "initialize", initializeParams); !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("an agent that takes its list back answered %v", err)
	}
	handlers.ArchiveSession, handlers.UnarchiveSession, listed = nil, nil, nil
	raw := bareClient(t, handlers, all)
	for params, refused := range map[string]bool{`{"archived":"only"}`: true, `{}`: false} {
		if err := errors.Join(call(t, raw, "initialize", initializeParams), call(t, raw, "session/list", params)); refused != errors.Is(err, acp.ErrInvalidParams) {
			t.Errorf("session/list %s without archiving: %v", params, err)
		}
	}
}
