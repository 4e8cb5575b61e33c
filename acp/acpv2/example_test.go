package v2draft_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp/acpv2"
)

// An agent that repeats what it is told and a client that reads it, in one process.
func Example() {
	agentEnd, clientEnd := v2draft.Pipe()
	ctx := context.Background()

	agent, err := v2draft.StartAgent(ctx, agentEnd, v2draft.AgentHandlers{
		NewSession:    makeSession,
		ListSessions:  listSessions,
		ResumeSession: resumeSession,
		CloseSession:  endSession,
		Prompt: func(ctx context.Context, session *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
			return session.StartTurn(ctx, req, func(ctx context.Context) (v2draft.IdleStateUpdate, error) {
				text, _ := req.Prompt[0].Text()
				return v2draft.EndTurn(), session.Update(ctx, v2draft.AgentMessageText("message-1", "You said: "+text))
			})
		},
	}, &v2draft.AgentOptions{Info: v2draft.Implementation{Name: "parrot", Version: "1.0"}})
	if err != nil {
		log.Fatal(err)
	}

	client, err := v2draft.Connect(ctx, clientEnd, v2draft.ClientHandlers{}, &v2draft.ClientOptions{
		Info: v2draft.Implementation{Name: "listener", Version: "1.0"},
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := client.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	turn := session.Stream(ctx, v2draft.TextBlock("hello"))
	for update := range turn.Updates() {
		switch u := update.Variant.(type) {
		case *v2draft.SessionUpdateAgentMessageChunk:
			text, _ := u.Content.Text()
			fmt.Println(text)
		case *v2draft.SessionUpdateStateUpdate:
			if _, ok := u.Variant.(*v2draft.StateUpdateRunning); ok {
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

func makeSession(context.Context, *v2draft.AgentConn, *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
	return &v2draft.NewSessionResponse{SessionID: "session-1"}, nil
}

func listSessions(context.Context, *v2draft.AgentConn, *v2draft.ListSessionsRequest) (*v2draft.ListSessionsResponse, error) {
	return &v2draft.ListSessionsResponse{}, nil
}

func resumeSession(_ context.Context, _ *v2draft.AgentSession, req *v2draft.ResumeSessionRequest) (*v2draft.ResumeSessionResponse, error) {
	return nil, v2draft.SessionNotFound(req.SessionID)
}

func endSession(context.Context, *v2draft.AgentSession, *v2draft.CloseSessionRequest) (*v2draft.CloseSessionResponse, error) {
	return &v2draft.CloseSessionResponse{}, nil
}
