// Package mcpacp joins the Model Context Protocol (MCP) to the Agent Client Protocol. An agent uses it to connect to
// the MCP servers of a session; a client uses it to offer tools of its own to any agent.
//
// It runs on the official MCP SDK for Go, and is a module of its own so that other users of this library do not depend
// on that SDK.
//
// # For agents
//
// [Connect] connects to the MCP servers that a client names for a session, over every transport: stdio, HTTP, SSE and
// ACP. The result, a [Set], lists their tools for the model, calls a tool as a tool call of the turn, reads resources,
// gets prompts, and ends with the session. With package agentkit that takes two lines of its configuration:
//
//	config := agentkit.Config[state]{
//		Open: func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) (err error) {
//			s.State.tools, err = mcpacp.Connect(ctx, s, o.MCPServers, nil)
//			return err
//		},
//		Extend: mcpacp.Enable, // advertises servers on HTTP and SSE, and on ACP if opts.Experimental enables that
//		Prompt: prompt,
//	}
//
// In a turn, s.State.tools.Tools returns the tools, and s.State.tools.Call calls the one that the model has chosen, or
// CallAll those of a whole answer. [AddTool] adds tools of the agent's own, as functions.
//
// # For clients
//
// A [Provider] offers an [mcp.Server] of the client's own to the agent of a connection. The agent calls it over the ACP
// connection if both sides can, and otherwise over HTTP on 127.0.0.1; [Offer.Bridged] reports which:
//
//	var tools mcpacp.Provider
//	tools.Enable(&handlers, &options)
//	conn, err := acp.Connect(ctx, transport, handlers, &options)
//	…
//	offer, err := tools.Provide(conn, "shelf", server)
//	…
//	servers := []acp.MCPServer{offer.Declaration}
//	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir, MCPServers: servers})
//
// A client that reconnects has Options.Servers of package reconnect call [Provider.For] instead.
package mcpacp
