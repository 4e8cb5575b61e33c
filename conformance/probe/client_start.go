// Scenarios for clients: the start, capabilities, versions and authentication.

package probe

import (
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

var clientStarts = []Scenario{
	{Name: startScenario, persona: full, bare: true,
		Text: "The client starts, creates a session and sends a prompt.",
		steps: []step{turn(says("Hello!")), nextTurn(happens("second prompt")), func(p *play) {
			if !p.target.person {
				p.answerAll() // a script plays to its end now
				p.silence(p.limits.quiet)
				if !p.HasEnded() {
					p.trait(staysThere)
				}
			}
		}}},
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
	{Name: "login", Exercises: []string{"AUT-3", "AUT-4"}, bare: true,
		Text:    "The agent requires authentication by a method without a type.",
		persona: persona{capabilities: allAgentCapabilities, methods: fakeMethods, locked: true},
		steps:   []step{prompting("authenticate", "the client did not authenticate"), nextTurn()}},
	{Name: "login-in-a-terminal", Exercises: []string{"AUT-2"}, bare: true, quiet: true,
		Text: "The agent requires authentication and offers only a method of type terminal: " +
			"its id is never passed to authenticate.",
		persona: persona{capabilities: allAgentCapabilities, methods: `[{"type":"terminal","id":"probe-terminal","name":"In a terminal","args":["--login","fails"]}]`, locked: true},
		steps:   []step{prompting("session/new", "the client created no session"), silence, tries("AUT-2")}},
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
	{Name: "login-of-unknown-type", Exercises: []string{"SCH-17"}, bare: true,
		Text:    "The agent offers a method of an unknown type before a known one.",
		persona: persona{capabilities: allAgentCapabilities, methods: `[{"type":"_telepathy","id":"think","name":"Think"},{"id":"probe-login","name":"Log in","description":null,"_meta":null}]`},
		steps:   []step{turn(continues("SCH-17", "an authentication method of an unknown type"))}}, // it may end with it
	{Name: "login-lost", Exercises: []string{"AUT-11"}, persona: full,
		Text: "A prompt is answered with an authentication error, as after a logout.",
		steps: []step{failingTurn(`{"code":-32000,"message":"Authentication required"}`),
			survives("AUT-11", "an authentication error")}},
}

// loggingIn is the scenario of a login in a terminal that succeeds or fails, and what follows.
func loggingIn(how, text string, then func(*play)) Scenario {
	return Scenario{Name: "login-in-a-terminal-" + how, Text: text, Exercises: []string{"AUT-6"},
		Needs: []string{"auth.terminal"}, bare: true, quiet: true,
		persona: persona{capabilities: allAgentCapabilities, methods: `[{"type":"terminal","id":"probe-terminal","name":"In a terminal","args":["--login","` + how + `"]}]`, locked: true},
		steps: []step{func(p *play) {
			if p.target.Next == nil {
				p.stopf("only a process can be restarted")
			}
		}, prompting("session/new", "the client created no session"), func(p *play) {
			if _, login := p.starts(p.limits.answer); !login {
				p.stopf("the client did not log in in a terminal")
			}
		}, then}}
}

// stating is the scenario of a set of capabilities of the agent: whatever it can do, the client copes, and uses nothing
// else.
func stating(name, set string) Scenario {
	return Scenario{Name: "capabilities-" + name, Exercises: []string{"INI-11", "SCH-17"},
		Text: "An agent that advertises " + strings.ReplaceAll(name, "-", " ") +
			" as its capabilities: the client copes, and uses nothing else.",
		persona: persona{capabilities: set},
		steps: []step{func(p *play) { p.record(p.Granted, []string{name}) }, tries("INI-11", "SCH-17"), func(p *play) {
			p.needs(p.nextPrompt(), "INI-11", conformance.Should,
				"the client sent no prompt to an agent with other capabilities")
			p.endTurn("end_turn")
			p.doesAll(ActNew, ActList, ActLoad, ActResume, ActMode, ActOption, ActClose, ActDelete, ActLogout)
		}, happens("gate")}}
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
		from := p.LastNumber()
		if p.awaitAll(all, p.limits.quiet) || p.LastNumber() == from {
			return
		}
	}
}

// awaitAll waits until all channels are closed.
func (p *play) awaitAll(all []<-chan struct{}, limit time.Duration) bool {
	late := time.After(limit)
	for _, done := range all {
		select {
		case <-done:
		case <-late:
			return false
		case <-p.ctx.Done():
			return false
		}
	}
	return true
}

// answeringVersion is the scenario of a version that no client speaks.
func answeringVersion(name, version string) Scenario {
	return Scenario{Name: "version-" + name, Exercises: []string{"INI-10"}, bare: true, quiet: true,
		Text: "The agent answers with a version that the client does not support: the client " +
			"creates no session, and closes the connection.",
		persona: persona{version: version, capabilities: allAgentCapabilities},
		steps: []step{prompting("initialize", "the client did not send initialize"), tries("INI-10"), func(p *play) {
			closed := p.ends(p.limits.quiet)
			switch {
			case p.saw("-> session/new"):
				p.fail("INI-10", "the client created a session with an agent of version %s", version)
			case !closed:
				p.failAt("INI-10", conformance.Should, "the client neither closed the connection nor created a session within %v",
					p.limits.quiet)
			}
		}}}
}
