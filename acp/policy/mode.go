package policy

import (
	"slices"

	"github.com/acpgo/sdk/acp"
)

// The modes of [Modes].
const (
	ModeAsk      acp.SessionModeID = "ask"
	ModeEdits    acp.SessionModeID = "edits"
	ModeReadOnly acp.SessionModeID = "read"
	ModeAll      acp.SessionModeID = "all"
)

// Modes returns modes for an agent that changes files and runs commands, for Opening.Modes of acp/agentkit.
// Config.Policy decides by the mode with [AnswerByMode].
func Modes() []acp.SessionMode {
	return []acp.SessionMode{
		{ID: ModeAsk, Name: "Ask", Description: acp.Some("Asks before it changes files or runs commands")},
		{ID: ModeEdits, Name: "Accept edits", Description: acp.Some("Changes files, and asks before it runs commands")},
		{ID: ModeReadOnly, Name: "Read only", Description: acp.Some("Changes no files, and runs no commands")},
		{ID: ModeAll, Name: "Everything", Description: acp.Some("Asks about nothing but hidden files, such as those of Git")},
	}
}

// AnswerByMode decides about a tool call that would otherwise ask the user. Of the calls of the kind edit, [ModeEdits]
// allows those that show what they change. kind is "" if the mode does not decide, as for every mode that is not one of
// [Modes].
//
// No mode allows a change of hidden files, such as .git/config, .envrc and .bashrc, and of others that programs run or
// obey although nobody starts them. [Remembered.Decide] knows the working directory, and leaves its own name out of
// account.
func AnswerByMode(mode acp.SessionModeID, call acp.ToolCall) (kind acp.PermissionOptionKind, why string) {
	return answerByMode(mode, "", call)
}

func answerByMode(mode acp.SessionModeID, cwd string, call acp.ToolCall) (kind acp.PermissionOptionKind, why string) {
	shows := func(c acp.ToolCallContent) bool {
		_, diff := c.Variant.(*acp.ToolCallContentDiff)
		return diff
	}
	switch {
	case mode == ModeReadOnly:
		return acp.PermissionOptionKindRejectOnce, "the mode is read only"
	case mode != ModeAll && (mode != ModeEdits || call.Kind != acp.ToolKindEdit ||
		!slices.ContainsFunc(call.Content, shows)):
		return "", ""
	}
	if guarded(cwd, call) != "" {
		return "", ""
	}
	return acp.PermissionOptionKindAllowOnce, "the mode allows it"
}
