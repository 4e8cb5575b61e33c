package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestBounds fills each table of a history, and requires that it keeps to its bound.
func TestBounds(t *testing.T) {
	tier.Need(t, tier.Normal)
	schema, err := parseSchema([]byte(sdk.SchemaV1Unstable()), 1)
	if err != nil {
		t.Fatal(err)
	}
	everything := rule{ID: "X-1", Versions: []int{1}, on: []selector{{}}, check: func(e *event) { e.once(strconv.Itoa(e.number)) }}
	j := newCore(schema, newIndexes([]rule{everything}), nil)
	h := &j.history
	long := strings.Repeat("y", 1000)
	send := func(d Direction, format string, args ...any) {
		j.message(d, fmt.Appendf(nil, format, args...), time.Time{})
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
	send(ToAgent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{%s}}}`, list(3*maxNames, `"x#":true`))
	send(ToClient, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[%s]}}`, list(3*maxNames, `{"id":"#","name":"n"}`))
	send(ToAgent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	send(ToClient, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"0","availableModes":[%s]},"configOptions":[%s]}}`,
		list(3*maxNames, `{"id":"#","name":"n"}`),
		list(10, `{"id":"#","name":"n","type":"select","currentValue":"0","options":[`+strings.ReplaceAll(list(maxNames, `{"value":"v#","name":"n"}`), "#", "~")+`]}`))
	send(ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[%s]}}}`,
		list(3*maxNames, `{"name":"#","description":"d"}`))
	first := h.session("s")
	send(ToAgent, `{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`)
	send(ToClient, `{"jsonrpc":"2.0","id":2,"result":{"sessions":[%s]}}`, list(2*maxListed, `{"sessionId":"#","cwd":"/"}`))
	for i := range tier.Pick(0, maxCalls+maxCalls/4, 2*maxCalls, 2*maxCalls) {
		send(ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"%d%s","title":"t"}}}`, i, long)
		send(ToClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"%d%s","content":{"type":"text","text":"x"}}}}`, i, long)
		send(ToAgent, `{"jsonrpc":"2.0","id":"p%d","method":"session/prompt","params":{"sessionId":"s%d","prompt":[{"type":"text","text":"%s"}]}}`, i, i%(2*maxSessions), long)
		send(ToAgent, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s%d"}}`, i%(2*maxSessions))
		send(ToClient, `{"jsonrpc":"2.0","id":"t%d","method":"terminal/create","params":{"sessionId":"s","command":"ls"}}`, i)
		send(ToAgent, `{"jsonrpc":"2.0","id":"t%d","result":{"terminalId":"t%d"}}`, i, i)
		send(ToClient, `{"jsonrpc":"2.0","id":"e%d","method":"elicitation/create","params":{"mode":"url","sessionId":"s","message":"m","elicitationId":"e%d","url":"https://a.test"}}`, i, i)
	}
	last := h.session(fmt.Sprint("s", 2*maxSessions-1))
	values := 0
	for _, option := range first.options.items {
		values += len(option.values)
	}
	for name, size := range map[string][2]int{
		"capabilities":           {len(h.client.names), maxNames},
		"authentication methods": {len(h.authMethods.entries), maxNames},
		"sessions":               {len(h.sessions.entries), maxSessions},
		"listed sessions":        {len(h.listed.entries), maxListed},
		"tool calls":             {len(h.calls.entries), maxCalls},
		"messages":               {len(h.messages.entries), maxMessages},
		"terminals":              {len(h.terminals.entries), maxTerminals},
		"elicitations":           {len(h.elicitations.entries), maxElicitations},
		"turns":                  {len(last.turns), maxTurns},
		"modes":                  {len(first.modes.items), maxNames},
		"commands":               {len(first.commands.items), maxNames},
		"options' values":        {values, maxNames},
		"cancelled turns":        {len(h.cancelled), maxTurns},
		"kept bytes":             {h.kept, maxKept},
		"what was reported once": {len(j.told.entries), maxTold},
	} {
		if size[0] == 0 || size[0] > size[1] {
			t.Errorf("%s: %d, want 1 to %d", name, size[0], size[1])
		}
	}
	for name, forgot := range map[string]bool{
		"capabilities": h.client.more, "authentication methods": h.authMethods.forgot, "sessions": h.sessions.forgot,
		"listed sessions": h.listed.forgot, "tool calls": h.calls.forgot, "messages": h.messages.forgot,
		"terminals": h.terminals.forgot, "elicitations": h.elicitations.forgot,
	} {
		if !forgot {
			t.Errorf("%s: nothing was forgotten", name)
		}
	}
}
