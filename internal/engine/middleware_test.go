package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/must"
)

type seenKey struct{}

// Middleware round handlers is given method, session and _meta before the handler runs, and passes on its own
// context, parameters and result.
func TestServeMiddleware(t *testing.T) {
	seen := make(chan string, 10)
	opts := &Options{Hooks: Hooks{Serve: func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
		var trace string
		if _, err := call.Meta.Get("traceparent", &trace); err != nil {
			t.Error(err)
		}
		seen <- fmt.Sprint(call.Method, " ", call.Session, " ", call.Incoming, " ", call.Notification, " ", trace)
		switch p := call.Params.(type) {
		case *echoParams:
			p.N++
		case *updateParams:
			call.Params = &updateParams{N: p.N + 1}
		case json.RawMessage:
			call.Params = json.RawMessage(`[` + string(p) + `]`)
		}
		err := next(context.WithValue(ctx, seenKey{}, trace))
		if r, ok := call.Result.(*echoParams); ok {
			call.Result = &echoParams{SessionID: r.SessionID, N: 10 * r.N}
		}
		return err
	}}}
	ext := Extensions{Fallback: func(_ context.Context, _ *rpc.Conn, _ string, params json.RawMessage) (any, error) {
		return params, nil
	}}
	updates := make(chan int, 1)
	p, _ := newPeer(t, append(extensions(&ext),
		echoMethod.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
			p.SessionID += " " + ctx.Value(seenKey{}).(string)
			return p, nil
		}),
		updateMethod.Handle(func(_ context.Context, p *updateParams) error {
			updates <- p.N
			return nil
		}),
	), opts)
	p.send(request(1, "echo", `{"sessionId":"s","n":1,"_meta":{"traceparent":"00-1"}}`))
	p.expect(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s 00-1","n":20}}`)
	p.send(note("update", `{"sessionId":"s","n":1,"_meta":{"traceparent":"00-2"}}`))
	if n := <-updates; n != 2 {
		t.Errorf("the handler got %d", n)
	}
	p.send(request(2, "_x", `{"_meta":null}`))
	p.expect(`{"jsonrpc":"2.0","id":2,"result":[{"_meta":null}]}`)
	for _, want := range []string{"echo s true false 00-1", "update s true true 00-2", "_x  true false "} {
		if got := <-seen; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Middleware that does not call next refuses; parameters and results of another type are errors.
func TestMiddlewareThatRefuses(t *testing.T) {
	var mode string
	opts := &Options{Hooks: Hooks{
		Serve: func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
			switch mode {
			case "refuse":
				return rpc.ErrAuthRequired
			case "params":
				call.Params = 5
			case "silence":
				return nil
			case "panic":
				panic("no")
			}
			return next(ctx)
		},
		Call: func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
			switch mode {
			case "refuse":
				return errPlain
			case "result":
				call.Result = 5
				return nil
			}
			return next(ctx)
		},
	}}
	p, c := newPeer(t, []Route{echoMethod.Handle(echo)}, opts)
	for i, want := range map[string]string{"refuse": "-32000", "params": "-32603", "silence": "-32603", "panic": "-32603"} {
		mode = i
		p.send(request(1, "echo", `{}`))
		if got := p.read(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", mode, got)
		}
	}
	for _, mode = range []string{"refuse", "result"} {
		if _, err := echoMethod.Call(t.Context(), c, nil); err == nil {
			t.Errorf("%s: no error", mode)
		}
	}
	mode = "refuse"
	if err := updateMethod.Notify(t.Context(), c, nil); err != errPlain {
		t.Error(err)
	}
	if _, err := engine.RunTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS); err != errPlain {
		t.Error(err)
	}
}

// What middleware puts into Meta goes out with calls, raw or not, notifications and turns, and nothing of the
// parameters is lost.
func TestTEL12_CallMiddlewareAddsMeta(t *testing.T) {
	sessions := make(chan string, 10)
	noMeta := false // of the last call
	opts := &Options{Hooks: Hooks{Call: func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
		sessions <- call.Session
		noMeta = call.NoMeta
		if err := call.Meta.Set("traceparent", "00-1"); err != nil {
			t.Error(err)
		}
		return next(ctx)
	}}}
	p, c := newPeer(t, nil, opts)
	const meta = `"_meta":{"traceparent":"00-1"}`
	call := func(f func() error, want, session string) {
		t.Helper()
		done := going(f)
		line := p.read()
		if !strings.HasSuffix(line, want+"}") {
			t.Errorf("sent %s, want %s", line, want)
		}
		if !strings.Contains(line, `"id"`) {
			line = ""
		}
		if line != "" {
			var m struct{ ID json.RawMessage }
			must.Do(t, json.Unmarshal([]byte(line), &m))
			p.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
		}
		must.Do(t, <-done)
		if got := <-sessions; got != session {
			t.Errorf("session %q, want %q", got, session)
		}
		if noMeta {
			t.Errorf("%s: said to have no place for _meta", line)
		}
	}
	call(func() error {
		_, err := echoMethod.Call(t.Context(), c, &echoParams{SessionID: "s", N: 1})
		return err
	}, `"params":{"sessionId":"s","n":1,`+meta+`}`, "s")
	call(func() error {
		_, err := engine.CallRaw[struct{}](t.Context(), c, "_x", nil)
		return err
	}, `"params":{`+meta+`}`, "")
	call(func() error {
		return engine.NotifyRaw(t.Context(), c, "_x", json.RawMessage(`{"a":1e400,"_meta":{"traceparent":"old","k":[1, 2]},"b":2}`))
	}, `"params":{"a":1e400,"b":2,"_meta":{"k":[1,2],"traceparent":"00-1"}}`, "")
	call(func() error {
		_, err := engine.RunTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS)
		return err
	}, `,`+meta+`}`, "s")
	for _, null := range []any{json.RawMessage(" null "), (*struct{})(nil), map[string]int(nil)} {
		call(func() error {
			_, err := engine.CallRaw[struct{}](t.Context(), c, "_x", null)
			return err
		}, `"params":{`+meta+`}`, "")
		call(func() error { return engine.NotifyRaw(t.Context(), c, "_x", null) }, `"params":{`+meta+`}`, "")
	}
	for _, params := range []any{[]int{1}, json.RawMessage(`[]`), 1, "s", true} {
		_, calling := engine.CallRaw[struct{}](t.Context(), c, "_x", params)
		for _, err := range []error{calling, engine.NotifyRaw(t.Context(), c, "_x", params)} {
			if _, ok := errors.AsType[*codec.Error](err); !ok || !strings.Contains(err.Error(), "_meta") {
				t.Errorf("params %v: got %v", params, err)
			}
			<-sessions
			if !noMeta {
				t.Errorf("params %v: said to have a place for _meta", params)
			}
		}
	}
	call(func() error { return engine.NotifyRaw(t.Context(), c, "_y", nil) }, `"method":"_y","params":{`+meta+`}`, "") // nothing else came
}

// Incoming parameters without an object have no _meta, and reach the handler as they came.
func TestServeMiddlewareWithoutObject(t *testing.T) {
	opts := &Options{Hooks: Hooks{Serve: func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
		if call.Meta != nil || call.Session != "" {
			t.Errorf("got the _meta %s of session %q", call.Meta, call.Session)
		}
		return next(ctx)
	}}}
	ext := Extensions{Fallback: func(_ context.Context, _ *rpc.Conn, _ string, params json.RawMessage) (any, error) {
		return params, nil
	}}
	p, _ := newPeer(t, extensions(&ext), opts)
	for i, params := range []string{`[{"_meta":{"a":1},"sessionId":"s"}]`, `["_meta"]`, `[]`} {
		p.send(request(i, "_x", params))
		p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i, params))
	}
	p.send(request(9, "_x", `null`)) // is no parameters
	p.expect(`{"jsonrpc":"2.0","id":9,"result":{}}`)
}

// Updates that go to the loop over a turn pass the middleware too, in order, and before the turn is over. It may change
// them and keep them back, and is notified of those that nobody takes.
func TestServeMiddlewareOfUpdatesForALoop(t *testing.T) {
	var seen []int
	opts := &Options{Hooks: Hooks{Serve: func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
		update := call.Params.(*updateParams)
		if call.Method != "update" || !call.Incoming || !call.Notification || call.Session != "s" || call.Size == 0 {
			t.Errorf("got %+v", call)
		}
		seen = append(seen, update.N)
		switch update.N {
		case 2:
			return errPlain
		case 3:
			call.Params = &updateParams{SessionID: "s", N: 30}
		}
		return next(ctx)
	}}}
	p, c := newPeer(t, clientRoutes(nil, nil), opts)
	turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
	p.read()
	p.updates(0, 5)
	p.send(endTurn(1))
	<-turn.Done()
	if want := []int{0, 1, 2, 3, 4}; !slices.Equal(seen, want) {
		t.Errorf("the middleware saw %v before the end of the turn, want %v", seen, want)
	}
	if got, want := slices.Collect(turn.Updates()), []int{0, 1, 30, 4}; !slices.Equal(got, want) {
		t.Errorf("the loop got %v, want %v", got, want)
	}
	must.Get(turn.Result())(t)
	p.send(note("update", `{"sessionId":"s","n":5}`), request(1, "unknown", `{}`))
	p.read() // when this is answered, that is queued
	engine.AwaitHandled(c, "s")
	if want := []int{0, 1, 2, 3, 4, 5}; !slices.Equal(seen, want) {
		t.Errorf("the middleware saw %v after the turn, want %v", seen, want)
	}
}

// What a connection holds can be asked for, and is nothing in the end.
func TestLoad(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	p, c := newPeer(t, []Route{
		echoMethod.Handle(func(_ context.Context, p *echoParams) (*echoParams, error) {
			started <- struct{}{}
			<-release
			return p, nil
		}),
		updateMethod.Handle(func(context.Context, *updateParams) error {
			started <- struct{}{}
			<-release
			return nil
		}),
	}, nil)
	text := strings.Repeat("x", 1000)
	p.send(note("update", `{"sessionId":"s","text":"`+text+`"}`))
	<-started
	if got := c.Load(); got.Queued < 1000 || got.Queued > 2000 || got.Requests != 0 || got.Loops != 0 {
		t.Errorf("a notification: got %+v", got)
	}
	p.send(request(1, "echo", `{"n":1,"text":"`+text+`"}`))
	<-started
	if got := c.Load(); got.Requests < 1000 {
		t.Errorf("a request: got %+v", got)
	}
	close(release)
	p.read()
	engine.AwaitHandled(c, "s")
	must.Do(t, c.Close())
	if got := c.Load(); got != (engine.Load{}) {
		t.Errorf("in the end: got %+v", got)
	}
}
