package acp_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
)

// ADD-1: after any error answer the connection serves the next request.
func TestADD1_ServedAfterErrors(t *testing.T) {
	failures := map[string]error{
		"plain": errors.New("secret"), "auth": acp.ErrAuthRequired, "own": &acp.Error{Code: -7, Message: "seven"},
	}
	asked := func(what string) error {
		if what == "panic" {
			panic("secret")
		}
		return failures[what]
	}
	refused := func(there, back, served string) string {
		var script strings.Builder
		for _, line := range []string{
			there + ` _nobody#1 {}`, back + ` #1 -32601 {"method":"_nobody"}`, served,
			there + `! "no JSON at all"`, back + ` {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"$any"}}`, served,
			there + ` [{"jsonrpc":"2.0","id":3,"method":"_x"}]`, back + ` {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"$any"}}`, served,
			there + "! " + strconv.Quote(`{"jsonrpc":"2.0","id":4,"method":"_x","id":4}`), back + ` #4 -32600`, served,
		} {
			script.WriteString(line + "\n")
		}
		return script.String()
	}
	quiet := acp.ConnOptions{Logger: slog.New(slog.DiscardHandler)}
	t.Run("agent", func(t *testing.T) {
		const served = `-> session/prompt#"p" {"sessionId":"s","prompt":[]}` + "\n" + `<- #"p" {"stopReason":"end_turn"}`
		fails := func(what, code string) string {
			return `-> session/prompt#9 {"sessionId":"s","prompt":[{"type":"text","text":"` + what + `"}]}` + "\n<- #9 " + code + "\n" + served + "\n"
		}
		handlers := acp.AgentHandlers{
			Prompt: func(_ context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
				if len(req.Prompt) > 0 {
					what := req.Prompt[0].Text()
					if err := asked(what); err != nil {
						return nil, err
					}
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
			},
		}
		playClient(t, handlers, &acp.AgentOptions{Conn: quiet}, hello(`{}`)+refused("->", "<-", served)+
			`-> session/prompt#5 {"sessionId":7,"prompt":[]}`+"\n"+`<- #5 -32602 {"pointer":"/sessionId","...":""}`+"\n"+served+"\n"+
			fails("plain", "-32603")+fails("auth", "-32000")+fails("own", "-7")+fails("panic", "-32603"))
	})
	t.Run("client", func(t *testing.T) {
		const (
			ask    = `{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}`
			served = `<- session/request_permission#"p" ` + ask + "\n" + `-> #"p" {"outcome":{"outcome":"selected","optionId":"yes"}}`
		)
		var script strings.Builder
		for _, what := range []struct{ name, code string }{{"plain", "-32603"}, {"auth", "-32000"}, {"own", "-7"}, {"panic", "-32603"}} {
			script.WriteString(`<- session/request_permission#9 ` + strings.Replace(ask, `"c"`, `"`+what.name+`"`, 1) + "\n-> #9 " + what.code + "\n" + served + "\n")
		}
		script.WriteString(strings.Replace(served, `"c"`, `"last"`, 1) + "\n")
		last := make(chan struct{})
		handlers := acp.ClientHandlers{
			RequestPermission: func(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
				if req.ToolCall.ToolCallID == "last" {
					acp.AfterResponse(ctx, func(context.Context) { close(last) })
				}
				if err := asked(string(req.ToolCall.ToolCallID)); err != nil {
					return nil, err
				}
				return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
			},
		}
		playAgent(t, handlers, &acp.ClientOptions{Conn: quiet}, plainAgent, refused("<-", "->", served)+script.String(), func(conn *acp.ClientConn) {
			select {
			case <-last:
			case <-conn.Done():
			}
		})
	})
}

// noAnswers are responses that say nothing, as JavaScript peers write them when a handler returns undefined.
var noAnswers = map[string]string{
	"bare":              `{"jsonrpc":"2.0","id":ID}`,
	"method is null":    `{"jsonrpc":"2.0","id":ID,"method":null}`,
	"with parameters":   `{"jsonrpc":"2.0","method":null,"params":{},"id":ID}`,
	"without a version": `{"id":ID}`,
}

// ADD-9: a response with neither result nor error fails the call, and nothing is sent for it, though its id
// is that of a request of the other direction too.
func TestADD9_AgentsCallWithoutAnswer(t *testing.T) {
	for name, answer := range noAnswers {
		t.Run(name, func(t *testing.T) {
			handlers := prompting(func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) error {
				_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/a"})
				if err == nil || !strings.Contains(err.Error(), "neither result nor error") {
					t.Errorf("the call without an answer: %v", err)
				}
				res, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/b"})
				if err != nil || res.Content != "b" {
					t.Errorf("the next call: %v, %v", res, err)
				}
				return err
			})
			none := func(id string) string { return "-> " + strings.Replace(answer, "ID", id, 1) + "\n" }
			playClient(t, handlers, nil, hello(`{"fs":{"readTextFile":true}}`)+`
				-> session/prompt#1 {"sessionId":"s","prompt":[]}
				<- fs/read_text_file#1 {"sessionId":"s","path":"/a"}
				`+none("1")+`
				<- fs/read_text_file#2 {"sessionId":"s","path":"/b"}
				-> {"jsonrpc":"2.0","id":2,"method":null,"result":{"content":"b"}}
				`+none("2")+none("1")+` # late ones
				<- #1 {"stopReason":"end_turn"}
			`)
		})
	}
}

func TestADD9_ClientsCallWithoutAnswer(t *testing.T) {
	for name, answer := range noAnswers {
		t.Run(name, func(t *testing.T) {
			handlers := acp.ClientHandlers{
				RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
				},
			}
			playAgent(t, handlers, nil, plainAgent, `
				-> session/prompt#2 {"sessionId":"s","prompt":[]}
				<- session/request_permission#2 {"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}
				-> #2 {"outcome":{"outcome":"selected","optionId":"yes"}}
				<- `+strings.Replace(answer, "ID", "2", 1)+`
			`, func(conn *acp.ClientConn) {
				if _, err := conn.Session("s").Prompt(t.Context()); err == nil || !strings.Contains(err.Error(), "neither result nor error") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A client does not wait for an agent that answers initialize with nothing.
func TestADD9_ConnectWithoutAnswer(t *testing.T) {
	for name, answer := range noAnswers {
		t.Run(name, func(t *testing.T) {
			ours, theirs := acp.Pipe()
			lines := make(chan []string, 1)
			go func() { lines <- rawAnswer(t, theirs, strings.Replace(answer, "ID", "1", 1)) }()
			_, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, sentBy(conformance.Client)), acp.ClientHandlers{}, nil)
			if err == nil || !strings.Contains(err.Error(), "neither result nor error") {
				t.Errorf("got %v", err)
			}
			if sent := <-lines; len(sent) != 1 {
				t.Errorf("the client sent %q", sent)
			}
		})
	}
}
