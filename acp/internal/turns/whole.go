package turns

import "github.com/acpgo/sdk/acp"

// Whole returns an update that contains all of a tool call.
func Whole(call acp.ToolCall) acp.ToolCallUpdate {
	u := acp.ToolCallUpdate{
		ToolCallID: call.ToolCallID, Name: call.Name, RawInput: call.RawInput, RawOutput: call.RawOutput, Meta: call.Meta,
	}
	if call.Title != "" {
		u.Title = acp.Some(call.Title)
	}
	if call.Kind != "" {
		u.Kind = acp.Some(call.Kind)
	}
	if call.Status != "" {
		u.Status = acp.Some(call.Status)
	}
	if call.Content != nil {
		u.Content = acp.Some(call.Content)
	}
	if call.Locations != nil {
		u.Locations = acp.Some(call.Locations)
	}
	return u
}
