// This file owns short ways to write the values that agents and clients make all the time; the
// generated constructors make the rest.

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

// PlanUpdate is an update with the whole plan, which replaces the one before.
func PlanUpdate(entries ...PlanEntry) SessionUpdate {
	return NewSessionUpdatePlan(Plan{Entries: entries})
}

// ToolEdit is the content of a tool call that changes a file; ToolDiff, without the old text, is one that
// creates it. The path is absolute.
func ToolEdit(path, oldText, newText string) ToolCallContent {
	return ToolCallContent{Variant: &ToolCallContentDiff{Path: path, OldText: Some(oldText), NewText: newText}}
}

// Text returns the text of a text block; ok is false for other blocks.
func (x ContentBlock) Text() (text string, ok bool) {
	if t, is := x.Variant.(*ContentBlockText); is {
		return t.Text, true
	}
	return "", false
}

// Selected returns the option that the user chose; ok is false when the request was cancelled, or
// answered in a way that is not known.
func (x RequestPermissionOutcome) Selected() (option PermissionOptionID, ok bool) {
	if s, is := x.Variant.(*RequestPermissionOutcomeSelected); is {
		return s.OptionID, true
	}
	return "", false
}
