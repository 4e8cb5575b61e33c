// Scenarios for clients: the start, capabilities, versions and authentication.

package probe

import (
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// ClientScenarios returns the scenarios for clients, in the order in which they are reported.
func ClientScenarios() []Scenario {
	return slices.Concat(clientStarts, clientTurns, clientWire, clientServices)
}

// full is an agent with everything that clients can use.
var full = persona{name: "full", capabilities: allAgentCapabilities, modes: fakeModes, options: fakeOptions,
	methods: fakeMethods}

var clientStarts = []Scenario{
	{
		Name: startScenario, Text: "The client starts, creates a session and sends a prompt.", persona: full, bare: true,
		run: func(p *play) {
			m := p.awaitPrompt()
			p.sendText(m, "Hello!")
			p.endTurn(m, "end_turn")
			if m := p.nextPrompt(); m != nil {
				p.trait("second prompt")
				p.endTurn(m, "end_turn")
			}
			if !p.target.person {
				p.answerAll() // a script plays to its end now
				p.quiet(p.ctx, p.limits.quiet)
				if !p.hasEnded() {
					p.trait(staysThere)
				}
			}
		},
	},
	stating("left-out", ""),
	stating("none", `{}`),
	stating("all-off", `{"loadSession":false,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":false},"mcpCapabilities":{"http":false,"sse":false}}`),
	stating("null", `{"loadSession":null,"promptCapabilities":null,"mcpCapabilities":null,"sessionCapabilities":null,"auth":null,"_meta":null}`),
	stating("null-members", `{"sessionCapabilities":{"list":null,"delete":null,"resume":null,"close":null,"additionalDirectories":null},"auth":{"logout":null}}`),
	stating("wrong-types", `{"loadSession":"yes","promptCapabilities":[],"mcpCapabilities":1,"sessionCapabilities":"all","auth":true}`),
	stating("unknown", `{"loadSession":true,"telepathy":{"range":3},"sessionCapabilities":{"list":{},"fork":{},"merge":{"_meta":{}}},"_meta":{"acp.probe":{"deep":[[[null]]]}}}`),
	stating("load-alone", `{"loadSession":true}`),
	stating("list-alone", `{"sessionCapabilities":{"list":{}}}`),
	answeringVersion("of-the-future", "9999"),
	answeringVersion("zero", "0"),
	{
		Name: "login", Text: "The agent requires authentication by a method without a type.",
		Exercises: []string{"AUT-3", "AUT-4"}, bare: true,
		persona: persona{capabilities: allAgentCapabilities, methods: fakeMethods, locked: true},
		run: func(p *play) {
			done, _ := p.act(ActPrompt)
			if m := p.arrives("authenticate", 0, done); m == nil {
				p.stopf("the client did not authenticate")
			}
			if m := p.nextPrompt(); m != nil {
				p.endTurn(m, "end_turn")
			}
		},
	},
	{
		Name: "login-in-a-terminal", Text: "The agent requires authentication and offers only a method of type terminal: " +
			"its id is never passed to authenticate.",
		Exercises: []string{"AUT-2"}, bare: true, quiet: true,
		persona: persona{capabilities: allAgentCapabilities, methods: `[{"type":"terminal","id":"probe-terminal","name":"In a terminal","args":["--login","fails"]}]`, locked: true},
		run: func(p *play) {
			done, _ := p.act(ActPrompt)
			if p.arrives("session/new", 0, done) == nil {
				p.stopf("the client created no session")
			}
			p.quiet(p.ctx, p.limits.quiet)
			p.markExercised("AUT-2")
		},
	},
	loggingIn("succeeds", "The user logs in in a terminal: the client restarts the agent and initializes it.",
		func(p *play) {
			again, _ := p.starts(p.limits.answer)
			if !p.check("AUT-6", again, "the client did not restart the agent after a login that exited with status 0") {
				return
			}
			p.fake.mu.Lock()
			p.fake.authenticated = true
			p.fake.mu.Unlock()
			p.check("AUT-6", p.arrives("initialize", 0, nil) != nil, "the client did not initialize the restarted agent")
		}),
	loggingIn("fails", "A login in a terminal fails: the client does not continue as if the user had logged in.",
		func(p *play) {
			p.markExercised("AUT-6")
			if again, _ := p.starts(p.limits.quiet); again {
				p.check("AUT-6", p.arrivesWithin("session/new", 0, nil, p.limits.quiet) == nil,
					"the client created a session after a failed login")
			}
		}),
	{
		Name: "login-of-unknown-type", Text: "The agent offers a method of an unknown type before a known one.",
		Exercises: []string{"SCH-17"}, bare: true,
		persona: persona{capabilities: allAgentCapabilities, methods: `[{"type":"_telepathy","id":"think","name":"Think"},{"id":"probe-login","name":"Log in","description":null,"_meta":null}]`},
		run: func(p *play) {
			m := p.awaitPrompt()
			p.serves("SCH-17", "an authentication method of an unknown type") // in the turn: it may end with it
			p.endTurn(m, "end_turn")
		},
	},
	{
		Name: "login-lost", Text: "A prompt is answered with an authentication error, as after a logout.",
		Exercises: []string{"AUT-11"}, persona: full,
		run: func(p *play) {
			m := p.awaitPrompt()
			p.conn.answer(m, "error", `{"code":-32000,"message":"Authentication required"}`)
			p.goesOn("AUT-11", "an authentication error")
		},
	},
}

// loggingIn is the scenario of a login in a terminal that succeeds or fails, and what follows.
func loggingIn(how, text string, then func(*play)) Scenario {
	return Scenario{
		Name: "login-in-a-terminal-" + how, Text: text, Exercises: []string{"AUT-6"}, Needs: []string{"auth.terminal"},
		bare: true, quiet: true,
		persona: persona{capabilities: allAgentCapabilities, methods: `[{"type":"terminal","id":"probe-terminal","name":"In a terminal","args":["--login","` + how + `"]}]`, locked: true},
		run: func(p *play) {
			if p.target.Next == nil {
				p.stopf("only a process can be restarted")
			}
			done, _ := p.act(ActPrompt)
			if p.arrives("session/new", 0, done) == nil {
				p.stopf("the client created no session")
			}
			if _, login := p.starts(p.limits.answer); !login {
				p.stopf("the client did not log in in a terminal")
			}
			then(p)
		},
	}
}

// staysThere is the trait of a client that does not end with its turns.
const staysThere = "stays"

// goesOn checks that the client continues after an error: it takes another request, or it has ended by itself, as a
// program for one prompt may that ends with any turn.
func (p *play) goesOn(id, after string) {
	m := p.await(p.ask("_acp.probe/alive", "{}", ""))
	p.markExercised(id)
	if m != nil {
		return
	}
	p.conn.mu.Lock()
	ended := p.ended != nil
	p.conn.mu.Unlock()
	if !ended {
		p.failAt(id, max(conformance.Should, mustRequirement(id).Level), "the client served no request after %s", after)
		panic(stop{})
	}
	if p.stays {
		p.failAt(id, max(conformance.Should, mustRequirement(id).Level),
			"the client ended at %s; it does not end with other turns", after)
	}
}

// stating is the scenario of a set of capabilities of the agent: whatever it can do, the client copes, and uses nothing
// else.
func stating(name, set string) Scenario {
	return Scenario{
		Name: "capabilities-" + name,
		Text: "An agent that advertises " + strings.ReplaceAll(name, "-", " ") +
			" as its capabilities: the client copes, and uses nothing else.",
		Exercises: []string{"INI-11", "SCH-17"},
		persona:   persona{capabilities: set},
		run: func(p *play) {
			p.grantAgent(name)
			p.markExercised("INI-11", "SCH-17")
			m := p.nextPrompt()
			if m == nil {
				p.failAt("INI-11", conformance.Should, "%s", p.why("the client sent no prompt to an agent with other capabilities"))
				return
			}
			p.endTurn(m, "end_turn")
			p.doesAll(ActNew, ActList, ActLoad, ActResume, ActMode, ActOption, ActClose, ActDelete, ActLogout)
			p.trait("gate")
		},
	}
}

// grantAgent names the capabilities that the fake agent states.
func (p *play) grantAgent(name string) {
	p.tmu.Lock()
	defer p.tmu.Unlock()
	p.granted[name] = true
}

// doesAll has the user do one thing after the other, and waits until all is over, or nothing more comes of it.
func (p *play) doesAll(actions ...Action) {
	var all []<-chan struct{}
	for _, a := range actions {
		done, can := p.act(a)
		if !can {
			continue
		}
		all = append(all, done)
		if p.target.person {
			p.awaitAll(all, p.limits.answer)
		}
	}
	for range maxTurns {
		from := p.lastNumber()
		if p.awaitAll(all, p.limits.quiet) || p.lastNumber() == from {
			return
		}
	}
}

// awaitAll waits until all channels are closed.
func (p *play) awaitAll(all []<-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, done := range all {
		select {
		case <-done:
		case <-timer.C:
			return false
		case <-p.ctx.Done():
			return false
		}
	}
	return true
}

// answeringVersion is the scenario of a version that no client speaks.
func answeringVersion(name, version string) Scenario {
	return Scenario{
		Name: "version-" + name, Text: "The agent answers with a version that the client does not support: the client " +
			"creates no session, and closes the connection.",
		Exercises: []string{"INI-10"}, bare: true, quiet: true,
		persona: persona{version: version, capabilities: allAgentCapabilities},
		run: func(p *play) {
			done, _ := p.act(ActPrompt)
			if p.arrives("initialize", 0, done) == nil {
				p.stopf("the client did not send initialize")
			}
			p.markExercised("INI-10")
			closed := p.wait(p.ctx, p.limits.quiet, func() bool { return p.ended != nil })
			switch {
			case p.saw("-> session/new"):
				p.fail("INI-10", "the client created a session with an agent of version %s", version)
			case !closed:
				p.failAt("INI-10", conformance.Should, "the client neither closed the connection nor created a session within %v",
					p.limits.quiet)
			}
		},
	}
}
