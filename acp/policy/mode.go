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

// Modes returns modes for an agent that changes files and runs commands. [Remembered] decides by them.
func Modes() []acp.SessionMode {
	return []acp.SessionMode{
		{ID: ModeAsk, Name: "Ask", Description: acp.Some("Asks before it changes files or runs commands")},
		{ID: ModeEdits, Name: "Accept edits", Description: acp.Some("Changes files, and asks before it runs commands")},
		{ID: ModeReadOnly, Name: "Read only", Description: acp.Some("Changes no files, and runs no commands")},
		{ID: ModeAll, Name: "Everything", Description: acp.Some("Asks about nothing but hidden files, such as those of Git")},
	}
}

// byMode decides about a tool call by the mode of its session; kind is "" if the mode does not decide.
func byMode(session Session, call acp.ToolCall) (kind acp.PermissionOptionKind, why string) {
	mode := session.Mode()
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
	if guarded(session.Cwd(), call) != "" {
		return "", ""
	}
	return acp.PermissionOptionKindAllowOnce, "the mode allows it"
}
