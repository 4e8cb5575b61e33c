// Command coder is the smallest agent by github.com/coder/acp-go-sdk, for the cost of its start, size and
// build.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	acp "github.com/coder/acp-go-sdk"
)

// agent embeds the interface for the methods that nobody calls.
type agent struct {
	acp.Agent
	conn *acp.AgentSideConnection
}

func main() {
	a := &agent{}
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, os.Stdin)
	a.conn.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	<-a.conn.Done()
}

func (*agent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (*agent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return acp.NewSessionResponse{SessionId: "sess_0196f8c0a1000000"}, nil
}

func (a *agent) Prompt(ctx context.Context, req acp.PromptRequest) (acp.PromptResponse, error) {
	err := a.conn.SessionUpdate(ctx, acp.SessionNotification{
		SessionId: req.SessionId, Update: acp.UpdateAgentMessageText("You said: " + req.Prompt[0].Text.Text),
	})
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}
