package conformance_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cputime"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestLinear shows that the time for a message of testdata/growing.txtar does not grow faster than the message.
func TestLinear(t *testing.T) {
	skipUnderRace(t)
	tier.Need(t, tier.Full)
	const small, factor = 500, 16
	archive := must.Get(txtar.ParseFile("testdata/growing.txtar"))(t)
	repeated := regexp.MustCompile("⟨([^⟩]*)⟩")
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			grown := func(n int) (messages []conformance.Message) {
				text := repeated.ReplaceAllStringFunc(string(file.Data), func(mark string) string {
					var b strings.Builder
					for i := range n {
						b.WriteString(strings.ReplaceAll(repeated.FindStringSubmatch(mark)[1], "#", strconv.Itoa(i)))
					}
					return b.String()
				})
				for line := range strings.Lines(strings.TrimSpace(text)) {
					messages = append(messages, written(strings.TrimSuffix(line, "\n")))
				}
				return messages
			}
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
			few, many := grown(small), grown(small*factor)
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
			say(`"sessionUpdate":"agent_message_chunk","messageId":"text_%d","content":{"type":"text","text":"This is part %4d of what the agent has to say in turn %6d, neither short nor long"}`, turn, i, turn)
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

var memoryMessages = flag.Int("messages", 0, "how many messages TestMemory has judged; 0 is what the tier says")

// forgotten is a turn of a session that a judge of much traffic has forgotten.
var forgotten = []string{
	`-> {"id":"x","method":"session/prompt","params":{"sessionId":"sess_0","prompt":[{"type":"text","text":"hi"}]}}`,
	`<- {"method":"session/update","params":{"sessionId":"sess_0","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"pending"}}}`,
	`<- {"method":"session/update","params":{"sessionId":"sess_0","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}}}`,
	`<- {"method":"session/update","params":{"sessionId":"sess_0","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}}}`,
	`<- {"id":"x","result":{"stopReason":"end_turn"}}`,
}

// TestMemory shows that a connection takes no more memory after many messages than after half of them, and keeps little
// of the messages themselves; and that a judge which has forgotten something does not assume that it never happened.
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
			see := func(m conformance.Message) {
				if f := append(judge.Message(m), validator.Message(m.Direction, m.Line)...); len(f) > 0 {
					t.Fatalf("message %d: %.200s: %v", count+1, m.Line, f)
				}
				if count++; count == test.messages/2 {
					half = heap() - before
				}
			}
			test.traffic.send(test.messages, see)
			whole := heap() - before
			for _, line := range forgotten {
				see(written(line))
			}
			for _, f := range judge.End() {
				t.Errorf("at the end: %s", f)
			}
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

// skipUnderRace ends a test of one goroutine that takes far longer with the race detector.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if gentest.Race {
		t.Skip("runs without the race detector")
	}
}
