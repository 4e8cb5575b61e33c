package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// wireCases holds lines that clients may send, the answers of this library's agent, and the answers of the TypeScript
// SDK's agent if they differ ("none" if it does not answer). An answer is its id, and the code of an error.
var wireCases = []struct {
	name, line, ours, theirs string
}{
	{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `1: -32601`, ""},
	{"unknown notification", `{"jsonrpc":"2.0","method":"no/such"}`, ``, ""},
	{"id that a double cannot hold", `{"jsonrpc":"2.0","id":9007199254740993,"method":"no/such"}`, `9007199254740993: -32601`, `9007199254740992: -32601`},
	{"id with a fraction", `{"jsonrpc":"2.0","id":1.50,"method":"no/such"}`, `1.50: -32601`, `1.5: -32601`},
	{"id with an exponent", `{"jsonrpc":"2.0","id":1e2,"method":"no/such"}`, `1e2: -32601`, `100: -32601`},
	{"id that is a text", `{"jsonrpc":"2.0","id":"a\u00e4\"","method":"no/such"}`, `"aä\"": -32601`, ""},
	{"empty id", `{"jsonrpc":"2.0","id":"","method":"no/such"}`, `"": -32601`, ""},
	{"id with an unpaired surrogate", `{"jsonrpc":"2.0","id":"\ud800","method":"no/such"}`, `"\ud800": -32601`, ""},
	{"id that is null", `{"jsonrpc":"2.0","id":null,"method":"no/such"}`, `null: -32601`, ""},
	{"id that is a list", `{"jsonrpc":"2.0","id":[1],"method":"no/such"}`, `null: -32600`, ""},
	{"no parameters", `{"jsonrpc":"2.0","id":2,"method":"session/new"}`, `2: -32602`, ""},
	{"parameters as a list", `{"jsonrpc":"2.0","id":3,"method":"session/new","params":["/",[]]}`, `3: -32602`, ""},
	{"member of a wrong type", `{"jsonrpc":"2.0","id":4,"method":"session/new","params":{"cwd":7,"mcpServers":[]}}`, `4: -32602`, ""},
	{"relative cwd", `{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"a","mcpServers":[]}}`, `5: -32602`, ""},
	{"unknown session", `{"jsonrpc":"2.0","id":6,"method":"session/prompt","params":{"sessionId":"no-such","prompt":[]}}`, `6: -32002`, ""},
	{"empty session id", `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"","prompt":[]}}`, `7: -32002`, ""},
	{"cancellation of an unknown session", `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"no-such"}}`, ``, ""},
	{"cancellation of no request", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`, ``, ""},
	{"response to no request", `{"jsonrpc":"2.0","id":98,"result":{}}`, ``, ""},
	{"error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, ``, ""},
	{"no JSON", `{"jsonrpc":"2.0",`, `null: -32700`, ""},
	{"empty batch", `[]`, `null: -32600`, ""},
	{"no method", `{"jsonrpc":"2.0","id":8}`, `8: -32600`, "none"},
	{"method that is a number", `{"jsonrpc":"2.0","id":9,"method":1}`, `9: -32600`, `null: -32600`},
	{"another version of JSON-RPC", `{"jsonrpc":"1.0","id":10,"method":"no/such"}`, `10: -32600`, `null: -32600`},
	{"member twice", `{"jsonrpc":"2.0","id":11,"id":12,"method":"no/such"}`, `12: -32600`, `12: -32601`},
	{"blank line", ` `, ``, ""},
}

// TestWireCases sends the same lines to this library's agent and to one of the TypeScript SDK.
func TestWireCases(t *testing.T) {
	tier.Need(t, tier.Full)
	for _, agent := range []struct {
		name    string
		command *exec.Cmd
		theirs  bool
	}{
		{"go", exec.CommandContext(t.Context(), build(t, "agent"), "-state", t.TempDir()), false},
		{"typescript", exec.CommandContext(t.Context(), "node", filepath.Join(installed.Dir(t), "agent.mjs")), true},
	} {
		t.Run(agent.name, func(t *testing.T) {
			in := must.Get(agent.command.StdinPipe())(t)
			out := must.Get(agent.command.StdoutPipe())(t)
			must.Do(t, agent.command.Start())
			stop := context.AfterFunc(t.Context(), func() { out.Close() })
			defer stop()
			limit := time.AfterFunc(10*time.Minute, func() { _ = agent.command.Process.Kill() }) // it fails if the agent has ended
			defer limit.Stop()
			lines := bufio.NewScanner(out)
			// exchange sends a line, and a request whose id is "end". It returns the answers to the line: the expected
			// number, and those that arrive before the answer to the request.
			exchange := func(line string, expected int) (answers []string) {
				line += "\n" + `{"jsonrpc":"2.0","id":"end","method":"no/such"}`
				must.Get(fmt.Fprintln(in, line))(t)
				for ended := false; !ended || len(answers) < expected; {
					if !lines.Scan() {
						t.Fatalf("%s: the agent has ended: %v", line, lines.Err())
					}
					var answer struct {
						ID    json.RawMessage
						Error *struct{ Code int }
					}
					if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
						t.Fatalf("%v: %s", err, lines.Bytes())
					}
					if string(answer.ID) == `"end"` {
						ended = true
						continue
					}
					what := "result"
					if answer.Error != nil {
						what = fmt.Sprint(answer.Error.Code)
					}
					answers = append(answers, string(answer.ID)+": "+what)
				}
				return answers
			}
			exchange(`{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`, 1)
			for _, c := range wireCases {
				want := c.ours
				if agent.theirs && c.theirs != "" {
					want = strings.TrimPrefix(c.theirs, "none")
				}
				got := exchange(c.line, strings.Count(want, ": "))
				if strings.Join(got, ", ") != want {
					t.Errorf("%s: %s:\n got %q\nwant %q", c.name, c.line, strings.Join(got, ", "), want)
				}
			}
			must.Do(t, in.Close())
			// How an agent ends is tested elsewhere.
			_ = agent.command.Wait()
		})
	}
}
