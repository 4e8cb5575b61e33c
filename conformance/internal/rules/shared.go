package rules

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// latestVersion is the newest published version.
const latestVersion = 2

// Error codes.
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

// clientCapability maps methods of version 1 to the capability of the client that they need, agentCapability to that of
// the agent.
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

// unstableCapability maps unstable methods of version 1 to the capability of the agent that they need.
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

// isProtocol reports whether a method belongs to the protocol itself, so that it may be sent at any time.
func isProtocol(method string) bool { return len(method) > 1 && method[:2] == "$/" }

// isCustom reports whether a method is a custom one.
func isCustom(method string) bool { return strings.HasPrefix(method, "_") }

// nameByVersion returns the name for the version in force.
func nameByVersion(e *judge.Event, v1, v2 string) string {
	if e.InForce == 2 {
		return v2
	}
	return v1
}

// noSuchMethod matches the messages of libraries for an unknown method.
var noSuchMethod = regexp.MustCompile(`(?i)\b(method not (found|supported|implemented)|(unknown|unsupported|no such) method)\b`)

// historyKinds has the kinds of updates that make up the history of a session.
var historyKinds = []string{"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call",
	"tool_call_update", "plan"}

// requireAbsolute reports a path that is present but not absolute.
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

// requireUnique reports elements of a list whose named member equals that of an earlier element.
func requireUnique(e *judge.Event, list, name, what string) {
	requireUniqueIn(e, list, e.Content.Member(strings.Split(list[1:], "/")...), name, what)
}

// requireUniqueIn is like requireUnique for a list that the caller has already found.
func requireUniqueIn(e *judge.Event, where string, list *schema.Value, name, what string) {
	seen := map[string]bool{}
	for i, item := range list.Items() {
		v := item.Member(name)
		if v.IsText() && seen[v.Text()] {
			e.Broken(schema.Element(where, i)+"/"+name, "%q is already the %s of %s", finding.Clip(v.Text()), name, what)
		}
		seen[v.Text()] = true
	}
}

// requireBase64 reports a string that is not base64.
func requireBase64(e *judge.Event, pointer string, v *schema.Value) {
	if v.IsText() && !isBase64(v.Text()) {
		e.Broken(pointer, "the text is not base64")
	}
}

// isBase64 reports whether s is base64 with the standard alphabet. Like most decoders, it accepts line breaks and
// missing padding.
func isBase64(s string) bool {
	text := strings.TrimRight(s, "=\r\n")
	padding := strings.Count(s[len(text):], "=")
	_, err := base64.RawStdEncoding.DecodeString(text)
	return err == nil && (padding == 0 || padding <= 2 && (base64Digits(text)+padding)%4 == 0)
}

// base64Digits returns the number of characters other than line breaks.
func base64Digits(s string) int { return len(s) - strings.Count(s, "\r") - strings.Count(s, "\n") }

// messageKinds has the kinds of updates of version 2 that have a part or all of a message or thought.
var messageKinds = []string{"user_message", "user_message_chunk", "agent_message", "agent_message_chunk",
	"agent_thought", "agent_thought_chunk"}

// checkReused reports an update of a message of earlier work: its id should be a new one.
func checkReused(e *judge.Event) {
	id := e.Text("update", "messageId")
	if e.Session == nil {
		return
	}
	m := e.MessageOf(e.Session, id, e.Update)
	chunk := strings.HasSuffix(e.Update, "_chunk")
	if !m.FromEarlierWork(e) || !chunk && e.Content.Len("update", "content") == 0 || !e.Once(e.Session.ID+" "+id) {
		return
	}
	found := e.Broken("/update/messageId", "%q is already the id of a message of earlier work", finding.Clip(id)).
		Because(m.Update, "the earlier message")
	if !chunk {
		found.Mildly(finding.Advice)
	}
}

// commandsOf returns the commands of a message and their JSON pointer.
func commandsOf(e *judge.Event) (where string, list *schema.Value) {
	if e.Method == judge.MethodUpdate {
		return "/update/availableCommands", e.Content.Member("update", "availableCommands")
	}
	return "/availableCommands", e.Content.Member("availableCommands")
}

// configOptions returns the configuration options of a message.
func configOptions(e *judge.Event) *schema.Value {
	if e.Method == judge.MethodUpdate {
		return e.Content.Member("update", "configOptions")
	}
	return e.Content.Member("configOptions")
}

// optionsPointer returns the JSON pointer of configOptions.
func optionsPointer(e *judge.Event) string {
	if e.Method == judge.MethodUpdate {
		return "/update/configOptions"
	}
	return "/configOptions"
}

// toolCallOf returns the part of a message that describes a tool call.
func toolCallOf(e *judge.Event) *schema.Value {
	if e.Method != judge.MethodPermission {
		return e.Content.Member("update")
	}
	if call := e.Content.Member("toolCall"); call != nil {
		return call
	}
	return e.Content.Member("subject", "toolCall") // in version 2
}

// callPointer returns the JSON pointer of toolCallOf.
func callPointer(e *judge.Event) string {
	switch {
	case e.Method != judge.MethodPermission:
		return "/update"
	case e.Has("toolCall"):
		return "/toolCall"
	}
	return "/subject/toolCall"
}
