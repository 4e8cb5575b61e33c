// Rules of the page authentication.

package conformance

var authenticationRules = []rule{
	{
		ID:     "AUT-1",
		Breaks: "A logout request to an agent that does not state auth.logout.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"auth":{"logout":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"logout","params":{}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"logout","params":{}}`,
		on:    requests("logout"),
		check: func(e *event) { e.needs(&e.agent, "auth.logout") },
	},
	{
		ID:       "AUT-2",
		Versions: both,
		Breaks:   "authenticate with the id of a method of type terminal: the client runs that one itself.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"},{"type":"terminal","id":"tui","name":"Log in"}]}}
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"},{"type":"terminal","id":"tui","name":"Log in"}]}}
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"tui"}}`,
		on: requests("authenticate", "auth/login"),
		check: func(e *event) {
			if m, ok := e.authMethods.get(e.text("methodId")); ok && m.kind == "terminal" {
				e.broken("/methodId", "a method of type terminal").because(m.at, "the methods that the agent offers")
			}
		},
	},
	{
		ID:       "AUT-3",
		Versions: both,
		Breaks:   "authenticate with an id that is not in authMethods.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"}]}}
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}`,
		on:    requests("authenticate", "auth/login"),
		check: func(e *event) {
			id := e.text("methodId")
			if _, ok := e.authMethods.get(id); !ok && id != "" && !e.authMethods.forgot && e.initialized != nil {
				e.broken("/methodId", "the agent does not offer %q", clip(id)).because(e.initialized, "the methods that it offers")
			}
		},
	},
	{
		ID:       "AUT-9",
		Versions: both,
		Breaks:   "session/new that is answered with -32000 (authentication required) after a successful authenticate.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":11,"result":{"sessionId":"t"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":11,"error":{"code":-32000,"message":"authentication required"}}`,
		on: failures(methodNew),
		// Only for a request that the client sent after the answer to authenticate, so that the agent cannot have read
		// it before.
		check: func(e *event) {
			code, _ := integer(e.content, "code")
			if login := e.loggedIn; code == codeAuth && login != nil && e.request != nil && e.request.at.Number > login.Number {
				e.broken("/code", "authentication is required after it succeeded").
					because(login, "the successful authentication").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:       "AUT-10",
		Versions: both,
		Breaks:   "session/new that succeeds after logout, on a connection on which it needed authentication before.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32000,"message":"authentication required"}}
			-> {"jsonrpc":"2.0","id":11,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}
			-> {"jsonrpc":"2.0","id":12,"method":"logout","params":{}}
			<- {"jsonrpc":"2.0","id":12,"result":{}}
			-> {"jsonrpc":"2.0","id":13,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":13,"error":{"code":-32000,"message":"authentication required"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32000,"message":"authentication required"}}
			-> {"jsonrpc":"2.0","id":11,"method":"authenticate","params":{"methodId":"key"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}
			-> {"jsonrpc":"2.0","id":12,"method":"logout","params":{}}
			<- {"jsonrpc":"2.0","id":12,"result":{}}
			-> {"jsonrpc":"2.0","id":13,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":13,"result":{"sessionId":"t"}}`,
		on: results(methodNew),
		check: func(e *event) {
			if out := e.loggedOut; out != nil && e.authNeeded != nil && e.request != nil && e.request.at.Number > out.Number {
				e.broken("", "a session after logout, without authentication").
					because(e.authNeeded, "authentication was required before").because(out, "the logout")
			}
		},
	},
}
