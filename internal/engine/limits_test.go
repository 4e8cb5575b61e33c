package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/must"
)

// newDeafPeer connects a Conn to a peer that reads only what the test reads from r.
func newDeafPeer(t *testing.T, routes []Route, opts *Options) (p *rawPeer, r *bufio.Reader, c *Conn) {
	t.Helper()
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	c = must.Get(Connect(t.Context(), rpc.IO(r1, w2, 0), func(*Conn) []Route { return routes }, opts))(t)
	t.Cleanup(func() {
		r2.Close()
		w1.Close()
		must.Do(t, c.Close())
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

// What a cancelled turn answers at once is answered by the reader, which must continue reading a peer that
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
		must.Get(r.ReadString('\n'))(t)
		fillWriter(t, c)
		turn.Cancel()
		synctest.Wait()
		p.send(request("q", "ask", `{"sessionId":"s"}`) + "\n" + note("ping", `{}`))
		<-pinged
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
				<-sent
				synctest.Wait()
				if handled.Load() != n {
					t.Errorf("%d of %d notifications handled", handled.Load(), n)
				}
			})
		})
	}
}

// The limit holds for a loop over updates as it does for a handler: a call that its body makes with the context of the
// turn fails. Of one with another context nobody knows that the loop waits for it: the loop ends, and says so, and the
// call is answered.
func TestOverflowOfALoopThatCalls(t *testing.T) {
	for name, test := range map[string]struct {
		other        bool
		called, turn error
	}{
		"with its context":     {false, rpc.ErrOverflow, nil},
		"with another context": {true, nil, rpc.ErrOverflow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, c := newPeer(t, clientRoutes(nil, nil), &Options{QueueBytes: 100, QueueLimit: 1000})
				turn := engine.StartTurn(t.Context(), c, promptMethod, &promptParams{"s", "go"}, inS, pickUpdate)
				p.read()
				go func() {
					p.updates(0, 100)
					if test.other {
						<-p.lines // the call
						p.send(`{"jsonrpc":"2.0","id":2,"result":{"n":7}}`)
					}
					p.send(endTurn(1))
				}()
				synctest.Wait() // the loop holds up the reader
				ctx := turn.Context()
				if test.other {
					ctx = t.Context()
				}
				seen := 0
				for range turn.Updates() {
					if seen++; seen == 1 {
						if res, err := echoMethod.Call(ctx, c, &echoParams{}); !errors.Is(err, test.called) || err == nil && res.N != 7 {
							t.Error(res, err)
						}
					}
				}
				if _, err := turn.Result(); !errors.Is(err, test.turn) || (seen == 100) != (err == nil) {
					t.Errorf("%d updates, %v", seen, err)
				}
			})
		})
	}
}

// A handler that waits for a turn that it has started in the background holds its queue up as one that
// runs a turn does: at the limit the turn fails. The turn's answer ends it although updates wait for the handler.
func TestOverflowFailsTheTurnThatAHandlerStarted(t *testing.T) {
	for updates, want := range map[int]error{100: rpc.ErrOverflow, 3: nil} {
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
			p.updates(0, updates)
			synctest.Wait()
			if want == nil {
				p.send(endTurn(1))
			}
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("%d updates: %v", updates, err)
			}
		})
	}
}
