// Scenarios of cancellation, at each point of a turn.

package probe

import (
	"slices"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

var cancelScenarios = []Scenario{
	{Name: "cancel-at-once", Exercises: []string{"PRM-11", "PRM-12"}, Prompts: []string{"long"}, quiet: true,
		Text:  "A turn is cancelled right after its prompt, before its first update.",
		steps: []step{ready, begin("long"), cancelTurn, endsCancelled, afterCancel}},
	{Name: "cancel-in-the-stream",
		Exercises: []string{"PRM-10", "PRM-11", "PRM-12"}, Prompts: []string{"long"}, quiet: true,
		Text:  "A turn is cancelled in the middle of its text.",
		steps: []step{ready, streaming(3), stopsLongTurns, afterCancel}},
	{Name: "cancel-twice", Exercises: []string{"PRM-11", "PRM-16"}, Prompts: []string{"long", "text"},
		Text: "A turn is cancelled twice, and once more after its end; the next turn runs.",
		steps: []step{ready, streaming(1), cancelTurn, cancelTurn, endsCancelled,
			notify("session/cancel", sessionParams), nextPrompt}},
	{Name: "cancel-in-a-permission",
		Exercises: []string{"PRM-11", "PRM-12", "CAN-5"}, Prompts: []string{"permission"}, quiet: true,
		Text: "A turn is cancelled while the agent waits for permission; the permission is then answered as cancelled.",
		steps: []step{ready, holdPermissions, files("old.txt"), begin("permission"), asked("session/request_permission"),
			cancelTurn, endsOpenRequest, afterCancel}},
	{Name: "cancel-in-a-terminal",
		Exercises: []string{"PRM-11", "PRM-12", "CAN-5"}, Prompts: []string{"wait"}, quiet: true,
		Text: "A turn is cancelled while the agent waits for a command: the terminal is released.",
		steps: []step{ready, begin("wait"), asked("terminal/create"), commandRuns, cancelTurn, endsOpenRequest, afterCancel,
			released}},
	{Name: "terminal-that-lasts", Exercises: []string{"PRM-5"}, Prompts: []string{"wait"}, quiet: true,
		Text: "The agent runs a long command: if it kills the command after some time, it still releases the terminal.",
		steps: []step{ready, begin("wait"), func(p *play) {
			if p.Wait(p.ctx, p.limits.quiet, func() bool { return p.isOver() || p.wasSent("terminal/kill") }) {
				p.endOf(p.promptID)
				return
			}
			p.cancel()
			p.endCancelled()
		}}},
	{Name: "cancel-idle", Exercises: []string{"PRM-16", "OVW-4"}, Prompts: []string{"text"},
		Text: "session/cancel for an idle and for an unknown session changes nothing: no answer, and the next turn runs.",
		steps: []step{ready, unanswered("OVW-4", "the agent answered session/cancel, a notification",
			notify("session/cancel", sessionParams, unknownSession),
			continues("PRM-16", "session/cancel for an idle session")), nextPrompt}},
	{Name: "cancel-behind-the-end", Exercises: []string{"PRM-16"}, Prompts: []string{"text"},
		Text:  "session/cancel that arrives after the end of a turn does not cancel the next one.",
		steps: []step{ready, prompts("text"), notify("session/cancel", sessionParams), nextPrompt}},
	{Name: "cancel-after-load", Needs: []string{loadSession},
		Exercises: []string{"PRM-11"}, Prompts: []string{"long", "text"}, quiet: true,
		ignore: []string{"SES-6", "SES-7", "PRM-13"}, // of the conversation, which the turn continues with
		Text:   "A session is loaded again in the middle of a turn, which the agent may refuse; then the turn is cancelled.",
		steps: []step{ready, streaming(1), func(p *play) {
			p.isAnswered(p.call("session/load", p.fill(openParams)), "session/load in the middle of a turn")
			if p.isDone() {
				panic(stop{})
			}
		}, cancelTurn,
			continues("ADD-1", "a cancellation after session/load"), // which shows the judge that the agent has read it
			endsCancelled, afterCancel}},
	{Name: "cancel-and-prompt", Exercises: []string{"PRM-11", "PRM-16"}, Prompts: []string{"long", "text"},
		Text: "A turn is cancelled, and a new prompt follows as soon as the old one is answered: it runs and is not " +
			"cancelled.",
		steps: []step{ready, streaming(1), cancelTurn, endsCancelled, nextPrompt}},
	{Name: "cancel-one-of-two", Exercises: []string{"PRM-11"}, Prompts: []string{"long"},
		Text: "Two sessions each have a turn in flight, and one is cancelled: the other runs to its own end.",
		steps: []step{ready, func(p *play) {
			one := p.session
			p.newSession()
			other := p.session
			var ids []string
			for _, p.session = range []string{one, other} {
				ids = append(ids, p.begin("long"))
			}
			for _, p.promptID = range ids {
				if !p.streams(1) {
					return
				}
			}
			p.session = one
			p.cancel()
			p.cancelledEnd(ids[0])
			if p.Wait(p.ctx, p.limits.quiet/10, p.isOver) {
				return // the judge knows whether it was cancelled for nothing
			}
			p.session = other
			p.cancel()
			p.endCancelled()
		}}},
	{Name: "cancel-request", Exercises: []string{"CAN-1", "CAN-3", "CAN-4"}, Prompts: []string{"long"}, quiet: true,
		Text: "A prompt is cancelled by $/cancel_request with its id: it is answered once, with a result or -32800, " +
			"or continues as if nothing had arrived.",
		steps: []step{ready, streaming(1), func(p *play) {
			p.Notify("$/cancel_request", `{"requestId":`+p.promptID+`}`)
			p.silence(p.limits.quiet)
			if !p.isDone() {
				// It is optional: the agent does not support it, or is slow and answers it even now.
				p.cancel()
				if m := p.awaitTurn(p.promptID); m.Code() != codeCancelled {
					p.endCancelled()
					return
				}
			}
			m := p.await(p.promptID)
			p.trait("request cancelled")
			p.markExercised("CAN-3")
			if m.Kind == conformance.ErrorReply && m.Code() != codeCancelled {
				p.fail("CAN-1", "a cancelled request was answered with the error %d, want a result or the error -32800", m.Code())
			}
			p.promptAfterCancel()
		}}},
	{Name: "cancel-request-unknown", Exercises: []string{"CAN-4", "OVW-4"}, Prompts: []string{"text"},
		Text: "$/cancel_request with an unknown id, the id of an answered request, or a number written as a string " +
			"changes nothing.",
		steps: []step{ready, unanswered("OVW-4", "the agent answered $/cancel_request, a notification",
			notify("$/cancel_request", `{"requestId":"1"}`, `{"requestId":1}`, `{"requestId":999999}`,
				`{"requestId":"`+noSession+`"}`, `{"requestId":-1}`),
			continues("ADD-1", "$/cancel_request without a matching request"), tries("CAN-4")), prompts("text")}},
}

// manyUpdates is more than can be on its way when a cancellation is sent.
const manyUpdates = 200

// stopsLongTurns cancels a long turn, and others if it seems to have ended by itself.
func stopsLongTurns(p *play) {
	p.checkStops("PRM-11", func() (string, time.Duration) {
		before := p.LastNumber()
		reason, took := p.cancelled()
		if took > p.limits.answer/3 {
			p.fail("PRM-10", "the cancelled turn ended only after %v", took.Round(time.Millisecond))
		}
		updates := 0
		for _, m := range p.Since(before) {
			if m.IsReply() && m.ID == p.promptID {
				break
			}
			if ofTurn(m.Text("update", "sessionUpdate")) {
				updates++
			}
		}
		if reason != "" && reason != "cancelled" && updates > manyUpdates {
			p.fail("PRM-11", "after session/cancel, the agent sent more than %d updates and ended the turn with %s",
				manyUpdates, reason)
		}
		return reason, took
	}, p.nextTurn)
}

// holdPermissions leaves requests for permission unanswered until the turn is cancelled.
func holdPermissions(p *play) { p.client.hold["session/request_permission"] = true }

// endsOpenRequest waits for the end of a turn that was cancelled while a request of the agent was open.
func endsOpenRequest(p *play) {
	if reasonOf(p.endCancelled()) == "cancelled" {
		p.trait("cancelled with an open request")
	}
}

// commandRuns waits until the agent follows a command that it has started, by waiting for its end or reading its
// output. An agent that does neither gets the time of several quiet periods.
func commandRuns(p *play) {
	p.Wait(p.ctx, 5*p.limits.quiet, func() bool {
		return p.isOver() || p.wasSent("terminal/wait_for_exit") || p.wasSent("terminal/output")
	})
}

// wasSent reports whether a message of a method came. The lock of the connection is held.
func (p *play) wasSent(method string) bool {
	return slices.ContainsFunc(p.After(0), func(m *player.Message) bool { return m.Method == method })
}
