// Rules of the page session-delete.

package conformance

var sessionDeleteRules = []rule{
	{
		ID:       "DEL-3",
		Versions: both,
		Breaks:   "session/delete to an agent that does not state sessionCapabilities.delete (version 2: session.delete).",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"delete":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/delete","params":{"sessionId":"old"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/delete","params":{"sessionId":"old"}}`,
		on:    requests(methodDelete),
		check: func(e *event) { e.needs(&e.agent, e.named("sessionCapabilities.delete", "session.delete")) },
	},
	{
		ID:       "DEL-4",
		Versions: both,
		Breaks:   "A deleted session in the answer to a session/list that was sent after it was deleted.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/delete","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":11,"result":{"sessions":[]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/delete","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":11,"result":{"sessions":[{"sessionId":"s","cwd":"/work"}]}}`,
		on: results(methodList),
		check: func(e *event) {
			for i, listed := range items(e.content, "sessions") {
				if s := e.history.session(text(listed, "sessionId")); s != nil && s.deleted != nil && e.request.at.Number > s.deleted.Number {
					e.broken(element("/sessions", i), "a session that was deleted").because(s.deleted, "it was deleted").because(e.request.at, "the later request")
				}
			}
		},
	},
	{
		ID:       "DEL-5",
		Versions: both,
		Breaks:   "An error that answers session/delete for a session that was deleted before.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/delete","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/delete","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/delete","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/delete","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":11,"error":{"code":-32002,"message":"not found"}}`,
		on: failures(methodDelete),
		check: func(e *event) {
			if s := e.session; s != nil && s.deleted != nil && e.request.at.Number > s.deleted.Number && e.request.cancelled == nil {
				e.broken("", "deleting a deleted session is not an error").because(s.deleted, "it was deleted")
			}
		},
	},
}
