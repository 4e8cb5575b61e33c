package probe_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/test/must"
)

// scripted starts an agent that is a function. It gets each message of the client, and at the end an empty line. The
// members of a message that it sends, such as `"method":"x"`, go to the client; send returns false after the end of the
// connection.
func scripted(t *testing.T, begin func() func(m *line, send func(members string) bool)) func() rpc.Transport {
	return func() rpc.Transport {
		client, transport := rpc.Pipe()
		stream := must.Get(transport.Connect(t.Context()))(t)
		serve := begin()
		go func() { // it ends with the connection
			defer stream.Close()
			for {
				m, send := &line{}, func(members string) bool { return stream.Write([]byte(`{"jsonrpc":"2.0",`+members+`}`)) == nil }
				text, err := stream.Read()
				if err == nil {
					m = readLine(text)
				}
				if serve(m, send); err != nil {
					return
				}
			}
		}()
		return client
	}
}

// raw starts an agent that answers with unchanged JSON texts: each method has a function that returns its outcome, such
// as `"result":{}`.
func raw(t *testing.T, methods map[string]func(params json.RawMessage) string) func() rpc.Transport {
	return scripted(t, func() func(*line, func(string) bool) {
		return func(m *line, send func(string) bool) {
			if !m.request {
				return
			}
			outcome := `"error":{"code":-32601,"message":"Method not found"}`
			if f := methods[m.method]; f != nil {
				outcome = f(m.params)
			}
			send(`"id":` + m.id + `,` + outcome)
		}
	})
}

// bubble runs a subtest in a bubble: periods of silence take no real time, and are long enough even on a busy machine.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func result(text string) func(json.RawMessage) string {
	return func(json.RawMessage) string { return `"result":` + text }
}

const terse = `{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"raw","version":"1"}}`

// failures returns the requirements that fail in scenarios.
func failures(t *testing.T, connect func() rpc.Transport, scenarios ...string) (failed []string, r *probe.Report) {
	t.Helper()
	r = must.Get(probe.Agent(t.Context(), probe.InMemory(connect), &probe.Options{
		Scratch: t.TempDir(), Only: scenarios, Answer: 5 * time.Second, Quiet: 50 * time.Millisecond, Rung: 100 * time.Millisecond,
	}))(t)
	for _, row := range r.Rows {
		if row.Verdict == probe.Fail && !slices.Contains(r.Summary.NeverRan, row.ID) {
			failed = append(failed, row.ID)
		}
	}
	return failed, r
}

// TestOptionsThatChange: an option that disappears when another one is set is no longer requested, and neither are
// values that disappear.
func TestOptionsThatChange(t *testing.T) {
	for name, forgetful := range map[string]bool{"right": false, "wrong": true} {
		bubble(t, name, func(t *testing.T) {
			connect := func() rpc.Transport {
				model, effort := "large", "low"
				list := func() string {
					options := `{"id":"model","name":"Model","type":"select","currentValue":"` + model + `","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]}`
					if model == "large" {
						return `[` + options + `,{"id":"fast","name":"Fast","type":"boolean","currentValue":false},{"id":"effort","name":"Effort","type":"select","currentValue":"` + effort + `","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]`
					}
					return `[` + options + `,{"id":"effort","name":"Effort","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"}]}]`
				}
				return raw(t, map[string]func(json.RawMessage) string{
					"initialize":  result(terse),
					"session/new": func(json.RawMessage) string { return `"result":{"sessionId":"s","configOptions":` + list() + `}` },
					"session/set_config_option": func(params json.RawMessage) string {
						var p struct {
							ConfigID string
							Value    any
						}
						if err := json.Unmarshal(params, &p); err != nil {
							t.Error(err)
						}
						value, _ := p.Value.(string)
						ok := false
						switch p.ConfigID {
						case "model":
							if ok = value == "large" || value == "small"; ok {
								model, effort = value, "low"
							}
						case "effort":
							ok = value == "low" || value == "high" && model == "large" && !forgetful
							if ok {
								effort = value
							}
						case "fast":
							ok = model == "large"
						}
						if forgetful && p.ConfigID == "effort" && value == "low" {
							ok = false
						}
						if !ok {
							return `"error":{"code":-32602,"message":"Invalid params"}`
						}
						return `"result":{"configOptions":` + list() + `}`
					},
				})()
			}
			failed, _ := failures(t, connect, "options")
			if want := forgetful; slices.Contains(failed, "CFG-17") != want || len(failed) > 1 {
				t.Errorf("failed: %q", failed)
			}
		})
	}
}

// TestEndInATurn: an agent whose input ends during a turn may end that turn as cancelled, but no other.
func TestEndInATurn(t *testing.T) {
	for name, forNothing := range map[string]bool{"right": false, "wrong": true} {
		bubble(t, name, func(t *testing.T) {
			connect := scripted(t, func() func(*line, func(string) bool) {
				prompt := ""
				return func(m *line, send func(string) bool) {
					switch {
					case m.method == "" && prompt != "", m.method == "session/prompt" && forNothing:
						send(`"id":` + cmp.Or(prompt, m.id) + `,"result":{"stopReason":"cancelled"}`)
						prompt = ""
					case m.method == "initialize":
						send(`"id":` + m.id + `,"result":` + terse)
					case m.method == "session/new":
						send(`"id":` + m.id + `,"result":{"sessionId":"s"}`)
					case m.method == "session/prompt":
						prompt = m.id
						for range 3 {
							send(`"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`)
						}
					}
				}
			})
			failed, r := failures(t, connect, "end-in-a-turn")
			warned := slices.ContainsFunc(r.Rows, func(row probe.Row) bool { return row.ID == "PRM-7" && row.Verdict == probe.Warn })
			if warned != forNothing || len(failed) > 0 {
				t.Errorf("PRM-7: %v, failed: %q", warned, failed)
			}
		})
	}
}

// TestEndless: a turn that never ends is a failure of the requirement that turns end, whether the agent falls silent or
// continues for ever, and the other scenarios say so at once.
func TestEndless(t *testing.T) {
	const text = `"content":{"type":"text","text":"On and on. "}`
	for name, c := range map[string]struct {
		protocol    int
		first, rest string // updates at the beginning of a turn, and every second of it
		failed      string
		atMost      time.Duration
	}{
		"silent":                 {1, `"sessionUpdate":"agent_message_chunk",` + text, "", "PRM-5", 3 * time.Minute},
		"talkative":              {1, "", `"sessionUpdate":"agent_message_chunk",` + text, "PRM-5", 3 * time.Minute},
		"silent in version 2":    {2, `"sessionUpdate":"state_update","state":"running"`, "", "V2-2", 3 * time.Minute},
		"talkative in version 2": {2, `"sessionUpdate":"state_update","state":"running"`, `"sessionUpdate":"agent_message_chunk","messageId":"a",` + text, "V2-2", 3 * time.Minute},
		"never running":          {2, `"sessionUpdate":"state_update","state":"idle"`, "", "V2-2", 3 * time.Minute},
	} {
		bubble(t, name, func(t *testing.T) {
			r := must.Get(probe.Agent(t.Context(), probe.InMemory(scripted(t, func() func(*line, func(string) bool) {
				sessions := map[string]bool{}
				return func(m *line, send func(string) bool) {
					var prompt struct{ Prompt []struct{} }
					update := func(update string) bool {
						return update == "" || send(`"method":"session/update","params":{"sessionId":"s","update":{`+update+`}}`)
					}
					switch {
					case m.method == "initialize" && c.protocol == 2:
						send(`"id":` + m.id + `,"result":{"protocolVersion":2,"capabilities":{"session":{}},"info":{"name":"raw","version":"1"}}`)
					case m.method == "initialize":
						send(`"id":` + m.id + `,"result":` + terse)
					case m.method == "session/new":
						id := rand.Text()
						sessions[id] = true
						send(`"id":` + m.id + `,"result":{"sessionId":"` + id + `"}`)
					case m.method == "session/prompt" && json.Unmarshal(m.params, &prompt) == nil && len(prompt.Prompt) > 0 && sessions[sessionOf(m)]:
						if c.protocol == 2 {
							send(`"id":` + m.id + `,"result":{"messageId":"u"}`)
							update(`"sessionUpdate":"user_message","messageId":"u","content":[]`)
						}
						update(c.first)
						go func() { // ends with the connection
							for c.rest != "" && update(c.rest) {
								time.Sleep(time.Second)
							}
						}()
					case m.request:
						send(`"id":` + m.id + `,"error":{"code":-32601,"message":"Method not found"}`)
					}
				}
			})), &probe.Options{Protocol: c.protocol, Scratch: t.TempDir()}))(t)
			if !slices.Contains(r.Summary.Must, c.failed) || len(r.Summary.DidNotRun) > 0 || r.Seconds > c.atMost.Seconds() {
				t.Errorf("failed: %q, want %q; did not run: %q; %.0f s", r.Summary.Must, c.failed, r.Summary.DidNotRun, r.Seconds)
			}
			played := 0
			for _, out := range r.Scenarios {
				if len(out.Failed) > 0 && slices.Contains(out.Failed, c.failed) {
					played++
				}
			}
			if played != 1 {
				t.Errorf("%d scenarios found the same", played)
			}

			time.Sleep(time.Minute) // until the agent has ended
		})
	}
}

// TestSlowStart: the start has its own time limit, in addition to that of the first answer. An agent that needs more
// time is too slow, but does not fail: the scenario is played again with more time, and the others are not played. An
// agent that does not answer at all fails.
func TestSlowStart(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		slow                  string
		takes                 time.Duration // of the 5 s for an answer, and the 5 s for the start
		failed, tooSlow, rest string
	}{
		{"initialize", 8 * time.Second, "", "", ""},
		{"initialize", 12 * time.Second, "", "INI-4", "initialize was answered after 12s"},
		{"session/new", 8 * time.Second, "", "INI-16", "session/new was answered after 8s"},
		{"initialize", never, "INI-4", "", ""},
		{"session/new", never, "INI-16", "", ""},
	} {
		bubble(t, c.slow+"/"+c.takes.String(), func(t *testing.T) {
			answer := func(method, text string) func(json.RawMessage) string {
				return func(json.RawMessage) string {
					if method == c.slow {
						time.Sleep(c.takes)
					}
					return `"result":` + text
				}
			}
			failed, r := failures(t, raw(t, map[string]func(json.RawMessage) string{
				"initialize": answer("initialize", terse), "session/new": answer("session/new", `{"sessionId":"s"}`),
				"session/prompt": answer("session/prompt", `{"stopReason":"end_turn"}`),
			}), "start", "content")
			if got := strings.Join(failed, " "); got != c.failed {
				t.Errorf("failed: %q, want %q", got, c.failed)
			}
			if got := strings.Join(r.Summary.TooSlow, " "); got != c.tooSlow {
				t.Errorf("too slow: %q, want %q", got, c.tooSlow)
			}
			late := strings.Contains(r.Scenarios[1].Skipped, "too slow")
			if late != (c.rest != "") || !strings.Contains(r.Scenarios[1].Skipped, c.rest) || late == (len(r.Summary.DidNotRun) == 0) {
				t.Errorf("the next scenario: %q, did not run: %q", r.Scenarios[1].Skipped, r.Summary.DidNotRun)
			}
			time.Sleep(2 * never) // until the agent has ended
		})
	}
}

// TestPlayedAgain: an answer that is late once because the machine is busy, but in time when the scenario is played
// again alone, does not count against the agent. A certain mistake does. A scenario is played again only once.
func TestPlayedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var prompts atomic.Int32
		failed, r := failures(t, raw(t, map[string]func(json.RawMessage) string{
			"initialize": result(`{"protocolVersion":1,"agentCapabilities":{}}`), "session/new": result(`{"sessionId":"s"}`),
			"session/prompt": func(json.RawMessage) string {
				if prompts.Add(1) == 1 {
					time.Sleep(8 * time.Second)
				}
				return `"result":{"stopReason":"end_turn"}`
			},
		}), "start")
		if len(failed)+len(r.Summary.TooSlow)+len(r.Summary.DidNotRun) > 0 || prompts.Load() != 2 {
			t.Errorf("fails: %q, too slow: %q, did not run: %q, %d prompts", failed, r.Summary.TooSlow, r.Summary.DidNotRun, prompts.Load())
		}
		if got := strings.Join(r.Summary.Should, " "); got != "INI-5" {
			t.Errorf("recommendations that are not followed: %q", got)
		}
		time.Sleep(time.Minute) // until the agent has ended
	})
}

// TestInterrupted: in an interrupted probe, scenarios that were not played did not run, and do not fail.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := 0
		r, err := probe.Agent(ctx, probe.InMemory(connect(t)), &probe.Options{
			Scratch: t.TempDir(), Answer: 5 * time.Second, Quiet: 50 * time.Millisecond, Rung: 100 * time.Millisecond,
			Progress: func(int, int, *probe.Outcome) {
				if done++; done == 5 {
					cancel()
				}
			},
		})
		if !errors.Is(err, context.Canceled) || len(r.Summary.NeverRan) > 0 || len(r.Summary.DidNotRun) < 5 {
			t.Errorf("%v, never ran: %q, did not run: %q", err, r.Summary.NeverRan, r.Summary.DidNotRun)
		}
		if !r.Conforms {
			t.Errorf("failed: %q", r.Summary.Must)
		}
	})
}

// TestHomes: each scenario has its own home, which is empty at first and is shared by the scenario's launches.
func TestHomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := probe.InMemory(connect(t))
		launches := map[string]int{}
		_, err := probe.Agent(t.Context(), func(ctx context.Context, dir string) (*probe.Target, error) {
			home := probe.Home(dir)
			left, err := os.ReadDir(home)
			if err != nil || len(left) != launches[home] || strings.HasPrefix(home, dir) {
				t.Errorf("%s, for %s: %v %v", home, dir, left, err)
			}
			launches[home]++
			if err := os.WriteFile(filepath.Join(home, fmt.Sprint(launches[home])), nil, 0o600); err != nil {
				t.Error(err)
			}
			return inner(ctx, dir)
		}, &probe.Options{
			Scratch: t.TempDir(), Only: []string{"start", "sessions", "version-of-wrong-type"}, Answer: 5 * time.Second, Quiet: 50 * time.Millisecond,
		})
		again := 0
		for _, n := range launches {
			if n > 1 {
				again++
			}
		}
		if err != nil || len(launches) != 3 || again != 1 {
			t.Errorf("%v, homes and their launches: %v", err, launches)
		}
	})
}

// TestCommandsArrive: if the agent announces its commands late, prompts that name a command wait for them.
func TestCommandsArrive(t *testing.T) {
	for name, options := range map[string]probe.Options{
		"offered": {Only: []string{"start", "tools"}},
		"chosen":  {Only: []string{"tools"}, Prompts: map[string]string{"read": "/probe-read", "edit": "/probe-edit", "terminal": "/probe-terminal"}},
	} {
		bubble(t, name, func(t *testing.T) {
			var mu sync.Mutex
			var prompts []string
			told := map[acp.SessionID]bool{}
			options.Scratch, options.Answer, options.Quiet = t.TempDir(), 20*time.Second, 5*time.Second
			_, err := probe.Agent(t.Context(), probe.InMemory(func() rpc.Transport {
				client, agent := rpc.Pipe()
				go acp.ServeAgent(t.Context(), agent, acp.AgentHandlers{
					NewSession: func(_ context.Context, conn *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
						id := acp.SessionID(rand.Text())
						go func() {
							time.Sleep(2 * time.Second)
							mu.Lock()
							told[id] = true
							mu.Unlock()
							conn.Session(id).Update(t.Context(), acp.CommandsUpdate([]acp.AvailableCommand{
								{Name: "probe-read", Description: "x"}, {Name: "probe-edit", Description: "x"}, {Name: "probe-terminal", Description: "x"},
							}...))
						}()
						return &acp.NewSessionResponse{SessionID: id}, nil
					},
					Prompt: func(_ context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
						mu.Lock()
						defer mu.Unlock()
						text := req.Prompt[0].Text()
						if prompts = append(prompts, text); strings.HasPrefix(text, "/") && !told[session.ID()] {
							t.Errorf("%s comes before the commands", text)
						}
						return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
					},
				}, nil)
				return client
			}), &options)
			got := strings.Join(prompts[max(0, len(prompts)-3):], " ")
			if err != nil || got != "/probe-read /probe-edit /probe-terminal" {
				t.Errorf("%v, the prompts are %q", err, prompts)
			}
			time.Sleep(time.Minute) // until the agent has ended
		})
	}
}

// TestLateCancelRequest: an agent that answers $/cancel_request only after session/cancel has followed may still answer -32800.
func TestLateCancelRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, r := failures(t, scripted(t, func() func(*line, func(string) bool) {
			prompt := "" // the id of the long one
			return func(m *line, send func(string) bool) {
				switch {
				case m.method == "initialize":
					send(`"id":` + m.id + `,"result":` + terse)
				case m.method == "session/new":
					send(`"id":` + m.id + `,"result":{"sessionId":"s"}`)
				case m.method == "session/prompt" && prompt == "":
					prompt = m.id
					send(`"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Once"}}}`)
				case m.method == "session/prompt":
					send(`"id":` + m.id + `,"result":{"stopReason":"end_turn"}`)
				case m.method == "session/cancel":
					send(`"id":` + prompt + `,"error":{"code":-32800,"message":"Request cancelled"}`)
				}
			}
		}), "cancel-request")
		if len(failed) > 0 {
			t.Errorf("these fail: %v", failed)
		}
		if row := r.Rows[slices.IndexFunc(r.Rows, func(row probe.Row) bool { return row.ID == "CAN-3" })]; row.Verdict != probe.Pass {
			t.Errorf("CAN-3: %v", row.Verdict)
		}
	})
}

// TestStderrThatIsNoUTF8: an agent's log must be UTF-8; it does not matter that the beginning of a long log is cut.
func TestStderrThatIsNoUTF8(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want probe.Verdict
	}{
		"nothing": {"", probe.NotExercised}, "UTF-8": {"café\n", probe.Pass}, "cut": {strings.Repeat("é€", 4000), probe.Pass}, "Latin-1": {"caf\xe9\n", probe.Warn},
	} {
		bubble(t, name, func(t *testing.T) {
			launch := probe.InMemory(connect(t))
			r := must.Get(probe.Agent(t.Context(), func(ctx context.Context, dir string) (*probe.Target, error) {
				target, err := launch(ctx, dir)
				if err != nil {
					return nil, err
				}
				target.Stderr = &probe.Stderr{}
				_, err = target.Stderr.Write([]byte(c.text))
				return target, err
			}, &probe.Options{Scratch: t.TempDir(), Only: []string{"start"}, Answer: 5 * time.Second, Quiet: 50 * time.Millisecond}))(t)
			for _, row := range r.Rows {
				if row.ID == "TRN-7" && row.Verdict != c.want {
					t.Errorf("%s, %v", row.Verdict, row.Failures)
				}
			}
		})
	}
}

// TestWhyNot: a requirement that was not exercised has a reason from the scenario that would have exercised it.
func TestWhyNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := failures(t, raw(t, map[string]func(json.RawMessage) string{
			"initialize":     result(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"agentInfo":{"name":"raw","version":"1"}}`),
			"session/new":    result(`{"sessionId":"s"}`),
			"session/prompt": result(`{"stopReason":"end_turn"}`),
			"session/load":   func(json.RawMessage) string { return `"error":{"code":-32603,"message":"No"}` },
		}), "start", "additional-directories", "load", "modes")
		reasons := map[string]string{}
		for _, row := range r.Rows {
			reasons[row.ID] = row.Reason
		}
		for id, want := range map[string]string{
			"SES-7": "the scenario load did not reach it: see SES-6", "ADD-4": "the scenario load did not reach it: see SES-6",
		} {
			if reasons[id] != want {
				t.Errorf("%s: %q, want %q", id, reasons[id], want)
			}
		}
	})
}

// TestVersion2: an agent may answer version 2 with version 2 or 1, and the probe then uses that version.
func TestVersion2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for answer, want := range map[string]struct {
			failed   string
			version2 bool
		}{
			terse: {"", false},
			`{"protocolVersion":2,"capabilities":{},"info":{"name":"raw","version":"1"}}`: {"", true},
			`{"protocolVersion":3,"capabilities":{},"info":{"name":"raw","version":"1"}}`: {"INI-9 ADD-7", false},
			`{"protocolVersion":2,"agentCapabilities":{}}`:                                {"INI-6 EXT-2", false},
			``: {"ADD-7", false},
		} {
			initialize := result(answer)
			if answer == "" { // it repeats any version
				initialize = func(params json.RawMessage) string {
					var p struct{ ProtocolVersion json.RawMessage }
					if err := json.Unmarshal(params, &p); err != nil {
						t.Error(err)
					}
					return `"result":{"protocolVersion":` + string(p.ProtocolVersion) + `,"capabilities":{},"info":{"name":"raw","version":"1"}}`
				}
			}
			failed, r := failures(t, raw(t, map[string]func(json.RawMessage) string{
				"initialize": initialize, "session/new": result(`{"sessionId":"s"}`),
			}), "version-2")
			if got := strings.Join(failed, " "); got != want.failed || r.Version2 != want.version2 {
				t.Errorf("%s: failed: %q, speaks version 2: %v", answer, got, r.Version2)
			}
		}
	})
}

// TestReportAgrees: a SHOULD that is broken in a way that breaks a MUST counts as one in all parts of the report.
func TestReportAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		launch := mutate(probe.InMemory(connect(t)), dead(func(m *line) bool { return m.text == "[]" }))
		r := must.Get(probe.Agent(t.Context(), launch, &probe.Options{Scratch: t.TempDir(), Only: []string{"start", "batch"}, Answer: 5 * time.Second, Runs: 2}))(t)
		row := r.Rows[slices.IndexFunc(r.Rows, func(row probe.Row) bool { return row.ID == "ERR-7" })]
		var met, exercised int
		must.Get(fmt.Sscanf(r.Badge, "ACP probe: %d of %d MUSTs", &met, &exercised))(t)
		if row.Verdict != probe.Fail || row.Class != probe.Mandatory || exercised-met != len(r.Summary.Must)+len(r.Summary.Broken) || r.Conforms {
			t.Errorf("%s %s; %q, but %q fail", row.Verdict, row.Class, r.Badge, r.Summary.Must)
		}
	})
}

// TestMildAgrees: a MUST that is broken only in a way that breaks no MUST counts as a SHOULD everywhere in the report.
func TestMildAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := must.Get(probe.Agent(t.Context(), mutate(probe.InMemory(connect(t)), lateChunk), &probe.Options{Scratch: t.TempDir(), Only: []string{"start"}, Answer: 5 * time.Second}))(t)
		var text strings.Builder
		must.Do(t, report.WriteProbe(&text, r, report.Text, nil))
		row := r.Rows[slices.IndexFunc(r.Rows, func(row probe.Row) bool { return row.ID == "PRM-13" })]
		if row.Verdict != probe.Warn || row.Class != probe.Recommended || !slices.Equal(r.Summary.Should, []string{"PRM-13"}) ||
			!strings.Contains(r.Badge, "1 SHOULD") || !strings.Contains(text.String(), "WARN  PRM-13  SHOULD") || regexp.MustCompile(`PRM-13 +MUST`).MatchString(text.String()) {
			t.Errorf("%s %s; %q, %q:\n%s", row.Verdict, row.Class, r.Badge, r.Summary.Should, text.String())
		}
	})
}

// TestVersionNewer: a client of a later version describes itself in the members of both versions, so that an agent that
// speaks and chooses version 2 finds the required members there.
func TestVersionNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed, _ := failures(t, raw(t, map[string]func(json.RawMessage) string{"initialize": func(params json.RawMessage) string {
			line := []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + string(params) + `}`)
			for _, schema := range []*conformance.Schema{conformance.V1(), conformance.V2()} {
				for _, found := range conformance.NewValidator(schema).Message(conformance.ToAgent, line) {
					if found.Rule != "EXT-2" { // the other version's members are unknown
						t.Errorf("%s: %v", params, found)
					}
				}
			}
			return `"result":{"protocolVersion":2,"capabilities":{},"info":{"name":"two","version":"1"}}`
		}}), "version-newer")
		if len(failed) > 0 {
			t.Errorf("failed: %q", failed)
		}
	})
}

// TestOnlyVersion2: an agent that speaks only version 2 breaks no requirement of version 1, and the report explains why
// nothing was played, however the agent refuses version 1.
func TestOnlyVersion2(t *testing.T) {
	const two = `"result":{"protocolVersion":2,"capabilities":{},"info":{"name":"raw","version":"1"}}`
	for name, refusal := range map[string]string{"error": `"error":{"code":-32022,"message":"Unsupported protocol version"}`, "version 2": two} {
		bubble(t, name, func(t *testing.T) {
			r := must.Get(probe.Agent(t.Context(), probe.InMemory(raw(t, map[string]func(json.RawMessage) string{
				"initialize": func(params json.RawMessage) string {
					if strings.Contains(string(params), `"protocolVersion":1`) {
						return refusal
					}
					return two
				},
			})), &probe.Options{Scratch: t.TempDir(), Answer: 5 * time.Second, Quiet: 50 * time.Millisecond}))(t)
			if !r.OnlyVersion2 || !r.Conforms || len(r.Summary.Should) > 0 {
				t.Errorf("%v, fails: %v, warns: %v", r.OnlyVersion2, r.Summary.Must, r.Summary.Should)
			}
			for _, out := range r.Scenarios {
				if alone := "the agent does not speak version 1"; out.Skipped != alone && out.Name != "version-2" && out.Name != "version-newer" {
					t.Errorf("%s: %q", out.Name, out.Skipped)
				}
			}
		})
	}
}

// TestNeverRan: requirements that fail because they never ran are distinguished from broken ones.
func TestNeverRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := must.Get(probe.Agent(t.Context(), probe.InMemory(raw(t, nil)), &probe.Options{Scratch: t.TempDir(), Answer: time.Second, Rung: 100 * time.Millisecond}))(t)
		s := r.Summary
		broken := slices.DeleteFunc(slices.Clone(s.Must), func(id string) bool { return slices.Contains(s.NeverRan, id) })
		if strings.Join(broken, " ") != "INI-4" || len(s.NeverRan) < 20 || len(s.NeverRan) != len(s.Must)-1 || r.Conforms {
			t.Errorf("broken: %q, never ran: %q", broken, s.NeverRan)
		}
	})
}

// TestOneOfManyWays: a requirement for one of the many demands of the schema is not broken by violations of the others.
func TestOneOfManyWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := raw(t, map[string]func(json.RawMessage) string{
			"initialize":     result(strings.TrimSuffix(terse, "}") + `,"authMethods":[],"future":1}`),
			"session/new":    result(`{"sessionId":"s"}`),
			"session/prompt": result(`{"stopReason":"end_turn"}`),
		})
		failed, r := failures(t, connect, "start")
		if got := strings.Join(failed, " "); got != "EXT-2" {
			t.Errorf("failed: %q", got)
		}
		for _, row := range r.Rows {
			if (row.ID == "OVW-5" || row.ID == "AUT-5") && (row.Verdict != probe.Pass || row.Reason != "see EXT-2") {
				t.Errorf("%s: %s, %s", row.ID, row.Verdict, row.Reason)
			}
		}
	})
}
