package unstable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp/v2draft/unstable"
)

// An agent that repeats what it is told and a client that reads it, in one process.
func Example() {
	agentEnd, clientEnd := unstable.Pipe()
	ctx := context.Background()

	agent, err := unstable.StartAgent(ctx, agentEnd, unstable.AgentHandlers{
		NewSession:    newSession,
		ListSessions:  listSessions,
		ResumeSession: resumeSession,
		CloseSession:  closeSession,
		Prompt: func(ctx context.Context, session *unstable.AgentSession, req *unstable.PromptRequest) (*unstable.PromptResponse, error) {
			return session.StartTurn(ctx, req, func(ctx context.Context) (unstable.IdleStateUpdate, error) {
				text, _ := req.Prompt[0].Text()
				return unstable.EndTurn(), session.Update(ctx, unstable.AgentMessageText("message-1", "You said: "+text))
			})
		},
	}, &unstable.AgentOptions{Info: unstable.Implementation{Name: "parrot", Version: "1.0"}})
	if err != nil {
		log.Fatal(err)
	}

	client, err := unstable.Connect(ctx, clientEnd, unstable.ClientHandlers{}, &unstable.ClientOptions{
		Info: unstable.Implementation{Name: "listener", Version: "1.0"},
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.NewSession(ctx, &unstable.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	turn := session.Stream(ctx, unstable.TextBlock("hello"))
	for update := range turn.Updates() {
		switch u := update.Variant.(type) {
		case *unstable.SessionUpdateAgentMessageChunk:
			text, _ := u.Content.Text()
			fmt.Println(text)
		case *unstable.SessionUpdateStateUpdate:
			if _, ok := u.Variant.(*unstable.StateUpdateRunning); ok {
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

func newSession(context.Context, *unstable.AgentConn, *unstable.NewSessionRequest) (*unstable.NewSessionResponse, error) {
	return &unstable.NewSessionResponse{SessionID: "session-1"}, nil
}

func listSessions(context.Context, *unstable.AgentConn, *unstable.ListSessionsRequest) (*unstable.ListSessionsResponse, error) {
	return &unstable.ListSessionsResponse{}, nil
}

func resumeSession(_ context.Context, _ *unstable.AgentSession, req *unstable.ResumeSessionRequest) (*unstable.ResumeSessionResponse, error) {
	return nil, unstable.SessionNotFound(req.SessionID)
}

func closeSession(context.Context, *unstable.AgentSession, *unstable.CloseSessionRequest) (*unstable.CloseSessionResponse, error) {
	return &unstable.CloseSessionResponse{}, nil
}
