package agentkit_test

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// A prompt that says something, asks the user, and uses a tool.
func ExampleStartToolCall() {
	prompt := func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		message := agentkit.NewMessage(ctx, s) // closed at the end of the turn
		fmt.Fprintf(message, "I shall tidy up.")

		call, err := agentkit.StartToolCall(ctx, s, "Remove the build", acp.WithKind(acp.ToolKindDelete),
			acp.WithInput(map[string]string{"path": "/work/bin"}))
		if err != nil {
			return nil, err
		}
		if _, err := call.Ask(ctx); err != nil {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, call.Fail(err)
		}
		if err := call.Progress("Removed 3 files."); err != nil {
			return nil, err
		}
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, call.Done()
	}
	fmt.Println(play(acp.AgentHandlers{NewSession: newSession, Prompt: agentkit.HandlePrompt(prompt)}))
	// Output:
	// message: I shall tidy up.
	// call: Remove the build
	// asked: Remove the build {"path":"/work/bin"}
	// call: in_progress
	// call: in_progress Removed 3 files.
	// call: completed Removed 3 files.
	// end_turn <nil>
}
