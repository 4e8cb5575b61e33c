// Rules beside the pages: found by running real programs.

package conformance

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var additionsRules = []rule{
	{
		ID:       "ADD-2",
		Versions: both,
		Breaks: "An update or a request for a session that no answer has given to the client and that the client has never named, while no answer is awaited " +
			"that may give it.",
		Right: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"x","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`,
		on: on(updates(), requests(methodPermission, methodElicit, methodReadFile, methodWriteFile,
			methodTerminalCreate, methodTerminalOutput, methodTerminalWait, methodTerminalKill, methodTerminalRelease)),
		// The agent gives a session only by an answer, which a judge sees before all that the agent sends later.
		check: func(e *event) {
			s, id := e.session, e.text("sessionId")
			if e.sender() != Agent || s != nil && (s.given != nil || s.asked) || id == "" || e.initialized == nil || e.sessions.forgot || e.listed.forgot || e.giving > 0 || e.garbled[Client] {
				return
			}
			if _, listed := e.listed.get(id); !listed && e.once(id) {
				e.broken("/sessionId", "the client knows no session %q", clip(id))
			}
		},
	},
	{
		ID:       "ADD-5",
		Versions: both,
		Breaks:   "Two authMethods with one id.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"a","name":"A"},{"id":"a","name":"B"}]}}`,
		on:    results(methodInitialize),
		check: func(e *event) { e.unique("/authMethods", e.named("id", "methodId"), "a method") },
	},
	{
		ID:       "ADD-6",
		Versions: both,
		Breaks:   "An error whose message is empty or has a line break.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"_ping"}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"method not found"}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"_ping"}
			<- {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":""}}`,
		on: failures(),
		check: func(e *event) {
			switch message := member(e.content, "message"); {
			case !isText(message):
			case strings.TrimSpace(text(message)) == "":
				e.broken("/message", "the message is empty")
			case strings.ContainsAny(strings.TrimRight(text(message), "\r\n"), "\r\n"):
				e.broken("/message", "the message has more than one line")
			}
		},
	},
	{
		ID:       "ADD-7",
		Versions: both,
		Breaks:   "An answer to initialize that echoes a version that is not published, or chooses one below 1.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":65535,"info":{"name":"editor","version":"1.0"},"capabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":65535,"info":{"name":"editor","version":"1.0"},"capabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":65535,"agentCapabilities":{}}}`,
		on: results(methodInitialize),
		check: func(e *event) {
			if chosen, ok := integer(e.content, "protocolVersion"); ok && (chosen > latestVersion || chosen < 1) {
				e.broken("/protocolVersion", "there is no version %d", chosen).because(e.initialize, "the request")
			}
		},
	},
	{
		ID:       "ADD-10",
		Versions: both,
		Breaks: "What is unstable to a side that has not stated the capability for it: a method, systemPrompt of a session or archived of session/list, " +
			"be they empty, or (version 1) an update of a plan with an id or of a subagent.",
		Right: `
			-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
			<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"fork":{}}}}}
			-> {"jsonrpc":"2.0","id":10,"method":"session/fork","params":{"sessionId":"s","cwd":"/work"}}`,
		Wrong: `-> {"jsonrpc":"2.0","id":10,"method":"session/fork","params":{"sessionId":"s","cwd":"/work"}}`,
		on:    on(requests(append(unstableMethods(), methodNew, methodLoad, methodResume, methodList)...), updates(slices.Sorted(maps.Keys(unstableUpdate))...)),
		check: func(e *event) {
			switch {
			case e.sender() == Agent:
				if e.inForce == 1 && e.kind == Notification {
					e.needs(&e.client, unstableUpdate[e.update])
				}
				return
			case e.inForce == 1 && unstableCapability[e.method] != "":
				e.needs(&e.agent, unstableCapability[e.method])
			}
			for name, v1 := range unstableMember {
				capability := e.named(v1, strings.Replace(v1, "sessionCapabilities", "session", 1))
				if e.given(name) && !e.agent.can(capability) {
					e.broken("/"+name, "the agent does not state %s", capability).because(e.agent.at, "its capabilities")
				}
			}
		},
	},
	{
		ID:     "ADD-12",
		Breaks: "The session's first available_commands_update after the answer to session/load, before the next prompt.",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/load","params":{"sessionId":"old","cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/load","params":{"sessionId":"old","cwd":"/work","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":10,"result":{}}
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`,
		on: updates("available_commands_update"),
		check: func(e *event) {
			if s := e.session; s != nil && s.loaded != nil && s.commands == nil {
				e.broken("", "the commands come after the answer to session/load").because(s.loaded, "the answer")
			}
		},
	},
	{
		ID: "ADD-13",
		Breaks: "An updatedAt of a listed session or of a session_info_update that is not an ISO 8601 date, with or without a time. " +
			"(Version 2: the format in its schema.)",
		Right: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"session_info_update","updatedAt":"2026-01-02T03:04:05Z"}}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"session_info_update","updatedAt":"yesterday"}}}`,
		on:    on(results(methodList), updates("session_info_update")),
		check: func(e *event) {
			timestamp := func(where string, v value) {
				if at := member(v, "updatedAt"); isText(at) && !iso8601.MatchString(text(at)) {
					e.broken(where+"/updatedAt", "%q is not an ISO 8601 timestamp", clip(text(at)))
				}
			}
			timestamp("/update", member(e.content, "update"))
			for i, s := range items(e.content, "sessions") {
				timestamp(element("/sessions", i), s)
			}
		},
	},
	{
		ID:     "ADD-15",
		Breaks: "terminal/output, terminal/wait_for_exit or terminal/kill for a terminal that the agent has released before, unless the release failed.",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}`,
		on: requests(methodTerminalOutput, methodTerminalWait, methodTerminalKill),
		check: func(e *event) {
			if t := e.terminal(e.text("terminalId")); t != nil && t.released != nil && !t.held {
				e.broken("/terminalId", "the terminal is released").because(t.released, "its release")
			}
		},
	},
	{
		ID:       "ADD-16",
		Versions: both,
		Breaks: "A session in the answer to session/list whose cwd is not that of the filter. (Less than a MUST: an agent may compare what links " +
			"lead to.)",
		Right: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{"cwd":"/work/"}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessions":[{"sessionId":"t","cwd":"/work"}]}}`,
		Wrong: `
			-> {"jsonrpc":"2.0","id":10,"method":"session/list","params":{"cwd":"/work"}}
			<- {"jsonrpc":"2.0","id":10,"result":{"sessions":[{"sessionId":"t","cwd":"/work/lib"}]}}`,
		on: results(methodList),
		check: func(e *event) {
			if e.request == nil || !given(e.request.params, "cwd") {
				return
			}
			wanted := text(e.request.params, "cwd")
			plain := func(p string) string { return path.Clean(strings.ReplaceAll(p, `\`, "/")) }
			for i, s := range items(e.content, "sessions") {
				if cwd := text(s, "cwd"); absolute(cwd) && !strings.EqualFold(plain(cwd), plain(wanted)) {
					e.broken(element("/sessions", i)+"/cwd", "%q is not the directory of the filter", clip(cwd)).because(e.request.at, "the request")
				}
			}
		},
	},
}

// iso8601 is a date of the calendar, of the year or of a week, with or without a time.
var iso8601 = regexp.MustCompile(`^(?i)[+-]?\d{4,6}(-?(0[1-9]|1[0-2])(-?(0[1-9]|[12]\d|3[01]))?|-?[0-3]\d\d|-?W[0-5]\d(-?[1-7])?)` +
	`(T([01]\d|2[0-4])(:?[0-5]\d(:?([0-5]\d|60))?)?([.,]\d+)?(Z|[+-][01]\d(:?[0-5]\d)?)?)?$`)

// unstableCapability is the capability of the agent that an unstable method of version 1 needs.
var unstableCapability = map[string]string{
	"session/fork":      "sessionCapabilities.fork",
	"session/archive":   "sessionCapabilities.archive",
	"session/unarchive": "sessionCapabilities.archive",
	"session/status":    "sessionCapabilities.status",
	"session/set_title": "sessionCapabilities.title",
	"auth/status":       "auth.status",
	"providers/list":    "providers",
	"providers/set":     "providers",
	"providers/disable": "providers",
}

// unstableMember is the capability of the agent that an unstable member of a request of version 1 needs.
var unstableMember = map[string]string{"systemPrompt": "sessionCapabilities.systemPrompt", "archived": "sessionCapabilities.archive"}

// unstableUpdate is the capability of the client that an unstable update of version 1 needs.
var unstableUpdate = map[string]string{
	"plan_update":           "plan",
	"plan_removed":          "plan",
	"subagent_update":       "subagents",
	"session_message":       "subagents",
	"session_message_chunk": "subagents",
}

func unstableMethods() []string { return slices.Sorted(maps.Keys(unstableCapability)) }
