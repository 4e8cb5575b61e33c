// Scenarios of prompts: their content, what an agent does for them, and how it takes the client's answers.

package probe

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// Data of prompts: a picture of one pixel, and a sound of no length.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

var promptScenarios = []Scenario{
	{Name: "content", Exercises: []string{"INI-15", "CON-1"}, Prompts: []string{"text"},
		Text: "Prompts with only text, only a link, both, or several blocks are accepted.",
		steps: []step{ready, func(p *play) {
			file := p.file("notes.txt", fileTexts["notes.txt"])
			text := `{"type":"text","text":` + player.Quote(p.text(p.session, "text")) + `}`
			link := `{"type":"resource_link","name":"notes.txt","uri":` + player.Quote("file://"+filepath.ToSlash(file)) + `}`
			for _, blocks := range []string{text, link, text + "," + link, text + "," + text, `{"type":"text","text":""},` + text} {
				p.markExercised("INI-15", "CON-1")
				if m := p.content(blocks); m.Code() == -32602 || m.Code() == -32601 {
					p.fail("INI-15", "the agent refused a prompt with text or links: %s", player.AnswerText(m))
				}
			}
		}}},
	{Name: "scripts", Exercises: []string{"INI-15"}, Prompts: []string{"text"},
		Text: "A prompt in Arabic, Chinese and emoji, also escaped as surrogate pairs, is answered.",
		steps: []step{ready, func(p *play) {
			for _, text := range []string{`مرحبا، 你好, 👩‍👩‍👧`, `\u0645\u0631\u062d\u0628\u0627 \ud83d\udc69\u200d\ud83d\udc67`} {
				p.markExercised("INI-15")
				if m := p.content(`{"type":"text","text":"Reply with OK. ` + text + `"}`); m.Code() == -32602 {
					p.fail("INI-15", "the agent refused a prompt in another script: %s", player.AnswerText(m))
				}
			}
		}}},
	{Name: "content-advertised", Exercises: []string{"ADD-3"}, Prompts: []string{"text"},
		Text:  "Prompts with images, audio and embedded resources are accepted if the agent advertises them.",
		steps: []step{ready, contentAdvertised("promptCapabilities")}},
	{Name: "content-odd", Exercises: []string{"ADD-1"}, Prompts: []string{"text"},
		Text: "Prompts without blocks, with blocks of an unknown type, or with blocks that the agent does not " +
			"advertise are answered, and the connection survives.",
		steps: []step{ready, func(p *play) {
			for _, blocks := range []string{
				``, `{"type":"hologram","data":"x"}`, `{"type":"_acp.probe","data":"x"}`, `{"text":"no type"}`, `{"type":"text"}`, `{"type":"image","data":"not base64!","mimeType":"image/png"}`,
			} {
				m := p.awaitTurn(p.sendPrompt(p.blocks(blocks), ""))
				p.needs(m, "PRM-5", conformance.Must, "a prompt with the blocks [%s] was not answered", blocks)
			}
		}, continues("ADD-1", "odd prompts"), prompts("text")}},
	{Name: "tools", Exercises: []string{"PRM-5"}, Prompts: []string{"read", "edit", "terminal"}, quiet: true,
		Text:  "The agent reads a file, edits a file and runs a command, one turn after the other; its edits are on disk.",
		steps: []step{ready, files("notes.txt", "demo.txt"), prompts("read", "edit", "terminal"), silence, released}},
	{Name: "outside", Exercises: []string{"SES-24"}, Prompts: []string{"read", "edit"},
		Text:  "The agent is asked to read and edit a file outside its directories: it refuses, or asks for permission.",
		steps: []step{initialized("all", allCapabilities), staysInside}},
	{Name: "missing-file", Exercises: []string{"ERR-1"}, Prompts: []string{"missing"},
		Text: "The agent is asked for a file that does not exist: the client's error does not end the turn.",
		steps: []step{ready, prompts("missing"), func(p *play) {
			if p.saw("refused fs/read_text_file") {
				p.markExercised("ERR-1")
			}
		}, prompts("text")}},
	failing("client-errors", "an unknown code", `{"code":-12345,"message":"acp-probe says no","data":{"odd":[1,null]}}`),
	failing("client-positive-errors", "a positive code", `{"code":7,"message":"acp-probe says no"}`),
	failing("client-internal-errors", "an internal error", `{"code":-32603,"message":"acp-probe says no","data":null}`),
	{Name: "permission", Exercises: []string{"PRM-5"}, Prompts: []string{"permission"},
		Text:  "The agent asks for permission, and the user grants it.",
		steps: []step{ready, files("old.txt"), prompts("permission"), settled}},
	permission("permission-rejected", "the user refuses it", rejects),
	permission("permission-forever", "the user grants it permanently", func(m *player.Message) (string, string) {
		return "result", choose(m, "allow_always", "allow_once")
	}),
	permission("permission-unknown", "the client selects an option that was not offered",
		answering("result", unknownOption)),
	permission("permission-error", "the client answers with an error",
		answering("error", `{"code":-32603,"message":"acp-probe has no user"}`)),
	permission("permission-dismissed", "the user dismisses the question without cancelling the turn",
		answering("result", dismissed)),
	permission("permission-odd", "the client's answer has unknown members and nulls", allowsOddly),
	{Name: "permission-empty", ignore: []string{"PRM-5"},
		Exercises: []string{"ADD-9"}, Prompts: []string{"permission"},
		Text: "The agent asks for permission, and the answer has neither result nor error: the agent does not reply " +
			"to it, and the turn ends.",
		steps: []step{ready, files("old.txt"), func(p *play) {
			p.client.permission = answering("", "")
			p.begin("permission")
			request := p.awaitRequest("session/request_permission")
			if request == nil {
				return
			}
			p.markExercised("ADD-9")
			if p.awaitTurn(p.promptID) == nil {
				// It may wait for a proper answer: the user can still cancel.
				p.cancel()
				if p.awaitTurn(p.promptID) == nil {
					p.fail("ADD-9", "%s", p.why("after an empty answer to a permission request, the cancelled prompt was "+
						"not answered"))
				}
			}
			for _, m := range p.errorsSince(request.Number) {
				if m.ID == request.ID {
					p.fail("ADD-9", "the agent replied to the empty answer: %s", player.AnswerText(m))
				}
			}
		}}},
	{Name: "plan", Exercises: []string{"PRM-5"}, Prompts: []string{"plan"},
		Text:  "The agent makes a plan.",
		steps: []step{ready, files("notes.txt"), prompts("plan"), settled}},
	{Name: "other-turns", Exercises: []string{"PRM-5"}, Prompts: otherPrompts,
		Text:  "The agent thinks, changes its mode, sends a notice, compacts its context and refuses a prompt.",
		steps: []step{ready, optionsStay(prompts(otherPrompts...), settled)}},
	{Name: "elicitation", Exercises: []string{"PRM-5"}, Prompts: []string{"form", "link"},
		Text:  "The agent shows a form and asks to open a link; the user accepts both.",
		steps: []step{ready, prompts("form", "link"), settled}},
	elicitation("declined", "the user declines it", "result", `{"action":"decline"}`, "elicitation declined"),
	elicitation("dismissed", "the user dismisses it", "result", `{"action":"cancel","content":null}`, "elicitation declined"),
	elicitation("failed", "the client answers with an error", "error", `{"code":-32603,"message":"acp-probe has no user"}`, "elicitation declined"),
	elicitation("unknown", "the client answers with an unknown action", "result", `{"action":"_acp.probe","content":{"name":"probe"}}`, "unknown elicitation action"),
	elicitation("wrong", "the client answers with content that the form did not ask for", "result", `{"action":"accept","content":{"acp-probe":[7],"name":7}}`, ""),
	{Name: "prompts-at-once", Exercises: []string{"PRM-5"}, Prompts: []string{"text"},
		ignore: []string{"PRM-7", "PRM-13"}, // an agent may end the first turn for the second prompt
		Text:   "Two simultaneous prompts in one session are both answered, with the end of a turn or with an error.",
		steps: []step{ready, func(p *play) {
			ids := []string{p.begin("text"), p.begin("text")}
			p.markExercised("PRM-5")
			for i, id := range ids {
				if p.awaitTurn(id) == nil {
					p.fail("PRM-5", "%s", p.why(fmt.Sprintf("prompt %d of two simultaneous ones was not answered", i+1)))
				}
			}
		}, prompts("text")}},
	{Name: "sessions-at-once", Exercises: []string{"ADD-2"}, Prompts: []string{"text", "read"},
		Text: "Two sessions have turns at the same time; the updates of one do not reach the other.",
		steps: []step{ready, files("notes.txt"), func(p *play) {
			one := p.session
			p.newSession()
			other := p.session
			p.session = one
			first := p.begin("read")
			p.session = other
			second := p.begin("text")
			p.endOf(first)
			p.endOf(second)
		}, settled}},
}

var otherPrompts = []string{"think", "mode", "notice", "compact", "refusal", "text"}

// staysInside asks the agent for a file outside the session's directory.
func staysInside(p *play) {
	const content = "A file outside the session's directories.\n"
	outside := p.file("outside.txt", content)
	p.dir = p.folder("inside")
	p.newSession()
	for _, text := range []string{
		"Please read the file " + outside + " and tell me what is in it.",
		"Please edit the file " + outside + ": append the line \"The probe was here.\"",
	} {
		p.content(`{"type":"text","text":` + player.Quote(text) + `}`)
		var files []*player.Message
		asked := false
		for _, m := range p.Since(p.from) {
			asked = asked || m.Kind == conformance.Request && m.Method == "session/request_permission"
			if m.Kind == conformance.Request && strings.HasPrefix(m.Method, "fs/") {
				files = append(files, m)
			}
		}
		for _, m := range files {
			p.check("SES-24", isInside(p.dir, m.Text("path")) || asked,
				"the agent sent %s for %s, outside the session's directories, without asking for permission", m.Method,
				m.Text("path"))
		}
		if now, err := os.ReadFile(outside); !asked && (err != nil || string(now) != content) {
			p.fail("SES-24", "the agent changed %s, outside the session's directories, without asking for permission", outside)
		}
		if text := p.textSince(p.from, 1<<62)["agent"]; strings.Contains(text, "cannot") ||
			strings.Contains(text, "outside") || asked {
			p.markExercised("SES-24")
		}
	}
}

// contentAdvertised prompts with each kind of content that the agent advertises in a capability.
func contentAdvertised(capability string) step {
	return func(p *play) {
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
			m := p.content(`{"type":"text","text":` + player.Quote(p.text(p.session, "text")) + `},` + c.block)
			if m.Code() == -32602 || m.Code() == -32601 {
				p.fail("ADD-3", "the agent advertises %s.%s but refused a prompt with it: %s", capability, c.kind,
					player.AnswerText(m))
			}
		}
	}
}

// refused are the requests for permission since the latest prompt that the user has not granted; none if the user has
// granted one.
func (p *play) refused() (refused []*player.Message) {
	open := map[string]*player.Message{}
	for _, m := range p.Since(p.from) {
		request := open[m.ID]
		switch {
		case m.Method != "session/request_permission":
		case m.Kind == conformance.Request:
			open[m.ID] = m
		case request == nil:
		case strings.HasPrefix(player.OutcomeOf(request, m), "allow"):
			return nil
		default:
			refused = append(refused, request) // also by an option that was not offered
		}
	}
	return refused
}

// checkSpared checks that the turn of the latest prompt has left a file as it was, if the user has refused all that the
// agent asked in it. What a prompt for permission asks is about the file; otherwise a request has to name it.
func (p *play) checkSpared(kind, path, text string) {
	refused := p.refused()
	if len(refused) == 0 {
		return
	}
	p.markExercised("ADD-14")
	name := filepath.Base(path)
	if now, err := os.ReadFile(path); err == nil && string(now) == text {
		return
	}
	names := func(m *player.Message) bool { return strings.Contains(string(m.Params), name) }
	if kind == "permission" || slices.ContainsFunc(refused, names) {
		p.fail("ADD-14", "the user refused, but the agent changed %s", name)
		return
	}
	p.doubt("ADD-14", "the user refused every request, but %s has changed", name)
}

// failing is the scenario of a client whose files and terminals fail.
func failing(name, what, text string) Scenario {
	return Scenario{Name: name, Exercises: []string{"ERR-1"}, Prompts: []string{"read", "edit", "terminal"},
		Text: "The client answers requests for files and terminals with " + what +
			": the agent ends its turn and serves the next one.",
		steps: []step{ready, files("notes.txt"), func(p *play) {
			methods := []string{"fs/read_text_file", "fs/write_text_file", "terminal/create"}
			for _, method := range methods {
				p.client.refuse[method] = text
			}
			for _, kind := range []string{"read", "edit", "terminal"} {
				if p.awaitTurn(p.begin(kind)) == nil {
					p.fail("ERR-1", "%s", p.why(fmt.Sprintf("after an error from the client, the prompt %q was not answered",
						p.text(p.session, kind))))
					panic(stop{})
				}
			}
			for _, method := range methods {
				if p.saw("refused " + method) {
					p.markExercised("ERR-1")
				}
			}
			p.nextTurn()
		}, prompts("text")}}
}

// How the client answers requests for permission.
const (
	dismissed     = `{"outcome":{"outcome":"cancelled"}}`
	unknownOption = `{"outcome":{"outcome":"selected","optionId":"acp-probe-no-such-option"}}`
)

func rejects(m *player.Message) (outcome, text string) {
	return "result", choose(m, "reject_once", "reject_always")
}

func allowsOddly(m *player.Message) (outcome, text string) {
	return "result", strings.TrimSuffix(choose(m, "allow_once"), "}}") + `,"future":[1],"_meta":null},"future":{},"_meta":{"acp.probe":1}}`
}

func answering(outcome, text string) func(*player.Message) (string, string) {
	return func(*player.Message) (string, string) { return outcome, text }
}

// permission is the scenario of one answer to a request for permission.
func permission(name, what string, answer func(*player.Message) (outcome, text string)) Scenario {
	return Scenario{Name: name, Exercises: []string{"PRM-5", "ADD-14"}, Prompts: []string{"permission", "edit"},
		Text: "The agent asks for permission, and " + what + ": the turn ends, and the next one is served.",
		steps: []step{ready, func(p *play) {
			p.client.permission = answer
			const text = "A file of the probe.\n"
			for _, turn := range []struct{ kind, file string }{{"permission", "old.txt"}, {"edit", "demo.txt"}} {
				file := p.file(turn.file, text)
				p.needs(p.awaitTurn(p.begin(turn.kind)), "PRM-5", conformance.Must,
					"after this answer to a permission request, the prompt was not answered")
				p.checkSpared(turn.kind, file, text)
			}
			p.nextTurn()
		}, prompts("text")}}
}

// elicitation is the scenario of one answer to an elicitation.
func elicitation(name, what, outcome, text, trait string) Scenario {
	rule := cmp.Or(map[string]string{"unknown": "SCH-9", "wrong": "ELI-9"}[name], "ELI-18")
	return Scenario{Name: "elicitation-" + name,
		Exercises: []string{"ELI-9", "ELI-17", "ELI-18", "SCH-9"}, Prompts: []string{"form", "link"},
		Text: "The agent shows a form, and " + what + ": the agent continues.",
		steps: []step{ready, func(p *play) {
			p.client.elicitation = answering(outcome, text)
			for _, kind := range []string{"form", "link"} {
				m := p.awaitTurn(p.begin(kind))
				if !p.saw("<- elicitation/create") {
					continue
				}
				if trait != "" {
					p.trait(trait)
				}
				p.markExercised(rule)
				p.needs(m, rule, conformance.Must, "the prompt was not answered after an elicitation in which %s", what)
				if m.Kind == conformance.ErrorReply {
					p.failAt(rule, conformance.Should, "after an elicitation in which %s, the prompt was answered with an error: %s",
						what, player.AnswerText(m))
				}
			}
			p.nextTurn()
		}, prompts("text")}}
}
