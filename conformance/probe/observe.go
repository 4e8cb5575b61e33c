// What happened in a scenario, in the words of the table of requirements (rows.go).

package probe

import (
	"encoding/json"
	"strings"

	"github.com/acpgo/sdk/conformance"
)

// observe notes the traits of a message. The lock of the connection is held.
func (p *play) observe(m *message) {
	theirs := m.direction == conformance.ToClient
	var traits []string
	add := func(names ...string) { traits = append(traits, names...) }
	switch m.kind {
	case conformance.Request, conformance.Notification:
		if !theirs {
			add("-> " + m.method)
			break
		}
		add("<- "+m.method, "message")
		p.observeRequest(m, add)
	case conformance.Response:
		if theirs {
			add("result "+m.method, "message", "answer")
			p.observeResult(m, add)
		} else {
			add("answered " + m.method)
		}
	case conformance.ErrorReply:
		if theirs {
			add("error "+m.method, "error", "message", "answer")
		} else {
			add("refused " + m.method)
		}
	}
	p.trait(traits...)
}

// observeRequest notes what a request or notification of the agent is about.
func (p *play) observeRequest(m *message, add func(...string)) {
	switch m.method {
	case "session/update":
		kind := m.text("update", "sessionUpdate")
		add("update " + kind)
		update := member(m.params, "update")
		switch kind {
		case "available_commands_update":
			p.client.mu.Lock()
			p.client.commands = nil
			for _, command := range elements(member(update, "availableCommands")) {
				var name string
				if json.Unmarshal(member(command, "name"), &name) == nil {
					p.client.commands = append(p.client.commands, name)
				}
			}
			p.client.mu.Unlock()
		case "tool_call", "tool_call_update":
			if status := m.text("update", "status"); status != "" {
				add("status " + status)
			}
			p.observeCall(update, add)
		case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
			if given(update, "messageId") {
				add("messageId")
			}
			if kind := m.text("update", "content", "type"); kind != "" && kind != "text" {
				add("content " + kind)
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
		if given(m.params, "cwd") {
			add("terminal cwd", "path")
		}
	}
	if strings.HasPrefix(m.method, "_") {
		add("extension")
	}
	if given(m.params, "_meta") {
		add("meta")
	}
}

// observeCall notes what a tool call shows.
func (p *play) observeCall(call json.RawMessage, add func(...string)) {
	for _, location := range elements(member(call, "locations")) {
		add("path", "location")
		if given(location, "line") {
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
		if given(option, "category") {
			add("category")
		}
	}
}

// observeResult notes what an answer of the agent shows.
func (p *play) observeResult(m *message, add func(...string)) {
	switch m.method {
	case "initialize":
		if elements(member(m.params, "authMethods")) != nil {
			add("auth methods")
		}
	case "session/new", "session/load", "session/resume":
		if given(m.params, "modes") {
			add("modes")
		}
		p.observeOptions(member(m.params, "configOptions"), add)
	case "session/set_config_option":
		p.observeOptions(member(m.params, "configOptions"), add)
	case "session/list":
		if len(elements(member(m.params, "sessions"))) > 0 {
			add("path", "listed")
		}
	case "session/prompt":
		if reason := m.text("stopReason"); reason != "" {
			add("stop " + reason)
		}
	}
	if given(m.params, "_meta") {
		add("meta")
	}
}
