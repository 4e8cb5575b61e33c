package probe_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestDraft: there are no findings for correct agents of version 2: the example, and one on the TypeScript SDK.
func TestDraft(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	for name, launch := range map[string]func(t *testing.T) probe.Launch{
		"example":    exampleAgent,
		"TypeScript": func(t *testing.T) probe.Launch { return nodeAgent(t, filepath.Join(typeScript.Dir(t), "v2-agent.mjs")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := must.Get(probe.Agent(t.Context(), launch(t), &probe.Options{
				Protocol: 2, Scratch: t.TempDir(), Answer: 20 * time.Second, Quiet: 300 * time.Millisecond, Rung: 20 * time.Second, Jobs: 8,
			}))(t)
			t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
			if found := findings(t, r); len(found) > 0 {
				t.Errorf("found %q", strings.Join(found, " "))
			}
		})
	}
}

// draftMutants are the example with one fault in version 2.
var draftMutants = []mutant{
	{"start", "V2-2", dropping(`"state":"idle"`)},
	{"start", "V2-1", dropping(`"sessionUpdate":"user_message"`)},
	{"unknown-methods", "EXT-5", recoding("_acp.probe/unknown", "-32601", "-32603")},
	{"sessions", "SES-2", fault{toClient: func(s *state, m *line) []string {
		if strings.Contains(m.text, "available_commands_update") { // it has the session's real id
			return nil
		}
		return editing("session/new", func(result map[string]json.RawMessage) { result["sessionId"] = json.RawMessage(`"only"`) }).toClient(s, m)
	}}},
	{"tools", "V2-3", changing(has(`"stopReason":"end_turn"`), func(_ *state, m *line) []string {
		return []string{m.text, strings.Replace(m.text, "end_turn", "max_tokens", 1)}
	})},
	{"permission", "V2-18", rewriting(`"optionId":"[^"]*"`, `"optionId":"same"`)},
	{"permission-rejected", "ADD-14", deletesAt(`"outcome":"selected"`)},
	{"permission-dismissed", "ADD-14", deletesAt(`"outcome":"cancelled"`)},
	{"permission-unknown", "V2-2", dropping(`"state":"idle"`)},
	{"cancel-at-once", "V2-22", endsLate},
	{"cancel-in-the-stream", "V2-22", endsLate},
	{"cancel-in-the-stream", "V2-22", replacing(`"stopReason":"cancelled"`, `"stopReason":"end_turn"`)},
	{"cancel-in-a-permission", "V2-22", endsLate},
	{"list", "LST-8", refusing("session/list", "-32602", params("never used"))},
	{"list", "LST-8 ADD-16", fault{toAgent: func(_ *state, m *line) ([]string, []string) {
		if m.method == "session/list" && params("never used")(nil, m) {
			return []string{`{"jsonrpc":"2.0","id":` + m.id + `,"method":"session/list","params":{}}`}, nil
		}
		return []string{m.text}, nil
	}}},
	{"resume", "V2-10", changing(all(has(`"state_update"`), func(s *state, _ *line) bool {
		return s.all[len(s.all)-1].method == "session/resume"
	}), nothing)},
	{"resume", "ERR-4 ERR-5 V2-10", refusing("session/resume", "-32002", params(""))},
	{"close", "V2-5", after("session/close", func(_ *state, m *line) []string {
		return []string{`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + sessionOf(m) +
			`","update":{"sessionUpdate":"agent_message_chunk","messageId":"late","content":{"type":"text","text":"late"}}}}`}
	})},
	{"close-at-work", "V2-4", dropping(`"state":"idle"`)},
	{"close-at-work", "V2-4", replacing(`"stopReason":"cancelled"`, `"stopReason":"end_turn"`)},
	{"delete", "DEL-5", refusing("session/delete", "-32602", params("no-such-session"))},
}

// endsLate reports the end of cancelled work as another end, and only after the answer to a later request.
var endsLate = fault{toClient: func(s *state, m *line) []string {
	if strings.Contains(m.text, `"stopReason":"cancelled"`) {
		ended := strings.Replace(m.text, "cancelled", "end_turn", 1)
		if s.count["alive"] > 0 {
			return []string{ended}
		}
		s.asked["ended"] = &line{text: ended}
		return nil
	}
	if m.answer && m.method == "_acp.probe/alive" {
		s.nth("alive")
		if ended := s.asked["ended"]; ended != nil {
			delete(s.asked, "ended")
			return []string{m.text, ended.text}
		}
	}
	return []string{m.text}
}}

// plainDraft is an agent of version 2 without any library, which advertises what the other agents lack: contents of
// prompts, additional directories, options, and logins. A session needs the login "key".
func plainDraft(t *testing.T) func() rpc.Transport {
	const options = `"configOptions":[{"configId":"model","name":"Model","type":"select","currentValue":"large","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]},` +
		`{"configId":"brief","name":"Brief","type":"boolean","currentValue":false}]`
	return scripted(t, func() func(*line, func(string) bool) {
		type session struct {
			cwd  string
			stop chan struct{} // of work that is going on
		}
		var mu sync.Mutex
		sessions, open, loggedIn := map[string]*session{}, map[string]bool{}, false
		return func(m *line, send func(string) bool) {
			mu.Lock()
			defer mu.Unlock()
			id := sessionOf(m)
			s := sessions[id]
			answer := func(result string) { send(`"id":` + m.id + `,"result":` + result) }
			refuse := func(code int) {
				send(fmt.Sprintf(`"id":%s,"error":{"code":%d,"message":"Refused","data":{"sessionId":%q}}`, m.id, code, id))
			}
			update := func(update string) bool {
				return send(`"method":"session/update","params":{"sessionId":"` + id + `","update":{"sessionUpdate":` + update + `}}`)
			}
			state := func(state string) bool { return update(`"state_update","state":` + state) }
			var p struct {
				Cwd, MethodID, Cursor, ConfigID, Type string
				Value                                 any
				AdditionalDirectories                 []string
				ReplayFrom                            struct{ Type string }
				Prompt                                []struct{ Text string }
				Capabilities                          struct{ Auth struct{ Terminal any } }
			}
			if len(m.params) > 0 && json.Unmarshal(m.params, &p) != nil {
				refuse(-32602)
				return
			}
			switch {
			case m.text == "[]":
				send(`"id":null,"error":{"code":-32600,"message":"Empty batch"}`)
			case m.method == "session/cancel" && s != nil && s.stop != nil:
				close(s.stop)
				s.stop = nil
				state(`"idle","stopReason":"cancelled"`)
			case !m.request:
			case m.method == "initialize":
				methods := `{"type":"agent","methodId":"key","name":"Key"}`
				if p.Capabilities.Auth.Terminal != nil {
					methods += `,{"type":"terminal","methodId":"shell","name":"Shell"}`
				}
				answer(`{"protocolVersion":2,"capabilities":{"session":{"additionalDirectories":{},"prompt":{"image":{},"audio":{},"embeddedContext":{}}}},"info":{"name":"plain","version":"1"},"authMethods":[` + methods + `]}`)
			case strings.HasPrefix(m.method, "auth/"):
				if m.method == "auth/login" && p.MethodID != "key" {
					refuse(-32602)
					return
				}
				loggedIn = m.method == "auth/login"
				answer(`{}`)
			case !loggedIn && strings.HasPrefix(m.method, "session/"):
				refuse(-32000)
			case m.method == "session/new" || m.method == "session/resume":
				if !filepath.IsAbs(p.Cwd) || slices.Contains(p.AdditionalDirectories, "relative") || !slices.Contains([]string{"", "start"}, p.ReplayFrom.Type) {
					refuse(-32602)
					return
				}
				if m.method == "session/new" {
					id = rand.Text()
					sessions[id], open[id] = &session{cwd: p.Cwd}, true
					answer(`{"sessionId":"` + id + `",` + options + `}`)
				} else if s == nil {
					refuse(-32002)
				} else {
					open[id] = true
					state(`"idle"`)
					answer(`{` + options + `}`)
				}
			case m.method == "session/list" && p.Cursor != "":
				refuse(-32602)
			case m.method == "session/list":
				var list []string
				for id, s := range sessions {
					if p.Cwd == "" || p.Cwd == s.cwd {
						list = append(list, `{"sessionId":"`+id+`","cwd":"`+s.cwd+`"}`)
					}
				}
				slices.Sort(list)
				answer(`{"sessions":[` + strings.Join(list, ",") + `]}`)
			case strings.HasPrefix(m.method, "session/") && !open[id]:
				refuse(-32002)
			case m.method == "session/close":
				if s.stop != nil {
					close(s.stop)
					s.stop = nil
					state(`"idle","stopReason":"cancelled"`)
				}
				delete(open, id)
				answer(`{}`)
			case m.method == "session/set_config_option":
				value := fmt.Sprint(p.Value)
				text := strings.Replace(options, `"currentValue":"large"`, `"currentValue":"`+value+`"`, 1)
				switch {
				case p.ConfigID == "model" && p.Type == "id" && (value == "large" || value == "small"):
				case p.ConfigID == "brief" && p.Type == "boolean":
					text = strings.Replace(options, "false", value, 1)
				default:
					refuse(-32602)
					return
				}
				answer(`{` + text + `}`)
			case m.method == "session/prompt":
				user := rand.Text()
				answer(`{"messageId":"` + user + `"}`)
				update(`"user_message","messageId":"` + user + `","content":[]`)
				state(`"running"`)
				words := func() bool {
					return update(`"agent_message_chunk","messageId":"a` + user + `","content":{"type":"text","text":"On and on. "}`)
				}
				words()
				switch prompt := p.Prompt[0].Text; {
				case prompt == probe.DefaultPrompts["mode"]:
					update(`"config_option_update",` + options)
				case prompt == probe.DefaultPrompts["long"]:
					stop := make(chan struct{})
					s.stop = stop
					go func() { // ends with the work or the connection
						for {
							time.Sleep(100 * time.Millisecond)
							mu.Lock()
							select {
							case <-stop:
								mu.Unlock()
								return
							default:
							}
							ok := words()
							if mu.Unlock(); !ok {
								return
							}
						}
					}()
					return
				}
				state(`"idle","stopReason":"end_turn"`)
			default:
				refuse(-32601)
			}
		}
	})
}

// plainMutants are plainDraft with one fault.
var plainMutants = []mutant{
	{"version-newer", "ADD-7", editing("initialize", with("protocolVersion", "65535"))},
	{"version-newer", "INI-9", refusing("initialize", "-32602", params("65535"))},
	{"batch", "ERR-7", rewriting(`^.*"id":null.*$`, `{"jsonrpc":"2.0","method":"_mutant/note"}`)},
	{"batch", "ERR-7", dead(func(m *line) bool { return m.text == "[]" })},
	{"batch", "ERR-7", rewriting(`"code":-32600`, `"code":-32700`)},
	{"capabilities-none", "INI-19", editing("initialize", with("authMethods", `[{"type":"agent","methodId":"key","name":"Key"},{"type":"terminal","methodId":"shell","name":"Shell"}]`))},
	{"capabilities-none", "ELI-5", asking(request("elicitation/create", `"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}`))},
	{"authentication", "AUT-8", refusing("auth/logout", "-32603", always)},
	{"authentication", "AUT-8", silent("auth/logout", always)},
	{"authentication", "AUT-10", granting("auth/logout", `{}`, always)},
	{"authentication", "AUT-9 ERR-4", granting("auth/login", `{}`, params("acp-probe"))},
	{"authentication", "AUT-9 ERR-4", granting("auth/login", `{}`, params("shell"))},
	{"content-advertised", "ADD-3", refusing("session/prompt", "-32602", params("image/png"))},
	{"content-advertised", "ADD-3", refusing("session/prompt", "-32602", params("audio/wav"))},
	{"content-advertised", "ADD-3", refusing("session/prompt", "-32602", params("text/plain"))},
	{"content-advertised", "V2-2", changing(all(has(`"idle"`), afterA("image/png")), nothing)},
	{"additional-directories", "ADD-3", refusing("session/new", "-32602", params("/other"))},
	{"additional-directories", "ADD-3", refusing("session/resume", "-32602", params("/other"))},
	{"additional-directories", "ERR-4", granting("session/new", `{"sessionId":"x"}`, params(`"relative"`))},
	{"other-work", "CFG-18", changing(has("config_option_update"), func(_ *state, m *line) []string {
		return []string{m.text[:strings.Index(m.text, `,{"configId":"brief"`)] + `]}}}`}
	})},
	{"cancel-with-meta", "V2-22", withheld(all(has(`"session/cancel"`), has("_meta")))},
	{"cancel-in-the-stream", "V2-22", withheld(has(`"session/cancel"`))},
	{"start", "V2-1", editing("session/prompt", with("messageId", `""`))},
	{"start", "V2-2", dropping(`"running"`)},
	{"start", "V2-2", rewriting(`,"stopReason":"[^"]*"`, ``)},
}

// TestPlainDraft: there are no findings for plainDraft, and its faults are found.
func TestPlainDraft(t *testing.T) {
	play := func(t *testing.T, o *probe.Options, f fault) (*probe.Report, error) {
		o.Protocol, o.Auth = 2, "key"
		defer time.Sleep(time.Minute) // until the agents have ended
		return probe.Agent(t.Context(), mutate(probe.InMemory(plainDraft(t)), f), o)
	}
	bubble(t, "right", func(t *testing.T) {
		r := must.Get(play(t, &probe.Options{Scratch: t.TempDir(), Jobs: 4}, fault{}))(t)
		if found := findings(t, r); len(found) > 0 {
			t.Errorf("found %q", found)
		}
		t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
	})
	for _, m := range plainMutants {
		bubble(t, m.scenario+"/"+m.rules, func(t *testing.T) {
			caught(t, m.rules, func(o *probe.Options) (*probe.Report, error) {
				o.Only = []string{m.scenario}
				return play(t, o, m.fault)
			})
		})
	}
	t.Logf("%d faults", len(plainMutants))
}

// TestDraftMutants is TestMutants for version 2.
func TestDraftMutants(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	launch := exampleAgent(t)
	for _, m := range draftMutants {
		t.Run(m.scenario+"/"+m.rules, func(t *testing.T) {
			t.Parallel()
			caught(t, m.rules, func(o *probe.Options) (*probe.Report, error) {
				o.Only, o.Protocol = []string{m.scenario}, 2
				return probe.Agent(t.Context(), mutate(launch, m.fault), o)
			})
		})
	}
}

// TestDraftOptions: in version 2 as well, an answer has all options, and an agent that does not speak it fails nothing.
func TestDraftOptions(t *testing.T) {
	const (
		model = `{"configId":"model","name":"Model","type":"select","currentValue":"%s","options":[{"value":"large","name":"Large"},{"value":"small","name":"Small"}]}`
		brief = `{"configId":"brief","name":"Brief","type":"boolean","currentValue":false}`
		two   = `{"protocolVersion":2,"capabilities":{"session":{}},"info":{"name":"raw","version":"1"}}`
	)
	for name, c := range map[string]struct{ initialize, rest, failed string }{
		"right": {two, "," + brief, ""}, "wrong": {two, "", "CFG-17"}, "version 1": {terse, "", ""},
	} {
		bubble(t, name, func(t *testing.T) {
			r := must.Get(probe.Agent(t.Context(), probe.InMemory(raw(t, map[string]func(json.RawMessage) string{
				"initialize":  result(c.initialize),
				"session/new": result(`{"sessionId":"s","configOptions":[` + fmt.Sprintf(model, "large") + `,` + brief + `]}`),
				"session/set_config_option": func(params json.RawMessage) string {
					var p struct {
						ConfigID, Type string
						Value          any
					}
					if err := json.Unmarshal(params, &p); err != nil {
						t.Error(err)
					}
					switch value, _ := p.Value.(string); {
					case p.ConfigID == "model" && p.Type == "id" && (value == "large" || value == "small"):
						return `"result":{"configOptions":[` + fmt.Sprintf(model, value) + c.rest + `]}`
					case p.ConfigID == "brief" && p.Type == "boolean":
						return `"result":{"configOptions":[` + fmt.Sprintf(model, "large") + `,` + strings.Replace(brief, "false", fmt.Sprint(p.Value), 1) + `]}`
					}
					return `"error":{"code":-32602,"message":"Invalid params"}`
				},
			})), &probe.Options{Protocol: 2, Only: []string{"options"}, Scratch: t.TempDir(), Answer: 5 * time.Second, Quiet: 50 * time.Millisecond}))(t)
			if got := strings.Join(findings(t, r), " "); got != c.failed {
				t.Errorf("found %q, want %q", got, c.failed)
			}
			time.Sleep(time.Minute) // until the agent has ended
		})
	}
}
