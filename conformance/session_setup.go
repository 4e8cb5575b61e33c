// Rules of the page session-setup.

package conformance

var sessionSetupRules = []rule{
	{
		ID:       "SES-2",
		Versions: both,
		Breaks:   "session/new that answers with the id of a session that this connection already has, or with an empty one.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"s"}}`,
		on: results(methodNew),
		check: func(e *event) {
			id := e.text("sessionId")
			switch s := e.history.session(id); {
			case id == "" && isText(member(e.content, "sessionId")):
				e.broken("/sessionId", "an empty id")
			case s != nil && s.given != nil:
				e.broken("/sessionId", "the id %q is taken", clip(id)).because(s.given, "the session that has it")
			}
		},
	},
	{
		ID:     "SES-4",
		Breaks: "session/load to an agent that does not state loadSession.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/load","params":{"sessionId":"old","cwd":"/work","mcpServers":[]}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/load","params":{"sessionId":"old","cwd":"/work","mcpServers":[]}}`,
		on:    requests(methodLoad),
		check: func(e *event) { e.needs(&e.agent, "loadSession") },
	},
	{
		ID:     "SES-6",
		Breaks: "session/load that is answered without a user's message among the updates, for a session in which this connection had a turn before that did not end with refusal.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/load","params":{"sessionId":"s","cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hello"}}}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/load","params":{"sessionId":"s","cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}`,
		on: results(methodLoad),
		check: func(e *event) {
			if s := e.session; s != nil && s.setup == e.request && s.prompted != nil && !s.replayed {
				e.broken("", "the conversation was not replayed").because(s.prompted, "a turn of the session")
			}
		},
	},
	{
		ID:     "SES-7",
		Breaks: "A user_message_chunk after the answer to session/load, before the next prompt.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/load","params":{"sessionId":"old","cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hello"}}}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/load","params":{"sessionId":"old","cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hello"}}}}`,
		on: updates("user_message_chunk"),
		// The answer and the update go the same way, so none overtakes the other. Of all kinds of updates only the
		// user's own words cannot be news.
		check: func(e *event) {
			if s := e.session; s != nil && s.loaded != nil && s.setup == nil && len(s.turns) == 0 && e.once(s.id) {
				e.broken("", "replayed after the answer").because(s.loaded, "the answer to session/load")
			}
		},
	},
	{
		ID:     "SES-9",
		Breaks: "session/resume to an agent that does not state sessionCapabilities.resume.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work"}}`,
		on:    requests(methodResume),
		check: func(e *event) { e.needs(&e.agent, "sessionCapabilities.resume") },
	},
	{
		ID:     "SES-11",
		Breaks: "A message, a tool call or a plan between session/resume and its answer.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hello"}}}}`,
		on: updates(historyKinds...),
		// Only for a session that was not in use on this connection: an update of one that is may have crossed the request.
		check: func(e *event) {
			s := e.session
			if s != nil && s.setup != nil && s.setup.method == methodResume && s.setupNew && len(s.turns) == 0 && e.once(s.id) {
				e.broken("", "history before the answer to session/resume").because(s.setup.at, "the request")
			}
		},
	},
	{
		ID:     "SES-13",
		Breaks: "session/close to an agent that does not state sessionCapabilities.close.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/close","params":{"sessionId":"s"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/close","params":{"sessionId":"s"}}`,
		on:    requests(methodClose),
		check: func(e *event) { e.needs(&e.agent, "sessionCapabilities.close") },
	},
	{
		ID:     "SES-15",
		Breaks: "A prompt that ends otherwise than with cancelled, or with an error, after session/close was answered; a prompt that succeeds though it was sent after that answer.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"cancelled"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}`,
		on: answers(methodPrompt),
		// Both answers go the same way: the prompt was answered after the agent had closed the session.
		check: func(e *event) {
			s := e.session
			if s == nil || s.closed == nil || e.request == nil {
				return
			}
			after := e.request.at.Number > s.closed.Number
			switch {
			case after && e.kind == Response:
				e.broken("", "a prompt in a closed session").because(s.closed, "the session was closed").because(e.request.at, "the prompt")
			case !after && (e.kind == ErrorReply || e.text("stopReason") != "cancelled"):
				e.broken("", "the turn was not cancelled when the session was closed").
					because(e.request.at, "the prompt").because(s.closed, "the session was closed")
			}
		},
	},
	{
		ID:       "SES-17",
		Versions: both,
		Breaks:   "A relative path in additionalDirectories of session/new, session/load or session/resume.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","additionalDirectories":["/lib"],"mcpServers":[]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","additionalDirectories":["lib"],"mcpServers":[]}}`,
		on: requests(setupMethods...),
		check: func(e *event) {
			for i, root := range items(e.content, "additionalDirectories") {
				e.absolute(element("/additionalDirectories", i), text(root))
			}
		},
	},
	{
		ID:       "SES-19",
		Versions: both,
		Breaks: "additionalDirectories, also an empty list, to an agent that does not state sessionCapabilities.additionalDirectories " +
			"(version 2: session.additionalDirectories).",
		Right: `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","additionalDirectories":[],"mcpServers":[]}}`,
		on:    requests(setupMethods...),
		check: func(e *event) {
			capability := e.named("sessionCapabilities.additionalDirectories", "session.additionalDirectories")
			if e.given("additionalDirectories") && !e.agent.can(capability) {
				e.broken("/additionalDirectories", "the agent does not state %s", capability).because(e.agent.at, "its capabilities")
			}
		},
	},
	{
		ID:       "SES-20",
		Versions: both,
		Breaks:   "A relative cwd in session/new, session/load or session/resume.",
		Right:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}`,
		Wrong:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":".","mcpServers":[]}}`,
		on:       requests(setupMethods...),
		check: func(e *event) {
			if cwd := member(e.content, "cwd"); isText(cwd) && !absolute(text(cwd)) {
				e.broken("/cwd", "%q is not an absolute path", clip(text(cwd)))
			}
		},
	},
	{
		ID:       "SES-27",
		Versions: both,
		Breaks:   "An MCP server of a transport that the agent does not state: mcpCapabilities.http or .sse (version 2: session.mcp.http or .stdio).",
		Right:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[{"name":"files","command":"/bin/files","args":[],"env":[]}]}}`,
		Wrong:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[{"type":"http","name":"web","url":"https://example.com/mcp","headers":[]}]}}`,
		on:       requests(setupMethods...),
		check: func(e *event) {
			for i, server := range items(e.content, "mcpServers") {
				kind := text(server, "type")
				capability := e.named("mcpCapabilities.", "session.mcp.") + kind
				if kind != "" && (e.inForce == 2 || kind != "stdio") && !e.agent.can(capability) {
					e.broken(element("/mcpServers", i), "the agent does not state %s", clip(capability)).because(e.agent.at, "its capabilities")
				}
			}
		},
	},
	{
		ID:       "SES-29",
		Versions: both,
		Breaks:   "A stdio MCP server whose command is no absolute path.",
		Right:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[{"name":"files","command":"/bin/files","args":[],"env":[]}]}}`,
		Wrong:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[{"name":"files","command":"files","args":[],"env":[]}]}}`,
		on:       requests(setupMethods...),
		check: func(e *event) {
			for i, server := range items(e.content, "mcpServers") {
				if kind := text(server, "type"); kind == "" || kind == "stdio" {
					e.absolute(element("/mcpServers", i)+"/command", text(server, "command"))
				}
			}
		},
	},
	{
		ID:       "SES-31",
		Versions: both,
		Breaks:   "An update for a session before the answer to session/new that gives its id.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"t","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t"}}`,
		on: results(methodNew),
		// Both go from the agent to the client, in this order.
		check: func(e *event) {
			s := e.history.session(e.text("sessionId"))
			if s != nil && s.given == nil && s.named.Method == methodUpdate && s.named.Number > e.request.at.Number {
				e.broken("/sessionId", "an update came before the answer that gives the id").because(s.named, "the update")
			}
		},
	},
}

// setupMethods are those that begin or continue a session in a directory.
var setupMethods = []string{methodNew, methodLoad, methodResume, "session/fork"}

// historyKinds are the updates that tell what happened in a session.
var historyKinds = []string{"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}

// named is the name that something has in the version in force.
func (e *event) named(v1, v2 string) string {
	if e.inForce == 2 {
		return v2
	}
	return v1
}
