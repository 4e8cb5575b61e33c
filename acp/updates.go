package acp

import "encoding/json"

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

// ModeUpdate is an update that says that the agent has put the session into another of its modes.
func ModeUpdate(mode SessionModeID) SessionUpdate {
	return NewSessionUpdateCurrentModeUpdate(CurrentModeUpdate{CurrentModeID: mode})
}

// ConfigUpdate is an update with all config options of the session and their values.
func ConfigUpdate(options ...SessionConfigOption) SessionUpdate {
	return NewSessionUpdateConfigOptionUpdate(ConfigOptionUpdate{ConfigOptions: options})
}

// CommandsUpdate is an update with all commands that the user may begin a prompt with.
func CommandsUpdate(commands ...AvailableCommand) SessionUpdate {
	return NewSessionUpdateAvailableCommandsUpdate(AvailableCommandsUpdate{AvailableCommands: commands})
}

// TitleUpdate is an update with the title of the session.
func TitleUpdate(title string) SessionUpdate {
	return NewSessionUpdateSessionInfoUpdate(SessionInfoUpdate{Title: Some(title)})
}

// StartToolCall is an update that says that a tool call begins; [UpdateToolCall] makes the later updates about it. The
// tool call is pending unless an option says otherwise.
func StartToolCall(id ToolCallID, title string, options ...ToolCallOption) SessionUpdate {
	u := AboutToolCall(id, options...)
	call := ToolCall{ToolCallID: id, Title: title, Status: ToolCallStatusPending}
	call.Apply(u)
	return NewSessionUpdateToolCall(call)
}

// WithLocation adds a place in a file that the tool call is about, so that the client can follow. The path is
// absolute; lines count from 1, and 0 is the whole file.
func WithLocation(path string, line uint32) ToolCallOption {
	return func(u *ToolCallUpdate) {
		place := ToolCallLocation{Path: path}
		if line > 0 {
			place.Line = Some(line)
		}
		u.Locations = Some(append(u.Locations.Value(), place))
	}
}

// Apply changes a tool call as an update says: members that are absent or null in the update stay as they are, lists
// are replaced. A client calls it to have the whole of a tool call.
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
