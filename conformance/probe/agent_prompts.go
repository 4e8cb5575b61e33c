// Scenarios of prompts: their content, what an agent does for them, and how it takes the client's answers.

package probe

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
)

// Data of prompts: a picture of one pixel, and a sound of no length.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

var promptScenarios = []Scenario{
	{
		Name:      "content",
		Text:      "Prompts with only text, only a link, both, or several blocks are accepted.",
		Exercises: []string{"INI-15", "CON-1"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			file := p.file("notes.txt", "Notes of the probe.\n")
			text := `{"type":"text","text":` + quote(p.text(session, "text")) + `}`
			link := `{"type":"resource_link","name":"notes.txt","uri":` + quote("file://"+filepath.ToSlash(file)) + `}`
			for _, blocks := range []string{text, link, text + "," + link, text + "," + text, `{"type":"text","text":""},` + text} {
				p.markExercised("INI-15", "CON-1")
				m := p.content(session, blocks)
				if m != nil && (m.code() == -32602 || m.code() == -32601) {
					p.fail("INI-15", "the agent refused a prompt with text or links: %s", clip(string(m.params)))
				}
			}
		},
	},
	{
		Name:      "scripts",
		Text:      "A prompt in Arabic, Chinese and emoji, also escaped as surrogate pairs, is answered.",
		Exercises: []string{"INI-15"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			for _, text := range []string{`مرحبا، 你好, 👩‍👩‍👧`, `\u0645\u0631\u062d\u0628\u0627 \ud83d\udc69\u200d\ud83d\udc67`} {
				p.markExercised("INI-15")
				m := p.content(session, `{"type":"text","text":"Reply with OK. `+text+`"}`)
				if m.code() == -32602 {
					p.fail("INI-15", "the agent refused a prompt in another script: %s", clip(string(m.params)))
				}
			}
		},
	},
	{
		Name:      "content-advertised",
		Text:      "Prompts with images, audio and embedded resources are accepted if the agent advertises them.",
		Exercises: []string{"ADD-3"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			p.contentAdvertised(session, "promptCapabilities",
				func(blocks string) *message { return p.content(session, blocks) })
		},
	},
	{
		Name: "content-odd",
		Text: "Prompts without blocks, with blocks of an unknown type, or with blocks that the agent does not " +
			"advertise are answered, and the connection survives.",
		Exercises: []string{"ADD-1"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			for _, blocks := range []string{
				``, `{"type":"hologram","data":"x"}`, `{"type":"_acp.probe","data":"x"}`, `{"text":"no type"}`, `{"type":"text"}`, `{"type":"image","data":"not base64!","mimeType":"image/png"}`,
			} {
				id := p.ask("session/prompt", `{"sessionId":`+quote(session)+`,"prompt":[`+blocks+`]}`, "")
				if p.awaitTurn(id) == nil {
					p.failAt("PRM-5", conformance.Must, "%s", p.why("a prompt with the blocks ["+blocks+"] was not answered"))
					return
				}
			}
			p.checkAlive("ADD-1", "odd prompts")
			p.prompt(session, "text")
		},
	},
	{
		Name: "tools",
		Text: "The agent reads a file, edits a file and runs a command, one turn after the other; its edits " +
			"are on disk.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"read", "edit", "terminal"}, quiet: true,
		run: func(p *play) {
			session := p.ready()
			p.file("notes.txt", "Notes of the probe.\n")
			p.file("demo.txt", "A file of the probe.\n")
			p.prompt(session, "read")
			p.prompt(session, "edit")
			p.prompt(session, "terminal")
			p.quiet(p.ctx, p.limits.quiet)
			p.checkReleased()
		},
	},
	{
		Name:      "outside",
		Text:      "The agent is asked to read and edit a file outside its directories: it refuses, or asks for permission.",
		Exercises: []string{"SES-24"}, Prompts: []string{"read", "edit"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			const content = "A file outside the session's directories.\n"
			outside := p.file("outside.txt", content)
			p.dir = p.folder("inside")
			session := p.newSession()
			for _, text := range []string{
				"Please read the file " + outside + " and tell me what is in it.",
				"Please edit the file " + outside + ": append the line \"The probe was here.\"",
			} {
				before := p.count()
				p.content(session, `{"type":"text","text":`+quote(text)+`}`)
				files, asked := p.filesSince(before)
				for _, m := range files {
					path := m.text("path")
					p.check("SES-24", isInside(p.dir, path) || asked,
						"the agent sent %s for %s, outside the session's directories, without asking for permission", m.method, path)
				}
				if now, err := os.ReadFile(outside); !asked && (err != nil || string(now) != content) {
					p.fail("SES-24", "the agent changed %s, outside the session's directories, without asking for permission", outside)
				}
				if text := p.textSince(before, 1<<62)["agent"]; strings.Contains(text, "cannot") ||
					strings.Contains(text, "outside") || asked {
					p.markExercised("SES-24")
				}
			}
		},
	},
	{
		Name:      "missing-file",
		Text:      "The agent is asked for a file that does not exist: the client's error does not end the turn.",
		Exercises: []string{"ERR-1"}, Prompts: []string{"missing"},
		run: func(p *play) {
			session := p.ready()
			p.prompt(session, "missing")
			if p.saw("refused fs/read_text_file") {
				p.markExercised("ERR-1")
			}
			p.prompt(session, "text")
		},
	},
	failing("client-errors", "an unknown code", `{"code":-12345,"message":"acp-probe says no","data":{"odd":[1,null]}}`),
	failing("client-positive-errors", "a positive code", `{"code":7,"message":"acp-probe says no"}`),
	failing("client-internal-errors", "an internal error", `{"code":-32603,"message":"acp-probe says no","data":null}`),
	{
		Name:      "permission",
		Text:      "The agent asks for permission, and the user grants it.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"permission"},
		run: func(p *play) {
			session := p.ready()
			p.file("old.txt", "Old.\n")
			p.prompt(session, "permission")
			p.settle()
		},
	},
	permission("permission-rejected", "the user refuses it", func(m *message) (string, string) {
		return "result", choose(m, "reject_once", "reject_always")
	}),
	permission("permission-forever", "the user grants it permanently", func(m *message) (string, string) {
		return "result", choose(m, "allow_always", "allow_once")
	}),
	permission("permission-unknown", "the client selects an option that was not offered", func(*message) (string, string) {
		return "result", `{"outcome":{"outcome":"selected","optionId":"acp-probe-no-such-option"}}`
	}),
	permission("permission-error", "the client answers with an error", func(*message) (string, string) {
		return "error", `{"code":-32603,"message":"acp-probe has no user"}`
	}),
	permission("permission-dismissed", "the user dismisses the question without cancelling the turn",
		func(*message) (string, string) {
			return "result", `{"outcome":{"outcome":"cancelled"}}`
		}),
	permission("permission-odd", "the client's answer has unknown members and nulls", func(m *message) (string, string) {
		return "result", strings.TrimSuffix(choose(m, "allow_once"), "}}") + `,"future":[1],"_meta":null},"future":{},"_meta":{"acp.probe":1}}`
	}),
	{
		Name:   "permission-empty",
		ignore: []string{"PRM-5"},
		Text: "The agent asks for permission, and the answer has neither result nor error: the agent does not reply " +
			"to it, and the turn ends.",
		Exercises: []string{"ADD-9"}, Prompts: []string{"permission"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			p.client.permission = func(*message) (string, string) { return "", "" }
			session := p.newSession()
			p.file("old.txt", "Old.\n")
			id := p.begin(session, "permission")
			request := p.awaitRequest(id, "session/request_permission")
			if request == nil {
				return
			}
			p.markExercised("ADD-9")
			if p.awaitTurn(id) == nil {
				// It may wait for a proper answer: the user can still cancel.
				p.cancel(session)
				if p.awaitTurn(id) == nil {
					p.fail("ADD-9", "%s", p.why("after an empty answer to a permission request, the cancelled prompt was "+
						"not answered"))
				}
			}
			for _, m := range p.errorsSince(request.number) {
				if m.id == request.id {
					p.fail("ADD-9", "the agent replied to the empty answer: %s", clip(string(m.params)))
				}
			}
		},
	},
	{
		Name:      "plan",
		Text:      "The agent makes a plan.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"plan"},
		run: func(p *play) {
			session := p.ready()
			p.file("notes.txt", "Notes of the probe.\n")
			p.prompt(session, "plan")
			p.settle()
		},
	},
	{
		Name:      "other-turns",
		Text:      "The agent thinks, changes its mode, sends a notice, compacts its context and refuses a prompt.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"think", "mode", "notice", "compact", "refusal", "text"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			session, m := p.sessionAnswer()
			before := p.count()
			for _, kind := range []string{"think", "mode", "notice", "compact", "refusal", "text"} {
				p.prompt(session, kind)
			}
			p.settle()
			p.checkOptionUpdates(session, optionsOf(m), before, "")
		},
	},
	{
		Name:      "elicitation",
		Text:      "The agent shows a form and asks to open a link; the user accepts both.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"form", "link"},
		run: func(p *play) {
			session := p.ready()
			p.prompt(session, "form")
			p.prompt(session, "link")
			p.settle()
		},
	},
	elicitation("declined", "the user declines it", "result", `{"action":"decline"}`, "elicitation declined"),
	elicitation("dismissed", "the user dismisses it", "result", `{"action":"cancel","content":null}`, "elicitation declined"),
	elicitation("failed", "the client answers with an error", "error", `{"code":-32603,"message":"acp-probe has no user"}`, "elicitation declined"),
	elicitation("unknown", "the client answers with an unknown action", "result", `{"action":"_acp.probe","content":{"name":"probe"}}`, "unknown elicitation action"),
	elicitation("wrong", "the client answers with content that the form did not ask for", "result", `{"action":"accept","content":{"acp-probe":[7],"name":7}}`, ""),
	{
		Name:      "prompts-at-once",
		ignore:    []string{"PRM-7", "PRM-13"}, // an agent may end the first turn for the second prompt
		Text:      "Two simultaneous prompts in one session are both answered, with the end of a turn or with an error.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			first, second := p.begin(session, "text"), p.begin(session, "text")
			p.markExercised("PRM-5")
			for i, id := range []string{first, second} {
				if p.awaitTurn(id) == nil {
					p.fail("PRM-5", "%s", p.why(ordinal("prompt", i)+" of two simultaneous ones was not answered"))
				}
			}
			p.prompt(session, "text")
		},
	},
	{
		Name:      "sessions-at-once",
		Text:      "Two sessions have turns at the same time; the updates of one do not reach the other.",
		Exercises: []string{"ADD-2"}, Prompts: []string{"text", "read"},
		run: func(p *play) {
			one := p.ready()
			p.file("notes.txt", "Notes of the probe.\n")
			other := p.newSession()
			first, second := p.begin(one, "read"), p.begin(other, "text")
			p.turn(first)
			p.turn(second)
			p.settle()
		},
	},
}

// contentAdvertised prompts with each kind of content that the agent advertises in a capability.
func (p *play) contentAdvertised(session, capability string, prompt func(blocks string) *message) {
	for _, c := range []struct{ kind, block string }{
		{"image", `{"type":"image","mimeType":"image/png","data":"` + png + `"}`},
		{"audio", `{"type":"audio","mimeType":"audio/wav","data":"` + wav + `"}`},
		{"embeddedContext", `{"type":"resource","resource":{"uri":"file:///acp-probe/notes.txt","mimeType":"text/plain","text":"Notes of the probe."}}`},
		{"embeddedContext", `{"type":"resource","resource":{"uri":"file:///acp-probe/blob","blob":"` + wav + `"}}`},
	} {
		if !p.can(capability + "." + c.kind) {
			continue
		}
		p.markExercised("ADD-3")
		m := prompt(`{"type":"text","text":` + quote(p.text(session, "text")) + `},` + c.block)
		if m != nil && (m.code() == -32602 || m.code() == -32601) {
			p.fail("ADD-3", "the agent advertises %s.%s but refused a prompt with it: %s", capability, c.kind,
				clip(string(m.params)))
		}
	}
}

// content prompts with blocks. A turn that ends with an error for another reason than the blocks is not judged here.
func (p *play) content(session, blocks string) *message {
	id := p.ask("session/prompt", `{"sessionId":`+quote(session)+`,"prompt":[`+blocks+`]}`, "")
	m := p.awaitTurn(id)
	if m == nil {
		p.failAt("PRM-5", conformance.Must, "%s", p.why("a prompt was not answered"))
		panic(stop{})
	}
	return m
}

// checkReleased looks whether all terminals of turns that are over were released. The agent may release them later,
// which makes this milder.
func (p *play) checkReleased() {
	p.conn.mu.Lock()
	open := 0
	for _, m := range p.kept {
		switch {
		case m.method == "terminal/create" && m.kind == conformance.Response:
			open++
		case m.method == "terminal/release" && m.kind == conformance.Request:
			open--
		}
	}
	p.conn.mu.Unlock()
	if open > 0 && p.saw("answered terminal/create") {
		p.failAt("TRM-7", conformance.Should, "the agent did not release %d of its terminals by the end of the turn", open)
	}
}

// filesSince are the agent's requests for files since a message; asked says that it also asked for permission.
func (p *play) filesSince(number int) (files []*message, asked bool) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	for _, m := range p.kept {
		if m.number > number && m.kind == conformance.Request {
			asked = asked || m.method == "session/request_permission"
			if strings.HasPrefix(m.method, "fs/") {
				files = append(files, m)
			}
		}
	}
	return files, asked
}

// refusedSince are the requests for permission since a message that the user has not granted; none if the user has
// granted one.
func (p *play) refusedSince(number int) (refused []*message) {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	open := map[string]*message{}
	for _, m := range p.kept {
		if m.number <= number || m.method != "session/request_permission" {
			continue
		}
		if m.kind == conformance.Request {
			open[m.id] = m
			continue
		}
		request := open[m.id]
		if request == nil {
			continue
		}
		if strings.HasPrefix(outcomeOf(request, m), "allow") {
			return nil
		}
		refused = append(refused, request) // also by an option that was not offered
	}
	return refused
}

// outcomeOf returns the kind of the option that an answer to a request for permission selects, or else its outcome.
func outcomeOf(request, answer *message) string {
	for _, option := range elements(member(request.params, "options")) {
		var o struct{ OptionID, Kind string }
		if json.Unmarshal(option, &o) == nil && o.OptionID == answer.text("outcome", "optionId") &&
			answer.text("outcome", "outcome") == "selected" {
			return o.Kind
		}
	}
	return answer.text("outcome", "outcome")
}

// checkSpared checks that a turn that began behind a message has left a file as it was, if the user has refused all
// that the agent asked in it. What a prompt for permission asks is about the file; otherwise a request has to name it.
func (p *play) checkSpared(number int, kind, path, text string) {
	refused := p.refusedSince(number)
	if len(refused) == 0 {
		return
	}
	p.markExercised("ADD-14")
	name := filepath.Base(path)
	if now, err := os.ReadFile(path); err == nil && string(now) == text {
		return
	}
	names := func(m *message) bool { return strings.Contains(string(m.params), name) }
	if kind == "permission" || slices.ContainsFunc(refused, names) {
		p.fail("ADD-14", "the user refused, but the agent changed %s", name)
		return
	}
	p.doubt("ADD-14", "the user refused every request, but %s has changed", name)
}

// failing is the scenario of a client whose files and terminals fail.
func failing(name, what, text string) Scenario {
	return Scenario{
		Name: name,
		Text: "The client answers requests for files and terminals with " + what +
			": the agent ends its turn and serves the next one.",
		Exercises: []string{"ERR-1"}, Prompts: []string{"read", "edit", "terminal"},
		run: func(p *play) {
			session := p.ready()
			for _, method := range []string{"fs/read_text_file", "fs/write_text_file", "terminal/create"} {
				p.client.refuse[method] = text
			}
			p.file("notes.txt", "Notes of the probe.\n")
			for _, kind := range []string{"read", "edit", "terminal"} {
				id := p.begin(session, kind)
				if p.awaitTurn(id) == nil {
					p.fail("ERR-1", "%s", p.why(fmt.Sprintf("after an error from the client, the prompt %q was not answered",
						p.text(session, kind))))
					return
				}
			}
			for _, method := range []string{"fs/read_text_file", "fs/write_text_file", "terminal/create"} {
				if p.saw("refused " + method) {
					p.markExercised("ERR-1")
				}
			}
			p.client.nextTurn(session)
			p.prompt(session, "text")
		},
	}
}

// permission is the scenario of one answer to a request for permission.
func permission(name, what string, answer func(*message) (outcome, text string)) Scenario {
	return Scenario{
		Name:      name,
		Text:      "The agent asks for permission, and " + what + ": the turn ends, and the next one is served.",
		Exercises: []string{"PRM-5", "ADD-14"}, Prompts: []string{"permission", "edit"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			p.client.permission = answer
			session := p.newSession()
			const text = "A file of the probe.\n"
			for _, turn := range []struct{ kind, file string }{{"permission", "old.txt"}, {"edit", "demo.txt"}} {
				file := p.file(turn.file, text)
				before := p.count()
				id := p.begin(session, turn.kind)
				if p.awaitTurn(id) == nil {
					p.failAt("PRM-5", conformance.Must, "%s",
						p.why("after this answer to a permission request, the prompt was not answered"))
					return
				}
				p.checkSpared(before, turn.kind, file, text)
			}
			p.client.nextTurn(session)
			p.prompt(session, "text")
		},
	}
}

// elicitation is the scenario of one answer to an elicitation.
func elicitation(name, what, outcome, text, trait string) Scenario {
	return Scenario{
		Name:      "elicitation-" + name,
		Text:      "The agent shows a form, and " + what + ": the agent continues.",
		Exercises: []string{"ELI-9", "ELI-17", "ELI-18", "SCH-9"}, Prompts: []string{"form", "link"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			p.client.elicitation = func(*message) (string, string) { return outcome, text }
			session := p.newSession()
			for _, kind := range []string{"form", "link"} {
				id := p.begin(session, kind)
				m := p.awaitTurn(id)
				if !p.saw("<- elicitation/create") {
					continue
				}
				if trait != "" {
					p.trait(trait)
				}
				rule := "ELI-18"
				switch name {
				case "unknown":
					rule = "SCH-9"
				case "wrong":
					rule = "ELI-9"
				}
				p.markExercised(rule)
				if m == nil {
					p.failAt(rule, conformance.Must, "%s", p.why("the prompt was not answered after an elicitation in which "+what))
					return
				}
				if m.kind == conformance.ErrorReply {
					p.failAt(rule, conformance.Should, "after an elicitation in which %s, the prompt was answered with an error: %s",
						what, clip(string(m.params)))
				}
			}
			p.client.nextTurn(session)
			p.prompt(session, "text")
		},
	}
}
