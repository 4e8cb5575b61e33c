// Rules of the page prompt-turn.

package conformance

import "strconv"

var promptTurnRules = []rule{
	{
		ID:       "PRM-1",
		Versions: both,
		Breaks:   "session/prompt for a session that this connection has neither made nor loaded nor resumed, or whose set-up is not answered yet.",
		Right:    `-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}`,
		Wrong:    `-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"x","prompt":[{"type":"text","text":"hello"}]}}`,
		on:       requests(methodPrompt),
		// What makes a session usable is an answer that the client has read before it prompts.
		check: func(e *event) {
			s, id := e.session, e.text("sessionId")
			switch {
			case e.garbled[Client] || e.sender() != Client || e.initialized == nil || id == "":
			case s != nil && s.setup != nil:
				e.broken("/sessionId", "%s is not answered yet", s.setup.method).because(s.setup.at, "the request")
			case (s == nil || s.given == nil) && !e.sessions.forgot && e.once(id):
				e.broken("/sessionId", "there was no session/new, session/load or session/resume for %q", clip(id))
			}
		},
	},
	{
		ID:       "PRM-2",
		Versions: both,
		Breaks:   "A prompt with an image, audio or an embedded resource for an agent that does not state promptCapabilities.image, .audio or .embeddedContext (version 2: session.prompt).",
		Right:    `-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"},{"type":"resource_link","name":"a","uri":"file:///a"}]}}`,
		Wrong:    `-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}}`,
		on:       requests(methodPrompt),
		check: func(e *event) {
			for i, block := range items(e.content, "prompt") {
				name := map[string]string{"image": "image", "audio": "audio", "resource": "embeddedContext"}[text(block, "type")]
				capability := e.named("promptCapabilities.", "session.prompt.") + name
				if name != "" && !e.agent.can(capability) {
					e.broken(element("/prompt", i), "the agent does not state %s", capability).because(e.agent.at, "its capabilities")
				}
			}
		},
	},
	{
		ID:     "PRM-3",
		Breaks: "A messageId that chunks of the user's and of the agent's messages share. (In version 2 they may: see V2-17.)",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message_chunk","messageId":"m1","content":{"type":"text","text":"hello"}}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"hi"}}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message_chunk","messageId":"m1","content":{"type":"text","text":"hello"}}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"hi"}}}}`,
		on: updates("user_message_chunk", "agent_message_chunk"),
		check: func(e *event) {
			if s := e.session; s != nil {
				id := e.text("update", "messageId")
				if other := e.heard(s, id, e.update != "user_message_chunk"); other != nil && e.once(s.id+" "+id) {
					e.broken("/update/messageId", "a message of the user and one of the agent have the id %q", clip(id)).
						because(other, "the first message with it")
				}
			}
		},
	},
	{
		ID:     "PRM-5",
		Breaks: "session/prompt that was not answered when the agent closed the connection.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}`,
		end: func(e *event) {
			for _, r := range e.unanswered(Agent) {
				if r.method == methodPrompt && e.closedBy == Agent && r.cancelled == nil {
					e.brokenAt(r.at, "never answered")
				}
			}
		},
	},
	{
		ID:     "PRM-6",
		Breaks: "A tool call that the user has permitted and that is completed without ever having been in_progress.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"write"}}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"write"}}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}`,
		on: updates("tool_call_update"),
		check: func(e *event) {
			c := e.call(e.session, e.text("update", "toolCallId"))
			if c != nil && c.allowed != nil && !c.ran && e.text("update", "status") == "completed" {
				e.broken("/update/status", "completed without in_progress").because(c.allowed, "the permission")
			}
		},
	},
	{
		ID:     "PRM-7",
		Breaks: "The stop reason cancelled for a turn that nothing has cancelled: no session/cancel, no $/cancel_request, no session/close or session/delete, and no permission with the outcome cancelled.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"cancelled"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"cancelled"}}`,
		on: results(methodPrompt),
		// The agent can know of a cancellation only from a message that a judge has seen before the answer.
		check: func(e *event) {
			if t := e.cancelledForNothing(); t != nil && t.before == nil {
				e.broken("/stopReason", "nothing has cancelled the turn").because(t.prompt.at, "the prompt")
			}
		},
	},
	{
		ID:     "PRM-9",
		Breaks: "A permission request of a turn that the client has cancelled and that the client then answers otherwise than with the outcome cancelled.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}`,
		on: answers(methodPermission),
		// The client sends both, so it has cancelled before it answers. A permission that the agent has cancelled itself
		// may be answered with an error.
		check: func(e *event) {
			r := e.request
			if r == nil || r.turn == nil || r.turn.cancelled == nil || e.sender() != Client {
				return
			}
			if e.kind == Response && e.text("outcome", "outcome") != "cancelled" || e.kind == ErrorReply && r.cancelled == nil {
				e.broken("/outcome", "the turn was cancelled").because(r.turn.cancelled, "the cancellation").because(r.at, "the request for permission")
			}
		},
	},
	{
		ID:     "PRM-11",
		Breaks: "A cancelled turn that ends with another stop reason though the agent had read session/cancel: it had answered a later request, or got the outcome cancelled of the permission that it was waiting for.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"cancelled"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}`,
		on: results(methodPrompt),
		// Otherwise the answer may have crossed the cancellation.
		check: func(e *event) {
			if t := e.turnOf(); t != nil && t.obeyed != nil && e.text("stopReason") != "cancelled" {
				e.broken("/stopReason", "the turn was cancelled").because(t.cancelled, "the cancellation").because(t.obeyed, "the agent had read it when this was answered")
			}
		},
	},
	{
		ID:     "PRM-12",
		Breaks: "A cancelled turn that ends with an error though the agent had read session/cancel (see PRM-11).",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"cancelled"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"aborted"}}`,
		on: failures(methodPrompt),
		check: func(e *event) {
			if t := e.turnOf(); t != nil && t.obeyed != nil && t.prompt.cancelled == nil {
				e.broken("", "an error for a cancelled turn").because(t.cancelled, "the cancellation").because(t.obeyed, "the agent had read it when this was answered")
			}
		},
	},
	{
		ID:     "PRM-13",
		Breaks: "A message, a tool call or a plan of a turn after its answer, before the next prompt.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}`,
		on: updates(historyKinds...),
		// The answer and the update go the same way, so none overtakes the other.
		check: func(e *event) {
			s := e.session
			if s == nil || s.last == nil || len(s.turns) > 0 || s.lost || s.setup != nil || s.loaded != nil {
				return
			}
			if e.once(s.id + " " + strconv.Itoa(s.last.ended.Number)) {
				e.broken("", "an update of the turn after its end").because(s.last.ended, "the answer to the prompt")
			}
		},
	},
	{
		ID:     "PRM-15",
		Breaks: "session/prompt while another prompt of the session is not answered.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"more"}]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"more"}]}}`,
		on: requests(methodPrompt),
		// The client has to read the answer first, and a judge sees it before.
		check: func(e *event) {
			if s := e.session; s != nil && len(s.turns) > 0 && e.sender() == Client {
				e.broken("", "the last prompt is not answered yet").because(s.turns[len(s.turns)-1].prompt.at, "the last prompt")
			}
		},
	},
	{
		ID:     "PRM-16",
		Breaks: "The stop reason cancelled for a turn that began after a session/cancel in which no turn ran.",
		Right: `
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"cancelled"}}`,
		on: results(methodPrompt),
		check: func(e *event) {
			if t := e.cancelledForNothing(); t != nil && t.before != nil {
				e.broken("/stopReason", "only an earlier cancellation, of no turn").because(t.before, "the cancellation").because(t.prompt.at, "the prompt")
			}
		},
	},
}

// turnOf is the turn that the answer to a prompt ends, nil if it is not known.
func (e *event) turnOf() *turn {
	if e.request == nil || e.request.method != methodPrompt {
		return nil
	}
	return e.request.turn
}

// cancelledForNothing is the turn that ends as cancelled without being so; nil if it is otherwise.
func (e *event) cancelledForNothing() *turn {
	t := e.turnOf()
	if t == nil || e.text("stopReason") != "cancelled" || t.cancelled != nil || t.prompt.cancelled != nil || t.declined || e.session == nil || e.session.closing {
		return nil
	}
	return t
}
