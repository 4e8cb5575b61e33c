// Scenarios for clients: what is not a message, odd ones, and requests that clients do not serve.

package probe

import (
	"bytes"
	_ "embed" // client_lines.txt
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

//go:embed client_lines.txt
var textOfLines string

// sending returns the scenarios of client_lines.txt that send updates, or those that send any lines.
func sending(updating bool) (all []Scenario) {
	for _, section := range strings.Split(strings.TrimSpace(textOfLines), "\n== ")[1:] {
		lines := strings.Split(strings.TrimSpace(section), "\n")
		name, id, _ := strings.Cut(lines[0], " | ")
		if updating != strings.HasPrefix(name, "updates-") {
			continue
		}
		s := Scenario{Name: name, Text: lines[1], Exercises: []string{id}, persona: full}
		var steps []step
		for _, text := range lines[2:] {
			if plain, err := strconv.Unquote(text); err == nil {
				text = plain
			}
			text = repeated.ReplaceAllStringFunc(text, func(mark string) string {
				parts := repeated.FindStringSubmatch(mark)
				times, _ := strconv.Atoi(parts[2])
				return strings.Repeat(parts[1], times)
			})
			if updating {
				steps = append(steps, updates(text))
			} else {
				steps = append(steps, line(text), continues(id, player.Clip(text)))
			}
		}
		if updating {
			steps = append(steps, continues(id, "these updates"))
		} else {
			s.Exercises = append(s.Exercises, "ADD-1")
			steps = append(steps, tries("ADD-1"))
		}
		s.steps = []step{turn(steps...)}
		all = append(all, s)
	}
	return all
}

// repeated matches what client_lines.txt repeats.
var repeated = regexp.MustCompile(`⟨(.*?)\*(\d+)⟩`)

var clientWire = slices.Concat(sending(false), []Scenario{
	{Name: "long-lines", Exercises: []string{"SCH-17"}, persona: full,
		Text: "A message of one megabyte, and one of four.",
		steps: []step{turn(saysLong(1<<20), continues("SCH-17", "a long message"),
			saysLong(4<<20), continues("SCH-17", "a long message"))}},
	{Name: "many-updates", Exercises: []string{"SCH-17"},
		Text: "Two thousand updates at full speed, and then a request.", persona: full,
		steps: []step{turn(saysOften(2000, "a word "), continues("SCH-17", "many updates"))}},
	{Name: "parts-of-lines", Exercises: []string{"TRN-4"}, persona: full,
		Text: "One message arrives in parts, and two arrive in one write.",
		steps: []step{func(p *play) {
			if p.target.Raw == nil {
				p.stopf("parts of lines can only be sent to a process")
			}
		}, turn(func(p *play) {
			line := []byte(`{"jsonrpc":"2.0","method":"_acp.probe/note","params":{"é":"😀"}}` + "\n")
			for part := range bytes.SplitSeq(line, []byte("m")) {
				if !bytes.HasSuffix(part, []byte("\n")) {
					part = append(bytes.Clone(part), 'm')
				}
				p.Part(part)
			}
			p.Part(bytes.Repeat(line, 3))
		}, continues("TRN-4", "messages in parts"))}},
	{Name: "slow-reader", Exercises: []string{"SCH-17"},
		Text: "The agent reads nothing for a while, but keeps sending.", persona: full, quiet: true,
		steps: []step{turn(func(p *play) { p.Pause(true) }, saysOften(100, "a word "), func(p *play) {
			id := p.Ask(alive, "{}", "")
			p.sleep(p.limits.quiet)
			p.Pause(false)
			p.requireAnswer("SCH-17", id, "a request that was sent while the agent did not read")
		})}},
	{Name: "flood-of-logs", Exercises: []string{"TRN-7"},
		Text: "The agent writes a megabyte to its standard error.", persona: full,
		steps: []step{func(p *play) {
			if p.target.Log == nil {
				p.stopf("only a process has a standard error")
			}
		}, turn(func(p *play) {
			if err := p.target.Log(bytes.Repeat(
				[]byte("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"} a log of the agent's \x1b[31m\n"),
				16<<10)); err != nil {
				p.stopf("the log: %v", err)
			}
		}, continues("TRN-7", "a megabyte of logs"))}},
	{Name: "ids", Exercises: []string{"SCH-2", "EXT-4", "EXT-5"}, persona: full,
		Text: "Requests with ids of every form are answered with the same id.",
		steps: []step{turn(func(p *play) {
			for _, id := range []string{`0`, `-1`, `9007199254740993`, `9223372036854775807`, `-9223372036854775808`, `""`, `"1"`, `"é😀"`, `"` + strings.Repeat("long", 64) + `"`} {
				answer := p.requireAnswer("SCH-2", p.Ask("_acp.probe/id", `{}`, id), "a request with the id "+player.Clip(id))
				p.markExercised("EXT-4")
				p.requireError("EXT-5", answer, "an unknown request", -32601)
			}
		})}},
	{Name: "unknown-requests", Exercises: []string{"EXT-5", "ERR-3", "EXT-4"}, persona: full,
		Text: "Unknown requests, with params of every type.",
		steps: []step{turn(func(p *play) {
			for _, params := range []string{``, `{}`, `[]`, `{"x":{"y":[1,null]}}`, `null`} {
				answer := p.requireAnswer("EXT-4", p.Ask("_acp.probe/unknown", params, ""), "an unknown request")
				if answer.Code() != -32602 && answer.Code() != -32600 { // null and arrays are no params to some
					p.requireError("EXT-5", answer, "an unknown request", -32601)
				}
			}
			p.refuses("ERR-3", "acp.probe/unknown", `{}`, "an unknown request", -32601)
			p.refuses("ERR-3", "session/prompt", p.turnParams(`,"prompt":[]`), "an agent's method", -32601)
		})}},
	{Name: "unstated", Exercises: []string{"ERR-3", "INI-13", "INI-17"}, persona: full,
		Text: "The agent requests what the client does not advertise, and is refused.",
		steps: []step{turn(func(p *play) {
			path := player.Quote(p.dir + "/acp-probe-unstated.txt")
			for _, try := range []struct{ capability, method, params string }{
				{canRead, "fs/read_text_file", `,"path":` + path}, {canWrite, "fs/write_text_file", `,"path":` + path + `,"content":"x"`},
				{canRun, "terminal/create", `,"command":"true"`},
			} {
				if what := try.method + ", which is not advertised,"; !p.can(try.capability) {
					answer := p.requireAnswer("ERR-3", p.Ask(try.method, p.turnParams(try.params), ""), what)
					p.requireError("INI-13", answer, what)
					p.requireError("ERR-3", answer, what, -32601)
				}
			}
			for _, try := range []struct{ capability, params string }{{canForm, formOf(`"name":{"type":"string"}`, "")}, {canOpen, linkOf("e1", "https://example.com/")}} {
				if what := "elicitation/create, whose mode is not advertised,"; !p.can(try.capability) {
					p.trait("unstated mode")
					if player.IsSet(p.init.Params, "clientCapabilities", "elicitation") {
						p.markExercised("INI-17")
					}
					answer := p.requireAnswer("ERR-3", p.Ask("elicitation/create", p.turnParams(try.params), ""), what)
					p.requireError("ELI-23", answer, what, -32602, -32601)
				}
			}
		})}},
	{Name: "wrong-params", Exercises: []string{"ERR-4"}, persona: full,
		Text: "Requests whose params lack members, or have members of wrong types.",
		steps: []step{turn(func(p *play) {
			for _, try := range []struct{ need, method, params string }{
				{"", "session/request_permission", `{}`}, {"", "session/request_permission", `{"sessionId":{session}}`},
				{"", "session/request_permission", `{"sessionId":{session},"toolCall":7,"options":"none"}`},
				{canRead, "fs/read_text_file", `{"sessionId":{session}}`}, {canRead, "fs/read_text_file", `{"sessionId":{session},"path":7}`},
				{canRead, "fs/read_text_file", `[]`}, {canWrite, "fs/write_text_file", `{"sessionId":{session},"path":"/x"}`},
				{canRun, "terminal/create", `{"sessionId":{session},"command":{}}`}, {canRun, "terminal/output", `{"sessionId":{session}}`},
			} {
				if try.need != "" && !p.can(try.need) {
					continue
				}
				what := try.method + " with wrong params"
				answer := p.requireAnswer("ERR-4", p.Ask(try.method, p.fill(try.params), ""), what)
				if answer.Kind == conformance.Response && try.method == "session/request_permission" {
					continue // the judge looks at it
				}
				p.requireError("ERR-4", answer, what, -32602, -32600)
			}
		})}},
	{Name: "other-orders", Exercises: []string{"SCH-17"},
		Text: "Members in other orders, with spaces and escapes, in answers and requests.",
		persona: persona{capabilities: allAgentCapabilities, answer: func(f *fakeAgent, m *player.Message) (string, string) {
			outcome, text := f.usual(m)
			if outcome == "result" {
				f.play.Line([]byte(" {  \"result\" : " + text + ", \"probe\" : null , \"id\":" + m.ID +
					",\"jsonrpc\"\t:\"\\u0032.0\" }"))
			}
			f.play.Wake()
			if outcome == "error" {
				return outcome, text
			}
			return "none", ""
		}},
		steps: []step{turn(func(p *play) {
			p.Line([]byte(`{"params":{"update":{"content":{"text":"\u0048i","type":"te\u0078t"},"sessionUpdate":"agent_message_chunk"},"sessionId":` + player.Quote(p.session) + `},"method":"session\/update","jsonrpc":"2.0"}`))
		}, continues("SCH-17", "members in another order"))}},
	{Name: "odd-categories", Exercises: []string{"CFG-6"},
		Text: "Options without a category, and with unknown ones.",
		persona: persona{
			capabilities: allAgentCapabilities,
			options: `[{"id":"odd","name":"Odd","category":"zzz","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]},` +
				`{"id":"own","name":"Own","category":"_own","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]},` +
				`{"id":"null","name":"Null","category":null,"type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]},` +
				`{"id":"none","name":"None","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]`,
		},
		steps: []step{promptsDespite("CFG-6", "options of unknown categories", "CFG-6")}},
	{Name: "exotic-answers", Exercises: []string{"CFG-15", "SCH-1", "INI-11"},
		Text: "Answers with unknown members, nulls, and options of unknown types: they are left out, and the rest is used.",
		persona: persona{
			capabilities: allAgentCapabilities, methods: `[]`, more: `,"probe":{"x":[]},"_meta":{"acp.probe":{"big":123456789012345678901234567890}}`,
			modes: `{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask","description":null,"probe":1}],"_meta":null}`,
			options: `[{"id":"slide","name":"Slider","type":"slider","currentValue":3},{"id":"own","name":"Own","type":"_own","x":1},` +
				`{"id":"known","name":"Known","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}]`,
		},
		steps: []step{promptsDespite("CFG-15", "options of unknown types", "CFG-15", "SCH-1", "INI-11")}},
})
