package probe_test

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// clientMutant is the reference client with one fault, and the requirements that a scenario must find broken. It uses
// the same type of fault as the mutants of agents, with the client in the role of the agent.
type clientMutant struct {
	scenario string // or several
	rules    string // exactly the requirements that are found broken
	fault    fault
	client   func(*probe.User, rpc.Transport) // in place of the reference
}

// editingRequest changes the params of the client's requests.
func editingRequest(method string, edit func(params map[string]json.RawMessage)) fault {
	return changing(func(_ *state, m *line) bool { return m.request && m.method == method },
		func(_ *state, m *line) []string { return []string{m.edited("params", edit)} })
}

// with sets a member.
func with(name, value string) func(map[string]json.RawMessage) {
	return func(params map[string]json.RawMessage) { params[name] = json.RawMessage(value) }
}

// without removes a member.
func without(name string) func(map[string]json.RawMessage) {
	return func(params map[string]json.RawMessage) { delete(params, name) }
}

// gated sends a request after the first prompt, and hides its answer from the client.
func gated(method, params string) fault {
	f := withheld(func(_ *state, m *line) bool { return m.answer && m.id == `"mutant"` })
	f.toClient = func(s *state, m *line) []string {
		if m.method == "session/prompt" && s.nth("gated") == 1 {
			return []string{m.text, `{"jsonrpc":"2.0","id":"mutant","method":"` + method + `","params":` + params + `}`}
		}
		return []string{m.text}
	}
	return f
}

// withheld puts a notification in place of lines to the tested side.
func withheld(when func(*state, *line) bool) fault {
	return fault{toAgent: func(s *state, m *line) ([]string, []string) {
		if when(s, m) {
			return []string{`{"jsonrpc":"2.0","method":"_mutant/note"}`}, nil
		}
		return []string{m.text}, nil
	}}
}

// misreading changes the messages to the client.
func misreading(pairs ...string) fault {
	replacer := strings.NewReplacer(pairs...)
	return fault{toAgent: func(_ *state, m *line) ([]string, []string) { return []string{replacer.Replace(m.text)}, nil }}
}

// deadAt stops reading at a text.
func deadAt(text string) fault {
	return withheld(func(s *state, m *line) bool {
		return (s.count["dead"] > 0 || strings.Contains(m.text, text)) && s.nth("dead") > 0
	})
}

// impatient stops waiting for a command when its user cancels, and reports an error.
func impatient(code string) fault {
	return fault{toClient: func(s *state, m *line) []string {
		switch {
		case m.answer && m.method == "terminal/wait_for_exit" && s.count["gave up"] > 0:
			return nil
		case m.method == "session/cancel":
			lines := []string{m.text}
			for _, asked := range s.all {
				if asked.method == "terminal/wait_for_exit" {
					s.nth("gave up")
					lines = append(lines, `{"jsonrpc":"2.0","id":`+asked.id+`,"error":{"code":`+code+`,"message":"Cancelled by the user"}}`)
				}
			}
			return lines
		}
		return []string{m.text}
	}}
}

// noAnswer is an answer that is never allowed.
const noAnswer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`

// through is a client whose stream is changed.
func through(client func(*probe.User, rpc.Transport), change func(inner rpc.Stream) rpc.Wrapper) func(*probe.User, rpc.Transport) {
	return func(user *probe.User, agent rpc.Transport) {
		client(user, transport(func(ctx context.Context) (rpc.Stream, error) {
			inner, err := agent.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return rpc.Wrap(inner, change(inner)), nil
		}))
	}
}

type transport func(ctx context.Context) (rpc.Stream, error)

func (f transport) Connect(ctx context.Context) (rpc.Stream, error) { return f(ctx) }

// staying is the reference client, but it does not end with its user: it stays for longer than the probe waits.
var staying = through(referenceClient, func(inner rpc.Stream) rpc.Wrapper {
	return rpc.Wrapper{
		CloseWrite: func() error { return nil },
		Close: func() error {
			time.Sleep(3 * time.Second) // this is the fault
			return inner.Close()
		},
	}
})

// diesAt is a client that ends when a text comes.
func diesAt(text string) func(*probe.User, rpc.Transport) {
	return through(bubbleClient, func(rpc.Stream) rpc.Wrapper {
		return rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if strings.Contains(string(line), text) {
				return nil, io.EOF
			}
			return line, err
		}}
	})
}

// granted is the answer of a user who grants a permission, and rejected that of one who does not.
const (
	granted  = `{"outcome":{"outcome":"selected","optionId":"yes"}}`
	rejected = `{"outcome":{"outcome":"selected","optionId":"no"}}`
)

var clientMutants = []clientMutant{
	{scenario: "permission", rules: "ADD-17", fault: replacing(`"optionId":"yes"`, `"optionId":"no"`)},
	{scenario: "permission", rules: "ADD-17", fault: replacing(granted, `{"outcome":{"outcome":"cancelled"}}`)},
	{scenario: "permission", rules: "ADD-17", fault: granting("session/request_permission", rejected, always)},
	{scenario: "permission-refused", rules: "ADD-17", fault: replacing(`"optionId":"no"`, `"optionId":"yes"`)},
	{scenario: "permission-refused", rules: "ADD-17", fault: granting("session/request_permission", granted, always)},
	{scenario: "permission", rules: "ADD-17", fault: failing("session/request_permission", always)},
	{scenario: "permission-refused", rules: "ADD-17", fault: refusing("session/request_permission", "-32601", always)},
	{scenario: "form", rules: "ADD-17", fault: failing("elicitation/create", always)},
	{scenario: "permission-of-unknown-kind", rules: "ADD-17", fault: replacing(`"optionId":"yes"`, `"optionId":"no"`)},
	{scenario: "form", rules: "ADD-17", fault: replacing(`{"action":"decline"}`, `{"action":"accept","content":{"name":"x"}}`)},
	{scenario: "form", rules: "ADD-17", fault: rewriting(`"result":\{"action":"accept".*`, `"result":{"action":"decline"}}`)},
	{scenario: "form", rules: "ADD-17", fault: rewriting(`"result":\{"action":"accept".*`, `"result":{"action":"cancel"}}`)},
	{scenario: "form", rules: "ADD-17", fault: granting("elicitation/create", `{"action":"accept","content":{"name":"x"}}`, always)},
	{scenario: "link", rules: "ADD-17", fault: replacing(`{"action":"decline"}`, `{"action":"accept"}`)},
	{scenario: "boolean-options", rules: "CFG-16 EXT-2", fault: editingRequest("session/set_config_option", with("value", `"true"`))},
	{scenario: "boolean-options", rules: "CFG-16", fault: editingRequest("session/set_config_option", with("configId", `"other"`))},
	{scenario: "close-what-is-gone", rules: "ERR-8", client: diesAt("-32002")},
	{scenario: "start errors", rules: "ERR-1", client: diesAt("-12345")},
	{scenario: "start stop-reasons", rules: "SCH-17", client: diesAt("_tired")},
	{scenario: "start update-behind-the-end", rules: "SCH-17", client: diesAt("One thing more")},
	{scenario: "start login-lost", rules: "AUT-11", client: diesAt("-32000")},
	{scenario: "start", rules: "INI-3", fault: editingRequest("initialize", without("clientInfo"))},
	{scenario: "start", rules: "SES-20", fault: editingRequest("session/new", with("cwd", `"relative"`))},
	{scenario: "capabilities-left-out", rules: "LST-3", fault: gated("session/list", `{}`)},
	{scenario: "capabilities-none", rules: "SES-4", fault: gated("session/load", `{"sessionId":"m","cwd":"/","mcpServers":[]}`)},
	{scenario: "capabilities-all-off", rules: "SES-9", fault: gated("session/resume", `{"sessionId":"m","cwd":"/","mcpServers":[]}`)},
	{scenario: "capabilities-null", rules: "AUT-1", fault: gated("logout", `{}`)},
	{scenario: "capabilities-null-members", rules: "SES-13", fault: gated("session/close", `{"sessionId":"m"}`)},
	{scenario: "capabilities-wrong-types", rules: "DEL-3", fault: gated("session/delete", `{"sessionId":"m"}`)},
	{scenario: "capabilities-unknown", rules: "SES-19", fault: editingRequest("session/new", with("additionalDirectories", `["/"]`))},
	{scenario: "capabilities-load-alone", rules: "SES-27", fault: editingRequest("session/new", with("mcpServers", `[{"type":"http","name":"m","url":"https://example.com/","headers":[]}]`))},
	{scenario: "capabilities-list-alone", rules: "PRM-2", fault: editingRequest("session/prompt", with("prompt", `[{"type":"image","data":"AAAA","mimeType":"image/png"}]`))},
	{scenario: "version-of-the-future", rules: "INI-10", fault: misreading(`"protocolVersion":9999`, `"protocolVersion":1`)},
	{scenario: "version-zero", rules: "INI-10", fault: misreading(`"protocolVersion":0`, `"protocolVersion":1`)},
	{scenario: "login", rules: "AUT-3", fault: editingRequest("authenticate", with("methodId", `"other"`))},
	{scenario: "login-in-a-terminal", rules: "AUT-2", fault: misreading(`"type":"terminal",`, ``, `,"args":["--login"]`, ``)},
	{scenario: "login-of-unknown-type", rules: "SCH-17", fault: deadAt("_acp.probe/alive")},
	{scenario: "login-lost", rules: "AUT-11", fault: deadAt(`-32000`)},
	{scenario: "updates-known", rules: "SCH-17", fault: deadAt("usage_update")},
	{scenario: "updates-of-session-info", rules: "LST-13", fault: deadAt("session_info_update")},
	{scenario: "updates-of-unknown-kinds", rules: "SCH-17", fault: deadAt("weather_update")},
	{scenario: "updates-of-unknown-kinds", rules: "OVW-4", fault: answering(noAnswer, has("weather_update"))},
	{scenario: "updates-with-unknown-members", rules: "SCH-17", fault: deadAt(`"probe":{"deep"`)},
	{scenario: "updates-with-nulls", rules: "SCH-17", fault: deadAt(`"messageId":null`)},
	{scenario: "updates-with-wrong-types", rules: "SCH-17", fault: deadAt(`"kind":7`)},
	{scenario: "updates-with-odd-meta", rules: "SCH-1", fault: deadAt("zed.dev")},
	{scenario: "updates-of-tool-calls", rules: "TOL-3", fault: deadAt(`"never"`)},
	{scenario: "updates-with-odd-text", rules: "SCH-17", fault: deadAt(`\u202e`)},
	{scenario: "update-of-unknown-session", rules: "SCH-17", fault: deadAt("no-such-session")},
	{scenario: "update-behind-the-end", rules: "SCH-17", fault: deadAt("One thing more")},
	{scenario: "stop-reasons", rules: "SCH-17", fault: deadAt("_acp.probe/alive")},
	{scenario: "permission", rules: "TOL-5", fault: replacing(`"optionId":"yes"`, `"optionId":"other"`)},
	{scenario: "permission-refused", rules: "TOL-5", fault: replacing(`"optionId":"no"`, `"optionId":"other"`)},
	{scenario: "permission-of-unknown-kind", rules: "TOL-5", fault: replacing(`"optionId":"yes"`, `"optionId":"other"`)},
	{scenario: "cancel-in-permissions", rules: "PRM-9", fault: replacing(`{"outcome":"cancelled"}`, `{"outcome":"selected","optionId":"yes"}`)},
	{scenario: "cancel-then-updates", rules: "PRM-14", fault: deadAt("I am stopping")},
	{scenario: "cancel-then-prompt", rules: "ADD-8", fault: changing(func(s *state, m *line) bool { return m.method == "session/prompt" && s.nth("prompt") == 2 },
		func(_ *state, m *line) []string {
			return []string{m.text, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + sessionOf(m) + `"}}`}
		})},
	{scenario: "cancelled-and-silent", rules: "TRN-10", client: staying},
	{scenario: "cancel-request", rules: "CAN-1", fault: silent("session/request_permission", always)},
	{scenario: "cancel-request-nested", rules: "CAN-5", fault: dropping("$/cancel_request")},
	{scenario: "cancel-in-a-wait", rules: "CAN-2", fault: impatient("-32603")},
	{scenario: "cancel-request-unknown", rules: "OVW-4", fault: answering(noAnswer, has("$/cancel_request"))},
	{scenario: "quit", rules: "TRN-10", client: staying},
	{scenario: "dies-in-initialize", rules: "TRN-10", client: staying},
	{scenario: "dies-in-new", rules: "TRN-10", client: staying},
	{scenario: "dies-in-prompt", rules: "TRN-10", client: staying},
	{scenario: "errors", rules: "ERR-1", fault: deadAt("-12345")},
	{scenario: "broken-json", rules: "ERR-7", fault: replacing(`-32700`, `-32600`)},
	{scenario: "no-messages", rules: "ERR-7", fault: deadAt(`"1.0"`)},
	{scenario: "batches", rules: "TRN-3", fault: deadAt(`[1,2]`)},
	{scenario: "empty-lines", rules: "ERR-7", fault: deadAt(`_acp.probe/x`)},
	{scenario: "odd-answers", rules: "ADD-9", fault: deadAt(`987655`)},
	{scenario: "deep-nesting", rules: "ERR-7", fault: deadAt(`_acp.probe/deep`)},
	{scenario: "unknown-notifications", rules: "OVW-4", fault: answering(noAnswer, has("_acp.probe/note"))},
	{scenario: "long-lines", rules: "SCH-17", fault: deadAt("long long")},
	{scenario: "many-updates", rules: "SCH-17", fault: deadAt("a word")},
	{scenario: "slow-reader", rules: "SCH-17", fault: deadAt("a word")},
	{scenario: "ids", rules: "SCH-2", fault: replacing(`"id":-1,`, `"id":-2,`)},
	{scenario: "unknown-requests", rules: "EXT-5", fault: recoding("_acp.probe/unknown", "-32601", "-32603")},
	{scenario: "unstated", rules: "INI-13 ERR-3", fault: replacing(`"terminal":true,`, ``)},
	{scenario: "wrong-params", rules: "ERR-4", fault: granting("fs/read_text_file", `{"content":""}`, params(`"path":7`))},
	{scenario: "other-orders", rules: "SCH-17", fault: deadAt(`session\/update`)},
	{scenario: "no-messages", rules: "ERR-7", fault: deadAt(`[]`)},
	{scenario: "odd-categories", rules: "CFG-6", fault: deadAt(`"zzz"`)},
	{scenario: "exotic-answers", rules: "CFG-15", fault: deadAt(`"slider"`)},
	{scenario: "exotic-answers", rules: "CFG-15", fault: deadAt("_acp.probe/alive")},
	{scenario: "read-files", rules: "FS-4", fault: granting("fs/read_text_file", `{"content":"one\ntwo"}`, params(`"line":1,`))},
	{scenario: "read-files", rules: "FS-6", fault: recoding("fs/read_text_file", "-32002", "-32603")},
	{scenario: "write-files", rules: "FS-3", fault: granting("fs/write_text_file", `{}`, always)},
	{scenario: "write-files", rules: "INI-6", fault: granting("fs/write_text_file", `{}`, params(`"content":""`))},
	{scenario: "terminal", rules: "TRM-12", fault: replacing(`"exitCode":3`, `"exitCode":0`)},
	{scenario: "terminal-limits", rules: "TRM-4", fault: replacing(`"truncated":true`, `"truncated":false`)},
	{scenario: "terminal-limits", rules: "TRM-4 TRM-5", fault: replacing(`"output":"😀b"`, `"output":"\ufffd😀b"`)},
	{scenario: "terminal-killed", rules: "TRM-10", fault: granting("terminal/kill", `{}`, always)},
	{scenario: "terminal-released", rules: "TRM-11", fault: granting("terminal/release", `{}`, always)},
	{scenario: "form", rules: "ELI-15", fault: replacing(`"age":7`, `"age":-7`)},
	{scenario: "form-of-unknown-types", rules: "SCH-10", fault: replacing(`"content":{"name":"probe"}`, `"content":{"name":"probe","mood":"x"}`)},
	{scenario: "elicitation-of-unknown-mode", rules: "SCH-8", fault: granting("elicitation/create", `{"action":"accept"}`, has("_dance"))},
	{scenario: "elicitation-without-scope", rules: "ELI-34 ADD-17", fault: granting("elicitation/create", `{"action":"accept","content":{}}`, always)},
	{scenario: "link", rules: "ELI-22", fault: deadAt("elicitation/complete")},
	{scenario: "list", rules: "LST-10", fault: replacing(`"cursor":"`, `"cursor":"x`)},
	{scenario: "load-and-resume", rules: "SES-18", fault: editingRequest("session/load", without("additionalDirectories"))},
	{scenario: "modes-and-options", rules: "MOD-1", fault: editingRequest("session/set_mode", with("modeId", `"other"`))},
	{scenario: "modes-and-options", rules: "CFG-16", fault: editingRequest("session/set_config_option", with("value", `"other"`))},
	{scenario: "close-what-is-gone", rules: "ERR-8", fault: deadAt("-32002")},
	{scenario: "logout", rules: "SCH-17", fault: deadAt("_acp.probe/alive")},
}

// TestGivesUp: a client that abandons a request of the agent with the right error complies with CAN-2. The user may cancel
// before the client has read that request, and then there is nothing to abandon.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		verdict := probe.NotExercised
		for tries := 0; verdict == probe.NotExercised && tries < 20; tries++ {
			r := must.Get(probe.Client(t.Context(), mutate(probe.InMemoryClient(bubbleClient), impatient("-32800")), &probe.Options{
				Scratch: t.TempDir(), Only: []string{"cancel-in-a-wait"},
			}))(t)
			for _, row := range r.Rows {
				if row.ID == "CAN-2" {
					if verdict = row.Verdict; verdict == probe.Fail {
						t.Errorf("%s: %s, %v", row.Verdict, row.Reason, row.Failures)
					}
				}
			}
		}
		if verdict == probe.NotExercised {
			t.Error("the client never gave up a request")
		}
	})
}

// TestScript: a client that plays a script may end with it, and at the first error.
func TestScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := must.Get(probe.Client(t.Context(), probe.InMemoryClient(func(user *probe.User, agent rpc.Transport) {
			conn, err := acp.Connect(user.Context, agent, acp.ClientHandlers{}, &acp.ClientOptions{Info: acp.Implementation{Name: "script", Version: "1"}})
			if err != nil {
				return
			}
			defer conn.Close()
			session, err := conn.NewSession(user.Context, &acp.NewSessionRequest{Cwd: user.Dir})
			for range 4 {
				if err == nil {
					_, err = session.Prompt(user.Context, acp.TextBlock("Hello"))
				}
			}
			if err == nil {
				_ = session.Close(user.Context) // whatever the answer
			}
		}), &probe.Options{Scratch: t.TempDir(), Only: []string{"start", "errors", "login-lost", "stop-reasons", "update-behind-the-end", "close-what-is-gone"}}))(t)
		if found := findings(t, r); len(found) > 0 {
			t.Errorf("found %q", found)
		}
	})
}

// TestClientMutants plays each scenario against a client with one fault, and requires exactly the matching findings.
func TestClientMutants(t *testing.T) {
	t.Parallel()
	played := map[string]bool{
		// These can be sent only to a process; cmd/acp tests them.
		"parts-of-lines": true, "flood-of-logs": true, "login-in-a-terminal-succeeds": true, "login-in-a-terminal-fails": true,
	}
	for i, m := range clientMutants {
		names := strings.Fields(m.scenario)
		for _, name := range names {
			played[name] = true
		}
		processes := slices.Contains(outside, m.scenario)
		least := tier.Short
		if processes {
			least = tier.Normal
		}
		if slices.Contains([]string{"link", "terminal-killed", "terminal-released"}, m.scenario) {
			least = tier.Full // they wait for five or ten seconds
		}
		if tier.Current() < least || i%tier.Pick(8, 1, 1, 1) != 0 {
			continue
		}
		t.Run(m.scenario+"/"+m.rules, func(t *testing.T) {
			t.Parallel()
			client, play := bubbleClient, synctest.Test
			if processes {
				client, play = referenceClient, func(t *testing.T, test func(*testing.T)) { test(t) }
			}
			if m.client != nil {
				client = m.client
			}
			play(t, func(t *testing.T) {
				caught(t, m.rules, func(o *probe.Options) (*probe.Report, error) {
					o.Only = names
					return probe.Client(t.Context(), mutate(probe.InMemoryClient(client), m.fault), o)
				})
			})
		})
	}
	t.Logf("%d faulty clients", len(clientMutants))
	for _, s := range probe.ClientScenarios() {
		if !played[s.Name] {
			t.Errorf("the scenario %s has no mutant", s.Name)
		}
	}
}
