package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// newDeafPeer connects a Conn to a peer that reads only what the test reads from r.
func newDeafPeer(t *testing.T, routes []Route, opts *Options) (p *rawPeer, r *bufio.Reader, c *Conn) {
	t.Helper()
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	c, err := Connect(t.Context(), rpc.IO(r1, w2, 0), func(*Conn) []Route { return routes }, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r2.Close()
		w1.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rawPeer{t: t, w: w1}, bufio.NewReader(r2), c
}

// fillWriter sends until nothing more is taken. It is for a synctest bubble, where waiting costs nothing.
func fillWriter(t *testing.T, c *Conn) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := updateMethod.Notify(ctx, c, &updateParams{Text: strings.Repeat("x", 100<<10)})
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The agent that one cancels is often one that hangs. Rule 6: that takes the grace, and not longer.
func TestTurnCancelledWhilePeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		p, r, c := newDeafPeer(t, clientRoutes(nil, func(ctx context.Context, _ *sessionParams) (*askResult, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		}), &Options{CancelGrace: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := engine.RunTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS)
			done <- err
		}()
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		p.send(request("q", "ask", `{"sessionId":"s"}`))
		receive(t, asked)
		fillWriter(t, c)
		start := time.Now()
		cancel()
		if err := receive(t, done); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("gave up after %v", d)
		}
	})
}

// What a cancelled turn answers at once is answered by the reader, which must go on reading a peer that
// does not read: that might be waiting for it likewise.
func TestQuestionOfCancelledTurnWhilePeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pinged := make(chan struct{})
		ping := NotificationMethod[echoParams]{Name: "ping"}.Handle(func(context.Context, *echoParams) error {
			close(pinged)
			return nil
		})
		p, r, c := newDeafPeer(t, append(clientRoutes(nil, func(context.Context, *sessionParams) (*askResult, error) {
			return &askResult{"selected"}, nil
		}), ping), &Options{CancelGrace: time.Hour})
		turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		fillWriter(t, c)
		turn.Cancel()
		synctest.Wait()
		p.send(request("q", "ask", `{"sessionId":"s"}`) + "\n" + note("ping", `{}`))
		receive(t, pinged)
	})
}

// A turn that is over holds up nobody, whether somebody reads its updates or not.
func TestFinishedTurnThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPeer(t, clientRoutes(nil, nil), &Options{QueueBytes: 200, CancelGrace: time.Second})
		turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
		p.read()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for i := range 100 {
				p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)))
			}
		}()
		turn.Cancel()
		p.expect(`{"jsonrpc":"2.0","method":"cancel","params":{"sessionId":"s"}}`)
		p.expect(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
		receive(t, turn.Done())
		receive(t, sent)
		done := make(chan error, 1)
		go func() {
			_, err := echoMethod.Call(t.Context(), c, &echoParams{SessionID: "s"})
			done <- err
		}()
		p.read()
		p.send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	})
}

// Session ids are the peer's to choose, so none may be remembered for longer than something goes on.
func TestSessionsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(context.Context, *sessionParams) (*askResult, error) { return &askResult{"selected"}, nil }
		p, c := newPeer(t, clientRoutes(func(context.Context, *updateParams) error { return nil }, ask), nil)
		done := make(chan error, 1)
		for i := range 20 {
			session := func(kind string) string { return fmt.Sprintf(`{"sessionId":"%s%d"}`, kind, i) }
			go func() {
				_, err := engine.CallRaw[echoParams](t.Context(), c, "new", nil)
				done <- err
			}()
			p.read()
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, 2*i+1, session("new")))
			if err := receive(t, done); err != nil {
				t.Fatal(err)
			}
			go func() {
				id := fmt.Sprintf("turn%d", i)
				_, err := engine.RunTurn(t.Context(), c, promptMethod, &promptParams{id, "go"}, TurnSpec{Session: id})
				done <- err
			}()
			p.read()
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, 2*i+2))
			if err := receive(t, done); err != nil {
				t.Fatal(err)
			}
			p.send(note("update", session("updated")), request("q", "ask", session("asked")))
			p.read()
		}
		synctest.Wait()
		for id := range engine.Sessions(c) {
			t.Errorf("session %q is remembered", id)
		}
	})
}

// What a peer makes us hold does not grow with the number of sessions that it names.
func TestNotificationsOfManySessions(t *testing.T) {
	for name, opts := range map[string]*Options{
		"workers": {MaxRequests: 10},
		"bytes":   {QueueBytes: 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 200
				var handled atomic.Int32
				release := make(chan struct{})
				p, _ := newPeer(t, clientRoutes(func(context.Context, *updateParams) error {
					handled.Add(1)
					<-release
					return nil
				}, nil), opts)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for i := range n {
						p.send(note("update", fmt.Sprintf(`{"sessionId":"s%d","n":0}`, i)))
					}
				}()
				synctest.Wait()
				if n := handled.Load(); n == 0 || n > 20 {
					t.Errorf("%d handlers at a time", n)
				}
				close(release)
				receive(t, sent)
				synctest.Wait()
				if handled.Load() != n {
					t.Errorf("%d of %d notifications handled", handled.Load(), n)
				}
			})
		})
	}
}

// But where handlers wait for calls, which the reader must end, it goes on.
func TestCallsFromHandlersOfManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		var c *Conn
		done := make(chan error, n)
		p, c := newPeer(t, clientRoutes(func(ctx context.Context, u *updateParams) error {
			_, err := echoMethod.Call(ctx, c, &echoParams{SessionID: u.SessionID})
			done <- err
			return nil
		}, nil), &Options{MaxRequests: 2, QueueBytes: 100})
		for i := range n {
			p.send(note("update", fmt.Sprintf(`{"sessionId":"s%d","n":0}`, i)))
		}
		for range n {
			var call struct{ ID int }
			if err := json.Unmarshal([]byte(p.read()), &call); err != nil {
				t.Fatal(err)
			}
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, call.ID))
			if err := receive(t, done); err != nil {
				t.Error(err)
			}
		}
	})
}

// Whoever holds up a queue that reaches its limit must let go at once: the grace of a cancelled turn
// would hold it up further.
func TestOverflowFailsTheTurnOfAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Conn
		done := make(chan error, 1)
		p, c := newPeer(t, clientRoutes(func(ctx context.Context, u *updateParams) error {
			if u.N == 0 {
				_, err := engine.RunTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS)
				done <- err
			}
			return nil
		}, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
		start := time.Now()
		for i := range 100 {
			p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)))
		}
		if err := receive(t, done); !errors.Is(err, rpc.ErrOverflow) {
			t.Error(err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the turn was given up after %v", d)
		}
	})
}

// The limit holds for a loop over updates as it does for a handler.
func TestOverflowFailsTheCallOfALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPeer(t, clientRoutes(nil, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
		turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
		p.read()
		go func() {
			for i := range 100 {
				p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)))
			}
			p.send(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`)
		}()
		seen := 0
		for u := range turn.Updates() {
			if seen++; u == 0 {
				if _, err := echoMethod.Call(turn.Context(), c, &echoParams{}); !errors.Is(err, rpc.ErrOverflow) {
					t.Error(err)
				}
			}
		}
		if _, err := turn.Result(); err != nil || seen != 100 {
			t.Errorf("%d updates, %v", seen, err)
		}
	})
}

// Of a call that the body of a loop makes with another context nobody knows that the loop waits for it: at the limit
// the loop ends, and says so, and the call is answered.
func TestOverflowEndsALoopThatCallsWithAnotherContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPeer(t, clientRoutes(nil, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
		turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
		p.read()
		go func() {
			for i := range 100 {
				p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)))
			}
			<-p.lines // the call
			p.send(`{"jsonrpc":"2.0","id":2,"result":{"n":7}}`, `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`)
		}()
		synctest.Wait() // the loop holds up the reader
		seen := 0
		for range turn.Updates() {
			if seen++; seen == 1 {
				if res, err := echoMethod.Call(t.Context(), c, &echoParams{}); err != nil || res.N != 7 {
					t.Error(res, err)
				}
			}
		}
		if _, err := turn.Result(); !errors.Is(err, rpc.ErrOverflow) || seen == 100 {
			t.Errorf("%d updates, %v", seen, err)
		}
	})
}

// A loop that does not call holds the peer up, however much waits, and whatever calls of its have failed before.
func TestSlowLoopHoldsThePeerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPeer(t, clientRoutes(nil, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
		turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
		p.read()
		var sent atomic.Int32
		go func() {
			for i := range 1000 {
				p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)))
				sent.Add(1)
			}
			p.send(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`)
		}()
		seen := 0
		for range turn.Updates() {
			switch seen++; seen {
			case 1:
				if _, err := echoMethod.Call(turn.Context(), c, &echoParams{}); !errors.Is(err, rpc.ErrOverflow) {
					t.Error(err)
				}
			case 2:
				synctest.Wait()
				if n := sent.Load(); n > 100 {
					t.Errorf("%d updates were read while the loop did nothing", n)
				}
			}
		}
		if _, err := turn.Result(); err != nil || seen != 1000 {
			t.Errorf("%d updates, %v", seen, err)
		}
	})
}

// What the body of one loop calls is not taken for a call of another's, whose own backlog fails nobody else.
func TestOverflowOfOneLoopLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPeer(t, clientRoutes(nil, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
		start := func(session string) *Turn[int, promptResult] {
			spec := TurnSpec{Session: session, CancelMethod: "cancel", CancelParams: &sessionParams{session}}
			turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{session, "go"}, spec, pickUpdate)
			p.read()
			return turn
		}
		a, b := start("a"), start("b")
		release := make(chan struct{})
		var loops sync.WaitGroup
		seen := 0
		loops.Go(func() { // a is slow, and calls nobody
			for range a.Updates() {
				<-release
				seen++
			}
		})
		loops.Go(func() {
			for range b.Updates() {
				res, err := engine.RunTurn(b.Context(), c, promptMethod, &promptParams{"c", "go"}, TurnSpec{Session: "c", CancelMethod: "cancel"})
				if err != nil || res.StopReason != "inner" {
					t.Errorf("the turn that b's loop waits for: %v, %v", res, err)
				}
			}
		})
		p.send(note("update", `{"sessionId":"b","n":0}`))
		p.read() // the prompt in c, of id 3
		for i := range 100 {
			p.send(note("update", fmt.Sprintf(`{"sessionId":"a","n":%d}`, i)))
		}
		p.send(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"inner"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"a"}}`, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"b"}}`)
		synctest.Wait()
		close(release)
		loops.Wait()
		if res, err := b.Result(); err != nil || res.StopReason != "b" {
			t.Errorf("b: %v, %v", res, err)
		}
		// More waited for a than may while others call.
		if _, err := a.Result(); !errors.Is(err, rpc.ErrOverflow) {
			t.Errorf("a: %d updates, %v", seen, err)
		}
		if len(p.lines) > 0 {
			t.Errorf("the peer was sent %s", <-p.lines)
		}
	})
}

// A handler that waits for a turn that it has started in the background holds its queue up as one that
// runs a turn does: at the limit the turn fails.
func TestOverflowFailsTheTurnThatAHandlerStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan error, 1)
		var c *Conn
		p, c := newPeer(t, clientRoutes(func(ctx context.Context, u *updateParams) error {
			if u.N == 0 {
				_, err := engine.StartTurn(ctx, c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate).Result()
				done <- err
			}
			return nil
		}, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
		for i := range 100 {
			p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, i)))
		}
		if err := receive(t, done); !errors.Is(err, rpc.ErrOverflow) {
			t.Error(err)
		}
	})
}
