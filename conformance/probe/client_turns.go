// Scenarios for clients: turns, updates, permissions and cancellation.

package probe

import (
	"fmt"
	"strings"

	"github.com/acpgo/sdk/conformance"
)

// updating is a scenario that sends updates of some kind in a turn.
func updating(name, text, id string, updates ...string) Scenario {
	return Scenario{
		Name: "updates-" + name, Text: text, Exercises: []string{id}, persona: full,
		run: func(p *play) {
			m := p.awaitPrompt()
			for _, u := range updates {
				p.update(m, u)
			}
			p.serves(id, "these updates")
			p.endTurn(m, "end_turn")
		},
	}
}

var clientTurns = []Scenario{
	updating("known", "Updates of all kinds that clients know.", "SCH-17",
		`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hello"}}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"audio","data":"AAAA","mimeType":"audio/wav"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"resource_link","uri":"file:///x","name":"x"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"resource","resource":{"uri":"file:///x","text":"x"}}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit","kind":"edit","status":"pending","locations":[{"path":"/x","line":1}],"content":[{"type":"diff","path":"/x","oldText":null,"newText":"x"}],"rawInput":{"a":[1]},"rawOutput":null}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"done"}}]}`,
		`{"sessionUpdate":"plan","entries":[{"content":"One","priority":"high","status":"in_progress"},{"content":"Two","priority":"low","status":"pending"}]}`,
		`{"sessionUpdate":"plan","entries":[]}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"web","description":"Search","input":{"hint":"what"}},{"name":"plain","description":"Nothing"}]}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":[]}`,
		`{"sessionUpdate":"current_mode_update","currentModeId":"code"}`,
		`{"sessionUpdate":"config_option_update","configOptions":[`+fakeOptions+`}`,
		`{"sessionUpdate":"usage_update","used":1000,"size":200000,"cost":{"amount":0.25,"currency":"USD"}}`),
	updating("of-session-info", "Information about the session: an absent member, null and a string.", "LST-13",
		`{"sessionUpdate":"session_info_update","title":"A title"}`, `{"sessionUpdate":"session_info_update"}`,
		`{"sessionUpdate":"session_info_update","title":null,"updatedAt":null}`, `{"sessionUpdate":"session_info_update","updatedAt":"2026-01-01T00:00:00Z"}`),
	updating("of-unknown-kinds", "Updates and contents of unknown kinds.", "SCH-17",
		`{"sessionUpdate":"_probe_update","x":1}`, `{"sessionUpdate":"weather_update","sunny":true}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"_smell","data":"x"}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"T","kind":"_dream","status":"_asleep","content":[{"type":"_smell"}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t1","kind":"other","status":"completed"}`,
		`{"sessionUpdate":"plan","entries":[{"content":"One","priority":"_huge","status":"_perhaps"}]}`),
	updating("with-unknown-members", "Updates with unknown members.", "SCH-17",
		`{"probe":{"deep":[1,2,{}]},"sessionUpdate":"agent_message_chunk","content":{"probe":1,"type":"text","text":"Hi","annotations":{"probe":[],"audience":["user","_nobody"]}}}`,
		`{"sessionUpdate":"plan","probe":null,"entries":[{"status":"pending","probe":1,"priority":"low","content":"One"}]}`),
	updating("with-nulls", "Updates whose optional members are null.", "SCH-17",
		`{"sessionUpdate":"agent_message_chunk","_meta":null,"messageId":null,"content":{"type":"text","text":"Hi","annotations":null,"_meta":null}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"T","kind":null,"status":null,"content":null,"locations":null,"rawInput":null}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t1","title":null,"kind":null,"status":null,"content":null,"locations":null}`),
	updating("with-wrong-types", "Updates whose optional members have wrong types, or whose required members are missing.",
		"SCH-17",
		`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"T","kind":7,"status":[],"content":"none","locations":{}}`,
		`{"sessionUpdate":"agent_message_chunk"}`, `{"sessionUpdate":"plan","entries":"none"}`, `{}`, `[]`, `null`, `"text"`),
	updating("with-odd-meta", "Updates with odd values in _meta.", "SCH-1",
		`{"sessionUpdate":"agent_message_chunk","_meta":{"big":123456789012345678901234567890,"deep":[[[[[[]]]]]],"":null,"é":1e400,"zed.dev":7},"content":{"type":"text","text":"Hi"}}`,
		`{"sessionUpdate":"agent_message_chunk","_meta":{"long":"`+strings.Repeat("x", 1<<18)+`"},"content":{"type":"text","text":"Hi"}}`),
	updating("of-tool-calls", "A tool call in many small updates, each of which changes something else; one update is "+
		"for an unknown call.", "TOL-3",
		`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"T"}`, `{"sessionUpdate":"tool_call_update","toolCallId":"t1","title":"U"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}`, `{"sessionUpdate":"tool_call_update","toolCallId":"t1","rawOutput":{"x":1}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"never","status":"completed"}`, `{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`),
	updating("with-odd-text", "Text with control characters, terminal escape sequences, surrogates and line separators.",
		"SCH-17",
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\u0000\u001b[2J\u2028\u2029\ud83d\ude00\r\n\t\u202e"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud800"}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}`),
	{
		Name: "update-of-unknown-session", Text: "An update of an unknown session, between updates of a known one.",
		Exercises: []string{"SCH-17"}, persona: full,
		run: func(p *play) {
			m := p.awaitPrompt()
			p.notify("session/update", `{"sessionId":"acp-probe-no-such-session","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi"}}}`)
			p.sendText(m, "Hello!")
			p.serves("SCH-17", "an update of an unknown session")
			p.endTurn(m, "end_turn")
		},
	},
	{
		Name: "update-behind-the-end", Text: "An update that arrives after the end of its turn.",
		Exercises: []string{"SCH-17"}, persona: full,
		run: func(p *play) {
			m := p.awaitPrompt()
			p.endTurn(m, "end_turn")
			p.sendText(m, "One thing more.")
			p.goesOn("SCH-17", "an update after the end of its turn")
		},
	},
	{
		Name: "stop-reasons", Text: "Turns that end for each known reason and for unknown ones.",
		Exercises: []string{"SCH-17"}, persona: full,
		run: func(p *play) {
			for i, reason := range []string{"max_tokens", "max_turn_requests", "refusal", "cancelled", "_tired", "end_turn"} {
				m := p.nextPrompt()
				if m == nil && i == 0 {
					p.stopf("the client sent no prompt")
				}
				if m == nil {
					break
				}
				p.endTurn(m, reason)
			}
			p.goesOn("SCH-17", "these stop reasons")
		},
	},
	{
		Name: "permission", Text: "The agent asks for permission, and the user grants it.",
		Exercises: []string{"TOL-5", "ADD-17"}, persona: full,
		run: func(p *play) { p.playDecision(ActAllow, "completed") },
	},
	{
		Name: "permission-refused", Text: "The agent asks for permission, and the user refuses it.",
		Exercises: []string{"TOL-5", "ADD-17"}, persona: full,
		run: func(p *play) { p.playDecision(ActReject, "failed") },
	},
	{
		Name: "permission-of-unknown-kind", Text: "The agent asks for permission, and one of the options has an " +
			"unknown kind.", Exercises: []string{"TOL-5"}, persona: full,
		run: func(p *play) {
			m := p.awaitPrompt()
			p.tool(m, "t1", "edit")
			id := p.ask("session/request_permission", turnParams(m, `,"toolCall":{"toolCallId":"t1","title":"T","kind":"_dream","probe":1},"options":[{"optionId":"","name":"Perhaps","kind":"_perhaps"},{"optionId":"yes","name":"Allow","kind":"allow_once","probe":{}},{"optionId":"no","name":"Reject","kind":"reject_once","_meta":null}]`), "")
			if p.decides(id, ActAllow) == nil {
				p.stopf("the permission request was not answered")
			}
			p.endTurn(m, "end_turn")
		},
	},
	{
		Name: "cancel-in-permissions", Text: "The user cancels while two permission requests are pending; a third one " +
			"crosses the cancellation. Each is answered as cancelled.",
		Exercises: []string{"PRM-9", "TOL-4"}, persona: full,
		run: func(p *play) {
			var ids []string
			open := 0
			m := p.cancelledTurn(func(m *message) {
				ids, open = nil, 0
				for i := range 2 {
					call := fmt.Sprint(m.number, "-", i)
					p.tool(m, call, "edit")
					ids = append(ids, p.permission(m, call))
				}
				p.quiet(p.ctx, p.limits.quiet/2) // they are with the user
				for _, id := range ids {
					if !p.hasAnswer(id) {
						open++
					}
				}
			})
			ids = append(ids, p.permission(m, fmt.Sprint(m.number, "-0")))
			for i, id := range ids {
				answer := p.await(id)
				p.markExercised("PRM-9", "TOL-4")
				switch {
				case answer == nil:
					p.fail("PRM-9", "%s", p.why(fmt.Sprintf("permission request %d of the cancelled turn was not answered", i+1)))
				case i >= 2-open && answer.text("outcome", "outcome") != "cancelled" &&
					(answer.kind != conformance.ErrorReply || i == 2):
					p.fail("PRM-9", "permission request %d of the cancelled turn was answered with %s", i+1, answer.describe())
				}
			}
			p.endTurn(m, "cancelled")
		},
	},
	{
		Name: "cancel-then-updates", Text: "Updates arrive after the cancellation, before the turn ends.",
		Exercises: []string{"PRM-14"}, persona: full,
		run: func(p *play) {
			m := p.cancelledTurn(func(m *message) { p.tool(m, fmt.Sprint(m.number), "execute") })
			p.sendText(m, "I am stopping.")
			p.update(m, `{"sessionUpdate":"tool_call_update","toolCallId":`+quote(fmt.Sprint(m.number))+`,"status":"failed"}`)
			p.serves("PRM-14", "updates of a cancelled turn")
			p.endTurn(m, "cancelled")
		},
	},
	{
		Name: "cancel-then-prompt", Text: "After a cancelled turn, the next prompt arrives, and no cancellation after it.",
		Exercises: []string{"ADD-8"}, persona: full, quiet: true,
		run: func(p *play) {
			m := p.cancelledTurn(func(*message) {})
			p.endTurn(m, "cancelled")
			next := p.nextPrompt()
			if next == nil {
				p.stopf("the client sent no second prompt")
			}
			p.quiet(p.ctx, p.limits.quiet)
			p.conn.mu.Lock()
			late := false
			for _, other := range p.kept {
				late = late || other.method == "session/cancel" && other.number > next.number
			}
			p.conn.mu.Unlock()
			p.check("ADD-8", !late, "session/cancel arrived after the next prompt")
			p.endTurn(next, "end_turn")
		},
	},
	{
		ends: true, Name: "cancelled-and-silent", Text: "The agent does not answer a cancelled prompt; the user ends the " +
			"client, which closes the connection.",
		Exercises: []string{"TRN-10"}, persona: full, quiet: true,
		run: func(p *play) {
			p.awaitPrompt()
			p.act(ActCancel)
			p.quits()
		},
	},
	{
		Name: "cancel-request", Text: "The agent cancels its own permission request: it is answered once, with a result or " +
			"the error -32800.",
		Exercises: []string{"CAN-1", "CAN-3"}, persona: full,
		run: func(p *play) {
			m := p.awaitPrompt()
			p.tool(m, "t1", "edit")
			id := p.permission(m, "t1")
			p.notify("$/cancel_request", `{"requestId":`+id+`}`)
			answer := p.awaitWithin(id, p.limits.quiet)
			p.markExercised("CAN-1", "CAN-3")
			if answer == nil {
				// A client need not support it, and then its user has to answer.
				p.mayRefuse = true
				answer = p.decides(id, ActAllow)
			}
			if answer == nil {
				p.fail("CAN-1", "%s", p.why("the cancelled request was not answered"))
			}
			p.endTurn(m, "end_turn")
		},
	},
	{
		Name: "cancel-request-nested", Text: "The agent cancels its permission request, for which the client has sent a " +
			"request of its own: that is cancelled too.",
		Exercises: []string{"CAN-5"},
		persona: persona{capabilities: allAgentCapabilities, answer: func(_ *fakeAgent, m *message) (string, string) {
			if strings.HasPrefix(m.method, "_") {
				return "none", ""
			}
			return "", ""
		}},
		run: func(p *play) {
			m := p.awaitPrompt()
			from := p.lastNumber()
			id := p.permission(m, "t1")
			var nested *message
			p.wait(p.ctx, p.limits.quiet, func() bool {
				nested = p.firstSince(from,
					func(m *message) bool { return m.kind == conformance.Request && strings.HasPrefix(m.method, "_") })
				return nested != nil
			})
			if nested == nil {
				p.stopf("the client sent the agent no request before it answered")
			}
			p.notify("$/cancel_request", `{"requestId":`+id+`}`)
			p.check("CAN-5", p.wait(p.ctx, p.limits.answer, func() bool {
				return p.firstSince(from, func(m *message) bool {
					return m.method == "$/cancel_request" && canonical(string(member(m.params, "requestId"))) == nested.id
				}) != nil
			}), "the client did not cancel %s along with the request that caused it", nested.method)
			p.endTurn(m, "end_turn")
		},
	},
	{
		Name: "cancel-in-a-wait", Text: "The user cancels while the agent waits for a command: if the client itself gives " +
			"up the wait, its error is -32800.",
		Exercises: []string{"CAN-2", "TRM-9", "TRM-11"}, Needs: []string{canRun}, persona: full,
		run: func(p *play) {
			var terminal, waiting string
			m := p.cancelledTurn(func(m *message) {
				terminal = p.terminal(m, `exec sleep 1000`, "")
				waiting = p.ask("terminal/wait_for_exit", turnParams(m, `,"terminalId":`+quote(terminal)), "")
			})
			p.quiet(p.ctx, p.limits.quiet)
			p.ofTerminal("TRM-11", m, "release", terminal)
			answer := p.requireAnswer("TRM-9", waiting, "terminal/wait_for_exit for a released terminal")
			if answer.code() == codeCancelled || answer.kind == conformance.ErrorReply &&
				strings.Contains(strings.ToLower(answer.text("message")), "cancel") {
				p.check("CAN-2", answer.code() == codeCancelled,
					"the client gave up a wait and answered with %s, want the error -32800", answer.describe())
			}
			p.endTurn(m, "cancelled")
		},
	},
	{
		Name: "cancel-request-unknown", Text: "$/cancel_request for unknown requests, and in wrong forms, is not answered.",
		Exercises: []string{"CAN-4", "ADD-11"}, persona: full,
		run: func(p *play) {
			m := p.awaitPrompt()
			for _, params := range []string{`{"requestId":"never"}`, `{"requestId":999999}`, `{"requestId":null}`, `{}`, ""} {
				p.notify("$/cancel_request", params)
				p.serves("CAN-4", "$/cancel_request")
			}
			p.endTurn(m, "end_turn")
		},
	},
	{
		ends: true, Name: "quit", Text: "The user ends the client, which closes the connection.",
		Exercises: []string{"TRN-10"}, persona: full,
		run: func(p *play) {
			p.endTurn(p.awaitPrompt(), "end_turn")
			p.quits()
		},
	},
	dying("initialize"), dying("session/new"), dying("session/prompt"),
	{
		Name: "errors", Text: "Prompts are answered with errors of known and unknown codes; the client continues.",
		Exercises: []string{"ERR-1", "ADD-1"}, persona: full,
		run: func(p *play) {
			for i, e := range []string{`{"code":-12345,"message":"Odd"}`, `{"code":7,"message":"Lucky","data":[null]}`, `{"code":-32603,"message":"Internal error","data":{"details":"x","probe":1}}`, `{"code":-32800,"message":"Cancelled"}`} {
				m := p.nextPrompt()
				if m == nil {
					if i == 0 {
						p.stopf("the client sent no prompt")
					}
					return
				}
				p.conn.answer(m, "error", e)
				p.markExercised("ADD-1")
				p.goesOn("ERR-1", "an error")
			}
		},
	},
}

// firstSince is the first message of the client behind another one for which f is true. The lock is held.
func (p *play) firstSince(from int, f func(*message) bool) *message {
	for _, m := range p.kept {
		if m.number > from && m.direction == p.fromPeer() && f(m) {
			return m
		}
	}
	return nil
}

// playDecision is a turn in which the user decides about a tool call, which then has a status.
func (p *play) playDecision(decision Action, status string) {
	m := p.awaitPrompt()
	p.tool(m, "t1", "edit")
	id := p.permission(m, "t1")
	if p.decides(id, decision) == nil {
		p.stopf("the permission request was not answered")
	}
	p.update(m, `{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"`+status+`"}`)
	p.endTurn(m, "end_turn")
}

// cancelledTurn is a turn that the user has cancelled; before is called while it is not. A client without a user may
// cancel a later one of its own accord, so all are tried.
func (p *play) cancelledTurn(before func(turn *message)) *message {
	for range maxTurns {
		m := p.nextPrompt()
		if m == nil {
			break
		}
		from := p.lastNumber()
		before(m)
		for range 3 {
			p.sendText(m, "On and on it goes. ")
		}
		idle, can := p.act(ActCancel)
		limit := p.limits.answer
		if !can {
			limit = p.limits.quiet
		}
		if c := p.arrivesWithin("session/cancel", from, idle, limit); c != nil && c.text("sessionId") == m.text("sessionId") {
			return m
		}
		p.endTurn(m, "end_turn")
	}
	p.stopf("the client did not cancel a turn")
	return nil
}

// maxTurns is how many turns are tried.
const maxTurns = 8

// quits has the user end the client, which closes the connection.
func (p *play) quits() {
	if _, can := p.act(ActQuit); !can {
		p.stopf("the client's user did not end it")
	}
	p.markExercised("TRN-10")
	if !p.wait(p.ctx, p.limits.answer, func() bool { return p.ended != nil }) {
		p.checkTime()
		p.failAt("TRN-10", conformance.Should, "the client did not close the connection when its user ended it")
	}
}

// dying is the scenario of an agent that ends when a request comes.
func dying(method string) Scenario {
	name := strings.TrimPrefix(method, "session/")
	return Scenario{
		Name: "dies-in-" + name, Text: "The agent exits when " + method +
			" arrives; the client closes the connection, at the latest when its user ends it.",
		Exercises: []string{"TRN-10"}, bare: method == "initialize",
		persona: persona{capabilities: allAgentCapabilities, answer: func(f *fakeAgent, m *message) (string, string) {
			if m.method == method {
				f.play.conn.endInput()
				return "none", ""
			}
			return "", ""
		}},
		run: func(p *play) {
			done, _ := p.act(ActPrompt)
			if p.arrives(method, 0, done) == nil {
				p.stopf("the client did not send %s", method)
			}
			p.quits()
		},
	}
}
