package translate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/test/must"
)

var update = flag.Bool("update", false, "write testdata and docs")

// TestCases plays the conversations of testdata/cases.txt, which says what comes out of a translation for each message
// that goes in. A case begins with its number and title. "agent1" and "agent2" begin a connection whose agent, the
// program, speaks that version, and whose client speaks the other one, with a session s, and members for the agent's
// capabilities. "C" and "A" are messages of the client and the agent, without jsonrpc; "u" stands for a session/update of
// s, and "u:x" of x. "host1" is "agent1" with a host, whose messages are "H". "keys" is a client of version 1 whose agent
// speaks version 2, and "again" another connection of it, with the same idempotency keys. "time" lets the time pass for
// which an answer is held, in two ticks. The indented lines are what comes out, to the client and to the agent.
func TestCases(t *testing.T) {
	const file = "testdata/cases.txt"
	text := must.Get(os.ReadFile(file))(t)
	var s *translate.State
	var keys *translate.Keys
	var all strings.Builder
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue
		}
		all.WriteString(line + "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "agent1", "host1", "agent2", "client0", "client1", "client2":
			s = begin(t, word, rest)
		case "keys", "again": // a client whose connections share the keys of prompts
			if word == "keys" {
				keys = &translate.Keys{}
			}
			s = translate.New(translate.ClientSide, 1, &translate.Options{Keys: keys})
			s.Message(translate.ClientSide, message(`{"id":0,"method":"initialize","params":{"protocolVersion":1}}`))
			write(&all, s.Message(translate.AgentSide, message(`{"id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`)))
		case "C":
			write(&all, s.Message(translate.ClientSide, message(rest)))
		case "A":
			write(&all, s.Message(translate.AgentSide, message(rest)))
		case "H":
			write(&all, s.Message(translate.HostSide, message(rest)))
		case "time":
			write(&all, s.Tick())
			write(&all, s.Tick())
		}
	}
	switch {
	case *update:
		must.Do(t, os.WriteFile(file, []byte(all.String()), 0o644))
	case all.String() != string(text):
		got, want := strings.Split(all.String(), "\n"), strings.Split(string(text), "\n")
		title := ""
		for i, line := range got {
			if strings.HasPrefix(line, "#") {
				title = line
			}
			if i >= len(want) || line != want[i] {
				t.Fatalf("%s\n%s\n got %s\nwant %s\n(go test -run Cases -update writes what comes out)", title, got[max(i-1, 0)], line, want[min(i, len(want)-1)])
			}
		}
		t.Error("the file has more lines")
	}
}

// begin returns a connection with a session.
func begin(t *testing.T, program, capabilities string) *translate.State {
	version := int(program[len(program)-1] - '0')
	side := translate.AgentSide
	if strings.HasPrefix(program, "client") {
		return translate.New(translate.ClientSide, version, &translate.Options{Unique: "x"})
	}
	options := &translate.Options{Unique: "x"}
	if program == "host1" {
		options.Host = &translate.Host{ReadFiles: true, WriteFiles: true, Terminals: true}
	}
	s := translate.New(side, version, options)
	if version == 1 {
		s.Message(translate.ClientSide, message(`{"id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}}`))
		s.Message(translate.AgentSide, message(`{"id":0,"result":{"protocolVersion":1,"agentCapabilities":{`+capabilities+`}}}`))
	} else {
		s.Message(translate.ClientSide, message(`{"id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{`+capabilities+`}}}`))
		s.Message(translate.AgentSide, message(`{"id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`))
	}
	s.Message(translate.ClientSide, message(`{"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`))
	s.Message(translate.AgentSide, message(`{"id":1,"result":{"sessionId":"s"}}`))
	if want := 3 - version; s.Version() != want {
		t.Fatalf("version %d, want %d", s.Version(), want)
	}
	return s
}

// message expands the short form of a message.
func message(short string) []byte {
	if word, rest, _ := strings.Cut(short, " "); strings.HasPrefix(word, "u") {
		session := "s"
		if _, id, ok := strings.Cut(word, ":"); ok {
			session = id
		}
		short = `{"method":"session/update","params":{"sessionId":"` + session + `","update":` + rest + `}}`
	}
	if strings.HasPrefix(short, "{") {
		short = `{"jsonrpc":"2.0",` + short[1:]
	}
	return []byte(short)
}

// write writes the short forms of messages.
func write(b *strings.Builder, messages []translate.Message) {
	for _, m := range messages {
		to := "  client "
		switch m.To {
		case translate.AgentSide:
			to = "  agent  "
		case translate.HostSide:
			to = "  host   "
		}
		short := strings.Replace(string(m.Line), `"jsonrpc":"2.0",`, "", 1)
		if rest, ok := strings.CutPrefix(short, `{"method":"session/update","params":{"sessionId":"s","update":`); ok {
			short = "u " + strings.TrimSuffix(rest, "}}")
		}
		b.WriteString(to + short + "\n")
	}
}

// TestOutputIsInProportion floods a client of version 1 with terminals that many tool calls show. It gets no more than a
// multiple of what the agent sends, and has all of it in the end.
func TestOutputIsInProportion(t *testing.T) {
	s := begin(t, "agent2", "")
	in, out, last := 0, 0, map[string]string{}
	got := func(messages []translate.Message) {
		for _, m := range messages {
			out += len(m.Line)
			if _, rest, ok := strings.Cut(string(m.Line), `"toolCallId":"`); ok && strings.Contains(rest, `"content"`) {
				id, _, _ := strings.Cut(rest, `"`)
				last[id] = rest
			}
		}
	}
	update := func(format string, args ...any) {
		line := message("u " + fmt.Sprintf(format, args...))
		in += len(line)
		got(s.Message(translate.AgentSide, line))
	}
	for i := range 8 {
		update(`{"sessionUpdate":"terminal_update","terminalId":"x%d","output":{"data":"%s"}}`, i, strings.Repeat("YWFh", 64<<10))
	}
	var terminals []string
	for i := range 8 {
		terminals = append(terminals, fmt.Sprintf(`{"type":"terminal","terminalId":"x%d"}`, i))
	}
	shown := strings.Join(terminals, ",")
	for i := range 64 {
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"t%d","content":[%s]}`, i, shown)
	}
	for i := range 1000 {
		update(`{"sessionUpdate":"terminal_output_chunk","terminalId":"x%d","data":"YWFh"}`, i%8)
		update(`{"sessionUpdate":"terminal_update","terminalId":"x%d","exitStatus":{"exitCode":%d}}`, i%8, i)
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"t%d","content":[%s]}`, i%64, shown)
	}
	t.Logf("%d kB in, %d kB out", in>>10, out>>10)
	if limit := 16*in + 20<<20; out > limit {
		t.Errorf("%d MB for %d kB", out>>20, in>>10)
	}
	for range 1000 {
		if !s.Waiting() {
			break
		}
		got(s.Tick())
	}
	if s.Waiting() || len(last) != 64 {
		t.Errorf("waiting: %t, %d tool calls with content", s.Waiting(), len(last))
	}
	for id, content := range last {
		if !strings.Contains(content, "[exit status 999]") {
			t.Errorf("%s does not have the last output", id)
		}
	}
}
