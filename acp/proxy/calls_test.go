package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
)

// idOf is the id of a message.
func idOf(t *testing.T, line string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(line), &m); err != nil || len(m.ID) == 0 {
		t.Fatalf("no id: %s", line)
	}
	return string(m.ID)
}

func answerTo(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

type text struct {
	Text string `json:"text"`
}

// A hook asks the side that its message is from, and that side asks and notifies the other one before it answers.
func TestCallsDoNotBlock(t *testing.T) {
	for _, asked := range []proxy.Side{proxy.Client, proxy.Agent} {
		for _, from := range []proxy.Side{proxy.Client, proxy.Agent} {
			t.Run(fmt.Sprintf("the hook of a message of the %s asks the %s", from, asked), func(t *testing.T) {
				ask := func(ctx context.Context, m *proxy.Message, next func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
					if m.From != from {
						return next(ctx, m.Params)
					}
					res, err := proxy.Call[text](ctx, asked, "_ask", text{"?"})
					if err != nil {
						return nil, err
					}
					return next(ctx, json.RawMessage(fmt.Sprintf(`{"sessionId":"s","text":%q}`, res.Text)))
				}
				for _, kind := range []string{`"id":1,`, ``} {
					inBubble(t, proxy.Hooks{Raw: map[string]proxy.Raw{"_m": ask}}, func(t *testing.T, client, agent *peer) {
						sides := []*peer{client, agent}
						sender, receiver := sides[from], sides[1-from]
						from, to := sides[asked], sides[1-asked]
						sender.send(`{"jsonrpc":"2.0",` + kind + `"method":"_m","params":{"sessionId":"s"}}`)
						question := from.next()
						if !strings.Contains(question, `,"method":"_ask","params":{"text":"?"}}`) {
							t.Fatalf("got %s", question)
						}
						late := `{"jsonrpc":"2.0","method":"_late","params":{"sessionId":"s"}}`
						sender.send(late)
						// Before it answers, it asks the other side, which asks back.
						there, back := `{"jsonrpc":"2.0","id":71,"method":"_n","params":{"sessionId":"s"}}`, `{"jsonrpc":"2.0","id":72,"method":"_o","params":{"sessionId":"s"}}`
						from.send(there)
						if got := to.next(); got != there {
							t.Fatalf("got %s", got)
						}
						if from == receiver { // what the sender asks now has its turn after its first message
							to.send(back)
							from.wantNone()
						}
						to.send(result(71, "{}"))
						if got := from.next(); got != result(71, "{}") {
							t.Fatalf("got %s", got)
						}
						from.send(answerTo(idOf(t, question), `{"text":"A"}`))
						receiver.want0(`{"jsonrpc":"2.0",`+kind+`"method":"_m","params":{"sessionId":"s","text":"A"}}`, late)
						if from == receiver {
							from.want(back)
							from.send(result(72, "{}"))
							to.want(result(72, "{}"))
						}
						if kind != "" {
							receiver.send(result(1, "{}"))
							sender.want(result(1, "{}"))
						}
					})
				}
			})
		}
	}
}

// want0 is want, and allows more messages after these.
func (p *peer) want0(lines ...string) {
	p.t.Helper()
	for _, want := range lines {
		if got := p.next(); got != want {
			p.t.Fatalf("got  %.500s\nwant %.500s", got, want)
		}
	}
}

// A hook may call next again, and ask both sides in between, while messages pass.
func TestSecondTurn(t *testing.T) {
	hooks := proxy.Hooks{Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
		for {
			res, err := next(ctx, req)
			if err != nil {
				return nil, err
			}
			again, err := proxy.Call[struct{ Again bool }](ctx, proxy.Client, "_again", nil)
			if err != nil || !again.Again {
				return res, err
			}
			if err := proxy.Notify(ctx, proxy.Agent, "_once_more", map[string]int{"n": 1}); err != nil {
				return nil, err
			}
		}
	}}
	inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
		client.send(prompt(1, "s"))
		agent.want(prompt(1, "s"))
		agent.send(result(1, endTurn), update("s", 1))
		question := client.next()
		client.want(update("s", 1))
		client.send(answerTo(idOf(t, question), `{"again":true}`))
		agent.want0(`{"jsonrpc":"2.0","method":"_once_more","params":{"n":1}}`)
		second := agent.next()
		id := idOf(t, second)
		if id == "1" || second != strings.Replace(prompt(1, "s"), `"id":1`, `"id":`+id, 1) {
			t.Errorf("got %s", second)
		}
		agent.send(update("s", 2), `{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}`)
		client.want0(update("s", 2))
		client.next()
		client.send(result(9, `{"content":""}`))
		agent.next()
		agent.send(answerTo(id, `{"stopReason":"refusal","x":1}`))
		client.send(answerTo(idOf(t, client.next()), `{}`))
		client.want(result(1, `{"stopReason":"refusal","x":1}`))
	})
}

// Requests of the proxy's own have ids that no other has, fail with the error of the other side, and are cancelled.
func TestCall(t *testing.T) {
	var got error
	hooks := proxy.Hooks{Raw: map[string]proxy.Raw{"_m": func(ctx context.Context, m *proxy.Message, next func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := proxy.Call[text](ctx, proxy.Agent, "_ask", nil)
		got = err
		return nil, err
	}}}
	if _, err := proxy.Call[text](t.Context(), proxy.Agent, "_ask", nil); err == nil {
		t.Error("a call without a proxy succeeds")
	}
	inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
		seen := map[string]bool{}
		for i, answer := range []string{`"error":{"code":-32001,"message":"secret"}`, `"result":{"text":1}`, `"result":null`, ``} {
			client.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"_m"}`, i))
			id := idOf(t, agent.next())
			if seen[id] || !strings.HasPrefix(id, `"proxy-`) {
				t.Errorf("the id is %s", id)
			}
			seen[id] = true
			if answer == "" {
				time.Sleep(2 * time.Second)
				agent.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, id))
				answer = `"result":{}` // late
			}
			agent.send(`{"jsonrpc":"2.0","id":` + id + `,` + answer + `}`)
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"Internal error"}}`, i)
			if i == 2 {
				want = result(i, "null")
			}
			client.want(want)
			synctest.Wait()
			if failure, ok := errors.AsType[*rpc.CallError](got); ok != (i == 0) || ok && failure.Err.Message != "secret" {
				t.Errorf("%d: the call failed with %v", i, got)
			}
		}
		agent.wantNone()
	})
}

// Hooks of both directions wait for each other.
func TestHooksMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meet := make(chan bool)
		r := newRig(t, proxy.Hooks{
			Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
				meet <- true
				res, err := next(ctx, req)
				return res, err
			},
			SessionUpdate: func(ctx context.Context, n *acp.SessionNotification, next func(context.Context, *acp.SessionNotification) error) error {
				<-meet
				return next(ctx, n)
			},
		}, nil, true)
		r.agent.send(update("s", 1))
		r.client.send(prompt(1, "s"))
		r.agent.want(prompt(1, "s"))
		r.client.want(update("s", 1))
		r.agent.send(result(1, endTurn))
		r.client.want(result(1, endTurn))
		r.end()
	})
}

// A hook that has passed its notification on, and then asks a side, no longer holds the session.
func TestAsksAfterwards(t *testing.T) {
	hooks := proxy.Hooks{SessionUpdate: func(ctx context.Context, n *acp.SessionNotification, next func(context.Context, *acp.SessionNotification) error) error {
		if err := next(ctx, n); err != nil {
			return err
		}
		_, err := proxy.Call[text](ctx, proxy.Client, "_ask", text{n.Update.AgentText()})
		return err
	}}
	inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
		agent.send(update("s", 1), update("s", 2))
		client.want0(update("s", 1))
		first := idOf(t, client.next())
		client.want0(update("s", 2))
		second := idOf(t, client.next())
		client.send(answerTo(first, "{}"), answerTo(second, "{}"))
	})
}

// A hook that asks a side while it passes its message on holds the session until the message is on its way.
func TestAsksMeanwhile(t *testing.T) {
	long := json.RawMessage(`{"sessionId":"s","x":"` + strings.Repeat("x", 4<<20) + `"}`)
	hooks := proxy.Hooks{Raw: map[string]proxy.Raw{"_m": func(ctx context.Context, _ *proxy.Message, next func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
		ctx, stop := context.WithCancel(ctx)
		var asking sync.WaitGroup
		asking.Go(func() {
			for ctx.Err() == nil {
				short, cancel := context.WithTimeout(ctx, 100*time.Microsecond)
				_, _ = proxy.Call[text](short, proxy.Client, "_ask", nil) // nobody answers
				cancel()
			}
		})
		defer asking.Wait()
		defer stop()
		return next(ctx, long)
	}}}
	r := newRig(t, hooks, nil, true)
	var asked sync.WaitGroup
	asked.Go(func() {
		for range r.client.lines {
			continue
		}
	})
	for i := range 20 {
		id := fmt.Sprintf(`"id":%d,`, i)
		if i%2 == 1 {
			id = "" // a notification
		}
		r.client.send(`{"jsonrpc":"2.0",`+id+`"method":"_m","params":{"sessionId":"s"}}`, cancel("s"))
		if got := <-r.agent.lines; got == cancel("s") {
			t.Fatalf("message %d was overtaken", i)
		}
		<-r.agent.lines
		if id != "" {
			r.agent.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i))
		}
	}
	r.client.stream.Close()
	r.agent.stream.Close()
	<-r.served
	asked.Wait()
}

// What waits is bounded: the proxy stops reading, and a hook that waits for a call then gets an error.
func TestHeld(t *testing.T) {
	const limit = 10_000
	big := strings.Repeat("x", limit/4)
	line := func(n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"_x","params":{"sessionId":"s","n":%d,"text":%q}}`, n, big)
	}
	opts := quiet()
	opts.MaxHeld = limit
	t.Run("backpressure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			goOn := make(chan bool)
			r := newRig(t, proxy.Hooks{Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
				<-goOn
				return next(ctx, req)
			}}, opts, true)
			sent := 0
			go func() {
				r.client.send(prompt(1, "s"))
				for ; sent < 100; sent++ {
					r.client.send(line(sent))
				}
			}()
			synctest.Wait()
			// Some are in the buffers of the pipe and of the reader besides.
			if sent > 40 {
				t.Errorf("%d messages of %d bytes were read", sent, len(big))
			}
			r.agent.send(update("s", 1)) // the other direction continues
			r.client.want(update("s", 1))
			goOn <- true
			r.agent.want0(prompt(1, "s"))
			for n := range 100 {
				r.agent.want0(line(n))
			}
			r.agent.send(result(1, endTurn))
			r.client.want(result(1, endTurn))
			r.end()
		})
	})
	t.Run("overflow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var failed error
			r := newRig(t, proxy.Hooks{Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
				_, failed = proxy.Call[text](ctx, proxy.Client, "_ask", nil)
				return next(ctx, req)
			}}, opts, true)
			r.client.send(prompt(1, "s"))
			r.client.next() // the question, which the client does not answer
			for n := range 10 {
				r.client.send(line(n))
			}
			r.agent.want0(prompt(1, "s"))
			for n := range 10 {
				r.agent.want0(line(n))
			}
			if !errors.Is(failed, rpc.ErrOverflow) {
				t.Errorf("the call failed with %v", failed)
			}
			r.agent.send(result(1, endTurn))
			r.client.want0(result(1, endTurn))
			r.end()
		})
	})
	t.Run("requests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, transparent(), opts, true)
			refused := 0
			for n := range 100 {
				r.client.send(prompt(n, fmt.Sprint(n)))
			}
			synctest.Wait()
			for len(r.client.lines) > 0 {
				if got := r.client.next(); !strings.Contains(got, "too many requests are in progress") {
					t.Errorf("got %s", got)
				}
				refused++
			}
			if refused < 50 || refused > 95 {
				t.Errorf("%d requests are refused", refused)
			}
			r.end()
		})
	})
}
