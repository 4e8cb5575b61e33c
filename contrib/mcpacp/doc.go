// Package mcpacp joins the Model Context Protocol (MCP) to the Agent Client Protocol. An agent uses it to connect to the MCP
// servers of a session; a client uses it to offer tools of its own to any agent.
//
// It runs on the official MCP SDK for Go, and is a module of its own so that other users of this library do not depend on
// that SDK.
package mcpacp

import _ "github.com/modelcontextprotocol/go-sdk/mcp"
