// Scenarios of the wire: ids, methods, lines that are not a message, long and slow ones, the end of the input.

package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

var wireScenarios = []Scenario{
	{
		Name: "ids", bare: true,
		Text:      "Requests with ids of every legal form are answered with the same id, in type and value.",
		Exercises: []string{"SCH-2", "EXT-4"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			p.markExercised("SCH-2", "EXT-4")
			for _, id := range []string{
				`0`, `-1`, `2147483648`, `9007199254740993`, `9223372036854775807`, `-9223372036854775808`,
				`""`, `"1"`, `"null"`, `"a b/ä\u20ac😀"`, `"` + strings.Repeat("x", 4096) + `"`, `"0e0"`,
			} {
				before := p.count()
				if p.await(p.ask("_acp.probe/id", `{}`, id)) != nil {
					continue
				}
				if near := p.nearestID(before); near != "" {
					p.fail("SCH-2", "the agent answered the request %s with the id %s", clip(id), clip(near))
				} else {
					p.fail("EXT-4", "%s", p.why("the request with the id "+clip(id)+" was not answered"))
				}
			}
			p.checkAlive("ADD-1", "requests with ids of every form")
		},
	},
	{
		Name:      "ids-of-strings",
		Text:      "A client whose ids are strings initializes, creates a session and prompts.",
		Exercises: []string{"SCH-2"}, Prompts: []string{"text"},
		run: func(p *play) {
			p.start()
			p.grant("all", allCapabilities)
			p.markExercised("SCH-2")
			m := p.await(p.ask("initialize", `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`, `"init-ä"`))
			if m == nil {
				p.fail("SCH-2", "%s", p.why("initialize with the id \"init-ä\" was not answered with that id"))
				return
			}
			p.init, p.itself = m, m.params
			session := p.newSession()
			p.turn(p.ask("session/prompt", p.promptParams(session, "text"), `"0b9d2c9e-5a5e-4a3e-9d43-1c5e7a1b2c3d"`))
		},
	},
	{
		Name: "unknown-methods", bare: true, quiet: true,
		Text:      "Unknown requests are answered with -32601, unknown notifications not at all.",
		Exercises: []string{"EXT-4", "EXT-5", "EXT-7", "ERR-3", "ADD-1", "ADD-11", "OVW-4"},
		run: func(p *play) {
			p.initialize("all", allCapabilities)
			for _, method := range []string{"_acp.probe/unknown", "acp-probe/unknown", "fs/read_text_file", "session/update",
				"rpc.discover"} {
				id := "EXT-5"
				if !strings.HasPrefix(method, "_") {
					id = "ERR-3"
				}
				m := p.call(method, `{"a":1}`)
				p.markExercised("EXT-4", id)
				if m == nil {
					p.fail("EXT-4", "%s", p.why("the unknown request "+method+" was not answered"))
					continue
				}
				if m.kind == conformance.Response && strings.HasPrefix(method, "_") {
					continue // it may be one of its own
				}
				p.requireError(id, m, "the unknown request "+method, -32601)
			}
			p.markExercised("EXT-7", "OVW-4", "ADD-11")
			before := p.count()
			for _, n := range []struct{ method, params string }{
				{"_acp.probe/note", `{"a":1}`}, {"acp-probe/unknown", `{}`}, {"_acp.probe/none", ""}, {"$/acp_probe", `{}`},
				{"session/cancel", `{"sessionId":"` + noSession + `"}`},
				{"$/cancel_request", `{"requestId":"` + noSession + `"}`}, {"$/cancel_request", `{"requestId":12345}`}, {"$/cancel_request", `{"requestId":null}`},
			} {
				p.notify(n.method, n.params)
			}
			p.checkAlive("EXT-7", "unknown notifications")
			p.quiet(p.ctx, p.limits.quiet)
			if extra := p.answersSince(before); len(extra) > 1 {
				p.fail("OVW-4", "the agent answered a notification: %s", extra[0])
			}
		},
	},
	{
		Name:      "not-advertised",
		Text:      "Optional methods that the agent does not advertise are answered with -32601.",
		Exercises: []string{"ERR-3", "INI-14"},
		run: func(p *play) {
			session := p.ready()
			p.markExercised("INI-14", "ERR-3")
			for _, o := range optionalMethods {
				if p.can(o.capability) {
					continue
				}
				m := p.call(o.method, o.params(session, p.dir))
				if m != nil && m.kind == conformance.Response {
					p.failAt("INI-14", conformance.Should, "the agent serves %s but does not advertise %s", o.method, o.capability)
					continue
				}
				p.requireError("ERR-3", m, o.method+", which is not advertised,", -32601)
			}
			p.checkAlive("ADD-1", "methods that are not advertised")
		},
	},
	{
		Name: "garbage", bare: true, quiet: true,
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text: "Lines that are not messages are answered as JSON-RPC requires or not at all, and the connection " +
			"survives.",
		Exercises: []string{"ERR-7", "TRN-3", "ADD-1"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			for _, g := range garbage {
				before := p.count()
				p.line([]byte(g.line))
				p.markExercised("ERR-7")
				if m := p.call("_acp.probe/alive", "{}"); m == nil {
					if p.ended == nil {
						p.failAt("ERR-7", conformance.Should, "%s", p.why("after "+g.what+", no request was answered"))
					} else {
						p.failAt("ERR-7", conformance.Should, "%s made the agent exit", g.what)
					}
					p.end()
					p.initialize("none", noCapabilities)
					continue
				}
				if !g.answer {
					continue
				}
				found := ""
				for _, line := range p.errorsSince(before) {
					if found = line.id; found == "null" {
						if code := line.code(); code != g.code && code != -32600 {
							p.failAt("ERR-7", conformance.Advice, "%s was answered with %d, want %d", g.what, code, g.code)
						}
						break
					}
				}
				if found == "" {
					p.failAt("ERR-7", conformance.Advice, "%s was not answered with an error", g.what)
				}
			}
			p.markExercised("ADD-1")
		},
	},
	{
		Name: "batch", bare: true,
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text: "A batch, which the protocol does not allow, is refused, and so is an empty array; the connection " +
			"survives.",
		Exercises: []string{"TRN-3", "ERR-7"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			p.line([]byte(`[]`)) // which is no batch
			p.checkAlive("ERR-7", "an empty array")
			for _, line := range []string{
				`[{"jsonrpc":"2.0","id":901,"method":"_acp.probe/a","params":{}},{"jsonrpc":"2.0","id":902,"method":"_acp.probe/b","params":{}}]`, `[1,2,3]`,
				`[{"jsonrpc":"2.0","id":903,"method":"session/new","params":` + `{"cwd":` + quote(p.dir) + `,"mcpServers":[]}}]`,
			} {
				p.line([]byte(line))
				p.checkAlive("TRN-3", "the batch "+clip(line))
			}
			p.conn.mu.Lock()
			served := slices.ContainsFunc(p.kept, func(m *message) bool {
				return slices.Contains([]string{"901", "902", "903"}, m.id) && m.code() != -32600 && m.code() != -32700
			})
			p.conn.mu.Unlock()
			if served {
				p.fail("TRN-3", "the agent served the requests of a batch")
			}
		},
	},
	{
		Name: "invalid-utf8", bare: true,
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text: "Bytes that are not UTF-8 neither end the agent nor change what it serves afterwards; other encodings " +
			"of the same text are read.",
		Exercises: []string{"ERR-7", "ADD-1"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			for _, line := range []string{
				"\xff\xfe\xfd", "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"_acp.probe/\xc3\x28\",\"params\":{}}",
				"\x00\x01\x02", "\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":78,\"method\":\"_acp.probe/bom\"}",
				`{"jsonrpc":"2.0","id":79,"method":"_acp.probe/\ud800","params":{"a":"\udc00\ud83d"}}`,
			} {
				p.line([]byte(line))
				m := p.call("_acp.probe/alive", "{}")
				p.markExercised("ERR-7")
				if m == nil {
					p.failAt("ERR-7", conformance.Should, "after bytes that are not UTF-8 (%s), no request was answered", clip(line))
					p.end()
					p.initialize("none", noCapabilities)
				}
			}
			for _, line := range []string{
				"  { \"jsonrpc\" : \"2.0\" , \"id\" : 801 ,\t\"method\" : \"_acp.probe/spaces\" , \"params\" : { } } ",
				`{"params":{},"method":"_acp.probe/order","id":802,"jsonrpc":"2.0"}`,
				`{"\u006asonrpc":"\u0032.0","id":803,"method":"_\u0061cp.probe/escapes","params":{}}`,
				`{"jsonrpc":"2.0","id":804,"method":"_acp.probe/more","params":{},"extra":true,"_meta":{}}`,
				"{\"jsonrpc\":\"2.0\",\"id\":805,\"method\":\"_acp.probe/crlf\",\"params\":{}}\r",
			} {
				p.line([]byte(line))
				if p.await(parse([]byte(line)).id) == nil {
					p.failAt("OVW-3", conformance.Must, "%s", p.why("the request "+clip(line)+" was not answered"))
				}
			}
		},
	},
	{
		Name: "deep-nesting", bare: true,
		ignore:    []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text:      "Values nested ten thousand levels deep neither end the agent nor break what follows.",
		Exercises: []string{"ADD-1", "SCH-1"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			p.markExercised("SCH-1")
			for _, depth := range []int{100, 10_000} {
				deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
				p.ask("_acp.probe/deep", `{"_meta":{"deep":`+deep+`}}`, "")
				m := p.call("_acp.probe/alive", "{}")
				if m == nil {
					p.failAt("ADD-1", conformance.Should, "%s",
						p.why(fmt.Sprintf("after a value nested %d levels deep, no request was answered", depth)))
					return
				}
			}
		},
	},
	{
		Name: "long-lines", quiet: true,
		Text:      "Long messages are served: a prompt of one mebibyte, and a request of eight.",
		Exercises: []string{"ADD-1", "INI-15"}, Prompts: []string{"text"},
		run: func(p *play) {
			session := p.ready()
			text := strings.Repeat("All work and no play. ", 1<<20/22)
			id := p.ask("session/prompt", `{"sessionId":`+quote(session)+`,"prompt":[{"type":"text","text":`+quote("Reply with OK. Ignore the rest. "+text)+`}]}`, "")
			m := p.awaitTurn(id)
			if m == nil {
				p.failAt("PRM-5", conformance.Must, "%s", p.why("a prompt of a mebibyte was not answered"))
				return
			}
			id = p.ask("_acp.probe/long", `{"text":"`+strings.Repeat("x", 8<<20)+`"}`, "")
			if p.await(id) == nil {
				p.failAt("EXT-4", conformance.Should, "%s", p.why("a request of eight mebibytes was not answered"))
				return
			}
			p.checkAlive("ADD-1", "long messages")
		},
	},
	{
		Name: "answers-to-nobody", bare: true, quiet: true,
		Text:      "Answers to requests that the agent never sent are ignored.",
		Exercises: []string{"ADD-9"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			before := p.count()
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":4711,"result":{}}`, `{"jsonrpc":"2.0","id":"nobody","result":null}`,
				`{"jsonrpc":"2.0","id":4712,"error":{"code":-32603,"message":"nobody asked"}}`,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"nobody asked"}}`,
				`{"jsonrpc":"2.0","id":0,"result":{},"error":{"code":1,"message":"both"}}`,
			} {
				p.line([]byte(line))
			}
			p.checkAlive("ADD-9", "answers without a request")
			p.quiet(p.ctx, p.limits.quiet)
			if extra := p.answersSince(before); len(extra) > 1 {
				p.failAt("ADD-9", conformance.Should, "the agent replied to an answer: %s", extra[0])
			}
		},
	},
	{
		Name: "stderr-unread", bare: true,
		ignore:    []string{"EXT-4", "ERR-7"}, // a missing answer is reported with the line before it
		Text:      "A client does not read the agent's log, and sends much that may be logged: the agent continues.",
		Exercises: []string{"TRN-7"},
		run: func(p *play) {
			p.initialize("none", noCapabilities)
			stderr := p.conn.target.Stderr
			if stderr == nil {
				return
			}
			read := stderr.ignore()
			defer read()
			p.markExercised("TRN-7")
			long := strings.Repeat("acp-probe ", 20_000) // more than a pipe holds
			for _, line := range []string{
				long, `{"jsonrpc":"2.0","method":"_acp.probe/note","params":{"text":"` + long + `"}}`,
				`{"jsonrpc":"2.0","method":"session/cancel","params":{"text":"` + long + `"}}`,
				`{"jsonrpc":"2.0","id":"long","method":"_acp.probe/` + long + `"}`,
			} {
				p.line([]byte(line))
				if p.call("_acp.probe/alive", "{}") == nil {
					p.fail("TRN-7", "%s", p.why("while standard error was not read, no request was answered after "+clip(line[:60])))
					return
				}
			}
		},
	},
	{
		Name: "end-at-once", bare: true,
		Text: "The input ends before anything was sent, in the middle of a line, and after initialize: the agent " +
			"ends too.",
		Exercises: []string{"TRN-10"},
		run: func(p *play) {
			p.start()
			p.end()
			p.start()
			p.part([]byte(`{"jsonrpc":"2.0","id":1,"method":"initi`))
			p.end()
			p.initialize("none", noCapabilities)
			p.end()
		},
	},
	{
		Name:      "end-in-a-turn",
		Text:      "The input ends in the middle of a turn: the agent ends too.",
		Exercises: []string{"TRN-10"}, Prompts: []string{"long"},
		run: func(p *play) {
			session := p.ready()
			p.updates(p.begin(session, "long"), "", 2)
			p.end()
		},
	},
	{
		Name: "slow-reader", quiet: true,
		Text:      "A client that does not read for a while receives everything afterwards, and can cancel.",
		Exercises: []string{"PRM-5"}, Prompts: []string{"long"},
		run: func(p *play) {
			session := p.ready()
			id := p.begin(session, "long")
			p.updates(id, "", 1)
			p.pause(true)
			timer := time.NewTimer(p.limits.quiet)
			select {
			case <-timer.C:
			case <-p.ctx.Done():
			}
			timer.Stop()
			running := !p.hasAnswer(id)
			p.cancel(session)
			p.pause(false)
			if running {
				p.checkCancelled(id)
			}
		},
	},
	{
		Name: "exotic-client",
		Text: "A client that sends unknown members, nulls for absent members, members in another order and odd _meta " +
			"is served.",
		Exercises: []string{"SCH-1", "SCH-17"}, Prompts: []string{"text"},
		run: func(p *play) {
			p.start()
			meta := `{"acp.probe":{"null":null,"list":[1,[2,{"three":3}]],"big":123456789012345678901234567890,"small":1e-400,"text":"\u0000\u2028😀"},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
			p.markExercised("SCH-1")
			p.initializeWith("all", allCapabilities, `{"future":{"x":1},"clientInfo":{"version":"1","name":"acp-probe","title":null,"colour":"green"},"clientCapabilities":`+
				strings.TrimSuffix(allCapabilities, "}")+`,"future":[1,2],"_meta":`+meta+`},"protocolVersion":1,"_meta":`+meta+`}`)
			m := p.call("session/new", `{"_meta":`+meta+`,"mcpServers":[],"future":null,"cwd":`+quote(p.dir)+`}`)
			if m == nil || m.kind == conformance.ErrorReply {
				if m.code() == -32000 {
					p.stopf("the agent requires authentication")
				}
				p.fail("SCH-1", "the agent did not serve session/new with odd _meta and an unknown member: %s", answerText(m))
				return
			}
			session := m.text("sessionId")
			p.client.session(session, p.dir)
			id := p.ask("session/prompt", `{"prompt":[{"text":`+quote(p.text(session, "text"))+`,"annotations":null,"_meta":`+meta+`,"future":1,"type":"text"}],"_meta":`+meta+`,"sessionId":`+quote(session)+`,"future":{}}`, "")
			if m := p.awaitTurn(id); m == nil || m.kind == conformance.ErrorReply {
				p.fail("SCH-1", "the agent did not serve a prompt with odd _meta and unknown members: %s", answerText(m))
			}
			m = p.call("session/new", `{"mcpServers":null,"additionalDirectories":null,"_meta":null,"cwd":`+quote(p.dir)+`}`)
			p.markExercised("SCH-17")
			if m == nil {
				p.failAt("OVW-3", conformance.Must, "%s", p.why("session/new was not answered"))
			} else if m.kind == conformance.ErrorReply {
				p.failAt("SCH-17", conformance.Advice,
					"the agent refused null for mcpServers and additionalDirectories, which counts as empty: %s",
					clip(string(m.params)))
			}
		},
	},
}

// answerText is an answer for a message.
func answerText(m *message) string {
	if m == nil {
		return "no answer"
	}
	return clip(string(m.params))
}

// optionalMethods are the methods that need a capability.
var optionalMethods = []struct {
	method, capability string
	params             func(session, dir string) string
}{
	{"session/load", loadSession, withSession(`,"mcpServers":[]`)},
	{"session/resume", canResume, withSession(`,"mcpServers":[]`)},
	{"session/list", canList, func(string, string) string { return `{}` }},
	{"logout", canLogout, func(string, string) string { return `{}` }},
	{"session/close", canClose, onlySession},
	{"session/delete", canDelete, onlySession},
}

func withSession(more string) func(session, dir string) string {
	return func(session, dir string) string {
		return `{"sessionId":` + quote(session) + `,"cwd":` + quote(dir) + more + `}`
	}
}

func onlySession(session, _ string) string { return `{"sessionId":` + quote(session) + `}` }

// garbage are lines that are not a message, and what JSON-RPC says to them.
var garbage = []struct {
	what, line string
	answer     bool
	code       int
}{
	{"an empty line", "", false, 0},
	{"a line of spaces", "   \t ", false, 0},
	{"a broken object", "{", true, -32700},
	{"half a message", `{"jsonrpc":"2.0","id":1,"meth`, true, -32700},
	{"plain text", "hello agent", true, -32700},
	{"a number", "42", true, -32600},
	{"a string", `"initialize"`, true, -32600},
	{"null", "null", true, -32600},
	{"an empty object", "{}", true, -32600},
	{"a message without jsonrpc", `{"id":null,"method":"_acp.probe/x"}`, false, 0},
	{"a message of JSON-RPC 1.0", `{"jsonrpc":"1.0","id":null,"method":"_acp.probe/x"}`, false, 0},
	{"a method that is a number", `{"jsonrpc":"2.0","id":null,"method":7}`, false, 0},
	{"a header of another protocol", "Content-Length: 20", true, -32700},
	{"two messages on a line", `{"jsonrpc":"2.0","method":"_a/b"}{"jsonrpc":"2.0","method":"_a/b"}`, true, -32700},
	{"a number that is not JSON", `{"jsonrpc":"2.0","id":null,"method":"_acp.probe/x","params":{"a":01}}`, true, -32700},
}

// count is the number of the last message.
func (p *play) count() int {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	return p.number
}

// answersSince are the agent's answers after a message.
func (p *play) answersSince(number int) []string {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	var lines []string
	for _, m := range p.kept {
		if m.number > number && m.direction == p.fromPeer() &&
			(m.kind == conformance.Response || m.kind == conformance.ErrorReply) {
			lines = append(lines, fmt.Sprintf("id %s: %s", m.id, clip(string(m.params))))
		}
	}
	return lines
}

// errorsSince are the agent's error answers after a message.
func (p *play) errorsSince(number int) []*message {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	var found []*message
	for _, m := range p.kept {
		if m.number > number && m.direction == p.fromPeer() && m.kind == conformance.ErrorReply {
			found = append(found, m)
		}
	}
	return found
}

// nearestID is the id of an answer since a message that answers nothing that was asked: it must have been meant for the
// latest request.
func (p *play) nearestID(number int) string {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	used := map[string]bool{}
	for _, m := range p.kept {
		if m.direction == p.toPeer() {
			used[m.id] = true
		}
	}
	for _, m := range p.kept {
		if m.number > number && m.direction == p.fromPeer() &&
			(m.kind == conformance.Response || m.kind == conformance.ErrorReply) && !used[m.id] {
			return m.id
		}
	}
	return ""
}
