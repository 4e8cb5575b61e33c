package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/internal/requirement"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// preambles are for examples without their own initialize request. Neither side has any capabilities.
var preambles = map[int]string{
	1: `
		-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}
		<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"a","version":"1"}}}
		-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}
		<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`,
	2: `
		-> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"capabilities":{},"info":{"name":"c","version":"1"}}}
		<- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"capabilities":{},"info":{"name":"a","version":"1"}}}
		-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work"}}
		<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`,
}

// TestRules plays the examples of each rule. The wrong example breaks the rule; the right one breaks neither the rule
// nor the schema.
func TestRules(t *testing.T) {
	ids := map[string]bool{}
	for _, rule := range Rules() {
		if ids[rule.ID] {
			t.Errorf("%s twice", rule.ID)
		}
		ids[rule.ID] = true
		if rule.Breaks == "" || rule.Right == "" || rule.Wrong == "" {
			t.Errorf("%s: not explained", rule.ID)
			continue
		}
		version := rule.Versions[0]
		for _, f := range play(t, version, rule.Right) {
			if f.Rule == rule.ID || f.Rule == schema.Agreed {
				t.Errorf("%s: the right example: %s", rule.ID, f)
			}
		}
		if found := play(t, version, rule.Wrong); !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == rule.ID }) {
			t.Errorf("%s: the wrong example breaks %s", rule.ID, found)
		}
	}
	t.Logf("%d rules", len(ids))
}

// play judges an example and the end of its connection, which the agent closes.
func play(t *testing.T, version int, example string) []Finding {
	t.Helper()
	j := NewJudge(Negotiated(V1(), V2()), nil)
	if !strings.Contains(example, `"initialize"`) {
		example = preambles[version] + "\n" + example
	}
	var found []Finding
	for line := range strings.Lines(example) {
		line = strings.Trim(line, "\t\n")
		mark, text, _ := strings.Cut(line, " ")
		switch mark {
		case "->":
			found = append(found, j.Message(Message{Direction: ToAgent, Line: []byte(text)})...)
		case "<-":
			text = strings.ReplaceAll(text, "↵", "\n")
			found = append(found, j.Message(Message{Direction: ToClient, Line: []byte(text)})...)
		case "":
		default:
			t.Fatalf("no message: %q", line)
		}
	}
	j.Closed(Agent)
	return append(found, j.End()...)
}

// TestRequirements requires that the table marks exactly the rules as rules.
func TestRequirements(t *testing.T) {
	rules := map[string]bool{}
	for _, rule := range Rules() {
		rules[rule.ID] = true
	}
	count := map[requirement.Method]int{}
	for _, p := range requirement.Pages {
		for _, r := range p.Requirements {
			count[r.How]++
			for other := range strings.FieldsSeq(r.As) {
				if !rules[other] {
					t.Errorf("%s: is judged as %s, which is not a rule", r.ID, other)
				}
			}
			judged := r.How == requirement.ByRule || r.How == requirement.BySchema
			if judged != (rules[r.ID] || r.As != "") {
				t.Errorf("%s: the table says %d, and there is a rule: %v", r.ID, r.How, rules[r.ID])
			}
		}
	}
	t.Log(count)
}
