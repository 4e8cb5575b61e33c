package conformance

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/internal/requirement"
	"github.com/acpgo/sdk/conformance/internal/rules"
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

// exactPages are the prefixes of the rules whose examples are exact.
var exactPages = regexp.MustCompile(`^(SES-15|V2-14|INI-10)$|^(CFG|CON|TOL|FS|TRM|PLN|CMD|ELI|EXT|ERR|SCH)-`)

// besides are other rules that the wrong example of a rule breaks, although it is exact.
var besides = map[string]string{
	"ELI-23": "ELI-5", // the mode is not stated
	"ERR-3":  "LST-3", // the client should not ask
	"ERR-5":  "PRM-1",
	"ERR-6":  "INI-1 SES-1",
	"ERR-7":  "TRN-6",         // the broken line
	"INI-10": "INI-3 V2-13",   // the client gives no name
	"SES-15": "SES-13 INI-14", // the agent did not advertise session/close
	"V2-14":  "V2-13",
	"TRM-11": "ADD-15",
}

// TestRules plays the examples of each rule. The wrong example breaks the rule; the right one breaks neither the rule
// nor the schema. The examples of exactPages show only their own rule, with the listed exceptions.
func TestRules(t *testing.T) {
	ids := map[string]bool{}
	for _, rule := range rules.All() {
		if ids[rule.ID] {
			t.Errorf("%s twice", rule.ID)
		}
		ids[rule.ID] = true
		if rule.Breaks == "" || rule.Right == "" || rule.Wrong == "" {
			t.Errorf("%s: not explained", rule.ID)
			continue
		}
		exact := exactPages.MatchString(rule.ID) && (rule.Check != nil || rule.End != nil)
		for what, example := range map[string]string{"right": rule.Right, "wrong": rule.Wrong} {
			broken := false
			for _, f := range play(t, rule.Versions[0], example) {
				own := f.Rule == rule.ID
				broken = broken || own
				if what == "right" && (own || f.Rule == schema.Agreed) ||
					exact && !(what == "wrong" && own) && !slices.Contains(strings.Fields(besides[rule.ID]), f.Rule) {
					t.Errorf("%s: the %s example: %s", rule.ID, what, f)
				}
			}
			if what == "wrong" && !broken {
				t.Errorf("%s: the wrong example does not break it", rule.ID)
			}
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
	for _, r := range requirement.All {
		count[r.Method]++
		for _, other := range r.As {
			if !rules[other] {
				t.Errorf("%s: is judged as %s, which is not a rule", r.ID, other)
			}
		}
		judged := r.Method == requirement.ByRule || r.Method == requirement.BySchema
		if judged != (rules[r.ID] || len(r.As) > 0) {
			t.Errorf("%s: the table says %d, and there is a rule: %v", r.ID, r.Method, rules[r.ID])
		}
	}
	t.Log(count)
}
