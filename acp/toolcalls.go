package acp

import (
	"encoding/json"
	"slices"
)

// A ToolCallOption sets a part of a tool call, for [StartToolCall], [UpdateToolCall] or [ToolCallRef].
type ToolCallOption func(*ToolCallUpdate)

// WithTitle sets the title of the tool call, which describes it for people.
func WithTitle(title string) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Title = Some(title) }
}

// WithName sets the name of the tool, as the agent's model knows it.
func WithName(name string) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Name = Some(name) }
}

// WithKind sets the kind of the tool, such as ToolKindRead.
func WithKind(kind ToolKind) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Kind = Some(kind) }
}

// WithStatus sets the status of the tool call, such as ToolCallStatusCompleted.
func WithStatus(status ToolCallStatus) ToolCallOption {
	return func(u *ToolCallUpdate) { u.Status = Some(status) }
}

// WithContent sets the content that the tool call shows, which replaces everything it has shown before: see [ToolText],
// [ToolContent], [ToolDiff] and [ToolTerminal].
func WithContent(content ...ToolCallContent) ToolCallOption {
	return func(u *ToolCallUpdate) {
		if content == nil {
			content = []ToolCallContent{}
		}
		u.Content = Some(content)
	}
}

// WithInput sets the input of the tool, any value that encoding/json encodes; see [Raw].
func WithInput(v any) ToolCallOption {
	return func(u *ToolCallUpdate) { u.RawInput = Raw(v) }
}

// WithOutput sets the output of the tool, any value that encoding/json encodes; see [Raw].
func WithOutput(v any) ToolCallOption {
	return func(u *ToolCallUpdate) { u.RawOutput = Raw(v) }
}

// UpdateToolCall returns an update about a tool call that was started. It changes what the options set, and leaves
// everything else as it is.
func UpdateToolCall(id ToolCallID, options ...ToolCallOption) SessionUpdate {
	return NewSessionUpdateToolCallUpdate(ToolCallRef(id, options...))
}

// ToolCallRef describes a tool call in a request for permission. The client may know nothing else about it, so
// include what the user must know to decide: title, kind, the command or the diff.
func ToolCallRef(id ToolCallID, options ...ToolCallOption) ToolCallUpdate {
	u := ToolCallUpdate{ToolCallID: id}
	for _, option := range options {
		option(&u)
	}
	return u
}

// ToolText returns content of a tool call that shows a text.
func ToolText(text string) ToolCallContent { return ToolContent(TextBlock(text)) }

// AllowOnce returns an option of a permission request: yes, this time.
func AllowOnce(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindAllowOnce}
}

// AllowAlways returns an option of a permission request: yes, and do not ask again.
func AllowAlways(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindAllowAlways}
}

// RejectOnce returns an option of a permission request: no, not this time.
func RejectOnce(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindRejectOnce}
}

// RejectAlways returns an option of a permission request: no, and do not ask again.
func RejectAlways(id PermissionOptionID, name string) PermissionOption {
	return PermissionOption{OptionID: id, Name: name, Kind: PermissionOptionKindRejectAlways}
}

// notEncoded begins the result of Raw for a value that cannot be encoded. It is not JSON.
const notEncoded = "not encoded: "

// Raw returns v as JSON, for members that hold any value, such as the input of a tool. If v cannot be encoded, it
// returns text that is not JSON but gives the reason. A message that contains such text cannot be sent: the call
// returns an error with that text or with its position. Use json.Marshal to see the error at once.
func Raw(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(notEncoded + err.Error())
	}
	return raw
}

// checkRaw refuses the result of Raw for a value that could not be encoded.
func checkRaw(pointer string, raw json.RawMessage) *flaw {
	if len(raw) > 0 && raw[0] == notEncoded[0] && json.Unmarshal(raw, new(json.RawMessage)) != nil {
		return &flaw{pointer, string(raw)}
	}
	return nil
}

// OptionOfKind returns the first option of a kind, or nil, and how many there are. An option whose id an option of
// another kind has too does not count: the answer to session/request_permission is an id, and could mean either.
func OptionOfKind(options []PermissionOption, kind PermissionOptionKind) (first *PermissionOption, n int) {
	for i := range options {
		other := func(o PermissionOption) bool { return o.OptionID == options[i].OptionID && o.Kind != kind }
		if options[i].Kind == kind && !slices.ContainsFunc(options, other) {
			if n++; n == 1 {
				first = &options[i]
			}
		}
	}
	return first, n
}
