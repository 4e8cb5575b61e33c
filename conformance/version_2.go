// Rules of version 2, which is a draft: what follows from its schema beside the rules that it shares with version 1.

package conformance

import (
	"strings"
	"unicode"
)

var version2Rules = []rule{
	{
		ID:       "V2-1",
		Versions: []int{2},
		Breaks:   "Work that begins and ends after the answer to session/prompt, or an answer to session/close, before a user message with the messageId of that answer.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"messageId":"m"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"hello"}]}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"messageId":"m"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`,
		on: on(updates("state_update"), results(methodClose)),
		// The answer says that the message is in the conversation, and all go the same way. Work that was going on at the
		// time of the answer may be that of an earlier prompt, and may end before the message comes.
		check: func(e *event) {
			s := e.session
			if s == nil || e.messages.forgot || e.kind == Notification && (e.text("update", "state") != stateIdle || !working(s.state)) {
				return
			}
			for _, a := range s.accepted {
				if (!a.during || e.kind == Response) && e.heard(s, a.id, true) == nil {
					e.broken("", "no user message %q before", clip(a.id)).because(a.at, "the prompt was accepted under this messageId")
				}
			}
		},
	},
	{
		ID:       "V2-2",
		Versions: []int{2},
		Breaks:   "The idle state with a stop reason in a new session that was never reported as running.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`,
		on:    updates("state_update"),
		check: func(e *event) {
			s := e.session
			if s != nil && s.made && s.state == "" && e.text("update", "state") == stateIdle && e.given("update", "stopReason") {
				e.broken("/update/state", "the end of work that was never reported").because(s.given, "the session is new")
			}
		},
	},
	{
		ID:       "V2-3",
		Versions: []int{2},
		Breaks:   "An idle state after another one with a different stop reason, without running or requires_action between them.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`,
		on: updates("state_update"),
		check: func(e *event) {
			s, stop := e.session, e.text("update", "stopReason")
			if s != nil && s.state == stateIdle && e.text("update", "state") == stateIdle && stop != "" && s.stop != "" && stop != s.stop {
				e.broken("/update/stopReason", "the work has ended as %s before", s.stop).because(s.stated, "the first end")
			}
		},
	},
	{
		ID:       "V2-4",
		Versions: []int{2},
		Breaks:   "An answer to session/close while the last state is running or requires_action: the idle state comes first.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		on: results(methodClose),
		check: func(e *event) {
			if s := e.session; s != nil && working(s.state) {
				e.broken("", "closed while the session is %s", s.state).because(s.stated, "the last state")
			}
		},
	},
	{
		ID:       "V2-5",
		Versions: []int{2},
		Breaks:   "A message of the agent for a session after the answer to session/close.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle"}}}`,
		on: on(updates(), requests()),
		check: func(e *event) {
			if s := e.session; s != nil && s.closed != nil && e.sender() == Agent && e.once(s.id) {
				e.broken("/sessionId", "the session is closed").because(s.closed, "it was closed")
			}
		},
	},
	{
		ID:       "V2-6",
		Versions: []int{2},
		Breaks:   "The first tool_call_update of a tool call without a title, in a session that began on this connection.",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Read a.go"}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}}}`,
		on:       updates("tool_call_update"),
		check: func(e *event) {
			s, id := e.session, e.text("update", "toolCallId")
			if s != nil && s.made && s.setup == nil && id != "" && e.call(s, id) == nil && !e.calls.forgot && !e.given("update", "title") {
				e.broken("/update", "a new tool call without a title")
			}
		},
	},
	{
		ID:       "V2-7",
		Versions: []int{2},
		Breaks:   "A terminal whose cwd changes.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_update","terminalId":"t","command":"ls","cwd":"/work"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_update","terminalId":"t","cwd":"/work"}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_update","terminalId":"t","command":"ls","cwd":"/work"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_update","terminalId":"t","cwd":"/tmp"}}}`,
		on: updates("terminal_update"),
		check: func(e *event) {
			if e.session == nil {
				return
			}
			t := e.terminal(terminalKey(e.session, e.text("update", "terminalId")))
			if cwd := e.text("update", "cwd"); t != nil && t.cwd != "" && cwd != "" && t.cwd != short(cwd) {
				e.broken("/update/cwd", "the command's directory was another one").because(t.at, "the first update")
			}
		},
	},
	{
		ID:       "V2-8",
		Versions: []int{2},
		Breaks:   "The data of a terminal_output_chunk, or of a terminal's output, that is not base64 by itself.",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"aGk="}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":"a"}}}`,
		on:       updates("terminal_output_chunk", "terminal_update"),
		check: func(e *event) {
			e.base64("/update/data", member(e.content, "update", "data"))
			e.base64("/update/output/data", member(e.content, "update", "output", "data"))
		},
	},
	{
		ID:       "V2-9",
		Versions: []int{2},
		Breaks:   "A message, a tool call or a plan between session/resume without replayFrom and its answer, for a session that was not in use.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work","replayFrom":{"type":"start"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message","messageId":"m","content":[]}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message","messageId":"m","content":[]}}}`,
		on: updates("user_message", "user_message_chunk", "agent_message", "agent_message_chunk", "agent_thought", "agent_thought_chunk", "tool_call_update", "plan_update"),
		check: func(e *event) {
			s := e.session
			if s != nil && s.setup != nil && s.setupNew && s.setup.params != nil && !given(s.setup.params, "replayFrom") && e.once(s.id) {
				e.broken("", "history that was not asked for").because(s.setup.at, "the request")
			}
		},
	},
	{
		ID:       "V2-10",
		Versions: []int{2},
		Breaks:   "An answer to session/resume without a state_update before it.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"state_update","state":"idle"}}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work"}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		on: results(methodResume),
		check: func(e *event) {
			if s := e.session; s != nil && s.setup == e.request && (s.stated == nil || s.stated.Number < e.request.at.Number) {
				e.broken("", "no state of the session before the answer").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:       "V2-11",
		Versions: []int{2},
		Breaks:   "A replay in which a message begins with a chunk: it begins with the whole-message update, with empty content.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work","replayFrom":{"type":"start"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message","messageId":"m","content":[]}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"hello"}}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"old","cwd":"/work","replayFrom":{"type":"start"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"hello"}}}}`,
		on: updates("user_message_chunk", "agent_message_chunk"),
		// In a session that was in use, a chunk of the present may come between.
		check: func(e *event) {
			s, id := e.session, e.text("update", "messageId")
			if s != nil && s.setup != nil && s.setupNew && given(s.setup.params, "replayFrom") && id != "" && e.heard(s, id, e.update == "user_message_chunk") == nil && !e.messages.forgot && e.once(s.id) {
				e.broken("/update", "a replayed message begins with a chunk").because(s.setup.at, "the request")
			}
		},
	},
	{
		ID:       "V2-12",
		Versions: []int{2},
		Breaks:   "auth/login or auth/logout to an agent whose authMethods are missing or empty.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"capabilities":{},"info":{"name":"c","version":"1"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"capabilities":{},"info":{"name":"a","version":"1"},"authMethods":[{"type":"agent","methodId":"key","name":"API key"}]}}
			-> {"jsonrpc":"2.0","id":10,"method":"auth/logout","params":{}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"auth/logout","params":{}}`,
		on:    requests("auth/login", "auth/logout"),
		check: func(e *event) {
			if e.initialized != nil && e.authMethods.none() {
				e.broken("", "the agent has no authMethods").because(e.initialized, "what it offers")
			}
		},
	},
	{
		ID:       "V2-13",
		Versions: []int{2},
		Breaks:   "A session's request to an agent that does not state the capability session.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"capabilities":{},"info":{"name":"c","version":"1"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"capabilities":{"session":{}},"info":{"name":"a","version":"1"}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work"}}`,
		on:    requests(methodNew, methodList, methodResume, methodClose, methodPrompt, methodDelete, methodSetOption),
		check: func(e *event) { e.needs(&e.agent, "session") },
	},
	{
		ID:       "V2-14",
		Versions: []int{2},
		Breaks:   "A prompt that is not in the conversation when its session is closed, and is answered with another error than -32800.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32800,"message":"cancelled"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/close","params":{"sessionId":"s"}}
			<- {"jsonrpc":"2.0","id":11,"result":{}}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"closed"}}`,
		on: failures(methodPrompt),
		check: func(e *event) {
			code, _ := integer(e.content, "code")
			if s := e.session; s != nil && s.closed != nil && e.request.at.Number < s.closed.Number && code != codeCancelled {
				e.broken("/code", "closing the session cancels the prompt").because(s.closed, "the session was closed").because(e.request.at, "the prompt")
			}
		},
	},
	{
		ID:       "V2-15",
		Versions: []int{2},
		Breaks:   "A state_update without background in a session whose earlier states had it.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running","background":[]}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","background":[]}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running","background":[]}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle"}}}`,
		on: updates("state_update"),
		check: func(e *event) {
			if s := e.session; s != nil && s.background != nil && !e.given("update", "background") {
				e.broken("/update/background", "the agent reports background work, but not here").because(s.background, "a state with it")
			}
		},
	},
	{
		ID:       "V2-16",
		Versions: []int{2},
		Breaks:   "A replayed user message with another messageId than any that the session had on this connection, on which it began.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"hello"}]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"s","cwd":"/work","replayFrom":{"type":"start"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"hello"}]}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"hello"}]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/resume","params":{"sessionId":"s","cwd":"/work","replayFrom":{"type":"start"}}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"n","content":[{"type":"text","text":"hello"}]}}}`,
		on: updates("user_message", "user_message_chunk"),
		// Only while there is no prompt whose answer or end is awaited: its message is new, and may be in the replay.
		check: func(e *event) {
			s, id := e.session, e.text("update", "messageId")
			if s == nil || !s.made || s.setup == nil || len(s.turns)+len(s.accepted) > 0 || id == "" || e.messages.forgot {
				return
			}
			if e.heard(s, id, true) == nil && e.once(s.id) {
				e.broken("/update/messageId", "a message %q that the session did not have", clip(id)).because(s.setup.at, "the request of the replay")
			}
		},
	},
	{
		ID:       "V2-17",
		Versions: []int{2},
		Breaks:   "An answer to session/prompt with the messageId of a user's message that was there before the prompt.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m","content":[]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"messageId":"n"}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m","content":[]}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"messageId":"m"}}`,
		on: results(methodPrompt),
		// Of a prompt that was held before it, the message may be new.
		check: func(e *event) {
			s, id := e.session, e.text("messageId")
			if s == nil || e.request == nil || len(s.turns) != 1 || s.lost {
				return
			}
			if before := e.heard(s, id, true); before != nil && before.Number < e.request.at.Number {
				e.broken("/messageId", "%q is the id of an earlier message", clip(id)).because(before, "the earlier message").because(e.request.at, "the prompt")
			}
		},
	},
	{
		ID:       "V2-18",
		Versions: []int{2},
		Breaks:   "Two options of a permission request with the same optionId.",
		Right:    `<- {"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","title":"Delete?","options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]}}`,
		Wrong:    `<- {"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","title":"Delete?","options":[{"optionId":"a","name":"Allow","kind":"allow_once"},{"optionId":"a","name":"Reject","kind":"reject_once"}]}}`,
		on:       requests(methodPermission),
		check:    func(e *event) { e.unique("/options", "optionId", "an option") },
	},
	{
		ID:       "V2-19",
		Versions: []int{2},
		Breaks:   "A command whose name has white space, or is that of another command of the list.",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"web","description":"Search the web"}]}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"search web","description":"Search the web"}]}}}`,
		on:       updates("available_commands_update"),
		check: func(e *event) {
			e.unique("/update/availableCommands", "name", "a command")
			for i, command := range items(e.content, "update", "availableCommands") {
				if name := text(command, "name"); strings.ContainsFunc(name, unicode.IsSpace) {
					e.broken(element("/update/availableCommands", i)+"/name", "%q has white space", clip(name))
				}
			}
		},
	},
	{
		ID:       "V2-20",
		Versions: []int{2},
		Breaks:   "A select with a value twice, be it in two groups. (That it and its groups have values is in the schema.)",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"configId":"model","name":"Model","type":"select","currentValue":"l","options":[{"groupId":"a","name":"A","options":[{"value":"l","name":"L"}]},{"groupId":"b","name":"B","options":[{"value":"s","name":"S"}]}]}]}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"configId":"model","name":"Model","type":"select","currentValue":"l","options":[{"groupId":"a","name":"A","options":[{"value":"l","name":"L"}]},{"groupId":"b","name":"B","options":[{"value":"l","name":"L"}]}]}]}}}`,
		on:       offersOptions,
		check: func(e *event) {
			for i, option := range items(e.configOptions()) {
				where := element(e.optionsPointer(), i) + "/options"
				if text(option, "type") != "select" || !e.sound(where) {
					continue
				}
				seen := map[string]bool{}
				var look func(where string, list value)
				look = func(where string, list value) {
					for i, v := range items(list) {
						if group := member(v, "options"); isArray(group) {
							look(element(where, i)+"/options", group)
							continue
						}
						id := text(v, "value")
						if seen[id] {
							e.broken(element(where, i)+"/value", "%q for a second time", clip(id))
						}
						seen[id] = true
					}
				}
				look(where, member(option, "options"))
			}
		},
	},
	{
		ID:       "V2-21",
		Versions: []int{2},
		Breaks:   "A login in a terminal whose env has a name twice.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"capabilities":{"auth":{"terminal":{}}},"info":{"name":"c","version":"1"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"capabilities":{},"info":{"name":"a","version":"1"},"authMethods":[{"type":"terminal","methodId":"t","name":"T","env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]}]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"capabilities":{"auth":{"terminal":{}}},"info":{"name":"c","version":"1"}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"capabilities":{},"info":{"name":"a","version":"1"},"authMethods":[{"type":"terminal","methodId":"t","name":"T","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}`,
		on: results(methodInitialize),
		check: func(e *event) {
			for i, method := range items(e.content, "authMethods") {
				if text(method, "type") == "terminal" {
					e.uniqueIn(element("/authMethods", i)+"/env", member(method, "env"), "name", "a variable")
				}
			}
		},
	},
	{
		ID:       "V2-22",
		Versions: []int{2},
		Breaks:   "The idle state with another stop reason than cancelled, at the end of work that was cancelled, though the agent had read session/cancel: it had answered a later request.",
		Right: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/ping"}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"Method not found"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}}}`,
		Wrong: `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}}
			-> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
			-> {"jsonrpc":"2.0","id":10,"method":"_example.com/ping"}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"Method not found"}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`,
		on: updates("state_update"),
		check: func(e *event) {
			s, stop := e.session, e.text("update", "stopReason")
			if s != nil && s.heeded != nil && e.text("update", "state") == stateIdle && stop != "" && stop != "cancelled" {
				e.broken("/update/stopReason", "the work was cancelled").because(s.halted, "the cancellation").because(s.heeded, "the agent had read it when this was answered")
			}
		},
	},
}

// unique reports elements of a list that have a member in common with an earlier one.
func (e *event) unique(list, name, what string) {
	e.uniqueIn(list, member(e.content, strings.Split(list[1:], "/")...), name, what)
}

// uniqueIn is unique for a list that is at hand.
func (e *event) uniqueIn(where string, list value, name, what string) {
	seen := map[string]bool{}
	for i, item := range items(list) {
		v := member(item, name)
		if isText(v) && seen[text(v)] {
			e.broken(element(where, i)+"/"+name, "%q is the %s of %s before", clip(text(v)), name, what)
		}
		seen[text(v)] = true
	}
}
