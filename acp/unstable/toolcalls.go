package unstable

import "github.com/acpgo/sdk/acp"

// A ToolCallOption says something about a tool call, to [StartToolCall], [UpdateToolCall] or [AboutToolCall]. It is
// that of package acp.
type ToolCallOption = acp.ToolCallOption
