package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

// serve is an agent that repeats what it is told, after it has asked. A prompt that begins with "flood" is
// answered at length.
func serve(r *hostile.Report) error {
	var sessions atomic.Int64
	return hostile.Live(r, func() error {
		err := acp.ServeAgent(context.Background(), acp.Stdio(), acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return &acp.NewSessionResponse{SessionID: acp.SessionID(fmt.Sprint("s-", sessions.Add(1)))}, nil
			},
			Prompt: prompt,
		}, &acp.AgentOptions{Prompt: acp.PromptCapabilities{Image: true, EmbeddedContext: true}})
		if err != nil {
			fmt.Fprintln(os.Stderr, "victim:", err) // the client may well have ended badly
		}
		return nil
	})
}

func prompt(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	for _, block := range req.Prompt {
		text := block.Text()
		times := 1
		if text == "flood" {
			times = 1_000_000
		}
		if text == "ask" {
			_, err := session.RequestPermission(ctx, acp.ToolCallRef("call", acp.WithTitle(titleAgain)),
				acp.AllowOnce("allow", "Allow"), acp.RejectOnce("reject", "Reject"))
			if err != nil {
				return nil, err
			}
		}
		for range times {
			if err := session.Update(ctx, acp.AgentMessageText("You said: "+text)); err != nil {
				return nil, err
			}
		}
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}
