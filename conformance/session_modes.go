// Rules of the page session-modes.

package conformance

var sessionModesRules = []rule{
	{
		ID:     "MOD-1",
		Breaks: "session/set_mode with a mode that is not among the session's availableModes.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/set_mode","params":{"sessionId":"t","modeId":"code"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}}}
			-> {"jsonrpc":"2.0","id":11,"method":"session/set_mode","params":{"sessionId":"t","modeId":"fly"}}`,
		on: requests(methodSetMode),
		// The client knows the modes from the answer that it has read before; a judge has seen that one too.
		check: func(e *event) {
			s, mode := e.session, e.text("modeId")
			switch {
			case s == nil || s.given == nil || s.setup != nil || mode == "":
			case s.modes == nil:
				e.broken("/modeId", "the session has no modes").because(s.given, "what the session was given")
			case !s.modes.has(mode):
				e.broken("/modeId", "the mode %q is not available", clip(mode)).because(s.modes.at, "the modes of the session")
			}
		},
	},
	{
		ID:     "MOD-2",
		Breaks: "A currentModeId, in an answer or in current_mode_update, that is not among availableModes.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessionId":"t","modes":{"currentModeId":"fly","availableModes":[{"id":"ask","name":"Ask"}]}}}`,
		on: on(results(setupMethods...), updates("current_mode_update")),
		check: func(e *event) {
			if e.kind == Notification {
				mode := e.text("update", "currentModeId")
				if s := e.session; s != nil && s.modes != nil && mode != "" && !s.modes.has(mode) {
					e.broken("/update/currentModeId", "the mode %q is not available", clip(mode)).because(s.modes.at, "the modes of the session")
				}
				return
			}
			mode := member(e.content, "modes", "currentModeId")
			if !isText(mode) || !isArray(member(e.content, "modes", "availableModes")) {
				return
			}
			for _, available := range items(e.content, "modes", "availableModes") {
				if text(available, "id") == text(mode) {
					return
				}
			}
			e.broken("/modes/currentModeId", "the mode %q is not available", clip(text(mode)))
		},
	},
}
