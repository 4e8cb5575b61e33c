// Scenarios for clients: turns, updates, permissions and cancellation.

package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

var clientTurns = slices.Concat(sending(true), []Scenario{
	{Name: "update-of-unknown-session", Exercises: []string{"SCH-17"}, persona: full,
		Text: "An update of an unknown session, between updates of a known one.",
		steps: []step{turn(
			notify("session/update", `{"sessionId":"acp-probe-no-such-session","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi"}}}`),
			says("Hello!"), continues("SCH-17", "an update of an unknown session"))}},
	{Name: "update-behind-the-end", Exercises: []string{"SCH-17"}, persona: full,
		Text:  "An update that arrives after the end of its turn.",
		steps: []step{turn(), says("One thing more."), survives("SCH-17", "an update after the end of its turn")}},
	{Name: "stop-reasons", Exercises: []string{"SCH-17"}, persona: full,
		Text: "Turns that end for each known reason and for unknown ones.",
		steps: []step{prompted, func(p *play) {
			for _, reason := range []string{"max_tokens", "max_turn_requests", "refusal", "cancelled", "_tired", "end_turn"} {
				p.endTurn(reason)
				if reason != "end_turn" && p.nextPrompt() == nil {
					break
				}
			}
		}, survives("SCH-17", "these stop reasons")}},
	{Name: "permission", Exercises: []string{"TOL-5", "ADD-17"}, persona: full,
		Text:  "The agent asks for permission, and the user grants it.",
		steps: []step{turn(decided(ActAllow), updates(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`))}},
	{Name: "permission-refused", Exercises: []string{"TOL-5", "ADD-17"}, persona: full,
		Text:  "The agent asks for permission, and the user refuses it.",
		steps: []step{turn(decided(ActReject), updates(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}`))}},
	{Name: "permission-of-unknown-kind", Exercises: []string{"TOL-5"}, persona: full,
		Text: "The agent asks for permission, and one of the options has an unknown kind.",
		steps: []step{turn(tool("t1", "edit"), func(p *play) {
			id := p.Ask("session/request_permission", p.turnParams(`,"toolCall":{"toolCallId":"t1","title":"T","kind":"_dream","probe":1},"options":[{"optionId":"","name":"Perhaps","kind":"_perhaps"},{"optionId":"yes","name":"Allow","kind":"allow_once","probe":{}},{"optionId":"no","name":"Reject","kind":"reject_once","_meta":null}]`), "")
			if p.decides(id, ActAllow) == nil {
				p.stopf("the permission request was not answered")
			}
		})}},
	{Name: "cancel-in-permissions", Exercises: []string{"PRM-9", "TOL-4"}, persona: full,
		Text: "The user cancels while two permission requests are pending; a third one " +
			"crosses the cancellation. Each is answered as cancelled.",
		steps: []step{cancelsPermissions, endTurn("cancelled")}},
	{Name: "cancel-then-updates", Exercises: []string{"PRM-14"}, persona: full,
		Text: "Updates arrive after the cancellation, before the turn ends.",
		steps: []step{cancels(func(p *play) { p.tool(fmt.Sprint(p.taken.Number), "execute") }), says("I am stopping."),
			func(p *play) {
				p.update(`{"sessionUpdate":"tool_call_update","toolCallId":` + player.Quote(fmt.Sprint(p.taken.Number)) + `,"status":"failed"}`)
			}, continues("PRM-14", "updates of a cancelled turn"), endTurn("cancelled")}},
	{Name: "cancel-then-prompt", Exercises: []string{"ADD-8"}, persona: full, quiet: true,
		Text: "After a cancelled turn, the next prompt arrives, and no cancellation after it.",
		steps: []step{cancels(), endTurn("cancelled"), func(p *play) {
			if p.nextPrompt() == nil {
				p.stopf("the client sent no second prompt")
			}
			p.silence(p.limits.quiet)
			isCancel := func(m *player.Message) bool { return m.Method == "session/cancel" }
			p.check("ADD-8", !slices.ContainsFunc(p.Since(p.taken.Number), isCancel),
				"session/cancel arrived after the next prompt")
		}, endTurn("end_turn")}},
	{Name: "cancelled-and-silent", ends: true, Exercises: []string{"TRN-10"}, persona: full, quiet: true,
		Text:  "The agent does not answer a cancelled prompt; the user ends the client, which closes the connection.",
		steps: []step{prompted, func(p *play) { p.act(ActCancel) }, quits}},
	{Name: "cancel-request", Exercises: []string{"CAN-1", "CAN-3"}, persona: full,
		Text: "The agent cancels its own permission request: it is answered once, with a result or the error -32800.",
		steps: []step{turn(tool("t1", "edit"), func(p *play) {
			id := p.askPermission("t1")
			p.Notify("$/cancel_request", `{"requestId":`+id+`}`)
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
		})}},
	{Name: "cancel-request-nested", Exercises: []string{"CAN-5"},
		Text: "The agent cancels its permission request, for which the client has sent a " +
			"request of its own: that is cancelled too.",
		persona: persona{capabilities: allAgentCapabilities, answer: func(_ *fakeAgent, m *player.Message) (string, string) {
			if strings.HasPrefix(m.Method, "_") {
				return "none", ""
			}
			return "", ""
		}},
		steps: []step{turn(cancelsNested)}},
	{Name: "cancel-in-a-wait", Exercises: []string{"CAN-2", "TRM-9", "TRM-11"}, Needs: []string{canRun}, persona: full,
		Text: "The user cancels while the agent waits for a command: if the client itself gives " +
			"up the wait, its error is -32800.",
		steps: []step{func(p *play) {
			var terminal, waiting string
			cancels(func(p *play) {
				terminal = p.terminal(`exec sleep 1000`, "")
				waiting = p.Ask("terminal/wait_for_exit", p.turnParams(`,"terminalId":`+player.Quote(terminal)), "")
			})(p)
			p.silence(p.limits.quiet)
			p.ofTerminal("TRM-11", "release", terminal)
			answer := p.requireAnswer("TRM-9", waiting, "terminal/wait_for_exit for a released terminal")
			if answer.Code() == codeCancelled || answer.Kind == conformance.ErrorReply &&
				strings.Contains(strings.ToLower(answer.Text("message")), "cancel") {
				p.check("CAN-2", answer.Code() == codeCancelled,
					"the client gave up a wait and answered with %s, want the error -32800", answer.Describe())
			}
		}, endTurn("cancelled")}},
	{Name: "cancel-request-unknown", Exercises: []string{"CAN-4", "ADD-11"}, persona: full,
		Text: "$/cancel_request for unknown requests, and in wrong forms, is not answered.",
		steps: []step{turn(func(p *play) {
			for _, params := range []string{`{"requestId":"never"}`, `{"requestId":999999}`, `{"requestId":null}`, `{}`, ""} {
				p.Notify("$/cancel_request", params)
				p.checkAlive("CAN-4", "$/cancel_request")
			}
		})}},
	{Name: "quit", ends: true, Exercises: []string{"TRN-10"}, persona: full,
		Text:  "The user ends the client, which closes the connection.",
		steps: []step{turn(), quits}},
	dying("initialize"), dying("session/new"), dying("session/prompt"),
	{Name: "errors", Exercises: []string{"ERR-1", "ADD-1"}, persona: full,
		Text: "Prompts are answered with errors of known and unknown codes; the client continues.",
		steps: []step{prompted, func(p *play) {
			for i, e := range []string{`{"code":-12345,"message":"Odd"}`, `{"code":7,"message":"Lucky","data":[null]}`, `{"code":-32603,"message":"Internal error","data":{"details":"x","probe":1}}`, `{"code":-32800,"message":"Cancelled"}`} {
				if i > 0 && p.nextPrompt() == nil {
					return
				}
				p.Conn.Answer(p.taken, "error", e)
				p.markExercised("ADD-1")
				survives("ERR-1", "an error")(p)
			}
		}}},
})

// cancelsPermissions asks for permissions in a turn that the user cancels, and looks at the answers.
func cancelsPermissions(p *play) {
	var ids []string
	open := 0
	cancels(func(p *play) {
		ids, open = nil, 0
		for i := range 2 {
			call := fmt.Sprint(p.taken.Number, "-", i)
			p.tool(call, "edit")
			ids = append(ids, p.askPermission(call))
		}
		p.silence(p.limits.quiet / 2) // they are with the user
		for _, id := range ids {
			if !p.HasAnswer(id) {
				open++
			}
		}
	})(p)
	ids = append(ids, p.askPermission(fmt.Sprint(p.taken.Number, "-0")))
	for i, id := range ids {
		answer := p.await(id)
		p.markExercised("PRM-9", "TOL-4")
		switch {
		case answer == nil:
			p.fail("PRM-9", "%s", p.why(fmt.Sprintf("permission request %d of the cancelled turn was not answered", i+1)))
		case i >= 2-open && answer.Text("outcome", "outcome") != "cancelled" &&
			(answer.Kind != conformance.ErrorReply || i == 2):
			p.fail("PRM-9", "permission request %d of the cancelled turn was answered with %s", i+1, answer.Describe())
		}
	}
}

// cancelsNested cancels a request for permission for which the client has sent a request of its own.
func cancelsNested(p *play) {
	from := p.LastNumber()
	id := p.askPermission("t1")
	nested := p.comes(p.ctx, from, p.limits.quiet, func(m *player.Message) bool {
		return m.Kind == conformance.Request && strings.HasPrefix(m.Method, "_")
	})
	if nested == nil {
		p.stopf("the client sent the agent no request before it answered")
	}
	p.Notify("$/cancel_request", `{"requestId":`+id+`}`)
	p.check("CAN-5", p.comes(p.ctx, from, p.limits.answer, func(m *player.Message) bool {
		return m.Method == "$/cancel_request" && player.Canonical(string(player.Member(m.Params, "requestId"))) == nested.ID
	}) != nil, "the client did not cancel %s along with the request that caused it", nested.Method)
}

// dying is the scenario of an agent that ends when a request comes.
func dying(method string) Scenario {
	name := strings.TrimPrefix(method, "session/")
	return Scenario{Name: "dies-in-" + name, Exercises: []string{"TRN-10"}, bare: method == "initialize",
		Text: "The agent exits when " + method +
			" arrives; the client closes the connection, at the latest when its user ends it.",
		persona: persona{capabilities: allAgentCapabilities, answer: func(f *fakeAgent, m *player.Message) (string, string) {
			if m.Method == method {
				f.play.Conn.EndInput()
				return "none", ""
			}
			return "", ""
		}},
		steps: []step{prompting(method, "the client did not send "+method), quits}}
}
