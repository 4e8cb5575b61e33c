package plain

// ServerKey is the member of a tool call's _meta that says which MCP server the tool is of, so that a decision for
// always about the tool does not apply to another program of the same name: package mcpacp writes it, package policy
// reads it.
const ServerKey = "github.com/acpgo/sdk/mcpServer"

// The extensions of version 1 that existing agents and clients share, and that package translate makes version 2 of.
// They are members of _meta, and methods.
const (
	// TerminalKey has output of a terminal of the agent's own, in updates of the tool call; TerminalInfoKey has its
	// command and directory, and TerminalExitKey its end. Clients that show such terminals advertise TerminalKey.
	TerminalKey     = "terminal_output"
	TerminalInfoKey = "terminal_info"
	TerminalExitKey = "terminal_exit"

	// CancelKey is the extension with which one tool call or terminal is cancelled: the client, the agent and each tool
	// call say with it that they have it.
	CancelKey        = "tool_call_cancel"
	CancelCallMethod = "_tool_call/cancel"
	CancelTermMethod = "_terminal/cancel"

	// SteerKey is the extension with which messages are sent to the running turn. The method is answered as soon as the
	// message is taken.
	SteerKey    = "steering"
	SteerMethod = "_session/steering"
)
