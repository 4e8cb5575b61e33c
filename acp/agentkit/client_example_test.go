package agentkit_test

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp"
)

func newSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: "session-1"}, nil
}

// play runs one turn of an agent with a client for examples.
func play(handlers acp.AgentHandlers) (acp.StopReason, error) {
	agentEnd, clientEnd := acp.Pipe()
	agent, err := acp.StartAgent(context.Background(), agentEnd, handlers, nil)
	if err != nil {
		return "", err
	}
	defer agent.Close()
	return turnWith(clientEnd)
}

// turnWith is the client: it runs one turn, prints what it receives, and allows everything.
func turnWith(clientEnd acp.Transport) (acp.StopReason, error) {
	ctx, known := context.Background(), acp.ToolCall{}
	client, err := acp.Connect(ctx, clientEnd, acp.ClientHandlers{
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			fmt.Printf("asked: %s %s\n", req.ToolCall.Title.Value(), req.ToolCall.RawInput)
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
		},
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateAgentMessageChunk:
				text := u.Content.Text()
				fmt.Println("message:", text)
			case *acp.SessionUpdateToolCall:
				known = acp.ToolCall(*u)
				fmt.Println("call:", known.Title)
			case *acp.SessionUpdateToolCallUpdate:
				known.Apply(acp.ToolCallUpdate(*u))
				fmt.Print("call: ", known.Status)
				for _, content := range known.Content {
					text := content.Text()
					fmt.Print(" ", text)
				}
				fmt.Println()
			}
			return nil
		},
	}, nil)
	if err != nil {
		return "", err
	}
	defer client.Close()
	session, err := client.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/work"})
	if err != nil {
		return "", err
	}
	res, err := session.Prompt(ctx, acp.TextBlock("tidy up"))
	if err != nil {
		return "", err
	}
	return res.StopReason, nil
}
