package gen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// configOf returns the configuration to generate a package of this repository from a schema.
func configOf(t *testing.T, target Target, path string) Config {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return Config{Schema: data, Source: target.Schema, Package: target.Package, Module: module, Overrides: Overrides[target.Protocol], Facade: true}
}

// unsaid lists the gates that no description names.
var unsaid = []string{
	"elicitation/complete", "session/update update.subagent_update", "session/update update.session_message", "session/update update.session_message_chunk",
}

// No question about the schemas of this repository is open. Without its entry in the table, each gate would cause a
// question, except for those in unsaid.
func TestQuestions(t *testing.T) {
	tier.Need(t, tier.Normal)
	asked, gates, every := 0, 0, tier.Pick(0, 16, 8, 1)
	for _, target := range Targets {
		config := configOf(t, target, filepath.Join("..", filepath.FromSlash(target.Schema)))
		open := func(overrides []Override) []Question {
			doc := must.Get(schema.Parse(config.Schema, nil))(t)
			pkg := must.Get(build(doc))(t)
			j := newDecisions(overrides, nil)
			must.Do(t, decide(pkg, j))
			return questions(pkg, j)
		}
		for _, q := range open(config.Overrides) {
			t.Errorf("%s: %v", target.Schema, q)
		}
		for i, o := range config.Overrides {
			if o.Kind != Capability && o.Kind != Ungated && o.Kind != Needs {
				continue
			}
			if gates++; gates%every != 0 {
				continue
			}
			without := open(slices.Delete(slices.Clone(config.Overrides), i, i+1))
			asks := slices.ContainsFunc(without, func(q Question) bool { return q.Subject == o.Subject })
			if asks == slices.Contains(unsaid, o.Subject) {
				t.Errorf("%s without %v: %v", target.Schema, o, without)
			}
			asked++
		}
	}
	t.Logf("%d of %d gates are asked for", asked, gates)
}

// A method looks gated because of its description, the description of a capability, or its name.
func TestLooksGated(t *testing.T) {
	const template = `{"$defs":{
		"Caps":{"type":"object","properties":{
			"log":{"type":"boolean","description":"Whether the agent can log: LOG"},
			"session":{"$ref":"#/$defs/SessionCaps"},"_meta":{"type":"object"}}},
		"SessionCaps":{"type":"object","description":"All agents have sessions.","properties":{"fork":{"type":"boolean"}}},
		"GoRequest":{"description":"DOC","type":"object","properties":{},"x-method":"METHOD","x-side":"agent"},
		"GoResponse":{"type":"object","properties":{},"x-method":"METHOD","x-side":"agent"},
		"OtherRequest":{"type":"object","properties":{},"x-method":"log/other","x-side":"agent"},
		"OtherResponse":{"type":"object","properties":{},"x-method":"log/other","x-side":"agent"}}}`
	tests := []struct{ name, method, doc, log, want string }{
		{"nothing", "go", "Goes.", "", ""},
		{"its description", "go", "Goes. Only if the agent has the x.go capability.", "", `Its description says "Only if the agent has the x.go capability"`},
		{"its description, without that word", "go", "Clients may send it if the agent supports it.", "", `Its description says "Clients may send it if the agent supports it"`},
		{"what all unstable things say", "go", "**UNSTABLE**\\n\\nThis capability is not part of the spec yet, and may change.", "", ""},
		{"the description of a capability", "trace/go", "", "it has `trace/go`.", "The description of the capability log names it"},
		{"that of another method", "trace/go", "", "it has `trace/gone`.", ""},
		{"its name", "session/fork", "", "", "The capability session.fork goes by its name"},
		{"its name, in another order", "fork_session", "", "", ""},
		{"its family", "log/go", "", "", "The capability log gates log/other"},
		{"another side", "go", "", "", ""},
	}
	for _, test := range tests {
		text := strings.NewReplacer("METHOD", test.method, "DOC", test.doc, "LOG", test.log).Replace(template)
		if test.name == "another side" {
			text = strings.Replace(text, `"x-side":"agent"`, `"x-side":"client"`, 2)
		}
		config := Config{Schema: []byte(text), Source: "s", Package: "p", Module: module,
			Overrides: []Override{{Capabilities, "agent", "Caps", ""}, {Capability, "log/other", "log", ""}}}
		out, err := Run(config)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		got := ""
		if len(out.Questions) > 0 {
			got = out.Questions[0].Text
		}
		if got != test.want || len(out.Questions) > 1 {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		// An answer resolves the question, and an answer without a question is stale.
		config.Overrides = append(config.Overrides, Override{Ungated, test.method, "", "tested"})
		out, err = Run(config)
		if (err == nil) != (test.want != "") || err == nil && len(out.Questions) > 0 {
			t.Errorf("%s, answered: %v, %v", test.name, out, err)
		}
	}
}
