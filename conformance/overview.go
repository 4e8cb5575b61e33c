// Rules of the page overview.

package conformance

import "strings"

var overviewRules = []rule{
	{
		ID:       "OVW-1",
		Versions: both,
		Breaks:   "A relative path in fs/*, terminal/create, a diff, a location, the filter of session/list or what it lists. A session's own directories have rules of their own (SES-17, SES-20).",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","locations":[{"path":"/work/a.go","line":1}]}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","locations":[{"path":"a.go","line":1}]}}}`,
		on: on(
			requests("fs/read_text_file", "fs/write_text_file", "terminal/create", methodList, methodPermission),
			results(methodList), updates("tool_call", "tool_call_update", "tool_call_content_chunk", "terminal_update"),
		),
		check: func(e *event) {
			switch e.method {
			case "fs/read_text_file", "fs/write_text_file":
				e.absolute("/path", e.text("path"))
			case "terminal/create", methodList:
				e.absolute("/cwd", e.text("cwd"))
				for i, s := range items(e.content, "sessions") {
					e.absolute(element("/sessions", i)+"/cwd", text(s, "cwd"))
					for k, root := range items(s, "additionalDirectories") {
						e.absolute(element(element("/sessions", i)+"/additionalDirectories", k), text(root))
					}
				}
			case methodPermission:
				e.pathsOf("/toolCall", member(e.content, "toolCall"))
			case methodUpdate:
				update := member(e.content, "update")
				e.absolute("/update/cwd", text(update, "cwd"))
				e.pathsOf("/update", update)
				if content := member(update, "content"); isObject(content) {
					e.pathsOfContent("/update/content", content)
				}
			}
		},
	},
	{
		ID:     "OVW-2",
		Breaks: "The line 0 in fs/read_text_file or in a location. (The schema of version 2 says it itself.)",
		Right:  `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","locations":[{"path":"/work/a.go","line":1}]}}}`,
		Wrong:  `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","locations":[{"path":"/work/a.go","line":0}]}}}`,
		on:     on(requests("fs/read_text_file", methodPermission), updates("tool_call", "tool_call_update")),
		check: func(e *event) {
			e.firstLine("/line", e.content)
			for _, holder := range []string{"toolCall", "update"} {
				for i, location := range items(e.content, holder, "locations") {
					e.firstLine(element("/"+holder+"/locations", i)+"/line", location)
				}
			}
		},
	},
	{
		ID:       "OVW-4",
		Versions: both,
		Breaks:   "An error without id, or with the id null, that says that a method is unknown or its params are wrong, when no request was broken: it answers a notification.",
		Right:    `-> {"jsonrpc":"2.0","method":"_example.com/note"}`,
		Wrong: `
			-> {"jsonrpc":"2.0","method":"_example.com/note"}
			<- {"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"method not found"}}`,
		on: failures(),
		// A line that cannot be read, or is not a request, is rightly answered without its id, by the codes of JSON-RPC for
		// that. Any other code is about the content of a message that was understood; one with an id would be answered by it.
		check: func(e *event) {
			code, _ := integer(e.content, "code")
			note, any := e.notified[e.sender()]
			if (e.id == "" || e.id == "null") && code != codeParse && code != codeInvalid && any && !e.unreadable[e.sender()] {
				e.broken("", "answers a notification").because(note, "the last notification before")
			}
		},
	},
}

// Codes of errors.
const (
	codeParse     = -32700
	codeInvalid   = -32600
	codeMethod    = -32601
	codeParams    = -32602
	codeCancelled = -32800
	codeNotFound  = -32002
)

// absolute reports a path that is neither absolute nor missing.
func (e *event) absolute(pointer, path string) {
	if path != "" && !absolute(path) {
		e.broken(pointer, "%q is not an absolute path", clip(path))
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

// pathsOf looks at the paths of a tool call.
func (e *event) pathsOf(where string, call value) {
	for i, location := range items(call, "locations") {
		e.absolute(element(where+"/locations", i)+"/path", text(location, "path"))
	}
	for i, content := range items(call, "content") {
		e.pathsOfContent(element(where+"/content", i), content)
	}
}

// pathsOfContent looks at the paths of a diff: one in version 1, several in version 2.
func (e *event) pathsOfContent(where string, content value) {
	if text(content, "type") != "diff" {
		return
	}
	e.absolute(where+"/path", text(content, "path"))
	for i, change := range items(content, "changes") {
		for _, name := range []string{"path", "oldPath", "newPath"} {
			e.absolute(element(where+"/changes", i)+"/"+name, text(change, name))
		}
	}
}

// firstLine reports the line 0.
func (e *event) firstLine(pointer string, v value) {
	if line, ok := integer(v, "line"); ok && line == 0 {
		e.broken(pointer, "lines are counted from 1")
	}
}
