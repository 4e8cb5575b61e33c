package conformance

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"

	"github.com/acpgo/sdk/conformance/internal/rules"
)

// TestLongPermission: the params of a long request are forgotten, but not what it asks about.
func TestLongPermission(t *testing.T) {
	tell := func(update string) string {
		return `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"toolCallId":"c",` + update + "}}}\n"
	}
	for _, f := range play(t, 1, `-> {"jsonrpc":"2.0","id":10,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}
		`+tell(`"sessionUpdate":"tool_call","title":"make","status":"pending"`)+
		`<- {"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","rawInput":"`+
		strings.Repeat("long", 1<<15)+`"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}
		-> {"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"selected","optionId":"y"}}}
		`+tell(`"sessionUpdate":"tool_call_update","status":"in_progress"`)+tell(`"sessionUpdate":"tool_call_update","status":"completed"`)+`
		<- {"jsonrpc":"2.0","id":10,"result":{"stopReason":"end_turn"}}`) {
		t.Error(f)
	}
}

// exactPages are the prefixes of the rules whose examples are exact.
var exactPages = regexp.MustCompile(`^(SES-15|V2-14|INI-10)$|^(CFG|CON|TOL|FS|TRM|PLN|CMD|ELI|EXT|ERR|SCH)-`)

// TestExamplesAreExact requires that the examples of these pages show only their own rule, with the listed
// exceptions: the right example breaks nothing, and the wrong one nothing else.
func TestExamplesAreExact(t *testing.T) {
	tier.Need(t, tier.Normal)
	beside := map[string]string{
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
	for _, rule := range rules.All() {
		if !exactPages.MatchString(rule.ID) || rule.Check == nil && rule.End == nil {
			continue
		}
		for what, example := range map[string]string{"right": rule.Right, "wrong": rule.Wrong} {
			for _, f := range play(t, rule.Versions[0], example) {
				expected := what == "wrong" && f.Rule == rule.ID || slices.Contains(strings.Fields(beside[rule.ID]), f.Rule)
				if !expected {
					t.Errorf("%s: the %s example: %s", rule.ID, what, f)
				}
			}
		}
	}
}
