package acp

import "encoding/base64"

// Text returns the text of a text block, and "" for other blocks.
func (x ContentBlock) Text() string {
	if t, ok := x.Variant.(*ContentBlockText); ok {
		return t.Text
	}
	return ""
}

// Image returns the decoded data of an image block and its MIME type; ok is false for other blocks, and if the data is
// not base64.
func (x ContentBlock) Image() (data []byte, mimeType string, ok bool) {
	image, is := x.Variant.(*ContentBlockImage)
	if !is {
		return nil, "", false
	}
	data, err := base64.StdEncoding.DecodeString(image.Data)
	return data, string(image.MimeType), err == nil
}

// ContextUsage returns an update that reports how full the agent's context is: used of size tokens. cost, if not nil,
// is the total cost of the session so far, in a currency such as "USD".
func ContextUsage(used, size uint64, cost *Cost) SessionUpdate {
	u := UsageUpdate{Used: used, Size: size}
	if cost != nil {
		u.Cost = Some(*cost)
	}
	return NewSessionUpdateUsageUpdate(u)
}

// ConfigUpdate returns an update with all config options of the session and their values.
func ConfigUpdate(options ...SessionConfigOption) SessionUpdate {
	return NewSessionUpdateConfigOptionUpdate(ConfigOptionUpdate{ConfigOptions: options})
}

// CommandsUpdate returns an update with all commands that the user may begin a prompt with.
func CommandsUpdate(commands ...AvailableCommand) SessionUpdate {
	return NewSessionUpdateAvailableCommandsUpdate(AvailableCommandsUpdate{AvailableCommands: commands})
}

// TitleUpdate returns an update with the title of the session.
func TitleUpdate(title string) SessionUpdate {
	return NewSessionUpdateSessionInfoUpdate(SessionInfoUpdate{Title: Some(title)})
}

// AgentText returns the text of an update that carries a piece of the agent's answer, and "" for other updates and for
// pieces that are not text.
func (x SessionUpdate) AgentText() string {
	if c, ok := x.Variant.(*SessionUpdateAgentMessageChunk); ok {
		return c.Content.Text()
	}
	return ""
}

// Text returns the text of a tool call's content, and "" for other content.
func (x ToolCallContent) Text() string {
	if c, ok := x.Variant.(*ToolCallContentContent); ok {
		return c.Content.Text()
	}
	return ""
}

// Accepted returns the user's answers to a form; ok is false if the user declined or dismissed it, or the action is of
// an unknown kind.
func (x CreateElicitationResponse) Accepted() (content map[string]ElicitationContentValue, ok bool) {
	if a, is := x.Variant.(*CreateElicitationResponseAccept); is {
		return a.Content.Value(), true
	}
	return nil, false
}

// Selected returns the option that the user chose; ok is false if the request was cancelled or the outcome is of an
// unknown kind.
func (x RequestPermissionOutcome) Selected() (option PermissionOptionID, ok bool) {
	if s, is := x.Variant.(*RequestPermissionOutcomeSelected); is {
		return s.OptionID, true
	}
	return "", false
}
