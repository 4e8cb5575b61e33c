// What a client does in the scenarios for agents of both versions of the protocol.

package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// Capabilities that clients advertise.
const (
	allCapabilities = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}},"auth":{"terminal":true}}`
	noCapabilities  = `{}`
	leftOut         = ""
	clientInfo      = `{"name":"acp-probe","title":"acp probe","version":"1"}`
	// draftCapabilities is all that a client of version 2 can do.
	draftCapabilities = `{"elicitation":{"form":{},"url":{}},"auth":{"terminal":{}}}`
)

// codeVersion is the error of an agent of version 2 for a version that it does not speak.
const codeVersion = -32022

// isDraft reports whether version 2 is probed.
func (p *play) isDraft() bool { return p.options.subject.version == 2 }

// start launches the agent. If it is already running, it is ended first.
func (p *play) start() {
	p.end()
	ctx, cancel := context.WithTimeout(p.ctx, p.limits.answer)
	defer cancel()
	target, err := p.launch(ctx, p.dir)
	if err != nil {
		p.unanswered = ctx.Err() != nil
		p.fatal("INI-4", conformance.Must, "the agent does not start: %v", err)
	}
	p.client = newClient(p)
	p.init, p.caps, p.authenticated, p.states = nil, "", false, nil
	p.target = target
	p.Conn = player.NewConn(target.link(), conformance.Client, p.client.serve, p.observe)
}

// startWith launches the agent, for a client with capabilities.
func (p *play) startWith(name, capabilities string) {
	p.start()
	p.grant(name, capabilities)
}

// initialize launches the agent and initializes with capabilities, which are "" for a request without them. If the
// agent does not answer correctly, the scenario ends.
func (p *play) initialize(name, capabilities string) {
	p.start()
	switch {
	case p.isDraft():
		p.initializeDraft(name, capabilities)
	case capabilities == leftOut:
		p.initializeWith(name, capabilities, `{"protocolVersion":1,"clientInfo":`+clientInfo+`}`)
	default:
		p.initializeWith(name, capabilities,
			`{"protocolVersion":1,"clientCapabilities":`+capabilities+`,"clientInfo":`+clientInfo+`}`)
	}
}

// initializeWith initializes a running agent of version 1 with the given params.
func (p *play) initializeWith(name, capabilities, params string) {
	p.grant(name, capabilities)
	m := p.needs(p.call("initialize", params), "INI-4", conformance.Must, "initialize was not answered")
	if m.Code() == codeVersion || m.Kind == conformance.Response && versionOf(m) == 2 && player.IsSet(m.Params, "info") {
		p.trait(version2, onlyVersion2)
		p.stopf("%s", noVersion1)
	}
	if m.Kind == conformance.ErrorReply {
		p.fatal("INI-4", conformance.Must, "initialize was answered with an error: %s", player.AnswerText(m))
	}
	p.markExercised("INI-4")
	p.init, p.Itself = m, m.Params
}

// initializeDraft initializes a running agent with version 2.
func (p *play) initializeDraft(name, capabilities string) {
	p.grant(name, capabilities)
	m := p.call("initialize", `{"protocolVersion":2,"capabilities":`+capabilities+`,"info":`+clientInfo+`}`)
	p.markExercised("INI-9")
	switch {
	case m == nil:
		p.fatal("INI-16", conformance.Must, "%s", p.why("initialize was not answered"))
	case m.Kind == conformance.ErrorReply:
		p.broken("INI-9", "version 2 was answered with an error: %s", player.AnswerText(m))
	case versionOf(m) != 2:
		p.trait(otherVersion)
		p.stopf("%s", noVersion2)
	}
	p.init, p.Itself = m, m.Params
	p.trait(version2)
	if !p.can("session") {
		p.stopf("the agent has no sessions")
	}
}

// grant sets the capabilities that the client serves from now on.
func (p *play) grant(name, capabilities string) {
	p.caps = name
	p.record(p.Granted, []string{name})
	p.client.grant(capabilities)
}

// newSession creates a session in the scratch directory. If that fails, or needs authentication for which no method was
// chosen, the scenario ends.
func (p *play) newSession() string {
	m := p.call("session/new", p.fill(newParams))
	switch {
	case m == nil:
		p.fatal("INI-16", conformance.Must, "%s", p.why("session/new was not answered"))
	case m.Code() == codeAuth:
		p.stopf("the agent requires authentication: use --auth METHOD with one of %s",
			cmp.Or(strings.Join(p.authMethods(), ", "), "none"))
	case m.Kind == conformance.ErrorReply:
		p.fatal("INI-16", conformance.Must, "session/new was answered with an error: %s", player.AnswerText(m))
	case m.Text("sessionId") == "":
		p.fatal("SES-2", conformance.Must, "session/new was answered without a session id: %s", player.AnswerText(m))
	}
	return p.opened(m)
}

// opened takes the session of an answer for the latest one.
func (p *play) opened(m *player.Message) string {
	p.session, p.made = m.Text("sessionId"), m
	p.client.session(p.session, p.dir)
	return p.session
}

// ready is the usual beginning of a scenario: it initializes with all capabilities of a client and creates a session.
func (p *play) ready() {
	p.initialize("all", map[bool]string{false: allCapabilities, true: draftCapabilities}[p.isDraft()])
	p.newSession()
}

// authMethods returns the ids of the authentication methods that the agent offers.
func (p *play) authMethods() []string {
	var ids []string
	if p.init != nil {
		for _, m := range player.Elements(player.Member(p.init.Params, "authMethods")) {
			if player.IsSet(m, "id") || player.IsSet(m, "methodId") {
				ids = append(ids, cmp.Or(player.TextOf(m, "id"), player.TextOf(m, "methodId")))
			}
		}
	}
	return ids
}

// versionOf returns the version that initialize was answered with, or 0.
func versionOf(m *player.Message) (version int) {
	if m == nil || json.Unmarshal(player.Member(m.Params, "protocolVersion"), &version) != nil {
		return 0
	}
	return version
}

// settle waits for what was sent too late: until the agent has answered one more request, and a moment longer.
func (p *play) settle() {
	if p.call("_acp.probe/settled", "{}") != nil {
		p.silence(p.limits.quiet / 10)
	}
}

// promptParams returns the params of a prompt of the given kind.
func (p *play) promptParams(kind string) string {
	return p.blocks(`{"type":"text","text":` + player.Quote(p.text(p.session, kind)) + `}`)
}

// blocks returns the params of a prompt of the given blocks.
func (p *play) blocks(blocks string) string {
	return `{"sessionId":` + player.Quote(p.session) + `,"prompt":[` + blocks + `]}`
}

// text returns the prompt of the given kind: the chosen one, a slash command that the agent offers for it, or plain
// words. Before it uses a command, it waits until the agent has sent the commands of the session.
func (p *play) text(session, kind string) string {
	p.trait("prompt " + kind)
	chosen := p.options.Prompts[kind]
	told := func() bool { return p.client.offers(session, "") }
	if p.commands {
		p.Wait(p.ctx, p.limits.answer, told)
	} else if strings.HasPrefix(chosen, "/") {
		p.Wait(p.ctx, p.limits.quiet, told)
	}
	if p.client.offers(session, "probe-"+kind) {
		return cmp.Or(chosen, "/probe-"+kind)
	}
	return cmp.Or(chosen, DefaultPrompts[kind])
}

// certain reports whether the agent will certainly do what a kind of prompt asks for, because it offers a command for
// it or the user has chosen the prompt.
func (p *play) certain(kind string) bool {
	return p.options.Prompts[kind] != "" || p.client.offers(p.session, "probe-"+kind)
}

// begin sends a prompt and does not wait for its answer.
func (p *play) begin(kind string) string { return p.sendPrompt(p.promptParams(kind), "") }

// sendPrompt sends a prompt with the given params, and an id if it is not "".
func (p *play) sendPrompt(params, id string) string {
	p.from = p.LastNumber()
	p.promptID = p.Ask("session/prompt", params, id)
	return p.promptID
}

// prompt plays a turn. If the prompt is not answered, or is answered with an error, it reports a failure.
func (p *play) prompt(kind string) *player.Message {
	p.begin(kind)
	if p.isDraft() {
		return p.rests("V2-2")
	}
	return p.endOf(p.promptID)
}

// endOf waits for the end of a turn of version 1.
func (p *play) endOf(id string) *player.Message {
	p.markExercised("PRM-5")
	m := p.awaitTurn(id)
	if p.promptSucceeded("PRM-5", m) {
		p.trait("turn")
	}
	return m
}

// promptSucceeded reports whether the answer to a prompt, or nil, is no error. The requirement id says that it is one.
func (p *play) promptSucceeded(id string, m *player.Message) bool {
	switch {
	case m == nil:
		p.broken(id, "%s", p.why("session/prompt was not answered"))
	case m.Code() == codeAuth:
		p.stopf("the agent requires authentication for prompts: %s", player.Clip(m.Text("message")))
	case m.Kind == conformance.ErrorReply:
		// An agent may have reasons, such as a model that it cannot reach.
		p.failAt(id, conformance.Should, "session/prompt was answered with an error: %s", player.AnswerText(m))
		return false
	}
	return true
}

// content prompts with blocks. In version 1, a turn that ends with an error for another reason than the blocks is not
// judged here.
func (p *play) content(blocks string) *player.Message {
	p.sendPrompt(p.blocks(blocks), "")
	if p.isDraft() {
		m := p.await(p.promptID)
		if m == nil || m.Kind == conformance.Response {
			p.rests("V2-2")
		}
		return m
	}
	return p.needs(p.awaitTurn(p.promptID), "PRM-5", conformance.Must, "a prompt was not answered")
}

// rests waits in version 2 for the answer to the latest prompt, and for the idle state that ends its work, for as long
// as updates come. That it ends is what the requirement id says.
func (p *play) rests(id string) *player.Message {
	if id == "V2-2" {
		p.markExercised(id)
	}
	p.markExercised("INI-16")
	m := p.await(p.promptID)
	if !p.promptSucceeded("INI-16", m) {
		return m
	}
	if m.Text("messageId") == "" {
		p.fail("V2-1", "session/prompt was answered without a messageId: %s", player.AnswerText(m))
	}
	var idle *player.Message
	if !p.awaitEnd("the work of a prompt was reported as idle", func() bool { idle = p.idle(); return idle != nil }) {
		p.broken(id, "%s",
			p.why("the work of a prompt was not reported as running and then as idle"))
	}
	if !player.IsSet(idle.Params, "update", "stopReason") {
		p.failAt("V2-2", conformance.Should, "the idle state that ends the work of a prompt has no stop reason")
	}
	p.trait("turn")
	return idle
}

// idle returns the idle state of version 2 that ends the work of the latest prompt. The lock of the connection is held.
func (p *play) idle() *player.Message {
	working := false
	for _, m := range p.states {
		if m.Number <= p.from || m.Text("sessionId") != p.session {
			continue
		}
		switch m.Text("update", "state") {
		case "running", "requires_action":
			working = true
		case "idle":
			if working {
				return m
			}
		}
	}
	return nil
}

// isOver reports whether the turn of the latest prompt has ended. The lock of the connection is held.
func (p *play) isOver() bool {
	if p.isDraft() {
		return p.idle() != nil
	}
	return p.AnswerOf(p.promptID) != nil
}

// streams waits for the first n updates of the turn of a prompt, and reports whether it continues.
func (p *play) streams(n int) bool {
	came := p.Wait(p.ctx, p.limits.answer, func() bool {
		count := 0
		for _, m := range p.After(p.from) {
			kind := m.Text("update", "sessionUpdate")
			if m.Method == "session/update" && (ofTurn(kind) || p.isDraft() && strings.HasPrefix(kind, "agent_")) {
				count++
			}
		}
		return count >= n || p.isOver()
	})
	return (came || p.isDraft()) && !p.isDone()
}

// isDone is isOver without the lock.
func (p *play) isDone() bool {
	var over bool
	p.Locked(func() { over = p.isOver() })
	return over
}

// ofTurn reports whether updates of this kind belong to a turn.
func ofTurn(kind string) bool {
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		return true
	}
	return false
}

// awaitRequest waits for a request of the agent, and returns it unless the turn ends first.
func (p *play) awaitRequest(method string) (found *player.Message) {
	p.Wait(p.ctx, p.limits.answer, func() bool {
		for _, m := range p.After(0) {
			if m.Kind == conformance.Request && p.IsTheirs(m) && m.Method == method {
				found = m
			}
		}
		return found != nil || p.isOver()
	})
	return found
}

// cancel cancels the turn of the latest prompt.
func (p *play) cancel() { p.cancelWith("") }

// cancelWith is like cancel, with more members of the params. In version 2, a request follows, which shows the judge
// that the agent has read it.
func (p *play) cancelWith(more string) {
	p.client.cancel(p.session, func() { p.Notify("session/cancel", `{"sessionId":`+player.Quote(p.session)+more+`}`) })
	if p.isDraft() {
		p.call(alive, "{}")
	}
}

// endCancelled waits for the end of the latest turn, which was cancelled, with the stop reason cancelled. If the agent
// may have ended the turn before it read the cancellation, another stop reason is correct, and exercises nothing.
func (p *play) endCancelled() *player.Message { return p.cancelledEnd(p.promptID) }

// cancelledEnd is like endCancelled, for another prompt.
func (p *play) cancelledEnd(id string) *player.Message {
	if p.isDraft() {
		m := p.rests("V2-22")
		if reasonOf(m) == "cancelled" {
			p.markExercised("V2-22")
		}
		return m
	}
	m := p.awaitTurn(id)
	switch {
	case m == nil:
		p.broken("PRM-11", "%s", p.why("the cancelled session/prompt was not answered"))
	case m.Kind == conformance.ErrorReply:
		p.fail("PRM-12", "the cancelled turn ended with an error: %s", player.AnswerText(m))
	case reasonOf(m) == "cancelled":
		p.trait("cancelled")
	}
	return m
}

// reasonOf returns the stop reason in the message that ends a turn.
func reasonOf(m *player.Message) string {
	return cmp.Or(m.Text("stopReason"), m.Text("update", "stopReason"))
}

// cancelled cancels the latest turn, and returns its stop reason and the time to its end.
func (p *play) cancelled() (reason string, took time.Duration) {
	began := time.Now()
	p.cancel()
	m := p.endCancelled()
	return reasonOf(m), m.Time.Sub(began)
}

// checkStops looks whether a long turn that ended right after it was cancelled or closed, but with another stop reason,
// ended because of it. A turn may end by itself before the agent reads the cancellation, but not three turns in a row
// that are ended at different moments. The function end ends a turn, and next prepares another one.
func (p *play) checkStops(rule string, end func() (reason string, took time.Duration), next func()) {
	reason, took := end()
	running := true
	for _, lasts := range []time.Duration{p.limits.quiet, p.limits.quiet / 2, 0} {
		if !running || reason == "" || reason == "cancelled" || took > p.limits.quiet/2 {
			return
		}
		if lasts > 0 {
			next()
			p.begin("long")
			running = p.streams(3) && !p.Wait(p.ctx, lasts, p.isOver)
			reason, took = end()
		}
	}
	p.fail(rule, "three long turns in a row ended right after they were cancelled or closed, each with another stop "+
		"reason than cancelled, such as %s", reason)
}

// nextTurn lets the client serve the next turn of the session as usual.
func (p *play) nextTurn() { p.client.nextTurn(p.session) }

// promptAfterCancel prompts after a cancellation that is over: the turn runs to its own end, or the judge says that
// nothing has cancelled it.
func (p *play) promptAfterCancel() {
	p.nextTurn()
	p.prompt("text")
	p.trait("turn after an idle cancel")
}

// checkAfterCancel looks at what comes after a cancelled turn, and whether the session is still of use.
func (p *play) checkAfterCancel() {
	p.silence(p.limits.quiet)
	p.promptAfterCancel()
}

// errorsSince returns the agent's error answers after a message.
func (p *play) errorsSince(number int) []*player.Message {
	return slices.DeleteFunc(p.Since(number), func(m *player.Message) bool {
		return !p.IsTheirs(m) || m.Kind != conformance.ErrorReply
	})
}

// checkReleased looks whether all terminals of turns that are over were released. The agent may release them later,
// which makes this milder.
func (p *play) checkReleased() {
	open := 0
	for _, m := range p.Since(0) {
		switch {
		case m.Method == "terminal/create" && m.Kind == conformance.Response:
			open++
		case m.Method == "terminal/release" && m.Kind == conformance.Request:
			open--
		}
	}
	if open > 0 && p.saw("answered terminal/create") {
		p.failAt("TRM-7", conformance.Should, "the agent did not release %d of its terminals by the end of the turn", open)
	}
}
