// Package parrot is an agent.
package parrot

import (
	"context"

	"github.com/acpgo/sdk/acp"
)

// Handlers are the agent's.
func Handlers() acp.AgentHandlers {
	return acp.AgentHandlers{NewSession: newSession, Prompt: prompt}
}

func newSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: "s-1"}, nil
}

func prompt(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	for _, block := range req.Prompt {
		text := block.Text()
		if err := session.Update(ctx, acp.AgentMessageText("You said: "+text)); err != nil {
			return nil, err
		}
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}
