package view_test

import (
	"fmt"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// Updates are folded into the conversation, which is drawn again where it changed.
func Example() {
	state := view.New(nil)
	turn := state.Prompt(acp.TextBlock("What is in the README?"))
	state.Update(acp.AgentMessageText("I will "))
	state.Update(acp.AgentMessageText("look."))
	state.Update(acp.StartToolCall("1", "Read README.md", acp.WithKind(acp.ToolKindRead)))
	before := state.Snapshot()
	state.Update(acp.UpdateToolCall("1", acp.WithStatus(acp.ToolCallStatusCompleted)))
	turn.End(&acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil)

	draw := func(item *view.Item) {
		switch v := item.Variant.(type) {
		case *view.Message:
			fmt.Printf("%s: %s\n", v.Role, v.Text())
		case *view.ToolCall:
			fmt.Printf("* %s: %s\n", v.Call.Title, v.Call.Status)
		}
	}
	for item := range before.Items() {
		draw(item)
	}
	fmt.Println("later:")
	for item := range state.Snapshot().Changed(before) {
		draw(item)
	}
	// Output:
	// user: What is in the README?
	// agent: I will look.
	// * Read README.md: pending
	// later:
	// * Read README.md: completed
}
