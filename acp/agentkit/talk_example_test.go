package agentkit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
)

// talk is a client that prompts twice, and loads the session again.
func talk(handlers acp.AgentHandlers, opts *acp.AgentOptions) {
	ctx := context.Background()
	theirs, ours := acp.Pipe()
	agent, err := acp.StartAgent(ctx, theirs, handlers, opts)
	if err != nil {
		log.Fatal(err)
	}
	var heard []string
	conn, err := acp.Connect(ctx, ours, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateAgentMessageChunk:
				heard = append(heard, u.Content.Variant.(*acp.ContentBlockText).Text)
			case *acp.SessionUpdateUserMessageChunk:
				heard = append(heard, u.Content.Variant.(*acp.ContentBlockText).Text)
			}
			return nil
		},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/work"})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := session.Prompt(ctx, acp.TextBlock("hello")); err != nil {
			log.Fatal(err)
		}
		fmt.Println(heard[len(heard)-1])
	}
	heard = nil
	if _, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: session.ID(), Cwd: "/work"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("loaded:", heard)
	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		log.Fatal(err)
	}
}
