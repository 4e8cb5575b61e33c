package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
)

// inChain runs a test with a proxy whose conductor it plays.
func inChain(t *testing.T, hooks proxy.Hooks, test func(t *testing.T, conductor *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, hooks, nil, false)
		test(t, r.client)
		r.end()
	})
}

// wrapped is a message in proxy/successor.
func wrapped(line string) string {
	line = strings.Replace(line, `"method":`, `"method":"proxy/successor","params":{"method":`, 1)
	return line + "}"
}

func initialize(method, id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"protocolVersion":1,"new":12345678901234567890}}`
}

// initialized is the conversation that begins with proxy/initialize.
func initialized(conductor *peer) {
	conductor.t.Helper()
	conductor.send(initialize("proxy/initialize", "0"))
	conductor.want(wrapped(initialize("initialize", "0")))
	answer := result(0, `{"protocolVersion":1,"agentCapabilities":{"later":true},"n":12345678901234567890}`)
	conductor.send(answer)
	conductor.want(answer)
}

// Messages of the successor, and for it, are wrapped; others are not. What is in them stays as it is.
func TestChain(t *testing.T) {
	for name, hooks := range map[string]proxy.Hooks{"no hooks": {}, "hooks": transparent()} {
		t.Run(name, func(t *testing.T) {
			inChain(t, hooks, func(t *testing.T, conductor *peer) {
				initialized(conductor)
				toAgent := []string{
					prompt(1, "s"), cancel("s"),
					`{"jsonrpc":"2.0","id":"x","method":"_vendor/thing","params":[1.0,{"_meta":{"k": null}}]}`,
					`{"jsonrpc":"2.0","id":2.50,"method":"_vendor/thing"}`,
					`{"jsonrpc":"2.0","method":"_vendor/other"}`,
				}
				for _, line := range toAgent {
					conductor.send(line)
					conductor.want(wrapped(line))
				}
				toClient := []string{
					update("s", 1),
					`{"jsonrpc":"2.0","id":3,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/a","content":"\u0041","x":{}}}`,
					`{"jsonrpc":"2.0","id":-4,"method":"_vendor/thing"}`,
					`{"jsonrpc":"2.0","id":"m","method":"mcp/message","params":{"serverId":"m","requestId":"r","method":"tools/list","_meta":{"y":2}}}`,
				}
				for _, line := range toClient {
					conductor.send(wrapped(line))
					conductor.want(line)
				}
				conductor.send(`{"jsonrpc":"2.0","id":5,"method":"proxy/successor","params":{"_meta":{"hop":1},"params":null,"method":"_vendor/thing"}}`)
				conductor.want(`{"jsonrpc":"2.0","id":5,"method":"_vendor/thing"}`)
				// Answers of both sides, the same values as they came.
				for _, answer := range []string{
					result(1, endTurn), result(3, "null"), result(5, "12345678901234567890"),
					`{"jsonrpc":"2.0","id":"x","result": null }`,
					`{"jsonrpc":"2.0","id":2.50,"error":{"code":-32001,"message":"m","data":[1.0e3]}}`,
					`{"jsonrpc":"2.0","id":-4,"result":{"n":1.0}}`,
					answerTo(`"m"`, `{"error":{"code":-32601,"message":"no"}}`),
				} {
					conductor.send(answer)
					conductor.want(answer)
				}
				// Answers that nobody waits for are not sent back.
				conductor.send(result(1, endTurn), result(77, "{}"), `{"jsonrpc":"2.0","id":78,"error":`)
				conductor.wantNone()
			})
		})
	}
}

// A cancellation ends the request of this hop, not one of another: it is never wrapped.
func TestChainCancel(t *testing.T) {
	for name, hooks := range map[string]proxy.Hooks{"no hooks": {}, "hooks": transparent()} {
		t.Run(name, func(t *testing.T) {
			inChain(t, hooks, func(t *testing.T, conductor *peer) {
				initialized(conductor)
				write := `{"jsonrpc":"2.0","id":2,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/a","content":""}}`
				conductor.send(prompt(1, "s"))
				conductor.want(wrapped(prompt(1, "s")))
				conductor.send(wrapped(write))
				conductor.want(write)
				cancelled := `{"jsonrpc":"2.0","id":%d,"error":{"code":-32800,"message":"Request cancelled"}}`
				for _, id := range []int{1, 2} {
					conductor.send(cancelRequest(id))
					conductor.want(cancelRequest(id))
					conductor.send(fmt.Sprintf(cancelled, id))
					conductor.want(fmt.Sprintf(cancelled, id))
				}
				conductor.send(cancelRequest(1), cancelRequest(99), wrapped(cancelRequest(1)))
				conductor.wantNone()
			})
		})
	}
}

// Hooks ask both sides with ids of their own, on the one connection.
func TestChainCalls(t *testing.T) {
	hooks := proxy.Hooks{Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
		for _, side := range []proxy.Side{proxy.Client, proxy.Agent} {
			if _, err := proxy.Call[text](ctx, side, "_ask", text{side.String()}); err != nil {
				return nil, err
			}
		}
		return next(ctx, req)
	}}
	inChain(t, hooks, func(t *testing.T, conductor *peer) {
		initialized(conductor)
		conductor.send(prompt(1, "s"))
		question := conductor.next()
		id := idOf(t, question)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"method":"_ask","params":{"text":"client"}}`; question != want {
			t.Errorf("got %s", question)
		}
		conductor.send(answerTo(id, "{}"))
		question = conductor.next()
		id = idOf(t, question)
		if want := wrapped(`{"jsonrpc":"2.0","id":` + id + `,"method":"_ask","params":{"text":"agent"}}`); question != want {
			t.Errorf("got %s", question)
		}
		conductor.send(answerTo(id, "{}"))
		conductor.want(wrapped(prompt(1, "s")))
		conductor.send(result(1, endTurn))
		conductor.want(result(1, endTurn))
	})
}

// What a conductor must not send is refused.
func TestChainRefuses(t *testing.T) {
	inChain(t, proxy.Hooks{}, func(t *testing.T, conductor *peer) {
		refused := func(line, want string) {
			t.Helper()
			conductor.send(line)
			if got := conductor.next(); !strings.Contains(got, want) {
				t.Errorf("%s\nis answered with %s", line, got)
			}
		}
		refused(initialize("initialize", "7"), `"id":7,"error":{"code":-32600,"message":"this proxy has no agent`)
		initialized(conductor)
		refused(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"params":{}}}`, `"code":-32602`)
		refused(`{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":3}`, `"code":-32602`)
		refused(wrapped(wrapped(prompt(1, "s"))), `"code":-32602`)
		refused(`nonsense`, `"id":null,"error":{"code":-32700`)
		conductor.send(`{"jsonrpc":"2.0","method":"proxy/successor","params":{}}`)
		conductor.wantNone()
		conductor.send(prompt(1, "s"))
		conductor.next()
		refused(prompt(1, "s"), `"id":1,"error":{"code":-32600,"message":"a request with this id`)
		refused(wrapped(prompt(1, "s")), `"id":1,"error":{"code":-32600,"message":"a request with this id`)
	})
}

// A hook of initialize answers with what its successor has answered, and does not change the version.
func TestChainInitialize(t *testing.T) {
	for name, test := range map[string]struct {
		hook proxy.Request[acp.InitializeRequest, acp.InitializeResponse]
		want string
	}{
		"changes the name": {func(ctx context.Context, req *acp.InitializeRequest, next func(context.Context, *acp.InitializeRequest) (*acp.InitializeResponse, error)) (*acp.InitializeResponse, error) {
			res, err := next(ctx, req)
			res.AgentInfo = acp.Some(acp.Implementation{Name: "n", Version: "1"})
			return res, err
		}, `"result":{"protocolVersion":1,"x":1,"agentInfo":{"name":"n","version":"1"}}}`},
		"changes the version": {func(ctx context.Context, req *acp.InitializeRequest, next func(context.Context, *acp.InitializeRequest) (*acp.InitializeResponse, error)) (*acp.InitializeResponse, error) {
			res, err := next(ctx, req)
			res.ProtocolVersion = 2
			return res, err
		}, `"error":{"code":-32603,"message":"Internal error"}}`},
		"asks nobody": {func(context.Context, *acp.InitializeRequest, func(context.Context, *acp.InitializeRequest) (*acp.InitializeResponse, error)) (*acp.InitializeResponse, error) {
			return &acp.InitializeResponse{ProtocolVersion: 1}, nil
		}, `"error":{"code":-32603,"message":"Internal error"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			inChain(t, proxy.Hooks{Initialize: test.hook}, func(t *testing.T, conductor *peer) {
				conductor.send(initialize("proxy/initialize", "0"))
				if name != "asks nobody" {
					conductor.next()
					conductor.send(result(0, `{"protocolVersion":1,"x":1}`))
				}
				conductor.want(`{"jsonrpc":"2.0","id":0,` + test.want)
			})
		})
	}
}

// The order of a session holds on the one connection too.
func TestChainOrder(t *testing.T) {
	hooks := proxy.Hooks{SessionUpdate: func(ctx context.Context, n *acp.SessionNotification, next func(context.Context, *acp.SessionNotification) error) error {
		time.Sleep(time.Second)
		return next(ctx, n)
	}}
	inChain(t, hooks, func(t *testing.T, conductor *peer) {
		initialized(conductor)
		conductor.send(prompt(1, "s"))
		conductor.want(wrapped(prompt(1, "s")))
		conductor.send(wrapped(update("s", 1)), wrapped(update("s", 2)), result(1, endTurn), cancel("s"))
		conductor.want(wrapped(cancel("s")))
		time.Sleep(time.Minute)
		conductor.want(update("s", 1), update("s", 2), result(1, endTurn))
	})
}

// What waits is bounded in both directions, although they are one connection.
func TestChainHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed error
		opts := quiet()
		opts.MaxHeld = 10_000
		r := newRig(t, proxy.Hooks{SessionUpdate: func(ctx context.Context, n *acp.SessionNotification, next func(context.Context, *acp.SessionNotification) error) error {
			if failed == nil {
				_, failed = proxy.Call[text](ctx, proxy.Client, "_ask", nil)
			}
			return next(ctx, n)
		}}, opts, false)
		conductor := r.client
		initialized(conductor)
		conductor.send(wrapped(update("s", 0)))
		conductor.next() // the question
		for n := range 100 {
			conductor.send(wrapped(update("s", n+1)))
		}
		for n := range 101 {
			conductor.want0(update("s", n))
		}
		if !errors.Is(failed, rpc.ErrOverflow) {
			t.Errorf("the call failed with %v", failed)
		}
		r.end()
	})
}
