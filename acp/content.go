package acp

// Text returns the text of a text block; ok is false for other blocks.
func (x ContentBlock) Text() (text string, ok bool) {
	if t, is := x.Variant.(*ContentBlockText); is {
		return t.Text, true
	}
	return "", false
}

// AgentText returns the text of an update that carries a piece of the agent's answer; ok is false for other updates,
// and for pieces that are not text.
func (x SessionUpdate) AgentText() (text string, ok bool) {
	if c, is := x.Variant.(*SessionUpdateAgentMessageChunk); is {
		return c.Content.Text()
	}
	return "", false
}

// Text returns the text of a tool call's content; ok is false for other content.
func (x ToolCallContent) Text() (text string, ok bool) {
	if c, is := x.Variant.(*ToolCallContentContent); is {
		return c.Content.Text()
	}
	return "", false
}

// Selected returns the option that the user chose; ok is false if the request was cancelled or the outcome is of an
// unknown kind.
func (x RequestPermissionOutcome) Selected() (option PermissionOptionID, ok bool) {
	if s, is := x.Variant.(*RequestPermissionOutcomeSelected); is {
		return s.OptionID, true
	}
	return "", false
}
