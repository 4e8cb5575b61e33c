// Rules of the page session-list.

package conformance

var sessionListRules = []rule{
	{
		ID:     "LST-3",
		Breaks: "session/list to an agent that does not state sessionCapabilities.list.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"list":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}`,
		on:    requests(methodList),
		check: func(e *event) { e.needs(&e.agent, "sessionCapabilities.list") },
	},
	{
		ID:       "LST-9",
		Versions: both,
		Breaks:   "session/list with a cursor after answers none of which had a nextCursor.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessions":[],"nextCursor":"p2"}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/list","params":{"cursor":"p2"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessions":[]}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/list","params":{"cursor":"p2"}}`,
		on: requests(methodList),
		check: func(e *event) {
			if e.given("cursor") && e.sender() == Client && e.listEnded != nil && e.cursors.none() {
				e.broken("/cursor", "there is no further page").because(e.listEnded, "the answer without nextCursor")
			}
		},
	},
	{
		ID:       "LST-10",
		Versions: both,
		Breaks:   "session/list with a cursor that the agent has not given out on this connection.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessions":[],"nextCursor":"p 2"}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/list","params":{"cursor":"p 2"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessions":[],"nextCursor":"p 2"}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/list","params":{"cursor":"p%202"}}`,
		on: requests(methodList),
		check: func(e *event) {
			_, known := e.cursors.get(e.text("cursor"))
			ended := e.listEnded != nil && e.cursors.none() // LST-9
			if isText(member(e.content, "cursor")) && e.sender() == Client && !known && !e.cursors.forgot && !ended {
				r := e.broken("/cursor", "the agent has given out no cursor %q", clip(e.text("cursor")))
				for _, at := range e.cursors.all {
					r.because(at, "a cursor that it has given out")
					break
				}
			}
		},
	},
}
