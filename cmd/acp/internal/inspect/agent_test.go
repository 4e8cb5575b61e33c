package inspect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

// testAgent is the variable that makes the test binary an agent: "right" or "wrong".
const testAgent = "ACP_TEST_INSPECTED"

func TestMain(m *testing.M) {
	if kind := os.Getenv(testAgent); kind != "" {
		(&lineAgent{out: bufio.NewWriter(os.Stdout), wrong: kind == "wrong"}).run()
		return
	}
	goleak.VerifyTestMain(m)
}

// hostile is text that must stay text.
var hostile = []string{
	"</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>", "\u202edetrevni\u202c", "\x1b[2J", "\x00", "\u2028\u2029",
	"`${alert(1)}`", `"onmouseover="alert(1)`, "javascript:alert(1)", "]]>", "{{constructor.constructor('alert(1)')()}}",
}

// lineAgent is an agent that does what the prompt says.
type lineAgent struct {
	out   *bufio.Writer
	wrong bool // the first update of each turn breaks the protocol
	last  int
	turn  json.RawMessage // the id of the prompt in progress
}

func (a *lineAgent) write(format string, args ...any) {
	fmt.Fprintf(a.out, format+"\n", args...)
	a.out.Flush()
}

func (a *lineAgent) update(update string) {
	a.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":%s}}`, update)
}

func (a *lineAgent) say(text string) {
	quoted, _ := json.Marshal(text) // a string
	a.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + string(quoted) + `}}`)
}

func (a *lineAgent) ask(method, params string) {
	a.last++
	a.write(`{"jsonrpc":"2.0","id":"a-%d","method":%q,"params":%s}`, a.last, method, params)
}

func (a *lineAgent) end(reason string) {
	a.write(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":%q}}`, a.turn, reason)
	a.turn = nil
}

func (a *lineAgent) run() {
	fmt.Fprintln(os.Stderr, "the agent starts")
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  json.RawMessage
			Params struct {
				Prompt []struct{ Text string }
			}
		}
		if json.Unmarshal(line, &m) != nil || !utf8.Valid(line) {
			a.write(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)
			continue
		}
		switch m.Method {
		case "initialize":
			a.write(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"line","version":"1"},"authMethods":[]}}`, m.ID)
		case "session/new":
			a.write(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s-1"}}`, m.ID)
		case "session/prompt":
			a.turn = m.ID
			if a.wrong {
				a.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t-1","status":"done"}`)
			}
			a.prompt(m.Params.Prompt[0].Text)
		case "session/cancel":
			if a.turn != nil {
				a.end("cancelled")
			}
		case "":
			if a.turn != nil {
				if bytes.Contains(m.Result, []byte(`"optionId"`)) {
					a.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t-1","status":"in_progress"}`)
					a.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t-1","status":"completed"}`)
				}
				if m.Error != nil {
					a.say("error " + string(m.Error))
				} else {
					a.say("result " + string(m.Result))
				}
				a.end("end_turn")
			}
		}
	}
}

// prompt begins a turn.
func (a *lineAgent) prompt(text string) {
	what, rest, _ := strings.Cut(text, " ")
	quoted, _ := json.Marshal(rest) // a string
	switch what {
	case "permission":
		a.update(`{"sessionUpdate":"tool_call","toolCallId":"t-1","title":"Delete","kind":"delete","status":"pending"}`)
		a.ask("session/request_permission", `{"sessionId":"s-1","toolCall":{"toolCallId":"t-1","title":"Delete","kind":"delete","status":"pending"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}`)
	case "read":
		a.ask("fs/read_text_file", fmt.Sprintf(`{"sessionId":"s-1","path":%s}`, quoted))
	case "write":
		path, content, _ := strings.Cut(rest, " ")
		a.ask("fs/write_text_file", fmt.Sprintf(`{"sessionId":"s-1","path":%q,"content":%q}`, path, content))
	case "run":
		a.ask("terminal/create", fmt.Sprintf(`{"sessionId":"s-1","command":%s}`, quoted))
	case "late": // ends the turn without waiting for the answer
		a.prompt(rest)
		a.end("end_turn")
	case "wait": // until it is cancelled
	case "die":
		os.Exit(7)
	case "flood":
		var n int
		fmt.Sscan(rest, &n)
		for i := range n {
			fmt.Fprintf(a.out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d "}}}}`+"\n", i)
		}
		a.end("end_turn")
	case "hostile":
		for _, text := range hostile {
			a.say(text)
		}
		a.say(strings.Repeat("x", 10<<20))
		a.out.Write(append(bytes.Repeat([]byte{0xff}, 10), '\n'))
		a.write("%s", strings.Repeat("[", 100_000))
		a.end("end_turn")
	default:
		a.say("You said: " + text)
		a.end("end_turn")
	}
}
