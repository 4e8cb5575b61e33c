package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/test/must"
)

func echo(ctx context.Context, p *echoParams) (*echoParams, error) { return p, nil }

var echoMethod = RequestMethod[echoParams, echoParams]{Name: "echo"}

func TestIDsAreEchoed(t *testing.T) {
	p, _ := newPeer(t, []Route{echoMethod.Handle(echo)}, nil)
	for _, id := range []string{
		`0`, `1`, `-1`, `9007199254740993`, `9223372036854775807`, `-9223372036854775808`,
		`18446744073709551615`, `1.5`, `1e2`, `-0`, `""`, `"1"`, `"\u0000é\ud83d\ude00"`, `null`,
	} {
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"echo","params":{"n":1}}`)
		got := p.read()
		env := parseAnswer(t, got)
		if !sameJSON(string(env.ID), id) || id[0] != '"' && string(env.ID) != id {
			t.Errorf("id %s came back in %s", id, got)
		}
	}
}

// An id that no string can hold comes back as it was, and is told from others of its kind.
func TestIDsThatAreNoText(t *testing.T) {
	block := RequestMethod[echoParams, echoParams]{Name: "block"}
	p, _ := newPeer(t, []Route{echoMethod.Handle(echo), block.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})}, nil)
	for _, id := range []string{`"\ud800x"`, `"\udfffx"`, `"\ud800\ud800"`} {
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"echo","params":{"n":1}}`)
		if got, want := p.read(), `{"jsonrpc":"2.0","id":`+id+`,"result":{"n":1}}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"block"}`)
	}
	p.send(note("$/cancel_request", `{"requestId":"\udfffx"}`))
	if got := p.read(); !strings.Contains(got, `"id":"\udfffx","error":{"code":-32800`) {
		t.Errorf("got %s", got)
	}
}

func TestBadInput(t *testing.T) {
	failing := RequestMethod[echoParams, echoParams]{Name: "fail"}
	panicking := RequestMethod[echoParams, echoParams]{Name: "panic"}
	public := RequestMethod[echoParams, echoParams]{Name: "public"}
	var panics atomic.Int32
	p, _ := newPeer(t, []Route{
		echoMethod.Handle(echo),
		failing.Handle(func(context.Context, *echoParams) (*echoParams, error) { return nil, errPlain }),
		public.Handle(func(context.Context, *echoParams) (*echoParams, error) {
			return nil, fmt.Errorf("more: %w", rpc.Public(errors.New("no such branch")))
		}),
		panicking.Handle(func(context.Context, *echoParams) (*echoParams, error) { panic("boom") }),
		RequestMethod[echoParams, echoParams]{Name: "unhandled"}.Handle(nil),
	}, &Options{Hooks: Hooks{Panic: func(string, any, []byte) { panics.Add(1) }}})

	for _, test := range []struct {
		name, line, id string
		code           rpc.Code
	}{
		{"not JSON", `{"jsonrpc":"2.0","id":1,"method":"echo",}`, `null`, rpc.ErrParse},
		{"cut off", `{"jsonrpc":"2.0","id":1,`, `null`, rpc.ErrParse},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"s\":\"\xff\"}}", `null`, rpc.ErrParse},
		{"two values", request(1, "echo", `{}`) + request(2, "echo", `{}`), `null`, rpc.ErrParse},
		{"byte order mark", "\xef\xbb\xbf" + request(1, "echo", `{}`), `null`, rpc.ErrParse},
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"echo","params":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`, `1`, rpc.ErrInvalidRequest},
		{"batch", `[` + request(1, "echo", `{}`) + `]`, `null`, rpc.ErrInvalidRequest},
		{"empty batch", `[]`, `null`, rpc.ErrInvalidRequest},
		{"number", `42`, `null`, rpc.ErrInvalidRequest},
		{"empty object", `{}`, `null`, rpc.ErrInvalidRequest},
		{"wrong version", `{"jsonrpc":"1.0","id":7,"method":"echo"}`, `7`, rpc.ErrInvalidRequest},
		{"no version", `{"id":"a","method":"echo"}`, `"a"`, rpc.ErrInvalidRequest},
		{"wrong version in a notification", `{"jsonrpc":2,"method":"echo"}`, `null`, rpc.ErrInvalidRequest},
		{"id is an object", `{"jsonrpc":"2.0","id":{},"method":"echo"}`, `null`, rpc.ErrInvalidRequest},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}`, `2`, rpc.ErrInvalidRequest},
		{"method is a number", `{"jsonrpc":"2.0","id":3,"method":1}`, `3`, rpc.ErrInvalidRequest},
		{"method and result", `{"jsonrpc":"2.0","id":3,"method":"echo","result":1}`, `3`, rpc.ErrInvalidRequest},
		{"wrong case", `{"jsonrpc":"2.0","ID":3,"Method":"echo"}`, `null`, rpc.ErrInvalidRequest},
		{"unknown method", request(4, "nope", `{}`), `4`, rpc.ErrMethodNotFound},
		{"no handler", request(4, "unhandled", `{}`), `4`, rpc.ErrMethodNotFound},
		{"wrong params", request(5, "echo", `{"n":"x"}`), `5`, rpc.ErrInvalidParams},
		{"params are an array", request(5, "echo", `[1]`), `5`, rpc.ErrInvalidParams},
		{"handler fails", request(6, "fail", `{"n":1}`), `6`, rpc.ErrInternal},
		{"handler fails in public", request(6, "public", `{"n":1}`), `6`, rpc.ErrInternal},
		{"handler panics", request(7, "panic", `{"n":1}`), `7`, rpc.ErrInternal},
	} {
		t.Run(test.name, func(t *testing.T) {
			p.send(test.line)
			got := p.read()
			env := parseAnswer(t, got)
			if string(env.ID) != test.id || env.Error == nil || env.Error.Code != test.code {
				t.Errorf("got %s, want id %s and code %d", got, test.id, test.code)
			}
			if strings.Contains(got, "hunter2") || strings.Contains(got, "boom") || strings.Contains(got, ".go") {
				t.Errorf("our internals in %s", got)
			}
			if strings.Contains(test.name, "public") != strings.Contains(got, "no such branch") {
				t.Errorf("public text: %s", got)
			}
			p.send(request("alive", "echo", `{"n":2}`))
			p.expect(`{"jsonrpc":"2.0","id":"alive","result":{"n":2}}`)
		})
	}
	if panics.Load() != 1 {
		t.Errorf("%d panics reported", panics.Load())
	}
}

func TestNothingIsAnswered(t *testing.T) {
	var invalid atomic.Int32
	p, _ := newPeer(t, []Route{echoMethod.Handle(echo)}, &Options{
		Hooks: Hooks{Invalid: func([]byte, error) { invalid.Add(1) }},
	})
	for _, line := range []string{
		``, `   `, "\r",
		note("nope", `{}`), note("$/nope", `{}`),
		`{"jsonrpc":"2.0","id":77,"result":{}}`,
		`{"jsonrpc":"2.0","id":"1","result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}`,
		`{"jsonrpc":"1.0","id":5,"result":{}}`,
		`{"id":5,"result":1,"error":{}}`,
		note("$/cancel_request", `{"requestId":5}`),
		note("$/cancel_request", `{"requestId":{}}`),
		note("$/cancel_request", `{}`),
	} {
		p.send(line)
		p.send(request(1, "echo", `{"n":3}`))
		if got := p.read(); !strings.Contains(got, `"n":3`) {
			t.Errorf("%s was answered: %s", line, got)
		}
	}
	if invalid.Load() != 8 {
		t.Errorf("%d reports of invalid messages", invalid.Load())
	}
}

func TestCall(t *testing.T) {
	p, c := newPeer(t, nil, nil)
	var res *echoParams
	call := func() <-chan error {
		return going(func() (err error) { res, err = echoMethod.Call(t.Context(), c, &echoParams{N: 1}); return err })
	}

	done := call()
	p.expect(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"n":1}}`)
	p.send(`{"jsonrpc":"2.0","id":1,"result":{"n":5}}`)
	if err := <-done; err != nil || res.N != 5 {
		t.Errorf("got %+v, %v", res, err)
	}

	done = call()
	p.read()
	p.send(`{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"gone","data":{"n":12345678901234567890}}}`)
	err := <-done
	e, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(err, rpc.ErrResourceNotFound) || string(e.Data) != `{"n":12345678901234567890}` {
		t.Errorf("got %v", err)
	}

	for i, answer := range []string{
		`"result":{"n":"x"}`, `"result":1,"error":{}`, `"error":"oops"`, `"error":{"code":"x"}`,
	} {
		done = call()
		p.read()
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i+3, answer))
		if err := <-done; err == nil || errors.Is(err, rpc.ErrClosed) {
			t.Errorf("%s: got %+v, %v", answer, res, err)
		}
	}
}

// mended is a value that is always repaired.
type mended struct{}

// EncodeJSON implements codec.Value.
func (*mended) EncodeJSON(e *codec.Encoder) { e.Null() }

// DecodeJSON implements codec.Value.
func (*mended) DecodeJSON(d *codec.Decoder) {
	m := d.Mark()
	d.Skip()
	d.Repair(m, "it is not read")
}

// What was repaired in a result is reported once, however the response is written.
func TestRepairedResults(t *testing.T) {
	var repaired []string
	opts := &Options{Hooks: Hooks{Repair: func(method string, r codec.Repair) { repaired = append(repaired, method+": "+r.Msg) }}}
	p, c := newPeer(t, nil, opts)
	for id, form := range []string{`{"jsonrpc":"2.0","id":%d,"result":{}}`, `{"id":%d,"result":{},"jsonrpc":"2.0"}`} {
		done := going(func() error {
			_, err := RequestMethod[sessionParams, mended]{Name: "m"}.Call(t.Context(), c, &sessionParams{})
			return err
		})
		p.read()
		p.send(fmt.Sprintf(form, id+1))
		must.Do(t, <-done)
	}
	if want := []string{"m: it is not read", "m: it is not read"}; !slices.Equal(repaired, want) {
		t.Errorf("got %q, want %q", repaired, want)
	}
}

func TestCallCancelled(t *testing.T) {
	p, c := newPeer(t, nil, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := going(func() error { _, err := echoMethod.Call(ctx, c, &echoParams{N: 1}); return err })
	p.read()
	why := errors.New("changed my mind")
	cancel(why)
	p.expect(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	if err := <-done; !errors.Is(err, why) {
		t.Error(err)
	}
	p.send(`{"jsonrpc":"2.0","id":1,"result":{"n":5}}`) // late, and absorbed
	done = going(func() error { _, err := echoMethod.Call(t.Context(), c, &echoParams{N: 1}); return err })
	p.read()
	p.send(`{"jsonrpc":"2.0","id":2,"result":{"n":5}}`)
	must.Do(t, <-done)
}

func TestCancelRequest(t *testing.T) {
	block := RequestMethod[echoParams, echoParams]{Name: "block"}
	p, _ := newPeer(t, []Route{block.Handle(func(ctx context.Context, p *echoParams) (*echoParams, error) {
		<-ctx.Done()
		if p.N == 1 {
			return p, nil // it was done after all
		}
		return nil, ctx.Err()
	})}, nil)
	for _, id := range []any{"1", 1, nil} {
		p.send(request(id, "block", `{"n":2}`))
	}
	p.send(note("$/cancel_request", `{"requestId":1}`))
	p.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"Request cancelled"}}`)
	p.send(note("$/cancel_request", `{"requestId":null}`))
	p.expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32800,"message":"Request cancelled"}}`)
	p.send(note("$/cancel_request", `{"requestId":"1"}`))
	p.expect(`{"jsonrpc":"2.0","id":"1","error":{"code":-32800,"message":"Request cancelled"}}`)
	p.send(request(2, "block", `{"n":1}`), note("$/cancel_request", `{"requestId":2}`))
	p.expect(`{"jsonrpc":"2.0","id":2,"result":{"n":1}}`)
	// Numbers are compared by value, and come back as they were written.
	for id, cancel := range map[string]string{"7": "7.0", "8.0": "8", "9e0": "90E-1", "-0": "0", "0.5": "0.5", "1e99": "1e99"} {
		p.send(`{"jsonrpc":"2.0","id":`+id+`,"method":"block"}`, note("$/cancel_request", `{"requestId":`+cancel+`}`))
		if got := p.read(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32800,`) {
			t.Errorf("request %s, cancelled as %s: %s", id, cancel, got)
		}
	}
}

// Nobody answers these messages, so the log says once for each kind that they were dropped.
func TestDroppedMessagesAreLogged(t *testing.T) {
	var log lockedBuffer
	update := NotificationMethod[echoParams]{Name: "update"}
	p, _ := newPeer(t, []Route{
		echoMethod.Handle(echo),
		update.Handle(func(context.Context, *echoParams) error { return nil }),
	}, &Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	for range 3 {
		p.send(
			note("update", `{"n":"no number"}`),
			`{"jsonrpc":"2.0","id":77,"result":{}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
			`output that is not a message`,
		)
		if got := p.read(); !strings.Contains(got, `"code":-32700`) {
			t.Errorf("got %s", got)
		}
	}
	p.send(request(1, "echo", `{"n":3}`))
	p.expect(`{"jsonrpc":"2.0","id":1,"result":{"n":3}}`)
	for _, kind := range []string{
		"a notification that cannot be read", "a response that belongs to no request", "a line that is not a message, probably printed to standard output by mistake",
	} {
		if n := strings.Count(log.String(), "dropped "+kind); n != 1 {
			t.Errorf("%d warnings of %s:\n%s", n, kind, log.String())
		}
	}
}

// lockedBuffer is a buffer for a logger.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestOrderAndBarrier(t *testing.T) {
	const n = 2000
	var got []int
	update := NotificationMethod[echoParams]{Name: "update"}
	p, c := newPeer(t, []Route{update.Handle(func(_ context.Context, p *echoParams) error {
		got = append(got, p.N)
		return nil
	})}, &Options{QueueBytes: 1000})
	done := going(func() error {
		_, err := echoMethod.Call(t.Context(), c, &echoParams{SessionID: "s"})
		if err == nil && len(got) != n {
			err = fmt.Errorf("%d of %d updates before the answer", len(got), n)
		}
		return err
	})
	p.read()
	p.updates(0, n)
	p.send(`{"jsonrpc":"2.0","id":1,"result":{"n":5}}`)
	must.Do(t, <-done)
	if !slices.IsSorted(got) {
		t.Error("out of order")
	}
}

func TestOverflowFailsTheCall(t *testing.T) {
	for name, opts := range map[string]*Options{
		"the limit of all queues": {QueueBytes: 100, QueueLimit: 1000},
		"the limit of the queue":  {QueueBytes: 500, QueueLimit: 600},
	} {
		t.Run(name, func(t *testing.T) {
			update := NotificationMethod[echoParams]{Name: "update"}
			var c *Conn
			var handled atomic.Int32
			results := make(chan error, 1)
			p, c := newPeer(t, []Route{update.Handle(func(ctx context.Context, p *echoParams) error {
				if handled.Add(1) == 1 {
					_, err := echoMethod.Call(ctx, c, p)
					results <- err
				}
				return nil
			})}, opts)
			p.updates(0, 200)
			if err := <-results; !errors.Is(err, rpc.ErrOverflow) {
				t.Error(err)
			}
			go echoMethod.Call(t.Context(), c, &echoParams{SessionID: "s", N: -1})
			line := p.read()
			for !strings.Contains(line, `"n":-1`) { // the first call is sent unless the queue is full before that
				line = p.read()
			}
			var second struct{ ID int }
			must.Do(t, json.Unmarshal([]byte(line), &second))
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, second.ID))
			p.send(note("$/end", `{}`))
			engine.AwaitHandled(c, "s")
			if handled.Load() != 200 {
				t.Errorf("%d of 200 updates handled", handled.Load())
			}
		})
	}
}

func TestEndOfInput(t *testing.T) {
	p, c := newPeer(t, []Route{echoMethod.Handle(echo)}, nil)
	done := going(func() error { _, err := echoMethod.Call(t.Context(), c, &echoParams{}); return err })
	p.read()
	p.send(request(1, "echo", `{"n":9}`))
	p.w.Close()
	if err := <-done; !errors.Is(err, rpc.ErrClosed) {
		t.Error(err)
	}
	p.expect(`{"jsonrpc":"2.0","id":1,"result":{"n":9}}`)
	must.Do(t, wait(c))
	if _, err := echoMethod.Call(t.Context(), c, &echoParams{}); !errors.Is(err, rpc.ErrClosed) {
		t.Error(err)
	}
}

// Rule 14: the peer learns what is wrong with its parameters, and nothing of the types and errors here.
func TestInvalidParamsLeakNothing(t *testing.T) {
	var ext Extensions
	Handle(&ext, "_typed", func(context.Context, *privateParams) (*echoParams, error) { return nil, nil })
	Handle(&ext, "_own", func(context.Context, *failingParams) (*echoParams, error) { return nil, nil })
	p, _ := newPeer(t, extensions(&ext), nil)
	for _, method := range []string{"_typed", "_own"} {
		p.send(request(1, method, `{"n":"x"}`))
		got := p.read()
		if !strings.Contains(got, "-32602") {
			t.Errorf("got %s", got)
		}
		for _, secret := range []string{"Go ", "SecretField", "privateParams", "json:", "hunter2"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s in %s", secret, got)
			}
		}
	}
}

type privateParams struct {
	SecretField int `json:"n"`
}

type failingParams struct{}

func (*failingParams) UnmarshalJSON([]byte) error { return errPlain }

func TestTooLong(t *testing.T) {
	const limit = 200 << 10
	p, c := newPeerLimit(t, []Route{echoMethod.Handle(echo)}, nil, limit)
	long := strings.Repeat("x", limit)
	p.send(request("a", "echo", `{"sessionId":"`+long+`"}`))
	p.expect(`{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"Invalid request: message too long"}}`)
	p.send(`{"jsonrpc":"2.0","method":"echo","params":{"sessionId":"` + long + `"},"id":1}`)
	p.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: message too long"}}`)
	fits := strings.Repeat("y", limit-len(request("b", "echo", `{"sessionId":"","n":0}`)))
	p.send(request("b", "echo", `{"sessionId":"`+fits+`","n":0}`))
	if got := p.read(); !strings.Contains(got, fits) {
		t.Error("a message of just the limit was refused")
	}
	done := going(func() error { _, err := echoMethod.Call(t.Context(), c, &echoParams{}); return err })
	p.read()
	p.send(`{"jsonrpc":"2.0","id":1,"result":{"sessionId":"` + long + `"}}`)
	long1, ok := errors.AsType[*rpc.TooLongError](<-done)
	if !ok || long1.Limit != limit {
		t.Errorf("got %v", long1)
	}
	p.send(request("c", "echo", `{"n":1}`))
	p.expect(`{"jsonrpc":"2.0","id":"c","result":{"n":1}}`)
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
	if a, b := <-got, <-got; a != "{}" || b != "{}" {
		t.Errorf("got %s and %s", a, b)
	}
}
