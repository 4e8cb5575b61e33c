// The probe of clients: what a scenario can do, and how the client is led through it.

package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// Client puts a client through the protocol: the probe plays an agent to it. The launch starts the client so that it
// starts or reaches the probe as its agent; the [Target.User] of what it returns has the client's user do something.
func Client(ctx context.Context, launch Launch, options *Options) (*Report, error) {
	return run(ctx, launch, options, &clients)
}

// clients are what [Client] is about.
var clients = subject{
	side: conformance.Client, word: "client", capabilities: "clientCapabilities", info: "clientInfo",
	rows: clientRows, scenarios: ClientScenarios, script: func(p *play, s *Scenario) {
		p.begins(s.persona)
		s.run(p)
		p.leave()
	},
	request: (*play).observeClientRequest, result: (*play).observeClientResult,
}

// Action is what the user of a client does.
type Action string

// The actions.
const (
	ActPrompt Action = "prompt" // send a prompt in the session, and make the session before that
	ActCancel Action = "cancel" // cancel the turn
	ActNew    Action = "new"    // make another session
	ActList   Action = "list"   // list all sessions
	ActLoad   Action = "load"   // load the session, with its history
	ActResume Action = "resume" // resume it, without its history
	ActClose  Action = "close"  // close it
	ActDelete Action = "delete" // delete it
	ActMode   Action = "mode"   // change its mode
	ActOption Action = "option" // change an option of it
	ActLogout Action = "logout" // log out
	ActAllow  Action = "allow"  // grant the permission that is asked for, or accept the form or the link
	ActReject Action = "reject" // refuse it
	ActQuit   Action = "quit"   // end the client
)

// Actions are all actions.
var Actions = []Action{ActPrompt, ActCancel, ActNew, ActList, ActLoad, ActResume, ActClose, ActDelete, ActMode, ActOption, ActLogout, ActAllow, ActReject, ActQuit}

// begins starts the client against a fake agent.
func (p *play) begins(who persona) {
	p.end()
	ctx, cancel := context.WithTimeout(p.ctx, p.limits.answer)
	defer cancel()
	target, err := p.launch(ctx, p.dir)
	if err != nil {
		p.stopf("the client does not start: %v", err)
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

// starts waits until the client has started its agent once more, to be served from now on, or has run it as a login in a
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

// does has the user do something, and waits until the client has sent a request or notification of a method, which it
// returns. It is nil if the client does not: it cannot, or its user has no way to it. A client without a user may do it of
// its own accord, earlier or behind its next prompts.
func (p *play) does(a Action, method string) *message {
	from := p.lastNumber()
	idle, can := p.act(a)
	if !can {
		p.answerAll()
		return p.arrivesWithin(method, 0, nil, p.limits.quiet)
	}
	return p.arrives(method, from, idle)
}

// answerAll has all prompts answered at once from now on.
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

// lastNumber is the number of the last message that passed.
func (p *play) lastNumber() int {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	return p.number
}

// act has the user do something; done is closed when that is over, if that can be known.
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

// arrives waits for a message of the client behind another one, until the user has done what was wanted and nothing more
// comes.
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

// awaitPrompt is the next prompt of the client's. Without one the scenario ends: the client cannot be led there.
func (p *play) awaitPrompt() *message {
	m := p.nextPrompt()
	if m == nil {
		p.stopf("the client sends no prompt")
	}
	return m
}

// nextPrompt is prompted that returns nil.
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
		limit = p.limits.quiet // it sends what it was told to at its start, and perhaps nothing more
	}
	var m *message
	over := time.Time{}
	p.wait(p.ctx, limit, func() bool {
		if m = take(); m != nil {
			return true
		}
		select {
		case <-done:
			// The user is through; what was sent is read soon.
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

// wake has all who wait look again.
func (c *conn) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeAll()
}

// sessionIDs are the ids of the sessions.
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

// sendText is an update that a text is said.
func (p *play) sendText(turn *message, text string) {
	p.update(turn, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`+quote(text)+`}}`)
}

// endTurn ends a turn.
func (p *play) endTurn(turn *message, reason string) {
	p.conn.answer(turn, "result", `{"stopReason":`+quote(reason)+`}`)
}

// turnParams are the params of a request about a prompt's session, with more members.
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

// serves checks that the client goes on after something: it answers the next request.
func (p *play) serves(id, after string) {
	p.checkAlive(id, after)
}

// requireAnswer waits for an answer that is due, and reports the requirement as broken if there is none.
func (p *play) requireAnswer(id, request, what string) *message {
	m := p.await(request)
	p.markExercised(id)
	if m == nil {
		// Each request has to be answered, so it is no mere advice.
		p.failAt(id, min(mustRequirement(id).Level, conformance.Should), "%s", p.why(what+" is not answered"))
		panic(stop{})
	}
	return m
}

// leave ends a scenario: prompts that are still to come are answered, and the client is asked to end.
func (p *play) leave() {
	p.answerAll()
	if _, can := p.act(ActQuit); can {
		p.wait(p.ctx, p.limits.answer, func() bool { return p.ended != nil })
	}
}

// missing says why a client's scenario is not played after how the first one went.
func (first *Outcome) missing(s *Scenario) string {
	switch {
	case s.bare:
		return ""
	case !first.traits["-> session/new"]:
		return "the client makes no session"
	case !first.traits["prompted"]:
		return "the client sends no prompt"
	}
	return ""
}

// describe says in words what came.
func (m *message) describe() string {
	if m == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s: %s", m.kind, clip(string(m.params)))
}
