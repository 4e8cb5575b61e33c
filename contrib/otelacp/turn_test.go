package otelacp_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/contrib/otelacp"
	"github.com/acpgo/sdk/internal/test/must"
)

// A turn, in both ways in which clients read updates, is one trace, with times, sizes and counts on the spans of the
// prompt, on both sides, and nothing of what was said.
func TestTEL9_TEL10_Turn(t *testing.T) {
	for _, way := range []string{"Prompt", "Stream"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handlers := clientHandlers(3 * time.Second)
				inside := 0 // updates whose handler's context has the span of the prompt
				var prompt trace.SpanContext
				handlers.SessionUpdate = func(ctx context.Context, _ *acp.ClientSession, _ *acp.SessionNotification) error {
					if sc := trace.SpanContextFromContext(ctx); sc.IsValid() && sc.TraceID() == prompt.TraceID() {
						inside++
					}
					return nil
				}
				p := observed(t, agentHandlers(time.Second), handlers, nil)
				ctx, user := p.ofClient.tracer.Tracer("test").Start(t.Context(), "user")
				prompt = user.SpanContext()
				if way == "Prompt" {
					must.Do(t, p.prompt(ctx, "work "+secret))
				} else {
					turn := p.session.Stream(ctx, acp.TextBlock("work "+secret))
					for range turn.Updates() {
					}
					must.Get(turn.Result())(t)
				}
				user.End()
				p.stop()

				if way == "Prompt" && inside != 6 {
					t.Errorf("%d handlers of updates were in the trace of the turn, want 6", inside)
				}
				for side, o := range p.sides() {
					s := o.find(t, "session/prompt")
					if took := s.EndTime.Sub(s.StartTime); took != 5*time.Second || s.Status.Code != codes.Unset {
						t.Errorf("%s: took %v, status %v", side, took, s.Status)
					}
					if text := fmt.Sprintf("%+v %v", o.spans.GetSpans(), o.measured(t)); strings.Contains(text, secret) {
						t.Errorf("%s: what was said is in the telemetry: %s", side, text)
					}
				}
				golden(t, "turn.txt", tree(append(p.ofClient.shown("client"), p.ofAgent.shown("agent")...), true))
			})
		})
	}
}

// The same turn as metrics, and then a second one of the same session, and one of a session that was loaded.
func TestTEL11_Metrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := observed(t, agentHandlers(time.Second), clientHandlers(3*time.Second), nil)
		for range 2 {
			must.Do(t, p.prompt(t.Context(), "work"))
		}
		loaded := must.Get(p.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "s2", Cwd: "/"}))(t)
		must.Get(loaded.Prompt(t.Context(), acp.TextBlock("work")))(t)
		if p.prompt(t.Context(), "fail") == nil {
			t.Fatal("no error")
		}
		synctest.Wait() // the agent is done with the last request
		for role, o := range p.sides() {
			got := o.measured(t)
			want := map[string]string{
				"acp.turn.duration acp.role=ROLE,acp.stop_reason=end_turn":          "3: 15 s",
				"acp.turn.duration acp.role=ROLE,error.type=-32603":                 "1: 0 s",
				"acp.turn.time_to_first_update acp.role=ROLE":                       "3: 3 s",
				"acp.permission.wait acp.permission.outcome=selected,acp.role=ROLE": "3: 9 s",
				"acp.updates acp.role=ROLE,acp.update.kind=agent_message_chunk":     "6 {update}",
				"acp.updates acp.role=ROLE,acp.update.kind=agent_thought_chunk":     "3 {update}",
				"acp.updates acp.role=ROLE,acp.update.kind=plan":                    "3 {update}",
				"acp.updates acp.role=ROLE,acp.update.kind=tool_call":               "3 {update}",
				"acp.updates acp.role=ROLE,acp.update.kind=usage_update":            "4 {update}",
				"acp.context.used acp.role=ROLE":                                    "4: 4800 {token}",
				"acp.context.size acp.role=ROLE":                                    "4: 800000 {token}",
				"acp.cost acp.currency=USD,acp.role=ROLE":                           "9 {unit}", // 7, 0 and 7-5
				"acp.queue.size acp.queue.kind=requests":                            "0 By",
				"acp.queue.size acp.queue.kind=notifications":                       "0 By",
				"acp.queue.size acp.queue.kind=loops":                               "0 By",
			}
			for key, value := range want {
				key = strings.ReplaceAll(key, "ROLE", role)
				if got[key] != value {
					t.Errorf("%s: got %q, want %q", key, got[key], value)
				}
				delete(got, key)
			}
			if len(got) > 0 {
				t.Errorf("%s: also %v", role, got)
			}
		}
		p.stop()
		for role, o := range p.sides() {
			for key := range o.measured(t) {
				if strings.HasPrefix(key, "acp.queue") {
					t.Errorf("%s: %s is observed without a connection", role, key)
				}
			}
		}
	})
}

// What waits in the queues of all connections is measured while it waits, also if they have an Instrument each.
func TestTEL11_Queues(t *testing.T) {
	ofClient := newObserver()
	started, release := make(chan struct{}), make(chan struct{})
	handlers := clientHandlers(0)
	handlers.SessionUpdate = func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
		started <- struct{}{}
		<-release
		return nil
	}
	shared := ofClient.hooks()
	for _, hooks := range []rpc.Hooks{shared, shared, ofClient.hooks()} {
		conn, _ := connect(t, agentHandlers(0), rpc.Hooks{}, handlers, hooks)
		session := newSession(t, conn)
		turn := make(chan error, 1)
		go func() {
			_, err := session.Prompt(t.Context(), acp.TextBlock("wait"))
			turn <- err
		}()
		<-started
		t.Cleanup(func() {
			if err := session.Cancel(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-turn; err != nil {
				t.Error(err)
			}
		})
	}
	var waiting int
	must.Get(fmt.Sscan(ofClient.measured(t)["acp.queue.size acp.queue.kind=notifications"], &waiting))(t)
	// Each has an update of about a hundred bytes.
	if waiting < 300 || waiting > 900 {
		t.Errorf("%d bytes wait", waiting)
	}
	close(release)
}

// How calls fail is on the spans of both sides; that they were cancelled is no failure.
func TestTEL9_Failures(t *testing.T) {
	handlers, over := agentHandlers(0), make(chan struct{})
	prompt := handlers.Prompt
	handlers.Prompt = func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
		res, err := prompt(ctx, s, req)
		if text := req.Prompt[0].Text(); text == "wait for the end" {
			<-over
		}
		return res, err
	}
	p := observed(t, handlers, clientHandlers(0), nil)
	if made := p.ofClient.find(t, "session/new"); attr(made, "gen_ai.conversation.id") != "s1" {
		t.Errorf("the span of session/new is %+v", made)
	}
	for _, test := range []struct {
		prompt, code, description string
	}{
		{"fail", "-32603", "Internal error (-32603)"},
		{"login", "-32000", "Authentication required (-32000)"},
	} {
		p.reset()
		if p.prompt(t.Context(), test.prompt) == nil {
			t.Fatal("no error")
		}
		for side, o := range p.sides() {
			s := o.find(t, "session/prompt")
			if attr(s, "rpc.response.status_code") != test.code || attr(s, "error.type") != test.code ||
				s.Status.Code != codes.Error || s.Status.Description != test.description {
				t.Errorf("%s: %s: got %+v, %v", test.prompt, side, s.Attributes, s.Status)
			}
		}
	}

	p.reset()
	turn := p.session.Stream(t.Context(), acp.TextBlock("wait"))
	for range turn.Updates() {
		turn.Cancel()
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatal(res, err)
	}
	for side, o := range p.sides() {
		if s := o.find(t, "session/prompt"); s.Status.Code != codes.Unset || attr(s, "acp.stop_reason") != "cancelled" {
			t.Errorf("a cancelled turn: %s: got %+v, %v", side, s.Attributes, s.Status)
		}
	}

	// The connection ends, before the agent has answered that the turn is cancelled.
	p.reset()
	turn = p.session.Stream(t.Context(), acp.TextBlock("wait for the end"))
	for range turn.Updates() {
		go p.stop()
	}
	if _, err := turn.Result(); !errors.Is(err, acp.ErrClosed) {
		t.Error(err)
	}
	close(over)
	p.stop()
	if s := p.ofClient.find(t, "session/prompt"); s.Status.Code != codes.Error || attr(s, "error.type") != "closed" {
		t.Errorf("the connection has ended: got %+v, %v", s.Attributes, s.Status)
	}
}

// A question of a cancelled turn is answered by the runtime, and has not failed.
func TestTEL9_QuestionOfACancelledTurn(t *testing.T) {
	handlers, asked := clientHandlers(0), make(chan struct{})
	handlers.RequestPermission = func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	p := observed(t, agentHandlers(0), handlers, nil)
	turn := p.session.Stream(t.Context(), acp.TextBlock("work"))
	<-asked
	turn.Cancel()
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatal(res, err)
	}
	p.stop() // the handler has ended too
	for side, o := range p.sides() {
		s := o.find(t, "session/request_permission")
		answered := attr(s, "acp.permission.outcome") == "cancelled"
		if side == "agent" && attr(s, "acp.cancelled") == "true" {
			answered = true // it has given its call up before the answer came
		}
		if s.Status.Code != codes.Unset || !answered {
			t.Errorf("%s: got %+v, %v", side, s.Attributes, s.Status)
		}
	}
}

// Calls that are given up by their callers, refused, or late.
func TestTEL9_FailuresOfCalls(t *testing.T) {
	agent := agentHandlers(0)
	agent.Extensions = &acp.Extensions[acp.AgentConn]{}
	rpc.Handle(agent.Extensions, "_wait", func(ctx context.Context, _ *acp.AgentConn, _ *struct{}) (*int, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	rpc.Handle(agent.Extensions, "_exit", func(context.Context, *acp.AgentConn, *struct{}) (*int, error) {
		panic("no")
	})
	p := observed(t, agent, clientHandlers(0), func(o *otelacp.Options, _ *rpc.Hooks) { o.ErrorMessages = true })
	call := func(ctx context.Context, method string, params any) {
		t.Helper()
		p.reset()
		if _, err := rpc.Call[int](ctx, p, method, params); err == nil {
			t.Fatal("no error")
		}
	}
	given, giveUp := context.WithCancelCause(t.Context())
	giveUp(errors.New("the user has closed the window"))
	call(given, "_wait", nil)
	if s := p.ofClient.find(t, "_wait"); s.Status.Code != codes.Unset || attr(s, "acp.cancelled") != "true" || attr(s, "jsonrpc.request.id") != "" {
		t.Errorf("a call that was not sent: got %+v, %v", s.Attributes, s.Status)
	}
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	call(late, "_wait", nil)
	if s := p.ofClient.find(t, "_wait"); s.Status.Code != codes.Error || attr(s, "error.type") != "timeout" {
		t.Errorf("a late call: got %+v, %v", s.Attributes, s.Status)
	}
	call(t.Context(), "_unknown", nil)
	if s := p.ofClient.find(t, "_unknown"); attr(s, "error.type") != "-32601" || !strings.Contains(s.Status.Description, "_unknown: Method not found") {
		t.Errorf("an unknown method: got %+v, %v", s.Attributes, s.Status)
	}
	for _, s := range p.ofAgent.spans.GetSpans() {
		if s.Name == "_unknown" {
			t.Error("a span of a request that was refused before it reached a handler")
		}
	}
	call(t.Context(), "_exit", nil)
	if s := p.ofAgent.find(t, "_exit"); attr(s, "error.type") != "-32603" || s.Status.Code != codes.Error {
		t.Errorf("a panic: got %+v, %v", s.Attributes, s.Status)
	}
	call(t.Context(), "_wait", func() {})
	if s := p.ofClient.find(t, "_wait"); s.Status.Code != codes.Error {
		t.Errorf("parameters that cannot be encoded: got %+v, %v", s.Attributes, s.Status)
	}
}

// The hooks that were there are called as before, in their places.
func TestHooksAreKept(t *testing.T) {
	var called []string
	note := func(what string) { called = append(called, what) }
	middleware := func(what string) rpc.Middleware {
		return func(ctx context.Context, call *rpc.CallInfo, next func(context.Context) error) error {
			if !trace.SpanFromContext(ctx).IsRecording() {
				t.Errorf("%s: without a span", what)
			}
			note(what)
			return next(ctx)
		}
	}
	o := newObserver()
	given := rpc.Hooks{
		Repair: func(string, codec.Repair) { note("repair") },
		Serve:  middleware("serve"), Call: middleware("call"),
		Start: func(_ *rpc.Conn, hooks rpc.Hooks) rpc.Hooks { note("start"); return hooks },
		End:   func() { note("end") },
	}
	hooks := otelacp.Instrument(given, o.options())
	hooks.Invalid = func([]byte, error) { note("invalid") } // set afterwards
	near, far := rpc.Pipe()
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(ext, "echo", func(_ context.Context, _ *rpc.Conn, p *acp.TextContent) (*acp.TextContent, error) { return p, nil })
	conn := must.Get(rpc.Connect(t.Context(), near, ext, &rpc.Options{Hooks: hooks}))(t)
	peer := must.Get(far.Connect(t.Context()))(t)
	must.Do(t, rpc.Notify(t.Context(), conn, "x", nil))
	if _, err := peer.Read(); err != nil {
		t.Error(err)
	}
	for _, line := range []string{`no JSON`, `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"\ud800"}}`} {
		if err := peer.Write([]byte(line)); err != nil {
			t.Error(err)
		}
		if _, err := peer.Read(); err != nil {
			t.Error(err)
		}
	}
	must.Do(t, conn.Close())
	must.Do(t, peer.Close())
	if want := []string{"start", "call", "invalid", "repair", "serve", "end"}; !slices.Equal(called, want) {
		t.Errorf("called %q, want %q", called, want)
	}
	for _, name := range []string{"x", "echo"} {
		o.find(t, name)
	}
}

// Two connections with the same hooks do not mix their sessions up, which have the same id.
func TestConnectionsApart(t *testing.T) {
	ofAgent, ofClient := newObserver(), newObserver()
	agentHooks, clientHooks := ofAgent.hooks(), ofClient.hooks()
	waiting := make(chan struct{}, 1)
	handlers := clientHandlers(0)
	handlers.SessionUpdate = func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
		select {
		case waiting <- struct{}{}:
		default:
		}
		return nil
	}
	one, _ := connect(t, agentHandlers(0), agentHooks, handlers, clientHooks)
	other, _ := connect(t, agentHandlers(0), agentHooks, handlers, clientHooks)
	first, second := newSession(t, one), newSession(t, other)
	if first.ID() != second.ID() {
		t.Fatal("the sessions have different ids")
	}
	done := make(chan error, 1)
	go func() {
		_, err := first.Prompt(t.Context(), acp.TextBlock("wait"))
		done <- err
	}()
	<-waiting
	must.Get(second.Prompt(t.Context(), acp.TextBlock("work")))(t)
	must.Do(t, first.Cancel(t.Context()))
	must.Do(t, <-done)
	for side, o := range map[string]*observer{"client": ofClient, "agent": ofAgent} {
		counts := map[string]string{}
		for _, s := range o.spans.GetSpans() {
			if s.Name == "session/prompt" {
				counts[attr(s, "acp.stop_reason")] = attr(s, "acp.updates.count")
			}
		}
		if want := map[string]string{"cancelled": "1", "end_turn": "6"}; !maps.Equal(counts, want) {
			t.Errorf("%s: updates by turn: got %v, want %v", side, counts, want)
		}
	}
}
