package acp

import "encoding/json"

// A ToolCallOption says something about a tool call, to [StartToolCall], [UpdateToolCall] or [AboutToolCall].
type ToolCallOption func(*ToolCallUpdate)

// WithTitle says what the tool call is about, for people.
func WithTitle(title string) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Title = Some(title) }
}

// WithName gives the name of the tool, as the agent's model knows it.
func WithName(name string) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Name = Some(name) }
}

// WithKind says of what kind the tool is, such as ToolKindRead.
func WithKind(kind ToolKind) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Kind = Some(kind) }
}

// WithStatus says how far the tool call is, such as ToolCallStatusCompleted.
func WithStatus(status ToolCallStatus) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Status = Some(status) }
}

// WithContent says what the tool call shows, in place of all that it has shown before: see [ToolText],
// [ToolContent], [ToolDiff] and [ToolTerminal].
func WithContent(content ...ToolCallContent) ToolCallOption {
	return func(u *ToolCallUpdate) {
		if content == nil {
			content = []ToolCallContent{}
		}
		u.Content = Some(content)
	}
}

// WithInput gives the input of the tool, any value that encoding/json encodes; see [Raw].
func WithInput(v any) ToolCallOption {
	return func(u *ToolCallUpdate) { u.RawInput = Raw(v) }
}

// WithOutput gives the output of the tool, any value that encoding/json encodes; see [Raw].
func WithOutput(v any) ToolCallOption {
	return func(u *ToolCallUpdate) { u.RawOutput = Raw(v) }
}

// UpdateToolCall is an update about a tool call that was started. What the options name is changed, and everything
// else stays as it is.
func UpdateToolCall(id ToolCallID, options ...ToolCallOption) SessionUpdate {
	return NewSessionUpdateToolCallUpdate(AboutToolCall(id, options...))
}

// AboutToolCall describes a tool call in a request for permission. The client may know nothing else of it, so
// say what the user must know to decide: title, kind, the command or the diff.
func AboutToolCall(id ToolCallID, options ...ToolCallOption) ToolCallUpdate {
	u := ToolCallUpdate{ToolCallID: id}
	for _, option := range options {
		option(&u)
	}
	return u
}

// ToolText is text that a tool call shows.
func ToolText(text string) ToolCallContent { return ToolContent(TextBlock(text)) }

// AllowOnce is an option of a permission request: yes, this time.
func AllowOnce(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindAllowOnce}
}

// AllowAlways is an option of a permission request: yes, and do not ask again.
func AllowAlways(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindAllowAlways}
}

// RejectOnce is an option of a permission request: no, not this time.
func RejectOnce(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindRejectOnce}
}

// RejectAlways is an option of a permission request: no, and do not ask again.
func RejectAlways(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindRejectAlways}
}

// notEncoded begins what Raw returns for a value that cannot be encoded. It is not JSON.
const notEncoded = "not encoded: "

// Raw is v as JSON, for members that hold any value, such as the input of a tool. Where v cannot be encoded it returns
// text that is not JSON and says why: what contains it cannot be sent, and the call that should send it returns an
// error with that text or with the place where it stands. Use json.Marshal to see the error at once.
func Raw(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(notEncoded + err.Error())
	}
	return raw
}

// checkRaw refuses what Raw could not encode.
func checkRaw(pointer string, raw json.RawMessage) *flaw {
	if len(raw) > 0 && raw[0] == notEncoded[0] && json.Unmarshal(raw, new(json.RawMessage)) != nil {
		return &flaw{pointer, string(raw)}
	}
	return nil
}
