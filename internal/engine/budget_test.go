package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/must"
)

// answerOf is a message of the peer's connection's.
type answerOf struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  *Error
}

func parseAnswer(t *testing.T, line string) (a answerOf) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(line), &a))
	return a
}

// Requests in progress have their bytes. One more is refused; a cancellation and the answer to a call of this side
// pass all the same, and so does a long request that is alone.
func TestRequestsHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Conn
		release := make(chan struct{})
		block := RequestMethod[updateParams, echoParams]{Name: "block"}.Handle(func(ctx context.Context, _ *updateParams) (*echoParams, error) {
			select {
			case <-release:
				return &echoParams{}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		p, c := newPeer(t, []Route{block}, &Options{MaxBytes: 1 << 20})
		send := func(id any, size int) {
			p.send(request(id, "block", `{"text":"`+strings.Repeat("x", size)+`"}`))
			synctest.Wait()
		}
		for id := range 4 {
			send(id, 100<<10)
		}
		if len(p.lines) > 0 {
			t.Fatalf("the peer was sent %s", <-p.lines)
		}
		send(4, 100<<10)
		if a := parseAnswer(t, p.read()); string(a.ID) != "4" || a.Error == nil || a.Error.Code != rpc.ErrInternal {
			t.Errorf("the fifth: %+v", a)
		}
		send(strings.Repeat("5", 100<<10), 0) // it keeps its id too
		if a := parseAnswer(t, p.read()); a.Error == nil || len(a.ID) < 100<<10 {
			t.Errorf("the sixth: %.100v", a)
		}

		called := going(func() error { _, err := echoMethod.Call(t.Context(), c, &echoParams{}); return err })
		p.read()
		p.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		must.Do(t, <-called)

		p.send(note("$/cancel_request", `{"requestId":2}`))
		if a := parseAnswer(t, p.read()); string(a.ID) != "2" || a.Error == nil || a.Error.Code != rpc.ErrRequestCancelled {
			t.Errorf("the cancelled: %+v", a)
		}
		send(6, 100<<10)
		if len(p.lines) > 0 {
			t.Errorf("there is room again, but the peer was sent %s", <-p.lines)
		}
		for range 4 {
			release <- struct{}{}
			p.read()
		}
		send(7, 2<<20)
		close(release)
		if a := parseAnswer(t, p.read()); a.Error != nil {
			t.Errorf("the one that is alone: %+v", a.Error)
		}
	})
}

// reserving serves "make", whose handler reserves n bytes, says so, and answers with as many when it is told to.
func reserving(reserved chan<- int, answer <-chan struct{}) Route {
	return RequestMethod[echoParams, updateParams]{Name: "make"}.Handle(func(ctx context.Context, p *echoParams) (*updateParams, error) {
		if err := rpc.Reserve(ctx, p.N); err != nil {
			return nil, err
		}
		reserved <- p.N
		<-answer
		return &updateParams{Text: strings.Repeat("x", p.N)}, nil
	})
}

// What handlers reserve is granted in the order in which they ask, as far as there is room; what is alone always has it.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reserved, answer := make(chan int, 100), make(chan struct{})
		p, _ := newPeer(t, []Route{reserving(reserved, answer)}, &Options{MaxBytes: 8_000_000}) // an eighth of them for answers
		ask := func(id, n int) {
			p.send(request(id, "make", fmt.Sprintf(`{"n":%d000}`, n)))
			synctest.Wait()
		}
		want := func(sizes ...int) {
			t.Helper()
			synctest.Wait()
			for _, n := range sizes {
				select {
				case got := <-reserved:
					if got != 1000*n {
						t.Errorf("got %d, want %d", got, n)
					}
				default:
					t.Errorf("%d was not reserved", n)
				}
			}
			if len(reserved) > 0 {
				t.Errorf("%d was reserved too", <-reserved)
			}
		}
		ask(1, 5000) // alone
		want(5000)
		ask(2, 400)
		ask(3, 400)
		ask(4, 900)
		ask(5, 100)
		want()
		answer <- struct{}{}
		want(400, 400) // the last waits behind 900, which would never have its turn
		p.send(note("$/cancel_request", `{"requestId":4}`))
		want(100)
		for range 3 {
			answer <- struct{}{}
		}
		for range 5 {
			p.read()
		}
	})
}

// Another reservation of a request takes the place of its first, and never waits.
func TestReserveAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reserved, answer := make(chan int, 100), make(chan struct{})
		grow := RequestMethod[echoParams, echoParams]{Name: "grow"}.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
			if err := rpc.Reserve(ctx, 300_000); err != nil {
				return nil, err
			}
			return &echoParams{}, rpc.Reserve(ctx, p.N)
		})
		p, _ := newPeer(t, []Route{reserving(reserved, answer), grow}, &Options{MaxBytes: 8_000_000})
		p.send(request(1, "make", `{"n":500000}`))
		<-reserved
		p.send(request(2, "grow", `{"n":500000}`))
		p.expect(`{"jsonrpc":"2.0","id":2,"result":{"n":0}}`)
		p.send(request(3, "grow", `{"n":500001}`))
		if a := parseAnswer(t, p.read()); a.Error == nil || a.Error.Code != rpc.ErrInternal || !strings.Contains(a.Error.Message, "large answers") {
			t.Errorf("got %+v", a)
		}
		p.send(request(4, "make", `{"n":500000}`)) // what the others had is free
		<-reserved
		p.send(request(5, "grow", `{"n":0}`))
		synctest.Wait()
		if len(p.lines) > 0 {
			t.Errorf("there is no room, but the peer was sent %s", <-p.lines)
		}
		close(answer)
		for range 3 {
			p.read()
		}
		if err := rpc.Reserve(t.Context(), 1<<40); err != nil {
			t.Error("outside of a request:", err)
		}
	})
}

func updateOf(session int) string {
	return note("update", fmt.Sprintf(`{"sessionId":"s%d","n":1,"text":%q}`, session, strings.Repeat("x", 100))) + "\n"
}

// loops begins turns of which nobody reads the updates.
func loops(t *testing.T, n int, opts *Options) (p *rawPeer, c *Conn, turns []*Turn[int, promptResult]) {
	opts.CancelGrace = 1
	p, c = newPeer(t, clientRoutes(nil, nil), opts)
	for i := range n {
		session := fmt.Sprintf("s%d", i)
		spec := TurnSpec{Session: session, CancelMethod: "cancel", CancelParams: &sessionParams{session}}
		turns = append(turns, engine.StartTurn(t.Context(), c, promptMethod, &promptParams{session, "go"}, spec, pickUpdate))
		p.read()
	}
	return p, c, turns
}

// Commas in texts separate no values, and what is kept as text takes no more memory than that.
func TestCommasInTextsAreNoValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPeer(t, []Route{RequestMethod[struct{ CSV string }, echoParams]{Name: "csv"}.Handle(
			func(_ context.Context, p *struct{ CSV string }) (*echoParams, error) {
				return &echoParams{N: len(p.CSV)}, nil
			})}, &Options{MaxBytes: 1 << 20}) // 4096 values
		p.send(request(1, "csv", `{"csv":"\"`+strings.Repeat(`,`, 10_000)+`\\"}`))
		p.expect(`{"jsonrpc":"2.0","id":1,"result":{"n":10002}}`)

		list := "[0" + strings.Repeat(",0", 10_000) + "]"
		called := going(func() error {
			raw, err := engine.CallRaw[json.RawMessage](t.Context(), c, "list", nil)
			if err == nil && string(*raw) != list {
				err = fmt.Errorf("got %.100s", *raw)
			}
			return err
		})
		p.read()
		p.send(`{"jsonrpc":"2.0","id":1,"result":` + list + `}`)
		must.Do(t, <-called)
	})
}

// A loop that waits for other loops continues when they are read, also while its body waits for a call on another
// connection, whose answer may need what the reader of this one holds up.
func TestLoopsMakeRoomForOneThatCallsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, elsewhere := newPeer(t, nil, nil)
		p, c, turns := loops(t, 2, &Options{QueueBytes: 4 << 10, QueueLimit: 64 << 10})
		answered := make(chan error, 2)
		go func() {
			_, err := echoMethod.Call(t.Context(), c, &echoParams{}) // so that loops may have more
			answered <- err
		}()
		p.read()
		go func() {
			for range turns[0].Updates() {
				_, err := echoMethod.Call(turns[0].Context(), elsewhere, &echoParams{})
				answered <- err
				return
			}
		}()
		p.send(updateOf(0))
		other.read()
		const n = 180 // about 60 KiB, as they count
		for range n {
			p.send(updateOf(1))
		}
		synctest.Wait() // or the other loop takes its share first, and this one is ended instead
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range n {
				p.send(updateOf(0))
			}
		}()
		synctest.Wait()
		select {
		case <-sent:
			t.Error("one loop had all that was left")
		default:
		}
		turns[1].Discard()
		synctest.Wait()
		select {
		case <-sent:
		default:
			t.Error("nothing more is read although there is room")
		}
		other.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		must.Do(t, <-answered)
		<-sent
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, len(turns)+1))
		must.Do(t, <-answered)
		for _, turn := range turns {
			turn.Cancel()
		}
	})
}
