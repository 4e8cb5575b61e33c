package acpv2

// AgentMessageText returns an update with a piece of text for the agent's message with the given id.
func AgentMessageText(id MessageID, text string) SessionUpdate {
	return NewSessionUpdateAgentMessageChunk(ContentChunk{MessageID: id, Content: TextBlock(text)})
}

// AgentThoughtText returns an update with a piece of text for the agent's thought with the given id.
func AgentThoughtText(id MessageID, text string) SessionUpdate {
	return NewSessionUpdateAgentThoughtChunk(ContentChunk{MessageID: id, Content: TextBlock(text)})
}

// UpdatePlan returns an update with all entries of the plan with the given id, which replace the earlier entries.
func UpdatePlan(id PlanID, entries ...PlanEntry) SessionUpdate {
	return NewSessionUpdatePlanUpdate(PlanUpdate{
		Plan: NewPlanUpdateContentItems(PlanItems{PlanID: id, Entries: entries}),
	})
}

// StartToolCall returns an update that announces a tool call; [UpdateToolCall] makes the later updates. The tool call
// is pending unless an option says otherwise.
func StartToolCall(id ToolCallID, title string, options ...ToolCallOption) SessionUpdate {
	first := []ToolCallOption{WithTitle(title), WithStatus(ToolCallStatusPending)}
	return UpdateToolCall(id, append(first, options...)...)
}

// WithLocation adds a location in a file that the tool call works on, so that the client can follow. The path must be
// absolute; lines count from 1, and 0 means the whole file.
func WithLocation(path AbsolutePath, line uint32) ToolCallOption {
	return func(u *ToolCallUpdate) {
		place := ToolCallLocation{Path: path}
		if line > 0 {
			place.Line = Some(line)
		}
		u.Locations = Some(append(u.Locations.Value(), place))
	}
}

// Apply changes a tool call according to an update: members that are absent in the update keep their values, members
// that are null become null, and lists are replaced. A client calls it to keep the complete tool call.
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
