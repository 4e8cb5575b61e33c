package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// Client probes a client by playing an agent to it. The launch must start the client so that the client starts, or
// connects to, the probe as its agent. The [Target.User] of the returned target makes the client's user do something.
func Client(ctx context.Context, launch Launch, options *Options) (*Report, error) {
	return run(ctx, launch, options, &clients)
}

// clients is the subject of [Client].
var clients = subject{
	side: conformance.Client, word: "client", capabilities: "clientCapabilities", info: "clientInfo",
	rows: clientRows, scenarios: ClientScenarios, script: func(p *play, s *Scenario) {
		p.begins(s.persona)
		s.run(p)
		p.leave()
	},
	request: (*play).observeClientRequest, result: (*play).observeClientResult,
}

// Action is an action of a client's user.
type Action string

// The actions.
const (
	ActPrompt Action = "prompt" // send a prompt in the session, which is created first if necessary
	ActCancel Action = "cancel" // cancel the turn
	ActNew    Action = "new"    // create another session
	ActList   Action = "list"   // list all sessions
	ActLoad   Action = "load"   // load the session, with its history
	ActResume Action = "resume" // resume it, without its history
	ActClose  Action = "close"  // close it
	ActDelete Action = "delete" // delete it
	ActMode   Action = "mode"   // change its mode
	ActOption Action = "option" // change an option of it to another of its values
	ActToggle Action = "toggle" // switch an option of it on or off
	ActLogout Action = "logout" // log out
	ActAllow  Action = "allow"  // grant the requested permission, or accept the form or the link
	ActReject Action = "reject" // refuse it
	ActQuit   Action = "quit"   // end the client
)

// Actions lists all actions.
var Actions = []Action{ActPrompt, ActCancel, ActNew, ActList, ActLoad, ActResume, ActClose, ActDelete, ActMode,
	ActOption, ActToggle, ActLogout, ActAllow, ActReject, ActQuit}

// begins starts the client against a fake agent.
func (p *play) begins(who persona) {
	p.end()
	ctx, cancel := context.WithTimeout(p.ctx, p.limits.answer)
	defer cancel()
	target, err := p.launch(ctx, p.dir)
	if err != nil {
		p.stopf("the client did not start: %v", err)
	}
	p.fake = &fakeAgent{play: p, persona: who, prompted: make(chan struct{})}
	p.meets(target)
}

// meets begins a connection to the client.
func (p *play) meets(target *Target) {
	p.init = nil
	ready := make(chan struct{})
	p.conn = newConn(target, conformance.Agent, &p.limits, func(c *conn, m *message) {
		<-ready // play knows the connection
		p.fake.serve(c, m)
	}, p.observe)
	close(ready)
}

// starts waits until the client has started its agent again, which is served from now on, or has run it as a login in a
// terminal.
func (p *play) starts(within time.Duration) (again, login bool) {
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	more := p.target.Next
	next, login, err := more(ctx)
	if err != nil {
		p.checkTime()
		return false, false
	}
	if login {
		p.conn.mu.Lock()
		p.note("   the client runs a login in a terminal")
		p.conn.mu.Unlock()
		return false, true
	}
	p.end()
	next.Next = more
	p.meets(next)
	return true, false
}

// does makes the user do something, waits until the client has sent a request or notification with the given method,
// and returns it. It returns nil if the client does not send it, because it cannot or its user has no way to do it. A
// client without a user may do it of its own accord, earlier or after its next prompts.
func (p *play) does(a Action, method string) *message {
	from := p.lastNumber()
	idle, can := p.act(a)
	if !can {
		p.answerAll()
		return p.arrivesWithin(method, 0, nil, p.limits.quiet)
	}
	return p.arrives(method, from, idle)
}

// decides has the user answer a request of the agent, and returns the client's answer, which must be what the user has
// decided. It returns nil if there is none in time. A client that is typed to gets the answer when it seems to have
// asked, and again if it has missed it.
func (p *play) decides(id string, a Action) *message {
	screen := p.target.Stderr
	if p.target.person {
		screen = nil
	}
	if m := p.shown(id, screen); m != nil {
		p.checkDecision(id, m, a, true)
		return m
	}
	var m *message
	for end := time.Now().Add(p.limits.answer); ; {
		_, can := p.act(a)
		if !can {
			return p.await(id)
		}
		if screen == nil {
			m = p.await(id)
			break
		}
		if m = p.awaitWithin(id, p.limits.quiet); m != nil || time.Now().After(end) || p.hasEnded() {
			break
		}
		p.checkTime()
	}
	p.checkDecision(id, m, a, false)
	return m
}

// shown waits until the client seems to have asked its user: it has written something to the screen, and then nothing
// for a moment. If there is no screen, it only waits for that moment. It returns the answer to the request if there is
// one.
func (p *play) shown(id string, screen *Stderr) *message {
	moment := max(p.limits.quiet/10, 20*time.Millisecond)
	if screen == nil {
		return p.awaitWithin(id, moment)
	}
	first := screen.written()
	last := first
	for end := time.Now().Add(p.limits.quiet); time.Now().Before(end) && !p.hasEnded(); {
		if m := p.awaitWithin(id, moment); m != nil {
			return m
		}
		p.checkTime()
		now := screen.written()
		if now == last && now != first {
			break
		}
		last = now
	}
	return nil
}

// checkDecision checks that an answer is what the user has decided. If it is early, the user had not decided anything:
// the settings of a client may answer, but then the user is not asked.
func (p *play) checkDecision(id string, m *message, a Action, early bool) {
	if m == nil {
		return
	}
	if m.kind != conformance.Response {
		if _, can := p.act(a); can && !p.mayRefuse && !strings.HasPrefix(m.method, "fs/") {
			p.fail("ADD-17", "the client answered %s with an error, not with its user's decision: %s", m.method, m.describe())
		}
		return
	}
	var outcome string
	switch m.method {
	case "session/request_permission":
		p.conn.mu.Lock()
		i := slices.IndexFunc(p.kept, func(r *message) bool {
			return r.id == id && r.kind == conformance.Request && r.direction == p.toPeer()
		})
		if i >= 0 {
			outcome = outcomeOf(p.kept[i], m)
		}
		p.conn.mu.Unlock()
	case "elicitation/create":
		outcome = m.text("action")
	}
	granted := strings.HasPrefix(outcome, "allow") || outcome == "accept"
	refused := strings.HasPrefix(outcome, "reject")
	dismissed := outcome == "cancelled" || outcome == "cancel" || outcome == "decline"
	opposite := granted && a == ActReject || refused && a == ActAllow
	switch {
	case early:
		if !opposite {
			return
		}
		if _, can := p.act(a); can { // a user who cannot decide is not asked either
			p.doubt("ADD-17", "the client answered %s with %s before its user could decide; its settings may say so", m.method,
				outcome)
		}
		return
	case opposite:
		p.fail("ADD-17", "the user's decision was %s, but the client answered %s with %s", a, m.method, outcome)
	case dismissed && a == ActAllow:
		p.doubt("ADD-17", "the user's decision was %s, but the client answered %s with %s", a, m.method, outcome)
	}
	p.markExercised("ADD-17")
}

// answerAll makes all prompts be answered immediately from now on.
func (p *play) answerAll() {
	p.fake.mu.Lock()
	p.fake.free = true
	waiting := p.fake.prompts
	p.fake.prompts = nil
	p.fake.mu.Unlock()
	for _, m := range waiting {
		p.endTurn(m, "end_turn")
	}
}

// lastNumber returns the number of the last message.
func (p *play) lastNumber() int {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	return p.number
}

// act makes the user do something. done is closed when that is finished, if this can be observed.
func (p *play) act(a Action) (done <-chan struct{}, can bool) {
	if p.target.User == nil {
		return nil, false
	}
	p.conn.mu.Lock()
	p.note("   the user: %s", a)
	p.conn.mu.Unlock()
	done = p.target.User(a)
	return done, done != nil
}

// arrives waits for a message of the client after another one, until the user has finished the action and no more
// messages arrive.
func (p *play) arrives(method string, from int, idle <-chan struct{}) *message {
	return p.arrivesWithin(method, from, idle, p.limits.answer)
}

func (p *play) arrivesWithin(method string, from int, idle <-chan struct{}, limit time.Duration) *message {
	var found *message
	look := func() bool {
		found = p.firstSince(from, func(m *message) bool {
			return m.method == method && (m.kind == conformance.Request || m.kind == conformance.Notification)
		})
		return found != nil
	}
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	if idle != nil {
		stop := make(chan struct{})
		defer close(stop)
		go func() { // ends with this call
			select {
			case <-idle:
				timer := time.NewTimer(p.limits.quiet)
				defer timer.Stop()
				select {
				case <-timer.C:
					cancel()
				case <-stop:
				}
			case <-stop:
			}
		}()
	}
	p.wait(ctx, limit, look)
	if found == nil {
		p.checkTime()
	}
	return found
}

// awaitPrompt returns the next prompt of the client. If there is none, the scenario ends.
func (p *play) awaitPrompt() *message {
	m := p.nextPrompt()
	if m == nil {
		p.stopf("the client sent no prompt")
	}
	return m
}

// nextPrompt is like awaitPrompt, but returns nil if there is none.
func (p *play) nextPrompt() *message {
	take := func() *message {
		p.fake.mu.Lock()
		defer p.fake.mu.Unlock()
		if len(p.fake.prompts) == 0 {
			return nil
		}
		m := p.fake.prompts[0]
		p.fake.prompts = p.fake.prompts[1:]
		return m
	}
	if m := take(); m != nil {
		p.trait("prompted")
		p.keepPrompt(m)
		return m
	}
	done, can := p.act(ActPrompt)
	limit := p.limits.answer
	if !can && p.saw("prompted") {
		limit = p.limits.quiet // it sends the prompts of its command line, and perhaps nothing more
	}
	var m *message
	over := time.Time{}
	p.wait(p.ctx, limit, func() bool {
		if m = take(); m != nil {
			return true
		}
		select {
		case <-done:
			// The user has finished; messages that were sent will be read soon.
			if over.IsZero() {
				over = time.Now().Add(p.limits.quiet)
				time.AfterFunc(p.limits.quiet, p.conn.wake)
			}
			return !time.Now().Before(over)
		default:
			return false
		}
	})
	if m == nil {
		p.checkTime()
		return nil
	}
	p.trait("prompted")
	p.keepPrompt(m)
	return m
}

// keepPrompt keeps the session of a prompt, and introduces the scenario to a person.
func (p *play) keepPrompt(m *message) {
	p.latest = m.text("sessionId")
	if p.introduce != "" {
		p.sendText(m, p.introduce)
		p.introduce = ""
	}
}

// wake wakes all waiting goroutines.
func (c *conn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeAll()
}

// sessionIDs returns the ids of the sessions.
func (f *fakeAgent) sessionIDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, s := range f.sessions {
		ids = append(ids, s.id)
	}
	return ids
}

// update sends an update of a prompt's session.
func (p *play) update(turn *message, update string) {
	p.notify("session/update", `{"sessionId":`+quote(turn.text("sessionId"))+`,"update":`+update+`}`)
}

// sendText sends an update with a text of the agent.
func (p *play) sendText(turn *message, text string) {
	p.update(turn, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`+quote(text)+`}}`)
}

// endTurn ends a turn.
func (p *play) endTurn(turn *message, reason string) {
	p.conn.answer(turn, "result", `{"stopReason":`+quote(reason)+`}`)
}

// turnParams returns the params of a request about a prompt's session, with additional members.
func turnParams(turn *message, more string) string {
	return `{"sessionId":` + quote(turn.text("sessionId")) + more + `}`
}

// tool announces a tool call.
func (p *play) tool(turn *message, id, kind string) {
	p.update(turn, `{"sessionUpdate":"tool_call","toolCallId":`+quote(id)+`,"title":"A call of the probe","kind":`+quote(kind)+`,"status":"pending"}`)
}

const permissionOptions = `[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]`

// permission asks for permission for a tool call, and returns the request's id.
func (p *play) permission(turn *message, call string) string {
	return p.ask("session/request_permission", turnParams(turn, `,"toolCall":{"toolCallId":`+quote(call)+`,"title":"A call of the probe"},"options":`+permissionOptions), "")
}

// serves checks that the client continues after something, that is, that it answers the next request.
func (p *play) serves(id, after string) {
	p.checkAlive(id, after)
}

// requireAnswer waits for an answer, and reports the requirement as broken if there is none.
func (p *play) requireAnswer(id, request, what string) *message {
	m := p.await(request)
	p.markExercised(id)
	if m == nil {
		// Every request must be answered, so the level is at least SHOULD.
		p.failAt(id, min(mustRequirement(id).Level, conformance.Should), "%s", p.why(what+" was not answered"))
		panic(stop{})
	}
	return m
}

// leave ends a scenario: it answers the remaining prompts and asks the client to end.
func (p *play) leave() {
	p.answerAll()
	if _, can := p.act(ActQuit); can {
		p.wait(p.ctx, p.limits.answer, func() bool { return p.ended != nil })
	}
}

// missing returns the reason why a client's scenario is not played after the outcome of the first one.
func (first *Outcome) missing(s *Scenario) string {
	switch {
	case s.bare:
		return ""
	case !first.traits["-> session/new"]:
		return "the client created no session"
	case !first.traits["prompted"]:
		return "the client sent no prompt"
	}
	return ""
}

// describe describes a message in words.
func (m *message) describe() string {
	if m == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s: %s", m.kind, clip(string(m.params)))
}
