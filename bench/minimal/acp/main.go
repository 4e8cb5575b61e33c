// Command acp is the smallest agent by this module, for the cost of its start, size and build.
package main

import (
	"context"
	"log"

	"github.com/acpgo/sdk/acp"
)

func main() {
	err := acp.ServeAgent(context.Background(), acp.Stdio(), acp.AgentHandlers{
		NewSession: newSession,
		Prompt:     prompt,
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
}

func newSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: "sess_0196f8c0a1000000"}, nil
}

func prompt(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := req.Prompt[0].Text()
	if err := session.Update(ctx, acp.AgentMessageText("You said: "+text)); err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}
