// Rules of the page terminals. The terminals of version 2 are the agent's: nothing of this page is about them.

package conformance

import (
	"strings"
	"unicode/utf8"
)

var terminalRules = []rule{
	{
		ID:     "TRM-2",
		Breaks: "A terminal/… request to a client that does not state the capability terminal.",
		Right:  withTerminal + `<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong:  `<- {"jsonrpc":"2.0","id":"t","method":"terminal/create","params":{"sessionId":"s","command":"make"}}`,
		on:     requests(methodTerminalCreate, methodTerminalOutput, methodTerminalWait, methodTerminalKill, methodTerminalRelease),
		check:  func(e *event) { e.needs(&e.client, "terminal") },
	},
	{
		ID:     "TRM-4",
		Breaks: "An output that is longer than the outputByteLimit of its terminal, in bytes of UTF-8.",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"done","truncated":true}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"all is done","truncated":false}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		on: results(methodTerminalOutput),
		check: func(e *event) {
			t, output := e.terminalOf(e.request), e.text("output")
			if t != nil && t.limit >= 0 && int64(len(output)) > t.limit {
				e.broken("/output", "%d bytes, over the limit of %d", len(output), t.limit).because(t.at, "the terminal")
			}
		},
	},
	{
		ID:     "TRM-5",
		Breaks: "A truncated output that begins with U+FFFD: what is left of a character that was cut. (Less than a MUST: the command may have written it.)",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"été","truncated":true}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"\ufffdté","truncated":true}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		on: results(methodTerminalOutput),
		check: func(e *event) {
			if truth(e.content, "truncated") && strings.HasPrefix(e.text("output"), string(utf8.RuneError)) {
				e.broken("/output", "begins in the middle of a character").because(e.request.at, "the request").mildly(Should)
			}
		},
	},
	{
		ID: "TRM-7",
		Breaks: "A terminal that is not released when the agent closes the connection. When somebody else does, only one whose session is closed, or " +
			"(milder) one whose command has ended and whose session has no turn in flight: the agent may still have needed others.",
		Right: withTerminal + `<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal,
		end: func(e *event) {
			for _, t := range e.terminals.all {
				if level := e.leaked(t); t.killed == nil && level != 0 {
					e.brokenAt(t.at, "the terminal %q was never released", clip(t.id)).because(t.exited, "the end of its command").mildly(level)
				}
			}
		},
	},
	{
		ID:     "TRM-8",
		Breaks: "A terminal that was killed and is not released at the end of the connection, in the cases of TRM-7.",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"k","method":"terminal/kill","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"k","result":{}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"k","method":"terminal/kill","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"k","result":{}}`,
		end: func(e *event) {
			for _, t := range e.terminals.all {
				if level := e.leaked(t); t.killed != nil && level != 0 {
					e.brokenAt(t.at, "the terminal %q was killed and never released", clip(t.id)).because(t.killed, "killed here").mildly(level)
				}
			}
		},
	},
	{
		ID:     "TRM-9",
		Breaks: "An output without exitStatus that was asked for after the end of the command had been reported.",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"w","method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"w","result":{"exitCode":0}}
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"done","truncated":false,"exitStatus":{"exitCode":0}}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"w","method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"w","result":{"exitCode":0}}
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"done","truncated":false}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		on: results(methodTerminalOutput),
		check: func(e *event) {
			t := e.terminalOf(e.request)
			if t != nil && t.exited != nil && t.exited.Number < e.request.at.Number && !e.given("exitStatus") {
				e.broken("/exitStatus", "is left out though the command has ended").because(t.exited, "the end of the command")
			}
		},
	},
	{
		ID:     "TRM-10",
		Breaks: "An error that answers terminal/output or terminal/wait_for_exit for a terminal that was killed and not released.",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"k","method":"terminal/kill","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"k","result":{}}
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"","truncated":false,"exitStatus":{"signal":"SIGTERM"}}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"k","method":"terminal/kill","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"k","result":{}}
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","error":{"code":-32603,"message":"no such terminal"}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		on: failures(methodTerminalOutput, methodTerminalWait),
		check: func(e *event) {
			t := e.terminalOf(e.request)
			code, _ := integer(e.content, "code")
			if t != nil && t.killed != nil && t.released == nil && t.killed.Number < e.request.at.Number && code != codeCancelled {
				e.broken("", "a killed terminal can still be asked").because(t.killed, "killed here").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:     "TRM-11",
		Breaks: "A result that answers terminal/output, terminal/wait_for_exit or terminal/kill for a terminal whose release was answered before the request.",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"r","result":{}}
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","error":{"code":-32602,"message":"no such terminal"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"r","result":{}}
			<- {"jsonrpc":"2.0","id":"o","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"o","result":{"output":"","truncated":false}}`,
		on: results(methodTerminalOutput, methodTerminalWait, methodTerminalKill),
		check: func(e *event) {
			t := e.terminalOf(e.request)
			if t != nil && t.freed != nil && t.freed.Number < e.request.at.Number {
				e.broken("", "the terminal is released").because(t.freed, "its release").because(e.request.at, "the request")
			}
		},
	},
	{
		ID:     "TRM-12",
		Breaks: "The end of a command with neither an exit code nor a signal.",
		Right: withTerminal + `
			<- {"jsonrpc":"2.0","id":"w","method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"w","result":{"exitCode":null,"signal":"SIGKILL"}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		Wrong: withTerminal + `
			<- {"jsonrpc":"2.0","id":"w","method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"t1"}}
			-> {"jsonrpc":"2.0","id":"w","result":{"exitCode":null,"signal":null}}
			<- {"jsonrpc":"2.0","id":"r","method":"terminal/release","params":{"sessionId":"s","terminalId":"t1"}}`,
		on: results(methodTerminalOutput, methodTerminalWait),
		check: func(e *event) {
			status, where := e.content, ""
			if e.method == methodTerminalOutput {
				status, where = member(e.content, "exitStatus"), "/exitStatus"
			}
			if isObject(status) && e.sound(where) && !given(status, "exitCode") && !given(status, "signal") {
				e.broken(where, "neither an exit code nor a signal").because(e.request.at, "the request")
			}
		},
	},
}

// withTerminal begins examples: a terminal t1, whose output may have eight bytes.
var withTerminal = connected(`{"terminal":true}`) + `
			<- {"jsonrpc":"2.0","id":"t","method":"terminal/create","params":{"sessionId":"s","command":"make","outputByteLimit":8}}
			-> {"jsonrpc":"2.0","id":"t","result":{"terminalId":"t1"}}
			`

// terminalOf is the terminal that a request names.
func (e *event) terminalOf(r *request) *terminal { return e.terminal(text(r.params, "terminalId")) }

// leaked is how grave it is that a terminal is still there at the end of the connection, 0 if it is not.
func (e *event) leaked(t *terminal) Level {
	s := t.session
	switch {
	case t.released != nil:
	case e.closedBy == Agent, s != nil && (s.closed != nil || s.deleted != nil):
		return e.rule.Level
	case (t.exited != nil || t.killed != nil) && s != nil && len(s.turns) == 0 && !s.lost:
		return Should
	}
	return 0
}
