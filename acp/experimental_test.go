package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

func noSessions(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
	return &acp.ListSessionsResponse{}, nil
}

// Handlers of one capability are set together, and those of archives with a list, which must be advertised.
func TestExperimentalTogether(t *testing.T) {
	agent := complete(acp.AgentHandlers{})
	start := func(edit func(context.Context, *acp.InitializeRequest, *acp.InitializeResponse) error) (*acp.AgentConn, acp.Transport, error) {
		near, far := acp.Pipe()
		conn, err := acp.StartAgent(t.Context(), far, agent, &acp.AgentOptions{Experimental: acp.AllFeatures, Initialize: edit})
		return conn, near, err
	}
	agent.ArchiveSession = nothing
	if _, _, err := start(nil); err == nil || !strings.Contains(err.Error(), "ArchiveSession is set, UnarchiveSession is not") {
		t.Errorf("got %v", err)
	}
	agent.UnarchiveSession = nothing
	if _, _, err := start(nil); err == nil || !strings.Contains(err.Error(), "ListSessions") {
		t.Errorf("an agent that archives without a list: %v", err)
	}
	agent.ListSessions = noSessions
	conn, near, err := start(func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
		res.AgentCapabilities.SessionCapabilities.List = acp.Opt[acp.SessionListCapabilities]{}
		return res.Meta.Set("example.com/x", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := acp.Connect(t.Context(), near, acp.ClientHandlers{}, nil); !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("an agent that takes its list back answered %v", err)
	}
	must.Do(t, conn.Wait())
}

// The functions of a session are the methods of the connection with its id.
func TestSessionFunctions(t *testing.T) {
	agent := complete(acp.AgentHandlers{})
	var called []string
	note := func(s *acp.AgentSession, what any) { called = append(called, fmt.Sprint(s.ID(), " ", what)) }
	agent.ArchiveSession = func(_ context.Context, s *acp.AgentSession, _ *acp.ArchiveSessionRequest) (*acp.ArchiveSessionResponse, error) {
		note(s, "archive")
		return nil, nil
	}
	agent.UnarchiveSession = func(_ context.Context, s *acp.AgentSession, _ *acp.UnarchiveSessionRequest) (*acp.UnarchiveSessionResponse, error) {
		note(s, "unarchive")
		return nil, acp.ErrInvalidParams.WithData(s.Conn().Initialized().ClientInfo.Value().Name)
	}
	agent.ListSessions = noSessions
	agent.DeleteSession = func(_ context.Context, s *acp.AgentSession, _ *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
		note(s, "delete")
		return nil, nil
	}
	agent.SetSessionTitle = func(_ context.Context, s *acp.AgentSession, req *acp.SetSessionTitleRequest) (*acp.SetSessionTitleResponse, error) {
		if note(s, req.Title); req.Title == "" {
			return nil, acp.ErrInvalidParams
		}
		return &acp.SetSessionTitleResponse{Title: req.Title + "!"}, nil
	}
	agent.SessionStatus = func(_ context.Context, s *acp.AgentSession, _ *acp.SessionStatusRequest) (*acp.SessionStatusResponse, error) {
		return nil, acp.SessionNotFound(s.ID())
	}
	agent.SetSessionConfigOption = func(_ context.Context, s *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
		on, ok := req.Bool()
		note(s, fmt.Sprint(on, ok))
		return &acp.SetSessionConfigOptionResponse{ConfigOptions: []acp.SessionConfigOption{acp.BooleanOption("b", "B", on)}}, nil
	}
	agent.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		if err := s.Update(ctx, acp.CommandsUpdate(acp.AvailableCommand{Name: "x", Meta: acp.Meta{"x": json.RawMessage("{")}})); err == nil {
			t.Error("sent what cannot be encoded")
		}
		return &acp.PromptResponse{StopReason: "bored"}, nil
	}
	near, far := acp.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V1Unstable(), Accept: unmade}
	served := must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), agent, &acp.AgentOptions{Experimental: acp.AllFeatures}))(t)
	conn := must.Get(acp.Connect(t.Context(), near, acp.ClientHandlers{}, &acp.ClientOptions{Experimental: acp.AllFeatures, BooleanConfig: true}))(t)
	ctx, s := t.Context(), conn.Session("s")
	title, err := s.SetTitle(ctx, "T")
	if err != nil || title != "T!" {
		t.Errorf("got the title %q, %v", title, err)
	}
	if _, err := s.SetTitle(ctx, ""); !errors.Is(err, acp.ErrInvalidParams) {
		t.Errorf("the title: %v", err)
	}
	if _, err := s.Status(ctx); !errors.Is(err, acp.ErrResourceNotFound) {
		t.Errorf("the status: %v", err)
	}
	if _, err := s.Prompt(ctx); !errors.Is(err, rpc.ErrInternal) || !strings.Contains(err.Error(), "/stopReason") {
		t.Errorf("a stop reason that there is not: %v", err)
	}
	if err := s.Unarchive(ctx); !errors.Is(err, acp.ErrInvalidParams) {
		t.Errorf("unarchived: %v", err)
	}
	must.Do(t, errors.Join(s.Archive(ctx), s.SetBooleanConfigOption(ctx, "b", true), s.Delete(ctx)))
	want := []string{"s T", "s ", "s unarchive", "s archive", "s true true", "s delete"}
	if !slices.Equal(called, want) {
		t.Errorf("called %q, want %q", called, want)
	}
	must.Do(t, errors.Join(conn.Close(), served.Wait()))
	<-conn.Done()
}

// A conductor and a proxy: the handshake, messages to and from the successor, and those of the protocol
// itself.
func TestProxy(t *testing.T) {
	near, far := acp.Pipe()
	notified := make(chan string, 2)
	ext := &acp.Extensions[acp.ProxyConn]{Fallback: func(_ context.Context, _ *acp.ProxyConn, method string, params json.RawMessage) (any, error) {
		return map[string]string{"method": method, "params": string(params)}, nil
	}}
	proxy := must.Get(acp.StartProxy(t.Context(), far, acp.ProxyHandlers{
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
	}, nil))(t)
	conductor := must.Get(acp.StartProxy(t.Context(), near, acp.ProxyHandlers{
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
	}, nil))(t)
	ctx := t.Context()
	res, err := conductor.InitializeProxy(ctx, &acp.InitializeProxyRequest{ProtocolVersion: 1})
	if err != nil || res.AgentInfo.Value().Name != "end of the chain" {
		t.Errorf("got %+v, %v", res, err)
	}
	must.Do(t, conductor.ProxySuccessorNotification(ctx, &acp.ProxySuccessorNotification{Method: "session/update"}))
	if got := <-notified; got != "from the successor: session/update" {
		t.Errorf("got %q", got)
	}
	must.Do(t, proxy.ProxySuccessorNotification(ctx, &acp.ProxySuccessorNotification{Method: "session/cancel"}))
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
	must.Do(t, errors.Join(conductor.Close(), proxy.Wait()))
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
	start := func(agent acp.AgentHandlers, opts acp.AgentOptions) error {
		_, far := acp.Pipe()
		_, err := acp.StartAgent(t.Context(), far, agent, &opts)
		return err
	}
	agent := complete(acp.AgentHandlers{})
	agent.ForkSession = nothing
	fails(start(agent, acp.AgentOptions{}), acp.FeatureFork, "AgentOptions")
	fails(start(agent, acp.AgentOptions{Experimental: acp.AllFeatures &^ acp.FeatureFork}), acp.FeatureFork, "AgentOptions")
	fails(start(complete(acp.AgentHandlers{}), acp.AgentOptions{SystemPrompt: acp.Some(acp.SessionSystemPromptCapabilities{})}), acp.FeatureSystemPrompt, "AgentOptions")
	fails(start(complete(acp.AgentHandlers{}), acp.AgentOptions{MCP: acp.MCPCapabilities{ACP: true}}), acp.FeatureMCPOverACP, "AgentOptions")
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
	var client acp.ClientHandlers
	client.MessageMCP = nothing
	fails(dial(client, acp.ClientOptions{}), acp.FeatureMCPOverACP, "ClientOptions")
}

// Chunks of text are sent without a look for features in them.
func TestTextHasNoFeatures(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer:
			walk(typ.Elem())
		case reflect.Struct:
			for f := range typ.Fields() {
				if strings.Contains(f.Tag.Get("codec"), "feature") {
					t.Errorf("%v.%s has a feature, and isTextChunk does not know", typ, f.Name)
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[acp.ContentChunk]())
	walk(reflect.TypeFor[acp.TextContent]())
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
	read := func(off acp.Features, text string, v any) error {
		d := codec.NewDecoder([]byte(text))
		d.SetOff(uint64(off))
		codec.Decode(d, v)
		return d.End()
	}
	for _, tt := range []struct {
		feature acp.Features
		text    string
		v       any
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

	for _, on := range []acp.Features{0, acp.FeatureSystemPrompt | acp.FeatureArchive} {
		conn := bareClient(t, acp.AgentHandlers{ListSessions: noSessions}, &acp.AgentOptions{Experimental: on})
		must.Do(t, call(t, conn, "initialize", initializeParams))
		for method, params := range map[string]string{
			"session/new": `{"cwd":"/","mcpServers":[],"systemPrompt":"be brief"}`, "session/list": `{"archived":true}`,
		} {
			if err := call(t, conn, method, params); (err != nil) != (on != 0) {
				t.Errorf("%v: %s answered %v", on, method, err)
			}
		}
	}
}
