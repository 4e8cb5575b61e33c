// Scenarios for agents of version 2 of the protocol, which is in Preview.

package probe

import (
	"slices"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

var draftScenarios = []Scenario{
	{Name: startScenario, Prompts: []string{"text"}, Exercises: []string{"INI-9", "INI-16", "V2-2"},
		Text: "A client of version 2 starts the agent, creates a session and prompts it: the work is reported as running, " +
			"then as idle.",
		steps: []step{ready, prompts("text"), settled, commandsArrive}},
	{Name: "unknown-methods", Exercises: []string{"EXT-4", "EXT-5", "ERR-3", "OVW-4"},
		Text: "Unknown requests are refused with -32601, and unknown notifications are ignored.",
		steps: []step{ready, notify("_acp.probe/note", `{"x":1}`), tries("EXT-4", "OVW-4"),
			refuses("EXT-5", "_acp.probe/unknown", `{}`, "an unknown request", -32601),
			refuses("ERR-3", "acp.probe/unknown", `{}`, "an unknown request", -32601), settled}},
	{Name: "sessions", Exercises: []string{"SES-2", "ERR-4", "ERR-5"},
		Text: "Several sessions have ids of their own; a relative directory and an unknown session are refused.",
		steps: []step{ready, func(p *play) {
			first := p.session
			p.check("SES-2", p.newSession() != first, "two sessions have the id %s", first)
		}, refuses("ERR-4", "session/new", `{"cwd":"relative/path"}`, "session/new with a relative cwd", wrongParams...),
			refuses("ERR-5", "session/prompt", `{"sessionId":"`+noSession+`","prompt":[{"type":"text","text":"hello"}]}`,
				"a prompt for an unknown session", -32002)}},
	{Name: "tools", Prompts: []string{"read", "edit", "terminal"}, Exercises: []string{"V2-2"},
		Text:  "The agent reads a file, edits a file and runs a command, one piece of work after the other.",
		steps: []step{ready, files("notes.txt", "demo.txt"), prompts("read", "edit", "terminal"), settled}},
	permits("permission", "The agent asks for permission, and gets it.", nil),
	permits("permission-rejected", "The agent asks for permission, and is refused it: nothing is done.", rejects),
	permits("permission-dismissed", "The agent asks for permission, and the question is dismissed: nothing is done.",
		answering("result", dismissed)),
	permits("permission-unknown", "The agent asks for permission, and gets an option that it has not offered.",
		answering("result", unknownOption)),
	{Name: "cancel-at-once", Prompts: []string{"long"}, Exercises: []string{"V2-22"},
		Text:  "Work is cancelled as soon as its prompt is accepted.",
		steps: []step{ready, begin("long"), accepted, cancelTurn, endsCancelled, nextPrompt}},
	{Name: "cancel-in-the-stream", Prompts: []string{"long"}, Exercises: []string{"V2-22"},
		Text: "Work is cancelled in the middle of its text.",
		steps: []step{ready, func(p *play) {
			if p.begin("long"); p.streams(3) {
				p.checkStops("V2-22", p.cancelled, p.nextTurn)
			}
		}, nextPrompt}},
	{Name: "cancel-in-a-permission", Prompts: []string{"permission"}, Exercises: []string{"V2-22"},
		Text: "Work is cancelled while it waits for permission, which is answered as cancelled.",
		steps: []step{ready, files("old.txt"), holdPermissions, func(p *play) {
			p.begin("permission")
			if p.awaitRequest("session/request_permission") != nil {
				p.cancelled()
			}
		}}},
	{Name: "cancel-with-meta", Prompts: []string{"long"}, Exercises: []string{"V2-22", "SCH-1"},
		Text: "Work is cancelled by a session/cancel with _meta.",
		steps: []step{ready, tries("SCH-1"), streaming(3),
			func(p *play) { p.cancelWith(`,"_meta":{"acp.probe":{"reason":[1]}}`) }, endsCancelled}},
	versionNewer(2),
	{Name: "batch", bare: true, Exercises: []string{"ERR-7"},
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text:   "An empty batch is answered with a single error -32600 with the id null.",
		steps: []step{initialized("none", noCapabilities), func(p *play) {
			before := p.LastNumber()
			p.Line([]byte(`[]`))
			p.checkAlive("ERR-7", "an empty batch")
			invalid := func(m *player.Message) bool { return m.ID == "null" && m.Code() == -32600 }
			if !slices.ContainsFunc(p.errorsSince(before), invalid) {
				p.failAt("ERR-7", conformance.Must, "an empty batch was not answered with an error -32600 with the id null")
			}
		}}},
	{Name: "capabilities-none", Exercises: []string{"INI-19"}, Prompts: []string{"text", "form", "link"},
		Text: "A client without capabilities: the agent offers no login in a terminal, and asks for nothing that the " +
			"client lacks.",
		steps: []step{initialized("none", noCapabilities), tries("INI-19"), newSession, prompts("text", "form", "link"),
			settled}},
	{Name: "authentication", bare: true, Exercises: []string{"ERR-4"},
		Text: "Methods of authentication: unknown ids and those of terminal methods are refused; the chosen method opens " +
			"sessions; auth/logout closes them.",
		steps: []step{initialized("all", draftCapabilities), func(p *play) {
			if len(p.authMethods()) == 0 {
				p.stopf("the agent offers no methods of authentication")
			}
			p.authentication("auth/login", "auth/logout", true)
		}}},
	{Name: "content-advertised", Exercises: []string{"ADD-3"}, Prompts: []string{"text"},
		Text: "Prompts with images, audio and embedded resources are accepted if the agent advertises them, and their " +
			"work ends.",
		steps: []step{ready, contentAdvertised("session.prompt")}},
	{Name: "additional-directories", Needs: []string{"session.additionalDirectories"}, Prompts: []string{"text"},
		Exercises: []string{"ADD-3", "ERR-4"},
		Text:      "A session with additional directories is created and resumed; a relative one is refused.",
		steps: []step{initialized("all", draftCapabilities), newWith("ADD-3", otherRoot), prompts("text"), closes,
			func(p *play) { p.must("ADD-3", "session/resume", p.resuming(otherRoot(p))) }, refuses("ERR-4", "session/new", `{"cwd":{dir},"additionalDirectories":["relative"]}`,
				"session/new with a relative additional directory", wrongParams...)}},
	otherWork("other-work", "The agent thinks, makes a plan, changes its mode, sends a notice, compacts its context and "+
		"refuses a prompt.", "think", "plan", "mode", "notice", "compact", "refusal"),
	otherWork("elicitation", "The agent shows a form and asks to open a link; the user accepts both.", "form", "link"),
	{Name: "list", Exercises: []string{"LST-5", "LST-8", "LST-11", "LST-12", "LST-14", "ADD-16"},
		Text: "Sessions are listed: all of them, and those of one directory; a made-up cursor is refused.",
		steps: []step{ready, func(p *play) { p.checkLists() }, neverListed,
			refuses("LST-11", "session/list", `{"cursor":"acp-probe-bogus"}`, "session/list with a made-up cursor", wrongParams...)}},
	{Name: "resume", Prompts: []string{"text"}, Exercises: []string{"V2-9", "V2-10", "V2-11"},
		Text: "A session is resumed in the launch that created it, without its history and with it; an unknown cursor " +
			"is refused.",
		steps: []step{ready, prompts("text"), closes, func(p *play) {
			if p.must("V2-10", "session/resume", p.resuming("")) != nil {
				closes(p) // only a session that is open
			}
			p.markExercised("V2-9", "V2-11")
			open := p.must("V2-10", "session/resume", p.resuming(`,"replayFrom":{"type":"start"}`)) != nil
			p.requireError("ERR-4", p.call("session/resume", p.resuming(`,"replayFrom":{"type":"_acp.probe"}`)),
				"an unknown type of replayFrom", -32602)
			if open {
				p.prompt("text")
			}
		}}},
	{Name: "close", Prompts: []string{"text"}, Exercises: []string{"V2-5", "ERR-5"},
		Text: "A session is closed: the agent sends nothing more for it, and accepts no prompts.",
		steps: []step{ready, prompts("text"), closes, tries("V2-5"), func(p *play) {
			p.requireError("ERR-5", p.call("session/prompt", p.promptParams("text")), "a prompt for a closed session", -32002)
		}, settled}},
	{Name: "close-at-work", Prompts: []string{"long"}, Exercises: []string{"V2-4"},
		Text: "A session is closed in the middle of its work; the end of the work is reported before the answer.",
		steps: []step{ready, streaming(3), tries("V2-4"), func(p *play) {
			p.checkStops("V2-4", func() (reason string, took time.Duration) {
				began := time.Now()
				closes(p)
				p.Locked(func() {
					if idle := p.idle(); idle != nil {
						reason, took = reasonOf(idle), idle.Time.Sub(began)
					}
				})
				return reason, took
			}, func() { p.newSession() })
		}, settled}},
	{Name: "delete", Needs: []string{"session.delete"}, Exercises: []string{"DEL-5"},
		Text: "A session is deleted, and so is one that does not exist: both succeed.",
		steps: []step{ready, func(p *play) {
			p.must("DEL-5", "session/delete", p.fill(sessionParams))
			p.must("DEL-5", "session/delete", unknownSession)
			p.list("INI-16", "")
		}}},
	{Name: "options", Exercises: []string{"CFG-14", "CFG-17", "ERR-4"},
		Text:  "Every offered value of an option can be set, and no other; each answer has all options.",
		steps: []step{ready, setOptions}},
}

// closes closes the session, as every agent of version 2 can.
func closes(p *play) { p.must("INI-16", "session/close", p.fill(sessionParams)) }

// otherRoot is the member of params for another directory.
func otherRoot(p *play) string {
	return `,"additionalDirectories":[` + player.Quote(p.folder("other")) + `]`
}

// resuming are the params of session/resume.
func (p *play) resuming(more string) string {
	return p.fill(`{"sessionId":{session},"cwd":{dir}`) + more + `}`
}

// permits is a scenario in which the agent asks for permission.
func permits(name, text string, answer func(*player.Message) (outcome, text string)) Scenario {
	return Scenario{Name: name, Text: text, Exercises: []string{"V2-2", "ADD-14"}, Prompts: []string{"permission"},
		steps: []step{ready, func(p *play) {
			p.client.permission = answer
			file := p.file("old.txt", fileTexts["old.txt"])
			p.prompt("permission")
			p.checkSpared("permission", file, fileTexts["old.txt"])
			p.nextTurn()
		}, prompts("text"), settled}}
}

// otherWork is a scenario of prompts that the judge watches.
func otherWork(name, text string, kinds ...string) Scenario {
	return Scenario{Name: name, Text: text, Prompts: kinds, Exercises: []string{"V2-2"},
		steps: []step{ready, files("notes.txt"), optionsStay(prompts(kinds...), settled)}}
}
