package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/must"
)

type (
	promptParams struct {
		SessionID string `json:"sessionId"`
		Prompt    string `json:"prompt"`
	}
	promptResult struct {
		StopReason string `json:"stopReason"`
	}
	sessionParams struct {
		SessionID string `json:"sessionId"`
	}
	updateParams struct {
		SessionID string `json:"sessionId"`
		N         int    `json:"n"`
		Text      string `json:"text"`
	}
	askResult struct {
		Outcome string `json:"outcome"`
	}
)

var (
	promptMethod = RequestMethod[promptParams, promptResult]{Name: "prompt"}
	cancelMethod = NotificationMethod[sessionParams]{Name: "cancel"}
	updateMethod = NotificationMethod[updateParams]{Name: "update"}
	askMethod    = RequestMethod[sessionParams, askResult]{Name: "ask"}

	inS = TurnSpec{Session: "s", CancelMethod: "cancel", CancelParams: &sessionParams{"s"}}
)

func pickUpdate(params any) (int, bool) {
	p, ok := params.(*updateParams)
	if !ok {
		return 0, false
	}
	return p.N, true
}

// clientRoutes are what the side that sends prompts serves.
func clientRoutes(update func(context.Context, *updateParams) error, ask func(context.Context, *sessionParams) (*askResult, error)) []Route {
	u := updateMethod.Handle(update)
	u.Feeds = true
	a := askMethod.Handle(ask)
	a.Cancelled = func(any) any { return &askResult{"cancelled"} }
	return []Route{u, a, echoMethod.Handle(echo)}
}

// PRM-9, PRM-14: a cancelled turn.
func TestPRM14_TurnCancelled(t *testing.T) {
	for _, how := range []string{"context", "Cancel", "CancelSession"} {
		t.Run(how, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			p, c := newPeer(t, clientRoutes(nil, func(ctx context.Context, _ *sessionParams) (*askResult, error) {
				asked <- struct{}{}
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), rpc.ErrTurnCancelled) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				return &askResult{"allowed"}, nil
			}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turn := engine.StartTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
			p.read()
			p.send(request("p", "ask", `{"sessionId":"s"}`))
			<-asked
			switch how {
			case "context":
				cancel()
			case "Cancel":
				turn.Cancel()
			default:
				must.Do(t, c.CancelSession(t.Context(), inS))
			}
			p.expect(`{"jsonrpc":"2.0","method":"cancel","params":{"sessionId":"s"}}`)
			p.expect(`{"jsonrpc":"2.0","id":"p","result":{"outcome":"cancelled"}}`)
			// One that was sent before the agent saw the cancellation.
			p.send(request("q", "ask", `{"sessionId":"s"}`))
			p.expect(`{"jsonrpc":"2.0","id":"q","result":{"outcome":"cancelled"}}`)
			p.send(note("update", `{"sessionId":"s","n":5}`))
			p.send(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"cancelled"}}`)
			var got []int
			for u := range turn.Updates() {
				got = append(got, u)
			}
			if len(got) != 1 || got[0] != 5 {
				t.Errorf("updates after the cancellation: %v", got)
			}
			if res, err := turn.Result(); err != nil || res.StopReason != "cancelled" {
				t.Error(res, err)
			}
		})
	}
}

func TestTurnGivenUpAfterGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPeer(t, clientRoutes(nil, nil), &Options{CancelGrace: 3 * time.Second})
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		done := going(func() error {
			_, err := engine.RunTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS)
			return err
		})
		p.read()
		cancel(why)
		p.expect(`{"jsonrpc":"2.0","method":"cancel","params":{"sessionId":"s"}}`)
		p.expect(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
		if err := <-done; !errors.Is(err, why) {
			t.Error(err)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("gave up after %v", waited)
		}
		p.send(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"cancelled"}}`) // late
	})
}

// agentRoutes are what the side that runs prompts serves.
func agentRoutes(prompt func(context.Context, *promptParams) (*promptResult, error)) []Route {
	r := promptMethod.Handle(prompt)
	r.Turn = true
	r.Cancelled = func(any) any { return &promptResult{"cancelled"} }
	x := cancelMethod.Handle(nil)
	x.CancelsTurn = true
	return []Route{r, x, echoMethod.Handle(echo)}
}

// What was asked in a turn, and has not been answered at its end, is answered as cancelled. What was asked before it stays,
// and so does everything while another turn is in progress.
func TestQuestionsEndWithTheirTurn(t *testing.T) {
	asked, ended, release := make(chan struct{}), make(chan struct{}, 3), make(chan struct{})
	p, c := newPeer(t, clientRoutes(nil, func(ctx context.Context, _ *sessionParams) (*askResult, error) {
		asked <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		<-release
		return &askResult{"allowed"}, nil
	}), nil)
	ask := func(id string) {
		p.send(request(id, "ask", `{"sessionId":"s"}`))
		<-asked
	}
	ask("before")
	var turns []*engine.Turn[int, promptResult]
	for _, id := range []string{"first", "second"} {
		turns = append(turns, engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate))
		p.read()
		ask(id)
	}
	p.send(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end"}}`)
	must.Get(turns[0].Result())(t)
	select {
	case <-ended:
		t.Error("a question has ended during a turn")
	default:
	}
	p.send(`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end"}}`)
	answers := []string{p.read(), p.read()} // in any order, and for the handlers, which take their time
	close(release)
	slices.Sort(answers)
	if got := "[" + strings.Join(answers, ",") + "]"; !sameJSON(got, `[{"jsonrpc":"2.0","id":"first","result":{"outcome":"cancelled"}},
		{"jsonrpc":"2.0","id":"second","result":{"outcome":"cancelled"}}]`) {
		t.Errorf("the answers are %s", got)
	}
	<-ended
	<-ended
	p.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"before"}}`)
	p.expect(`{"jsonrpc":"2.0","id":"before","result":{"outcome":"allowed"}}`)
}

// When the caller of a turn learns of its end, the contexts of all questions that were asked in it have ended: nothing
// that the user does from then on answers one.
func TestQuestionsEndBeforeTheirTurn(t *testing.T) {
	asked := make(chan context.Context)
	p, c := newPeer(t, clientRoutes(nil, func(ctx context.Context, _ *sessionParams) (*askResult, error) {
		asked <- ctx
		<-ctx.Done()
		return &askResult{"allowed"}, nil
	}), nil)
	for n := range 20 {
		turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
		p.read()
		contexts := make([]context.Context, 90)
		for i := range contexts {
			p.send(request(i, "ask", `{"sessionId":"s"}`))
			contexts[i] = <-asked
		}
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end"}}`, n+1))
		must.Get(turn.Result())(t)
		for i, ctx := range contexts {
			if !errors.Is(context.Cause(ctx), engine.ErrTurnCancelled) {
				t.Fatalf("question %d has ended with %v", i, context.Cause(ctx))
			}
		}
		for range contexts {
			if answer := p.read(); !strings.Contains(answer, `"result":{"outcome":"cancelled"}`) {
				t.Errorf("the answer is %s", answer)
			}
		}
	}
}

func TestServedTurnCancelled(t *testing.T) {
	var c *Conn
	p, c := newPeer(t, agentRoutes(func(ctx context.Context, p *promptParams) (*promptResult, error) {
		<-ctx.Done()
		if p.Prompt == "done anyway" {
			return &promptResult{"end_turn"}, nil // which does not count any more
		}
		if !errors.Is(context.Cause(ctx), rpc.ErrTurnCancelled) {
			return nil, errPlain
		}
		if err := updateMethod.Notify(ctx, c, &updateParams{SessionID: p.SessionID, N: 1}); err != nil {
			return nil, err
		}
		return nil, ctx.Err()
	}), nil)
	for i := range 200 { // the cancellation follows at once, and is never lost
		p.send(request(i, "prompt", `{"sessionId":"s","prompt":"x"}`), note("cancel", `{"sessionId":"s"}`))
		p.expect(`{"jsonrpc":"2.0","method":"update","params":{"sessionId":"s","n":1,"text":""}}`)
		p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"cancelled"}}`, i))
	}
	p.send(request("a", "prompt", `{"sessionId":"s","prompt":"done anyway"}`), note("cancel", `{"sessionId":"s"}`))
	p.expect(`{"jsonrpc":"2.0","id":"a","result":{"stopReason":"cancelled"}}`)
}

// PRM-16: cancelling an idle session does not cancel the next turn.
func TestCancelOfIdleSession(t *testing.T) {
	p, _ := newPeer(t, agentRoutes(func(ctx context.Context, p *promptParams) (*promptResult, error) {
		return &promptResult{"end_turn"}, ctx.Err()
	}), nil)
	p.send(note("cancel", `{"sessionId":"s"}`), note("cancel", `{"sessionId":"nope"}`), note("cancel", `{}`))
	p.send(request(1, "prompt", `{"sessionId":"s","prompt":"x"}`))
	p.expect(endTurn(1))
}

func TestAfterResponse(t *testing.T) {
	var c *Conn
	handling := make(chan context.Context, 1)
	open := echoMethod.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
		handling <- context.WithoutCancel(ctx)
		ok := rpc.AfterResponse(ctx, func(ctx context.Context) {
			if err := updateMethod.Notify(ctx, c, &updateParams{SessionID: "s"}); err != nil {
				t.Error(err)
			}
		})
		if !ok {
			t.Error("rpc.AfterResponse in a handler")
		}
		return p, nil
	})
	open.Opens = true
	p, c := newPeer(t, []Route{open}, nil)
	p.send(request(1, "echo", `{"n":1}`))
	p.expect(`{"jsonrpc":"2.0","id":1,"result":{"n":1}}`)
	p.expect(`{"jsonrpc":"2.0","method":"update","params":{"sessionId":"s","n":0,"text":""}}`)
	must.Do(t, updateMethod.Notify(<-handling, c, &updateParams{SessionID: "s", N: 1}))
	p.expect(`{"jsonrpc":"2.0","method":"update","params":{"sessionId":"s","n":1,"text":""}}`)
	if rpc.AfterResponse(t.Context(), func(context.Context) { t.Error("called") }) {
		t.Error("rpc.AfterResponse outside a handler")
	}
}

// A turn begins when the functions of AfterResponse of the requests before it have returned.
func TestTurnBehindAfterResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		open := echoMethod.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
			rpc.AfterResponse(ctx, func(context.Context) { <-release })
			return p, nil
		})
		open.Opens = true
		begun := false
		prompt := promptMethod.Handle(func(context.Context, *promptParams) (*promptResult, error) {
			begun = true
			return &promptResult{"end_turn"}, nil
		})
		prompt.Turn = true
		p, _ := newPeer(t, []Route{open, prompt}, nil)
		p.send(request(1, "echo", `{"sessionId":"s","n":1}`))
		p.expect(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","n":1}}`)
		p.send(request(2, "prompt", `{"sessionId":"s"}`))
		synctest.Wait()
		if begun {
			t.Error("the turn has begun")
		}
		close(release)
		p.expect(endTurn(2))
	})
}

// A session is cancelled also when its only turn of this side has not been sent yet: what the peer does
// there, and asks, may belong to something else.
func TestCancelSessionBeforeItsTurnIsSent(t *testing.T) {
	asked, held := make(chan struct{}), make(chan struct{})
	p, c := newPeer(t, clientRoutes(nil, func(ctx context.Context, _ *sessionParams) (*askResult, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}), &Options{Hooks: Hooks{Call: func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
		if call.Method == "prompt" {
			<-held
		}
		return next(ctx)
	}}})
	p.send(request("q", "ask", `{"sessionId":"s"}`))
	<-asked
	turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
	must.Do(t, c.CancelSession(t.Context(), inS))
	close(held)
	if _, err := turn.Result(); !errors.Is(err, rpc.ErrTurnCancelled) {
		t.Errorf("got %v", err)
	}
	p.expect(`{"jsonrpc":"2.0","method":"cancel","params":{"sessionId":"s"}}`)
	p.expect(`{"jsonrpc":"2.0","id":"q","result":{"outcome":"cancelled"}}`)
}
