// Rules of the page tool-calls.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
	"github.com/acpgo/sdk/internal/plain"
)

// The messages that describe a tool call.
var (
	callUpdates  = updates("tool_call", "tool_call_update")
	callMessages = anyOf(callUpdates, requests(judge.MethodPermission))
)

var toolCallRules = []judge.Rule{
	// Only the first such message of each call is reported, because the call is in the history afterwards.
	{ID: "TOL-1", On: anyOf(updates("tool_call_update"), requests(judge.MethodPermission)),
		Check: func(e *judge.Event) {
			s, call := e.Session, toolCallOf(e)
			id := call.Text("toolCallId")
			if s == nil || s.By != judge.MethodNew || id == "" || e.Calls.Forgot || e.Call(s, id) != nil {
				return
			}
			found := e.Broken(callPointer(e)+"/toolCallId", "no tool_call announced %q", finding.Clip(id)).
				Because(s.Usable, "the session began here")
			if e.Method == judge.MethodPermission {
				found.Mildly(finding.Advice)
			}
		}},
	{ID: "TOL-2", On: updates("tool_call"), Check: func(e *judge.Event) {
		c := e.Call(e.Session, e.Text("update", "toolCallId"))
		if c != nil && c.Announced != nil && e.Session.Setup == nil {
			e.Broken("/update/toolCallId", "%q is already the id of another tool call",
				finding.Clip(e.Text("update", "toolCallId"))).
				Because(c.Announced, "the other tool call")
		}
	}},
	{ID: "TOL-5", On: results(judge.MethodPermission), Check: func(e *judge.Event) {
		chosen := e.Content.Member("outcome", "optionId")
		if e.Text("outcome", "outcome") != "selected" || !chosen.IsText() || e.Request.Params == nil {
			return
		}
		for _, option := range e.Request.Params.Items("options") {
			if option.Text("optionId") == chosen.Text() {
				return
			}
		}
		e.Broken("/outcome/optionId", "%q was not offered", finding.Clip(chosen.Text())).
			Because(e.Request.At, "the request with its options")
	}},
	{ID: "TOL-6", On: requests(judge.MethodPermission),
		Check: func(e *judge.Event) { requireUnique(e, "/options", "optionId", "another option") }},
	{ID: "TOL-8", On: callMessages, Check: func(e *judge.Event) {
		call := toolCallOf(e)
		own, c := call.Text("_meta", plain.TerminalInfoKey, "terminal_id"), e.Call(e.Session, call.Text("toolCallId"))
		for i, content := range call.Items("content") {
			id := content.Text("terminalId")
			if content.Text("type") != "terminal" || id == "" || id == own || c.Shows(id) {
				continue
			}
			where := schema.Element(callPointer(e)+"/content", i) + "/terminalId"
			switch t := e.Terminal(id); {
			case t != nil && t.Released != nil:
				e.Broken(where, "the terminal %q has already been released", finding.Clip(id)).Because(t.Released, "its release")
			case t == nil && !e.Terminals.Forgot && e.Session != nil && e.Session.By == judge.MethodNew:
				e.Broken(where, "no terminal/create returned the terminal %q", finding.Clip(id))
			}
		}
	}},
	{ID: "TOL-9", On: anyOf(callMessages, results(judge.MethodPrompt)), Check: func(e *judge.Event) {
		if e.Kind == finding.Response {
			checkOpenCalls(e)
			return
		}
		call := toolCallOf(e)
		c, status := e.Call(e.Session, call.Text("toolCallId")), call.Text("status")
		// session/load replays the history from the beginning.
		if c != nil && c.Final != nil && status != "" && judge.Short(status) != c.Status && e.Session.Setup == nil &&
			!repeats(e, c) {
			e.Broken(callPointer(e)+"/status", "the call was already %s", finding.Clip(c.Status)).Because(c.Final, "its end")
		}
	}},
}

// repeats reports whether the message begins a tool call with an id that was used before; TOL-2 reports that.
func repeats(e *judge.Event, c *judge.ToolCall) bool {
	return e.Update == "tool_call" && c.Announced != nil
}

// checkOpenCalls reports the tool calls that a turn of version 1 leaves open. A cancelled turn may do so.
func checkOpenCalls(e *judge.Event) {
	t := e.Request.Turn
	if t == nil || e.InForce != 1 || t.Cancelled != nil || e.Text("stopReason") == "cancelled" {
		return
	}
	for _, c := range t.Calls {
		if c.Final == nil && (c.Status == "" || c.Status == "pending" || c.Status == "in_progress") {
			e.Broken("", "the turn ended while the tool call %q was still open", finding.Clip(c.ID)).
				Because(c.At, "the tool call").Mildly(finding.Advice)
		}
	}
}
