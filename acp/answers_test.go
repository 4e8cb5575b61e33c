package acp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
)

// An answer that fits the schema, but names nothing, or something that was not offered, is an error of the call.
func TestAnswersThatNameNothing(t *testing.T) {
	wants := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	playAgent(t, acp.ClientHandlers{}, nil, `{"protocolVersion":1}`, `
		-> session/new#$n {"cwd":"/","mcpServers":[]}
		<- #$n {"sessionId":""}
	`, func(conn *acp.ClientConn) {
		_, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
		wants(err, "session/new: the agent returned an empty session id")
	})
	playAgent(t, acp.ClientHandlers{}, &acp.ClientOptions{Experimental: acp.FeatureFork},
		`{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"fork":{}}}}`, `
		-> session/fork#$n {"sessionId":"s","cwd":"/"}
		<- #$n {"sessionId":""}
	`, func(conn *acp.ClientConn) {
			_, err := conn.Session("s").Fork(t.Context(), &acp.ForkSessionRequest{Cwd: "/"})
			wants(err, "session/fork: the agent returned an empty session id")
		})
	playClient(t, acp.AgentHandlers{
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "c"}, acp.AllowOnce("yes", "Yes"))
			wants(err, `session/request_permission: the client selected the option "no", which was not offered`)
			_, err = s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
			wants(err, "terminal/create: the client returned an empty terminal id")
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil, hello(`{"terminal":true}`)+`
		-> session/prompt#1 {"sessionId":"s","prompt":[]}
		<- session/request_permission#$a {"sessionId":"s","toolCall":"$any","options":"$any"}
		-> #$a {"outcome":{"outcome":"selected","optionId":"no"}}
		<- terminal/create#$c {"sessionId":"s","command":"true"}
		-> #$c {"terminalId":""}
		<- #1 {"stopReason":"end_turn"}
	`)
}
