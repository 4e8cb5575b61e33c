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
			if isSet(m.params, "_meta") {
				add("meta")
			}
		}
	case m.kind == conformance.Response && theirs:
		add("result "+m.method, "message", "answer")
		about.result(p, m, add)
		if isSet(m.params, "_meta") {
			add("meta")
		}
	case m.kind == conformance.ErrorReply && theirs:
		add("error "+m.method, "error", "message", "answer")
	case m.kind == conformance.Response:
		add("answered " + m.method)
	case m.kind == conformance.ErrorReply:
		add("refused " + m.method)
	}
	p.trait(traits...)
}

// observeRequest records the traits of a request or notification of the agent.
func (p *play) observeRequest(m *message, add func(...string)) {
	switch m.method {
	case "session/update":
		kind := m.text("update", "sessionUpdate")
		add("update " + kind)
		update := member(m.params, "update")
		switch kind {
		case "state_update":
			if len(p.states) < maxKept {
				p.states = append(p.states, m)
			}
		case "available_commands_update":
			p.client.mu.Lock()
			commands := []string{""}
			for _, command := range elements(member(update, "availableCommands")) {
				var name string
				if json.Unmarshal(member(command, "name"), &name) == nil {
					commands = append(commands, name)
				}
			}
			p.client.commands[m.text("sessionId")] = commands
			p.client.mu.Unlock()
		case "tool_call", "tool_call_update":
			if status := m.text("update", "status"); status != "" {
				add("status " + status)
			}
			p.observeCall(update, add)
		case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
			if isSet(update, "messageId") {
				add("messageId")
			}
			if kind := m.text("update", "content", "type"); kind != "" && kind != "text" {
				add("content " + kind)
			}
		case "session_info_update":
			if isSet(update, "updatedAt") {
				add("updatedAt")
			}
		case "config_option_update":
			p.observeOptions(member(update, "configOptions"), add)
		}
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

// observeCall records the traits of a tool call.
func (p *play) observeCall(call json.RawMessage, add func(...string)) {
	for _, location := range elements(member(call, "locations")) {
		add("path", "location")
		if isSet(location, "line") {
			add("line")
		}
	}
	for _, content := range elements(member(call, "content")) {
		var kind string
		if json.Unmarshal(member(content, "type"), &kind) == nil {
			add("content " + kind)
		}
		if kind == "diff" {
			add("path")
		}
	}
}

func (p *play) observeOptions(options json.RawMessage, add func(...string)) {
	for _, option := range elements(options) {
		var kind string
		if json.Unmarshal(member(option, "type"), &kind) == nil {
			add("options", "option "+kind)
		}
		if isSet(option, "category") {
			add("category")
		}
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
		if isSet(m.params, "modes") {
			add("modes")
		}
		p.observeOptions(member(m.params, "configOptions"), add)
	case "session/set_config_option":
		p.observeOptions(member(m.params, "configOptions"), add)
	case "session/list":
		for _, listed := range elements(member(m.params, "sessions")) {
			add("path", "listed")
			if isSet(listed, "updatedAt") {
				add("updatedAt")
			}
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
		p.init, p.itself = m, m.params
	}
	if isSet(m.params, "cwd") {
		add("cwd", "path")
	}
	if len(elements(member(m.params, "additionalDirectories"))) > 0 {
		add("roots", "path")
	}
	for _, s := range elements(member(m.params, "mcpServers")) {
		add("mcp")
		var kind string
		if json.Unmarshal(member(s, "type"), &kind) != nil || kind == "stdio" {
			add("mcp stdio", "path")
		}
	}
	for _, block := range elements(member(m.params, "prompt")) {
		var kind string
		if json.Unmarshal(member(block, "type"), &kind) == nil {
			add("content " + kind)
		}
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
