// What the rules of several pages share.

package rules

import (
	"regexp"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// both are the versions of a rule that holds in versions 1 and 2.
var both = []int{1, 2}

// latestVersion is the newest version that is published.
const latestVersion = 2

// Codes of errors.
const (
	codeParse     = -32700
	codeInvalid   = -32600
	codeMethod    = -32601
	codeParams    = -32602
	codeCancelled = -32800
	codeAuth      = judge.CodeAuth
	codeNotFound  = -32002
	codeInternal  = -32603
	codeVersion   = -32022 // in version 2
)

// clientCapability is the capability of the client that a method of version 1 needs, agentCapability that of the agent.
var (
	clientCapability = map[string]string{
		"fs/read_text_file":  "fs.readTextFile",
		"fs/write_text_file": "fs.writeTextFile",
		"terminal/create":    "terminal",
		"elicitation/create": "elicitation",
	}
	agentCapability = map[string]string{
		judge.MethodLoad:   "loadSession",
		judge.MethodResume: "sessionCapabilities.resume",
		judge.MethodList:   "sessionCapabilities.list",
		judge.MethodClose:  "sessionCapabilities.close",
		judge.MethodDelete: "sessionCapabilities.delete",
		"logout":           "auth.logout",
	}
)

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

// isProtocol reports whether a method is one of the protocol's own, which may be sent at any time.
func isProtocol(method string) bool { return len(method) > 1 && method[:2] == "$/" }

// isCustom reports whether a method is somebody's own.
func isCustom(method string) bool { return strings.HasPrefix(method, "_") }

// nameByVersion is the name that something has in the version in force.
func nameByVersion(e *judge.Event, v1, v2 string) string {
	if e.InForce == 2 {
		return v2
	}
	return v1
}

// noSuchMethod is how libraries say that a method is unknown.
var noSuchMethod = regexp.MustCompile(`(?i)\b(method not (found|supported|implemented)|(unknown|unsupported|no such) method)\b`)

// historyKinds are the updates that tell what happened in a session.
var historyKinds = []string{"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}

// connected begins examples: a client with the given capabilities, and the session s.
func connected(capabilities string) string {
	return `
		-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":` + capabilities + `}}
		<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"agentCapabilities":{}}}
		-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
		<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}
`
}

// withTerminal begins examples: a terminal t1, whose output may have eight bytes.
var withTerminal = connected(`{"terminal":true}`) + `
			<- {"jsonrpc":"2.0","id":"t","method":"terminal/create","params":{"sessionId":"s","command":"make","outputByteLimit":8}}
			-> {"jsonrpc":"2.0","id":"t","result":{"terminalId":"t1"}}
			`

// withElicitation begins examples: the client has both modes.
var withElicitation = connected(`{"elicitation":{"form":{},"url":{}}}`)

// requireAbsolute reports a path that is neither absolute nor missing.
func requireAbsolute(e *judge.Event, pointer, path string) {
	if path != "" && !absolute(path) {
		e.Broken(pointer, "%q is not an absolute path", finding.Clip(path))
	}
}

// absolute reports whether a path is absolute on POSIX or on Windows.
func absolute(path string) bool {
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) {
		return true
	}
	return len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/') &&
		(path[0] >= 'A' && path[0] <= 'Z' || path[0] >= 'a' && path[0] <= 'z')
}

// requireUnique reports elements of a list that have a member in common with an earlier one.
func requireUnique(e *judge.Event, list, name, what string) {
	requireUniqueIn(e, list, e.Content.Member(strings.Split(list[1:], "/")...), name, what)
}

// requireUniqueIn is unique for a list that is at hand.
func requireUniqueIn(e *judge.Event, where string, list *schema.Value, name, what string) {
	seen := map[string]bool{}
	for i, item := range list.Items() {
		v := item.Member(name)
		if v.IsText() && seen[v.Text()] {
			e.Broken(schema.Element(where, i)+"/"+name, "%q is the %s of %s before", finding.Clip(v.Text()), name, what)
		}
		seen[v.Text()] = true
	}
}

// requireBase64 reports a text that is not base64.
func requireBase64(e *judge.Event, pointer string, v *schema.Value) {
	if v.IsText() && !isBase64(v.Text()) {
		e.Broken(pointer, "not base64")
	}
}

// isBase64 reports whether a text is base64 with the usual alphabet. Line breaks and missing padding are let pass, as
// most decoders do.
func isBase64(s string) bool {
	digits, padding := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\r' || c == '\n':
		case c == '=':
			padding++
		case padding > 0:
			return false
		case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/':
			digits++
		default:
			return false
		}
	}
	return digits%4 != 1 && (padding == 0 || padding <= 2 && (digits+padding)%4 == 0)
}

// configOptions are those of a message.
func configOptions(e *judge.Event) *schema.Value {
	if e.Method == judge.MethodUpdate {
		return e.Content.Member("update", "configOptions")
	}
	return e.Content.Member("configOptions")
}

// optionsPointer is the place of configOptions.
func optionsPointer(e *judge.Event) string {
	if e.Method == judge.MethodUpdate {
		return "/update/configOptions"
	}
	return "/configOptions"
}

// toolCallOf is what a message says about a tool call.
func toolCallOf(e *judge.Event) *schema.Value {
	if e.Method != judge.MethodPermission {
		return e.Content.Member("update")
	}
	if call := e.Content.Member("toolCall"); call != nil {
		return call
	}
	return e.Content.Member("subject", "toolCall") // in version 2
}

// callPointer is the place of toolCall.
func callPointer(e *judge.Event) string {
	switch {
	case e.Method != judge.MethodPermission:
		return "/update"
	case e.Has("toolCall"):
		return "/toolCall"
	}
	return "/subject/toolCall"
}
