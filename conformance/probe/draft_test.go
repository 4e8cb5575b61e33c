package probe_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestDraft: there are no findings for correct agents of version 2: the example, and one on the TypeScript SDK.
func TestDraft(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	node := func(t *testing.T) probe.Launch {
		return nodeAgent(t, filepath.Join(typeScript.Dir(t), "v2-agent.mjs"), "--login")
	}
	for name, agent := range map[string]struct {
		launch func(t *testing.T) probe.Launch
		auth   string
	}{"example": {exampleAgent, ""}, "TypeScript": {node, "key"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := must.Get(probe.Agent(t.Context(), agent.launch(t), &probe.Options{
				Protocol: 2, Auth: agent.auth, Scratch: t.TempDir(), Answer: 20 * time.Second, Quiet: 300 * time.Millisecond, Rung: 20 * time.Second, Jobs: 8,
			}))(t)
			t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
			if found := findings(t, r); len(found) > 0 {
				t.Errorf("found %q", strings.Join(found, " "))
			}
		})
	}
}

// draftMutants are exampleDraft with one fault.
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
	{"version-newer", "ADD-7", granting("initialize", `{"protocolVersion":65535,"capabilities":{},"info":{"name":"mutant","version":"1"}}`, params("65535"))},
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
	{"authentication", "AUT-9 ERR-4", granting("auth/login", `{}`, params("example-terminal"))},
	{"content-advertised", "ADD-3", refusing("session/prompt", "-32602", params("image/png"))},
	{"content-advertised", "ADD-3", refusing("session/prompt", "-32602", params("audio/wav"))},
	{"content-advertised", "ADD-3", refusing("session/prompt", "-32602", params("text/plain"))},
	{"content-advertised", "V2-2", changing(all(has(`"idle"`), afterA("image/png")), nothing)},
	{"additional-directories", "ADD-3", refusing("session/new", "-32602", params("/other"))},
	{"additional-directories", "ADD-3", refusing("session/resume", "-32602", params("/other"))},
	{"additional-directories", "ERR-4", granting("session/new", `{"sessionId":"x"}`, params(`"relative"`))},
	{"other-work", "CFG-18", changing(has("config_option_update"), func(_ *state, m *line) []string {
		return []string{m.text[:strings.LastIndex(m.text, `,{"configId"`)] + `]}}}`}
	})},
	{"cancel-with-meta", "V2-22", withheld(all(has(`"session/cancel"`), has("_meta")))},
	{"cancel-in-the-stream", "V2-22", withheld(has(`"session/cancel"`))},
	{"start", "V2-1", editing("session/prompt", with("messageId", `""`))},
	{"start", "V2-2", dropping(`"running"`)},
	{"start", "V2-2", rewriting(`,"stopReason":"[^"]*"`, ``)},
	{"options", "CFG-17", changedAlone(always)},
	{"options", "CFG-17", changedAlone(changes)},
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

// exampleDraft starts the example agent in memory. Its sessions need a login.
func exampleDraft(ctx context.Context, dir string) (*probe.Target, error) {
	agent, err := actor.NewAgent(actor.AgentOptions{
		State: probe.Home(dir), RequireAuth: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return probe.InMemory(func() rpc.Transport {
		client, transport := rpc.Pipe()
		go func() { // ends with the connection
			_ = agent.Serve(context.WithoutCancel(ctx), translate.Agent(transport)) // in a few scenarios it ends badly
			if err := agent.Close(); err != nil {
				panic(err)
			}
		}()
		return client
	})(ctx, dir)
}

// TestDraftMutants: there are no findings for exampleDraft, nor for an agent without version 2, and the faults of
// draftMutants are found. Tier Short plays a sample of them.
func TestDraftMutants(t *testing.T) {
	play := func(t *testing.T, launch probe.Launch, o *probe.Options) (*probe.Report, error) {
		o.Protocol, o.Auth = 2, "example-login"
		defer time.Sleep(time.Minute) // until the agents have ended
		return probe.Agent(t.Context(), launch, o)
	}
	old := raw(t, map[string]func(json.RawMessage) string{"initialize": result(terse)})
	for name, launch := range map[string]probe.Launch{"right": exampleDraft, "version 1": probe.InMemory(old)} {
		bubble(t, name, func(t *testing.T) {
			r := must.Get(play(t, launch, &probe.Options{Scratch: t.TempDir(), Jobs: 4}))(t)
			if found := findings(t, r); len(found) > 0 {
				t.Errorf("found %q", found)
			}
			t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
		})
	}
	for i, m := range draftMutants {
		if i%tier.Pick(8, 1, 1, 1) != 0 {
			continue
		}
		bubble(t, m.scenario+"/"+m.rules, func(t *testing.T) {
			caught(t, m.rules, func(o *probe.Options) (*probe.Report, error) {
				o.Only = []string{m.scenario}
				return play(t, mutate(exampleDraft, m.fault), o)
			})
		})
	}
	t.Logf("%d faults", len(draftMutants))
}
