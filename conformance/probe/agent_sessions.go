// Scenarios of sessions: making, loading, resuming, listing, closing, deleting; modes and options; MCP servers.

package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

var sessionScenarios = []Scenario{
	{Name: "sessions", quiet: true, Exercises: []string{"SES-2", "SES-31"},
		Text: "Several sessions, created one after the other and at the same time, have distinct ids.",
		steps: []step{initialized("all", allCapabilities), func(p *play) {
			ids := map[string]bool{p.newSession(): true}
			ids[p.newSession()] = true
			var asked []string
			for range 4 {
				asked = append(asked, p.Ask("session/new", p.fill(newParams), ""))
			}
			p.markExercised("SES-2", "SES-31")
			answered := 2
			for _, id := range asked {
				m := p.await(id)
				if !p.isAnswered(m, "one of four simultaneous session/new requests") {
					panic(stop{})
				}
				if m.Kind == conformance.Response {
					answered++
					ids[m.Text("sessionId")] = true
				}
			}
			p.check("SES-2", len(ids) == answered, "%d sessions have only %d distinct ids", answered, len(ids))
		}, silence}},
	{Name: "working-directory", Exercises: []string{"SES-21", "SES-22"}, Prompts: []string{"read", "edit"},
		Text: "A session's directory is not that of the process: the agent resolves relative names in it, in the " +
			"first turn and in the second.",
		steps: []step{initialized("all", allCapabilities),
			func(p *play) { p.dir = p.folder("a folder, with ä and spaces") }, files("notes.txt", "demo.txt"), newSession,
			inDirectory("SES-21", "read", "notes.txt"), inDirectory("SES-22", "edit", "demo.txt")}},
	{Name: "bad-directories", Exercises: []string{"ERR-4"},
		Text: "A session in a relative or empty directory is refused.",
		steps: []step{ready,
			refuses("ERR-4", "session/new", `{"cwd":"relative/path","mcpServers":[]}`, `session/new with the cwd "relative/path"`, wrongParams...),
			refuses("ERR-4", "session/new", `{"cwd":".","mcpServers":[]}`, `session/new with the cwd "."`, wrongParams...),
			refuses("ERR-4", "session/new", `{"cwd":"","mcpServers":[]}`, `session/new with the cwd ""`, wrongParams...),
			func(p *play) {
				// Whether a missing directory is refused or made is the agent's choice.
				p.isAnswered(p.call("session/new", `{"cwd":`+player.Quote(filepath.Join(p.dir, "missing"))+`,"mcpServers":[]}`),
					"session/new without a cwd")
			}, continues("ADD-1", "bad directories")}},
	{Name: "additional-directories", Needs: []string{canRoots},
		Exercises: []string{"ADD-3", "SES-23", "ERR-4"}, Prompts: []string{"read"},
		Text: "A session with additional directories is created, and its working directory is still one of its roots.",
		steps: []step{initialized("all", allCapabilities), newWith("ADD-3", func(p *play) string {
			return `,"mcpServers":[],"additionalDirectories":[` + player.Quote(p.folder("other")) + `]`
		}), files("notes.txt"), inDirectory("SES-23", "read", "notes.txt"),
			refuses("ERR-4", "session/new", `{"cwd":{dir},"mcpServers":[],"additionalDirectories":["relative"]}`,
				"session/new with a relative additional directory", wrongParams...)}},
	{Name: "unknown-session", Exercises: []string{"ERR-5", "ADD-1"},
		Text: "Requests for a session that does not exist are refused with -32002 and its id.",
		steps: []step{ready, func(p *play) {
			for _, r := range []struct{ method, need, params string }{
				{"session/prompt", "", `{"sessionId":{session},"prompt":[{"type":"text","text":"hello"}]}`},
				{"session/set_mode", "modes", `{"sessionId":{session},"modeId":"x"}`},
				{"session/set_config_option", "options", `{"sessionId":{session},"configId":"x","value":"y"}`},
				{"session/load", loadSession, openParams},
				{"session/resume", canResume, openParams},
			} {
				if r.need != "" && !p.saw(r.need) && !p.can(r.need) {
					continue
				}
				m := p.call(r.method, p.fillFor(noSession, r.params))
				p.requireError("ERR-5", m, r.method+" for an unknown session", -32002)
				if m.Code() == -32002 && m.Text("data", "sessionId") != noSession {
					p.failAt("ERR-5", conformance.Advice, "the error of %s does not name the session in data.sessionId: %s", r.method,
						player.AnswerText(m))
				}
			}
		}, continues("ADD-1", "requests for an unknown session")}},
	{Name: "load", Needs: []string{loadSession},
		Exercises: []string{"SES-6", "SES-7", "SES-21", "ADD-12"}, Prompts: []string{"text", "read"}, quiet: true,
		Text: "A session of two turns is loaded in another launch: the whole conversation is replayed before the " +
			"answer, and the session can be prompted; loaded in another directory, it is there.",
		steps: []step{loadsHistory, prompts("text"), moves("session/load")}},
	{Name: "load-here", Needs: []string{loadSession}, Exercises: []string{"ADD-1"}, Prompts: []string{"text"},
		Text: "An active session is loaded again by the same client, or refused; it can be prompted afterwards.",
		steps: []step{ready, prompts("text"), answers("session/load", openParams, "session/load of an active session"),
			prompts("text")}},
	{Name: "resume", Needs: []string{canResume}, Exercises: []string{"SES-11", "SES-21"}, Prompts: []string{"text"},
		Text: "A session is resumed in another launch without a replay, and can be prompted; resumed in another " +
			"directory, it is there.",
		steps: []step{reopened("SES-11", "session/resume", ready, prompts("text"), settled),
			serves("SES-11", "session/resume", openParams), prompts("text"), moves("session/resume")}},
	{Name: "resume-terse", Needs: []string{canResume}, Exercises: []string{"SES-11"}, Prompts: []string{"text"},
		Text: "A session is resumed by a client that leaves mcpServers out.",
		steps: []step{
			reopened("SES-11", "session/resume", initialized("none", noCapabilities), newSession, prompts("text"), settled),
			serves("SES-11", "session/resume", `{"sessionId":{session},"cwd":{dir}}`)}},
	{Name: "list", Needs: []string{canList},
		Exercises: []string{"LST-5", "LST-8", "LST-11", "LST-12", "LST-14"}, Prompts: []string{"text"},
		Text: "Sessions are listed: all of them, those of one directory, those of a directory that was never used, " +
			"and after a wrong cursor.",
		steps: []step{ready, prompts("text"), func(p *play) {
			for _, s := range p.checkLists() {
				if s.cwd != p.dir {
					p.failAt("LST-5", conformance.Should, "session/list with the cwd %s listed a session in %s", p.dir, s.cwd)
				}
			}
		}, neverListed, refuses("LST-11", "session/list", `{"cursor":"acp-probe-bogus"}`, "session/list with a made-up cursor", -32602),
			func(p *play) {
				if m := p.call("session/prompt", `{"sessionId":"`+noSession+`","prompt":[{"type":"text","text":"hello"}]}`); m != nil && m.Kind == conformance.Response {
					p.fail("LST-14", "after session/list, the agent accepted a prompt for a session that was never created")
				}
			}}},
	{Name: "delete", Needs: []string{canDelete}, Exercises: []string{"DEL-5", "DEL-6"}, Prompts: []string{"text"},
		Text: "A session is deleted twice, and is gone from the list.",
		steps: []step{ready, prompts("text"), closed, serves("DEL-6", "session/delete", sessionParams), func(p *play) {
			p.must("DEL-5", "session/delete", p.fill(sessionParams))
			p.must("DEL-5", "session/delete", unknownSession)
			if !p.can(canList) {
				return
			}
			p.trait("listed after deletion")
			sessions, _ := p.list("LST-5", `"cwd":`+player.Quote(p.dir))
			if slices.ContainsFunc(sessions, func(s listed) bool { return s.id == p.session }) {
				p.fail("DEL-4", "the agent still lists a deleted session")
			}
		}}},
	{Name: "close", Needs: []string{canClose}, Exercises: []string{"SES-16", "SES-15"}, Prompts: []string{"text"},
		Text: "An idle session is closed twice; afterwards it accepts no prompt.",
		steps: []step{ready, prompts("text"), serves("SES-16", "session/close", sessionParams), func(p *play) {
			p.requireError("SES-15", p.call("session/prompt", p.promptParams("text")), "a prompt for a closed session")
			p.call("session/close", p.fill(sessionParams))
			p.call("session/close", unknownSession)
		}, continues("ADD-1", "session/close"), newSession}},
	{Name: "close-in-a-turn", Needs: []string{canClose}, Exercises: []string{"SES-15"}, Prompts: []string{"long"},
		Text: "A session is closed in the middle of a turn: the prompt is answered as cancelled, then session/close " +
			"is answered.",
		steps: []step{ready, streaming(2), tries("SES-15"),
			func(p *play) { p.checkStops("SES-15", p.closeTurn, func() { p.newSession() }) }}},
	{Name: "modes", Exercises: []string{"MOD-2", "MOD-3", "ERR-4", "CFG-22"}, Prompts: []string{"mode"},
		Text: "Every offered mode can be set, and no other.",
		steps: []step{ready, func(p *play) {
			modes := player.Elements(player.Member(p.made.Params, "modes", "availableModes"))
			if len(modes) == 0 {
				p.stopf("the agent has no modes")
			}
			for _, mode := range modes {
				id := player.TextOf(mode, "id")
				if id != "" && p.must("MOD-2", "session/set_mode", p.fill(`{"sessionId":{session},"modeId":`)+player.Quote(id)+`}`) != nil {
					p.trait("mode set")
				}
			}
		}, refuses("ERR-4", "session/set_mode", `{"sessionId":{session},"modeId":"acp-probe-no-such-mode"}`, "an unknown mode", -32602),
			prompts("mode"), settled}},
	{Name: "options", Exercises: []string{"CFG-14", "CFG-17", "ERR-4"},
		Text:  "Every offered value of an option can be set, and no other; each answer has all options.",
		steps: []step{ready, setOptions}},
	{Name: "mcp-stdio", Exercises: []string{"SES-25", "SES-28"}, Prompts: []string{"mcp"}, quiet: true,
		Text: "The stdio MCP servers of a session are started with their arguments and variables, and the agent " +
			"connects to them.",
		steps: []step{speaksToMCP}},
	{Name: "mcp-http", Needs: []string{canHTTP}, Exercises: []string{"SES-26", "ADD-3"}, Prompts: []string{"mcp"},
		Text: "The agent connects to the HTTP MCP servers of a session.",
		steps: []step{initialized("all", allCapabilities), func(p *play) {
			url, hits, end := p.serveHTTP(http.StatusServiceUnavailable)
			defer end()
			newWith("ADD-3", func(*play) string {
				return `,"mcpServers":[{"type":"http","name":"probe","url":"` + url + `/mcp","headers":[]}]`
			})(p)
			p.prompt("mcp")
			p.markExercised("SES-26")
			if p.eventually(func() bool { return hits() > 0 }); hits() == 0 {
				p.idleMCP("SES-26",
					"the HTTP MCP server of the session was not spoken to, by the end of its first turn and for a while after it")
			}
		}}},
	{Name: "mcp-unknown", Exercises: []string{"SES-30"},
		Text: "MCP servers of an unknown type or with missing members are refused or left out, and the connection survives.",
		steps: []step{ready, tries("SES-30"), func(p *play) {
			for _, server := range []string{
				`{"type":"pigeon","name":"probe","address":"roof"}`, `{"name":"probe"}`, `{"type":"http","name":"probe"}`, `7`, `null`,
			} {
				p.isAnswered(p.call("session/new", p.fill(`{"cwd":{dir},"mcpServers":[`)+server+`]}`),
					"session/new with the MCP server "+server)
			}
		}, continues("ADD-1", "wrong MCP servers")}},
}

// newWith creates a session with more members of the params, which the agent must serve by the requirement id.
func newWith(id string, more func(*play) string) step {
	return func(p *play) {
		m := p.must(id, "session/new", p.fill(`{"cwd":{dir}`)+more(p)+`}`)
		if m == nil {
			panic(stop{})
		}
		p.opened(m)
	}
}

// closed closes the session if the agent can do that.
func closed(p *play) {
	if p.can(canClose) {
		p.call("session/close", p.fill(sessionParams))
	}
}

// inDirectory prompts for a file, and checks that the agent uses the one in the session's directory.
func inDirectory(id, kind, name string) step {
	return func(p *play) {
		where := "the session's directory " + p.dir
		if id == "SES-23" { // the session has other directories too
			where = "the working directory"
		}
		p.prompt(kind)
		for _, path := range p.pathsSince(p.from) {
			if filepath.Base(path) != name {
				continue // a file of its own choice
			}
			p.check(id, isInside(p.dir, path), "the agent used %s for %s, which is outside %s", path, name, where)
		}
	}
}

// loadsHistory loads a session of two turns in another launch of the agent.
func loadsHistory(p *play) {
	var said []turnText
	record := func(p *play) { said = append(said, p.turnSaid()) }
	reopened("SES-6", "session/load", func(*play) { said = nil }, ready, files("notes.txt"), prompts("text"), record,
		prompts("read"), record, settled)(p)
	p.markExercised("SES-6")
	before := p.LastNumber()
	m := p.must("SES-6", "session/load", p.fill(openParams))
	if m == nil {
		panic(stop{})
	}
	replayed := p.textSince(before, m.Number)
	rest, complete := squeeze(replayed["all"]), true
	for i, said := range said {
		for _, part := range []struct{ who, text string }{{"user", said.user}, {"agent", said.agent}} {
			if part.text != "" && !strings.Contains(squeeze(replayed[part.who]), squeeze(part.text)) {
				p.fail("SES-6", "session/load did not replay what the %s said in turn %d: %s", part.who, i+1,
					player.Clip(part.text))
				complete = false
			}
			if _, after, found := strings.Cut(rest, squeeze(part.text)); found {
				rest = after
			} else if complete {
				p.fail("SES-6", "session/load replayed the conversation in another order: what the %s said in turn %d is "+
					"too early", part.who, i+1)
				complete = false
			}
		}
	}
	p.silence(p.limits.quiet)
	late := p.historySince(m.Number)
	p.check("SES-7", len(late) == 0, "the agent sent history after the answer to session/load: %s",
		strings.Join(late, ", "))
}

// speaksToMCP creates a session with MCP servers, and looks whether the agent starts and uses them.
func speaksToMCP(p *play) {
	if p.options.MCP == nil {
		p.stopf("no fake MCP server is available")
	}
	p.initialize("all", allCapabilities)
	var servers, files []string
	for i := range 2 {
		file := filepath.Join(p.dir, fmt.Sprintf("mcp-%d.log", i))
		command, args := p.options.MCP(file)
		list, _ := json.Marshal(args) // strings can always be encoded
		servers = append(servers, `{"name":"probe`+fmt.Sprint(i)+`","command":`+player.Quote(command)+`,"args":`+string(list)+`,"env":[{"name":"ACP_PROBE_MCP","value":"probe `+fmt.Sprint(i)+`"}]}`)
		files = append(files, file)
	}
	newWith("SES-25", func(*play) string { return `,"mcpServers":[` + strings.Join(servers, ",") + `]` })(p)
	p.prompt("mcp")
	spoken := map[int]string{}
	p.eventually(func() bool {
		for i, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "method ") {
				spoken[i] = string(text)
			}
		}
		return len(spoken) == len(files)
	})
	for i, text := range spoken {
		p.check("SES-25", strings.Contains(text, fmt.Sprintf("env probe %d\n", i)),
			"MCP server %d was started without the variable that the session set", i+1)
	}
	if len(spoken) == 0 {
		p.idleMCP("SES-25",
			"no stdio MCP server of the session was spoken to, by the end of its first turn and for a while after it")
	}
	p.check("SES-28", len(spoken) == 0 || len(spoken) == len(files), "of %d MCP servers, the agent connected to %d",
		len(files), len(spoken))
}

// optionsStay plays steps in a session, and looks whether each list of options that the agent sent in them is complete.
// An option may be gone, but then it cannot be set.
func optionsStay(steps ...step) step {
	return func(p *play) {
		before := p.LastNumber()
		p.do(steps...)
		var now []option
		sent := false
		for _, m := range p.Since(before) {
			if m.Method == "session/update" && m.Text("update", "sessionUpdate") == "config_option_update" {
				now, sent = optionsIn(player.Member(m.Params, "update")), true
			}
		}
		for _, was := range optionsIn(p.made.Params) {
			if sent && find(now, was.id) < 0 && len(was.values) > 0 && p.canSet(was) {
				p.fail("CFG-18", "config_option_update lacks the option %s, which can still be set", was.id)
			}
		}
	}
}

// canSet reports whether an option can be set to the value that it has.
func (p *play) canSet(o option) bool {
	m := p.call("session/set_config_option", p.setting(o, o.current))
	return m != nil && find(optionsIn(m.Params), o.id) >= 0
}

// setting is the params that set an option. Version 2 has a tag in front of the value of a select.
func (p *play) setting(o option, value string) string {
	if o.kind == "select" {
		return p.settingOf(o.id, p.tag()+`"value":`+player.Quote(value))
	}
	return p.settingOf(o.id, `"type":"boolean","value":`+value)
}

func (p *play) settingOf(id, value string) string {
	return `{"sessionId":` + player.Quote(p.session) + `,"configId":` + player.Quote(id) + `,` + value + `}`
}

func (p *play) tag() string {
	if p.isDraft() {
		return `"type":"id",`
	}
	return ""
}

// closeTurn closes the session in the middle of a turn, and returns the turn's stop reason and the time to its end.
func (p *play) closeTurn() (reason string, took time.Duration) {
	var closing string
	began := time.Now()
	p.client.cancel(p.session, func() { closing = p.Ask("session/close", p.fill(sessionParams), "") })
	m := p.await(closing)
	end := p.awaitTurn(p.promptID)
	switch {
	case m == nil:
		p.fail("SES-15", "%s", p.why("session/close during a turn was not answered"))
	case m.Kind == conformance.ErrorReply:
		p.fail("SES-15", "session/close during a turn was answered with an error: %s", player.AnswerText(m))
	case end == nil:
		p.fail("SES-15", "%s", p.why("the prompt of a closed session was not answered"))
	case end.Kind == conformance.ErrorReply:
		p.fail("SES-15", "the prompt of a closed session ended with an error: %s", player.AnswerText(end))
	default:
		if reason = end.Text("stopReason"); reason == "cancelled" {
			p.trait("closed in a turn")
		}
		took = end.Time.Sub(began)
	}
	return reason, took
}

// setOptions sets each value of the options that the session has, and looks whether each answer to that is complete.
func setOptions(p *play) {
	options := optionsIn(p.made.Params)
	if len(options) == 0 {
		p.stopf("the agent has no options")
	}
	refused := func(id, value, what string) {
		p.requireError("ERR-4", p.call("session/set_config_option", p.settingOf(id, value)), what, -32602)
	}
	// One option may decide which others there are, and which values they have.
	now := options
	for _, o := range options {
		// What it has already comes first: where nothing changes, nothing may be left out.
		for _, v := range append([]string{o.current}, o.values[:min(len(o.values), 5)]...) {
			i := find(now, o.id)
			if i < 0 || now[i].kind != o.kind || !slices.Contains(now[i].values, v) {
				continue
			}
			before := now
			m := p.must("CFG-17", "session/set_config_option", p.setting(o, v))
			if m == nil {
				continue
			}
			now = optionsIn(m.Params)
			for _, was := range before {
				switch {
				case find(now, was.id) >= 0:
					continue
				case before[i].current == v:
					p.fail("CFG-17", "the answer lacks the option %s, although %s had this value before", was.id, o.id)
				case len(was.values) > 0 && p.canSet(was):
					p.fail("CFG-17", "the answer lacks the option %s, which can still be set", was.id)
				default:
					continue
				}
				now = append(now, was)
			}
		}
		if o.kind == "select" {
			refused(o.id, p.tag()+`"value":"acp-probe-no-such-value"`, "an unknown value of the option "+o.id)
		}
	}
	refused("acp-probe-no-such-option", p.tag()+`"value":"x"`, "an unknown option")
	refused(options[0].id, `"type":"slider","value":3`, "a value of an unknown type")
}

// eventually looks from time to time, until something is so or for as long as a silence lasts: what happens beside the
// connection wakes nobody.
func (p *play) eventually(so func() bool) {
	const moment = 20 * time.Millisecond
	for end := time.Now().Add(p.limits.quiet); !so() && time.Now().Before(end) && p.ctx.Err() == nil; {
		p.sleep(moment)
		if p.HasEnded() {
			return
		}
	}
}

// idleMCP reports that the session has made no use of its MCP servers. An agent may connect when it needs a tool: that
// it does not is certain only for a prompt that is known to have it use one.
func (p *play) idleMCP(id, what string) {
	if p.certain("mcp") {
		p.fail(id, "%s", what)
		return
	}
	p.doubt(id, "%s; an agent that needs none of their tools may do that", what)
}

// reopened makes a session by steps, and starts the agent anew for it to be loaded or resumed there. An agent that
// keeps its sessions in memory does not know it: then it is one of the same launch, closed if it can be.
func reopened(id, method string, steps ...step) step {
	return func(p *play) {
		p.do(steps...)
		again := func() {
			p.initialize(p.caps, string(p.client.granted))
			p.client.session(p.session, p.dir)
		}
		again()
		if m := p.call(method, p.fill(openParams)); m.Code() == -32002 {
			p.failAt(id, conformance.Advice, "the next launch of the agent does not know the session: %s", player.AnswerText(m))
			p.do(steps...)
			closed(p)
			return
		}
		again()
	}
}

// moves opens the session in another directory, which the agent may refuse, but not ignore, as a list shows to the
// judge.
func moves(method string) step {
	return func(p *play) {
		elsewhere := p.folder("elsewhere")
		if !p.can(canList) {
			return
		}
		p.client.session(p.session, elsewhere)
		params := `{"sessionId":` + player.Quote(p.session) + `,"cwd":` + player.Quote(elsewhere) + `,"mcpServers":[]}`
		if m := p.call(method, params); m != nil && m.Kind == conformance.Response {
			p.markExercised("SES-21")
			p.list("LST-5", `"cwd":`+player.Quote(p.dir))
		}
	}
}

// neverListed lists the sessions of a directory that was never used.
func neverListed(p *play) {
	sessions, _ := p.list("LST-8", `"cwd":`+player.Quote(p.folder("never used")))
	p.check("LST-8", len(sessions) == 0, "the agent listed %d sessions in a directory that was never used", len(sessions))
}

// isInside reports whether a path is in a directory.
func isInside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// pathsSince are the paths that the agent has used for files since a message.
func (p *play) pathsSince(number int) []string {
	var paths []string
	for _, m := range p.Since(number) {
		if !p.IsTheirs(m) {
			continue
		}
		if strings.HasPrefix(m.Method, "fs/") && m.Kind == conformance.Request {
			paths = append(paths, m.Text("path"))
		}
		for _, location := range player.Elements(player.Member(m.Params, "update", "locations")) {
			if player.IsSet(location, "path") {
				paths = append(paths, player.TextOf(location, "path"))
			}
		}
	}
	return paths
}

// turnText is what was said in a turn.
type turnText struct{ user, agent string }

// turnSaid is what the user and the agent have said in the turn of the latest prompt.
func (p *play) turnSaid() (said turnText) {
	said.agent = p.textSince(p.from, 1<<62)["agent"]
	for _, m := range p.Since(p.from) {
		if m.Method == "session/prompt" && m.Kind == conformance.Request {
			for _, block := range player.Elements(player.Member(m.Params, "prompt")) {
				said.user += player.TextOf(block, "text")
			}
		}
	}
	return said
}

// textSince is the text of the messages of the user, of the agent, and of both that came between two messages.
func (p *play) textSince(from, to int) map[string]string {
	text := map[string]string{}
	for _, m := range p.Since(from) {
		if m.Number < to && m.Method == "session/update" {
			who, ok := strings.CutSuffix(m.Text("update", "sessionUpdate"), "_message_chunk")
			said := m.Text("update", "content", "text")
			if text[who] += said; ok {
				text["all"] += said
			}
		}
	}
	return text
}

// historySince are the kinds of history that came after a message.
func (p *play) historySince(number int) []string {
	var kinds []string
	for _, m := range p.Since(number) {
		if kind := m.Text("update", "sessionUpdate"); m.Method == "session/update" &&
			(ofTurn(kind) || kind == "user_message_chunk") {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// squeeze is a text without its white space, which agents may keep otherwise.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

// listed is a session of a list.
type listed struct {
	id, cwd string
	entry   string // the whole entry without _meta, as JSON
}

// maxPages bounds how much of a list is read, and maxOwnPages how much of one of the scenario's own directory, where
// there are only a few sessions.
const (
	maxPages    = 1000
	maxOwnPages = 50
)

// list reads a list of sessions to its end. That it is served is what the requirement id wants.
func (p *play) list(id, filter string) (sessions []listed, pages int) {
	p.markExercised("LST-5")
	limit := maxPages
	if filter != "" {
		limit = maxOwnPages
	}
	cursor, cursors, known := "", map[string]bool{}, map[string]bool{}
	for pages = 1; pages <= limit; pages++ {
		m := p.must(id, "session/list", `{`+strings.Trim(filter+`,`+cursor, ",")+`}`)
		if m == nil {
			return sessions, pages
		}
		if !player.IsSet(m.Params, "sessions") {
			p.fail("LST-8", "session/list was not answered with a list: %s", player.Clip(string(m.Params)))
		}
		entries, old := player.Elements(player.Member(m.Params, "sessions")), 0
		for _, s := range entries {
			var entry map[string]any
			if json.Unmarshal(s, &entry) != nil {
				continue
			}
			delete(entry, "_meta")
			text, _ := json.Marshal(entry) // it was JSON
			l := listed{entry: string(text)}
			l.id, _ = entry["sessionId"].(string)
			l.cwd, _ = entry["cwd"].(string)
			if known[l.id] {
				old++
			}
			known[l.id] = true
			sessions = append(sessions, l)
		}
		if pages > 1 && old > 0 && old == len(entries) {
			p.fail("LST-5", "page %d of session/list has only sessions of earlier pages: %s", pages,
				player.AnswerText(m))
			return sessions, pages
		}
		if !player.IsSet(m.Params, "nextCursor") {
			return sessions, pages
		}
		next := player.Canonical(string(player.Member(m.Params, "nextCursor")))
		if cursors[next] {
			p.fail("LST-5", "page %d of session/list has the cursor %s of an earlier page, so the list never ends", pages,
				player.Clip(next))
			return sessions, pages
		}
		cursors[next], cursor = true, `"cursor":`+next
	}
	own := slices.DeleteFunc(slices.Clone(sessions), func(l listed) bool { return l.cwd != p.dir })
	if text := fmt.Sprintf("session/list did not end within %d pages", limit); len(own) >= limit {
		p.fail("LST-5", "%s; in the directory of the scenario are only its own sessions", text)
	} else {
		p.doubt("LST-5", "%s", text)
	}
	return sessions, pages
}

// checkLists lists the sessions of the scenario's directory, which it returns, and all, and looks whether that changes
// the former. The agent may change them of its own accord, such as by finding a title, but hardly each time.
func (p *play) checkLists() []listed {
	p.settle()
	first, pages := p.list("LST-5", `"cwd":`+player.Quote(p.dir))
	if _, pages := p.list("LST-5", ""); pages > 1 {
		p.markExercised("LST-12")
	}
	p.markExercised("LST-14")
	if pages > maxOwnPages {
		return first // it is broken already
	}
	var changes []string
	before := first
	for range 2 {
		after, _ := p.list("LST-5", `"cwd":`+player.Quote(p.dir))
		for _, change := range [][2][]listed{{before, after}, {after, before}} {
			i := slices.IndexFunc(change[0], func(l listed) bool { return l.cwd == p.dir && !slices.Contains(change[1], l) })
			if i >= 0 {
				changes = append(changes, change[0][i].entry)
				break
			}
		}
		before = after
	}
	switch len(changes) {
	case 2:
		p.fail("LST-14", "session/list changes what the next one lists: %s", player.Clip(changes[1]))
	case 1:
		p.doubt("LST-14", "session/list seems to have changed what the next one listed: %s", player.Clip(changes[0]))
	}
	return first
}

// option is a session option.
type option struct {
	id, kind string
	current  string // the value; of a boolean, as JSON
	values   []string
}

// find is the index of the option with an id, -1 if there is none.
func find(options []option, id string) int {
	return slices.IndexFunc(options, func(o option) bool { return o.id == id })
}

// optionsIn are the options of an answer or an update.
func optionsIn(params json.RawMessage) []option {
	var options []option
	for _, item := range player.Elements(player.Member(params, "configOptions")) {
		var o struct {
			ID, ConfigID string
			Type         string
			CurrentValue any
			Options      []struct {
				Value   *string
				Options []struct{ Value string }
			}
		}
		if json.Unmarshal(item, &o) != nil {
			continue
		}
		read := option{id: cmp.Or(o.ID, o.ConfigID), kind: o.Type, current: fmt.Sprint(o.CurrentValue)}
		if o.Type == "boolean" {
			read.values = []string{"true", "false"}
		}
		for _, v := range o.Options {
			if v.Value != nil {
				read.values = append(read.values, *v.Value)
			}
			for _, inner := range v.Options {
				read.values = append(read.values, inner.Value)
			}
		}
		options = append(options, read)
	}
	return options
}
