package judge

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/test/tier"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestBounds fills each table of a history, and requires that the table stays within its bound.
func TestBounds(t *testing.T) {
	tier.Need(t, tier.Normal)
	schema := must.Get(schema.Parse([]byte(sdk.SchemaV1Unstable()), 1))(t)
	everything := Rule{ID: "X-1", Versions: []int{1}, On: []Selector{{}}, Check: func(e *Event) { e.Once(strconv.Itoa(e.number)) }}
	j := New(schema, NewIndexes([]Rule{everything}), nil)
	h := &j.history
	long := strings.Repeat("y", 1000)
	send := func(d finding.Direction, format string, args ...any) {
		j.Message(d, fmt.Appendf(nil, format, args...))
	}
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	send(finding.ToAgent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{%s}}}`, list(3*maxNames, `"x#":true`))
	send(finding.ToClient, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[%s]}}`, list(3*maxNames, `{"id":"#","name":"n"}`))
	send(finding.ToAgent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	send(finding.ToClient, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"0","availableModes":[%s]},"configOptions":[%s]}}`,
		list(3*maxNames, `{"id":"#","name":"n"}`),
		list(10, `{"id":"#","name":"n","type":"select","currentValue":"0","options":[`+strings.ReplaceAll(list(maxNames, `{"value":"v#","name":"n"}`), "#", "~")+`]}`))
	send(finding.ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[%s]}}}`,
		list(3*maxNames, `{"name":"#","description":"d"}`))
	first := h.Session("s")
	send(finding.ToAgent, `{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`)
	send(finding.ToClient, `{"jsonrpc":"2.0","id":2,"result":{"sessions":[%s]}}`, list(2*maxListed, `{"sessionId":"#","cwd":"/"}`))
	for i := range tier.Pick(0, maxCalls+maxCalls/4, 2*maxCalls, 2*maxCalls) {
		send(finding.ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"%d%s","title":"t"}}}`, i, long)
		send(finding.ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"%d%s","content":{"type":"text","text":"x"}}}}`, i, long)
		send(finding.ToAgent, `{"jsonrpc":"2.0","id":"p%d","method":"session/prompt","params":{"sessionId":"s%d","prompt":[{"type":"text","text":"%s"}]}}`, i, i%(2*maxSessions), long)
		send(finding.ToAgent, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s%d"}}`, i%(2*maxSessions))
		send(finding.ToClient, `{"jsonrpc":"2.0","id":"t%d","method":"terminal/create","params":{"sessionId":"s","command":"ls"}}`, i)
		send(finding.ToAgent, `{"jsonrpc":"2.0","id":"t%d","result":{"terminalId":"t%d"}}`, i, i)
		send(finding.ToClient, `{"jsonrpc":"2.0","id":"e%d","method":"elicitation/create","params":{"mode":"url","sessionId":"s","message":"m","elicitationId":"e%d","url":"https://a.test"}}`, i, i)
	}
	last := h.Session(fmt.Sprint("s", 2*maxSessions-1))
	values := 0
	for _, option := range first.Options.Items {
		values += len(option.Values)
	}
	for name, size := range map[string][2]int{
		"capabilities":           {len(h.Client.names), maxNames},
		"authentication methods": {len(h.AuthMethods.keys), maxNames},
		"sessions":               {len(h.Sessions.keys), maxSessions},
		"listed sessions":        {len(h.Listed.keys), maxListed},
		"tool calls":             {len(h.Calls.keys), maxCalls},
		"messages":               {len(h.Messages.keys), maxMessages},
		"terminals":              {len(h.Terminals.keys), maxTerminals},
		"elicitations":           {len(h.Elicitations.keys), maxElicitations},
		"turns":                  {len(last.Turns), maxTurns},
		"modes":                  {len(first.Modes.Items), maxNames},
		"commands":               {len(first.Commands.Items), maxNames},
		"options' values":        {values, maxNames},
		"cancelled turns":        {len(h.cancelled), maxTurns},
		"kept bytes":             {h.kept, maxKept},
		"what was reported once": {len(j.told.keys), maxTold},
	} {
		if size[0] == 0 || size[0] > size[1] {
			t.Errorf("%s: %d, want 1 to %d", name, size[0], size[1])
		}
	}
	for name, forgot := range map[string]bool{
		"capabilities": h.Client.more, "authentication methods": h.AuthMethods.Forgot, "sessions": h.Sessions.Forgot,
		"listed sessions": h.Listed.Forgot, "tool calls": h.Calls.Forgot, "messages": h.Messages.Forgot,
		"terminals": h.Terminals.Forgot, "elicitations": h.Elicitations.Forgot,
	} {
		if !forgot {
			t.Errorf("%s: nothing was forgotten", name)
		}
	}
}
