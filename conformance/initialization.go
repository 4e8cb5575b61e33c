// Rules of the page initialization.

package conformance

var initializationRules = []Rule{
	{
		ID:       "INI-1",
		Versions: both,
		Breaks:   "A request or notification of the client that is sent before initialize, or a request that is sent before its answer.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}
			-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}`,
		on: on(requests(), notifications()),
		// The client sees the answer before it sends more, wherever the judge stands.
		check: func(e *event) {
			switch {
			case e.sender() != Client || e.method == methodInitialize || e.initialized != nil || isProtocol(e.method):
			case e.initialize == nil && e.once(""):
				e.broken("", "sent before initialize")
			case e.initialize != nil && e.once(""):
				e.broken("", "sent before the answer to initialize").because(e.initialize, "initialize, not answered yet")
			}
		},
	},
	{
		ID:     "INI-3",
		Breaks: "An initialize request without clientInfo.",
		Right:  `-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"editor","version":"1.0"}}}`,
		Wrong:  `-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
		on:     requests(methodInitialize),
		check: func(e *event) {
			if !e.given("clientInfo") {
				e.broken("/clientInfo", "the client does not say who it is")
			}
		},
	},
	{
		ID:     "INI-5",
		Breaks: "An answer to initialize without agentInfo.",
		Right:  `<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"agent","version":"1.0"}}}`,
		Wrong:  `<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}`,
		on:     results(methodInitialize),
		check: func(e *event) {
			if !e.given("agentInfo") {
				e.broken("/agentInfo", "the agent does not say who it is")
			}
		},
	},
	{
		ID:       "INI-19",
		Versions: both,
		Breaks:   "An authMethods entry of type terminal for a client that does not state auth.terminal.",
		Right:    `<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"}]}}`,
		Wrong:    `<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"type":"terminal","id":"tui","name":"Log in"}]}}`,
		on:       results(methodInitialize),
		check: func(e *event) {
			for i, method := range items(e.content, "authMethods") {
				if text(method, "type") == "terminal" && !e.client.can("auth.terminal") {
					e.broken(at("/authMethods", i), "a terminal method for a client without auth.terminal").
						because(e.client.at, "the client's capabilities")
				}
			}
		},
	},
}

// isProtocol reports whether a method is one of the protocol's own, which may be sent at any time.
func isProtocol(method string) bool { return len(method) > 1 && method[:2] == "$/" }
