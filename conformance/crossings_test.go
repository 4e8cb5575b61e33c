package conformance_test

// These conversations differ from the clean recordings only in ways that neither side can control, or in equivalent
// ways: messages that cross in transit, other ids, another order of members. They must not cause findings.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// clean requires that there are no findings in a conversation.
func clean(t *testing.T, name string, lines []line) {
	t.Helper()
	for _, schema := range []*conformance.Schema{cleanSchema(name), nil} {
		if findings := judgeTalk(schema, lines, conformance.Client); len(findings) > 0 {
			t.Fatalf("findings in:\n%s\nfindings:%s", script(lines), show(lines, findings))
		}
	}
}

// script returns a conversation in short form.
func script(lines []line) string {
	var text strings.Builder
	for i, s := range summaries(lines) {
		fmt.Fprintf(&text, "%3d %s %s %s %s %s\n", i+1, s.arrow, s.method, s.update, s.kind, s.id)
	}
	return text.String()
}

// node describes how a message relates to others.
type node struct {
	summary
	line    line
	request *node
	session string // of the message, or of the request that it answers
	text    string
}

func nodes(lines []line) []*node {
	var all []*node
	for i, s := range summaries(lines) {
		n := &node{summary: s, line: lines[i], text: string(lines[i].text)}
		n.session, _ = at(lines[i].decode(), "/params/sessionId").(string)
		if s.peer >= 0 {
			n.request = all[s.peer]
			n.session = n.request.session
		}
		all = append(all, n)
	}
	return all
}

// independent are kinds of update that are not caused by requests or answers of the client, so that they may cross any
// of its messages in the session.
var independent = []string{"usage_update", "available_commands_update", "session_info_update"}

// mayCross reports whether two adjacent messages of different sides could have been seen in the other order, because
// neither caused the other. It is conservative: unless it can exclude a cause, it assumes one.
func mayCross(first, second *node) bool {
	if first.arrow == second.arrow {
		return false
	}
	switch {
	case second.request == first, first.request == second:
		return false // a request and its answer
	case first.method == "initialize" || second.method == "initialize":
		return false
	case strings.HasPrefix(first.method, "auth") || first.method == "logout" || strings.HasPrefix(second.method, "auth") || second.method == "logout":
		return false
	case first.method == "session/list" || second.method == "session/list", first.method == "session/new" || second.method == "session/new":
		return false
	case first.method == "elicitation/create" || first.method == "elicitation/complete" || second.method == "elicitation/complete":
		return false // these have no session, and belong to the whole connection
	}
	if first.session != "" && second.session != "" && first.session != second.session {
		return true
	}
	client, agent := first, second
	if client.arrow == "<-" {
		client, agent = second, first
	}
	update := agent.method == "session/update"
	if update && slices.Contains(independent, agent.update) && client.method != "session/load" && client.method != "session/resume" {
		return true
	}
	if client.kind == conformance.Notification && client.method == "session/cancel" {
		// The message may be one that the agent sent before it read the cancellation, but not the end of the turn,
		// which the agent decides, and not a message that shows that the agent obeys.
		return update && agent.update != "tool_call_update" && agent.update != "state_update" || agent == second && agent.kind == conformance.Request && agent.method != "session/request_permission"
	}
	if agent == first && client.request != nil && update && agent.update != "state_update" {
		// The client answers an earlier request while an update is in transit.
		return true
	}
	if agent == first && setting(client) && (update || setting(agent)) && client.kind == conformance.Request {
		// The client changes a setting while an update, or the answer to another change, is in transit.
		return true
	}
	if client == first && strings.HasPrefix(client.method, "fs/") && agent.kind == conformance.Request && !strings.HasPrefix(agent.method, "terminal/") {
		// The agent asks for more while the answer about a file is in transit.
		return true
	}
	return false
}

// setting reports whether a message changes a setting, or answers such a request.
func setting(n *node) bool {
	return n.method == "session/set_mode" || n.method == "session/set_config_option"
}

// TestInterleavings swaps messages that could have crossed.
func TestInterleavings(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, name := range cleanNames(t) {
		t.Run(name, func(t *testing.T) {
			recorded := nodes(talkOf(readClean(t, name)))
			crossed := map[string]bool{}
			for seed := range tier.Pick[uint64](0, 3, 60, 300) {
				rng := rand.New(rand.NewPCG(seed, 1))
				all := slices.Clone(recorded)
				for range 3 * len(all) {
					i := rng.IntN(len(all) - 1)
					if mayCross(all[i], all[i+1]) {
						crossed[all[i].method+" "+all[i+1].method] = true
						all[i], all[i+1] = all[i+1], all[i]
					}
				}
				var lines []line
				for _, n := range all {
					lines = append(lines, n.line)
				}
				clean(t, name, lines)
				if len(crossed) == 0 {
					break // all messages that could cross would have done so
				}
			}
			t.Logf("%d kinds of pairs have crossed", len(crossed))
		})
	}
}

// rename changes ids everywhere in a conversation: request ids with a function for the side that asked, and strings in
// members that hold ids.
func rename(lines []line, request func(by conformance.Side, id any) any, id func(member, id string) string) []line {
	var changed []line
	for i, s := range summaries(lines) {
		m := lines[i].decode()
		asker := lines[i].to.Sender()
		if s.kind == conformance.Response || s.kind == conformance.ErrorReply {
			asker = asker.Peer()
		}
		if old, ok := m["id"]; ok && request != nil {
			m["id"] = request(asker, old)
		}
		if s.method == "$/cancel_request" && request != nil {
			params := m["params"].(map[string]any)
			params["requestId"] = request(asker, params["requestId"])
		}
		if request != nil {
			if params, ok := m["params"].(map[string]any); ok && params["requestId"] != nil && s.method == "elicitation/create" {
				params["requestId"] = request(conformance.Client, params["requestId"])
			}
		}
		if id != nil {
			renameIn(m, id)
		}
		changed = append(changed, line{lines[i].to, encode(m)})
	}
	return changed
}

// idMembers lists the members with ids that one side has chosen freely.
var idMembers = []string{"sessionId", "terminalId", "elicitationId", "toolCallId", "messageId", "optionId", "nextCursor", "cursor"}

func renameIn(v any, id func(member, id string) string) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			if text, ok := below.(string); ok && slices.Contains(idMembers, name) {
				v[name] = id(name, text)
			}
			if name != "_meta" {
				renameIn(below, id)
			}
		}
	case []any:
		for _, below := range v {
			renameIn(below, id)
		}
	}
}

// TestOtherIDs uses ids that are unusual but valid.
func TestOtherIDs(t *testing.T) {
	tier.Need(t, tier.Normal)
	requests := map[string]func(by conformance.Side, id any) any{
		"strings": func(by conformance.Side, id any) any { return fmt.Sprint(by, " ✓ ", id) },
		"the same in both directions": func(_ conformance.Side, id any) any {
			return fmt.Sprint("id ", id)
		},
		"from 0": func(_ conformance.Side, id any) any { return json.Number(fmt.Sprint(number64(id) - 1)) },
		"negative": func(by conformance.Side, id any) any {
			return json.Number(fmt.Sprint(-1000*int64(by) - number64(id)))
		},
		"large": func(_ conformance.Side, id any) any {
			return json.Number(fmt.Sprint(1<<53 + number64(id)))
		},
		"texts of numbers": func(by conformance.Side, id any) any {
			if by == conformance.Agent {
				return fmt.Sprint(id)
			}
			return id
		},
		"an empty one": func(_ conformance.Side, id any) any {
			if number64(id) == 3 {
				return ""
			}
			return id
		},
	}
	names := map[string]func(member, id string) string{
		"long":    func(_, id string) string { return id + strings.Repeat("é", 300) },
		"strange": func(member, id string) string { return "\u2028/../" + id + "\" #" },
		"numbers": func(_, id string) string {
			return strings.NewReplacer("sess_", "", "term_", "", "call_", "", "msg_", "").Replace(id)
		},
	}
	for _, name := range cleanNames(t) {
		if strings.Contains(name, "typescript") {
			continue // its ids are numbers that begin at 0, and strings, already
		}
		recorded := talkOf(readClean(t, name))
		for kind, request := range requests {
			t.Run(name+"/"+kind, func(t *testing.T) { clean(t, name, rename(recorded, request, nil)) })
		}
		for kind, id := range names {
			t.Run(name+"/"+kind, func(t *testing.T) { clean(t, name, rename(recorded, nil, id)) })
		}
	}
}

func number64(id any) int64 {
	n, err := id.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return n
}

// TestSameMeaning writes messages in other ways: with the members in another order, with space between them, and with
// unknown members under _meta.
func TestSameMeaning(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, name := range cleanNames(t) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			var shuffled, spaced, noted []line
			for _, l := range talkOf(readClean(t, name)) {
				m := l.decode()
				shuffled = append(shuffled, line{l.to, shuffle(rng, m)})
				var b bytes.Buffer
				if err := json.Indent(&b, l.text, "", "\t"); err != nil {
					t.Fatal(err)
				}
				spaced = append(spaced, line{l.to, append([]byte(" "), bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\r"))...)})
				for _, content := range []string{"params", "result"} {
					if in, ok := m[content].(map[string]any); ok && !strings.HasPrefix(fmt.Sprint(m["method"]), "_") {
						meta, _ := in["_meta"].(map[string]any)
						if meta == nil {
							meta = map[string]any{}
						}
						meta["example.com"] = map[string]any{"sessionId": "other", "toolCallId": 7, "path": "relative", "_meta": nil, "n": json.Number("1e400")}
						in["_meta"] = meta
					}
				}
				noted = append(noted, line{l.to, encode(m)})
			}
			clean(t, name, shuffled)
			clean(t, name, spaced)
			clean(t, name, noted)
		})
	}
}

// shuffle writes a value with the members of objects in any order.
func shuffle(rng *rand.Rand, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		var members [][]byte
		for name, below := range v {
			members = append(members, append(append(encode(name), ':'), shuffle(rng, below)...))
		}
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return append(append([]byte("{"), bytes.Join(members, []byte(","))...), '}')
	case []any:
		var items [][]byte
		for _, below := range v {
			items = append(items, shuffle(rng, below))
		}
		return append(append([]byte("["), bytes.Join(items, []byte(","))...), ']')
	}
	return encode(v)
}

// TestTwoAtOnce runs two conversations on one connection. The sessions, terminals and ids of one have other names, and
// the messages are interleaved in any way that keeps the order of each conversation.
func TestTwoAtOnce(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, name := range cleanNames(t) {
		recorded := talkOf(readClean(t, name))
		if strings.Contains(name, "typescript") || slices.ContainsFunc(nodes(recorded), func(n *node) bool {
			return n.method == "logout" || n.method == "auth/logout" || n.method == "session/list"
		}) {
			continue // these methods concern the whole connection
		}
		t.Run(name, func(t *testing.T) {
			start := 2 // after initialize and its answer
			for s := summaries(recorded); start < len(s) && strings.HasPrefix(s[start].method, "auth"); {
				start++
			}
			for start < len(recorded) && summaries(recorded)[start].method != "session/new" {
				start++
			}
			other := rename(recorded,
				func(_ conformance.Side, id any) any { return "other " + fmt.Sprint(id) },
				func(member, id string) string {
					if member == "sessionId" || member == "terminalId" || member == "elicitationId" {
						return "other " + id
					}
					return id
				})
			for seed := range tier.Pick[uint64](0, 3, 40, 200) {
				rng := rand.New(rand.NewPCG(seed, 3))
				lines := slices.Clone(recorded[:start])
				one, two := recorded[start:], other[start:]
				for len(one)+len(two) > 0 {
					if rng.IntN(len(one)+len(two)) < len(one) {
						lines, one = append(lines, one[0]), one[1:]
					} else {
						lines, two = append(lines, two[0]), two[1:]
					}
				}
				clean(t, name, lines)
			}
		})
	}
}

// TestCancelCrossesTheEnd makes the client cancel each turn twice, at a time when the agent has sent everything, so
// that the cancellation crosses the answer.
func TestCancelCrossesTheEnd(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, name := range cleanNames(t) {
		if strings.HasPrefix(name, "v2") || strings.HasPrefix(name, "n2") {
			continue // there the end of a turn is an update
		}
		t.Run(name, func(t *testing.T) {
			var lines []line
			for _, n := range nodes(talkOf(readClean(t, name))) {
				if n.method == "session/prompt" && n.request != nil {
					cancel := line{conformance.ToAgent, encode(map[string]any{
						"jsonrpc": "2.0", "method": "session/cancel", "params": map[string]any{"sessionId": n.session},
					})}
					at := len(lines) // or before the last updates of the turn
					for at > len(lines)-2 && bytes.Contains(lines[at-1].text, []byte(`"session/update"`)) {
						at--
					}
					lines = slices.Insert(lines, at, cancel, cancel)
				}
				lines = append(lines, n.line)
			}
			clean(t, name, lines)
		})
	}
}

// TestCutAnywhere ends conversations after each message: the client closes the connection, or the closing side is
// unknown.
func TestCutAnywhere(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, name := range cleanNames(t) {
		t.Run(name, func(t *testing.T) {
			lines := talkOf(readClean(t, name))
			for n := 0; n < len(lines); n += tier.Pick(0, 17, 1, 1) {
				for _, closedBy := range []conformance.Side{conformance.Client, 0} {
					if findings := judgeTalk(cleanSchema(name), lines[:n], closedBy); len(findings) > 0 {
						t.Fatalf("after %d messages, closed by %v:%s", n, closedBy, show(lines, findings))
					}
				}
			}
		})
	}
}

// TestAgentDies lets the agent end conversations after each message. The only findings are about its outstanding
// obligations.
func TestAgentDies(t *testing.T) {
	tier.Need(t, tier.Normal)
	owed := []string{"PRM-5", "CAN-1", "EXT-4", "TRM-7", "TRM-8"} // answers, and terminals that are not released
	for _, name := range cleanNames(t) {
		t.Run(name, func(t *testing.T) {
			lines := talkOf(readClean(t, name))
			for n := 0; n < len(lines); n += tier.Pick(0, 3, 1, 1) {
				for _, f := range judgeTalk(cleanSchema(name), lines[:n], conformance.Agent) {
					if !slices.Contains(owed, f.Rule) {
						t.Fatalf("after %d messages:%s", n, show(lines, []conformance.Finding{f}))
					}
				}
			}
		})
	}
}

// TestConversations covers conversations that the recordings lack because they are rare, although they are valid.
func TestConversations(t *testing.T) {
	for name, test := range map[string]struct {
		clean    string
		mutation mutation
	}{
		"a permission crosses the cancellation": {"v1-cancel", move("-> session/cancel#3", before("<- session/request_permission"))},
		"the answer to a permission crosses the cancellation": {"v1-turns", insert(after("-> session/request_permission"),
			`-> {"method":"session/cancel","params":{"sessionId":"sess_nope"}}`)},
		"closed while a prompt is open, and the answers cross": {"v1-cancel", move("-> session/close", before("-> session/prompt#last"))},
		"updates of a subagent's own session": {"v1u-methods", all(set("-> initialize", "/params/clientCapabilities/subagents", "{}"), insert(after("<- session/new"),
			`<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"subagent_update","sessionId":"child"}}}`,
			`<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`))},
		"work ends by itself while its cancellation is on the way":  {"v2-cancel", set("<- session/update:state_update#2", "/params/update/stopReason", `"end_turn"`)},
		"$/cancel_request for a request that is answered":           {"v1-bare", insert(after("<- session/new"), `-> {"method":"$/cancel_request","params":{"requestId":2}}`)},
		"$/cancel_request for a request that nobody made":           {"v1-bare", insert(atEnd, `-> {"method":"$/cancel_request","params":{"requestId":"none"}}`, `<- {"method":"$/cancel_request","params":{"requestId":7}}`)},
		"$/cancel_request, and the answer is a result all the same": {"v1-turns", insert(after("<- fs/read_text_file"), `<- {"method":"$/cancel_request","params":{"requestId":1}}`)},
		"$/cancel_request for a permission, answered by -32800":     {"v1-turns", all(insert(after("<- session/request_permission"), `<- {"method":"$/cancel_request","params":{"requestId":2}}`), fails("-> session/request_permission", "-32800"), drop("<- session/update:tool_call_update#4", "<- fs/write_text_file", "-> fs/write_text_file"), set("<- session/update:tool_call_update#last", "/params/update/status", `"failed"`))},
		"an answer with id null for what could not be read":         {"v1-bare", insert(atEnd, `-> {"jsonrpc":"2.0","id":9,"method":"_x"}`, `<- {"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"Method not found"}}`)},
		"the end in the middle of a turn":                           {"v1-turns", cut("-> fs/read_text_file")},
		"the end with a permission open":                            {"v1-turns", cut("<- session/request_permission")},
		"the end with a terminal open":                              {"v1-terminals", cut("-> terminal/create")},
		"the end before the answer to initialize":                   {"v1-bare", cut("-> initialize")},
		"nothing at all": {"v1-bare", func([]line) []line { return nil }},
		"updates of another session after its turn":                  {"v1-together", move("<- session/update:agent_message_chunk#2", before("<- session/update:tool_call"))},
		"load during a prompt of another session":                    {"v1-sessions", insert(after("<- session/update:agent_thought_chunk"), `-> {"id":"load","method":"session/load","params":{"sessionId":"sess_old","cwd":"/home/ada/shop","mcpServers":[]}}`, `<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hi"}}}}`, `<- {"id":"load","result":{}}`)},
		"commands, usage, mode and title after the end of a turn":    {"v1-settings", insert(after("<- session/prompt"), `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"usage_update","used":1,"size":2}}}`, `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"session_info_update","title":"x"}}}`, `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`, `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"current_mode_update","currentModeId":"ask"}}}`)},
		"a permission that the user dismisses":                       {"v1-rejected", set("-> session/request_permission", "/result/outcome", `{"outcome":"cancelled"}`)},
		"capabilities that are false and null":                       {"v1-bare", all(set("<- initialize", "/result/agentCapabilities", `{"loadSession":false,"promptCapabilities":{"image":false},"sessionCapabilities":{"list":null}}`), set("-> initialize", "/params/clientCapabilities", `{"terminal":false,"fs":{"readTextFile":false}}`))},
		"paths of Windows":                                           {"v1-bare", set("-> session/new", "/params/cwd", `"C:\\Users\\ada"`)},
		"paths of a Windows share":                                   {"v1-bare", set("-> session/new", "/params/cwd", `"\\\\server\\share\\ada"`)},
		"a session of an earlier connection is loaded":               {"v1-sessions", insert(after("<- session/new#2"), `-> {"id":"load","method":"session/load","params":{"sessionId":"sess_old","cwd":"/home/ada/shop","mcpServers":[]}}`, `<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hi"}}}}`, `<- {"id":"load","result":{}}`)},
		"a file that is written although it was only shown as edit":  {"v1-turns", remove("<- session/update:tool_call#2", "/params/update/content")},
		"an agent without a name of the terminal in its tool call":   {"v1-terminals", drop("<- session/update:tool_call_update")},
		"a turn whose tools run without anybody's permission":        {"v1-turns", drop("<- session/request_permission", "-> session/request_permission")},
		"a tool call that is complete when it is announced":          {"v1-turns", all(drop("<- session/update:tool_call_update", "<- session/update:tool_call_update#2", "<- session/update:tool_call_update#3"), set("<- session/update:tool_call", "/params/update/status", `"completed"`))},
		"a tool call that has no status until it is complete":        {"v1-turns", all(drop("<- session/update:tool_call_update"), remove("<- session/update:tool_call", "/params/update/status"))},
		"a completed tool call that gets more content":               {"v1-turns", again("<- session/update:tool_call_update#2", after("<- session/update:tool_call_update#3"))},
		"a completed tool call that is said to be completed again":   {"v1-turns", repeat("<- session/update:tool_call_update#3")},
		"an elicitation that is never completed":                     {"v1-elicitations", drop("<- elicitation/complete#last")},
		"an elicitation id that is used again when it is completed":  {"v1-elicitations", all(set("<- elicitation/create#5", "/params/elicitationId", `"elic_0"`))},
		"an elicitation that the user declines, which has no end":    {"v1-elicitations", all(set("-> elicitation/create#last", "/result", `{"action":"decline"}`), drop("<- elicitation/complete#last"))},
		"the answer to set_mode before the update":                   {"v1-settings", all(move("<- session/update:current_mode_update", after("<- session/set_mode")), move("<- session/update:config_option_update", after("<- session/set_mode")))},
		"the agent refuses a mode":                                   {"v1-settings", all(fails("<- session/set_mode#last", "-32603"), drop("<- session/update:current_mode_update#last", "<- session/update:config_option_update#last"))},
		"a wait that is still open when the terminal is released":    {"v1-terminals", all(move("-> terminal/wait_for_exit", after("-> terminal/release")), move("-> terminal/wait_for_exit", after("-> terminal/release")))},
		"a line that ends with a carriage return":                    {"v1-bare", change("-> session/prompt", func(map[string]any) {})},
		"the client asks for a higher version and gets a lower one":  {"n1-typescript-agent", all()},
		"requests without params where nothing is required":          {"v1-sessions", remove("-> logout", "/params")},
		"params that are null where nothing is required":             {"v1-sessions", set("-> logout", "/params", "null")},
		"two updates of one message with a thought between them":     {"v1-turns", again("<- session/update:agent_thought_chunk", after("<- session/update:agent_message_chunk"))},
		"an extension with null as params, and one without an owner": {"v1-errors", set("-> _shop.example/seen", "/params", "null")},
		"session/new that waits while the user logs in":              {"v1-sessions", move("<- session/new", after("<- authenticate"))},
		"session/new that is on its way at logout":                   {"v1-sessions", all(insert(before("-> logout"), `-> {"id":"late","method":"session/new","params":{"cwd":"/home/ada/shop","mcpServers":[]}}`), insert(after("<- logout"), `<- {"id":"late","result":{"sessionId":"sess_late"}}`))},
		"a listing that is on its way when a session is deleted":     {"v1-sessions", all(insert(before("-> session/delete"), `-> {"id":"late","method":"session/list","params":{}}`), insert(after("<- session/delete"), `<- {"id":"late","result":{"sessions":[{"sessionId":"sess_1","cwd":"/home/ada/shop"}]}}`))},
		"two listings at once": {"v1-sessions", insert(before("-> session/list"),
			`-> {"id":"a1","method":"session/list","params":{}}`, `-> {"id":"b1","method":"session/list","params":{"cwd":"/home/ada/shop"}}`,
			`<- {"id":"a1","result":{"sessions":[],"nextCursor":"a"}}`, `<- {"id":"b1","result":{"sessions":[],"nextCursor":"b"}}`,
			`-> {"id":"b2","method":"session/list","params":{"cwd":"/home/ada/shop","cursor":"b"}}`, `<- {"id":"b2","result":{"sessions":[]}}`,
			`-> {"id":"a2","method":"session/list","params":{"cursor":"a"}}`, `<- {"id":"a2","error":{"code":-32603,"message":"Try again"}}`,
			`-> {"id":"a3","method":"session/list","params":{"cursor":"a"}}`, `<- {"id":"a3","result":{"sessions":[]}}`)},
		"a refused turn is not replayed":     {"v1-sessions", all(set("<- session/prompt", "/result/stopReason", `"refusal"`), drop("<- session/update:user_message_chunk"))},
		"a turn that failed is not replayed": {"v1-sessions", all(fails("<- session/prompt", "-32603"), drop("<- session/update:user_message_chunk"))},
		"session/close fails, and the session lives": {"v1-settings", all(fails("<- session/close", "-32603"), insert(after("<- session/close"), `-> {"id":"more","method":"session/prompt","params":{"sessionId":"sess_1","prompt":[{"type":"text","text":"Go on"}]}}`, `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Yes."}}}}`, `<- {"id":"more","result":{"stopReason":"end_turn"}}`),
			insert(before("<- session/load"), `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Go on"}}}}`, `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Yes."}}}}`))},
		"session/load fails, and the session lives":                           {"v1-settings", all(drop("-> session/close", "<- session/close"), drop("<- session/update:user_message_chunk"), fails("<- session/load", "-32603"), insert(after("<- session/load"), `-> {"id":"more","method":"session/prompt","params":{"sessionId":"sess_1","prompt":[{"type":"text","text":"Go on"}]}}`, `<- {"id":"more","result":{"stopReason":"end_turn"}}`))},
		"session/load of a session that is in use":                            {"v1-settings", drop("-> session/close", "<- session/close")},
		"a permission whose turn is cancelled while its answer is on its way": {"v1-together", insert(after("-> session/request_permission"), `-> {"method":"session/cancel","params":{"sessionId":"sess_2"}}`, `-> {"method":"session/cancel","params":{"sessionId":"sess_2"}}`)},
		"a cancelled turn whose tool ends all the same":                       {"v1-cancel", set("<- session/update:tool_call_update", "/params/update/status", `"completed"`)},
		"a cancelled turn whose tool call stays open":                         {"v1-cancel", drop("<- session/update:tool_call_update")},
		"a turn cancelled before the agent says anything, and it ends as if not": {"v1-cancel", all(
			insert(atEnd, `-> {"id":"p","method":"session/prompt","params":{"sessionId":"sess_1","prompt":[{"type":"text","text":"Say more"}]}}`, `-> {"method":"session/cancel","params":{"sessionId":"sess_1"}}`,
				`<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"There is more."}}}}`, `<- {"id":"p","result":{"stopReason":"end_turn"}}`))},
		"a cancelled turn that is refused by an error that crosses": {"v1-cancel", insert(atEnd, `-> {"id":"p","method":"session/prompt","params":{"sessionId":"sess_1","prompt":[{"type":"text","text":"Say more"}]}}`, `-> {"method":"session/cancel","params":{"sessionId":"sess_1"}}`, `<- {"id":"p","error":{"code":-32602,"message":"Too long"}}`)},
		"two terminals, the first released after the second":        {"v1-terminals", all(move("-> terminal/release", after("-> terminal/create#2")), move("<- terminal/release", before("-> terminal/release")))},
		"the same tool call id in two sessions":                     {"v1-together", all()},
		"the agent withdraws a question by $/cancel_request and answers the prompt before the client has answered": {"v1-cancel", all(
			insert(after("-> session/cancel#3"), `<- {"method":"$/cancel_request","params":{"requestId":1}}`),
			move("-> session/request_permission", after("<- session/prompt#2")))},
		"a prompt that is cancelled by $/cancel_request": {"v1-cancel", all(
			insert(atEnd, `-> {"id":"p","method":"session/prompt","params":{"sessionId":"sess_1","prompt":[{"type":"text","text":"Say more"}]}}`, `-> {"method":"$/cancel_request","params":{"requestId":"p"}}`, `<- {"id":"p","result":{"stopReason":"cancelled"}}`,
				`-> {"id":"q","method":"session/prompt","params":{"sessionId":"sess_1","prompt":[{"type":"text","text":"Say more"}]}}`, `-> {"method":"$/cancel_request","params":{"requestId":"q"}}`, `<- {"id":"q","error":{"code":-32800,"message":"Cancelled"}}`))},
		"a session that is deleted while it is open":     {"v1-sessions", drop("-> session/close#3", "<- session/close#3")},
		"a fork of a session that works":                 {"v1u-methods", move("-> session/fork", after("-> session/prompt"))},
		"updates of a fork at once after its answer":     {"v1u-methods", insert(after("<- session/fork"), `<- {"method":"session/update","params":{"sessionId":"sess_2","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`)},
		"a message of the user that the agent echoes":    {"v1-bare", insert(after("-> session/prompt"), `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hello"}}}}`)},
		"a mode that the agent changes between turns":    {"v1-settings", move("<- session/update:current_mode_update#last", before("-> session/set_mode#last"))},
		"a terminal that the client could not make":      {"v1-terminals", all(cut("-> terminal/create#3"), fails("-> terminal/create#3", "-32603"))},
		"a file that is not there, and the turn goes on": {"v1-turns", all(fails("-> fs/read_text_file", "-32002"), set("-> fs/read_text_file", "/error/data", `{"uri":"file:///home/ada/shop/cart.go"}`))},
		"version 2: a prompt while the session works":    {"v2-turns", all(move("-> session/prompt#2", before("<- session/update:state_update#2")))},
		"version 2: a cancellation of an idle session":   {"v2-cancel", insert(after("<- session/new"), `-> {"method":"session/cancel","params":{"sessionId":"sess_1"}}`)},
		"version 2: a cancellation crosses the end":      {"v2-turns", insert(before("<- session/update:state_update#2"), `-> {"method":"session/cancel","params":{"sessionId":"sess_1"}}`)},
		"version 2: a cancellation crosses a question":   {"v2-cancel", move("-> session/cancel#2", before("<- session/request_permission"))},
		"version 2: the user message before the answer":  {"v2-turns", move("<- session/update:user_message", before("<- session/prompt"))},
		"version 2: all of a turn before the answer":     {"v2-cancel", move("<- session/prompt", after("<- session/update:state_update#2"))},
		"version 2: a title that changes":                {"v2-turns", set("<- session/update:tool_call_update#2", "/params/update/title", `"Read the cart"`)},
		"version 2: replay of a session of an earlier connection": {"v2-sessions", all(cut("<- session/new"), insert(atEnd,
			`-> {"id":"r","method":"session/resume","params":{"sessionId":"sess_old","cwd":"/home/ada/shop","replayFrom":{"type":"start"}}}`,
			`<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"user_message","messageId":"u","content":[{"type":"text","text":"Hi"}]}}}`,
			`<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"agent_message","messageId":"m","content":[]}}}`,
			`<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"Hi"}}}}`,
			`<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}`,
			`<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"state_update","state":"idle"}}}`,
			`<- {"id":"r","result":{}}`))},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t, test.clean, test.mutation(slices.Clone(talkOf(readClean(t, test.clean)))))
		})
	}
}
