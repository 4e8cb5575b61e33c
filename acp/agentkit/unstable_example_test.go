package agentkit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/unstable"
)

// session makes tool calls and texts serve an agent of acp/unstable, whose other types are those of acp.
type session struct{ *unstable.AgentSession }

func (s session) Update(ctx context.Context, update acp.SessionUpdate) error {
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateAgentMessageChunk:
		return s.AgentSession.Update(ctx, unstable.NewSessionUpdateAgentMessageChunk(acp.ContentChunk(*u)))
	case *acp.SessionUpdateAgentThoughtChunk:
		return s.AgentSession.Update(ctx, unstable.NewSessionUpdateAgentThoughtChunk(acp.ContentChunk(*u)))
	case *acp.SessionUpdateToolCall:
		return s.AgentSession.Update(ctx, unstable.NewSessionUpdateToolCall(acp.ToolCall(*u)))
	case *acp.SessionUpdateToolCallUpdate:
		return s.AgentSession.Update(ctx, unstable.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate(*u)))
	}
	return fmt.Errorf("%T is not of a tool call or a text", update.Variant)
}

// An agent of acp/unstable uses the same tool calls and texts.
func ExampleSender() {
	prompt := func(ctx context.Context, s *unstable.AgentSession, _ *acp.PromptRequest) (*unstable.PromptResponse, error) {
		fmt.Fprint(agentkit.NewMessage(ctx, session{s}), "Hello!")
		call, err := agentkit.StartToolCall(ctx, session{s}, "Look around")
		if err != nil {
			return nil, err
		}
		return &unstable.PromptResponse{StopReason: acp.StopReasonEndTurn}, call.Done()
	}
	agentEnd, clientEnd := acp.Pipe()
	agent, err := unstable.StartAgent(context.Background(), agentEnd, unstable.AgentHandlers{
		NewSession: func(context.Context, *unstable.AgentConn, *unstable.NewSessionRequest) (*unstable.NewSessionResponse, error) {
			return &unstable.NewSessionResponse{SessionID: "session-1"}, nil
		},
		Prompt: agentkit.HandlePrompt(prompt),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	fmt.Println(turnWith(clientEnd))
	// Output:
	// message: Hello!
	// call: Look around
	// call: completed
	// end_turn <nil>
}
