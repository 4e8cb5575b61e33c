// Scenarios of cancellation, at each point of a turn.

package probe

import (
	"slices"
	"time"

	"github.com/acpgo/sdk/conformance"
)

var cancelScenarios = []Scenario{
	{
		Name:      "cancel-at-once",
		Text:      "A turn is cancelled right after its prompt, before its first update.",
		Exercises: []string{"PRM-11", "PRM-12"}, Prompts: []string{"long"}, quiet: true,
		run: func(p *play) {
			session := p.ready()
			id := p.begin(session, "long")
			p.cancel(session)
			p.checkCancelled(id)
			p.checkAfterCancel(session)
		},
	},
	{
		Name:      "cancel-in-the-stream",
		Text:      "A turn is cancelled in the middle of its text.",
		Exercises: []string{"PRM-10", "PRM-11", "PRM-12"}, Prompts: []string{"long"}, quiet: true,
		run: func(p *play) {
			session, id, ok := p.streaming(3)
			if !ok {
				return
			}
			p.cancel(session)
			before, began := p.count(), time.Now()
			m := p.checkCancelled(id)
			if took := m.time.Sub(began); took > p.limits.answer/3 {
				p.fail("PRM-10", "the cancelled turn ended only after %v", took.Round(time.Millisecond))
			}
			if m.kind == conformance.Response && m.text("stopReason") != "cancelled" &&
				p.countUpdates(before, m.number) > manyUpdates {
				p.fail("PRM-11", "after session/cancel, the agent sent more than %d updates and ended the turn with %s",
					manyUpdates, m.text("stopReason"))
			}
			p.checkStops("PRM-11", m.text("stopReason"), m.time.Sub(began),
				func(lasts time.Duration) (string, time.Duration, bool) {
					p.client.nextTurn(session)
					id := p.begin(session, "long")
					running := p.updates(id, "", 3) && !p.wait(p.ctx, lasts, func() bool { return len(p.answers[id]) > 0 })
					began := time.Now()
					p.cancel(session)
					m := p.checkCancelled(id)
					return m.text("stopReason"), m.time.Sub(began), running
				})
			p.checkAfterCancel(session)
		},
	},
	{
		Name:      "cancel-twice",
		Text:      "A turn is cancelled twice, and once more after its end; the next turn runs.",
		Exercises: []string{"PRM-11", "PRM-16"}, Prompts: []string{"long", "text"},
		run: func(p *play) {
			session, id, ok := p.streaming(1)
			if !ok {
				return
			}
			p.cancel(session)
			p.cancel(session)
			p.checkCancelled(id)
			p.notify("session/cancel", `{"sessionId":`+quote(session)+`}`)
			p.promptAfterCancel(session)
		},
	},
	{
		Name:      "cancel-in-a-permission",
		Text:      "A turn is cancelled while the agent waits for permission; the permission is then answered as cancelled.",
		Exercises: []string{"PRM-11", "PRM-12", "CAN-5"}, Prompts: []string{"permission"}, quiet: true,
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			p.client.hold["session/request_permission"] = true
			session := p.newSession()
			p.file("old.txt", "Old.\n")
			id := p.begin(session, "permission")
			if p.awaitRequest(id, "session/request_permission") == nil || p.hasAnswer(id) {
				p.cancel(session)
				return
			}
			p.cancel(session)
			if m := p.checkCancelled(id); m.text("stopReason") == "cancelled" {
				p.trait("cancelled with an open request")
			}
			p.checkAfterCancel(session)
		},
	},
	{
		Name:      "cancel-in-a-terminal",
		Text:      "A turn is cancelled while the agent waits for a command: the terminal is released.",
		Exercises: []string{"PRM-11", "PRM-12", "CAN-5"}, Prompts: []string{"wait"}, quiet: true,
		run: func(p *play) {
			session := p.ready()
			id := p.begin(session, "wait")
			if p.awaitRequest(id, "terminal/create") == nil || p.hasAnswer(id) {
				p.cancel(session)
				return
			}
			p.awaitCommand(id)
			p.cancel(session)
			if m := p.checkCancelled(id); m.text("stopReason") == "cancelled" {
				p.trait("cancelled with an open request")
			}
			p.checkAfterCancel(session)
			p.checkReleased()
		},
	},
	{
		Name:      "terminal-that-lasts",
		Text:      "The agent runs a long command: if it kills the command after some time, it still releases the terminal.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"wait"}, quiet: true,
		run: func(p *play) {
			session := p.ready()
			id := p.begin(session, "wait")
			killed := p.wait(p.ctx, p.limits.quiet, func() bool {
				return len(p.answers[id]) > 0 ||
					slices.ContainsFunc(p.kept, func(m *message) bool { return m.method == "terminal/kill" })
			})
			if killed {
				p.turn(id)
				return
			}
			p.cancel(session)
			p.checkCancelled(id)
		},
	},
	{
		Name: "cancel-idle",
		Text: "session/cancel for an idle and for an unknown session changes nothing: no answer, and the next " +
			"turn runs.",
		Exercises: []string{"PRM-16", "OVW-4"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			before := p.count()
			p.notify("session/cancel", `{"sessionId":`+quote(session)+`}`)
			p.notify("session/cancel", `{"sessionId":"`+noSession+`"}`)
			p.checkAlive("PRM-16", "session/cancel for an idle session")
			p.markExercised("OVW-4")
			if extra := p.answersSince(before); len(extra) > 1 {
				p.fail("OVW-4", "the agent answered session/cancel, a notification: %s", extra[0])
			}
			p.promptAfterCancel(session)
		},
	},
	{
		Name:      "cancel-behind-the-end",
		Text:      "session/cancel that arrives after the end of a turn does not cancel the next one.",
		Exercises: []string{"PRM-16"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			p.prompt(session, "text")
			p.notify("session/cancel", `{"sessionId":`+quote(session)+`}`)
			p.promptAfterCancel(session)
		},
	},
	{
		Name: "cancel-after-load", Needs: []string{loadSession},
		ignore: []string{"SES-6", "SES-7", "PRM-13"}, // of the conversation, which the turn continues with
		Text: "A session is loaded again in the middle of a turn, which the agent may refuse; then the turn is " +
			"cancelled.",
		Exercises: []string{"PRM-11"}, Prompts: []string{"long", "text"}, quiet: true,
		run: func(p *play) {
			session, id, ok := p.streaming(1)
			if !ok {
				return
			}
			if p.call("session/load", withSession(`,"mcpServers":[]`)(session, p.dir)) == nil {
				p.failAt("OVW-3", conformance.Must, "%s", p.why("session/load in the middle of a turn was not answered"))
			}
			if p.hasAnswer(id) {
				return
			}
			p.cancel(session)
			p.checkAlive("ADD-1", "a cancellation after session/load") // which shows the judge that the agent has read it
			p.checkCancelled(id)
			p.checkAfterCancel(session)
		},
	},
	{
		Name: "cancel-and-prompt",
		Text: "A turn is cancelled, and a new prompt follows as soon as the old one is answered: it runs and is not " +
			"cancelled.",
		Exercises: []string{"PRM-11", "PRM-16"}, Prompts: []string{"long", "text"},
		run: func(p *play) {
			session, id, ok := p.streaming(1)
			if !ok {
				return
			}
			p.cancel(session)
			p.checkCancelled(id)
			p.promptAfterCancel(session)
		},
	},
	{
		Name:      "cancel-one-of-two",
		Text:      "Two sessions each have a turn in flight, and one is cancelled: the other runs to its own end.",
		Exercises: []string{"PRM-11"}, Prompts: []string{"long"},
		run: func(p *play) {
			one := p.ready()
			other := p.newSession()
			first, second := p.begin(one, "long"), p.begin(other, "long")
			if !p.updates(first, "", 1) || !p.updates(second, "", 1) {
				return
			}
			p.cancel(one)
			p.checkCancelled(first)
			if p.settled(second) {
				return // the judge knows whether it was cancelled for nothing
			}
			p.cancel(other)
			p.checkCancelled(second)
		},
	},
	{
		Name: "cancel-request",
		Text: "A prompt is cancelled by $/cancel_request with its id: it is answered once, with a result or -32800, " +
			"or continues as if nothing had arrived.",
		Exercises: []string{"CAN-1", "CAN-3", "CAN-4"}, Prompts: []string{"long"}, quiet: true,
		run: func(p *play) {
			session, id, ok := p.streaming(1)
			if !ok {
				return
			}
			p.notify("$/cancel_request", `{"requestId":`+id+`}`)
			p.quiet(p.ctx, p.limits.quiet)
			if !p.hasAnswer(id) {
				// It is optional: the agent does not support it, or is slow and answers it even now.
				p.cancel(session)
				if m := p.awaitTurn(id); m == nil || m.kind != conformance.ErrorReply || m.code() != -32800 {
					p.checkCancelled(id)
					return
				}
			}
			m := p.await(id)
			p.trait("request cancelled")
			p.markExercised("CAN-3")
			if m.kind == conformance.ErrorReply && m.code() != -32800 {
				p.fail("CAN-1", "a cancelled request was answered with the error %d, want a result or the error -32800", m.code())
			}
			p.promptAfterCancel(session)
		},
	},
	{
		Name: "cancel-request-unknown",
		Text: "$/cancel_request with an unknown id, the id of an answered request, or a number written as a string " +
			"changes nothing.",
		Exercises: []string{"CAN-4", "OVW-4"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			before := p.count()
			for _, id := range []string{`"1"`, `1`, `999999`, `"` + noSession + `"`, `-1`} {
				p.notify("$/cancel_request", `{"requestId":`+id+`}`)
			}
			p.checkAlive("ADD-1", "$/cancel_request without a matching request")
			p.markExercised("CAN-4", "OVW-4")
			if extra := p.answersSince(before); len(extra) > 1 {
				p.fail("OVW-4", "the agent answered $/cancel_request, a notification: %s", extra[0])
			}
			p.prompt(session, "text")
		},
	},
}

// manyUpdates is more than can be on its way when a cancellation is sent.
const manyUpdates = 200

// checkStops looks whether a long turn that ended right after its cancellation, but with another stop reason, ended
// because of it. A turn may end by itself before the agent reads the cancellation, but not three turns in a row that
// are cancelled at different moments. The function again plays another one that is cancelled when it has lasted for a
// while; running says that it had not ended before that.
func (p *play) checkStops(rule, reason string, took time.Duration,
	again func(lasts time.Duration) (reason string, took time.Duration, running bool)) {
	running := true
	for _, lasts := range []time.Duration{p.limits.quiet, p.limits.quiet / 2, 0} {
		if !running || reason == "" || reason == "cancelled" || took > p.limits.quiet/2 {
			return
		}
		if lasts > 0 {
			reason, took, running = again(lasts)
		}
	}
	p.fail(rule, "three long turns in a row ended right after they were cancelled or closed, each with another stop "+
		"reason than cancelled, such as %s", reason)
}

// checkAfterCancel looks at what comes after a cancelled turn, and whether the session is still of use.
func (p *play) checkAfterCancel(session string) {
	p.quiet(p.ctx, p.limits.quiet)
	p.promptAfterCancel(session)
}

// promptAfterCancel prompts after a cancellation that is over: the turn runs to its own end, or the judge says that
// nothing has cancelled it.
func (p *play) promptAfterCancel(session string) {
	p.client.nextTurn(session)
	p.prompt(session, "text")
	p.trait("turn after an idle cancel")
}

// countUpdates is the number of updates of a turn between two messages.
func (p *play) countUpdates(from, to int) int {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	n := 0
	for _, m := range p.kept {
		if m.number > from && m.number < to && m.method == "session/update" && ofTurn(m.text("update", "sessionUpdate")) {
			n++
		}
	}
	return n
}

// settled waits a little and reports whether a request is answered.
func (p *play) settled(id string) bool {
	return p.wait(p.ctx, p.limits.quiet/10, func() bool { return len(p.answers[id]) > 0 })
}
