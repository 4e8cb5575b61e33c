package plain

// ServerKey is the member of a tool call's _meta that says which MCP server the tool is of, so that a decision for
// always about the tool does not apply to another program of the same name: package mcpacp writes it, package policy
// reads it.
const ServerKey = "github.com/acpgo/sdk/mcpServer"
