package conformance

import (
	"strings"
	"testing"
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
