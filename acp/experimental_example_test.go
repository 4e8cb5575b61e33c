package acp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
)

// Forking a session is experimental: both sides enable it.
func ExampleFeatures() {
	agentEnd, clientEnd := acp.Pipe()
	ctx := context.Background()

	agent, err := acp.StartAgent(ctx, agentEnd, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "session-1"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
		ForkSession: func(_ context.Context, _ *acp.AgentSession, req *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
			return &acp.ForkSessionResponse{SessionID: "fork of " + req.SessionID}, nil
		},
	}, &acp.AgentOptions{Experimental: acp.FeatureFork})
	if err != nil {
		log.Fatal(err)
	}

	client, err := acp.Connect(ctx, clientEnd, acp.ClientHandlers{}, &acp.ClientOptions{Experimental: acp.FeatureFork})
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	fork, err := session.Fork(ctx, &acp.ForkSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(fork.ID())

	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output: fork of session-1
}
