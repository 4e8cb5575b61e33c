package unstable

import "github.com/acpgo/sdk/acp/v2draft"

// A ToolCallOption says something about a tool call, to [StartToolCall], [UpdateToolCall] or [AboutToolCall]. It is
// that of package v2draft.
type ToolCallOption = v2draft.ToolCallOption
