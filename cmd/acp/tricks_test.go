package main

import (
	"context"
	"fmt"
	"os"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/tricks"
)

// trickster is an agent that plays the trick with the name that the prompt has, and says what was answered.
func trickster() {
	err := acp.ServeAgent(context.Background(), acp.Stdio(), tricksterHandlers(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tricksterHandlers() acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			name, _ := req.Prompt[0].Text()
			for _, k := range tricks.All() {
				if k.Name != name {
					continue
				}
				played := make(tricks.Played, 1)
				res, err := k.Prompt(&played)(ctx, s, req)
				if err == nil {
					err = s.Update(ctx, acp.AgentMessageText(fmt.Sprintf("\nanswer <%s>\n", <-played)))
				}
				return res, err
			}
			return nil, fmt.Errorf("there is no trick %q", name)
		},
	}
}

// consoleClient is a client with a view.Console, whose agent plays the trick of its argument.
func consoleClient() {
	ctx := context.Background()
	here, there := acp.Pipe()
	go func() { _ = acp.ServeAgent(ctx, there, tricksterHandlers(), nil) }() // it ends with the program
	console := view.NewConsole(os.Stdin, os.Stdout)
	conn, err := acp.Connect(ctx, here, acp.ClientHandlers{
		SessionUpdate: console.SessionUpdate, RequestPermission: view.Asking(&console.Sessions, console.RequestPermission),
	}, nil)
	if err == nil {
		var s *acp.ClientSession
		if s, err = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"}); err == nil {
			_, err = view.Prompt(ctx, console.Sessions.Of(s.ID()), s, acp.TextBlock(os.Args[1]))
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
