package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/must"
)

// A turn that a notification handler runs must not wait for what waits for that handler: neither for
// the agent's question, nor for the updates that fill the queue.
func TestTurnRunByNotificationHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Conn
		done := make(chan error, 1)
		p, c := newPeer(t, clientRoutes(func(ctx context.Context, u *updateParams) error {
			if u.N == 0 {
				_, err := engine.RunTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS)
				done <- err
			}
			return nil
		}, func(context.Context, *sessionParams) (*askResult, error) {
			return &askResult{"selected"}, nil
		}), &Options{QueueBytes: 1000})
		p.send(note("update", `{"sessionId":"s","n":0}`))
		p.read()
		p.send(note("update", `{"sessionId":"s","n":1}`), request("q", "ask", `{"sessionId":"s"}`))
		p.expect(`{"jsonrpc":"2.0","id":"q","result":{"outcome":"selected"}}`)
		p.updates(2, 102)
		p.send(endTurn(1))
		must.Do(t, <-done)
	})
}

// A handler that starts a turn for somebody else does not wait for it, so the turn is over only when
// all its updates were handled.
func TestTurnStartedByNotificationHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Conn
		started := make(chan *Turn[int, promptResult], 1)
		answered := make(chan struct{})
		p, c := newPeer(t, clientRoutes(func(ctx context.Context, u *updateParams) error {
			if u.N < 0 {
				started <- engine.StartTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
			}
			<-answered
			return nil
		}, nil), nil)
		p.send(note("update", `{"sessionId":"s","n":-1}`))
		p.read()
		p.updates(0, 100)
		p.send(endTurn(1))
		synctest.Wait() // the answer was read, and no update handled
		close(answered)
		seen := 0
		for u := range (<-started).Updates() {
			if u >= 0 { // not the one from which the turn was started
				seen++
			}
		}
		if seen != 100 {
			t.Errorf("%d of 100 updates", seen)
		}
	})
}

// An author's own encoding and decoding may panic as a handler may: that is one message's failure.
func TestPanicInMarshaling(t *testing.T) {
	var ext Extensions
	Handle(&ext, "_in", func(context.Context, *panics) (*echoParams, error) { return &echoParams{}, nil })
	Handle(&ext, "_out", func(context.Context, *echoParams) (*panics, error) { return &panics{}, nil })
	p, c := newPeer(t, append(extensions(&ext), echoMethod.Handle(echo)), nil)
	p.send(request(1, "_in", `{}`))
	if got := p.read(); !strings.Contains(got, "-32602") || strings.Contains(got, "hunter2") {
		t.Errorf("got %s", got)
	}
	p.send(request(2, "_out", `{}`))
	p.expect(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error"}}`)

	if _, err := engine.CallRaw[echoParams](t.Context(), c, "_x", &panics{}); err == nil || errors.Is(err, rpc.ErrClosed) {
		t.Errorf("parameters that panic: %v", err)
	}
	done := going(func() error { _, err := engine.CallRaw[panics](t.Context(), c, "_x", nil); return err })
	p.send(strings.Replace(p.read(), `"method":"_x"`, `"result":{}`, 1))
	if err := <-done; err == nil || errors.Is(err, rpc.ErrClosed) {
		t.Errorf("a result that panics: %v", err)
	}
	p.send(request(3, "echo", `{"n":1}`))
	p.expect(`{"jsonrpc":"2.0","id":3,"result":{"n":1}}`)
}

type panics struct{}

func (*panics) MarshalJSON() ([]byte, error) { panic(errPlain) }
func (*panics) UnmarshalJSON([]byte) error   { panic(errPlain) }

// The same for notifications: the session's next one is handled, and its turn ends.
func TestGoexitInNotificationHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handled []int
		p, c := newPeer(t, clientRoutes(func(_ context.Context, u *updateParams) error {
			if u.N%2 == 0 {
				runtime.Goexit()
			}
			handled = append(handled, u.N)
			return nil
		}, nil), nil)
		done := going(func() error {
			_, err := engine.RunTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS)
			return err
		})
		p.read()
		p.updates(0, 4)
		p.send(endTurn(1))
		must.Do(t, <-done)
		if !slices.Equal(handled, []int{1, 3}) {
			t.Errorf("handled %v", handled)
		}
	})
}

// What a peer answered to a call of a handler's is nothing that the handler's own peer asked about.
func TestErrorsThatReachThePeer(t *testing.T) {
	foreign := &CallError{Method: "_upstream", Err: rpc.ErrAuthRequired.WithData("of another connection")}
	own := rpc.ErrInvalidParams.WithMessagef("no such branch")
	for name, test := range map[string]struct {
		err  error
		want *Error
	}{
		"plain":                  {errPlain, rpc.Errorf(rpc.ErrInternal, "Internal error")},
		"own":                    {fmt.Errorf("checking: %w", own), own},
		"a peer's":               {foreign, rpc.Errorf(rpc.ErrInternal, "Internal error")},
		"a peer's, wrapped":      {fmt.Errorf("asking: %w", foreign), rpc.Errorf(rpc.ErrInternal, "Internal error")},
		"a peer's, joined":       {errors.Join(errPlain, foreign), rpc.Errorf(rpc.ErrInternal, "Internal error")},
		"own beside a peer's":    {errors.Join(foreign, own), own},
		"own around a peer's":    {fmt.Errorf("%w: %w", own, foreign), own},
		"a peer's, passed on":    {foreign.Err, foreign.Err},
		"a peer's, made public":  {rpc.Public(foreign), rpc.Errorf(rpc.ErrInternal, "%s", foreign)},
		"text that is no UTF-8":  {rpc.Public(errors.New("caf\xe9")), rpc.Errorf(rpc.ErrInternal, "caf\uFFFD")},
		"data that is not JSON":  {&Error{Code: 5, Message: "m", Data: []byte("{")}, rpc.Errorf(5, "m")},
		"data with a line break": {&Error{Code: 5, Message: "m", Data: []byte("[1,\n2]")}, &Error{Code: 5, Message: "m", Data: []byte("[1,2]")}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newPeer(t, []Route{echoMethod.Handle(func(context.Context, *echoParams) (*echoParams, error) {
				return nil, test.err
			})}, nil)
			want := must.Get(test.want.MarshalJSON())(t)
			p.send(request(1, "echo", `{}`))
			p.expect(`{"jsonrpc":"2.0","id":1,"error":` + string(want) + `}`)
		})
	}
}
