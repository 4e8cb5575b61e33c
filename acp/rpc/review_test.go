package rpc

// This file owns the tests of corners where a turn, a question or a notification meets an unusual end.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// unwritable is a result that cannot be encoded.
type unwritable struct{}

func (unwritable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

// A turn whose answer cannot be encoded is answered with an error: its work is dropped, and the session is
// free.
func TestKeepTurnWithUnwritableAnswer(t *testing.T) {
	dropped := make(chan struct{})
	turn := RequestMethod[turnParams, unwritable]{Name: "turn"}.Handle(func(ctx context.Context, _ *turnParams) (*unwritable, error) {
		KeepTurn(ctx, func(context.Context, func()) { t.Error("the work was done") }, func() { close(dropped) })
		return &unwritable{}, nil
	})
	turn.Turn = true
	peer, c := newPeer(t, []Route{turn}, nil)
	peer.send(request(1, "turn", `{"sessionId":"s"}`))
	peer.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`)
	receive(t, dropped)
	_, _, end, err := c.OpenTurn(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// A handler that waits for a turn that it has started in the background holds its queue up as one that
// runs a turn does: at the limit the turn fails.
func TestOverflowFailsTheTurnThatAHandlerStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan error, 1)
		var c *Conn
		p, c := newPeer(t, clientRoutes(func(ctx context.Context, u *updateParams) error {
			if u.N == 0 {
				_, err := StartTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate).Result()
				done <- err
			}
			return nil
		}, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
		for i := range 100 {
			p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)))
		}
		if err := receive(t, done); !errors.Is(err, ErrOverflow) {
			t.Error(err)
		}
	})
}

// Null parameters are none, wherever they stand in the message.
func TestNullParams(t *testing.T) {
	got := make(chan string, 2)
	m := NotificationMethod[json.RawMessage]{Name: "_n"}
	peer, _ := newPeer(t, []Route{m.Handle(func(_ context.Context, p *json.RawMessage) error {
		got <- string(*p)
		return nil
	})}, nil)
	peer.send(`{"jsonrpc":"2.0","method":"_n","params":null}`, `{"params":null,"jsonrpc":"2.0","method":"_n"}`)
	if a, b := receive(t, got), receive(t, got); a != "{}" || b != "{}" {
		t.Errorf("got %s and %s", a, b)
	}
}

// $/cancel_request is the runtime's, also where a route has that name.
func TestCancelRequestRoute(t *testing.T) {
	started := make(chan struct{})
	routes := []Route{
		NotificationMethod[json.RawMessage]{Name: methodCancelRequest}.Handle(func(context.Context, *json.RawMessage) error {
			t.Error("the route was served")
			return nil
		}),
		askMethod.Handle(func(ctx context.Context, _ *sessionParams) (*askResult, error) {
			close(started)
			<-ctx.Done()
			return nil, ctx.Err()
		}),
	}
	peer, _ := newPeer(t, routes, nil)
	peer.send(request(1, "ask", `{}`))
	receive(t, started)
	peer.send(note(methodCancelRequest, `{"requestId":1}`))
	peer.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"Request cancelled"}}`)
}

// A session is cancelled also when its only turn of this side has not been sent yet: what the peer does
// there, and asks, may belong to something else.
func TestCancelSessionBeforeItsTurnIsSent(t *testing.T) {
	asked, held := make(chan struct{}), make(chan struct{})
	p, c := newPeer(t, clientRoutes(nil, func(ctx context.Context, _ *sessionParams) (*askResult, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}), &Options{Hooks: Hooks{Call: func(_ context.Context, call CallInfo) (context.Context, func(error)) {
		if call.Method == "prompt" {
			<-held
		}
		return nil, nil
	}}})
	p.send(request("q", "ask", `{"sessionId":"s"}`))
	receive(t, asked)
	turn := StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
	if err := c.CancelSession(t.Context(), inS); err != nil {
		t.Error(err)
	}
	close(held)
	if _, err := turn.Result(); !errors.Is(err, ErrTurnCancelled) {
		t.Errorf("got %v", err)
	}
	p.expect(`{"jsonrpc":"2.0","method":"cancel","params":{"sessionId":"s"}}`)
	p.expect(`{"jsonrpc":"2.0","id":"q","result":{"outcome":"cancelled"}}`)
}
