package conformance_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cputime"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// shapes are messages that grow, with n parts each. The agent writes them, unless they name the side that writes and
// the messages before.
var shapes = map[string]func(n int) string{
	"long text":     func(n int) string { return chunkOf(textOf(strings.Repeat("0123456789", n))) },
	"escapes":       func(n int) string { return chunkOf(textOf(strings.Repeat(`\n\u00e9\ud83d\ude00`, n))) },
	"deep":          func(n int) string { return meta(strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2)) },
	"wide":          func(n int) string { return meta("{" + members(n, "m%d", "1") + "}") },
	"wide, escaped": func(n int) string { return meta("{" + members(n, `\u006d%d`, "1") + "}") },
	"twice":         func(n int) string { return meta("{" + members(n, "m", "1") + "}") },
	"pairs":         func(n int) string { return meta("[" + strings.Repeat(`{"m":1,"m":2},`, n) + "0]") },
	"wide inside wide": func(n int) string {
		return meta("{" + members(n, "m%d", "1") + `,"x":[` + strings.Repeat(`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9},`, n) + "0]}")
	},
	"elements": func(n int) string {
		return toolCall(strings.Repeat(`{"type":"content","content":`+textOf("x")+`},`, n))
	},
	"unknown members": func(n int) string { return chunkOf(`{"type":"text","text":"x",` + members(n, "m%d", "1") + "}") },
	"tag at the end":  func(n int) string { return chunkOf(`{"text":"x",` + members(n, "m%d", "1") + `,"type":"text"}`) },
	"wrong elements":  func(n int) string { return toolCall(strings.Repeat(`{"type":"content","content":{}},`, n)) },
	"one wrong element": func(n int) string {
		return toolCall(`{"type":"content","content":{}},` + strings.Repeat(`{"type":"content","content":`+textOf("x")+`},`, n))
	},
	"envelope":           func(n int) string { return `{"jsonrpc":"2.0","method":"_x",` + members(n, "m%d", "1") + "}" },
	"numbers":            func(n int) string { return meta("[" + strings.Repeat("-1.5e300,", n) + "0]") },
	"one long number":    func(n int) string { return meta("1" + strings.Repeat("0", 10*n)) },
	"white space":        func(n int) string { return `{"jsonrpc":"2.0",` + strings.Repeat(" ", 10*n) + `"method":"_x"}` },
	"no JSON at the end": func(n int) string { return meta("[" + strings.Repeat("1,", 5*n)) },
	"long id":            func(n int) string { return `{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 10*n) + `","method":"_x"}` },
	"long method":        func(n int) string { return `{"jsonrpc":"2.0","id":1,"method":"_` + strings.Repeat("x", 10*n) + `"}` },
}

// lists holds shapes of the messages whose lists are read by the history and the rules.
var lists = map[string]func(n int) string{
	"capabilities": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"_meta":{},"fs":{` + members(n, "m%d", "true") + `}}}}`
	},
	"authentication methods": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
			<- {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[` + numbers(n, `{"id":"i%d","name":"x"}`) + `]}}`
	},
	"servers": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[` + numbers(n, `{"name":"n%d","command":"/c","args":[],"env":[]}`) + `]}}`
	},
	"directories": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"additionalDirectories":[` + numbers(n, `"/d%d"`) + `]}}`
	},
	"modes": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"none","availableModes":[` + numbers(n, `{"id":"m%d","name":"x"}`) + `]}}}`
	},
	"options": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","configOptions":[` + numbers(n, `{"id":"o%d","name":"x","type":"select","currentValue":"v","options":[{"value":"v","name":"x"}]}`) + `]}}`
	},
	"values of an option": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
			<- {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","configOptions":[{"id":"o","name":"x","type":"select","currentValue":"v","options":[` + numbers(n, `{"value":"v%d","name":"x"}`) + `]}]}}`
	},
	"sessions": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}
			<- {"jsonrpc":"2.0","id":1,"result":{"sessions":[` + numbers(n, `{"sessionId":"s%d","cwd":"/"}`) + `]}}`
	},
	"prompt": func(n int) string {
		return `-> {"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[` + numbers(n, `{"type":"text","text":"t%d"}`) + `]}}`
	},
	"plan": func(n int) string {
		return `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[` + numbers(n, `{"content":"c%d","priority":"low","status":"pending"}`) + `]}}}`
	},
	"commands": func(n int) string {
		return `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[` + numbers(n, `{"name":"c%d","description":"x"}`) + `]}}}`
	},
	"terminals": func(n int) string {
		return `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","content":[` + numbers(n, `{"type":"terminal","terminalId":"t%d"}`) + `]}}}`
	},
	"permission": func(n int) string {
		return `<- {"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[` + numbers(n, `{"optionId":"o%d","name":"x","kind":"allow_once"}`) + `]}}`
	},
	"choice of many": func(n int) string {
		return `<- {"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[` + numbers(n, `{"optionId":"o%d","name":"x","kind":"allow_once"}`) + `]}}
			-> {"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"none"}}}`
	},
	"form": func(n int) string {
		return `<- {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"x","requestedSchema":{"type":"object","properties":{` + members(n, "m%d", `{"type":"string"}`) + `},"required":[` + numbers(n, `"m%d"`) + `]}}}`
	},
	"answered form": func(n int) string {
		return `<- {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"x","requestedSchema":{"type":"object","properties":{` + members(min(n, 1000), "m%d", `{"type":"string"}`) + `},"required":[` + numbers(min(n, 1000), `"m%d"`) + `]}}}
			-> {"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{` + members(n, "m%d", `"x"`) + `}}}`
	},
}

// numbers lists n values that are formatted with their number.
func numbers(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// messagesOf reads a shape.
func messagesOf(text string) (messages []conformance.Message) {
	for line := range strings.Lines(text) {
		m := conformance.Message{Direction: conformance.ToClient}
		line = strings.TrimSpace(line)
		if there, ok := strings.CutPrefix(line, "-> "); ok {
			m.Direction, line = conformance.ToAgent, there
		}
		m.Line = []byte(strings.TrimPrefix(line, "<- "))
		messages = append(messages, m)
	}
	return messages
}

func textOf(s string) string { return `{"type":"text","text":"` + s + `"}` }

func chunkOf(content string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":` + content + `}}}`
}

func meta(v string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"_meta":{"v":` + v + `}}}}`
}

// toolCall returns an update with a list of contents, each followed by a comma.
func toolCall(contents string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[` + strings.TrimSuffix(contents, ",") + `]}}}`
}

// members lists n members whose names are formatted with their number.
func members(n int, name, value string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(name, "%") {
			fmt.Fprintf(&b, `"`+name+`":%s`, i, value)
		} else {
			fmt.Fprintf(&b, `"%s":%s`, name, value)
		}
	}
	return b.String()
}

// TestLinear shows that the time for a message does not grow faster than the message.
func TestLinear(t *testing.T) {
	skipUnderRace(t)
	tier.Need(t, tier.Normal)
	const small, factor = 500, 16
	all := maps.Clone(shapes)
	maps.Copy(all, lists)
	for name, shape := range all {
		t.Run(name, func(t *testing.T) {
			took := func(messages []conformance.Message, times int) time.Duration {
				start := cputime.Used()
				for range times {
					j := conformance.NewJudge(conformance.V1Unstable(), nil)
					for _, m := range messages {
						j.Message(m)
					}
					j.End()
				}
				return cputime.Used() - start
			}
			// The same amount of text, as one large message and as many small ones. The garbage collector
			// interferes, so the fastest run counts.
			few, many := messagesOf(shape(small)), messagesOf(shape(small*factor))
			took(few, 1)
			one, several := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for range 20 {
				one, several = min(one, took(many, 1)), min(several, took(few, factor))
				// Small messages stay in the processor's cache. A quadratic algorithm takes 16 times as long.
				if one < 6*several {
					t.Logf("one large message takes %v of the processor, %d small ones %v", one, factor, several)
					return
				}
			}
			t.Errorf("one large message takes %v of the processor, %d small ones %v", one, factor, several)
		})
	}
}

// traffic is an endless conversation that breaks no rule, with sessions, turns with text and tool calls, permissions
// and files. All ids are new.
type traffic struct {
	turns int    // of a session
	texts int    // of a turn
	pad   string // a member of each request and notification
	more  bool   // also everything else that the history records
}

// send calls f with the first n messages.
func (c traffic) send(n int, f func(conformance.Message)) {
	const there, back = conformance.ToAgent, conformance.ToClient
	sent := 0
	write := func(direction conformance.Direction, format string, args ...any) {
		if sent++; sent <= n {
			f(conformance.Message{Direction: direction, Line: fmt.Appendf(nil, `{"jsonrpc":"2.0",`+format+"}", args...)})
		}
	}
	session, id := "", 0
	ask := func(direction conformance.Direction, method, params, result string) {
		id++
		write(direction, `"id":%d,"method":%q,"params":{%s%s}`, id, method, params, c.pad)
		write(3-direction, `"id":%d,"result":%s`, id, result)
	}
	say := func(format string, args ...any) {
		write(back, `"method":"session/update","params":{"sessionId":%q,"update":{%s}%s}`, session, fmt.Sprintf(format, args...), c.pad)
	}
	ask(there, "initialize",
		`"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}}}`,
		`{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{}}},"authMethods":[]}`)
	for turn := 0; sent < n; turn++ {
		if turn%c.turns == 0 {
			session = fmt.Sprintf("sess_%d", turn/c.turns)
			ask(there, "session/new", `"cwd":"/home/user/project","mcpServers":[]`, fmt.Sprintf(`{"sessionId":%q%s}`, session, c.offer(turn)))
		}
		id++
		prompt := id
		write(there, `"id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"do it"}]%s}`, prompt, session, c.pad)
		for i := range c.texts {
			say(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"This is part %4d of what the agent has to say in turn %6d, neither short nor long"}`, i, turn)
		}
		call := fmt.Sprintf("call_%d", turn)
		say(`"sessionUpdate":"tool_call","toolCallId":%q,"title":"Reading a file","kind":"read","status":"pending"`, call)
		ask(back, "session/request_permission",
			fmt.Sprintf(`"sessionId":%q,"toolCall":{"toolCallId":%q},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"}]`, session, call),
			`{"outcome":{"outcome":"selected","optionId":"a"}}`)
		say(`"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"in_progress"`, call)
		ask(back, "fs/read_text_file", fmt.Sprintf(`"sessionId":%q,"path":"/home/user/project/%d.go"`, session, turn), `{"content":"package main"}`)
		say(`"sessionUpdate":"tool_call_update","toolCallId":%q,"status":"completed","content":[{"type":"content","content":{"type":"text","text":"package main"}}]`, call)
		if c.more {
			c.rest(session, turn, ask, say)
		}
		write(back, `"id":%d,"result":{"stopReason":"end_turn"}`, prompt)
	}
}

// offer returns the members at the beginning of a session.
func (c traffic) offer(turn int) string {
	if !c.more {
		return ""
	}
	return fmt.Sprintf(`,"modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"mode_%d","name":"B"}]},"configOptions":[%s]%s`, turn, c.options(turn), c.pad)
}

// options returns one option of the session and one of the turn.
func (c traffic) options(turn int) string {
	option := `{"id":%q,"name":"O"%s,"type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"mode_%d","name":"B"}]}`
	return fmt.Sprintf(option, "mode", `,"category":"mode"`, turn/c.turns*c.turns) + "," + fmt.Sprintf(option, fmt.Sprint("option_", turn), "", turn)
}

// rest sends all other messages of a turn.
func (c traffic) rest(session string, turn int, ask func(conformance.Direction, string, string, string), say func(string, ...any)) {
	const there, back = conformance.ToAgent, conformance.ToClient
	of := func(params string, args ...any) string {
		return fmt.Sprintf(`"sessionId":%q,`, session) + fmt.Sprintf(params, args...)
	}
	say(`"sessionUpdate":"plan","entries":[{"content":"entry %d","priority":"low","status":"pending"}]`, turn)
	say(`"sessionUpdate":"available_commands_update","availableCommands":[{"name":"command_%d","description":"D"}]`, turn)
	say(`"sessionUpdate":"current_mode_update","currentModeId":"a"`)
	say(`"sessionUpdate":"config_option_update","configOptions":[%s]`, c.options(turn))
	say(`"sessionUpdate":"agent_message_chunk","messageId":"message_%d","content":{"type":"text","text":"x"}`, turn)
	terminal := fmt.Sprintf("terminal_%d", turn)
	ask(back, "terminal/create", of(`"command":"make"`), fmt.Sprintf(`{"terminalId":%q%s}`, terminal, c.pad))
	say(`"sessionUpdate":"tool_call","toolCallId":"run_%d","title":"Running","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":%q}]`, turn, terminal)
	ask(back, "terminal/wait_for_exit", of(`"terminalId":%q`, terminal), `{"exitCode":0}`)
	say(`"sessionUpdate":"tool_call_update","toolCallId":"run_%d","status":"completed"`, turn)
	ask(back, "terminal/release", of(`"terminalId":%q`, terminal), `{}`)
	ask(back, "elicitation/create", of(`"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}`), `{"action":"decline"}`)
	ask(there, "session/list", fmt.Sprintf(`"cwd":"/of/%d"`, turn), fmt.Sprintf(`{"sessions":[{"sessionId":"listed_%d","cwd":"/of/%d"}],"nextCursor":"cursor_%d"%s}`, turn, turn, turn, c.pad))
}

// usual is a typical conversation.
var usual = traffic{turns: 20, texts: 30}

var memoryMessages = flag.Int("messages", 0, "how many messages TestMemory has judged; 0 is what the tier says")

// TestMemory shows that a connection takes no more memory after many messages than after half of them, and keeps little
// of the messages themselves.
func TestMemory(t *testing.T) {
	skipUnderRace(t)
	tier.Need(t, tier.Full)
	pad := `,"_meta":{"pad":"` + strings.Repeat("x", 1<<15) + `"}`
	for name, test := range map[string]struct {
		traffic  traffic
		messages int
		most     uint64 // bytes
	}{
		"many":  {traffic{turns: 5, texts: 3}, cmp.Or(*memoryMessages, tier.Pick(0, 0, 250_000, 1_000_000)), 64 << 20}, // half of them fill all tables
		"large": {traffic{turns: 5, texts: 3, pad: pad}, 20_000, 16 << 20},
		"all":   {traffic{turns: 5, texts: 3, more: true, pad: pad}, 20_000, 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			judge := conformance.NewJudge(conformance.V1(), nil)
			validator := conformance.NewValidator(conformance.V1())
			before, half, count := heap(), uint64(0), 0
			test.traffic.send(test.messages, func(m conformance.Message) {
				if f := append(judge.Message(m), validator.Message(m.Direction, m.Line)...); len(f) > 0 {
					t.Fatalf("message %d: %.200s: %v", count+1, m.Line, f)
				}
				if count++; count == test.messages/2 {
					half = heap() - before
				}
			})
			whole := heap() - before
			t.Logf("%d KB after %d messages, %d KB after %d", half>>10, test.messages/2, whole>>10, test.messages)
			if whole > test.most || name == "many" && whole > half+1<<20 {
				t.Errorf("%d bytes after half of the messages, %d after all", half, whole)
			}
			runtime.KeepAlive(judge)
			runtime.KeepAlive(validator)
		})
	}
}

// heap returns the size of the memory in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkValidator judges single messages by the schema.
func BenchmarkValidator(b *testing.B) {
	for _, test := range []struct{ name, line string }{
		{"chunk", chunk},
		{"tool call", toolCall(`{"type":"content","content":` + textOf("package main") + `},{"type":"diff","path":"/a/b.go","oldText":"package a","newText":"package b"}`)},
		{"chunk of 1 MB", chunkOf(textOf(strings.Repeat("0123456789", 100_000)))},
		{"invalid chunk", strings.Replace(chunk, `"text":`, `"txet":`, 1)},
	} {
		b.Run(test.name, func(b *testing.B) {
			v, line := conformance.NewValidator(conformance.V1()), []byte(test.line)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				v.Message(conformance.ToClient, line)
			}
		})
	}
}

// BenchmarkJudge judges conversations by the schema and all rules, a single one and one for each processor, and a
// single one by only the schema.
func BenchmarkJudge(b *testing.B) {
	var messages []conformance.Message
	bytes := 0
	usual.send(50_000, func(m conformance.Message) {
		messages = append(messages, m)
		bytes += len(m.Line)
	})
	b.Logf("%d messages of %d bytes on average", len(messages), bytes/len(messages))
	byRules := func() func(conformance.Message) []conformance.Finding {
		return conformance.NewJudge(conformance.V1(), nil).Message
	}
	bySchema := func() func(conformance.Message) []conformance.Finding {
		v := conformance.NewValidator(conformance.V1())
		return func(m conformance.Message) []conformance.Finding { return v.Message(m.Direction, m.Line) }
	}
	judge := func(b *testing.B, connect func() func(conformance.Message) []conformance.Finding, next func() bool) {
		for {
			message := connect()
			for _, m := range messages {
				if !next() {
					return
				}
				if f := message(m); len(f) > 0 {
					b.Errorf("%s: %v", m.Line, f)
				}
			}
		}
	}
	run := func(name string, test func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(bytes / len(messages)))
			b.ReportAllocs()
			test(b)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
	run("one connection", func(b *testing.B) { judge(b, byRules, b.Loop) })
	run("parallel", func(b *testing.B) { b.RunParallel(func(pb *testing.PB) { judge(b, byRules, pb.Next) }) })
	run("schema alone", func(b *testing.B) { judge(b, bySchema, b.Loop) })
}

// skipUnderRace ends a test of one goroutine that takes far longer with the race detector.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if gentest.Race {
		t.Skip("runs without the race detector")
	}
}
