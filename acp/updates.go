// This file owns short ways to write the updates that agents send all the time; the generated
// constructors make the rest.

package acp

// AgentMessageText is an update with a piece of the agent's answer.
func AgentMessageText(text string) SessionUpdate {
	return NewSessionUpdateAgentMessageChunk(ContentChunk{Content: TextBlock(text)})
}

// AgentThoughtText is an update with a piece of the agent's reasoning.
func AgentThoughtText(text string) SessionUpdate {
	return NewSessionUpdateAgentThoughtChunk(ContentChunk{Content: TextBlock(text)})
}

// UserMessageText is an update with a piece of the user's message, as session/load replays it.
func UserMessageText(text string) SessionUpdate {
	return NewSessionUpdateUserMessageChunk(ContentChunk{Content: TextBlock(text)})
}

// WholePlan is an update with the whole plan, which replaces the one before.
func WholePlan(entries ...PlanEntry) SessionUpdate {
	return NewSessionUpdatePlan(Plan{Entries: entries})
}

// ToolEdit is the content of a tool call that changes a file; ToolDiff, without the old text, is one that
// creates it. The path is absolute.
func ToolEdit(path, oldText, newText string) ToolCallContent {
	return ToolCallContent{Variant: &ToolCallContentDiff{Path: path, OldText: Some(oldText), NewText: newText}}
}
