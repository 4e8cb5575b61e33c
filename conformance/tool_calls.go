// Rules of the page tool-calls.

package conformance

// The messages that say something about a tool call.
var (
	callUpdates  = updates("tool_call", "tool_call_update")
	callMessages = on(callUpdates, requests(methodPermission))
)

var toolCallRules = []rule{
	{
		ID: "TOL-1",
		Breaks: "A tool_call_update, or (as advice) a permission request, for a tool call that no tool_call has announced, in a session that began on this connection. " +
			"Sessions that were loaded or resumed have calls that the connection has not seen.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a.go"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}`,
		on:    on(updates("tool_call_update"), requests(methodPermission)),
		// Of each call the first such message is reported: it is in the history from then on.
		check: func(e *event) {
			s, call := e.session, e.toolCall()
			id := text(call, "toolCallId")
			if s == nil || s.by != methodNew || id == "" || e.calls.forgot || e.call(s, id) != nil {
				return
			}
			found := e.broken(e.callPointer()+"/toolCallId", "no tool_call has announced %q", clip(id)).because(s.given, "the session began here")
			if e.method == methodPermission {
				found.mildly(Advice)
			}
		},
	},
	{
		ID:     "TOL-2",
		Breaks: "A second tool_call with an id that the session has already used. Later news of a call are told by tool_call_update; a session/load tells all calls again.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a.go"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"d","title":"Read b.go"}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a.go"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read b.go"}}}`,
		on: updates("tool_call"),
		check: func(e *event) {
			c := e.call(e.session, e.text("update", "toolCallId"))
			if c != nil && c.announced != nil && e.session.setup == nil {
				e.broken("/update/toolCallId", "%q is the id of another tool call", clip(e.text("update", "toolCallId"))).
					because(c.announced, "the other tool call")
			}
		},
	},
	{
		ID:       "TOL-5",
		Versions: both,
		Breaks:   "A permission answer whose optionId is none of those in the request.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Delete a.go"}}}
			<- {"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Delete a.go"}}}
			<- {"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"}]}}
			-> {"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}`,
		on: results(methodPermission),
		check: func(e *event) {
			chosen := member(e.content, "outcome", "optionId")
			if e.text("outcome", "outcome") != "selected" || !isText(chosen) || e.request.params == nil {
				return
			}
			for _, option := range items(e.request.params, "options") {
				if text(option, "optionId") == text(chosen) {
					return
				}
			}
			e.broken("/outcome/optionId", "%q was not offered", clip(text(chosen))).because(e.request.at, "the request with its options")
		},
	},
	{
		ID:     "TOL-6",
		Breaks: "Two options of a permission request with the same optionId. (That each has a name and a known kind is in the schema. Version 2: V2-18.)",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Delete a.go"}}}
			<- {"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Delete a.go"}}}
			<- {"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"},{"optionId":"a","name":"Reject","kind":"reject_once"}]}}`,
		on:    requests(methodPermission),
		check: func(e *event) { e.unique("/options", "optionId", "an option") },
	},
	{
		ID: "TOL-8",
		Breaks: "Content of type terminal, new in a tool call, whose terminalId was not given by an answer to terminal/create, or is released. " +
			"Calls that the extension with _meta.terminal_info shows have terminals of the agent.",
		Right: connected(`{"terminal":true}`) + `
			<- {"jsonrpc":"2.0","id":"t","method":"terminal/create","params":{"sessionId":"s","command":"make"}}
			-> {"jsonrpc":"2.0","id":"t","result":{"terminalId":"t1"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"make","content":[{"type":"terminal","terminalId":"t1"}]}}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"make","content":[{"type":"terminal","terminalId":"t1"}]}}}`,
		on:    callMessages,
		check: func(e *event) {
			call := e.toolCall()
			if given(call, "_meta", "terminal_info") {
				return
			}
			c := e.call(e.session, text(call, "toolCallId"))
			for i, content := range items(call, "content") {
				id := text(content, "terminalId")
				if text(content, "type") != "terminal" || id == "" || c.shows(id) {
					continue
				}
				where := element(e.callPointer()+"/content", i) + "/terminalId"
				switch t := e.terminal(id); {
				case t != nil && t.released != nil:
					e.broken(where, "the terminal %q is released", clip(id)).because(t.released, "its release")
				case t == nil && !e.terminals.forgot && e.session != nil && e.session.by == methodNew:
					e.broken(where, "no terminal %q was created", clip(id))
				}
			}
		},
	},
	{
		ID:       "TOL-9",
		Versions: both,
		Breaks:   "Another status of a tool call that was completed or failed (version 2: or cancelled); and, as advice in version 1, a turn that ends by itself while a call of it is pending or in progress.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a.go","status":"in_progress"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}
			<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a.go","status":"completed"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}}}`,
		on: on(callMessages, results(methodPrompt)),
		check: func(e *event) {
			if e.kind == Response {
				e.openCalls()
				return
			}
			call := e.toolCall()
			c, status := e.call(e.session, text(call, "toolCallId")), text(call, "status")
			// A session/load tells the history again, from the beginning.
			if c != nil && c.final != nil && status != "" && short(status) != c.status && e.session.setup == nil && !e.again(c) {
				e.broken(e.callPointer()+"/status", "the call was already %s", clip(c.status)).because(c.final, "its end")
			}
		},
	},
}

// toolCall is what a message says about a tool call.
func (e *event) toolCall() value {
	if e.method != methodPermission {
		return member(e.content, "update")
	}
	if call := member(e.content, "toolCall"); call != nil {
		return call
	}
	return member(e.content, "subject", "toolCall") // in version 2
}

// callPointer is the place of toolCall.
func (e *event) callPointer() string {
	switch {
	case e.method != methodPermission:
		return "/update"
	case e.has("toolCall"):
		return "/toolCall"
	}
	return "/subject/toolCall"
}

// again reports whether the message begins a call of an id that was used before, which TOL-2 is about.
func (e *event) again(c *toolCall) bool { return e.update == "tool_call" && c.announced != nil }

// openCalls reports the calls that a turn of version 1 leaves open. A cancelled turn may leave them.
func (e *event) openCalls() {
	t := e.request.turn
	if t == nil || e.inForce != 1 || t.cancelled != nil || e.text("stopReason") == "cancelled" {
		return
	}
	for _, c := range t.calls {
		if c.final == nil && (c.status == "" || c.status == "pending" || c.status == "in_progress") {
			e.broken("", "the tool call %q is still open when its turn ends", clip(c.id)).because(c.at, "the tool call").mildly(Advice)
		}
	}
}
