// Scenarios of sessions: making, loading, resuming, listing, closing, deleting; modes and options; MCP servers.

package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/conformance"
)

var sessionScenarios = []Scenario{
	{
		Name: "sessions", quiet: true,
		Text:      "Several sessions, created one after the other and at the same time, have distinct ids.",
		Exercises: []string{"SES-2", "SES-31"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			ids := map[string]bool{p.newSession(): true}
			ids[p.newSession()] = true
			params := `{"cwd":` + quote(p.dir) + `,"mcpServers":[]}`
			var asked []string
			for range 4 {
				asked = append(asked, p.ask("session/new", params, ""))
			}
			p.markExercised("SES-2", "SES-31")
			answered := 2
			for _, id := range asked {
				m := p.await(id)
				if m == nil {
					p.failAt("OVW-3", conformance.Must, "%s", p.why("one of four simultaneous session/new requests was not answered"))
					return
				}
				if m.kind == conformance.Response {
					answered++
					ids[m.text("sessionId")] = true
				}
			}
			p.check("SES-2", len(ids) == answered, "%d sessions have only %d distinct ids", answered, len(ids))
			p.quiet(p.ctx, p.limits.quiet)
		},
	},
	{
		Name: "working-directory",
		Text: "A session's directory is not that of the process: the agent resolves relative names in it, in the " +
			"first turn and in the second.",
		Exercises: []string{"SES-21", "SES-22"}, Prompts: []string{"read", "edit"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			p.dir = p.folder("a folder, with ä and spaces")
			p.file("notes.txt", "Notes of the probe.\n")
			p.file("demo.txt", "A file of the probe.\n")
			session := p.newSession()
			for i, kind := range []string{"read", "edit"} {
				before := p.count()
				p.prompt(session, kind)
				id, name := []string{"SES-21", "SES-22"}[i], []string{"notes.txt", "demo.txt"}[i]
				for _, path := range p.pathsSince(before) {
					if filepath.Base(path) != name {
						continue // a file of its own choice
					}
					p.check(id, isInside(p.dir, path), "the agent used %s for %s, which is outside the session's directory %s", path,
						name, p.dir)
				}
			}
		},
	},
	{
		Name:      "bad-directories",
		Text:      "A session in a relative or empty directory is refused.",
		Exercises: []string{"ERR-4"},
		run: func(p *play) {
			p.ready()
			for _, cwd := range []string{"relative/path", ".", ""} {
				m := p.call("session/new", `{"cwd":`+quote(cwd)+`,"mcpServers":[]}`)
				p.requireError("ERR-4", m, "session/new with the cwd "+quote(cwd), wrongParams...)
			}
			// Whether a missing directory is refused or made is the agent's choice.
			if p.call("session/new", `{"cwd":`+quote(filepath.Join(p.dir, "missing"))+`,"mcpServers":[]}`) == nil {
				p.failAt("OVW-3", conformance.Must, "%s", p.why("session/new without a cwd was not answered"))
			}
			p.checkAlive("ADD-1", "bad directories")
		},
	},
	{
		Name: "additional-directories", Needs: []string{canRoots},
		Text:      "A session with additional directories is created, and its working directory is still one of its roots.",
		Exercises: []string{"ADD-3", "SES-23", "ERR-4"}, Prompts: []string{"read"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			other := p.folder("other")
			p.markExercised("ADD-3")
			params := `{"cwd":` + quote(p.dir) + `,"mcpServers":[],"additionalDirectories":[` + quote(other) + `]}`
			m := p.must("ADD-3", "session/new", params)
			if m == nil {
				return
			}
			session := m.text("sessionId")
			p.client.session(session, p.dir)
			p.file("notes.txt", "Notes of the probe.\n")
			before := p.count()
			p.prompt(session, "read")
			for _, path := range p.pathsSince(before) {
				if filepath.Base(path) == "notes.txt" {
					p.check("SES-23", isInside(p.dir, path), "the agent used %s for notes.txt, which is outside the working directory",
						path)
				}
			}
			m = p.call("session/new", `{"cwd":`+quote(p.dir)+`,"mcpServers":[],"additionalDirectories":["relative"]}`)
			p.requireError("ERR-4", m, "session/new with a relative additional directory", wrongParams...)
		},
	},
	{
		Name:      "unknown-session",
		Text:      "Requests for a session that does not exist are refused with -32002 and its id.",
		Exercises: []string{"ERR-5", "ADD-1"},
		run: func(p *play) {
			p.ready()
			requests := []struct{ method, capability, params string }{
				{"session/prompt", "", `{"sessionId":"` + noSession + `","prompt":[{"type":"text","text":"hello"}]}`},
				{"session/set_mode", "modes", `{"sessionId":"` + noSession + `","modeId":"x"}`},
				{"session/set_config_option", "options", `{"sessionId":"` + noSession + `","configId":"x","value":"y"}`},
				{"session/load", loadSession, withSession(`,"mcpServers":[]`)(noSession, p.dir)},
				{"session/resume", canResume, withSession(`,"mcpServers":[]`)(noSession, p.dir)},
			}
			for _, r := range requests {
				switch {
				case r.capability == "modes" || r.capability == "options":
					if !p.saw(r.capability) {
						continue
					}
				case r.capability != "" && !p.can(r.capability):
					continue
				}
				m := p.call(r.method, r.params)
				p.requireError("ERR-5", m, r.method+" for an unknown session", -32002)
				if m.code() == -32002 && m.text("data", "sessionId") != noSession {
					p.failAt("ERR-5", conformance.Advice, "the error of %s does not name the session in data.sessionId: %s", r.method,
						clip(string(m.params)))
				}
			}
			p.checkAlive("ADD-1", "requests for an unknown session")
		},
	},
	{
		Name: "load", Needs: []string{loadSession},
		Text: "A session of two turns is loaded in another launch: the whole conversation is replayed before the " +
			"answer, and the session can be prompted; loaded in another directory, it is there.",
		Exercises: []string{"SES-6", "SES-7", "SES-21", "ADD-12"}, Prompts: []string{"text", "read"}, quiet: true,
		run: func(p *play) {
			var first, second turnText
			talk := func() string {
				session := p.ready()
				p.file("notes.txt", "Notes of the probe.\n")
				first = p.recordTurn(func() { p.prompt(session, "text") })
				second = p.recordTurn(func() { p.prompt(session, "read") })
				p.settle()
				return session
			}
			session := p.reopen("SES-6", "session/load", talk)
			p.markExercised("SES-6")
			before := p.count()
			m := p.must("SES-6", "session/load", withSession(`,"mcpServers":[]`)(session, p.dir))
			if m == nil {
				return
			}
			replayed := p.textSince(before, m.number)
			rest, complete := squeeze(replayed["all"]), true
			for i, said := range []turnText{first, second} {
				for _, part := range []struct{ who, text string }{{"user", said.user}, {"agent", said.agent}} {
					if part.text != "" && !strings.Contains(squeeze(replayed[part.who]), squeeze(part.text)) {
						p.fail("SES-6", "session/load did not replay what the %s said in turn %d: %s", part.who, i+1, clip(part.text))
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
			p.quiet(p.ctx, p.limits.quiet)
			p.check("SES-7", len(p.historySince(m.number)) == 0, "the agent sent history after the answer to session/load: %s",
				strings.Join(p.historySince(m.number), ", "))
			p.prompt(session, "text")
			p.moves(session, "session/load")
		},
	},
	{
		Name: "load-here", Needs: []string{loadSession},
		Text:      "An active session is loaded again by the same client, or refused; it can be prompted afterwards.",
		Exercises: []string{"ADD-1"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			p.prompt(session, "text")
			if p.call("session/load", withSession(`,"mcpServers":[]`)(session, p.dir)) == nil {
				p.failAt("OVW-3", conformance.Must, "%s", p.why("session/load of an active session was not answered"))
				return
			}
			p.prompt(session, "text")
		},
	},
	{
		Name: "resume", Needs: []string{canResume},
		Text: "A session is resumed in another launch without a replay, and can be prompted; resumed in another " +
			"directory, it is there.",
		Exercises: []string{"SES-11", "SES-21"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.reopen("SES-11", "session/resume", func() string {
				session := p.ready()
				p.prompt(session, "text")
				p.settle()
				return session
			})
			if p.must("SES-11", "session/resume", withSession(`,"mcpServers":[]`)(session, p.dir)) == nil {
				return
			}
			p.prompt(session, "text")
			p.moves(session, "session/resume")
		},
	},
	{
		Name: "resume-terse", Needs: []string{canResume},
		Text:      "A session is resumed by a client that leaves mcpServers out.",
		Exercises: []string{"SES-11"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.reopen("SES-11", "session/resume", func() string {
				p.initialize("none", noCapabilities)
				session := p.newSession()
				p.prompt(session, "text")
				p.settle()
				return session
			})
			p.must("SES-11", "session/resume", withSession("")(session, p.dir))
		},
	},
	{
		Name: "list", Needs: []string{canList},
		Text: "Sessions are listed: all of them, those of one directory, those of a directory that was never used, " +
			"and after a wrong cursor.",
		Exercises: []string{"LST-5", "LST-8", "LST-11", "LST-12", "LST-14"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			p.prompt(session, "text")
			for _, s := range p.checkLists() {
				if s.cwd != p.dir {
					p.failAt("LST-5", conformance.Should, "session/list with the cwd %s listed a session in %s", p.dir, s.cwd)
				}
			}
			none, _ := p.list("LST-8", `"cwd":`+quote(p.folder("never used")))
			p.check("LST-8", len(none) == 0, "the agent listed %d sessions in a directory that was never used", len(none))
			p.requireError("LST-11", p.call("session/list", `{"cursor":"acp-probe-bogus"}`), "session/list with a made-up cursor", -32602)
			if m := p.call("session/prompt", `{"sessionId":"`+noSession+`","prompt":[{"type":"text","text":"hello"}]}`); m != nil && m.kind == conformance.Response {
				p.fail("LST-14", "after session/list, the agent accepted a prompt for a session that was never created")
			}
		},
	},
	{
		Name: "delete", Needs: []string{canDelete},
		Text:      "A session is deleted twice, and is gone from the list.",
		Exercises: []string{"DEL-5", "DEL-6"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			p.prompt(session, "text")
			if p.can(canClose) {
				p.call("session/close", onlySession(session, ""))
			}
			if p.must("DEL-6", "session/delete", onlySession(session, "")) == nil {
				return
			}
			p.must("DEL-5", "session/delete", onlySession(session, ""))
			p.must("DEL-5", "session/delete", onlySession(noSession, ""))
			if p.can(canList) {
				p.trait("listed after deletion")
				sessions, _ := p.list("LST-5", `"cwd":`+quote(p.dir))
				for _, s := range sessions {
					if s.id == session {
						p.fail("DEL-4", "the agent still lists a deleted session")
					}
				}
			}
		},
	},
	{
		Name: "close", Needs: []string{canClose},
		Text:      "An idle session is closed twice; afterwards it accepts no prompt.",
		Exercises: []string{"SES-16", "SES-15"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			p.prompt(session, "text")
			if p.must("SES-16", "session/close", onlySession(session, "")) == nil {
				return
			}
			p.requireError("SES-15", p.call("session/prompt", p.promptParams(session, "text")), "a prompt for a closed session")
			p.call("session/close", onlySession(session, ""))
			p.call("session/close", onlySession(noSession, ""))
			p.checkAlive("ADD-1", "session/close")
			p.newSession()
		},
	},
	{
		Name: "close-in-a-turn", Needs: []string{canClose},
		Text: "A session is closed in the middle of a turn: the prompt is answered as cancelled, then session/close " +
			"is answered.",
		Exercises: []string{"SES-15"}, Prompts: []string{"long"},
		run: func(p *play) {
			session, id, ok := p.streaming(2)
			if !ok {
				return
			}
			p.markExercised("SES-15")
			reason, took := p.closeTurn(session, id)
			p.checkStops("SES-15", reason, took, func(lasts time.Duration) (string, time.Duration, bool) {
				session := p.newSession()
				id := p.begin(session, "long")
				running := p.updates(id, "", 3) && !p.wait(p.ctx, lasts, func() bool { return len(p.answers[id]) > 0 })
				reason, took := p.closeTurn(session, id)
				return reason, took, running
			})
		},
	},
	{
		Name:      "modes",
		Text:      "Every offered mode can be set, and no other.",
		Exercises: []string{"MOD-2", "MOD-3", "ERR-4", "CFG-22"}, Prompts: []string{"mode"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			session, m := p.sessionAnswer()
			modes := elements(member(m.params, "modes", "availableModes"))
			if len(modes) == 0 {
				p.stopf("the agent has no modes")
			}
			for _, mode := range modes {
				var id string
				if json.Unmarshal(member(mode, "id"), &id) != nil {
					continue
				}
				if p.must("MOD-2", "session/set_mode", `{"sessionId":`+quote(session)+`,"modeId":`+quote(id)+`}`) != nil {
					p.trait("mode set")
				}
			}
			p.requireError("ERR-4", p.call("session/set_mode", `{"sessionId":`+quote(session)+`,"modeId":"acp-probe-no-such-mode"}`), "an unknown mode", -32602)
			p.prompt(session, "mode")
			p.settle()
		},
	},
	{
		Name:      "options",
		Text:      "Every offered value of an option can be set, and no other; each answer has all options.",
		Exercises: []string{"CFG-14", "CFG-17", "ERR-4"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			session, m := p.sessionAnswer()
			p.setOptions(session, m, "")
		},
	},
	{
		Name: "mcp-stdio",
		Text: "The stdio MCP servers of a session are started with their arguments and variables, and the agent " +
			"connects to them.",
		Exercises: []string{"SES-25", "SES-28"}, Prompts: []string{"mcp"}, quiet: true,
		run: func(p *play) {
			if p.options.MCP == nil {
				p.stopf("no fake MCP server is available")
			}
			p.initialize("all", allCapabilities)
			var servers, files []string
			for i := range 2 {
				file := filepath.Join(p.dir, fmt.Sprintf("mcp-%d.log", i))
				command, args := p.options.MCP(file)
				list, _ := json.Marshal(args) // strings can always be encoded
				servers = append(servers, `{"name":"probe`+fmt.Sprint(i)+`","command":`+quote(command)+`,"args":`+string(list)+`,"env":[{"name":"ACP_PROBE_MCP","value":"probe `+fmt.Sprint(i)+`"}]}`)
				files = append(files, file)
			}
			params := `{"cwd":` + quote(p.dir) + `,"mcpServers":[` + strings.Join(servers, ",") + `]}`
			m := p.must("SES-25", "session/new", params)
			if m == nil {
				return
			}
			session := m.text("sessionId")
			p.client.session(session, p.dir)
			p.prompt(session, "mcp")
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
				p.idleMCP(session, "SES-25",
					"no stdio MCP server of the session was spoken to, by the end of its first turn and for a while after it")
			}
			p.check("SES-28", len(spoken) == 0 || len(spoken) == len(files), "of %d MCP servers, the agent connected to %d",
				len(files), len(spoken))
		},
	},
	{
		Name: "mcp-http", Needs: []string{canHTTP},
		Text:      "The agent connects to the HTTP MCP servers of a session.",
		Exercises: []string{"SES-26", "ADD-3"}, Prompts: []string{"mcp"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			var hits atomic.Int64
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				p.stopf("the MCP server could not be started: %v", err)
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				hits.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			})}
			done := make(chan struct{})
			go func() { defer close(done); server.Serve(listener) }() // ends by Close
			defer func() { server.Close(); <-done }()
			m := p.must("ADD-3", "session/new", `{"cwd":`+quote(p.dir)+`,"mcpServers":[{"type":"http","name":"probe","url":"http://`+listener.Addr().String()+`/mcp","headers":[]}]}`)
			if m == nil {
				return
			}
			p.client.session(m.text("sessionId"), p.dir)
			p.prompt(m.text("sessionId"), "mcp")
			p.markExercised("SES-26")
			if p.eventually(func() bool { return hits.Load() > 0 }); hits.Load() == 0 {
				p.idleMCP(m.text("sessionId"), "SES-26",
					"the HTTP MCP server of the session was not spoken to, by the end of its first turn and for a while after it")
			}
		},
	},
	{
		Name: "mcp-unknown",
		Text: "MCP servers of an unknown type or with missing members are refused or left out, and the connection " +
			"survives.",
		Exercises: []string{"SES-30"},
		run: func(p *play) {
			p.ready()
			p.markExercised("SES-30")
			for _, server := range []string{
				`{"type":"pigeon","name":"probe","address":"roof"}`, `{"name":"probe"}`, `{"type":"http","name":"probe"}`, `7`, `null`,
			} {
				m := p.call("session/new", `{"cwd":`+quote(p.dir)+`,"mcpServers":[`+server+`]}`)
				if m == nil {
					p.failAt("OVW-3", conformance.Must, "%s", p.why("session/new with the MCP server "+server+" was not answered"))
				}
			}
			p.checkAlive("ADD-1", "wrong MCP servers")
		},
	},
}

// checkOptionUpdates looks whether each list of options that the agent sent since a message is complete. An option may
// be gone, but then it cannot be set.
func (p *play) checkOptionUpdates(session string, had []option, number int, tag string) {
	p.conn.mu.Lock()
	var now []option
	sent := false
	for _, m := range p.kept {
		if m.number > number && m.method == "session/update" && m.text("update", "sessionUpdate") == "config_option_update" {
			now, sent = optionsIn(member(m.params, "update")), true
		}
	}
	p.conn.mu.Unlock()
	for _, was := range had {
		if !sent || find(now, was.id) >= 0 || len(was.values) == 0 {
			continue
		}
		if find(optionsOf(p.call("session/set_config_option", setting(session, was, was.current, tag))), was.id) >= 0 {
			p.fail("CFG-18", "config_option_update lacks the option %s, which can still be set", was.id)
		}
	}
}

// setting is the params that set an option. The tag is what version 2 has in front of the value of a select.
func setting(session string, o option, value, tag string) string {
	text := `"type":"boolean","value":` + value
	if o.kind == "select" {
		text = tag + `"value":` + quote(value)
	}
	return `{"sessionId":` + quote(session) + `,"configId":` + quote(o.id) + `,` + text + `}`
}

// closeTurn closes a session in the middle of a turn, and returns the turn's stop reason and the time to its end.
func (p *play) closeTurn(session, id string) (reason string, took time.Duration) {
	var closing string
	began := time.Now()
	p.client.cancel(session, func() { closing = p.ask("session/close", onlySession(session, ""), "") })
	m := p.await(closing)
	end := p.awaitTurn(id)
	switch {
	case m == nil:
		p.fail("SES-15", "%s", p.why("session/close during a turn was not answered"))
	case m.kind == conformance.ErrorReply:
		p.fail("SES-15", "session/close during a turn was answered with an error: %s", clip(string(m.params)))
	case end == nil:
		p.fail("SES-15", "%s", p.why("the prompt of a closed session was not answered"))
	case end.kind == conformance.ErrorReply:
		p.fail("SES-15", "the prompt of a closed session ended with an error: %s", clip(string(end.params)))
	default:
		if reason = end.text("stopReason"); reason == "cancelled" {
			p.trait("closed in a turn")
		}
		took = end.time.Sub(began)
	}
	return reason, took
}

// setOptions sets each value of the options that an answer has, and looks whether each answer to that is complete. The
// tag is what version 2 has in front of the value of a select.
func (p *play) setOptions(session string, m *message, tag string) {
	options := optionsOf(m)
	if len(options) == 0 {
		p.stopf("the agent has no options")
	}
	set := func(id, value string) string {
		return `{"sessionId":` + quote(session) + `,"configId":` + quote(id) + `,` + value + `}`
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
			m := p.must("CFG-17", "session/set_config_option", setting(session, o, v, tag))
			if m == nil {
				continue
			}
			now = optionsOf(m)
			for _, was := range before {
				switch {
				case find(now, was.id) >= 0:
					continue
				case before[i].current == v:
					p.fail("CFG-17", "the answer lacks the option %s, although %s had this value before", was.id, o.id)
				case len(was.values) > 0 &&
					find(optionsOf(p.call("session/set_config_option", setting(session, was, was.current, tag))), was.id) >= 0:
					p.fail("CFG-17", "the answer lacks the option %s, which can still be set", was.id)
				default:
					continue
				}
				now = append(now, was)
			}
		}
		if o.kind == "select" {
			p.requireError("ERR-4", p.call("session/set_config_option", set(o.id, tag+`"value":"acp-probe-no-such-value"`)), "an unknown value of the option "+o.id, -32602)
		}
	}
	p.requireError("ERR-4", p.call("session/set_config_option", set("acp-probe-no-such-option", tag+`"value":"x"`)), "an unknown option", -32602)
	p.requireError("ERR-4", p.call("session/set_config_option", set(options[0].id, `"type":"slider","value":3`)), "a value of an unknown type", -32602)
}

// eventually looks from time to time, until something is so or for as long as a silence lasts: what happens beside the
// connection wakes nobody.
func (p *play) eventually(so func() bool) {
	const step = 20 * time.Millisecond
	for end := time.Now().Add(p.limits.quiet); !so() && time.Now().Before(end) && p.ctx.Err() == nil; {
		p.wait(p.ctx, step, func() bool { return false })
		if p.hasEnded() {
			return
		}
	}
}

// idleMCP reports that a session has made no use of its MCP servers. An agent may connect when it needs a tool: that it
// does not is certain only for a prompt that is known to have it use one.
func (p *play) idleMCP(session, id, what string) {
	if p.certain(session, "mcp") {
		p.fail(id, "%s", what)
		return
	}
	p.doubt(id, "%s; an agent that needs none of their tools may do that", what)
}

// reopen makes a session by talk, and starts the agent anew for it to be loaded or resumed there. An agent that keeps
// its sessions in memory does not know it: then it is one of the same launch, closed if it can be.
func (p *play) reopen(id, method string, talk func() string) string {
	session := talk()
	caps, granted := p.caps, string(p.client.granted)
	p.initialize(caps, granted)
	p.client.session(session, p.dir)
	if m := p.call(method, withSession(`,"mcpServers":[]`)(session, p.dir)); m.code() == -32002 {
		p.failAt(id, conformance.Advice, "the next launch of the agent does not know the session: %s", clip(string(m.params)))
		session = talk()
		if p.can(canClose) {
			p.call("session/close", onlySession(session, ""))
		}
		return session
	}
	p.initialize(caps, granted)
	p.client.session(session, p.dir)
	return session
}

// moves opens a session in another directory, which the agent may refuse, but not ignore, as a list shows to the judge.
func (p *play) moves(session, method string) {
	elsewhere := p.folder("elsewhere")
	if !p.can(canList) {
		return
	}
	p.client.session(session, elsewhere)
	if m := p.call(method, withSession(`,"mcpServers":[]`)(session, elsewhere)); m != nil && m.kind == conformance.Response {
		p.markExercised("SES-21")
		p.list("LST-5", `"cwd":`+quote(p.dir))
	}
}

// folder makes a folder in the scratch folder.
func (p *play) folder(name string) string {
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		p.stopf("the scratch folder could not be used: %v", err)
	}
	return path
}

// isInside reports whether a path is in a directory.
func isInside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// pathsSince are the paths that the agent has used for files since a message.
func (p *play) pathsSince(number int) []string {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	var paths []string
	for _, m := range p.kept {
		if m.number <= number || m.direction != p.fromPeer() {
			continue
		}
		if strings.HasPrefix(m.method, "fs/") && m.kind == conformance.Request {
			paths = append(paths, m.text("path"))
		}
		for _, location := range elements(member(m.params, "update", "locations")) {
			var path string
			if json.Unmarshal(member(location, "path"), &path) == nil {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// sessionAnswer makes a session and returns its id and the answer.
func (p *play) sessionAnswer() (string, *message) {
	id := p.newSession()
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	var found *message
	for _, m := range p.kept {
		if m.kind == conformance.Response && m.method == "session/new" && m.text("sessionId") == id {
			found = m
		}
	}
	if found == nil {
		p.stopf("the answer to session/new was too long to keep")
	}
	return id, found
}

// turnText is what was said in a turn.
type turnText struct{ user, agent string }

// recordTurn is what the user and the agent say in a turn.
func (p *play) recordTurn(turn func()) turnText {
	before := p.count()
	turn()
	text := p.textSince(before, 1<<62)
	said := turnText{agent: text["agent"]}
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	for _, m := range p.kept {
		if m.number > before && m.method == "session/prompt" && m.kind == conformance.Request {
			for _, block := range elements(member(m.params, "prompt")) {
				var b struct{ Text string }
				if json.Unmarshal(block, &b) == nil {
					said.user += b.Text
				}
			}
		}
	}
	return said
}

// textSince is the text of the messages of the user, of the agent, and of both that came between two messages.
func (p *play) textSince(from, to int) map[string]string {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	text := map[string]string{}
	for _, m := range p.kept {
		if m.number > from && m.number < to && m.method == "session/update" {
			who, ok := strings.CutSuffix(m.text("update", "sessionUpdate"), "_message_chunk")
			said := m.text("update", "content", "text")
			if text[who] += said; ok {
				text["all"] += said
			}
		}
	}
	return text
}

// historySince are the kinds of history that came after a message.
func (p *play) historySince(number int) []string {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	var kinds []string
	for _, m := range p.kept {
		if kind := m.text("update", "sessionUpdate"); m.number > number && m.method == "session/update" &&
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
		if !isSet(m.params, "sessions") {
			p.fail("LST-8", "session/list was not answered with a list: %s", clip(string(m.params)))
		}
		entries, old := elements(member(m.params, "sessions")), 0
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
			p.fail("LST-5", "page %d of session/list has only sessions of earlier pages: %s", pages, clip(string(m.params)))
			return sessions, pages
		}
		if !isSet(m.params, "nextCursor") {
			return sessions, pages
		}
		next := canonical(string(member(m.params, "nextCursor")))
		if cursors[next] {
			p.fail("LST-5", "page %d of session/list has the cursor %s of an earlier page, so the list never ends", pages,
				clip(next))
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
	first, pages := p.list("LST-5", `"cwd":`+quote(p.dir))
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
		after, _ := p.list("LST-5", `"cwd":`+quote(p.dir))
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
		p.fail("LST-14", "session/list changes what the next one lists: %s", clip(changes[1]))
	case 1:
		p.doubt("LST-14", "session/list seems to have changed what the next one listed: %s", clip(changes[0]))
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

// optionsOf are the options of an answer.
func optionsOf(m *message) []option {
	if m == nil {
		return nil
	}
	return optionsIn(m.params)
}

func optionsIn(params json.RawMessage) []option {
	var options []option
	for _, item := range elements(member(params, "configOptions")) {
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
