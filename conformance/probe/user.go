// What the probe, as an agent, does with a client and its user.

package probe

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

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
	p.target = target
	p.Conn = player.NewConn(target.link(), conformance.Agent, func(c *player.Conn, m *player.Message) {
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
		p.Remark("   the client runs a login in a terminal")
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
func (p *play) does(a Action, method string) *player.Message {
	from := p.LastNumber()
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
func (p *play) decides(id string, a Action) *player.Message {
	screen := p.target.Stderr
	if p.target.person {
		screen = nil
	}
	if m := p.shown(id, screen); m != nil {
		p.checkDecision(id, m, a, true)
		return m
	}
	var m *player.Message
	for end := time.Now().Add(p.limits.answer); ; {
		_, can := p.act(a)
		if !can {
			return p.await(id)
		}
		if screen == nil {
			m = p.await(id)
			break
		}
		if m = p.awaitWithin(id, p.limits.quiet); m != nil || time.Now().After(end) || p.HasEnded() {
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
func (p *play) shown(id string, screen *Stderr) *player.Message {
	moment := max(p.limits.quiet/10, 20*time.Millisecond)
	if screen == nil {
		return p.awaitWithin(id, moment)
	}
	first := screen.written()
	last := first
	for end := time.Now().Add(p.limits.quiet); time.Now().Before(end) && !p.HasEnded(); {
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
func (p *play) checkDecision(id string, m *player.Message, a Action, early bool) {
	if m == nil {
		return
	}
	if m.Kind != conformance.Response {
		if _, can := p.act(a); can && !p.mayRefuse && !strings.HasPrefix(m.Method, "fs/") {
			p.fail("ADD-17", "the client answered %s with an error, not with its user's decision: %s", m.Method, m.Describe())
		}
		return
	}
	var outcome string
	switch m.Method {
	case "session/request_permission":
		for _, r := range p.Since(0) {
			if r.ID == id && r.Kind == conformance.Request && !p.IsTheirs(r) {
				outcome = player.OutcomeOf(r, m)
				break
			}
		}
	case "elicitation/create":
		outcome = m.Text("action")
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
			p.doubt("ADD-17", "the client answered %s with %s before its user could decide; its settings may say so", m.Method,
				outcome)
		}
		return
	case opposite:
		p.fail("ADD-17", "the user's decision was %s, but the client answered %s with %s", a, m.Method, outcome)
	case dismissed && a == ActAllow:
		p.doubt("ADD-17", "the user's decision was %s, but the client answered %s with %s", a, m.Method, outcome)
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
		p.Conn.Answer(m, "result", endOfTurn)
	}
}

// act makes the user do something. done is closed when that is finished, if this can be observed.
func (p *play) act(a Action) (done <-chan struct{}, can bool) {
	if p.target.User == nil {
		return nil, false
	}
	p.Remark("   the user: %s", a)
	done = p.target.User(a)
	return done, done != nil
}

// arrives waits for a message of the client after another one, until the user has finished the action and no more
// messages arrive.
func (p *play) arrives(method string, from int, idle <-chan struct{}) *player.Message {
	return p.arrivesWithin(method, from, idle, p.limits.answer)
}

func (p *play) arrivesWithin(method string, from int, idle <-chan struct{}, limit time.Duration) *player.Message {
	ctx, cancel := p.untilIdle(idle)
	defer cancel()
	found := p.comes(ctx, from, limit, func(m *player.Message) bool {
		return m.Method == method && (m.Kind == conformance.Request || m.Kind == conformance.Notification)
	})
	if found == nil {
		p.checkTime()
	}
	return found
}

// comes waits for the first message of the client after another one for which f is true.
func (p *play) comes(ctx context.Context, from int, limit time.Duration,
	f func(*player.Message) bool) (found *player.Message) {
	p.Wait(ctx, limit, func() bool {
		all := p.After(from)
		i := slices.IndexFunc(all, func(m *player.Message) bool { return p.IsTheirs(m) && f(m) })
		if i >= 0 {
			found = all[i]
		}
		return found != nil
	})
	return found
}

// untilIdle returns a context that ends when the channel has been closed for as long as a silence: messages that were
// sent before that will have been read.
func (p *play) untilIdle(idle <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.ctx)
	if idle != nil {
		go func() { // ends with the context
			select {
			case <-idle:
				timer := time.AfterFunc(p.limits.quiet, cancel)
				<-ctx.Done()
				timer.Stop()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// awaitPrompt takes the next prompt of the client. If there is none, the scenario ends.
func (p *play) awaitPrompt() {
	if p.nextPrompt() == nil {
		p.stopf("the client sent no prompt")
	}
}

// nextPrompt is like awaitPrompt, but returns nil if there is none.
func (p *play) nextPrompt() *player.Message {
	m := p.fake.take()
	if m == nil {
		done, can := p.act(ActPrompt)
		limit := p.limits.answer
		if !can && p.saw("prompted") {
			limit = p.limits.quiet // it sends the prompts of its command line, and perhaps nothing more
		}
		ctx, cancel := p.untilIdle(done)
		defer cancel()
		p.Wait(ctx, limit, func() bool {
			m = p.fake.take()
			return m != nil
		})
	}
	if m == nil {
		p.checkTime()
		return nil
	}
	p.trait("prompted")
	p.taken, p.session = m, m.Text("sessionId")
	if p.introduce != "" {
		p.sendText(p.introduce)
		p.introduce = ""
	}
	return m
}

// leave ends a scenario: it answers the remaining prompts and asks the client to end.
func (p *play) leave() {
	p.answerAll()
	if _, can := p.act(ActQuit); can {
		p.ends(p.limits.answer)
	}
}

// ends waits for the end of the client's output.
func (p *play) ends(limit time.Duration) bool {
	p.Wait(p.ctx, limit, func() bool { return false }) // or until the output ends
	return p.HasEnded()
}

// turnParams returns the params of a request about the prompt's session, with additional members.
func (p *play) turnParams(more string) string {
	return `{"sessionId":` + player.Quote(p.session) + more + `}`
}

func (p *play) update(text string) { p.Notify("session/update", p.turnParams(`,"update":`+text)) }

func (p *play) sendText(text string) {
	p.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + player.Quote(text) + `}}`)
}
