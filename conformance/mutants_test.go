package conformance_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestCleanRecordings requires that there are no findings in the clean recordings, with the schema of their version and
// with all published schemas.
func TestCleanRecordings(t *testing.T) {
	for _, name := range cleanNames(t) {
		t.Run(name, func(t *testing.T) {
			lines := talkOf(readClean(t, name))
			for _, schema := range []*conformance.Schema{cleanSchema(name), nil} {
				if findings := judgeTalk(schema, lines, conformance.Client); len(findings) > 0 {
					t.Errorf("findings:%s", show(lines, findings))
				}
			}
		})
	}
}

// mutant is a clean recording with one mistake.
type mutant struct {
	rule     string // that must fire
	clean    string // the recording
	mutation mutation
	// also are other rules that must fire, with the reason why a mistake that breaks one rule breaks the other.
	also map[string]string
	// closedBy is the side that ends the connection; the client if it is 0.
	closedBy conformance.Side
}

// noMutants holds the rules without a mutant, with the reason.
var noMutants = map[string]string{}

// TestMutants requires that each mutant is found by its own rule and the other rules that it names, and by no others,
// and that each rule has a mutant or a reason not to have one.
func TestMutants(t *testing.T) {
	rules := map[string]conformance.Rule{}
	for _, r := range conformance.Rules() {
		rules[r.ID] = r
	}
	byRule := map[string][]mutant{}
	for _, m := range mutants {
		byRule[m.rule] = append(byRule[m.rule], m)
	}
	found, several, caught, alarms := 0, 0, 0, 0
	for _, id := range slices.Sorted(maps.Keys(byRule)) {
		t.Run(id, func(t *testing.T) {
			_, known := rules[id]
			if !known {
				t.Error("there is no such rule")
			}
			all := known
			for _, m := range byRule[id] {
				lines := m.mutation(slices.Clone(talkOf(readClean(t, m.clean))))
				if !known {
					continue
				}
				closedBy := m.closedBy
				if closedBy == 0 {
					closedBy = conformance.Client
				}
				findings := judgeTalk(cleanSchema(m.clean), lines, closedBy)
				got := map[string]bool{}
				for _, f := range findings {
					got[f.Rule] = true
				}
				want := map[string]bool{id: true}
				for other := range m.also {
					want[other] = true
				}
				if len(want) > 1 {
					several++
				}
				found++
				if !got[id] {
					all = false
				}
				for other := range got {
					if !want[other] {
						alarms++
					}
				}
				for _, f := range findings {
					provable(t, lines, f)
				}
				if !maps.Equal(got, want) {
					wrong := slices.DeleteFunc(findings, func(f conformance.Finding) bool { return want[f.Rule] })
					t.Errorf("%s: got %s, want %s%s", m.clean, ids(got), ids(want), show(lines, wrong[:min(len(wrong), 2)]))
				}
			}
			if all {
				caught++
			}
		})
	}
	without := 0
	for _, r := range conformance.Rules() {
		for _, version := range r.Versions {
			of := func(m mutant) bool { return m.clean[1] == '0'+byte(version) }
			if noMutants[r.ID] == "" && byRule[r.ID] != nil && !slices.ContainsFunc(byRule[r.ID], of) {
				t.Errorf("rule %s has no mutant of version %d", r.ID, version)
			}
		}
		switch reason := noMutants[r.ID]; {
		case byRule[r.ID] == nil && reason == "":
			t.Errorf("rule %s has no mutant: %s", r.ID, r.Breaks)
		case byRule[r.ID] != nil && reason != "":
			t.Errorf("rule %s has a mutant and a reason to have none", r.ID)
		case reason != "":
			without++
			t.Logf("rule %s has no mutant: %s", r.ID, reason)
		}
	}
	for id := range noMutants {
		if _, ok := rules[id]; !ok {
			t.Errorf("%s, which has no mutant, is not a rule", id)
		}
	}
	t.Logf("%d rules: %d with mutants, %d that catch all of theirs, %d without for a reason; %d mutants: %d break several rules, %d false alarms",
		len(rules), len(byRule), caught, without, found, several, alarms)
}

// provable requires that a finding and its evidence refer to messages of the conversation, and show them.
func provable(t *testing.T, lines []line, f conformance.Finding) {
	t.Helper()
	if f.Number < 1 || f.Number > len(lines) || lines[f.Number-1].to != f.Direction || f.Message == "" {
		t.Errorf("%s is about message %d", f, f.Number)
	}
	for _, e := range f.Evidence {
		if e.Number < 1 || e.Number > len(lines) || lines[e.Number-1].to != e.Direction || e.Why == "" ||
			!strings.HasPrefix(string(lines[e.Number-1].text), strings.TrimSuffix(e.Excerpt, "…")) {
			t.Errorf("%s: the evidence is message %d: %s: %s", f, e.Number, e.Why, e.Excerpt)
		}
	}
}

// ids returns the rules in order.
func ids(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), " ")
}

// fails replaces the answer to a request with an error.
func fails(name, code string) mutation {
	return change(name, func(m map[string]any) {
		delete(m, "result")
		m["error"] = parseJSON(`{"code":` + code + `,"message":"It failed"}`)
	})
}

// succeeds replaces the answer to a request with a result.
func succeeds(name, result string) mutation {
	return change(name, func(m map[string]any) {
		delete(m, "error")
		m["result"] = parseJSON(result)
	})
}

// serves is the reason why a call that the agent did not offer breaks two rules if the agent obeys.
var serves = map[string]string{"INI-14": "the agent serves what it does not state"}

// obeys is the reason for calls that the client did not offer.
var obeys = map[string]string{"INI-13": "the client serves what it does not state"}

// asks is the reason for questions.
var asks = map[string]string{"ELI-23": "the client answers what it does not state"}

// listed is a list of sessions that has the first session in its first directory.
var listed = []string{`-> {"id":"l","method":"session/list","params":{}}`, `<- {"id":"l","result":{"sessions":[{"sessionId":"sess_1","cwd":"/home/ada/shop"}]}}`}

var mutants = []mutant{
	{rule: "OVW-1", clean: "v1-turns", mutation: set("<- fs/write_text_file", "/params/path", `"cart.go"`)},
	{rule: "OVW-1", clean: "v1-turns", mutation: set("<- session/update:tool_call#2", "/params/update/locations/0/path", `"cart.go"`)},
	{rule: "OVW-1", clean: "v1-turns", mutation: set("<- session/update:tool_call#2", "/params/update/content/0/path", `"cart.go"`)},
	{rule: "OVW-1", clean: "v1-terminals", mutation: set("<- terminal/create", "/params/cwd", `"shop"`)},
	{rule: "OVW-1", clean: "v1-sessions", mutation: set("-> session/list#3", "/params/cwd", `"nowhere"`)},
	{rule: "OVW-1", clean: "v1-sessions", mutation: set("<- session/list", "/result/sessions/0/cwd", `"shop"`)},
	{rule: "OVW-1", clean: "v1-sessions", mutation: set("<- session/list", "/result/sessions/0/additionalDirectories/0", `"lib"`)},
	// overview
	{rule: "OVW-2", clean: "v1-turns", mutation: set("<- fs/read_text_file", "/params/line", "0")},
	{rule: "OVW-2", clean: "v1-turns", mutation: set("<- session/update:tool_call#2", "/params/update/locations/0/line", "0")},
	{rule: "OVW-3", clean: "v1-bare", mutation: set("<- session/prompt", "/error", `{"code":-32603,"message":"No"}`)},
	{rule: "OVW-3", clean: "v1-bare", mutation: remove("<- session/prompt#2", "/result"), closedBy: conformance.Client},
	{rule: "OVW-4", clean: "v1-cancel", mutation: insert(after("-> session/cancel"), `<- {"id":null,"error":{"code":-32601,"message":"Method not found"}}`)},

	// transports
	{rule: "TRN-1", clean: "v1-bare", mutation: insert(atEnd, "-> {\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{\"\xff\":1}}")},
	{rule: "TRN-3", clean: "v1-bare", mutation: insert(atEnd, `-> [{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"sess_1"}}]`)},
	{rule: "TRN-6", clean: "v1-bare", mutation: insert(atEnd, `-> []`, `<- {"id":null,"error":{"code":-32600,"message":"Invalid request"}}`)},
	{rule: "TRN-4", clean: "v1-bare", mutation: insert(atEnd, "-> {\"jsonrpc\":\"2.0\",\n\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"sess_1\"}}")},
	{rule: "TRN-5", clean: "v1-bare", mutation: insert(atStart, "<- npm notice: a newer version")},
	{rule: "TRN-6", clean: "v1-bare", mutation: insert(atEnd, "-> quit")},
	{rule: "TRN-6", clean: "v1-bare", mutation: insert(atEnd, "-> quit", `<- {"id":null,"error":{"code":-32700,"message":"Parse error"}}`)},

	// initialization
	{rule: "INI-1", clean: "v1-bare", mutation: all(move("-> session/new", atStart), fails("<- session/new", "-32600"), cut("<- session/new"))},
	{rule: "ERR-6", clean: "v1-bare", mutation: move("-> session/new", atStart), also: map[string]string{"INI-1": "no correct client provokes it"}},
	{rule: "INI-1", clean: "v1-bare", mutation: move("-> session/new", before("<- initialize"))},
	{rule: "INI-1", clean: "v2-cancel", mutation: move("-> session/new", before("<- initialize"))},
	{rule: "INI-3", clean: "v1-bare", mutation: remove("-> initialize", "/params/clientInfo")},
	{rule: "INI-5", clean: "v1-bare", mutation: remove("<- initialize", "/result/agentInfo")},
	{rule: "INI-6", clean: "v1-bare", mutation: remove("-> initialize", "/params/protocolVersion")},
	{rule: "INI-2", clean: "v1-bare", mutation: remove("-> initialize", "/params/clientCapabilities")},
	{rule: "INI-6", clean: "v1-bare", mutation: remove("<- initialize", "/result/protocolVersion")},
	{rule: "INI-4", clean: "v1-bare", mutation: remove("<- initialize", "/result/agentCapabilities")},
	{rule: "INI-9", clean: "v1-bare", mutation: all(cut("-> initialize"), set("-> initialize", "/params/protocolVersion", "9999"),
		insert(atEnd, `<- {"id":1,"error":{"code":-32602,"message":"Unsupported version"}}`))},
	{rule: "INI-13", clean: "v1-turns", mutation: remove("-> initialize", "/params/clientCapabilities/fs/readTextFile"), also: map[string]string{"FS-2": "the agent calls what the client does not state"}},
	{rule: "INI-14", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/loadSession"), also: map[string]string{"SES-4": "the client calls what the agent does not state"}},
	{rule: "INI-10", clean: "v1-bare", mutation: set("<- initialize", "/result/protocolVersion", "2")},
	{rule: "INI-16", clean: "v1-bare", mutation: all(fails("<- session/new", "-32601"), cut("<- session/new"))},
	{rule: "INI-16", clean: "v1-bare", mutation: fails("<- session/prompt#2", "-32601")},
	{rule: "INI-6", clean: "v1-bare", mutation: all(cut("<- session/new"), remove("<- session/new", "/result/sessionId"))},
	{rule: "INI-6", clean: "v1-bare", mutation: turn("<- session/update:agent_message_chunk")},
	{rule: "INI-6", clean: "v1-bare", mutation: set("<- session/prompt#2", "/result/stopReason", `"bored"`)},
	{rule: "INI-6", clean: "v1-turns", mutation: set("<- session/update:usage_update", "/params/update/used", "null")},
	{rule: "INI-6", clean: "v1-turns", mutation: remove("-> session/prompt", "/params/prompt/2/mimeType")},
	{rule: "INI-6", clean: "v1-turns", mutation: set("<- fs/read_text_file", "/params/limit", "4294967296")},
	{rule: "INI-6", clean: "v1-turns", mutation: set("-> fs/write_text_file", "/result", `"done"`)},
	{rule: "INI-6", clean: "v1-sessions", mutation: remove("-> session/load", "/params/mcpServers")},
	{rule: "INI-6", clean: "v1-sessions", mutation: set("<- session/load", "/result", "null")},
	{rule: "INI-6", clean: "v1-sessions", mutation: set("<- authenticate", "/result", "[]")},
	{rule: "INI-6", clean: "v1-sessions", mutation: remove("<- session/update:available_commands_update", "/params/update/availableCommands/0/description")},
	{rule: "SCH-15", clean: "v1-elicitations", mutation: set("<- elicitation/create#2", "/params/requestedSchema/properties/name", `{"type":"object"}`)},
	{rule: "INI-6", clean: "v2-turns", mutation: remove("<- session/request_permission", "/params/title")},
	{rule: "INI-6", clean: "n2-dual", mutation: remove("<- session/prompt", "/result/messageId")},
	{rule: "INI-19", clean: "v1-sessions", mutation: remove("-> initialize", "/params/clientCapabilities/auth")},
	{rule: "INI-19", clean: "v1-sessions", mutation: set("-> initialize", "/params/clientCapabilities", `{"_meta":{"terminal_output":true,"terminal-auth":false}}`)},

	// authentication
	{rule: "AUT-1", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/auth"), also: serves},
	{rule: "AUT-2", clean: "v1-sessions", mutation: set("-> authenticate", "/params/methodId", `"terminal"`)},
	{rule: "AUT-3", clean: "v1-sessions", mutation: set("-> authenticate", "/params/methodId", `"nope"`)},
	{rule: "AUT-9", clean: "v1-sessions", mutation: all(insert(after("<- authenticate"),
		`-> {"id":"again","method":"session/new","params":{"cwd":"/home/ada","mcpServers":[]}}`,
		`<- {"id":"again","error":{"code":-32000,"message":"Authentication required"}}`))},
	{rule: "AUT-10", clean: "v1-sessions", mutation: succeeds("<- session/new#last", `{"sessionId":"sess_9"}`)},

	// session-setup
	{rule: "SES-2", clean: "v1-bare", mutation: all(cut("<- session/new"), set("<- session/new", "/result/sessionId", `""`))},
	{rule: "SES-2", clean: "v1-sessions", mutation: all(
		set("<- session/new#3", "/result/sessionId", `"sess_1"`),
		set("<- session/update:available_commands_update#2", "/params/sessionId", `"sess_1"`))},
	{rule: "SES-4", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/loadSession"), also: serves},
	{rule: "SES-6", clean: "v1-sessions", mutation: drop("<- session/update:user_message_chunk")},
	{rule: "SES-6", clean: "v1-sessions", mutation: move("<- session/update:user_message_chunk", before("<- session/load"))},
	{rule: "SES-7", clean: "v1-sessions", mutation: again("<- session/update:user_message_chunk", after("<- session/load"))},
	{rule: "SES-9", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/sessionCapabilities/resume"), also: serves},
	{rule: "SES-11", clean: "v1-sessions", mutation: again("<- session/update:agent_message_chunk#4", after("-> session/resume"))},
	{rule: "SES-11", clean: "v1-sessions", mutation: all(cut("<- session/resume"), set("-> session/resume", "/params/sessionId", `"sess_old"`),
		insert(after("-> session/resume"), `<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"plan","entries":[]}}}`))},
	{rule: "SES-13", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/sessionCapabilities/close"), also: serves},
	{rule: "SES-15", clean: "v1-cancel", mutation: all(set("<- session/prompt#last", "/result/stopReason", `"end_turn"`), move("<- session/prompt#last", after("<- session/close")))},
	{rule: "SES-15", clean: "v1-sessions", mutation: all(move("-> session/close", before("-> session/prompt")), move("<- session/close", before("-> session/prompt")))},
	{rule: "SES-17", clean: "v1-sessions", mutation: set("-> session/new", "/params/additionalDirectories/0", `"lib"`)},
	{rule: "SES-17", clean: "v1-sessions", mutation: set("-> session/load", "/params/additionalDirectories/0", `"lib"`)},
	{rule: "SES-19", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/sessionCapabilities/additionalDirectories")},
	{rule: "SES-20", clean: "v1-bare", mutation: set("-> session/new", "/params/cwd", `"shop"`)},
	{rule: "SES-20", clean: "v1-sessions", mutation: set("-> session/resume", "/params/cwd", `"./shop"`)},
	{rule: "SES-21", clean: "v1-sessions", mutation: all(set("-> session/resume", "/params/cwd", `"/home/ada/other"`), insert(after("<- session/resume"), listed...))},
	{rule: "SES-27", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/mcpCapabilities/http")},
	{rule: "SES-27", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/mcpCapabilities/sse")},
	{rule: "SES-29", clean: "v1-sessions", mutation: set("-> session/new#2", "/params/mcpServers/0/command", `"tools"`)},
	{rule: "SES-31", clean: "v1-sessions", mutation: move("<- session/update:available_commands_update", before("<- session/new#2"))},

	// session-list
	{rule: "LST-3", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/sessionCapabilities/list"), also: serves},
	{rule: "LST-9", clean: "v1-sessions", mutation: remove("<- session/list", "/result/nextCursor")},
	{rule: "LST-10", clean: "v1-sessions", mutation: set("-> session/list#2", "/params/cursor", `"page%2F2"`)},

	// session-delete
	{rule: "DEL-3", clean: "v1-sessions", mutation: remove("<- initialize", "/result/agentCapabilities/sessionCapabilities/delete"), also: serves},
	{rule: "DEL-4", clean: "v1-sessions", mutation: set("<- session/list#last", "/result/sessions/-", `{"sessionId":"sess_1","cwd":"/home/ada/shop"}`)},
	{rule: "DEL-5", clean: "v1-sessions", mutation: fails("<- session/delete#2", "-32002")},

	// session-modes
	{rule: "MOD-1", clean: "v1-bare", mutation: insert(atEnd,
		`-> {"id":"mode","method":"session/set_mode","params":{"sessionId":"sess_1","modeId":"ask"}}`, `<- {"id":"mode","error":{"code":-32602,"message":"There are no modes"}}`)},
	{rule: "MOD-2", clean: "v1-settings", mutation: set("<- session/update:current_mode_update#last", "/params/update/currentModeId", `"turbo"`)},
	{rule: "MOD-1", clean: "v1-settings", mutation: set("-> session/set_mode", "/params/modeId", `"turbo"`)},
	{rule: "MOD-2", clean: "v1-settings", mutation: set("<- session/load", "/result/modes/currentModeId", `"turbo"`)},

	// session-config-options
	{rule: "CFG-16", clean: "v1-settings", mutation: all(set("-> session/set_config_option", "/params/type", `"boolean"`), set("-> session/set_config_option", "/params/value", "true"),
		fails("<- session/set_config_option", "-32602"))},
	{rule: "CFG-19", clean: "v1-settings", mutation: remove("<- session/load", "/result/modes")},
	{rule: "CFG-3", clean: "v1-settings", mutation: remove("-> initialize", "/params/clientCapabilities/session")},
	{rule: "CFG-7", clean: "v1-settings", mutation: set("<- session/load", "/result/configOptions/2/category", `"style"`)},
	{rule: "CFG-14", clean: "v1-settings", mutation: set("<- session/load", "/result/configOptions/1/currentValue", `"giant"`)},
	{rule: "CFG-16", clean: "v1-settings", mutation: all(set("-> session/set_config_option", "/params/value", `"giant"`), fails("<- session/set_config_option", "-32602"))},
	{rule: "CFG-16", clean: "v1-settings", mutation: all(set("-> session/set_config_option", "/params/configId", `"nope"`), fails("<- session/set_config_option", "-32602"))},
	{rule: "CFG-17", clean: "v1-settings", mutation: all(
		remove("<- session/set_config_option", "/result/configOptions/2"), remove("<- session/set_config_option", "/result/configOptions/0"))},
	{rule: "CFG-17", clean: "v1-settings", mutation: remove("<- session/set_config_option", "/result/configOptions/1")},
	{rule: "CFG-17", clean: "v1-settings", mutation: set("<- session/set_config_option", "/result/configOptions/1/currentValue", `"small"`)},
	{rule: "CFG-18", clean: "v1-settings", mutation: all(
		remove("<- session/update:config_option_update#last", "/params/update/configOptions/2"),
		remove("<- session/update:config_option_update#last", "/params/update/configOptions/1"))},
	{rule: "CFG-19", clean: "v1-settings", mutation: remove("<- session/load", "/result/configOptions/0")},
	{rule: "CFG-22", clean: "v1-settings", mutation: set("<- session/load", "/result/configOptions/0/currentValue", `"auto"`)},

	// prompt-turn
	{rule: "PRM-1", clean: "v1-sessions", mutation: move("-> session/prompt#2", before("<- session/load"))},
	{rule: "PRM-1", clean: "v1-bare", mutation: insert(atEnd,
		`-> {"id":"new","method":"session/prompt","params":{"sessionId":"nope","prompt":[{"type":"text","text":"Hello?"}]}}`,
		`<- {"id":"new","error":{"code":-32002,"message":"Session not found","data":{"sessionId":"nope"}}}`)},
	{rule: "PRM-2", clean: "v1-turns", mutation: remove("<- initialize", "/result/agentCapabilities/promptCapabilities/image")},
	{rule: "PRM-2", clean: "v1-turns", mutation: remove("<- initialize", "/result/agentCapabilities/promptCapabilities/embeddedContext")},
	{rule: "PRM-3", clean: "v1-sessions", mutation: set("<- session/update:agent_message_chunk#4", "/params/update/messageId", `"msg_1"`)},
	{rule: "PRM-3", clean: "v1-bare", mutation: all(
		set("<- session/update:agent_message_chunk", "/params/update/messageId", `"m"`), set("<- session/update:agent_message_chunk#2", "/params/update/messageId", `"m"`))},
	{rule: "PRM-5", clean: "v1-bare", mutation: drop("<- session/prompt#2"), closedBy: conformance.Agent},
	{rule: "PRM-6", clean: "v1-turns", mutation: drop("<- session/update:tool_call_update#4")},
	{rule: "PRM-6", clean: "v1-turns", mutation: set("<- session/request_permission", "/params/toolCall/status", `"in_progress"`)},
	{rule: "PRM-7", clean: "v1-bare", mutation: set("<- session/prompt#2", "/result/stopReason", `"cancelled"`)},
	{rule: "PRM-9", clean: "v1-cancel", mutation: set("-> session/request_permission", "/result/outcome", `{"outcome":"selected","optionId":"yes"}`)},
	{rule: "PRM-9", clean: "v1-cancel", mutation: fails("-> session/request_permission", "-32603")},
	{rule: "PRM-11", clean: "v1-cancel", mutation: set("<- session/prompt#2", "/result/stopReason", `"end_turn"`)},
	{rule: "PRM-12", clean: "v1-cancel", mutation: fails("<- session/prompt#2", "-32603")},
	{rule: "PRM-12", clean: "v1-cancel", mutation: fails("<- session/prompt#2", "-32800")},
	{rule: "PRM-13", clean: "v1-bare", mutation: move("<- session/update:agent_message_chunk", after("<- session/prompt"))},
	{rule: "PRM-13", clean: "v1-cancel", mutation: move("<- session/update:agent_message_chunk#3", after("<- session/prompt"))},
	{rule: "PRM-15", clean: "v1-bare", mutation: move("-> session/prompt#2", before("<- session/prompt"))},
	{rule: "PRM-15", clean: "v1-cancel", mutation: move("-> session/prompt#2", after("-> session/cancel#2"))},

	{rule: "PRM-16", clean: "v1-bare", mutation: all(
		insert(after("<- session/new"), `-> {"method":"session/cancel","params":{"sessionId":"sess_1"}}`),
		set("<- session/prompt", "/result/stopReason", `"cancelled"`))},

	// cancellation
	{rule: "CAN-1", clean: "v1-errors", mutation: drop("<- session/new#2"), closedBy: conformance.Agent},

	// content
	{rule: "CON-3", clean: "v1-turns", mutation: set("-> session/prompt", "/params/prompt/2/mimeType", `"png"`)},
	{rule: "CON-3", clean: "v1-turns", mutation: set("-> session/prompt", "/params/prompt/2/data", `"?"`)},

	// tool-calls
	{rule: "TOL-1", clean: "v1-turns", mutation: drop("<- session/update:tool_call#2")},
	{rule: "TOL-1", clean: "v1-turns", mutation: drop("<- session/update:tool_call")},
	{rule: "TOL-2", clean: "v1-turns", mutation: repeat("<- session/update:tool_call")},
	{rule: "TOL-5", clean: "v1-turns", mutation: set("-> session/request_permission", "/result/outcome/optionId", `"maybe"`)},
	{rule: "TOL-6", clean: "v1-turns", mutation: set("<- session/request_permission", "/params/options/1/optionId", `"yes"`)},
	{rule: "TOL-8", clean: "v1-terminals", mutation: set("<- session/update:tool_call_update", "/params/update/content/0/terminalId", `"term_9"`)},
	{rule: "TOL-9", clean: "v1-turns", mutation: again("<- session/update:tool_call_update", after("<- session/update:tool_call_update#3"))},
	{rule: "TOL-9", clean: "v1-terminals", mutation: drop("<- session/update:tool_call_update#last")},

	// file-system
	{rule: "FS-2", clean: "v1-turns", mutation: remove("-> initialize", "/params/clientCapabilities/fs/writeTextFile"), also: obeys},
	{rule: "FS-2", clean: "v1-turns", mutation: remove("-> initialize", "/params/clientCapabilities/fs/readTextFile"), also: obeys},
	{rule: "FS-2", clean: "v1-cancel", mutation: remove("-> initialize", "/params/clientCapabilities/fs/readTextFile")},
	{rule: "FS-6", clean: "v1-errors", mutation: set("-> fs/read_text_file", "/error", `{"code":-32603,"message":"ENOENT: no such file or directory"}`)},
	{rule: "FS-6", clean: "v1-errors", mutation: remove("-> fs/read_text_file", "/error/data")},

	// terminals
	{rule: "TRM-2", clean: "v1-terminals", mutation: remove("-> initialize", "/params/clientCapabilities/terminal"), also: obeys},
	{rule: "TRM-4", clean: "v1-terminals", mutation: set("-> terminal/output#2", "/result/output", `"more than eight bytes"`)},
	{rule: "TRM-5", clean: "v1-terminals", mutation: set("-> terminal/output#2", "/result/output", "\"\uFFFDzz\"")},
	{rule: "TRM-7", clean: "v1-terminals", mutation: drop("<- terminal/release#3", "-> terminal/release#3"), closedBy: conformance.Agent},
	{rule: "TRM-7", clean: "v1-terminals", mutation: drop("<- terminal/release", "-> terminal/release")},
	{rule: "TRM-8", clean: "v1-terminals", mutation: drop("<- terminal/release#2", "-> terminal/release#2")},
	{rule: "TRM-9", clean: "v1-terminals", mutation: remove("-> terminal/output", "/result/exitStatus")},
	{rule: "TRM-10", clean: "v1-terminals", mutation: fails("-> terminal/output#3", "-32603")},
	{rule: "TRM-11", clean: "v1-terminals", mutation: insert(after("-> terminal/release"),
		`<- {"id":"late","method":"terminal/output","params":{"sessionId":"sess_1","terminalId":"term_1"}}`,
		`-> {"id":"late","result":{"output":"","truncated":false,"exitStatus":{"exitCode":0}}}`),
		also: map[string]string{"ADD-15": "no correct agent provokes it"}},
	{rule: "TRM-12", clean: "v1-terminals", mutation: set("-> terminal/wait_for_exit", "/result", "{}")},
	{rule: "TRM-12", clean: "v1-terminals", mutation: set("-> terminal/output", "/result/exitStatus", `{"exitCode":null,"signal":null}`)},

	// agent-plan
	{rule: "PLN-3", clean: "v1-turns", mutation: remove("<- session/update:plan#2", "/params/update/entries/2")},

	// slash-commands
	{rule: "CMD-2", clean: "v1-sessions", mutation: set("<- session/update:available_commands_update", "/params/update/availableCommands/0/name", `"/test"`)},

	// elicitation
	{rule: "ELI-5", clean: "v1-elicitations", mutation: remove("-> initialize", "/params/clientCapabilities/elicitation/form"), also: asks},
	{rule: "ELI-5", clean: "v1-elicitations", mutation: set("-> initialize", "/params/clientCapabilities/elicitation", "{}"), also: asks},
	{rule: "ELI-5", clean: "v1-elicitations", mutation: all(
		remove("-> initialize", "/params/clientCapabilities/elicitation/url"), cut("-> elicitation/create"), fails("-> elicitation/create", "-32602"))},
	{rule: "ELI-23", clean: "v1-elicitations", mutation: all(
		remove("-> initialize", "/params/clientCapabilities/elicitation/url"), cut("-> elicitation/create"), fails("-> elicitation/create", "-32603")),
		also: map[string]string{"ELI-5": "no correct agent provokes it"}},
	{rule: "ELI-11", clean: "v1-elicitations", mutation: set("<- elicitation/create#2", "/params/requestedSchema/properties/password", `{"type":"string","title":"Your password"}`)},
	{rule: "ELI-15", clean: "v1-elicitations", mutation: set("-> elicitation/create#2", "/result/content/age", "200")},
	{rule: "ELI-15", clean: "v1-elicitations", mutation: remove("-> elicitation/create#2", "/result/content/name")},
	{rule: "ELI-15", clean: "v1-elicitations", mutation: set("-> elicitation/create#2", "/result/content/colour", `"blue"`)},
	{rule: "ELI-19", clean: "v1-elicitations", mutation: all(
		set("<- elicitation/create#last", "/params/elicitationId", `"elic_1"`),
		set("<- elicitation/complete#last", "/params/elicitationId", `"elic_1"`))},
	{rule: "ELI-21", clean: "v1-elicitations", mutation: set("<- elicitation/complete#last", "/params/elicitationId", `"elic_9"`)},
	{rule: "ELI-25", clean: "v1-elicitations", mutation: set("<- elicitation/create", "/params/url", `"https://ada:secret@example.com/login"`)},
	{rule: "ELI-25", clean: "v1-elicitations", mutation: set("<- elicitation/create", "/params/url", `"https://example.com/login?email=ada"`)},
	{rule: "ELI-25", clean: "v1-elicitations", mutation: set("<- elicitation/create", "/params/url", `"https://example.com/login?access_token=abc"`)},
	{rule: "ELI-26", clean: "v1-elicitations", mutation: set("<- elicitation/create", "/params/url", `"http://example.com/login"`)},
	{rule: "ELI-27", clean: "v1-elicitations", mutation: set("<- elicitation/create#2", "/params/message", `"Go to https://example.com and tell me."`)},
	{rule: "ELI-34", clean: "v1-elicitations", mutation: set("<- elicitation/create#2", "/params/requestId", "4")},

	// extensibility
	{rule: "EXT-1", clean: "v1-bare", mutation: set("-> session/new", "/params/_meta", `{"traceparent":"nonsense"}`)},
	{rule: "EXT-2", clean: "v1-bare", mutation: set("-> session/new", "/params/colour", `"red"`)},
	{rule: "EXT-3", clean: "v1-errors", mutation: all(
		set("-> _shop.example/seen", "/method", `"shop.example/seen"`))},
	{rule: "EXT-4", clean: "v1-errors", mutation: drop("<- _shop.example/price"), closedBy: conformance.Agent},
	{rule: "EXT-5", clean: "v1-errors", mutation: set("<- _shop.example/unknown", "/error/code", "-32603")},
	{rule: "EXT-6", clean: "v1-errors", mutation: all(
		remove("-> initialize", "/params/clientCapabilities/_meta"), remove("<- initialize", "/result/agentCapabilities/_meta"))},

	// errors
	{rule: "ERR-2", clean: "v1-errors", mutation: set("<- session/prompt#2", "/error/code", "-32050")},
	{rule: "ERR-3", clean: "v1-settings", mutation: all(fails("<- session/set_mode#last", "-32603"),
		set("<- session/set_mode#last", "/error/message", `"Method not found"`), drop("<- session/update:current_mode_update#last", "<- session/update:config_option_update#last"))},
	{rule: "ERR-3", clean: "v1-sessions", mutation: all(
		remove("<- initialize", "/result/agentCapabilities/sessionCapabilities/delete"), fails("<- session/delete", "-32603"), fails("<- session/delete#2", "-32601")),
		also: map[string]string{"DEL-3": "no correct client provokes it"}},
	{rule: "ERR-4", clean: "v1-settings", mutation: all(fails("<- session/set_mode#last", "-32603"),
		set("<- session/set_mode#last", "/error/message", `"Invalid params"`), drop("<- session/update:current_mode_update#last", "<- session/update:config_option_update#last"))},
	{rule: "ERR-4", clean: "v1-settings", mutation: all(set("-> session/set_mode#last", "/params/modeId", `"turbo"`), fails("<- session/set_mode#last", "-32603"),
		drop("<- session/update:current_mode_update#last", "<- session/update:config_option_update#last")),
		also: map[string]string{"MOD-1": "no correct client provokes it"}},
	{rule: "ERR-5", clean: "v1-settings", mutation: insert(after("<- session/close"),
		`-> {"id":"late","method":"session/set_mode","params":{"sessionId":"sess_1","modeId":"ask"}}`, `<- {"id":"late","error":{"code":-32603,"message":"It failed"}}`)},
	{rule: "ERR-7", clean: "v1-bare", mutation: insert(atEnd, "-> quit", `<- {"id":null,"error":{"code":-32603,"message":"Internal error"}}`),
		also: map[string]string{"TRN-6": "no correct client provokes it"}},
	{rule: "ERR-5", clean: "v1-errors", mutation: remove("<- session/load", "/error/data")},
	{rule: "ERR-9", clean: "v1-bare", mutation: all(cut("-> session/new"),
		insert(atEnd, `<- {"id":2,"error":{"code":-32000,"message":"Too many requests"}}`))},
	{rule: "ERR-9", clean: "v1-bare", mutation: all(set("-> initialize", "/params/clientCapabilities", `{"auth":{"terminal":true}}`), cut("-> session/new"),
		insert(atEnd, `<- {"id":2,"error":{"code":-32000,"message":"Authentication required"}}`))},

	// schema-reference
	{rule: "SCH-2", clean: "v1-bare", mutation: set("<- session/prompt#2", "/id", `"4"`), closedBy: conformance.Client},
	{rule: "SCH-2", clean: "v1-bare", mutation: repeat("<- session/prompt")},
	{rule: "SCH-3", clean: "v1-bare", mutation: number("-> session/prompt#2", "null")},
	{rule: "SCH-2", clean: "v1-bare", mutation: number("-> session/prompt#2", "1.5")},
	{rule: "SCH-4", clean: "v1-bare", mutation: remove("<- session/prompt", "/jsonrpc")},
	{rule: "SCH-11", clean: "v1-turns", mutation: set("<- session/update:notice", "/params/update/severity", `"loud"`)},
	{rule: "SCH-12", clean: "v1-turns", mutation: remove("-> initialize", "/params/clientCapabilities/session/notices")},
	{rule: "SCH-13", clean: "v1-turns", mutation: remove("-> initialize", "/params/clientCapabilities/session/compaction")},
	{rule: "TOL-8", clean: "v1-terminals", mutation: move("<- session/update:tool_call_update", after("-> terminal/release"))},

	// additions
	{rule: "ADD-2", clean: "v1-bare", mutation: set("<- session/update:agent_message_chunk", "/params/sessionId", `"sess_9"`)},
	{rule: "ADD-2", clean: "v1-terminals", mutation: set("<- terminal/wait_for_exit", "/params/sessionId", `"sess_9"`)},
	{rule: "ADD-13", clean: "v1-sessions", mutation: set("<- session/list", "/result/sessions/0/updatedAt", `"yesterday"`)},
	{rule: "ADD-13", clean: "v1-turns", mutation: insert(atEnd, `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"session_info_update","updatedAt":"12:30"}}}`)},
	{rule: "ADD-16", clean: "v1-sessions", mutation: set("-> session/list", "/params/cwd", `"/home/ada/other"`)},
	{rule: "ADD-15", clean: "v1-terminals", mutation: insert(after("-> terminal/release"),
		`<- {"id":"late","method":"terminal/output","params":{"sessionId":"sess_1","terminalId":"term_1"}}`,
		`-> {"id":"late","error":{"code":-32602,"message":"No such terminal"}}`)},
	{rule: "ADD-5", clean: "v1-sessions", mutation: set("<- initialize", "/result/authMethods/-", `{"id":"browser","name":"Again"}`)},
	{rule: "ADD-6", clean: "v1-errors", mutation: set("<- session/prompt#2", "/error/message", `""`)},
	{rule: "ADD-7", clean: "v1-bare", mutation: all(set("-> initialize", "/params/protocolVersion", "9999"), set("<- initialize", "/result/protocolVersion", "9999"))},
	{rule: "ADD-10", clean: "v1u-methods", mutation: remove("<- initialize", "/result/agentCapabilities/sessionCapabilities/fork")},
	{rule: "ADD-10", clean: "v1u-methods", mutation: remove("<- initialize", "/result/agentCapabilities/providers")},
	{rule: "ADD-10", clean: "v1u-methods", mutation: set("-> session/new", "/params/systemPrompt", `{"mode":"append","content":[]}`)},
	{rule: "ADD-10", clean: "v1u-methods", mutation: insert(atEnd, `<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"plan_removed","planId":"p"}}}`)},
	{rule: "ADD-12", clean: "v1-sessions", mutation: all(
		drop("<- session/update:available_commands_update"),
		move("<- session/update:available_commands_update#2", after("<- session/load")))},
	{rule: "ADD-6", clean: "v1-errors", mutation: set("<- session/prompt#2", "/error/message", `"no\nmodel"`)},

	// version-2
	{rule: "V2-1", clean: "v2-turns", mutation: drop("<- session/update:user_message")},
	{rule: "V2-2", clean: "v2-turns", mutation: drop("<- session/update:state_update")},
	{rule: "V2-3", clean: "v2-cancel", mutation: insert(after("<- session/update:state_update#2"),
		`<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}}}`)},
	{rule: "V2-4", clean: "v2-cancel", mutation: drop("<- session/update:state_update#last")},
	{rule: "V2-5", clean: "v2-cancel", mutation: again("<- session/update:state_update#last", atEnd)},
	{rule: "V2-6", clean: "v2-turns", mutation: remove("<- session/update:tool_call_update", "/params/update/title")},
	{rule: "V2-7", clean: "v2-turns", mutation: set("<- session/update:terminal_update#2", "/params/update/cwd", `"/tmp"`)},
	{rule: "V2-8", clean: "v2-turns", mutation: set("<- session/update:terminal_output_chunk", "/params/update/data", `"b2sg="`)},
	{rule: "V2-8", clean: "v2-turns", mutation: set("<- session/update:terminal_output_chunk", "/params/update/data", `"b2sgIA"`)},
	{rule: "V2-9", clean: "v2-sessions", mutation: again("<- session/update:agent_message_chunk#3", after("-> session/resume#2"))},
	{rule: "V2-9", clean: "v2-sessions", mutation: all(drop("-> session/close#2", "<- session/close#2"), again("<- session/update:agent_message", after("-> session/resume#2")))},
	{rule: "V2-10", clean: "v2-sessions", mutation: drop("<- session/update:state_update#5")},
	{rule: "V2-11", clean: "v2-sessions", mutation: drop("<- session/update:agent_message")},
	{rule: "V2-11", clean: "v2-sessions", mutation: all(drop("-> session/close", "<- session/close"), drop("<- session/update:agent_message"))},
	{rule: "V2-11", clean: "v2-sessions", mutation: all(cut("-> session/resume"), set("-> session/resume", "/params/sessionId", `"sess_old"`), insert(atEnd,
		`<- {"method":"session/update","params":{"sessionId":"sess_old","update":{"sessionUpdate":"user_message_chunk","messageId":"old","content":{"type":"text","text":"Hi"}}}}`))},
	{rule: "V2-12", clean: "v2-sessions", mutation: all(remove("<- initialize", "/result/authMethods"), drop("-> auth/login", "<- auth/login"))},
	{rule: "V2-13", clean: "v2-cancel", mutation: remove("<- initialize", "/result/capabilities/session")},
	{rule: "V2-14", clean: "v2-cancel", mutation: all(cut("-> session/prompt#last"), insert(atEnd,
		`-> {"id":"close","method":"session/close","params":{"sessionId":"sess_1"}}`, `<- {"id":"close","result":{}}`, `<- {"id":8,"error":{"code":-32603,"message":"It was closed"}}`))},
	{rule: "V2-15", clean: "v2-cancel", mutation: set("<- session/update:state_update", "/params/update/background", "[]")},
	{rule: "V2-16", clean: "v2-sessions", mutation: set("<- session/update:user_message#3", "/params/update/messageId", `"user_9"`)},
	{rule: "V2-16", clean: "v2-sessions", mutation: all(set("<- session/update:agent_message", "/params/update/messageId", `"msg_9"`),
		set("<- session/update:agent_message_chunk#3", "/params/update/messageId", `"msg_9"`), set("<- session/update:agent_message_chunk#4", "/params/update/messageId", `"msg_9"`))},

	// version 2, of the rules that it shares with version 1
	{rule: "OVW-1", clean: "v2-turns", mutation: set("<- session/update:tool_call_update", "/params/update/locations/0/path", `"cart.go"`)},
	{rule: "OVW-1", clean: "v2-turns", mutation: set("<- session/update:tool_call_update#6", "/params/update/content/0/changes/1/oldPath", `"a.go"`)},
	{rule: "OVW-1", clean: "v2-sessions", mutation: set("<- session/list#2", "/result/sessions/0/cwd", `"shop"`)},
	{rule: "INI-6", clean: "v2-turns", mutation: set("<- session/update:tool_call_update", "/params/update/locations/0/line", "0")},
	{rule: "OVW-3", clean: "v2-cancel", mutation: set("<- session/close", "/error", `{"code":-32603,"message":"No"}`)},
	{rule: "OVW-4", clean: "v2-cancel", mutation: insert(after("-> session/cancel"), `<- {"id":null,"error":{"code":-32601,"message":"Method not found"}}`)},
	{rule: "TRN-1", clean: "v2-cancel", mutation: insert(atEnd, "-> {\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{\"\xff\":1}}")},
	{rule: "TRN-3", clean: "v2-cancel", mutation: insert(atEnd, `-> [{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"sess_1"}}]`)},
	{rule: "TRN-6", clean: "v2-cancel", mutation: insert(atEnd, "-> []")},
	{rule: "TRN-4", clean: "v2-cancel", mutation: insert(atEnd, "-> {\"jsonrpc\":\"2.0\",\n\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"sess_1\"}}")},
	{rule: "TRN-5", clean: "v2-cancel", mutation: insert(atStart, "<- npm notice: a newer version")},
	{rule: "TRN-6", clean: "v2-cancel", mutation: insert(atEnd, "-> quit")},
	{rule: "INI-9", clean: "v2-cancel", mutation: all(cut("-> initialize"), set("-> initialize", "/params/protocolVersion", "9999"),
		insert(atEnd, `<- {"id":1,"error":{"code":-32602,"message":"Unsupported version"}}`))},
	{rule: "INI-10", clean: "v2-cancel", mutation: set("-> initialize", "/params/protocolVersion", "1")},
	{rule: "INI-16", clean: "v2-cancel", mutation: all(fails("<- session/new", "-32601"), cut("<- session/new"))},
	{rule: "INI-19", clean: "v2-sessions", mutation: set("<- initialize", "/result/authMethods/-", `{"type":"terminal","methodId":"terminal","name":"In a terminal"}`)},
	{rule: "AUT-2", clean: "v2-sessions", mutation: all(set("-> initialize", "/params/capabilities", `{"auth":{"terminal":{}}}`),
		set("<- initialize", "/result/authMethods/-", `{"type":"terminal","methodId":"terminal","name":"In a terminal"}`), set("-> auth/login", "/params/methodId", `"terminal"`))},
	{rule: "AUT-3", clean: "v2-sessions", mutation: set("-> auth/login", "/params/methodId", `"nope"`)},
	{rule: "AUT-9", clean: "v2-sessions", mutation: insert(after("<- auth/login"),
		`-> {"id":"again","method":"session/new","params":{"cwd":"/home/ada"}}`, `<- {"id":"again","error":{"code":-32000,"message":"Authentication required"}}`)},
	{rule: "AUT-10", clean: "v2-sessions", mutation: all(
		insert(before("-> auth/login"), `-> {"id":"first","method":"session/new","params":{"cwd":"/home/ada"}}`, `<- {"id":"first","error":{"code":-32000,"message":"Authentication required"}}`),
		insert(atEnd, `-> {"id":"last","method":"session/new","params":{"cwd":"/home/ada"}}`, `<- {"id":"last","result":{"sessionId":"sess_9"}}`))},
	{rule: "SES-2", clean: "v2-cancel", mutation: insert(after("<- session/new"),
		`-> {"id":"again","method":"session/new","params":{"cwd":"/home/ada"}}`, `<- {"id":"again","result":{"sessionId":"sess_1"}}`)},
	{rule: "SES-17", clean: "v2-sessions", mutation: set("-> session/resume", "/params/additionalDirectories/0", `"lib"`)},
	{rule: "SES-19", clean: "v2-sessions", mutation: remove("<- initialize", "/result/capabilities/session/additionalDirectories")},
	{rule: "SES-20", clean: "v2-cancel", mutation: set("-> session/new", "/params/cwd", `"shop"`)},
	{rule: "SES-21", clean: "v2-sessions", mutation: all(set("-> session/resume#2", "/params/cwd", `"/home/ada/other"`), insert(after("<- session/resume#2"), listed...))},
	{rule: "SES-27", clean: "v2-sessions", mutation: remove("<- initialize", "/result/capabilities/session/mcp/http")},
	{rule: "SES-27", clean: "v2-sessions", mutation: remove("<- initialize", "/result/capabilities/session/mcp/stdio")},
	{rule: "SES-29", clean: "v2-sessions", mutation: set("-> session/new", "/params/mcpServers/0/command", `"tools"`)},
	{rule: "SES-31", clean: "v2-cancel", mutation: insert(before("<- session/new"),
		`<- {"method":"session/update","params":{"sessionId":"sess_1","update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`)},
	{rule: "LST-9", clean: "v2-sessions", mutation: remove("<- session/list", "/result/nextCursor")},
	{rule: "LST-10", clean: "v2-sessions", mutation: set("-> session/list#2", "/params/cursor", `"page%2F2"`)},
	{rule: "DEL-3", clean: "v2-sessions", mutation: remove("<- initialize", "/result/capabilities/session/delete")},
	{rule: "DEL-4", clean: "v2-sessions", mutation: set("<- session/list#last", "/result/sessions/-", `{"sessionId":"sess_1","cwd":"/home/ada/shop"}`)},
	{rule: "DEL-5", clean: "v2-sessions", mutation: insert(after("<- session/delete"),
		`-> {"id":"again","method":"session/delete","params":{"sessionId":"sess_1"}}`, `<- {"id":"again","error":{"code":-32002,"message":"Session not found"}}`)},
	{rule: "CFG-7", clean: "v2-sessions", mutation: set("<- session/resume", "/result/configOptions/2/category", `"style"`)},
	{rule: "CFG-14", clean: "v2-sessions", mutation: set("<- session/resume", "/result/configOptions/1/currentValue", `"icy"`)},
	{rule: "CFG-16", clean: "v2-sessions", mutation: all(set("-> session/set_config_option", "/params/value", `"giant"`), fails("<- session/set_config_option", "-32602"))},
	{rule: "CFG-17", clean: "v2-sessions", mutation: remove("<- session/set_config_option", "/result/configOptions/0")},
	{rule: "CFG-17", clean: "v2-sessions", mutation: set("<- session/set_config_option", "/result/configOptions/0/currentValue", `"small"`)},
	{rule: "CFG-18", clean: "v2-sessions", mutation: all(
		remove("<- session/update:config_option_update", "/params/update/configOptions/2"), remove("<- session/update:config_option_update", "/params/update/configOptions/1"))},
	{rule: "PRM-1", clean: "v2-turns", mutation: insert(atEnd,
		`-> {"id":"new","method":"session/prompt","params":{"sessionId":"nope","prompt":[{"type":"text","text":"Hello?"}]}}`,
		`<- {"id":"new","error":{"code":-32002,"message":"Session not found","data":{"sessionId":"nope"}}}`)},
	{rule: "PRM-2", clean: "v2-turns", mutation: remove("<- initialize", "/result/capabilities/session/prompt/image")},
	{rule: "PRM-2", clean: "v2-turns", mutation: remove("<- initialize", "/result/capabilities/session/prompt/embeddedContext")},
	{rule: "CAN-1", clean: "v2-turns", mutation: insert(atEnd, `-> {"id":"c","method":"session/list","params":{}}`, `-> {"method":"$/cancel_request","params":{"requestId":"c"}}`), closedBy: conformance.Agent},
	{rule: "CON-3", clean: "v2-turns", mutation: set("-> session/prompt", "/params/prompt/2/data", `"?"`)},
	{rule: "TOL-5", clean: "v2-turns", mutation: set("-> session/request_permission", "/result/outcome/optionId", `"maybe"`)},
	{rule: "V2-18", clean: "v2-turns", mutation: set("<- session/request_permission", "/params/options/1/optionId", `"yes"`)},
	{rule: "TOL-9", clean: "v2-turns", mutation: again("<- session/update:tool_call_update#2", after("<- session/update:tool_call_update#3"))},
	{rule: "PLN-3", clean: "v2-turns", mutation: remove("<- session/update:plan_update#2", "/params/update/plan/entries/1")},
	{rule: "CMD-2", clean: "v2-turns", mutation: set("<- session/update:available_commands_update", "/params/update/availableCommands/0/name", `"/plan"`)},
	{rule: "CMD-2", clean: "v2-turns", mutation: set("<- session/new", "/result/availableCommands", `[{"type":"command","name":"/plan","description":"Plan"}]`)},
	{rule: "OVW-1", clean: "v2-turns", mutation: set("<- session/request_permission", "/params/subject/toolCall/locations", `[{"path":"cart.go"}]`)},
	{rule: "ELI-5", clean: "v2-elicitations", mutation: all(remove("-> initialize", "/params/capabilities/elicitation/url"),
		cut("-> elicitation/create#3"), fails("-> elicitation/create#3", "-32602"))},
	{rule: "ELI-11", clean: "v2-elicitations", mutation: set("<- elicitation/create", "/params/requestedSchema/properties/password", `{"type":"string","title":"Your password"}`)},
	{rule: "ELI-15", clean: "v2-elicitations", mutation: set("-> elicitation/create", "/result/content/age", "-1")},
	{rule: "ELI-19", clean: "v2-elicitations", mutation: insert(before("<- elicitation/complete"),
		`<- {"id":"twice","method":"elicitation/create","params":{"sessionId":"sess_1","mode":"url","elicitationId":"elic_1","url":"https://example.com/","message":"Look."}}`,
		`-> {"id":"twice","result":{"action":"decline"}}`)},
	{rule: "ELI-21", clean: "v2-elicitations", mutation: set("<- elicitation/complete", "/params/elicitationId", `"elic_9"`)},
	{rule: "ELI-23", clean: "v2-elicitations", mutation: all(remove("-> initialize", "/params/capabilities/elicitation/url"),
		cut("-> elicitation/create#3"), fails("-> elicitation/create#3", "-32603")), also: map[string]string{"ELI-5": "no correct agent provokes it"}},
	{rule: "ELI-25", clean: "v2-elicitations", mutation: set("<- elicitation/create#3", "/params/url", `"https://ada:secret@example.com/login"`)},
	{rule: "ELI-26", clean: "v2-elicitations", mutation: set("<- elicitation/create#3", "/params/url", `"http://example.com/login"`)},
	{rule: "ELI-27", clean: "v2-elicitations", mutation: set("<- elicitation/create", "/params/message", `"Go to https://example.com and tell me."`)},
	{rule: "EXT-1", clean: "v2-cancel", mutation: set("-> session/new", "/params/_meta", `{"traceparent":"nonsense"}`)},
	{rule: "EXT-2", clean: "v2-cancel", mutation: set("-> session/new", "/params/colour", `"red"`)},
	{rule: "EXT-3", clean: "v2-elicitations", mutation: insert(atEnd, `-> {"method":"shop.example/seen"}`)},
	{rule: "EXT-4", clean: "v2-elicitations", mutation: drop("<- _shop.example/price"), closedBy: conformance.Agent},
	{rule: "EXT-5", clean: "v2-elicitations", mutation: set("<- _shop.example/unknown", "/error/code", "-32603")},
	{rule: "EXT-6", clean: "v2-elicitations", mutation: remove("<- initialize", "/result/capabilities/_meta")},
	{rule: "EXT-6", clean: "v2-elicitations", mutation: set("<- initialize", "/result/capabilities/_meta", `{"example.org":{"rooms":true}}`)},
	{rule: "ERR-2", clean: "v2-elicitations", mutation: set("<- _shop.example/unknown", "/error", `{"code":-32050,"message":"No"}`)},
	{rule: "ERR-3", clean: "v2-sessions", mutation: all(cut("<- session/delete"), fails("<- session/delete", "-32603"), set("<- session/delete", "/error/message", `"Method not found"`))},
	{rule: "ERR-4", clean: "v2-elicitations", mutation: set("<- _shop.example/unknown", "/error", `{"code":-32603,"message":"Invalid params"}`)},
	{rule: "ERR-5", clean: "v2-sessions", mutation: remove("<- session/resume#last", "/error/data")},
	{rule: "ERR-6", clean: "v2-cancel", mutation: move("-> session/new", atStart), also: map[string]string{"INI-1": "no correct client provokes it"}},
	{rule: "ERR-7", clean: "v2-cancel", mutation: insert(atEnd, "-> quit", `<- {"id":null,"error":{"code":-32603,"message":"Internal error"}}`),
		also: map[string]string{"TRN-6": "no correct client provokes it"}},
	{rule: "ERR-9", clean: "v2-cancel", mutation: all(cut("-> session/new"), insert(atEnd, `<- {"id":2,"error":{"code":-32000,"message":"Too many requests"}}`))},
	{rule: "SCH-2", clean: "v2-cancel", mutation: repeat("<- session/prompt")},
	{rule: "SCH-2", clean: "v2-cancel", mutation: number("-> session/close", "null")},
	{rule: "SCH-4", clean: "v2-cancel", mutation: remove("<- session/prompt", "/jsonrpc")},
	{rule: "SCH-11", clean: "v2-turns", mutation: set("<- session/update:notice", "/params/update/severity", `"loud"`)},
	{rule: "SCH-15", clean: "v2-elicitations", mutation: set("<- elicitation/create#2", "/params/requestedSchema/properties/name", `{"type":"object"}`)},
	{rule: "V2-17", clean: "v2-turns", mutation: set("<- session/prompt#2", "/result/messageId", `"user_1"`)},
	{rule: "V2-17", clean: "v2-turns", mutation: set("<- session/update:agent_message_chunk#3", "/params/update/messageId", `"msg_1"`)},
	{rule: "V2-17", clean: "v2-cancel", mutation: set("<- session/update:agent_message_chunk#3", "/params/update", `{"sessionUpdate":"agent_message","messageId":"msg_1","content":[{"type":"text","text":"There is more."}]}`)},
	{rule: "V2-19", clean: "v2-turns", mutation: set("<- session/new", "/result/availableCommands", `[{"type":"command","name":"make plan","description":"Plan"}]`)},
	{rule: "V2-23", clean: "v2-sessions", mutation: move("<- session/update:user_message#3", before("<- session/update:state_update#5"))},
	{rule: "V2-24", clean: "v2-turns", mutation: drop("<- session/update:state_update#4", "<- session/update:state_update#5")},
	{rule: "V2-22", clean: "v2-cancel", mutation: all(set("<- session/update:state_update#2", "/params/update/stopReason", `"end_turn"`), insert(after("-> session/cancel"),
		`-> {"jsonrpc":"2.0","id":90,"method":"_x"}`, `<- {"jsonrpc":"2.0","id":90,"error":{"code":-32601,"message":"Method not found"}}`))},
	{rule: "V2-19", clean: "v2-turns", mutation: set("<- session/update:available_commands_update", "/params/update/availableCommands/0/name", `"make plan"`)},
	{rule: "V2-19", clean: "v2-turns", mutation: set("<- session/update:available_commands_update", "/params/update/availableCommands/-", `{"type":"command","name":"plan","description":"Plan"}`)},
	{rule: "V2-20", clean: "v2-sessions", mutation: set("<- session/new", "/result/configOptions/0/options/-", `{"value":"small","name":"Small"}`)},
	{rule: "V2-20", clean: "v2-sessions", mutation: set("<- session/new", "/result/configOptions/1/options/-", `{"groupId":"more","name":"More","options":[{"value":"warm","name":"Warm"}]}`)},
	{rule: "V2-21", clean: "v2-sessions", mutation: all(set("-> initialize", "/params/capabilities", `{"auth":{"terminal":{}}}`), set("<- initialize", "/result/authMethods/-",
		`{"type":"terminal","methodId":"tty","name":"TTY","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}`))},
	{rule: "ADD-16", clean: "v2-sessions", mutation: set("-> session/list#2", "/params/cwd", `"/home/ada/other"`)},
	{rule: "ADD-10", clean: "v2-sessions", mutation: set("-> session/list", "/params/archived", `"exclude"`), also: map[string]string{"EXT-2": "the stable schema lacks it"}},
	{rule: "ADD-2", clean: "v2-turns", mutation: set("<- session/update:usage_update", "/params/sessionId", `"sess_9"`)},
	{rule: "ADD-5", clean: "v2-sessions", mutation: set("<- initialize", "/result/authMethods/-", `{"type":"agent","methodId":"browser","name":"Again"}`)},
	{rule: "ADD-6", clean: "v2-elicitations", mutation: set("<- _shop.example/unknown", "/error/message", `""`)},
	{rule: "ADD-7", clean: "v2-cancel", mutation: all(set("-> initialize", "/params/protocolVersion", "9999"), set("<- initialize", "/result/protocolVersion", "9999"))},
}

// TestWildMutants changes the clean recordings at random, several times each. Whatever the result is, the judge reports
// only what it can prove, and continues.
func TestWildMutants(t *testing.T) {
	tier.Need(t, tier.Normal)
	values := []string{`null`, `0`, `-1`, `1e400`, `""`, `"sess_1"`, `"../x"`, `[]`, `[[]]`, `{}`, `true`, `"\u0000"`, `9007199254740993`, `{"_meta":null}`}
	rounds := 0
	for _, name := range cleanNames(t) {
		recorded := talkOf(readClean(t, name))
		for seed := range tier.Pick[uint64](0, 3, 60, 300) {
			rng := rand.New(rand.NewPCG(seed, 4))
			lines := slices.Clone(recorded)
			for range 1 + rng.IntN(6) {
				i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
				switch rng.IntN(7) {
				case 0:
					lines = slices.Delete(lines, i, i+1)
				case 1:
					lines = slices.Insert(lines, j, lines[i])
				case 2:
					lines[i], lines[j] = lines[j], lines[i]
				case 3:
					lines[i].to = conformance.ToAgent + conformance.ToClient - lines[i].to
				case 4: // a piece of it
					lines[i].text = lines[i].text[:rng.IntN(len(lines[i].text)+1)]
				default: // another value somewhere
					if m := lines[i].decode(); m != nil {
						wild(rng, m, parseJSON(values[rng.IntN(len(values))]))
						lines[i].text = encode(m)
					}
				}
			}
			for _, schema := range []*conformance.Schema{cleanSchema(name), nil} {
				for _, f := range judgeTalk(schema, lines, conformance.Side(rng.IntN(3))) {
					provable(t, lines, f)
				}
				rounds++
			}
		}
	}
	t.Logf("%d conversations", rounds)
}

// wild puts a value at a place of an object that is chosen at random.
func wild(rng *rand.Rand, v, value any) {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 {
			return
		}
		name := names[rng.IntN(len(names))]
		switch rng.IntN(4) {
		case 0:
			delete(v, name)
		case 1:
			v[name] = value
		default:
			wild(rng, v[name], value)
		}
	case []any:
		if len(v) == 0 {
			return
		}
		if i := rng.IntN(len(v)); rng.IntN(3) == 0 {
			v[i] = value
		} else {
			wild(rng, v[i], value)
		}
	}
}
