// Scenarios for agents of version 2 of the protocol, which is in Preview, and what shows there that a requirement was
// exercised.

package probe

import (
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// drafts are what [Agent] is about in version 2.
var drafts = subject{
	side: conformance.Agent, word: "agent", capabilities: "capabilities", info: "info", version: 2,
	rows: draftRows, scenarios: func() []Scenario { return draftScenarios },
	script:  func(p *play, s *Scenario) { s.run(p) },
	request: (*play).observeRequest, result: (*play).observeResult,
}

// DraftScenarios returns the scenarios for agents of version 2, in the order in which they are reported.
func DraftScenarios() []Scenario { return drafts.scenarios() }

// draftCapabilities is all that a client of version 2 can do.
const draftCapabilities = `{"elicitation":{"form":{},"url":{}},"auth":{"terminal":{}}}`

// draft starts the agent, initializes with version 2, and makes a session.
func (p *play) draft() (session string, m *message) {
	p.draftWith("all", draftCapabilities)
	return p.sessionAnswer()
}

// draftWith starts the agent, and initializes with version 2 and capabilities.
func (p *play) draftWith(name, capabilities string) {
	p.start()
	p.grant(name, capabilities)
	m := p.call("initialize", `{"protocolVersion":2,"capabilities":`+capabilities+`,"info":`+clientInfo+`}`)
	p.markExercised("INI-9")
	switch {
	case m == nil:
		p.failAt("INI-16", conformance.Must, "%s", p.why("initialize was not answered"))
		panic(stop{})
	case m.kind == conformance.ErrorReply:
		p.fail("INI-9", "version 2 was answered with an error: %s", clip(string(m.params)))
		panic(stop{})
	case versionOf(m) != 2:
		p.trait(otherVersion)
		p.stopf("%s", noVersion2)
	}
	p.init, p.itself = m, m.params
	p.trait(version2)
	if !p.can("session") {
		p.stopf("the agent has no sessions")
	}
}

// work prompts, and waits for the end of the work.
func (p *play) work(session, kind string) *message {
	before := p.count()
	return p.rests(session, p.begin(session, kind), before)
}

// rests waits for the answer to a prompt that was sent behind a message, and for the idle state that ends its work, for
// as long as updates come.
func (p *play) rests(session, prompt string, number int) *message {
	p.markExercised("V2-2")
	return p.restsAs("V2-2", session, prompt, number)
}

// restsAs is like rests, for another requirement that says that the work ends.
func (p *play) restsAs(id, session, prompt string, number int) *message {
	p.markExercised("INI-16")
	switch m := p.await(prompt); {
	case m == nil:
		p.fail("INI-16", "%s", p.why("session/prompt was not answered"))
		panic(stop{})
	case m.code() == codeAuth:
		p.stopf("the agent requires authentication for prompts: %s", clip(m.text("message")))
	case m.kind == conformance.ErrorReply:
		p.failAt("INI-16", conformance.Should, "session/prompt was answered with an error: %s", clip(string(m.params)))
		return m
	case m.text("messageId") == "":
		p.fail("V2-1", "session/prompt was answered without a messageId: %s", clip(string(m.params)))
	}
	var idle *message
	if !p.awaitEnd("the work of a prompt was reported as idle",
		func() bool { idle = p.idleSince(session, number); return idle != nil }) {
		p.fail(id, "%s", p.why("the work of a prompt was not reported as running and then as idle"))
		panic(stop{})
	}
	if !isSet(idle.params, "update", "stopReason") {
		p.failAt("V2-2", conformance.Should, "the idle state that ends the work of a prompt has no stop reason")
	}
	p.trait("turn")
	return idle
}

// idleSince is the idle state that ends work which was reported behind a message. The lock of the connection is held.
func (p *play) idleSince(session string, number int) *message {
	working := false
	for _, m := range p.states {
		if m.number <= number || m.text("sessionId") != session {
			continue
		}
		switch m.text("update", "state") {
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

// streams waits for so many updates of work behind a message, and reports whether that continues.
func (p *play) streams(session string, number, n int) bool {
	p.wait(p.ctx, p.limits.answer, func() bool {
		count := 0
		for _, m := range p.kept {
			if kind := m.text("update", "sessionUpdate"); m.number > number &&
				(ofTurn(kind) || strings.HasPrefix(kind, "agent_")) {
				count++
			}
		}
		return count >= n || p.idleSince(session, number) != nil
	})
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	return p.idleSince(session, number) == nil
}

// cancels cancels the work of a prompt, with more members of the params, waits for its end, and returns the stop reason
// and the time that it took. The request between shows the judge that the agent has read the cancellation.
func (p *play) cancels(session, prompt string, number int, more string) (reason string, took time.Duration) {
	began := time.Now()
	p.client.cancel(session, func() { p.notify("session/cancel", `{"sessionId":`+quote(session)+more+`}`) })
	p.call("_acp.probe/alive", "{}")
	end := p.restsAs("V2-22", session, prompt, number)
	if reason = end.text("update", "stopReason"); reason == "cancelled" {
		p.markExercised("V2-22")
	}
	return reason, end.time.Sub(began)
}

// permits is a scenario in which the agent asks for permission.
func permits(name, text string, answer func(*message) (outcome, text string)) Scenario {
	return Scenario{
		Name: name, Text: text, Exercises: []string{"V2-2", "ADD-14"}, Prompts: []string{"permission"},
		run: func(p *play) {
			session, _ := p.draft()
			p.client.permission = answer
			const text = "Old.\n"
			file := p.file("old.txt", text)
			before := p.count()
			p.work(session, "permission")
			p.checkSpared(before, "permission", file, text)
			p.client.nextTurn(session)
			p.work(session, "text")
			p.settle()
		},
	}
}

// otherWork is a scenario of prompts that the judge watches.
func otherWork(name, text string, prompts ...string) Scenario {
	return Scenario{
		Name: name, Text: text, Prompts: prompts, Exercises: []string{"V2-2"},
		run: func(p *play) {
			session, m := p.draft()
			p.file("notes.txt", "Notes of the probe.\n")
			before := p.count()
			for _, kind := range prompts {
				p.work(session, kind)
			}
			p.settle()
			p.checkOptionUpdates(session, optionsOf(m), before, `"type":"id",`)
		},
	}
}

var draftScenarios = []Scenario{
	{
		Name: startScenario, Prompts: []string{"text"}, Exercises: []string{"INI-9", "INI-16", "V2-2"},
		Text: "A client of version 2 starts the agent, creates a session and prompts it: the work is reported as running, " +
			"then as idle.",
		run: func(p *play) {
			session, _ := p.draft()
			p.work(session, "text")
			p.settle()
			p.wait(p.ctx, p.limits.quiet, func() bool { return p.client.offers(session, "") })
		},
	},
	{
		Name: "unknown-methods", Exercises: []string{"EXT-4", "EXT-5", "ERR-3", "OVW-4"},
		Text: "Unknown requests are refused with -32601, and unknown notifications are ignored.",
		run: func(p *play) {
			p.draft()
			p.notify("_acp.probe/note", `{"x":1}`)
			p.markExercised("EXT-4", "OVW-4")
			p.requireError("EXT-5", p.call("_acp.probe/unknown", "{}"), "an unknown request", -32601)
			p.requireError("ERR-3", p.call("acp.probe/unknown", "{}"), "an unknown request", -32601)
			p.settle()
		},
	},
	{
		Name: "sessions", Exercises: []string{"SES-2", "ERR-4", "ERR-5"},
		Text: "Several sessions have ids of their own; a relative directory and an unknown session are refused.",
		run: func(p *play) {
			first, _ := p.draft()
			p.check("SES-2", p.newSession() != first, "two sessions have the id %s", first)
			p.requireError("ERR-4", p.call("session/new", `{"cwd":"relative/path"}`), "session/new with a relative cwd", wrongParams...)
			p.requireError("ERR-5", p.call("session/prompt", `{"sessionId":"`+noSession+`","prompt":[{"type":"text","text":"hello"}]}`), "a prompt for an unknown session", -32002)
		},
	},
	{
		Name: "tools", Prompts: []string{"read", "edit", "terminal"}, Exercises: []string{"V2-2"},
		Text: "The agent reads a file, edits a file and runs a command, one piece of work after the other.",
		run: func(p *play) {
			session, _ := p.draft()
			p.file("notes.txt", "Notes of the probe.\n")
			p.file("demo.txt", "A file of the probe.\n")
			for _, kind := range []string{"read", "edit", "terminal"} {
				p.work(session, kind)
			}
			p.settle()
		},
	},
	permits("permission", "The agent asks for permission, and gets it.", nil),
	permits("permission-rejected", "The agent asks for permission, and is refused it: nothing is done.",
		func(m *message) (string, string) {
			return "result", choose(m, "reject_once", "reject_always")
		}),
	permits("permission-dismissed", "The agent asks for permission, and the question is dismissed: nothing is done.",
		func(*message) (string, string) {
			return "result", `{"outcome":{"outcome":"cancelled"}}`
		}),
	permits("permission-unknown", "The agent asks for permission, and gets an option that it has not offered.",
		func(*message) (string, string) {
			return "result", `{"outcome":{"outcome":"selected","optionId":"acp-probe-no-such-option"}}`
		}),
	{
		Name: "cancel-at-once", Prompts: []string{"long"}, Exercises: []string{"V2-22"},
		Text: "Work is cancelled as soon as its prompt is accepted.",
		run: func(p *play) {
			session, _ := p.draft()
			before := p.count()
			id := p.begin(session, "long")
			p.await(id)
			p.cancels(session, id, before, "")
			p.client.nextTurn(session)
			p.work(session, "text")
		},
	},
	{
		Name: "cancel-in-the-stream", Prompts: []string{"long"}, Exercises: []string{"V2-22"},
		Text: "Work is cancelled in the middle of its text.",
		run: func(p *play) {
			session, _ := p.draft()
			before := p.count()
			id := p.begin(session, "long")
			if p.streams(session, before, 3) {
				reason, took := p.cancels(session, id, before, "")
				p.checkStops("V2-22", reason, took, func(lasts time.Duration) (string, time.Duration, bool) {
					p.client.nextTurn(session)
					before := p.count()
					id := p.begin(session, "long")
					running := p.streams(session, before, 3) &&
						!p.wait(p.ctx, lasts, func() bool { return p.idleSince(session, before) != nil })
					reason, took := p.cancels(session, id, before, "")
					return reason, took, running
				})
			}
			p.client.nextTurn(session)
			p.work(session, "text")
		},
	},
	{
		Name: "cancel-in-a-permission", Prompts: []string{"permission"}, Exercises: []string{"V2-22"},
		Text: "Work is cancelled while it waits for permission, which is answered as cancelled.",
		run: func(p *play) {
			session, _ := p.draft()
			p.file("old.txt", "Old.\n")
			p.client.hold["session/request_permission"] = true
			before := p.count()
			id := p.begin(session, "permission")
			asked := func() bool {
				return p.idleSince(session, before) != nil || slices.ContainsFunc(p.kept, func(m *message) bool {
					return m.number > before && m.method == "session/request_permission"
				})
			}
			if p.wait(p.ctx, p.limits.answer, asked); p.saw("<- session/request_permission") {
				p.cancels(session, id, before, "")
			}
		},
	},
	{
		Name: "cancel-with-meta", Prompts: []string{"long"}, Exercises: []string{"V2-22", "SCH-1"},
		Text: "Work is cancelled by a session/cancel with _meta.",
		run: func(p *play) {
			session, _ := p.draft()
			before := p.count()
			id := p.begin(session, "long")
			p.markExercised("SCH-1")
			if p.streams(session, before, 3) {
				p.cancels(session, id, before, `,"_meta":{"acp.probe":{"reason":[1]}}`)
			}
		},
	},
	versionNewer(2),
	{
		Name: "batch", bare: true, Exercises: []string{"ERR-7"},
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text:   "An empty batch is answered with a single error -32600 with the id null.",
		run: func(p *play) {
			p.draftWith("none", noCapabilities)
			before := p.count()
			p.line([]byte(`[]`))
			p.checkAlive("ERR-7", "an empty batch")
			if found := p.errorsSince(before); !slices.ContainsFunc(found,
				func(m *message) bool { return m.id == "null" && m.code() == -32600 }) {
				p.failAt("ERR-7", conformance.Must, "an empty batch was not answered with an error -32600 with the id null")
			}
		},
	},
	{
		Name: "capabilities-none", Exercises: []string{"INI-19"}, Prompts: []string{"text", "form", "link"},
		Text: "A client without capabilities: the agent offers no login in a terminal, and asks for nothing that the " +
			"client lacks.",
		run: func(p *play) {
			p.draftWith("none", noCapabilities)
			p.markExercised("INI-19")
			session := p.newSession()
			for _, kind := range []string{"text", "form", "link"} {
				p.work(session, kind)
			}
			p.settle()
		},
	},
	{
		Name: "authentication", bare: true, Exercises: []string{"ERR-4"},
		Text: "Methods of authentication: unknown ids and those of terminal methods are refused; the chosen method opens " +
			"sessions; auth/logout closes them.",
		run: func(p *play) {
			p.draftWith("all", draftCapabilities)
			if len(p.authMethods()) == 0 {
				p.stopf("the agent offers no methods of authentication")
			}
			p.authentication("auth/login", "auth/logout", true)
		},
	},
	{
		Name: "content-advertised", Exercises: []string{"ADD-3"}, Prompts: []string{"text"},
		Text: "Prompts with images, audio and embedded resources are accepted if the agent advertises them, and their " +
			"work ends.",
		run: func(p *play) {
			session, _ := p.draft()
			p.contentAdvertised(session, "session.prompt", func(blocks string) *message {
				before := p.count()
				id := p.ask("session/prompt", `{"sessionId":`+quote(session)+`,"prompt":[`+blocks+`]}`, "")
				m := p.await(id)
				if m == nil || m.kind == conformance.Response {
					p.rests(session, id, before)
				}
				return m
			})
		},
	},
	{
		Name: "additional-directories", Needs: []string{"session.additionalDirectories"}, Prompts: []string{"text"},
		Exercises: []string{"ADD-3", "ERR-4"},
		Text:      "A session with additional directories is created and resumed; a relative one is refused.",
		run: func(p *play) {
			p.draftWith("all", draftCapabilities)
			p.markExercised("ADD-3")
			roots := `,"additionalDirectories":[` + quote(p.folder("other")) + `]`
			m := p.must("ADD-3", "session/new", `{"cwd":`+quote(p.dir)+roots+`}`)
			if m == nil {
				return
			}
			session := m.text("sessionId")
			p.client.session(session, p.dir)
			p.work(session, "text")
			p.must("INI-16", "session/close", onlySession(session, ""))
			p.must("ADD-3", "session/resume", withSession(roots)(session, p.dir))
			p.requireError("ERR-4", p.call("session/new", `{"cwd":`+quote(p.dir)+`,"additionalDirectories":["relative"]}`), "session/new with a relative additional directory", wrongParams...)
		},
	},
	otherWork("other-work", "The agent thinks, makes a plan, changes its mode, sends a notice, compacts its context and "+
		"refuses a prompt.", "think", "plan", "mode", "notice", "compact", "refusal"),
	otherWork("elicitation", "The agent shows a form and asks to open a link; the user accepts both.", "form", "link"),
	{
		Name: "list", Exercises: []string{"LST-5", "LST-8", "LST-11", "LST-12", "LST-14", "ADD-16"},
		Text: "Sessions are listed: all of them, and those of one directory; a made-up cursor is refused.",
		run: func(p *play) {
			p.draft()
			p.checkLists()
			sessions, _ := p.list("LST-8", `"cwd":`+quote(p.folder("never used")))
			p.check("LST-8", len(sessions) == 0, "the agent listed %d sessions in a directory that was never used",
				len(sessions))
			p.requireError("LST-11", p.call("session/list", `{"cursor":"acp-probe-bogus"}`), "session/list with a made-up cursor", wrongParams...)
		},
	},
	{
		Name: "resume", Prompts: []string{"text"}, Exercises: []string{"V2-9", "V2-10", "V2-11"},
		Text: "A session is resumed in the launch that created it, without its history and with it; an unknown cursor " +
			"is refused.",
		run: func(p *play) {
			session, _ := p.draft()
			p.work(session, "text")
			p.must("INI-16", "session/close", onlySession(session, ""))
			if p.must("V2-10", "session/resume", withSession("")(session, p.dir)) != nil {
				p.must("INI-16", "session/close", onlySession(session, "")) // only of a session that is open
			}
			p.markExercised("V2-9", "V2-11")
			open := p.must("V2-10", "session/resume", withSession(`,"replayFrom":{"type":"start"}`)(session, p.dir)) != nil
			p.requireError("ERR-4", p.call("session/resume", withSession(`,"replayFrom":{"type":"_acp.probe"}`)(session, p.dir)), "an unknown type of replayFrom", -32602)
			if open {
				p.work(session, "text")
			}
		},
	},
	{
		Name: "close", Prompts: []string{"text"}, Exercises: []string{"V2-5", "ERR-5"},
		Text: "A session is closed: the agent sends nothing more for it, and accepts no prompts.",
		run: func(p *play) {
			session, _ := p.draft()
			p.work(session, "text")
			p.must("INI-16", "session/close", onlySession(session, ""))
			p.markExercised("V2-5")
			p.requireError("ERR-5", p.call("session/prompt", p.promptParams(session, "text")), "a prompt for a closed session",
				-32002)
			p.settle()
		},
	},
	{
		Name: "close-at-work", Prompts: []string{"long"}, Exercises: []string{"V2-4"},
		Text: "A session is closed in the middle of its work; the end of the work is reported before the answer.",
		run: func(p *play) {
			session, _ := p.draft()
			before := p.count()
			p.begin(session, "long")
			if !p.streams(session, before, 3) {
				return
			}
			p.markExercised("V2-4")
			closed := func(session string, before int) (reason string, took time.Duration) {
				began := time.Now()
				p.must("INI-16", "session/close", onlySession(session, ""))
				p.conn.mu.Lock()
				defer p.conn.mu.Unlock()
				if idle := p.idleSince(session, before); idle != nil {
					reason, took = idle.text("update", "stopReason"), idle.time.Sub(began)
				}
				return reason, took
			}
			reason, took := closed(session, before)
			p.checkStops("V2-4", reason, took, func(lasts time.Duration) (string, time.Duration, bool) {
				session, before := p.newSession(), p.count()
				p.begin(session, "long")
				running := p.streams(session, before, 3) &&
					!p.wait(p.ctx, lasts, func() bool { return p.idleSince(session, before) != nil })
				reason, took := closed(session, before)
				return reason, took, running
			})
			p.settle()
		},
	},
	{
		Name: "delete", Needs: []string{"session.delete"}, Exercises: []string{"DEL-5"},
		Text: "A session is deleted, and so is one that does not exist: both succeed.",
		run: func(p *play) {
			session, _ := p.draft()
			p.must("DEL-5", "session/delete", onlySession(session, ""))
			p.must("DEL-5", "session/delete", onlySession(noSession, ""))
			p.list("INI-16", "")
		},
	},
	{
		Name: "options", Exercises: []string{"CFG-14", "CFG-17", "ERR-4"},
		Text: "Every offered value of an option can be set, and no other; each answer has all options.",
		run: func(p *play) {
			session, m := p.draft()
			p.setOptions(session, m, `"type":"id",`)
		},
	},
}

// draftRows are the requirements that bind agents of version 2 and that a machine can judge.
var draftRows = map[string]exercise{
	"OVW-1": anyTrait("path").reachedBy(byTools), "OVW-3": anyTrait("answer"), "OVW-4": {},
	"TRN-1": anyTrait("message"), "TRN-3": anyTrait("message"), "TRN-4": anyTrait("message"), "TRN-5": anyTrait("message"),
	"TRN-10": {},
	"INI-6":  anyTrait("message"), "INI-9": {}, "INI-16": {}, "INI-19": exercise{}.reachedBy(byAgent),
	"AUT-9": anyTrait("result auth/login").reachedBy(byAuth), "AUT-10": anyTrait("logged out").reachedBy(byAuth),
	"AUT-8": anyTrait("result auth/login", "result auth/logout").reachedBy(byAuth),
	"SES-2": anyTrait("result session/new"), "SES-31": anyTrait("result session/new"),
	"LST-5": {}, "LST-8": {}, "LST-11": {},
	"LST-12": exercise{}.reachedBy("an agent that has more sessions than a page holds"), "LST-14": {},
	"DEL-4": anyTrait("result session/delete").needs("session.delete"), "DEL-5": exercise{}.needs("session.delete"),
	"CFG-7":  anyTrait("category").needs("options").reachedBy("an agent whose options have categories"),
	"CFG-14": anyTrait("options").needs("options"),
	"CFG-17": anyTrait("result session/set_config_option").needs("options"),
	"CFG-18": anyTrait("update config_option_update").needs("options").reachedBy(byAgent),
	"CAN-1":  exercise{}.reachedBy(byAgent),
	"CON-3":  anyTrait("content image", "content audio", "content resource", "content resource_link").reachedBy(byAgent),
	"TOL-9":  anyTrait("update tool_call_update").reachedBy(byTools), "PLN-3": anyTrait("update plan_update").
			reachedBy(byPlan),
	"CMD-2": anyTrait("update available_commands_update").reachedBy("an agent that has slash commands"),
	"ELI-5": anyTrait("<- elicitation/create").reachedBy(byForm), "ELI-11": anyTrait("elicitation form").reachedBy(byForm),
	"ELI-19": anyTrait("elicitation url").reachedBy(byLink),
	"ELI-21": anyTrait("<- elicitation/complete").reachedBy(byLink), "ELI-25": anyTrait("elicitation url").
			reachedBy(byLink),
	"ELI-26": anyTrait("elicitation url").reachedBy(byLink), "ELI-27": anyTrait("elicitation form").reachedBy(byForm),
	"EXT-1": anyTrait("meta").reachedBy(byAgent), "EXT-2": anyTrait("message"), "EXT-3": anyTrait("message"), "EXT-4": {},
	"EXT-5": {},
	"EXT-6": anyTrait("extension").reachedBy("an agent that has methods of its own"),
	"ERR-2": anyTrait("error"), "ERR-3": {}, "ERR-4": {}, "ERR-5": {}, "ERR-7": {}, "ERR-9": anyTrait("error"),
	"SCH-1": exercise{}.reachedBy(byLong), "SCH-2": anyTrait("answer"), "SCH-4": anyTrait("message"),
	"SCH-11": anyTrait("message"), "SCH-15": anyTrait("elicitation form").reachedBy(byForm),
	"ADD-2": anyTrait("turn"), "ADD-3": exercise{}.reachedBy("an agent that states a capability of prompts or roots"),
	"ADD-5": anyTrait("auth methods").reachedBy(byAgent), "ADD-6": anyTrait("error"),
	"ADD-7": anyTrait("result initialize"), "ADD-10": anyTrait("message"),
	"ADD-14": exercise{}.reachedBy(byPermission), "ADD-16": anyTrait("result session/list"),

	"V2-1": anyTrait("turn"), "V2-2": {}, "V2-3": anyTrait("turn"), "V2-4": exercise{}.reachedBy(byLong), "V2-5": {},
	"V2-6": anyTrait("update tool_call_update").reachedBy(byTools), "V2-7": anyTrait("update terminal_update").
		reachedBy(byTerminal),
	"V2-8": anyTrait("update terminal_output_chunk").reachedBy(byTerminal), "V2-9": {}, "V2-10": {}, "V2-11": {},
	"V2-14": exercise{}.reachedBy("an agent that is closed before it takes a prompt"), "V2-15": anyTrait("turn"),
	"V2-16": anyTrait("result session/resume"),
	"V2-17": anyTrait("turn"), "V2-18": anyTrait("<- session/request_permission").reachedBy(byPermission),
	"V2-19": anyTrait("update available_commands_update").reachedBy("an agent that has slash commands"),
	"V2-20": anyTrait("options").needs("options"),
	"V2-21": anyTrait("auth methods").reachedBy(byAgent), "V2-22": exercise{}.reachedBy(byLong),
	"V2-23": anyTrait("result session/resume"),
	"V2-24": anyTrait("<- session/request_permission").reachedBy(byPermission), "SES-21": anyTrait("result session/list"),
}
