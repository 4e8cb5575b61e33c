package acp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
)

// An agent that repeats what it is told and a client that reads it, in one process.
func Example() {
	agentEnd, clientEnd := acp.Pipe()
	ctx := context.Background()

	agent, err := acp.StartAgent(ctx, agentEnd, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "session-1"}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			if err := session.Update(ctx, acp.AgentMessageText("You said: "+text)); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}

	client, err := acp.Connect(ctx, clientEnd, acp.ClientHandlers{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	turn := session.Stream(ctx, acp.TextBlock("hello"))
	for update := range turn.Updates() {
		switch u := update.Variant.(type) {
		case *acp.SessionUpdateAgentMessageChunk:
			text := u.Content.Text()
			fmt.Println(text)
		case *acp.SessionUpdateToolCall:
			fmt.Println("tool:", u.Title)
		}
	}
	res, err := turn.Result()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.StopReason)

	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// You said: hello
	// end_turn
}
