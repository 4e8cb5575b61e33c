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
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// clean requires that there are no findings in a conversation.
func clean(t *testing.T, name string, lines []conformance.Message) {
	t.Helper()
	for _, schema := range []*conformance.Schema{cleanSchema(name), nil} {
		if findings := cleantest.Judge(schema, lines, conformance.Client); len(findings) > 0 {
			t.Fatalf("findings in:\n%s\nfindings:%s", script(lines), show(lines, findings))
		}
	}
}

// script returns a conversation in short form.
func script(lines []conformance.Message) string {
	var text strings.Builder
	for i, s := range summaries(lines) {
		fmt.Fprintf(&text, "%3d %s %s %s %s %s\n", i+1, s.arrow, s.method, s.update, s.kind, s.id)
	}
	return text.String()
}

// node describes how a message relates to others.
type node struct {
	summary
	message conformance.Message
	request *node
	session string // of the message, or of the request that it answers
}

func nodes(lines []conformance.Message) []*node {
	var all []*node
	for i, s := range summaries(lines) {
		n := &node{summary: s, message: lines[i]}
		n.session, _ = at(decode(lines[i].Line), "/params/sessionId").(string)
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
	eachClean(t, func(t *testing.T, name string, recorded []conformance.Message) {
		crossed := map[string]bool{}
		for seed := range tier.Pick[uint64](0, 3, 60, 300) {
			rng := rand.New(rand.NewPCG(seed, 1))
			all := nodes(recorded)
			for range 3 * len(all) {
				i := rng.IntN(len(all) - 1)
				if mayCross(all[i], all[i+1]) {
					crossed[all[i].method+" "+all[i+1].method] = true
					all[i], all[i+1] = all[i+1], all[i]
				}
			}
			var lines []conformance.Message
			for _, n := range all {
				lines = append(lines, n.message)
			}
			clean(t, name, lines)
			if len(crossed) == 0 {
				break // all messages that could cross would have done so
			}
		}
		t.Logf("%d kinds of pairs have crossed", len(crossed))
	})
}

// rename changes ids everywhere in a conversation: request ids with a function for the side that asked, and strings in
// members that hold ids.
func rename(lines []conformance.Message, request func(by conformance.Side, id any) any, id func(member, id string) string) []conformance.Message {
	var changed []conformance.Message
	for i, s := range summaries(lines) {
		m := decode(lines[i].Line)
		asker := lines[i].Direction.Sender()
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
		changed = append(changed, conformance.Message{Direction: lines[i].Direction, Line: encode(m)})
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
	eachClean(t, func(t *testing.T, name string, recorded []conformance.Message) {
		if strings.Contains(name, "typescript") {
			return // its ids are numbers that begin at 0, and strings, already
		}
		for kind, request := range requests {
			t.Run(kind, func(t *testing.T) { clean(t, name, rename(recorded, request, nil)) })
		}
		for kind, id := range names {
			t.Run(kind, func(t *testing.T) { clean(t, name, rename(recorded, nil, id)) })
		}
	})
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
	eachClean(t, func(t *testing.T, name string, recorded []conformance.Message) {
		rng := rand.New(rand.NewPCG(1, 2))
		var shuffled, spaced, noted []conformance.Message
		for _, l := range recorded {
			m := decode(l.Line)
			shuffled = append(shuffled, conformance.Message{Direction: l.Direction, Line: shuffle(rng, m)})
			var b bytes.Buffer
			must.Do(t, json.Indent(&b, l.Line, "", "\t"))
			spaced = append(spaced, conformance.Message{Direction: l.Direction, Line: append([]byte(" "), bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\r"))...)})
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
			noted = append(noted, conformance.Message{Direction: l.Direction, Line: encode(m)})
		}
		clean(t, name, shuffled)
		clean(t, name, spaced)
		clean(t, name, noted)
	})
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
	eachClean(t, func(t *testing.T, name string, recorded []conformance.Message) {
		if strings.Contains(name, "typescript") || slices.ContainsFunc(nodes(recorded), func(n *node) bool {
			return n.method == "logout" || n.method == "auth/logout" || n.method == "session/list"
		}) {
			return // these methods concern the whole connection
		}
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

// TestCancelCrossesTheEnd makes the client cancel each turn twice, at a time when the agent has sent everything, so
// that the cancellation crosses the answer.
func TestCancelCrossesTheEnd(t *testing.T) {
	tier.Need(t, tier.Normal)
	eachClean(t, func(t *testing.T, name string, recorded []conformance.Message) {
		if strings.HasPrefix(name, "v2") || strings.HasPrefix(name, "n2") {
			return // there the end of a turn is an update
		}
		var lines []conformance.Message
		for _, n := range nodes(recorded) {
			if n.method == "session/prompt" && n.request != nil {
				cancel := conformance.Message{Direction: conformance.ToAgent, Line: encode(map[string]any{
					"jsonrpc": "2.0", "method": "session/cancel", "params": map[string]any{"sessionId": n.session},
				})}
				at := len(lines) // or before the last updates of the turn
				for at > len(lines)-2 && bytes.Contains(lines[at-1].Line, []byte(`"session/update"`)) {
					at--
				}
				lines = slices.Insert(lines, at, cancel, cancel)
			}
			lines = append(lines, n.message)
		}
		clean(t, name, lines)
	})
}

// TestCutAnywhere ends conversations after each message: the client closes the connection, or the closing side is
// unknown.
func TestCutAnywhere(t *testing.T) {
	tier.Need(t, tier.Normal)
	eachClean(t, func(t *testing.T, name string, lines []conformance.Message) {
		for n := 0; n < len(lines); n += tier.Pick(0, 17, 1, 1) {
			for _, closedBy := range []conformance.Side{conformance.Client, 0} {
				if findings := cleantest.Judge(cleanSchema(name), lines[:n], closedBy); len(findings) > 0 {
					t.Fatalf("after %d messages, closed by %v:%s", n, closedBy, show(lines, findings))
				}
			}
		}
	})
}

// TestAgentDies lets the agent end conversations after each message. The only findings are about its outstanding
// obligations.
func TestAgentDies(t *testing.T) {
	tier.Need(t, tier.Normal)
	owed := []string{"PRM-5", "CAN-1", "EXT-4", "TRM-7", "TRM-8"} // answers, and terminals that are not released
	eachClean(t, func(t *testing.T, name string, lines []conformance.Message) {
		for n := 0; n < len(lines); n += tier.Pick(0, 3, 1, 1) {
			for _, f := range cleantest.Judge(cleanSchema(name), lines[:n], conformance.Agent) {
				if !slices.Contains(owed, f.Rule) {
					t.Fatalf("after %d messages:%s", n, show(lines, []conformance.Finding{f}))
				}
			}
		}
	})
}
