package translate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/translate"
)

// TestHostilePeers requires that what a peer should not send reaches the other side as something that its version has,
// or not at all, that each request is answered at most once, and that the connection works afterwards.
func TestHostilePeers(t *testing.T) {
	const dark = "hello\\u001b[2J\\u202e\\r\\npermission: all: allow"
	question := `{"id":7,"method":"session/request_permission","params":{"sessionId":"s","title":"t","options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"?","name":"?","kind":"allow_everything"}]`
	for _, c := range []struct {
		name    string
		program string   // the agent's version, and by that the client's
		from    string   // who is hostile
		lines   []string // what it sends
		never   string   // what the other side must not see
	}{
		{"text for terminals passes as it is, escaped", "agent2", "A", []string{`u {"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + dark + `"}}`}, "\x1b"},
		{"a question before any prompt", "agent2", "A", []string{question + `}}`}, "allow_everything"},
		{"a question with one id twice", "agent2", "A", []string{question + `}}`, question + `}}`}, "allow_everything"},
		{"a question about a call that does not exist", "agent2", "A", []string{question + `,"subject":{"type":"tool_call","toolCall":{"toolCallId":"none"}}}}`}, "allow_everything"},
		{"version 1 in version 2", "agent2", "A", []string{`u {"sessionUpdate":"plan","entries":[]}`, `u {"sessionUpdate":"tool_call","toolCallId":"t","title":"x"}`}, "session/update"},
		{"version 2 in version 1", "agent1", "A", []string{`u {"sessionUpdate":"state_update","state":"idle"}`, `u {"sessionUpdate":"terminal_update","terminalId":"x"}`}, "session/update"},
		{"version 1 calls from a client of version 2", "agent1", "C", []string{`{"id":7,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}`, `{"id":8,"method":"session/set_mode","params":{"sessionId":"s","modeId":"m"}}`}, ""},
		{"initialize again, with another version", "agent1", "C", []string{`{"id":7,"method":"initialize","params":{"protocolVersion":1}}`}, "initialize"},
		{"answers to nothing", "agent1", "C", []string{`{"id":99,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}`, `{"id":"translated-x-1","result":{}}`}, "result"},
		{"answers to nothing, from the agent", "agent1", "A", []string{`{"id":99,"result":{}}`, `{"id":"translated-x-9","result":{}}`}, "result"},
		{"members of the wrong type", "agent2", "A", []string{`u {"sessionUpdate":7}`, `u []`, `{"method":"session/update","params":[]}`, `{"method":"session/update","params":{"sessionId":{}}}`}, ""},
		{"no message at all", "agent1", "C", []string{`[]`, `7`, `null`, `"x"`, `{"jsonrpc":"2.0"}`}, "method"},
		{"deep nesting", "agent2", "A", []string{`u {"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, c.program, "")
			side, other := translate.AgentSide, translate.ClientSide
			if c.from == "C" {
				side, other = other, side
			}
			answers := map[string]int{}
			for _, line := range c.lines {
				for _, m := range s.Message(side, message(line)) {
					var fields struct {
						ID     json.RawMessage
						Method string
					}
					if err := json.Unmarshal(m.Line, &fields); err != nil && m.Line[0] == '{' { // others pass, for the side that gets them to refuse
						t.Errorf("%s: %v", m.Line, err)
					}
					if m.To == side && fields.Method == "" {
						answers[string(fields.ID)]++
					}
					if m.To == other && c.never != "" && strings.Contains(string(m.Line), c.never) {
						t.Errorf("the other side gets %.300s", m.Line)
					}
				}
			}
			for id, n := range answers {
				if n > 1 && id != "null" {
					t.Errorf("%d answers to %s", n, id)
				}
			}
			got := s.Message(translate.ClientSide, message(`{"id":50,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`))
			if len(got) != 1 || got[0].To != translate.AgentSide {
				t.Errorf("afterwards, session/new becomes %d messages, want one to the agent", len(got))
			}
		})
	}
}
