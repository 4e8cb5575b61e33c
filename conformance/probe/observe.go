// The events of a scenario are recorded as traits, which the tables of requirements (rows.go) use.

package probe

import (
	"encoding/json"
	"strings"

	"github.com/acpgo/sdk/conformance"
)

// observe records the traits of a message. The lock of the connection is held; play.conn may not be set yet.
func (p *play) observe(m *message) {
	theirs := m.direction.Sender() == p.options.subject.side
	var traits []string
	add := func(names ...string) { traits = append(traits, names...) }
	switch about := p.options.subject; {
	case m.kind == conformance.Request || m.kind == conformance.Notification:
		add(arrow(m.direction) + " " + m.method)
		if theirs {
			add("message")
			about.request(p, m, add)
			if strings.HasPrefix(m.method, "_") {
				add("extension")
			}
		}
	case m.kind == conformance.Response && theirs:
		add("result "+m.method, "message", "answer")
		about.result(p, m, add)
	case m.kind == conformance.ErrorReply && theirs:
		add("error "+m.method, "error", "message", "answer")
	case m.kind == conformance.Response:
		add("answered " + m.method)
	case m.kind == conformance.ErrorReply:
		add("refused " + m.method)
	}
	if theirs && m.kind != conformance.ErrorReply && isSet(m.params, "_meta") {
		add("meta")
	}
	p.trait(traits...)
}

// observeRequest records the traits of a request or notification of the agent.
func (p *play) observeRequest(m *message, add func(...string)) {
	switch m.method {
	case "session/update":
		p.observeUpdate(m, member(m.params, "update"), add)
	case "session/request_permission":
		p.observeCall(member(m.params, "toolCall"), add)
	case "elicitation/create":
		add("elicitation " + m.text("mode"))
	case "fs/read_text_file", "fs/write_text_file":
		add("path")
	case "terminal/create":
		if isSet(m.params, "cwd") {
			add("terminal cwd", "path")
		}
	}
}

// observeUpdate records the traits of an update of a session.
func (p *play) observeUpdate(m *message, update json.RawMessage, add func(...string)) {
	kind := textOf(update, "sessionUpdate")
	add("update " + kind)
	switch kind {
	case "state_update":
		if len(p.states) < maxKept {
			p.states = append(p.states, m)
		}
	case "available_commands_update":
		commands := []string{""}
		for _, command := range elements(member(update, "availableCommands")) {
			commands = append(commands, textOf(command, "name"))
		}
		p.client.mu.Lock()
		p.client.commands[m.text("sessionId")] = commands
		p.client.mu.Unlock()
	case "tool_call", "tool_call_update":
		if status := textOf(update, "status"); status != "" {
			add("status " + status)
		}
		p.observeCall(update, add)
	case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
		addIf(update, "messageId", add)
		if kind := textOf(update, "content", "type"); kind != "" && kind != "text" {
			add("content " + kind)
		}
	case "session_info_update":
		addIf(update, "updatedAt", add)
	case "config_option_update":
		p.observeOptions(update, add)
	}
}

// addIf records the trait of a member that is set.
func addIf(value json.RawMessage, name string, add func(...string)) {
	if isSet(value, name) {
		add(name)
	}
}

// observeCall records the traits of a tool call.
func (p *play) observeCall(call json.RawMessage, add func(...string)) {
	for _, location := range elements(member(call, "locations")) {
		add("path", "location")
		addIf(location, "line", add)
	}
	for _, content := range elements(member(call, "content")) {
		kind := textOf(content, "type")
		add("content " + kind)
		if kind == "diff" {
			add("path")
		}
	}
}

// observeOptions records the traits of the options of an answer or an update.
func (p *play) observeOptions(value json.RawMessage, add func(...string)) {
	for _, option := range elements(member(value, "configOptions")) {
		if kind := textOf(option, "type"); kind != "" {
			add("options", "option "+kind)
		}
		addIf(option, "category", add)
	}
}

// observeResult records the traits of an answer of the agent.
func (p *play) observeResult(m *message, add func(...string)) {
	switch m.method {
	case "initialize":
		if elements(member(m.params, "authMethods")) != nil {
			add("auth methods")
		}
	case "session/new", "session/load", "session/resume":
		addIf(m.params, "modes", add)
		p.observeOptions(m.params, add)
	case "session/set_config_option":
		p.observeOptions(m.params, add)
	case "session/list":
		for _, listed := range elements(member(m.params, "sessions")) {
			add("path", "listed")
			addIf(listed, "updatedAt", add)
		}
	case "session/prompt":
		if reason := m.text("stopReason"); reason != "" {
			add("stop " + reason)
		}
	}
}

// observeClientRequest records the traits of a request or notification of the client.
func (p *play) observeClientRequest(m *message, add func(...string)) {
	if m.kind == conformance.Request && m.method == "initialize" {
		p.init, p.Itself = m, m.params
	}
	if isSet(m.params, "cwd") {
		add("cwd", "path")
	}
	if len(elements(member(m.params, "additionalDirectories"))) > 0 {
		add("roots", "path")
	}
	for _, s := range elements(member(m.params, "mcpServers")) {
		add("mcp")
		if kind := textOf(s, "type"); kind == "" || kind == "stdio" {
			add("mcp stdio", "path")
		}
	}
	for _, block := range elements(member(m.params, "prompt")) {
		add("content " + textOf(block, "type"))
	}
}

// observeClientResult records the traits of an answer of the client.
func (p *play) observeClientResult(m *message, add func(...string)) {
	switch m.method {
	case "session/request_permission":
		add("outcome " + m.text("outcome", "outcome"))
	case "elicitation/create":
		add("elicitation " + m.text("action"))
	}
}
