package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"
)

func TestTable(t *testing.T) {
	m := newTable[int](3)
	if !m.none() {
		t.Error("a new table has something")
	}
	for i, key := range []string{"a", "b", "c", "b"} {
		m.put(key, i)
	}
	keys := func() (all []string) {
		for key, v := range m.all {
			all = append(all, fmt.Sprintf("%s%d", key, v))
		}
		return all
	}
	if got, want := keys(), []string{"a0", "b3", "c2"}; !slices.Equal(got, want) || m.forgot {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.forgot)
	}
	m.drop("b")
	m.drop("never")
	m.put("d", 4)
	if got, want := keys(), []string{"a0", "c2", "d4"}; !slices.Equal(got, want) || m.forgot {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.forgot)
	}
	m.put("e", 5)
	if got, want := keys(), []string{"c2", "d4", "e5"}; !slices.Equal(got, want) || !m.forgot || m.none() {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.forgot)
	}
	if _, ok := m.get("a"); ok {
		t.Error("what was forgotten is there")
	}
	for _, key := range []string{"c", "d", "e"} {
		m.drop(key)
	}
	if got := keys(); len(got) > 0 || m.none() {
		t.Errorf("got %q; none: %v", got, m.none())
	}
	for key := range m.all {
		t.Errorf("%s is left", key)
	}
}

// TestLongKeys has keys of any length take little, and stay apart.
func TestLongKeys(t *testing.T) {
	m := newTable[int](10)
	long := strings.Repeat("x", 1<<20)
	m.put(long+"1", 1)
	m.put(long+"2", 2)
	if v, ok := m.get(long + "1"); !ok || v != 1 {
		t.Errorf("got %d, %v", v, ok)
	}
	for key := range m.all {
		if len(key) > 256 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
}

// TestBounds fills each table of a ledger, and requires that it keeps to its bound.
func TestBounds(t *testing.T) {
	tier.Need(t, tier.Normal)
	j := NewJudge(V1Unstable(), nil)
	l := &j.ledger
	long := strings.Repeat("y", 1000)
	send := func(d Direction, format string, args ...any) {
		j.Message(Message{Direction: d, Line: fmt.Appendf(nil, format, args...)})
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
	first := l.session("s")
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
	last := l.session(fmt.Sprint("s", 2*maxSessions-1))
	values := 0
	for _, option := range first.options.items {
		values += len(option.values)
	}
	for name, size := range map[string][2]int{
		"capabilities":           {len(l.client.names), maxNames},
		"authentication methods": {len(l.authMethods.entries), maxNames},
		"sessions":               {len(l.sessions.entries), maxSessions},
		"listed sessions":        {len(l.listed.entries), maxListed},
		"tool calls":             {len(l.calls.entries), maxCalls},
		"messages":               {len(l.messages.entries), maxMessages},
		"terminals":              {len(l.terminals.entries), maxTerminals},
		"elicitations":           {len(l.elicitations.entries), maxElicitations},
		"turns":                  {len(last.turns), maxTurns},
		"modes":                  {len(first.modes.items), maxNames},
		"commands":               {len(first.commands.items), maxNames},
		"options' values":        {values, maxNames},
		"cancelled turns":        {len(l.cancelled), maxTurns},
		"kept bytes":             {l.kept, maxKept},
		"what was reported once": {len(j.told.entries), maxTold},
	} {
		if size[0] == 0 || size[0] > size[1] {
			t.Errorf("%s: %d, want 1 to %d", name, size[0], size[1])
		}
	}
	for name, forgot := range map[string]bool{
		"capabilities": l.client.more, "authentication methods": l.authMethods.forgot, "sessions": l.sessions.forgot,
		"listed sessions": l.listed.forgot, "tool calls": l.calls.forgot, "messages": l.messages.forgot,
		"terminals": l.terminals.forgot, "elicitations": l.elicitations.forgot,
	} {
		if !forgot {
			t.Errorf("%s: nothing was forgotten", name)
		}
	}
}
