// Rules of the page overview.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var overviewRules = []judge.Rule{
	{ID: "OVW-1", On: anyOf(
		requests("fs/read_text_file", "fs/write_text_file", "terminal/create", judge.MethodList, judge.MethodPermission),
		results(judge.MethodList), updates("tool_call", "tool_call_update", "tool_call_content_chunk", "terminal_update"),
	),
		Check: func(e *judge.Event) {
			switch e.Method {
			case "fs/read_text_file", "fs/write_text_file":
				requireAbsolute(e, "/path", e.Text("path"))
			case "terminal/create", judge.MethodList:
				requireAbsolute(e, "/cwd", e.Text("cwd"))
				for i, s := range e.Content.Items("sessions") {
					requireAbsolute(e, schema.Element("/sessions", i)+"/cwd", s.Text("cwd"))
					for k, root := range s.Items("additionalDirectories") {
						requireAbsolute(e, schema.Element(schema.Element("/sessions", i)+"/additionalDirectories", k), root.Text())
					}
				}
			case judge.MethodPermission:
				checkPaths(e, callPointer(e), toolCallOf(e))
			case judge.MethodUpdate:
				update := e.Content.Member("update")
				requireAbsolute(e, "/update/cwd", update.Text("cwd"))
				checkPaths(e, "/update", update)
				if content := update.Member("content"); content.IsObject() {
					checkDiffPaths(e, "/update/content", content)
				}
			}
		}},
	{ID: "OVW-2",
		On: anyOf(requests("fs/read_text_file", judge.MethodPermission), updates("tool_call", "tool_call_update")),
		Check: func(e *judge.Event) {
			checkLine(e, "/line", e.Content)
			for _, holder := range []string{"toolCall", "update"} {
				for i, location := range e.Content.Items(holder, "locations") {
					checkLine(e, schema.Element("/"+holder+"/locations", i)+"/line", location)
				}
			}
		}},
	// A line that cannot be read, or is not a request, is correctly answered without an id, with the codes that
	// JSON-RPC has for this. Any other code is about the content of a message that was understood; if it had an id,
	// the answer would too.
	{ID: "OVW-4", On: failures(), Check: func(e *judge.Event) {
		code, _ := e.Content.Integer("code")
		note, any := e.Notified[e.Sender()]
		if (e.ID == "" || e.ID == "null") && code != codeParse && code != codeInvalid && any && !e.Unreadable[e.Sender()] {
			e.Broken("", "this answers a notification; notifications must not be answered").
				Because(note, "the last notification before")
		}
	}},
}

// checkPaths checks the paths of a tool call.
func checkPaths(e *judge.Event, where string, call *schema.Value) {
	for i, location := range call.Items("locations") {
		requireAbsolute(e, schema.Element(where+"/locations", i)+"/path", location.Text("path"))
	}
	for i, content := range call.Items("content") {
		checkDiffPaths(e, schema.Element(where+"/content", i), content)
	}
}

// checkDiffPaths checks the paths of a diff: one in version 1, several in version 2.
func checkDiffPaths(e *judge.Event, where string, content *schema.Value) {
	if content.Text("type") != "diff" {
		return
	}
	requireAbsolute(e, where+"/path", content.Text("path"))
	for i, change := range content.Items("changes") {
		for _, name := range []string{"path", "oldPath", "newPath"} {
			requireAbsolute(e, schema.Element(where+"/changes", i)+"/"+name, change.Text(name))
		}
	}
}

// checkLine reports line number 0.
func checkLine(e *judge.Event, pointer string, v *schema.Value) {
	if line, ok := v.Integer("line"); ok && line == 0 {
		e.Broken(pointer, "line numbers start at 1")
	}
}
