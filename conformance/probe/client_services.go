// Scenarios for clients: files, terminals, elicitation, and the sessions of an agent.

package probe

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// formOf are the members of a form with properties.
func formOf(properties, more string) string {
	return `,"mode":"form","message":"The probe asks","requestedSchema":{"type":"object","properties":{` + properties + `}` + more + `}`
}

func linkOf(id, url string) string {
	return `,"mode":"url","elicitationId":` + player.Quote(id) + `,"url":` + player.Quote(url) + `,"message":"The probe asks"`
}

var clientServices = []Scenario{
	{Name: "read-files", Exercises: []string{"FS-6", "FS-4"}, Needs: []string{canRead}, persona: full,
		Text: "Files are read: whole, by ranges of lines, past the end, an empty one, and one that does not exist.",
		steps: []step{turn(func(p *play) {
			dir, remove := p.place()
			defer remove()
			text := "one\ntwo é\nthree 😀\nfour"
			path := filepath.Join(dir, "read.txt")
			if err := errors.Join(os.WriteFile(path, []byte(text), 0o600),
				os.WriteFile(filepath.Join(dir, "empty.txt"), nil, 0o600)); err != nil {
				p.stopf("%v", err)
			}
			p.markExercised("FS-4")
			for _, w := range []struct{ id, more, want string }{
				{"FS-6", "", text}, {"FS-6", `,"line":null,"limit":null`, text}, {"FS-4", `,"line":1,"limit":1`, "one"}, {"FS-4", `,"line":2,"limit":2`, "two é\nthree 😀"},
				{"FS-4", `,"line":3`, "three 😀\nfour"}, {"FS-4", `,"limit":3`, "one\ntwo é\nthree 😀"}, {"FS-4", `,"line":4,"limit":1000`, "four"},
			} {
				answer := p.readFile(path, w.more)
				// Whether the end of the last line belongs to a window is not said.
				if got := answer.Text("content"); answer.Kind != conformance.Response || strings.TrimSuffix(got, "\n") != w.want {
					p.fail(w.id, "a read with %q returned %q, want %q", strings.TrimPrefix(w.more, ","), player.Clip(got), w.want)
				}
			}
			if answer := p.readFile(path, `,"line":100`); answer.Kind == conformance.Response && answer.Text("content") != "" {
				p.fail("FS-4", "a read past the end returned %q", player.Clip(answer.Text("content")))
			}
			if answer := p.readFile(filepath.Join(dir, "empty.txt"), ""); answer.Kind != conformance.Response ||
				answer.Text("content") != "" {
				p.fail("FS-6", "a read of an empty file was answered with %s", answer.Describe())
			}
			p.requireError("FS-6", p.readFile(filepath.Join(dir, "missing.txt"), ""), "a read of a missing file", -32002)
			p.requireError("FS-6", p.readFile(dir, ""), "a read of a folder")
		})}},
	{Name: "write-files", Exercises: []string{"FS-3", "FS-5", "INI-6"}, Needs: []string{canWrite}, persona: full,
		Text: "Files are written: a new one, an existing one, an empty one, and one in a new folder.",
		steps: []step{turn(func(p *play) {
			dir, remove := p.place()
			defer remove()
			path := filepath.Join(dir, "new.txt")
			for _, text := range []string{"one\ntwo é😀\r\n", "shorter", "", "\n"} {
				id := "FS-3"
				if _, err := os.Stat(path); err == nil {
					id = "INI-6" // the file is there: what is wrong is how a right request is served
				}
				writing := p.Ask("fs/write_text_file", p.turnParams(`,"path":`+player.Quote(path)+`,"content":`+player.Quote(text)), "")
				p.decides(writing, ActAllow) // some clients ask
				answer := p.requireAnswer(id, writing, "fs/write_text_file")
				got, err := os.ReadFile(path)
				if answer.Kind != conformance.Response || err != nil || string(got) != text {
					p.fail(id, "a write of %q was answered with %s, and the file has %q (%v)", text, answer.Describe(),
						player.Clip(string(got)), err)
				}
			}
		})}},
	{Name: "terminal",
		Exercises: []string{"TRM-6", "TRM-9", "TRM-11", "TRM-12"}, Needs: []string{canRun}, persona: full,
		Text: "A command runs in a terminal and ends with a status; the agent waits for it and releases the terminal.",
		steps: []step{turn(func(p *play) {
			id := p.terminal(`echo "$PROBE"; exit 3`, `,"env":[{"name":"PROBE","value":"é😀"}]`)
			exit := p.ofTerminal("TRM-9", "wait_for_exit", id)
			p.markExercised("TRM-12")
			if string(player.Member(exit.Params, "exitCode")) != "3" {
				p.fail("TRM-12", "the command exited with status 3, but the answer is %s", exit.Describe())
			}
			out := p.ofTerminal("TRM-9", "output", id)
			if out.Text("output") != "é😀\n" && out.Text("output") != "é😀\r\n" || !player.IsSet(out.Params, "exitStatus") {
				p.fail("TRM-9", "the output of a command that has ended was answered with %s", out.Describe())
			}
			p.ofTerminal("TRM-11", "release", id)
			p.requireError("TRM-11", p.ofTerminal("TRM-11", "output", id), "terminal/output of a terminal that was released")
		})}},
	{Name: "terminal-limits", Exercises: []string{"TRM-4", "TRM-5"}, Needs: []string{canRun}, persona: full,
		Text: "The output is cut at each limit within its last characters, at a character boundary.",
		steps: []step{turn(func(p *play) {
			for limit := range 9 {
				id := p.terminal(`printf 'aé€😀b'`, `,"outputByteLimit":`+string(rune('0'+limit)))
				p.ofTerminal("TRM-9", "wait_for_exit", id)
				out := p.ofTerminal("TRM-4", "output", id)
				got := out.Text("output")
				p.markExercised("TRM-4", "TRM-5")
				if !strings.HasSuffix("aé€😀b", got) || string(player.Member(out.Params, "truncated")) != "true" {
					p.fail("TRM-4", "with a limit of %d bytes, the answer is %s", limit, out.Describe())
				}
				if len(got) > limit || strings.ContainsRune(got, '\uFFFD') {
					p.fail("TRM-5", "with a limit of %d bytes, the output is %q", limit, got)
				}
				p.ofTerminal("TRM-11", "release", id)
			}
		})}},
	{Name: "terminal-killed", Exercises: []string{"TRM-9", "TRM-10", "TRM-12"}, Needs: []string{canRun}, persona: full,
		Text: "A long command is killed; its output and its exit status are still available.",
		steps: []step{turn(func(p *play) {
			id := p.terminal(`echo started; exec sleep 1000`, "")
			var out *player.Message
			for range 50 {
				if out = p.ofTerminal("TRM-9", "output", id); out.Text("output") != "" {
					break
				}
				p.Wait(p.ctx, p.limits.quiet/10, func() bool { return false })
			}
			if player.IsSet(out.Params, "exitStatus") {
				p.fail("TRM-9", "a running command has an exit status: %s", out.Describe())
			}
			waiting := p.Ask("terminal/wait_for_exit", p.turnParams(`,"terminalId":`+player.Quote(id)), "")
			p.ofTerminal("TRM-10", "kill", id)
			exit := p.requireAnswer("TRM-10", waiting, "terminal/wait_for_exit for a killed command")
			p.markExercised("TRM-12")
			if string(player.Member(exit.Params, "exitCode")) == "0" {
				p.fail("TRM-12", "a killed command was reported as successful: %s", exit.Describe())
			}
			if out := p.ofTerminal("TRM-10", "output", id); !strings.HasPrefix(out.Text("output"), "started") {
				p.fail("TRM-10", "the output of a killed command was answered with %s", out.Describe())
			}
			p.ofTerminal("TRM-10", "kill", id) // again does no harm
			p.ofTerminal("TRM-11", "release", id)
		})}},
	{Name: "terminal-released", Exercises: []string{"TRM-11"}, Needs: []string{canRun}, persona: full,
		Text: "The terminal of a long command is released: the command ends.",
		steps: []step{turn(func(p *play) {
			dir, remove := p.place()
			defer remove()
			file := filepath.Join(dir, "ticks")
			id := p.terminal(`while :; do echo tick >> "$TICKS"; sleep 0.02; done`, `,"env":[{"name":"TICKS","value":`+player.Quote(file)+`}]`)
			size := func() int64 {
				info, err := os.Stat(file)
				if err != nil {
					return 0
				}
				return info.Size()
			}
			pause := func() { p.Wait(p.ctx, max(p.limits.quiet/10, 100*time.Millisecond), func() bool { return false }) }
			for range 50 {
				if size() > 0 {
					break
				}
				pause()
			}
			p.ofTerminal("TRM-11", "release", id)
			still := 0
			for range 50 { // it may take a moment, and a busy machine may do nothing for one
				before := size()
				if pause(); size() != before {
					still = 0
				} else if still++; still == 5 {
					break
				}
			}
			p.check("TRM-11", still == 5, "the command kept running after terminal/release")
		})}},
	{Name: "form", Exercises: []string{"ELI-15", "ELI-16", "ADD-17"}, Needs: []string{canForm}, persona: full,
		Text: "The user fills in a form, and then declines one.",
		steps: []step{turn(func(p *play) {
			p.elicit(formOf(`"name":{"type":"string","title":"Name","minLength":1,"default":"probe"},"age":{"type":"integer","minimum":0,"maximum":150,"default":7},"ok":{"type":"boolean","default":true},"size":{"type":"string","enum":["s","l"],"default":"l"}`, `,"required":["name"]`), ActAllow)
			p.elicit(formOf(`"name":{"type":"string"}`, ""), ActReject)
		})}},
	{Name: "form-of-unknown-types", Exercises: []string{"SCH-10"}, Needs: []string{canForm}, persona: full,
		Text: "A form has a field of an unknown type: the form is refused, or the field is not filled in.",
		steps: []step{turn(func(p *play) {
			p.mayRefuse = true
			answer := p.elicit(formOf(`"mood":{"type":"_mood","title":"Mood"},"name":{"type":"string","default":"x"}`, ""), ActAllow)
			p.check("SCH-10", !player.IsSet(answer.Params, "content", "mood"),
				"the client filled in a field of an unknown type: %s",
				answer.Describe())
		})}},
	{Name: "elicitation-of-unknown-mode", Exercises: []string{"SCH-8"}, persona: full,
		Text: "An elicitation of an unknown mode is not accepted; the client continues.",
		steps: []step{turn(func(p *play) {
			answer := p.requireAnswer("SCH-8", p.Ask("elicitation/create", p.turnParams(`,"mode":"_dance","message":"Dance!","requestedSchema":{"type":"object","properties":{}}`), ""), "an elicitation of an unknown mode")
			p.check("SCH-8", answer.Text("action") != "accept", "the client accepted an elicitation of an unknown mode")
		})}},
	{Name: "elicitation-without-scope", Exercises: []string{"ELI-34"}, Needs: []string{canForm}, persona: full,
		Text: "An elicitation has both a session and a request as its scope, and another one has neither.",
		steps: []step{turn(func(p *play) {
			p.mayRefuse = true
			form := formOf(`"name":{"type":"string","default":"x"}`, "")
			for _, params := range []string{`{` + form[1:] + `}`, p.turnParams(`,"requestId":` + p.taken.ID + form)} {
				id := p.Ask("elicitation/create", params, "")
				answer := p.decides(id, ActReject)
				p.markExercised("ELI-34")
				if answer != nil && answer.Text("action") == "accept" {
					p.failAt("ELI-34", conformance.Advice, "the client accepted an elicitation with a wrong scope")
				}
			}
		})}},
	{Name: "link",
		Exercises: []string{"ELI-22", "ELI-28", "ADD-17"}, Needs: []string{canOpen}, persona: full, quiet: true,
		Text: "The user is asked to open a link, which the client must not fetch first; its completion is " +
			"sent twice, and completions of unknown links are sent.",
		steps: []step{turn(func(p *play) {
			url, hits, end := p.serveHTTP(http.StatusOK)
			defer end()
			id := p.Ask("elicitation/create", p.turnParams(linkOf("link é", url+"/probe")), "")
			p.silence(p.limits.quiet)
			if !p.HasAnswer(id) {
				p.check("ELI-28", hits() == 0, "the client fetched the link before the user consented")
			}
			if answer := p.decides(id, ActReject); answer == nil {
				p.stopf("the elicitation was not answered")
			} else if answer.Text("action") != "accept" {
				p.check("ELI-28", hits() == 0, "the client fetched the link although the user did not accept")
			}
			for _, done := range []string{"link é", "link é", "never"} {
				p.Notify("elicitation/complete", `{"elicitationId":`+player.Quote(done)+`}`)
			}
			p.checkAlive("ELI-22", "completions of unknown elicitations")
		})}},
	{Name: "list", Exercises: []string{"LST-9", "LST-10"}, persona: full,
		Text: "The sessions are listed in two pages, with a cursor of odd characters.",
		steps: []step{turn(), func(p *play) {
			list := p.does(ActList, "session/list")
			if list == nil {
				p.stopf("the client did not list the sessions")
			}
			if player.IsSet(list.Params, "cwd") {
				p.trait("filtered list")
			}
			// It may list anew at any time, so only pages with a cursor are those that follow.
			var pages []*player.Message
			follow := func() bool {
				pages = nil
				for _, m := range p.After(list.Number) {
					if m.Method == "session/list" && p.IsTheirs(m) && player.IsSet(m.Params, "cursor") {
						pages = append(pages, m)
					}
				}
				return len(pages) > 0
			}
			if !p.Wait(p.ctx, p.limits.quiet, follow) {
				p.stopf("the client listed only one page")
			}
			p.trait("second page")
			p.check("LST-10", pages[0].Text("cursor") == fakeCursor, "the client changed the cursor %q to %q", fakeCursor,
				pages[0].Text("cursor"))
			p.silence(p.limits.quiet)
			p.Wait(p.ctx, 0, follow)
			p.check("LST-9", len(pages) == 1, "the client requested another page after the last one")
		}}},
	{Name: "load-and-resume", Exercises: []string{"SES-18"}, persona: full,
		Text: "The session is loaded and resumed, with the same roots.",
		steps: []step{turn(), func(p *play) {
			p.fake.mu.Lock()
			var had string
			if len(p.fake.sessions) > 0 {
				had = string(p.fake.sessions[0].roots)
			}
			p.fake.mu.Unlock()
			for _, a := range []Action{ActLoad, ActResume} {
				m := p.does(a, "session/"+string(a))
				if m == nil || had == "" || had == "null" {
					continue
				}
				p.check("SES-18", string(player.Member(m.Params, "additionalDirectories")) == had,
					"%s has other roots than the session had before", m.Method)
			}
		}}},
	{Name: "modes-and-options", persona: full, Text: "The user changes the mode and an option.",
		steps: []step{turn(), func(p *play) {
			p.does(ActMode, "session/set_mode")
			p.does(ActOption, "session/set_config_option")
		}, survives("SCH-17", "a change of the mode and an option")}},
	{Name: "boolean-options", Exercises: []string{"CFG-16"}, Needs: []string{booleanOptions},
		Text:    "The session has an option that is on or off, and the user switches it.",
		persona: persona{name: "boolean options", capabilities: allAgentCapabilities, options: `[{"id":"brief","name":"Brief","type":"boolean","currentValue":false}]`},
		steps: []step{turn(), does(ActToggle, "session/set_config_option", "the client did not switch the option"),
			happens("boolean set"), survives("SCH-17", "a change of an option")}},
	{Name: "close-what-is-gone", Exercises: []string{"ERR-8"},
		Text: "session/close and session/delete are answered with -32002, which counts as success.",
		persona: persona{capabilities: allAgentCapabilities, answer: func(_ *fakeAgent, m *player.Message) (string, string) {
			if m.Method == "session/close" || m.Method == "session/delete" {
				return "error", `{"code":-32002,"message":"Resource not found","data":{"sessionId":` + player.Quote(m.Text("sessionId")) + `}}`
			}
			return "", ""
		}},
		steps: []step{turn(), func(p *play) {
			closed, deleted := p.does(ActClose, "session/close"), p.does(ActDelete, "session/delete")
			if closed == nil && deleted == nil {
				p.stopf("the client neither closed nor deleted the session")
			}
			if p.await(p.Ask(alive, "{}", "")) != nil || !p.HasEnded() || p.target.person {
				survives("ERR-8", "an error of session/close")(p)
				return
			}
			// It may end when its session is closed, whatever the answer.
			p.begins(persona{capabilities: allAgentCapabilities})
			turn()(p)
			p.does(ActClose, "session/close")
			p.does(ActDelete, "session/delete")
			if m := p.await(p.Ask(alive, "{}", "")); m != nil {
				p.fail("ERR-8", "the client ended at the error -32002 of session/close or session/delete; it goes on when "+
					"they succeed")
			}
		}}},
	{Name: "logout", persona: full, Text: "The user logs out.",
		steps: []step{turn(), does(ActLogout, "logout", "the client did not log out"),
			func(p *play) { p.stays = false }, survives("SCH-17", "a logout")}}, // it may end with it
}
