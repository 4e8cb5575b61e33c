package conformance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestEvidence checks what a rule's finding reports about other messages.
func TestEvidence(t *testing.T) {
	j := conformance.NewJudge(nil, nil)
	var last []conformance.Finding
	for _, line := range []string{
		`> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"a","version":"1"}}}`,
		`> {"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}`,
	} {
		direction := conformance.ToAgent
		if line[0] == '<' {
			direction = conformance.ToClient
		}
		if last = j.Message(conformance.Message{Direction: direction, Line: []byte(line[2:])}); len(last) > 0 && !strings.Contains(line, "load") {
			t.Errorf("%s: got %v", line, last)
		}
	}
	if len(last) != 1 {
		t.Fatalf("got %v", last)
	}
	f := last[0]
	if f.Rule != "SES-4" || f.Level != conformance.MustNot || f.Side != conformance.Client || f.Number != 3 || f.ID != "1" || f.Method != "session/load" || len(f.Evidence) != 1 {
		t.Fatalf("got %+v", f)
	}
	e := f.Evidence[0]
	if e.Number != 2 || e.Direction != conformance.ToClient || e.Kind != conformance.Response || e.Method != "initialize" || e.ID != "0" ||
		!strings.HasPrefix(e.Excerpt, `{"jsonrpc":"2.0","id":0,"result":`) || e.Why == "" {
		t.Errorf("got %+v", e)
	}
	if j.Version() != 1 {
		t.Errorf("version %d", j.Version())
	}
}

// TestChosenRules applies only some rules.
func TestChosenRules(t *testing.T) {
	for _, id := range []string{"INI-2", "INI-3", "none"} {
		j := conformance.NewJudge(nil, &conformance.JudgeOptions{Rules: func(r *conformance.Rule) bool { return r.ID == id }})
		var got []string
		for _, f := range j.Message(conformance.Message{Direction: conformance.ToAgent, Line: []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)}) {
			got = append(got, f.Rule)
		}
		want := []string{id}
		if id == "none" {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q", id, got)
		}
	}
}

// TestJudgeForgets shows that the memory of a judge of an endless connection is bounded, and that a judge which has
// forgotten something does not assume that it never happened.
func TestJudgeForgets(t *testing.T) {
	tier.Need(t, tier.Full)
	j := conformance.NewJudge(nil, nil)
	judge := func(direction conformance.Direction, format string, args ...any) {
		t.Helper()
		for _, f := range j.Message(conformance.Message{Direction: direction, Line: fmt.Appendf(nil, format, args...)}) {
			t.Fatalf("%s", f)
		}
	}
	toAgent := func(format string, args ...any) { t.Helper(); judge(conformance.ToAgent, format, args...) }
	toClient := func(format string, args ...any) { t.Helper(); judge(conformance.ToClient, format, args...) }
	toAgent(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true,"elicitation":{"url":{}}},"clientInfo":{"name":"c","version":"1"}}}`)
	toClient(`{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"list":{}}},"agentInfo":{"name":"a","version":"1"}}}`)
	session := func(i int) {
		toAgent(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`, i)
		toClient(`{"jsonrpc":"2.0","id":%d,"result":{"sessionId":"s%d"}}`, i, i)
	}
	turn := func(id, s int) {
		toAgent(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s%d","prompt":[{"type":"text","text":"hi"}]}}`, id, s)
		toClient(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s%d","update":{"sessionUpdate":"tool_call","toolCallId":"c%d","title":"t","status":"pending"}}}`, s, id)
		toClient(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s%d","update":{"sessionUpdate":"tool_call_update","toolCallId":"c%d","status":"completed"}}}`, s, id)
		toClient(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s%d","update":{"sessionUpdate":"agent_message_chunk","messageId":"m%d","content":{"type":"text","text":"x"}}}}`, s, id)
		toClient(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, id)
	}
	const sessions = 3000 // more than are remembered
	for i := range sessions {
		session(i)
		turn(i, i)
	}
	turn(sessions, 0)                       // a session that was forgotten
	turn(sessions+1, sessions-1)            // one that was not
	turns := tier.Pick(0, 0, 6_000, 20_000) // the first fill all tables
	for i := range turns {
		turn(sessions+2+i, sessions-1)
	}
	before := heap()
	for i := range 3 * turns {
		turn(sessions+2+turns+i, sessions-1)
	}
	if after := heap(); after > before+uint64(turns)*400 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	for _, f := range j.End() {
		t.Errorf("at the end: %s", f)
	}
}

// TestTimes judges messages with times that go backwards, or without times.
func TestTimes(t *testing.T) {
	j := conformance.NewJudge(nil, nil)
	now := time.Now()
	for i, line := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"$/note"}`,
	} {
		for _, f := range j.Message(conformance.Message{Direction: conformance.ToAgent, Line: []byte(line), Time: now.Add(-time.Duration(i) * time.Hour)}) {
			t.Error(f)
		}
	}
}
