package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/must"
)

type remark struct {
	SessionID string `json:"sessionId"`
	Text      string `json:"text"`
}

// keeping serves turns with f, and what cancels and ends them.
func keeping(f func(ctx context.Context) (*echoParams, error)) []Route {
	turn := RequestMethod[sessionParams, echoParams]{Name: "turn"}.Handle(func(ctx context.Context, _ *sessionParams) (*echoParams, error) { return f(ctx) })
	turn.Turn = true
	cancel := NotificationMethod[sessionParams]{Name: "cancel"}.Handle(nil)
	cancel.CancelsTurn = true
	end := RequestMethod[sessionParams, echoParams]{Name: "end", NullResult: true}.Handle(func(context.Context, *sessionParams) (*echoParams, error) { return nil, nil })
	end.EndsTurn = true
	return []Route{turn, cancel, end}
}

func never(t *testing.T, what string) func() {
	return func() { t.Errorf("%s was called", what) }
}

// The work of a turn continues after the answer: the session is busy until it is freed, and what ends the
// turn cancels it and waits for it.
func TestKeepTurn(t *testing.T) {
	var conn *Conn
	turns := 0
	peer, conn := newPeer(t, keeping(func(ctx context.Context) (*echoParams, error) {
		turns++
		if turns > 1 {
			return &echoParams{N: turns}, nil
		}
		ok := engine.KeepTurn(ctx, func(ctx context.Context, free func()) {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, rpc.ErrTurnCancelled) {
				t.Errorf("got the cause %v", cause)
			}
			free()
			if err := engine.NotifyRaw(context.WithoutCancel(ctx), conn, "last", nil); err != nil {
				t.Error(err)
			}
		}, never(t, "drop"))
		if !ok || engine.KeepTurn(ctx, nil, nil) {
			t.Errorf("the turn was kept: %v, or twice", ok)
		}
		return &echoParams{N: turns}, nil
	}), nil)
	peer.send(`{"jsonrpc":"2.0","id":1,"method":"turn","params":{"sessionId":"s"}}`)
	peer.expect(`{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	peer.send(`{"jsonrpc":"2.0","id":2,"method":"turn","params":{"sessionId":"s"}}`)
	peer.expect(`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"the session is busy with another turn","data":{"sessionId":"s"}}}`)
	peer.send(
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`, // it was answered: nothing happens
		`{"jsonrpc":"2.0","id":3,"method":"end","params":{"sessionId":"s"}}`)
	peer.expect(`{"jsonrpc":"2.0","method":"last"}`)
	peer.expect(`{"jsonrpc":"2.0","id":3,"result":{"n":0}}`)
	peer.send(`{"jsonrpc":"2.0","id":4,"method":"turn","params":{"sessionId":"s"}}`)
	peer.expect(`{"jsonrpc":"2.0","id":4,"result":{"n":2}}`)
}

// Only the handler of a turn can keep it.
func TestKeepTurnElsewhere(t *testing.T) {
	keep := func(ctx context.Context) bool {
		return engine.KeepTurn(ctx, func(context.Context, func()) { t.Error("run was called") }, never(t, "drop"))
	}
	if keep(t.Context()) {
		t.Error("a turn was kept that is none")
	}
	peer, _ := newPeer(t, []Route{
		RequestMethod[sessionParams, echoParams]{Name: "other", NullResult: true}.Handle(func(ctx context.Context, _ *sessionParams) (*echoParams, error) {
			if keep(ctx) {
				t.Error("a request was kept that is no turn")
			}
			return nil, nil
		}),
	}, nil)
	peer.send(`{"jsonrpc":"2.0","id":1,"method":"other","params":{"sessionId":"s"}}`)
	peer.expect(`{"jsonrpc":"2.0","id":1,"result":{"n":0}}`)
}

// A turn of this side's own accord is cancelled as one of the peer's.
func TestOpenTurn(t *testing.T) {
	peer, conn := newPeer(t, keeping(func(context.Context) (*echoParams, error) { return &echoParams{}, nil }), nil)
	ctx, free, end, err := conn.OpenTurn(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := conn.OpenTurn(t.Context(), "s"); err == nil {
		t.Error("a session has two turns")
	}
	peer.send(`{"jsonrpc":"2.0","id":1,"method":"turn","params":{"sessionId":"s"}}`)
	peer.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the session is busy with another turn","data":{"sessionId":"s"}}}`)
	peer.send(`{"jsonrpc":"2.0","method":"cancel","params":{"sessionId":"s"}}`)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, rpc.ErrTurnCancelled) {
		t.Errorf("got the cause %v", cause)
	}
	free()
	peer.send(`{"jsonrpc":"2.0","id":2,"method":"turn","params":{"sessionId":"s"}}`)
	peer.expect(`{"jsonrpc":"2.0","id":2,"result":{"n":0}}`)
	if engine.TurnOver(ctx) {
		t.Error("the turn is over before its end")
	}
	if end(); !engine.TurnOver(ctx) {
		t.Error("the turn is not over")
	}
	must.Do(t, conn.Close())
	if _, _, _, err := conn.OpenTurn(t.Context(), "s"); !errors.Is(err, rpc.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// untilEnd is over with the notification "end", or with an answer of 7.
type untilEnd struct{}

func (untilEnd) Answered(answer *echoParams) *string {
	if answer.N != 7 {
		return nil
	}
	s := "answer"
	return &s
}

func (untilEnd) Notified(params any) *string {
	if n := params.(*remark); n.Text == "end" {
		return &n.Text
	}
	return nil
}

// A turn of this side ends with a notification; what comes after is not of it.
func TestTurnUntil(t *testing.T) {
	const (
		begun = `{"jsonrpc":"2.0","id":1,"result":{"n":1}}`
		one   = `{"jsonrpc":"2.0","method":"note","params":{"sessionId":"s","text":"one"}}`
		other = `{"jsonrpc":"2.0","method":"note","params":{"sessionId":"other","text":"end"}}`
		end   = `{"jsonrpc":"2.0","method":"note","params":{"sessionId":"s","text":"end"}}`
		late  = `{"jsonrpc":"2.0","method":"note","params":{"sessionId":"s","text":"late"}}`
	)
	tests := map[string]struct {
		lines   []string
		result  string
		updates []string
		err     error
	}{
		"answer, then the end":   {[]string{begun, one, other, end, late}, "end", []string{"one", "end"}, nil},
		"the end, then answer":   {[]string{one, end, begun, late}, "end", []string{"one", "end"}, nil},
		"an answer that ends it": {[]string{one, `{"jsonrpc":"2.0","id":1,"result":{"n":7}}`, late}, "answer", []string{"one"}, nil},
		"an error":               {[]string{one, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m"}}`}, "", []string{"one"}, rpc.ErrAuthRequired},
		"the connection's end":   {[]string{begun, one, ""}, "", []string{"one"}, rpc.ErrClosed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			peer, conn := newPeer(t, feeding(), nil)
			turn := startFollowed(t, conn, nil)
			peer.expect(`{"jsonrpc":"2.0","id":1,"method":"turn","params":{"sessionId":"s"}}`)
			for _, line := range test.lines {
				if line == "" {
					must.Do(t, peer.w.Close())
					break
				}
				peer.send(line)
			}
			updates := slices.Collect(turn.Updates())
			if !slices.Equal(updates, test.updates) {
				t.Errorf("got the updates %q, want %q", updates, test.updates)
			}
			res, err := turn.Result()
			switch {
			case !errors.Is(err, test.err):
				t.Errorf("got the error %v, want %v", err, test.err)
			case err == nil && *res != test.result:
				t.Errorf("got %q, want %q", *res, test.result)
			case test.err == rpc.ErrClosed && !errors.Is(err, io.EOF):
				t.Errorf("got %v, which does not say why", err)
			}
		})
	}
}

// unwritable is a result that cannot be encoded.
type unwritable struct{}

func (unwritable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

// A turn whose answer cannot be encoded is answered with an error: its work is dropped, and the session is
// free.
func TestKeepTurnWithUnwritableAnswer(t *testing.T) {
	dropped := make(chan struct{})
	turn := RequestMethod[sessionParams, unwritable]{Name: "turn"}.Handle(func(ctx context.Context, _ *sessionParams) (*unwritable, error) {
		engine.KeepTurn(ctx, func(context.Context, func()) { t.Error("the work was done") }, func() { close(dropped) })
		return &unwritable{}, nil
	})
	turn.Turn = true
	peer, c := newPeer(t, []Route{turn}, nil)
	peer.send(request(1, "turn", `{"sessionId":"s"}`))
	peer.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`)
	<-dropped
	_, _, end, err := c.OpenTurn(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// lengthyParams take their time to be encoded, while the request is being sent.
type lengthyParams struct {
	sessionParams
	during func()
}

// EncodeJSON implements codec.Value.
func (p *lengthyParams) EncodeJSON(e *codec.Encoder) {
	if p.during != nil {
		p.during()
	}
	e.BeginObject()
	e.Name("sessionId")
	e.Str(p.SessionID)
	e.EndObject()
}

// DecodeJSON implements codec.Value.
func (*lengthyParams) DecodeJSON(d *codec.Decoder) { d.Skip() }

// startFollowed starts a turn of session s that continues after its answer; during runs while its request is sent.
func startFollowed(t *testing.T, conn *Conn, during func()) *engine.Turn[string, string] {
	return engine.StartTurnUntil(t.Context(), conn, RequestMethod[lengthyParams, echoParams]{Name: "turn"},
		&lengthyParams{sessionParams{"s"}, during}, TurnSpec{Session: "s", CancelMethod: "cancel"}, untilEnd{},
		func(params any) (string, bool) { return params.(*remark).Text, true })
}

// feeding are the routes of turns that startFollowed starts.
func feeding() []Route {
	feed := NotificationMethod[remark]{Name: "note"}.Handle(nil)
	feed.Feeds = true
	return []Route{feed}
}

// A turn that is held behind another one is taken back, and the other left alone, also when it is cancelled while
// its request is being sent.
func TestTakenBackWhileItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, conn := newPeer(t, feeding(), nil)
		start := func(during func()) *engine.Turn[string, string] { return startFollowed(t, conn, during) }
		one := start(nil)
		peer.expect(`{"jsonrpc":"2.0","id":1,"method":"turn","params":{"sessionId":"s"}}`)
		synctest.Wait() // the writer must not want its lock while the second request has it, or no time passes
		started := make(chan *engine.Turn[string, string], 1)
		two := start(func() {
			turn := <-started
			go turn.Cancel()
			time.Sleep(time.Second) // until it has done what it can
		})
		started <- two
		peer.expect(`{"jsonrpc":"2.0","id":2,"method":"turn","params":{"sessionId":"s"}}`)
		peer.expect(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`)
		peer.send(`{"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"m"}}`)
		if _, err := two.Result(); !errors.Is(err, rpc.ErrRequestCancelled) {
			t.Errorf("the held turn: %v", err)
		}
		peer.send(`{"jsonrpc":"2.0","id":1,"result":{"n":7}}`)
		if res, err := one.Result(); err != nil || *res != "answer" {
			t.Errorf("the turn before it: %v", err)
		}
	})
}

// A turn that is held behind another one, and was cancelled, may have begun all the same. A later turn is sent when
// that is known, and behind the cancellation, if there is one.
func TestRecalled(t *testing.T) {
	const (
		turn     = `{"jsonrpc":"2.0","id":%d,"method":"turn","params":{"sessionId":"s"}}`
		recalled = `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`
		cancel   = `{"jsonrpc":"2.0","method":"cancel"}`
		accepted = `{"jsonrpc":"2.0","id":2,"result":{"n":1}}`
		refused  = `{"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"m"}}`
		end      = `{"jsonrpc":"2.0","method":"note","params":{"sessionId":"s","text":"end"}}`
	)
	type turns struct {
		peer     *rawPeer
		conn     *Conn
		one, two *engine.Turn[string, string]
	}
	tests := map[string]struct {
		then func(t *testing.T, x *turns) // after the third turn was started, which must not be sent yet
		two  error                        // its result
	}{
		"it has begun": {func(t *testing.T, x *turns) {
			x.peer.send(accepted)
			x.peer.expect(cancel)
		}, nil},
		"it has begun and ended": {func(t *testing.T, x *turns) {
			x.peer.send(`{"jsonrpc":"2.0","id":2,"result":{"n":7}}`)
		}, nil},
		"it was given back": {func(t *testing.T, x *turns) { x.peer.send(refused) }, rpc.ErrRequestCancelled},
		"no answer": {func(t *testing.T, x *turns) {
			time.Sleep(time.Hour)
		}, rpc.ErrTurnCancelled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &turns{}
				x.peer, x.conn = newPeer(t, feeding(), &Options{CancelGrace: time.Hour})
				x.one = startFollowed(t, x.conn, nil)
				x.peer.expect(fmt.Sprintf(turn, 1))
				x.two = startFollowed(t, x.conn, nil)
				x.peer.expect(fmt.Sprintf(turn, 2))
				x.two.Cancel()
				three := startFollowed(t, x.conn, nil)
				x.peer.expect(recalled)
				synctest.Wait()
				if len(x.peer.lines) > 0 {
					t.Errorf("%s came too early", x.peer.read())
				}
				test.then(t, x)
				x.peer.expect(fmt.Sprintf(turn, 3))
				x.peer.send(`{"jsonrpc":"2.0","id":1,"result":{"n":7}}`, end, `{"jsonrpc":"2.0","id":3,"result":{"n":7}}`)
				if _, err := x.two.Result(); !errors.Is(err, test.two) {
					t.Errorf("the held turn: got %v, want %v", err, test.two)
				}
				for _, other := range []*engine.Turn[string, string]{x.one, three} {
					must.Get(other.Result())(t)
				}
			})
		})
	}
}

// Cancelling a held turn has sent its cancellation when it returns, and cancelling its session cancels it at once.
func TestRecalledThenSessionCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, conn := newPeer(t, feeding(), nil)
		one := startFollowed(t, conn, nil)
		peer.expect(`{"jsonrpc":"2.0","id":1,"method":"turn","params":{"sessionId":"s"}}`)
		two := startFollowed(t, conn, nil)
		peer.expect(`{"jsonrpc":"2.0","id":2,"method":"turn","params":{"sessionId":"s"}}`)
		two.Cancel()
		must.Do(t, engine.NotifyRaw(t.Context(), conn, "behind", nil))
		must.Do(t, conn.CancelSession(t.Context(), TurnSpec{Session: "s", CancelMethod: "cancel"}))
		three := startFollowed(t, conn, nil)
		peer.expect(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`)
		peer.expect(`{"jsonrpc":"2.0","method":"behind"}`)
		peer.expect(`{"jsonrpc":"2.0","method":"cancel"}`)
		peer.expect(`{"jsonrpc":"2.0","id":3,"method":"turn","params":{"sessionId":"s"}}`)
		for id := range 3 { // all have begun, and no other cancellation comes
			peer.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"n":1}}`, id+1))
		}
		peer.send(`{"jsonrpc":"2.0","method":"note","params":{"sessionId":"s","text":"end"}}`)
		for _, turn := range []*engine.Turn[string, string]{one, two, three} {
			must.Get(turn.Result())(t)
		}
		if len(peer.lines) > 0 {
			t.Errorf("%s came too", peer.read())
		}
	})
}
