package conformance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
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
