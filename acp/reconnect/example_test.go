package reconnect_test

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/reconnect"
)

func Example() {
	transport := func(context.Context) (acp.Transport, error) { // of a command: acp.Command(exec.Command("my-agent"))
		ours, theirs := acp.Pipe()
		_, err := acp.StartAgent(context.Background(), theirs, acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return &acp.NewSessionResponse{SessionID: "s"}, nil
			},
			Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
			},
		}, nil)
		return ours, err
	}
	show := func(_ context.Context, e reconnect.Event) { fmt.Println(e.Kind, e.Session, e.Err) } // what is lost, and what came back
	client, err := reconnect.Connect(context.Background(), transport, acp.ClientHandlers{}, nil, &reconnect.Options{Notify: show})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	session, err := client.NewSession(context.Background(), &acp.NewSessionRequest{Cwd: "/work"})
	if err != nil {
		panic(err)
	}
	res, err := session.Prompt(context.Background(), acp.TextBlock("fix the bug"))
	if err != nil {
		panic(err)
	}
	fmt.Println(res.StopReason)
	// Output: end_turn
}
