package acpv2_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp/acpv2"
)

// An agent that repeats what it is told and a client that reads it, in one process.
func Example() {
	agentEnd, clientEnd := acpv2.Pipe()
	ctx := context.Background()

	agent, err := acpv2.StartAgent(ctx, agentEnd, acpv2.AgentHandlers{
		NewSession:    makeSession,
		ListSessions:  listSessions,
		ResumeSession: resumeSession,
		CloseSession:  endSession,
		Prompt: func(ctx context.Context, session *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
			return session.StartTurn(ctx, req, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
				text := req.Prompt[0].Text()
				return acpv2.EndTurn(), session.Update(ctx, acpv2.AgentMessageText("message-1", "You said: "+text))
			})
		},
	}, &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "parrot", Version: "1.0"}})
	if err != nil {
		log.Fatal(err)
	}

	client, err := acpv2.Connect(ctx, clientEnd, acpv2.ClientHandlers{}, &acpv2.ClientOptions{
		Info: acpv2.Implementation{Name: "listener", Version: "1.0"},
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	turn := session.Stream(ctx, acpv2.TextBlock("hello"))
	for update := range turn.Updates() {
		switch u := update.Variant.(type) {
		case *acpv2.SessionUpdateAgentMessageChunk:
			text := u.Content.Text()
			fmt.Println(text)
		case *acpv2.SessionUpdateStateUpdate:
			if _, ok := u.Variant.(*acpv2.StateUpdateRunning); ok {
				fmt.Println("running")
			}
		}
	}
	res, err := turn.Result()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Idle.StopReason())

	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// running
	// You said: hello
	// end_turn
}

func makeSession(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
	return &acpv2.NewSessionResponse{SessionID: "session-1"}, nil
}

func listSessions(context.Context, *acpv2.AgentConn, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
	return &acpv2.ListSessionsResponse{}, nil
}

func resumeSession(_ context.Context, _ *acpv2.AgentSession, req *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
	return nil, acpv2.SessionNotFound(req.SessionID)
}

func endSession(context.Context, *acpv2.AgentSession, *acpv2.CloseSessionRequest) (*acpv2.CloseSessionResponse, error) {
	return &acpv2.CloseSessionResponse{}, nil
}
