package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
)

func update(session string, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d"},"new":1}}}`, session, n)
}

func prompt(id int, session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"hi","new":[1.0]}],"later":12345678901234567890}}`, id, session)
}

func cancel(session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
}

func result(id int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

const endTurn = `{"stopReason":"end_turn","later":1e2}`

// transparent has a hook that changes nothing for each kind of message.
func transparent() proxy.Hooks {
	return proxy.Hooks{
		Prompt:        pass[acp.PromptRequest, acp.PromptResponse],
		NewSession:    pass[acp.NewSessionRequest, acp.NewSessionResponse],
		Initialize:    pass[acp.InitializeRequest, acp.InitializeResponse],
		WriteTextFile: pass[acp.WriteTextFileRequest, acp.WriteTextFileResponse],
		SessionUpdate: func(ctx context.Context, n *acp.SessionNotification, next func(context.Context, *acp.SessionNotification) error) error {
			return next(ctx, n)
		},
		Raw: map[string]proxy.Raw{"_vendor/thing": func(ctx context.Context, m *proxy.Message, next func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
			return next(ctx, m.Params)
		}},
	}
}

func pass[P, R any](ctx context.Context, req *P, next func(context.Context, *P) (*R, error)) (*R, error) {
	return next(ctx, req)
}

// Everything arrives as it was sent, in order, with and without hooks that change nothing.
func TestEveryByte(t *testing.T) {
	toAgent := []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"new":{"a":[1.0,12345678901234567890]},"_meta":{"k": null}}}`,
		`{"jsonrpc":"2.0","method":"_vendor/thing","params":{"z":1,"a":[1.0,1e2,12345678901234567890],"_meta":{"k": null}}}`,
		`{ "id" : -1 , "jsonrpc":"2.0", "result" : null, "result2": {"a":1,"a":2} }`,
		`{"jsonrpc":"2.0","id":"1","method":"unknown/method","params":[1,2],"extra":"\ud83d\ude00 ` + "\u2028" + `"}`,
		`no JSON at all` + "\r",
		"\xff\xfe broken",
		`[{"jsonrpc":"2.0","id":1,"method":"batch"}]`,
		`{"long":"` + strings.Repeat("x", 1<<20) + `"}`,
		prompt(7, "s"), cancel("s"), `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"1"},"x":1}`,
		`{"id":1.0,"jsonrpc":"2.0","method":"_vendor/thing"}`, `{"jsonrpc":"2.0","method":"_vendor/thing","params":null}`,
		`{"jsonrpc":"2.0","method":"mcp/message","params":{"serverId":"m","requestId":"r","method":"notifications/progress","params":{"progress":1.0}}}`,
	}
	toClient := []string{
		result(0, `{"protocolVersion":1,"agentCapabilities":{"new":true},"authMethods":[],"unknown":[ 1 ]}`),
		update("s", 1), `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"_new","x":1}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/a","content":"\u0041","x":{}}}`,
		`{"jsonrpc":"2.0","id":"m","method":"mcp/message","params":{"serverId":"m","requestId":"r","method":"tools/list","params":{"_meta":{"x":1}},"_meta":{"y":2}}}`,
		update("s", 2), result(7, endTurn), `{"jsonrpc":"2.0","error":{"code":-32000,"message":"no","data":{"x":1e2}, "new":1},"id":1.0}`,
		`{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"","data":null}}`,
		"text",
	}
	for name, hooks := range map[string]proxy.Hooks{"no hooks": {}, "hooks": transparent()} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
				for _, line := range toAgent {
					client.send(line)
					agent.want(line)
				}
				for _, line := range toClient {
					agent.send(line)
					client.want(line)
				}
				for _, answer := range []string{result(1, "null"), answerTo(`"m"`, `{"result":{"tools":[]},"_meta":null}`)} {
					client.send(answer)
					agent.want(answer)
				}
			})
		})
	}
}

// A hook changes what it wants, and the members that the library does not know stay.
func TestChanges(t *testing.T) {
	hooks := proxy.Hooks{
		Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
			req.Prompt = append([]acp.ContentBlock{acp.TextBlock("first")}, req.Prompt...)
			res, err := next(ctx, req)
			if err == nil {
				res.StopReason = acp.StopReasonRefusal
			}
			return res, err
		},
		SessionUpdate: func(ctx context.Context, n *acp.SessionNotification, next func(context.Context, *acp.SessionNotification) error) error {
			switch text := n.Update.AgentText(); text {
			case "1":
				return nil
			case "2":
				return next(ctx, &acp.SessionNotification{SessionID: n.SessionID, Update: acp.AgentMessageText("two")})
			}
			n.SessionID = "other"
			return next(ctx, n)
		},
		NewSession: func(ctx context.Context, req *acp.NewSessionRequest, next func(context.Context, *acp.NewSessionRequest) (*acp.NewSessionResponse, error)) (*acp.NewSessionResponse, error) {
			req.Cwd = "/b"
			return next(ctx, req)
		},
	}
	inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
		// A member of a feature that nobody may have enabled is malformed.
		const create = `{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"/a","mcpServers":[],"systemPrompt":"x"}}`
		client.send(create)
		agent.want(strings.Replace(create, "/a", "/b", 1))
		agent.send(result(6, `{"sessionId":"s"}`))
		client.want(result(6, `{"sessionId":"s"}`))
		// The id may be the last member.
		client.send(strings.Replace(strings.TrimSuffix(prompt(7, "s"), "}"), `"id":7,`, "", 1) + `,"id":7}`)
		agent.want(`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"first"},{"type":"text","text":"hi","new":[1.0]}],"later":12345678901234567890}}`)
		agent.send(update("s", 1), update("s", 2), update("s", 3), result(7, endTurn))
		client.want(
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two"}}}}`,
			strings.Replace(update("s", 3), `"s"`, `"other"`, 1),
			result(7, `{"stopReason":"refusal","later":1e2}`))
	})
}

// The error of a hook is the answer, and tells nothing that was not meant for the sender. That of next is passed on.
func TestErrors(t *testing.T) {
	var fail error
	hooks := proxy.Hooks{Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
		if fail == nil {
			res, err := next(ctx, req)
			if err != nil {
				return nil, fmt.Errorf("secret: %w", err)
			}
			return res, nil
		}
		return nil, fail
	}, SetSessionMode: func(context.Context, *acp.SetSessionModeRequest, func(context.Context, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error)) (*acp.SetSessionModeResponse, error) {
		panic("secret")
	}, SessionUpdate: transparent().SessionUpdate}
	inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
		for want, err := range map[string]error{
			`{"code":-32603,"message":"Internal error"}`:          fmt.Errorf("secret"),
			`{"code":-32603,"message":"for all"}`:                 rpc.Public(fmt.Errorf("for all")),
			`{"code":-32602,"message":"no","data":1}`:             rpc.ErrInvalidParams.WithMessagef("no").WithData(1),
			`{"code":-32000,"message":"Authentication required"}`: rpc.ErrAuthRequired,
			`{"code":-32603,"message":"Internal error" }`:         &rpc.Error{Code: 1, Message: "m", Data: json.RawMessage("{")},
		} {
			fail = err
			client.send(prompt(1, "s"))
			client.want(`{"jsonrpc":"2.0","id":1,"error":` + strings.ReplaceAll(want, " }", "}") + `}`)
			agent.wantNone()
		}
		client.send(`{"jsonrpc":"2.0","id":"x","method":"session/set_mode","params":{"sessionId":"s","modeId":"m"}}`)
		client.want(`{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"Internal error"}}`)
		client.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":3}}`)
		if got := client.next(); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("got %s", got)
		}
		client.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]},"params":{}}`)
		if got := client.next(); !strings.Contains(got, `"code":-32600`) {
			t.Errorf("got %s", got)
		}
		agent.wantNone()
		agent.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":3}}`)
		client.want(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":3}}`)

		fail = nil
		refusal := `{"jsonrpc":"2.0","id":3,"error":{"data":{"n":12345678901234567890},"code":-32001,"message":"m","new":1}}`
		client.send(prompt(3, "s"))
		agent.want(prompt(3, "s"))
		agent.send(refusal)
		client.want(refusal)
		// An answer that cannot be read, or does not fit, is an error all the same.
		for id, answer := range map[int]string{4: result(4, `{"stopReason":1}`), 5: `{"jsonrpc":"2.0","id":5,"result":{}`} {
			client.send(prompt(id, "s"))
			agent.want(prompt(id, "s"))
			agent.send(answer)
			if got := client.next(); !strings.HasPrefix(got, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,`, id)) {
				t.Errorf("got %s", got)
			}
		}
	})
}

// While a hook has a message, no later one of its session overtakes it, and others pass.
func TestOrder(t *testing.T) {
	prompted, updated := make(chan bool), make(chan bool)
	hooks := proxy.Hooks{
		Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
			<-prompted
			res, err := next(ctx, req)
			<-prompted
			return res, err
		},
		SessionUpdate: func(ctx context.Context, n *acp.SessionNotification, next func(context.Context, *acp.SessionNotification) error) error {
			<-updated
			err := next(ctx, n)
			<-updated
			return err
		},
	}
	synctest.Test(t, func(t *testing.T) {
		prompted, updated = make(chan bool), make(chan bool)
		r := newRig(t, hooks, nil, true)
		client, agent := r.client, r.agent
		other := `{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":"t","modeId":"m"}}`
		client.send(prompt(1, "s"), cancel("s"), other)
		agent.want(other)
		prompted <- true
		agent.want(prompt(1, "s"), cancel("s"))

		agent.send(update("s", 1), update("s", 2), result(1, endTurn), update("s", 3), result(2, "{}"))
		client.want(result(2, "{}"))
		updated <- true
		client.want(update("s", 1))
		updated <- true // the first hook is over
		updated <- true
		client.want(update("s", 2))
		updated <- true
		client.wantNone() // the hook of the prompt has the answer
		prompted <- true
		client.want(result(1, endTurn))
		updated <- true
		updated <- true
		client.want(update("s", 3))

		// The answer of a request without a hook comes after the updates too, and cancelling a request after it.
		client.send(`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}`)
		agent.next()
		agent.send(update("s", 4), result(3, "{}"))
		client.wantNone()
		updated <- true
		updated <- true
		client.want(update("s", 4), result(3, "{}"))
		load := `{"jsonrpc":"2.0","id":5,"method":"session/close","params":{"sessionId":"s"}}`
		client.send(prompt(4, "s"), load, cancelRequest(5))
		agent.wantNone()
		prompted <- true
		agent.want(prompt(4, "s"), load, cancelRequest(5))
		agent.send(result(5, "{}"), result(4, endTurn))
		client.want(result(5, "{}"))
		prompted <- true
		client.want(result(4, endTurn))
		r.end()
	})
}

func cancelRequest(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, id)
}

// The updates of a new session come after the answer that names it, although a hook is slow to pass that on.
func TestNewSessionIsAnsweredFirst(t *testing.T) {
	hooks := proxy.Hooks{NewSession: func(ctx context.Context, req *acp.NewSessionRequest, next func(context.Context, *acp.NewSessionRequest) (*acp.NewSessionResponse, error)) (*acp.NewSessionResponse, error) {
		res, err := next(ctx, req)
		time.Sleep(time.Second)
		return res, err
	}}
	inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
		client.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
		agent.next()
		agent.send(result(1, `{"sessionId":"s"}`), update("s", 1), update("t", 2))
		client.want(update("t", 2))
		time.Sleep(time.Minute)
		client.want(result(1, `{"sessionId":"s"}`), update("s", 1))
	})
}

// A request that is cancelled ends the hook's context, and is cancelled at the other side; its answer arrives once.
func TestCancel(t *testing.T) {
	var after error
	hooks := proxy.Hooks{Prompt: func(ctx context.Context, req *acp.PromptRequest, next func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
		if req.SessionID == "early" {
			<-ctx.Done()
		}
		if req.SessionID == "timeout" {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := next(short, req)
			if err != context.DeadlineExceeded {
				t.Errorf("next failed with %v", err)
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonMaxTokens}, nil
		}
		res, err := next(ctx, req)
		after = ctx.Err()
		return res, err
	}}
	inBubble(t, hooks, func(t *testing.T, client, agent *peer) {
		client.send(prompt(1, "s"))
		agent.want(prompt(1, "s"))
		client.send(cancelRequest(1))
		agent.want(cancelRequest(1))
		client.wantNone()
		agent.send(result(1, endTurn))
		client.want(result(1, endTurn))
		if after == nil {
			t.Error("the context has not ended")
		}
		client.send(prompt(2, "early"), cancelRequest(2))
		client.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"Request cancelled"}}`)
		agent.wantNone()

		client.send(prompt(3, "timeout"))
		agent.want(prompt(3, "timeout"))
		time.Sleep(2 * time.Second)
		agent.want(cancelRequest(3))
		client.want(result(3, `{"stopReason":"max_tokens"}`))
		agent.send(result(3, endTurn))
		client.wantNone()
	})
}

// A request that must be remembered is refused if its id is long, text or number. Others are passed on.
func TestLongID(t *testing.T) {
	inBubble(t, transparent(), func(t *testing.T, client, agent *peer) {
		for _, id := range []string{`"` + strings.Repeat("i", 300) + `"`, strings.Repeat("1", 300)} {
			client.send(strings.Replace(prompt(1, "s"), `"id":1`, `"id":`+id, 1))
			if got := client.next(); !strings.Contains(got, `"too many requests are in progress, or the id is too long"`) {
				t.Errorf("got %s", got)
			}
			other := `{"jsonrpc":"2.0","id":` + id + `,"method":"x"}`
			client.send(other)
			agent.want(other)
		}
	})
}
