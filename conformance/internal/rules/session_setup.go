// Rules of the page session-setup.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var sessionSetupRules = []judge.Rule{
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
		On: results(judge.MethodNew),
		Check: func(e *judge.Event) {
			id := e.Text("sessionId")
			switch s := e.History.Session(id); {
			case id == "" && e.Content.Member("sessionId").IsText():
				e.Broken("/sessionId", "an empty id")
			case s != nil && s.Usable != nil:
				e.Broken("/sessionId", "the id %q is taken", finding.Clip(id)).Because(s.Usable, "the session that has it")
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
		On:    requests(judge.MethodLoad),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "loadSession") },
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
		On: results(judge.MethodLoad),
		Check: func(e *judge.Event) {
			if s := e.Session; s != nil && s.Setup == e.Request && s.Prompted != nil && !s.Replayed {
				e.Broken("", "the conversation was not replayed").Because(s.Prompted, "a turn of the session")
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
		On: updates("user_message_chunk"),
		// The answer and the update go the same way, so none overtakes the other. Of all kinds of updates only the
		// user's own words cannot be news.
		Check: func(e *judge.Event) {
			if s := e.Session; s != nil && s.Loaded != nil && s.Setup == nil && len(s.Turns) == 0 && e.Once(s.ID) {
				e.Broken("", "replayed after the answer").Because(s.Loaded, "the answer to session/load")
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
		On:    requests(judge.MethodResume),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "sessionCapabilities.resume") },
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
		On: updates(historyKinds...),
		// Only for a session that was not in use on this connection: an update of one that is may have crossed the request.
		Check: func(e *judge.Event) {
			s := e.Session
			if s != nil && s.Setup != nil && s.Setup.Method == judge.MethodResume && s.SetupNew && len(s.Turns) == 0 && e.Once(s.ID) {
				e.Broken("", "history before the answer to session/resume").Because(s.Setup.At, "the request")
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
		On:    requests(judge.MethodClose),
		Check: func(e *judge.Event) { e.Needs(&e.Agent, "sessionCapabilities.close") },
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
		On: answers(judge.MethodPrompt),
		// Both answers go the same way: the prompt was answered after the agent had closed the session.
		Check: func(e *judge.Event) {
			s := e.Session
			if s == nil || s.Closed == nil || e.Request == nil {
				return
			}
			after := e.Request.At.Number > s.Closed.Number
			switch {
			case after && e.Kind == finding.Response:
				e.Broken("", "a prompt in a closed session").Because(s.Closed, "the session was closed").Because(e.Request.At, "the prompt")
			case !after && (e.Kind == finding.ErrorReply || e.Text("stopReason") != "cancelled"):
				e.Broken("", "the turn was not cancelled when the session was closed").
					Because(e.Request.At, "the prompt").Because(s.Closed, "the session was closed")
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
		On: requests(setupMethods...),
		Check: func(e *judge.Event) {
			for i, root := range e.Content.Items("additionalDirectories") {
				requireAbsolute(e, schema.Element("/additionalDirectories", i), root.Text())
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
		On:    requests(setupMethods...),
		Check: func(e *judge.Event) {
			capability := nameByVersion(e, "sessionCapabilities.additionalDirectories", "session.additionalDirectories")
			if e.Given("additionalDirectories") && !e.Agent.Can(capability) {
				e.Broken("/additionalDirectories", "the agent does not state %s", capability).Because(e.Agent.At, "its capabilities")
			}
		},
	},
	{
		ID:       "SES-20",
		Versions: both,
		Breaks:   "A relative cwd in session/new, session/load or session/resume.",
		Right:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}`,
		Wrong:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":".","mcpServers":[]}}`,
		On:       requests(setupMethods...),
		Check: func(e *judge.Event) {
			if cwd := e.Content.Member("cwd"); cwd.IsText() && !absolute(cwd.Text()) {
				e.Broken("/cwd", "%q is not an absolute path", finding.Clip(cwd.Text()))
			}
		},
	},
	{
		ID:       "SES-27",
		Versions: both,
		Breaks:   "An MCP server of a transport that the agent does not state: mcpCapabilities.http or .sse (version 2: session.mcp.http or .stdio).",
		Right:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[{"name":"files","command":"/bin/files","args":[],"env":[]}]}}`,
		Wrong:    `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[{"type":"http","name":"web","url":"https://example.com/mcp","headers":[]}]}}`,
		On:       requests(setupMethods...),
		Check: func(e *judge.Event) {
			for i, server := range e.Content.Items("mcpServers") {
				kind := server.Text("type")
				capability := nameByVersion(e, "mcpCapabilities.", "session.mcp.") + kind
				if kind != "" && (e.InForce == 2 || kind != "stdio") && !e.Agent.Can(capability) {
					e.Broken(schema.Element("/mcpServers", i), "the agent does not state %s", finding.Clip(capability)).Because(e.Agent.At, "its capabilities")
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
		On:       requests(setupMethods...),
		Check: func(e *judge.Event) {
			for i, server := range e.Content.Items("mcpServers") {
				if kind := server.Text("type"); kind == "" || kind == "stdio" {
					requireAbsolute(e, schema.Element("/mcpServers", i)+"/command", server.Text("command"))
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
		On: results(judge.MethodNew),
		// Both go from the agent to the client, in this order.
		Check: func(e *judge.Event) {
			s := e.History.Session(e.Text("sessionId"))
			if s != nil && s.Usable == nil && s.Named.Method == judge.MethodUpdate && s.Named.Number > e.Request.At.Number {
				e.Broken("/sessionId", "an update came before the answer that gives the id").Because(s.Named, "the update")
			}
		},
	},
}
