package probe_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// dualAgent returns a launch function for the example that speaks both versions.
func dualAgent(t *testing.T) probe.Launch {
	t.Helper()
	binary := buildtest.Program(t, "../../examples/dual/agent")
	return launchCommand(func(dir string) *exec.Cmd { return exec.Command(binary, "-state", probe.Home(dir)) })
}

// TestDraft: there are no findings for correct agents of version 2: the example, and one on the TypeScript SDK.
func TestDraft(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	for name, launch := range map[string]func(t *testing.T) probe.Launch{
		"example":    dualAgent,
		"TypeScript": func(t *testing.T) probe.Launch { return nodeAgent(t, filepath.Join(typeScript.Dir(t), "v2-agent.mjs")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := probe.Agent(t.Context(), launch(t), &probe.Options{
				Protocol: 2, Scratch: t.TempDir(), Answer: 20 * time.Second, Quiet: 300 * time.Millisecond, Rung: 20 * time.Second, Jobs: 8,
			})
			if err != nil {
				t.Fatal(err)
			}
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
	{"sessions", "SES-2", editing("session/new", func(result map[string]json.RawMessage) { result["sessionId"] = json.RawMessage(`"only"`) })},
	{"tools", "V2-3", fault{toClient: func(_ *state, m *line) []string {
		if strings.Contains(m.text, `"stopReason":"end_turn"`) {
			return []string{m.text, strings.Replace(m.text, "end_turn", "max_tokens", 1)}
		}
		return []string{m.text}
	}}},
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
	{"resume", "V2-10", fault{toClient: func(s *state, m *line) []string {
		if strings.Contains(m.text, `"state_update"`) && s.all[len(s.all)-1].method == "session/resume" {
			return nil
		}
		return []string{m.text}
	}}},
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

// TestDraftMutants is TestMutants for version 2.
func TestDraftMutants(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	launch := dualAgent(t)
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
			r, err := probe.Agent(t.Context(), probe.InMemory(raw(t, map[string]func(json.RawMessage) string{
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
			})), &probe.Options{Protocol: 2, Only: []string{"options"}, Scratch: t.TempDir(), Answer: 5 * time.Second, Quiet: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(findings(t, r), " "); got != c.failed {
				t.Errorf("found %q, want %q", got, c.failed)
			}
			time.Sleep(time.Minute) // until the agent has ended
		})
	}
}

// TestDraftLogin: an agent that requires a login gets it with the method of version 2.
func TestDraftLogin(t *testing.T) {
	bubble(t, "login", func(t *testing.T) {
		methods := map[string]func(json.RawMessage) string{
			"initialize": result(`{"protocolVersion":2,"capabilities":{"session":{}},"info":{"name":"raw","version":"1"},"authMethods":[{"type":"agent","methodId":"key","name":"Key"}]}`),
		}
		connect := func() rpc.Transport {
			loggedIn := false
			methods := maps.Clone(methods)
			methods["auth/login"] = func(params json.RawMessage) string {
				loggedIn = string(params) == `{"methodId":"key"}`
				return `"result":{}`
			}
			methods["session/new"] = func(json.RawMessage) string {
				if !loggedIn {
					return `"error":{"code":-32000,"message":"Authentication required"}`
				}
				return `"result":{"sessionId":"s"}`
			}
			return raw(t, methods)()
		}
		r, err := probe.Agent(t.Context(), probe.InMemory(connect), &probe.Options{
			Protocol: 2, Auth: "key", Only: []string{"unknown-methods"}, Scratch: t.TempDir(), Answer: 5 * time.Second, Quiet: 50 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		passed := slices.ContainsFunc(r.Rows, func(row probe.Row) bool { return row.ID == "AUT-9" && row.Verdict == probe.Pass })
		if found := findings(t, r); len(found) > 0 || !passed || r.Scenarios[0].Skipped != "" {
			t.Errorf("found %q, logged in: %v, skipped %q", found, passed, r.Scenarios[0].Skipped)
		}
		time.Sleep(time.Minute) // until the agent has ended
	})
}
