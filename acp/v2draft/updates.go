package v2draft

// AgentMessageText is an update with a piece of the agent's message with that id.
func AgentMessageText(id MessageID, text string) SessionUpdate {
	return NewSessionUpdateAgentMessageChunk(ContentChunk{MessageID: id, Content: TextBlock(text)})
}

// AgentThoughtText is an update with a piece of the agent's thought with that id.
func AgentThoughtText(id MessageID, text string) SessionUpdate {
	return NewSessionUpdateAgentThoughtChunk(ContentChunk{MessageID: id, Content: TextBlock(text)})
}

// WholePlan is an update with all entries of the plan with that id, which replace those before.
func WholePlan(id PlanID, entries ...PlanEntry) SessionUpdate {
	return NewSessionUpdatePlanUpdate(PlanUpdate{
		Plan: NewPlanUpdateContentItems(PlanItems{PlanID: id, Entries: entries}),
	})
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

// StartToolCall is an update that a tool call begins; further ones about it are made by [UpdateToolCall]. It is
// pending unless an option says otherwise.
func StartToolCall(id ToolCallID, title string, options ...ToolCallOption) SessionUpdate {
	first := []ToolCallOption{WithTitle(title), WithStatus(ToolCallStatusPending)}
	return UpdateToolCall(id, append(first, options...)...)
}

// WithLocation adds a place in a file that the tool call is about, so that the client can follow. The path is
// absolute; lines count from 1, and 0 is the whole file.
func WithLocation(path AbsolutePath, line uint32) ToolCallOption {
	return func(u *ToolCallUpdate) {
		place := ToolCallLocation{Path: path}
		if line > 0 {
			place.Line = Some(line)
		}
		u.Locations = Some(append(u.Locations.Value(), place))
	}
}

// Apply changes a tool call as an update says: members that the update leaves out stay as they are, those that
// are null are null then, lists are replaced. A client calls it to know the whole of a tool call.
func (x *ToolCallUpdate) Apply(u ToolCallUpdate) {
	x.ToolCallID = u.ToolCallID
	change(&x.Name, u.Name)
	change(&x.Title, u.Title)
	change(&x.Kind, u.Kind)
	change(&x.Status, u.Status)
	change(&x.Content, u.Content)
	change(&x.Locations, u.Locations)
	change(&x.Capabilities, u.Capabilities)
	if u.RawInput != nil {
		x.RawInput = u.RawInput
	}
	if u.RawOutput != nil {
		x.RawOutput = u.RawOutput
	}
	if u.Meta != nil {
		x.Meta = u.Meta
	}
}

func change[T any](to *Opt[T], from Opt[T]) {
	if !from.IsZero() {
		*to = from
	}
}
