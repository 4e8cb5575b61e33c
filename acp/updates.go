package acp

import "encoding/json"

// AgentMessageText returns an update with a piece of the agent's answer.
func AgentMessageText(text string) SessionUpdate {
	return NewSessionUpdateAgentMessageChunk(ContentChunk{Content: TextBlock(text)})
}

// AgentThoughtText returns an update with a piece of the agent's reasoning.
func AgentThoughtText(text string) SessionUpdate {
	return NewSessionUpdateAgentThoughtChunk(ContentChunk{Content: TextBlock(text)})
}

// UserMessageText returns an update with a piece of the user's message, as session/load replays it.
func UserMessageText(text string) SessionUpdate {
	return NewSessionUpdateUserMessageChunk(ContentChunk{Content: TextBlock(text)})
}

// UpdatePlan returns an update with the whole plan, which replaces the previous one.
func UpdatePlan(entries ...PlanEntry) SessionUpdate {
	return NewSessionUpdatePlan(Plan{Entries: entries})
}

// ToolEdit returns the content of a tool call that changes a file; ToolDiff, without the old text, is for one that
// creates it. The path is absolute.
func ToolEdit(path, oldText, newText string) ToolCallContent {
	return ToolCallContent{Variant: &ToolCallContentDiff{Path: path, OldText: Some(oldText), NewText: newText}}
}

// ModeUpdate returns an update that reports that the agent has put the session into another of its modes.
func ModeUpdate(mode SessionModeID) SessionUpdate {
	return NewSessionUpdateCurrentModeUpdate(CurrentModeUpdate{CurrentModeID: mode})
}

// SlashCommand returns a command that the user may begin a prompt with, for [CommandsUpdate]. The name has no slash.
// The hint says what to write after the command; "" means nothing.
func SlashCommand(name, description, hint string) AvailableCommand {
	command := AvailableCommand{Name: name, Description: description}
	if hint != "" {
		command.Input = Some(NewAvailableCommandInputUnstructured(UnstructuredCommandInput{Hint: hint}))
	}
	return command
}

// StartToolCall returns an update that reports that a tool call begins; [UpdateToolCall] makes the later updates about
// it. The tool call is pending unless an option says otherwise.
func StartToolCall(id ToolCallID, title string, options ...ToolCallOption) SessionUpdate {
	u := ToolCallRef(id, options...)
	call := ToolCall{ToolCallID: id, Title: title, Status: ToolCallStatusPending}
	call.Apply(u)
	return NewSessionUpdateToolCall(call)
}

// WithLocation adds a location in a file that the tool call is about, so that the client can follow along. The path is
// absolute; lines count from 1, and 0 means the whole file.
func WithLocation(path string, line uint32) ToolCallOption {
	return func(u *ToolCallUpdate) {
		place := ToolCallLocation{Path: path}
		if line > 0 {
			place.Line = Some(line)
		}
		u.Locations = Some(append(u.Locations.Value(), place))
	}
}

// Apply changes a tool call according to an update: members that are absent or null in the update stay as they are, and
// lists are replaced. Clients call it to keep the whole state of a tool call.
func (x *ToolCall) Apply(u ToolCallUpdate) {
	set(&x.Title, u.Title)
	set(&x.Kind, u.Kind)
	set(&x.Status, u.Status)
	set(&x.Content, u.Content)
	set(&x.Locations, u.Locations)
	if u.Name.Present() {
		x.Name = u.Name
	}
	setRaw(&x.RawInput, u.RawInput)
	setRaw(&x.RawOutput, u.RawOutput)
	if u.Meta != nil {
		x.Meta = u.Meta
	}
}

func set[T any](to *T, from Opt[T]) {
	if v, ok := from.Get(); ok {
		*to = v
	}
}

func setRaw(to *json.RawMessage, from json.RawMessage) {
	if from != nil && string(from) != "null" {
		*to = from
	}
}
