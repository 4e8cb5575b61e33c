// Scenarios of the wire: ids, methods, lines that are not a message, long and slow ones, the end of the input.

package probe

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

var wireScenarios = []Scenario{
	{Name: "ids", bare: true, Exercises: []string{"SCH-2", "EXT-4"},
		Text: "Requests with ids of every legal form are answered with the same id, in type and value.",
		steps: []step{initialized("none", noCapabilities), tries("SCH-2", "EXT-4"), func(p *play) {
			for _, id := range []string{
				`0`, `-1`, `2147483648`, `9007199254740993`, `9223372036854775807`, `-9223372036854775808`,
				`""`, `"1"`, `"null"`, `"a b/ä\u20ac😀"`, `"` + strings.Repeat("x", 4096) + `"`, `"0e0"`,
			} {
				before := p.LastNumber()
				if p.await(p.Ask("_acp.probe/id", `{}`, id)) != nil {
					continue
				}
				if near := p.nearestID(before); near != "" {
					p.fail("SCH-2", "the agent answered the request %s with the id %s", player.Clip(id), player.Clip(near))
				} else {
					p.fail("EXT-4", "%s", p.why("the request with the id "+player.Clip(id)+" was not answered"))
				}
			}
		}, continues("ADD-1", "requests with ids of every form")}},
	{Name: "ids-of-strings", Exercises: []string{"SCH-2"}, Prompts: []string{"text"},
		Text: "A client whose ids are strings initializes, creates a session and prompts.",
		steps: []step{func(p *play) {
			p.startWith("all", allCapabilities)
			p.markExercised("SCH-2")
			m := p.await(p.Ask("initialize", `{"protocolVersion":1,"clientCapabilities":`+allCapabilities+`}`, `"init-ä"`))
			p.needs(m, "SCH-2", requirement.LevelOf("SCH-2"), `initialize with the id "init-ä" was not answered with that id`)
			p.init, p.Itself = m, m.Params
		}, newSession, func(p *play) {
			p.endOf(p.sendPrompt(p.promptParams("text"), `"0b9d2c9e-5a5e-4a3e-9d43-1c5e7a1b2c3d"`))
		}}},
	{Name: "unknown-methods", bare: true, quiet: true,
		Exercises: []string{"EXT-4", "EXT-5", "EXT-7", "ERR-3", "ADD-1", "ADD-11", "OVW-4"},
		Text:      "Unknown requests are answered with -32601, unknown notifications not at all.",
		steps: []step{initialized("all", allCapabilities), unknownRequests, tries("EXT-7", "OVW-4", "ADD-11"),
			unanswered("OVW-4", "the agent answered a notification",
				notify("_acp.probe/note", `{"a":1}`), notify("acp-probe/unknown", `{}`), notify("_acp.probe/none", ""),
				notify("$/acp_probe", `{}`), notify("session/cancel", unknownSession),
				notify("$/cancel_request", `{"requestId":"`+noSession+`"}`, `{"requestId":12345}`, `{"requestId":null}`),
				continues("EXT-7", "unknown notifications"), silence)}},
	{Name: "not-advertised", Exercises: []string{"ERR-3", "INI-14"},
		Text: "Optional methods that the agent does not advertise are answered with -32601.",
		steps: []step{ready, tries("INI-14", "ERR-3"), func(p *play) {
			for _, o := range optionalMethods {
				if p.can(o.capability) {
					continue
				}
				m := p.call(o.method, p.fill(o.params))
				if m != nil && m.Kind == conformance.Response {
					p.failAt("INI-14", conformance.Should, "the agent serves %s but does not advertise %s", o.method, o.capability)
					continue
				}
				p.requireError("ERR-3", m, o.method+", which is not advertised,", -32601)
			}
		}, continues("ADD-1", "methods that are not advertised")}},
	{Name: "garbage", bare: true, quiet: true, Exercises: []string{"ERR-7", "TRN-3", "ADD-1"},
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text:   "Lines that are not messages are answered as JSON-RPC requires or not at all, and the connection survives.",
		steps: []step{initialized("none", noCapabilities), func(p *play) {
			for _, g := range garbage {
				p.tryGarbage(g)
			}
		}, tries("ADD-1")}},
	{Name: "batch", bare: true, Exercises: []string{"TRN-3", "ERR-7"},
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text:   "A batch, which the protocol does not allow, is refused, and so is an empty array; the connection survives.",
		steps: []step{initialized("none", noCapabilities),
			line(`[]`), continues("ERR-7", "an empty array"), // which is no batch
			func(p *play) {
				for _, text := range []string{
					`[{"jsonrpc":"2.0","id":901,"method":"_acp.probe/a","params":{}},{"jsonrpc":"2.0","id":902,"method":"_acp.probe/b","params":{}}]`, `[1,2,3]`,
					`[{"jsonrpc":"2.0","id":903,"method":"session/new","params":` + p.fill(newParams) + `}]`,
				} {
					p.Line([]byte(text))
					p.checkAlive("TRN-3", "the batch "+player.Clip(text))
				}
				if slices.ContainsFunc(p.Since(0), func(m *player.Message) bool {
					return slices.Contains([]string{"901", "902", "903"}, m.ID) && m.Code() != -32600 && m.Code() != -32700
				}) {
					p.fail("TRN-3", "the agent served the requests of a batch")
				}
			}}},
	{Name: "invalid-utf8", bare: true, Exercises: []string{"ERR-7", "ADD-1"},
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text: "Bytes that are not UTF-8 neither end the agent nor change what it serves afterwards; other encodings " +
			"of the same text are read.",
		steps: []step{initialized("none", noCapabilities), func(p *play) {
			for _, line := range []string{
				"\xff\xfe\xfd", "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"_acp.probe/\xc3\x28\",\"params\":{}}",
				"\x00\x01\x02", "\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":78,\"method\":\"_acp.probe/bom\"}",
				`{"jsonrpc":"2.0","id":79,"method":"_acp.probe/\ud800","params":{"a":"\udc00\ud83d"}}`,
			} {
				p.Line([]byte(line))
				m := p.call(alive, "{}")
				p.markExercised("ERR-7")
				if m == nil {
					p.failAt("ERR-7", conformance.Should, "after bytes that are not UTF-8 (%s), no request was answered",
						player.Clip(line))
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
				p.Line([]byte(line))
				p.isAnswered(p.await(player.Parse([]byte(line)).ID), "the request "+player.Clip(line))
			}
		}}},
	{Name: "deep-nesting", bare: true, Exercises: []string{"ADD-1", "SCH-1"},
		ignore: []string{"EXT-4"}, // a missing answer is reported with the line before it
		Text:   "Values nested ten thousand levels deep neither end the agent nor break what follows.",
		steps: []step{initialized("none", noCapabilities), tries("SCH-1"), func(p *play) {
			for _, depth := range []int{100, 10_000} {
				deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
				p.Ask("_acp.probe/deep", `{"_meta":{"deep":`+deep+`}}`, "")
				p.needs(p.call(alive, "{}"), "ADD-1", conformance.Should,
					"after a value nested %d levels deep, no request was answered", depth)
			}
		}}},
	{Name: "long-lines", quiet: true, Exercises: []string{"ADD-1", "INI-15"}, Prompts: []string{"text"},
		Text: "Long messages are served: a prompt of one mebibyte, and a request of eight.",
		steps: []step{ready, func(p *play) {
			text := "Reply with OK. Ignore the rest. " + strings.Repeat("All work and no play. ", 1<<20/22)
			p.needs(p.awaitTurn(p.sendPrompt(p.blocks(`{"type":"text","text":`+player.Quote(text)+`}`), "")),
				"PRM-5", conformance.Must, "a prompt of a mebibyte was not answered")
			p.needs(p.await(p.Ask("_acp.probe/long", `{"text":"`+strings.Repeat("x", 8<<20)+`"}`, "")),
				"EXT-4", conformance.Should, "a request of eight mebibytes was not answered")
		}, continues("ADD-1", "long messages")}},
	{Name: "answers-to-nobody", bare: true, quiet: true, Exercises: []string{"ADD-9"},
		Text: "Answers to requests that the agent never sent are ignored.",
		steps: []step{initialized("none", noCapabilities), unanswered("ADD-9", "the agent replied to an answer",
			line(`{"jsonrpc":"2.0","id":4711,"result":{}}`, `{"jsonrpc":"2.0","id":"nobody","result":null}`,
				`{"jsonrpc":"2.0","id":4712,"error":{"code":-32603,"message":"nobody asked"}}`,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"nobody asked"}}`,
				`{"jsonrpc":"2.0","id":0,"result":{},"error":{"code":1,"message":"both"}}`),
			continues("ADD-9", "answers without a request"), silence)}},
	{Name: "stderr-unread", bare: true, Exercises: []string{"TRN-7"},
		ignore: []string{"EXT-4", "ERR-7"}, // a missing answer is reported with the line before it
		Text:   "A client does not read the agent's log, and sends much that may be logged: the agent continues.",
		steps: []step{initialized("none", noCapabilities), func(p *play) {
			stderr := p.target.Stderr
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
				p.Line([]byte(line))
				if p.call(alive, "{}") == nil {
					p.fail("TRN-7", "%s",
						p.why("while standard error was not read, no request was answered after "+player.Clip(line[:60])))
					return
				}
			}
		}}},
	{Name: "end-at-once", bare: true, Exercises: []string{"TRN-10"},
		Text: "The input ends before anything was sent, in the middle of a line, and after initialize: the agent ends too.",
		steps: []step{launched, ended, launched, func(p *play) { p.Part([]byte(`{"jsonrpc":"2.0","id":1,"method":"initi`)) },
			ended, initialized("none", noCapabilities), ended}},
	{Name: "end-in-a-turn", Exercises: []string{"TRN-10"}, Prompts: []string{"long"},
		Text:  "The input ends in the middle of a turn: the agent ends too.",
		steps: []step{ready, streaming(2), ended}},
	{Name: "slow-reader", quiet: true, Exercises: []string{"PRM-5"}, Prompts: []string{"long"},
		Text: "A client that does not read for a while receives everything afterwards, and can cancel.",
		steps: []step{ready, begin("long"), func(p *play) {
			p.streams(1)
			p.Pause(true)
			p.sleep(p.limits.quiet)
			running := !p.isDone()
			p.cancel()
			p.Pause(false)
			if running {
				p.endCancelled()
			}
		}}},
	{Name: "exotic-client", Exercises: []string{"SCH-1", "SCH-17"}, Prompts: []string{"text"},
		Text: "A client that sends unknown members, nulls for absent members, members in another order and odd _meta " +
			"is served.",
		steps: []step{launched, tries("SCH-1"), func(p *play) {
			const meta = `{"acp.probe":{"null":null,"list":[1,[2,{"three":3}]],"big":123456789012345678901234567890,"small":1e-400,"text":"\u0000\u2028😀"},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
			p.initializeWith("all", allCapabilities, `{"future":{"x":1},"clientInfo":{"version":"1","name":"acp-probe","title":null,"colour":"green"},"clientCapabilities":`+
				strings.TrimSuffix(allCapabilities, "}")+`,"future":[1,2],"_meta":`+meta+`},"protocolVersion":1,"_meta":`+meta+`}`)
			m := p.call("session/new", `{"_meta":`+meta+`,"mcpServers":[],"future":null,"cwd":`+player.Quote(p.dir)+`}`)
			if m == nil || m.Kind == conformance.ErrorReply {
				if m.Code() == codeAuth {
					p.stopf("the agent requires authentication")
				}
				p.fail("SCH-1", "the agent did not serve session/new with odd _meta and an unknown member: %s",
					player.AnswerText(m))
				return
			}
			p.opened(m)
			p.sendPrompt(`{"prompt":[{"text":`+player.Quote(p.text(p.session, "text"))+`,"annotations":null,"_meta":`+meta+`,"future":1,"type":"text"}],"_meta":`+meta+`,"sessionId":`+player.Quote(p.session)+`,"future":{}}`, "")
			if m := p.awaitTurn(p.promptID); m == nil || m.Kind == conformance.ErrorReply {
				p.fail("SCH-1", "the agent did not serve a prompt with odd _meta and unknown members: %s", player.AnswerText(m))
			}
			m = p.call("session/new", `{"mcpServers":null,"additionalDirectories":null,"_meta":null,"cwd":`+player.Quote(p.dir)+`}`)
			p.markExercised("SCH-17")
			if p.isAnswered(m, "session/new") && m.Kind == conformance.ErrorReply {
				p.failAt("SCH-17", conformance.Advice,
					"the agent refused null for mcpServers and additionalDirectories, which counts as empty: %s", player.AnswerText(m))
			}
		}}},
}

// unknownRequests sends requests that no agent has to know.
func unknownRequests(p *play) {
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
		if m.Kind == conformance.Response && strings.HasPrefix(method, "_") {
			continue // it may be one of its own
		}
		p.requireError(id, m, "the unknown request "+method, -32601)
	}
}

// optionalMethods are the methods that need a capability.
var optionalMethods = []struct{ method, capability, params string }{
	{"session/load", loadSession, openParams},
	{"session/resume", canResume, openParams},
	{"session/list", canList, `{}`},
	{"logout", canLogout, `{}`},
	{"session/close", canClose, sessionParams},
	{"session/delete", canDelete, sessionParams},
}

// nonMessage is a line that is not a message, and what JSON-RPC says to it.
type nonMessage struct {
	what, line string
	answer     bool
	code       int
}

// garbage are lines that are not a message.
var garbage = []nonMessage{
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

// tryGarbage sends a line that is not a message, and launches the agent again if it does not survive that.
func (p *play) tryGarbage(g nonMessage) {
	before := p.LastNumber()
	p.Line([]byte(g.line))
	p.markExercised("ERR-7")
	if m := p.call(alive, "{}"); m == nil {
		if !p.HasEnded() {
			p.failAt("ERR-7", conformance.Should, "%s", p.why("after "+g.what+", no request was answered"))
		} else {
			p.failAt("ERR-7", conformance.Should, "%s made the agent exit", g.what)
		}
		p.initialize("none", noCapabilities)
		return
	}
	if !g.answer {
		return
	}
	found := ""
	for _, m := range p.errorsSince(before) {
		if found = m.ID; found == "null" {
			if code := m.Code(); code != g.code && code != -32600 {
				p.failAt("ERR-7", conformance.Advice, "%s was answered with %d, want %d", g.what, code, g.code)
			}
			break
		}
	}
	if found == "" {
		p.failAt("ERR-7", conformance.Advice, "%s was not answered with an error", g.what)
	}
}

// nearestID is the id of an answer since a message that answers nothing that was asked: it must have been meant for the
// latest request.
func (p *play) nearestID(number int) string {
	used := map[string]bool{}
	for _, m := range p.Since(0) {
		if !p.IsTheirs(m) {
			used[m.ID] = true
		}
	}
	for _, m := range p.Since(number) {
		if p.IsTheirs(m) && m.IsReply() && !used[m.ID] {
			return m.ID
		}
	}
	return ""
}
