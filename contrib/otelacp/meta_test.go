package otelacp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/otelacp"
	"github.com/acpgo/sdk/internal/test/must"
)

// wire are the messages of a connection, as one side sends and receives them.
type wire struct {
	mu       sync.Mutex
	messages []message
}

type message struct {
	Method string
	Params json.RawMessage
}

func (w *wire) hook(_ bool, line []byte) {
	var m message
	if json.Unmarshal(line, &m) == nil && m.Method != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.messages = append(w.messages, m)
	}
}

// metas are the _meta of the messages with a method.
func (w *wire) metas(t *testing.T, method string) (all []codec.Meta) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.messages {
		if m.Method != method {
			continue
		}
		var params struct {
			Meta codec.Meta `json:"_meta"`
		}
		must.Do(t, json.Unmarshal(m.Params, &params))
		all = append(all, params.Meta)
	}
	return all
}

func withBaggage(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	b := must.Get(baggage.Parse("team=tools"))(t)
	return baggage.ContextWithBaggage(ctx, b)
}

// withState is a context with a span of a trace with a state.
func withState(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	state := must.Get(trace.ParseTraceState("vendor=1"))(t)
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, TraceState: state,
	}))
}

// What the caller has set is sent as it is, whatever it is; the rest is added.
func TestTEL5_CallersMetaIsKept(t *testing.T) {
	w := &wire{}
	o := newObserver()
	hooks := o.hooks()
	hooks.Message = w.hook
	conn, _ := connect(t, agentHandlers(0), rpc.Hooks{}, clientHandlers(0), hooks)
	session := newSession(t, conn)
	ctx := withState(t, withBaggage(t, t.Context()))
	for _, test := range []struct {
		set  string
		adds string
	}{
		{`{}`, "traceparent tracestate baggage"},
		{`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`, "baggage"},
		{`{"traceparent":null}`, "baggage"},
		{`{"traceparent":{"a":[1, 2]}}`, "baggage"},
		{`{"tracestate":"mine=1"}`, "baggage"},
		{`{"baggage":"mine=1"}`, "traceparent tracestate"},
		{`{"baggage":7,"tracestate":"mine=1"}`, ""},
		{`{"Traceparent":"other","x":1e400,"y":{"traceparent":"inner"}}`, "traceparent tracestate baggage"},
	} {
		var set acp.Meta
		must.Do(t, json.Unmarshal([]byte(test.set), &set))
		given := maps.Clone(set)
		req := &acp.PromptRequest{SessionID: session.ID(), Prompt: []acp.ContentBlock{acp.TextBlock("work")}, Meta: set}
		must.Get(conn.Prompt(ctx, req))(t)
		metas := w.metas(t, "session/prompt")
		sent := metas[len(metas)-1]
		for name, value := range given {
			if want := must.Get(json.Marshal(value))(t); !bytes.Equal(sent[name], want) {
				t.Errorf("%s: %s was sent as %s", test.set, name, sent[name])
			}
			delete(sent, name)
		}
		for name := range strings.FieldsSeq(test.adds) {
			var text string
			if err := json.Unmarshal(sent[name], &text); err != nil || text == "" {
				t.Errorf("%s: %s is %s", test.set, name, sent[name])
			}
			delete(sent, name)
		}
		if len(sent) > 0 {
			t.Errorf("%s: also sent %s", test.set, sent)
		}
		if fmt.Sprint(req.Meta) != fmt.Sprint(given) {
			t.Errorf("%s: the caller's value is %s now", test.set, req.Meta)
		}
	}
}

// Requests and notifications have the trace context, both ways; updates, of which there are thousands, have not.
func TestTEL3_WhatHasTraceContext(t *testing.T) {
	w := &wire{}
	agent := agentHandlers(0)
	agent.Cancel = func(context.Context, *acp.AgentSession, *acp.CancelNotification) error { return nil }
	p := observed(t, agent, clientHandlers(0), func(_ *otelacp.Options, hooks *rpc.Hooks) { hooks.Message = w.hook })
	ctx := withBaggage(t, t.Context())
	must.Do(t, p.prompt(ctx, "work"))
	must.Do(t, p.session.Cancel(ctx))
	must.Do(t, rpc.Notify(ctx, p, "_note", nil))
	p.stop() // everything was sent and handled
	for method, want := range map[string]bool{
		"initialize": true, "session/new": true, "session/prompt": true, "session/cancel": true, "_note": true,
		"session/request_permission": true, "fs/read_text_file": true, "session/update": false,
	} {
		metas := w.metas(t, method)
		if len(metas) == 0 {
			t.Errorf("no %s", method)
		}
		for _, meta := range metas {
			if _, has := meta["traceparent"]; has != want {
				t.Errorf("%s has _meta %s", method, meta)
			}
		}
	}
	// Baggage comes to the agent, and from there back.
	for _, method := range []string{"session/prompt", "fs/read_text_file"} {
		if got := string(w.metas(t, method)[0]["baggage"]); got != `"team=tools"` {
			t.Errorf("%s has baggage %s", method, got)
		}
	}
	cancel := p.ofAgent.find(t, "session/cancel")
	if cancel.Parent.SpanID() != p.ofClient.find(t, "session/cancel").SpanContext.SpanID() || cancel.SpanKind != trace.SpanKindServer {
		t.Errorf("the agent's span of the notification is %+v", cancel)
	}
}

// Values that are no trace context begin a new trace, and fail nothing.
func TestTEL2_Malformed(t *testing.T) {
	const good = `"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`
	o := newObserver()
	conn, _ := connect(t, agentHandlers(0), o.hooks(), clientHandlers(0), rpc.Hooks{})
	session := newSession(t, conn)
	for _, test := range []struct {
		meta  string
		child bool
	}{
		{`{"traceparent":` + good + `}`, true},
		{`{"traceparent":` + good + `,"tracestate":"=,=,"}`, true},
		{`{"traceparent":` + good + `,"tracestate":5,"baggage":{}}`, true},
		{`{"traceparent":` + good + `,"baggage":"` + strings.Repeat("x", 20_000) + `"}`, true},
		{`{"traceparent":` + good + `,"baggage":";;;=%zz"}`, true},
		{`{"traceparent":"\u0030` + good[2:] + `}`, true},
		{`{}`, false},
		{`{"traceparent":null}`, false},
		{`{"traceparent":5}`, false},
		{`{"traceparent":[` + good + `]}`, false},
		{`{"traceparent":""}`, false},
		{`{"traceparent":"` + strings.Repeat("0", 100_000) + `"}`, false},
		{`{"traceparent":"ff` + good[3:] + `}`, false},
		{`{"traceparent":"00-00000000000000000000000000000000-b7ad6b7169203331-01"}`, false},
		{`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"}`, false},
		{`{"traceparent":"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"}`, false},
		{`{"traceparent":"\ud800"}`, false},
		{`{"Traceparent":` + good + `}`, false},
		{`{"b3":"0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1"}`, false},
	} {
		o.spans.Reset()
		params := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"work"}],"_meta":%s}`, session.ID(), test.meta)
		if _, err := rpc.Call[json.RawMessage](t.Context(), conn, "session/prompt", json.RawMessage(params)); err != nil {
			t.Errorf("%.200s: %v", test.meta, err)
		}
		s := o.find(t, "session/prompt")
		if child := s.SpanContext.TraceID().String() == "0af7651916cd43dd8448eb211c80319c"; child != test.child || s.Parent.IsValid() != test.child {
			t.Errorf("%.200s: the parent is %v", test.meta, s.Parent)
		}
	}
}

// What an agent without telemetry asks in a turn belongs to the turn, unless it brings a malformed trace context. The
// span with which the connection was made is nobody's parent.
func TestParentOfWhatComesWithout(t *testing.T) {
	o := newObserver()
	agent := agentHandlers(0)
	var given acp.Meta
	agent.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/a", Meta: given})
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
	}
	near, far := acp.Pipe()
	served := must.Get(acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, nil), agent, nil))(t)
	ctx, connecting := o.tracer.Tracer("test").Start(t.Context(), "connecting")
	conn := must.Get(acp.Connect(ctx, conformance.Tap(t, conformance.Client, near, nil), clientHandlers(0), &acp.ClientOptions{Conn: acp.ConnOptions{Hooks: o.hooks()}}))(t)
	connecting.End()
	defer func() { must.Do(t, errors.Join(conn.Close(), served.Wait())) }()
	if initialize := o.find(t, "initialize"); initialize.Parent.SpanID() != connecting.SpanContext().SpanID() {
		t.Error("initialize is no child of the span with which the connection was made")
	}
	session := newSession(t, conn)
	for _, meta := range []acp.Meta{nil, {"other": json.RawMessage(`1`)}, {"traceparent": json.RawMessage(`"bad"`)}} {
		o.spans.Reset()
		given = meta
		must.Get(session.Prompt(t.Context(), acp.TextBlock("work")))(t)
		parent := o.find(t, "fs/read_text_file").Parent
		if _, malformed := meta["traceparent"]; malformed {
			if parent.IsValid() {
				t.Errorf("%s: the parent is %v", meta, parent)
			}
		} else if parent.SpanID() != o.find(t, "session/prompt").SpanContext.SpanID() {
			t.Errorf("%s: the parent is %v", meta, parent)
		}
	}
	// Outside a turn.
	o.spans.Reset()
	must.Get(served.ReadTextFile(t.Context(), &acp.ReadTextFileRequest{SessionID: session.ID(), Path: "/a"}))(t)
	if parent := o.find(t, "fs/read_text_file").Parent; parent.IsValid() {
		t.Errorf("outside a turn: the parent is %v", parent)
	}
}

// Parameters without a place for _meta are sent as they are.
func TestParametersWithoutAPlace(t *testing.T) {
	near, far := rpc.Pipe()
	ext := &rpc.Extensions[rpc.Conn]{Fallback: func(_ context.Context, _ *rpc.Conn, _ string, params json.RawMessage) (any, error) {
		return params, nil
	}}
	server := must.Get(rpc.Connect(t.Context(), far, ext, nil))(t)
	client := must.Get(rpc.Connect(t.Context(), near, nil, &rpc.Options{Hooks: newObserver().hooks()}))(t)
	for _, params := range []string{`[1,2]`, `[]`} {
		if got, err := rpc.Call[json.RawMessage](t.Context(), client, "x", json.RawMessage(params)); err != nil || string(*got) != params {
			t.Errorf("%s: got %s, %v", params, *got, err)
		}
	}
	must.Do(t, client.Close())
	must.Do(t, server.Wait())
}

// other is a propagator with a name that the protocol does not allow in _meta.
type other struct{ propagation.TraceContext }

func (o other) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	o.TraceContext.Inject(ctx, carrier)
	carrier.Set("b3", "1")
}

func (o other) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	if carrier.Get("b3") != "" || len(carrier.Keys()) != 1 {
		panic("another member is shown")
	}
	return o.TraceContext.Extract(ctx, carrier)
}

// Of an author's propagator the protocol's names pass, and no others.
func TestTEL1_Propagator(t *testing.T) {
	w := &wire{}
	o := newObserver()
	opts := o.options()
	opts.Propagator = other{}
	hooks := otelacp.Instrument(rpc.Hooks{Message: w.hook}, opts)
	conn, _ := connect(t, agentHandlers(0), hooks, clientHandlers(0), hooks)
	req := &acp.NewSessionRequest{Cwd: "/", Meta: acp.Meta{"b3": json.RawMessage(`"mine"`)}}
	must.Get(conn.NewSession(withBaggage(t, t.Context()), req))(t)
	for _, meta := range w.metas(t, "session/new") {
		if len(meta) != 2 || meta["traceparent"] == nil || string(meta["b3"]) != `"mine"` {
			t.Errorf("got %s", meta)
		}
	}
}

// A proxy's own span goes into the envelope. What is in the envelope stays as it is, and so does what is in a carrier of
// MCP messages.
func TestTEL6_TEL7_Envelopes(t *testing.T) {
	w := &wire{}
	ofProxy, ofConductor := newObserver(), newObserver()
	hooks := ofProxy.hooks()
	hooks.Message = w.hook
	near, far := acp.Pipe()
	inner := json.RawMessage(`{"sessionId":"s","prompt":[],"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`)
	notified := make(chan string, 2)
	proxy := must.Get(acp.StartProxy(t.Context(), far, acp.ProxyHandlers{}, &acp.ConnOptions{Hooks: hooks}))(t)
	conductor := must.Get(acp.StartProxy(t.Context(), near, acp.ProxyHandlers{
		ProxySuccessor: func(_ context.Context, _ *acp.ProxyConn, req *acp.ProxySuccessorRequest) (*acp.ProxySuccessorResponse, error) {
			if string(req.Params) != string(inner) {
				t.Errorf("the successor gets %s", req.Params)
			}
			res := acp.ProxySuccessorResponse(`{"stopReason":"end_turn"}`)
			return &res, nil
		},
		ProxySuccessorNotification: func(_ context.Context, _ *acp.ProxyConn, n *acp.ProxySuccessorNotification) error {
			notified <- n.Method
			return nil
		},
	}, &acp.ConnOptions{Hooks: ofConductor.hooks()}))(t)
	must.Get(proxy.ProxySuccessor(t.Context(), &acp.ProxySuccessorRequest{Method: "session/prompt", Params: inner}))(t)
	for _, method := range []string{"session/update", "session/cancel"} {
		must.Do(t, proxy.ProxySuccessorNotification(t.Context(), &acp.ProxySuccessorNotification{Method: method, Params: inner}))
		if got := <-notified; got != method {
			t.Errorf("got %s", got)
		}
	}
	carried := json.RawMessage(`{"connectionId":"c","method":"tools/call","params":{"name":"x","_meta":{"traceparent":"of MCP"}}}`)
	must.Do(t, rpc.Notify(t.Context(), proxy, "mcp/message", carried))
	must.Do(t, conductor.Close())
	must.Do(t, proxy.Wait())

	metas := w.metas(t, "proxy/successor")
	if len(metas) != 3 || metas[0]["traceparent"] == nil || metas[1] != nil || metas[2]["traceparent"] == nil {
		t.Errorf("the _meta of the envelopes are %s", metas)
	}
	if got := len(ofProxy.spans.GetSpans()); got != 3 {
		t.Errorf("the proxy has %d spans, want those of the request, of session/cancel and of mcp/message", got)
	}
	children := 0
	for _, s := range ofConductor.spans.GetSpans() {
		for _, p := range ofProxy.spans.GetSpans() {
			if s.Parent.SpanID() == p.SpanContext.SpanID() && s.SpanKind == trace.SpanKindServer {
				children++
			}
		}
	}
	if children != 2 {
		t.Errorf("%d of the conductor's spans are children of the proxy's", children)
	}
	for _, m := range w.messages {
		if m.Method == "mcp/message" && !strings.Contains(string(m.Params), `"params":{"name":"x","_meta":{"traceparent":"of MCP"}}`) {
			t.Errorf("the message of MCP is %s", m.Params)
		}
	}
}
