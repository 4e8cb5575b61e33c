// The events of a scenario are recorded as traits, which the tables of requirements (rows.txt) use.

package probe

import (
	"encoding/json"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// observe records the traits of a message. The lock of the connection is held; play.conn may not be set yet.
func (p *play) observe(m *player.Message) {
	theirs := m.Direction.Sender() == p.options.subject.side
	var traits []string
	add := func(names ...string) { traits = append(traits, names...) }
	switch about := p.options.subject; {
	case m.Kind == conformance.Request || m.Kind == conformance.Notification:
		add(player.Arrow(m.Direction) + " " + m.Method)
		if theirs {
			add("message")
			about.request(p, m, add)
			if strings.HasPrefix(m.Method, "_") {
				add("extension")
			}
		}
	case m.Kind == conformance.Response && theirs:
		add("result "+m.Method, "message", "answer")
		about.result(p, m, add)
	case m.Kind == conformance.ErrorReply && theirs:
		add("error "+m.Method, "error", "message", "answer")
	case m.Kind == conformance.Response:
		add("answered " + m.Method)
	case m.Kind == conformance.ErrorReply:
		add("refused " + m.Method)
	}
	if theirs && m.Kind != conformance.ErrorReply && player.IsSet(m.Params, "_meta") {
		add("meta")
	}
	p.trait(traits...)
}

// observeRequest records the traits of a request or notification of the agent.
func (p *play) observeRequest(m *player.Message, add func(...string)) {
	switch m.Method {
	case "session/update":
		p.observeUpdate(m, player.Member(m.Params, "update"), add)
	case "session/request_permission":
		p.observeCall(player.Member(m.Params, "toolCall"), add)
	case "elicitation/create":
		add("elicitation " + m.Text("mode"))
	case "fs/read_text_file", "fs/write_text_file":
		add("path")
	case "terminal/create":
		if player.IsSet(m.Params, "cwd") {
			add("terminal cwd", "path")
		}
	}
}

// observeUpdate records the traits of an update of a session.
func (p *play) observeUpdate(m *player.Message, update json.RawMessage, add func(...string)) {
	kind := player.TextOf(update, "sessionUpdate")
	add("update " + kind)
	switch kind {
	case "state_update":
		if len(p.states) < player.MaxKept {
			p.states = append(p.states, m)
		}
	case "available_commands_update":
		commands := []string{""}
		for _, command := range player.Elements(player.Member(update, "availableCommands")) {
			commands = append(commands, player.TextOf(command, "name"))
		}
		p.client.mu.Lock()
		p.client.commands[m.Text("sessionId")] = commands
		p.client.mu.Unlock()
	case "tool_call", "tool_call_update":
		if status := player.TextOf(update, "status"); status != "" {
			add("status " + status)
		}
		p.observeCall(update, add)
	case "agent_message_chunk", "user_message_chunk", "agent_thought_chunk":
		addIf(update, "messageId", add)
		if kind := player.TextOf(update, "content", "type"); kind != "" && kind != "text" {
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
	if player.IsSet(value, name) {
		add(name)
	}
}

// observeCall records the traits of a tool call.
func (p *play) observeCall(call json.RawMessage, add func(...string)) {
	for _, location := range player.Elements(player.Member(call, "locations")) {
		add("path", "location")
		addIf(location, "line", add)
	}
	for _, content := range player.Elements(player.Member(call, "content")) {
		kind := player.TextOf(content, "type")
		add("content " + kind)
		if kind == "diff" {
			add("path")
		}
	}
}

// observeOptions records the traits of the options of an answer or an update.
func (p *play) observeOptions(value json.RawMessage, add func(...string)) {
	for _, option := range player.Elements(player.Member(value, "configOptions")) {
		if kind := player.TextOf(option, "type"); kind != "" {
			add("options", "option "+kind)
		}
		addIf(option, "category", add)
	}
}

// observeResult records the traits of an answer of the agent.
func (p *play) observeResult(m *player.Message, add func(...string)) {
	switch m.Method {
	case "initialize":
		if player.Elements(player.Member(m.Params, "authMethods")) != nil {
			add("auth methods")
		}
	case "session/new", "session/load", "session/resume":
		addIf(m.Params, "modes", add)
		p.observeOptions(m.Params, add)
	case "session/set_config_option":
		p.observeOptions(m.Params, add)
	case "session/list":
		for _, listed := range player.Elements(player.Member(m.Params, "sessions")) {
			add("path", "listed")
			addIf(listed, "updatedAt", add)
		}
	case "session/prompt":
		if reason := m.Text("stopReason"); reason != "" {
			add("stop " + reason)
		}
	}
}

// observeClientRequest records the traits of a request or notification of the client.
func (p *play) observeClientRequest(m *player.Message, add func(...string)) {
	if m.Kind == conformance.Request && m.Method == "initialize" {
		p.init, p.Itself = m, m.Params
	}
	if player.IsSet(m.Params, "cwd") {
		add("cwd", "path")
	}
	if len(player.Elements(player.Member(m.Params, "additionalDirectories"))) > 0 {
		add("roots", "path")
	}
	for _, s := range player.Elements(player.Member(m.Params, "mcpServers")) {
		add("mcp")
		if kind := player.TextOf(s, "type"); kind == "" || kind == "stdio" {
			add("mcp stdio", "path")
		}
	}
	for _, block := range player.Elements(player.Member(m.Params, "prompt")) {
		add("content " + player.TextOf(block, "type"))
	}
}

// observeClientResult records the traits of an answer of the client.
func (p *play) observeClientResult(m *player.Message, add func(...string)) {
	switch m.Method {
	case "session/request_permission":
		add("outcome " + m.Text("outcome", "outcome"))
	case "elicitation/create":
		add("elicitation " + m.Text("action"))
	}
}
