package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// elsewhere is a path outside the directories of every session.
const elsewhere = `"path":"/acp-probe-elsewhere.txt"`

// kinds are agents with faults that can be found only by a probe that compares answers, inspects the disk, or keeps
// state.
var kinds = map[string]mutant{
	"an answer with the changed option alone":        {"options", "CFG-17", changedAlone(always)},
	"the same, but whole where nothing changes":      {"options", "CFG-17", changedAlone(changes)},
	"a plan with the changed entry alone":            {"plan", "PLN-3", changedEntryAlone},
	"a file deleted though the user has refused":     {"permission-rejected", "ADD-14", deletesAt(`"optionId":"reject"`)},
	"a file written outside the directories":         {"outside", "SES-24", asking(request("fs/write_text_file", elsewhere+`,"content":"x"`))},
	"a file read for an unknown session":             {"tools", "ADD-2", asking(func(string) string { return request(fsRead, elsewhere)("no-such-session") })},
	"a terminal used after its release":              {"tools", "ADD-15", usesReleased},
	"a time in words, in an update":                  {"start", "ADD-13", rewriting(`"updatedAt":"[^"]*"`, `"updatedAt":"yesterday"`)},
	"a time in words, in a list":                     {"list", "ADD-13", rewriting(`"updatedAt":"[^"]*"`, `"updatedAt":"yesterday"`)},
	"permission for a call that was never announced": {"permission", "TOL-1", dropping(`"sessionUpdate":"tool_call",`)},
	"a call left in progress":                        {"tools", "TOL-9", dropping(`"status":"completed"`)},
}

// TestKinds: a fault of each kind is found, with exactly the requirement that it breaks, and there are no findings for
// correct agents: the example, one on the TypeScript SDK, and one without a library.
func TestKinds(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	example := exampleAgent(t)
	t.Cleanup(func() { t.Logf("%d kinds of faults", len(kinds)+2*len(lists)) })
	for name, l := range lists {
		for version, launch := range map[int]probe.Launch{1: example, 2: example} {
			t.Run(fmt.Sprintf("list/%s in version %d", name, version), func(t *testing.T) {
				t.Parallel()
				caught(t, l.rules, func(o *probe.Options) (*probe.Report, error) {
					o.Only, o.Protocol = []string{"list"}, version
					return probe.Agent(t.Context(), mutate(launch, l.fault), o)
				})
			})
		}
	}
	for name, m := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caught(t, m.rules, func(o *probe.Options) (*probe.Report, error) {
				o.Only = []string{m.scenario}
				return probe.Agent(t.Context(), mutate(example, m.fault), o)
			})
		})
	}
	for name, right := range map[string]struct {
		launch func(t *testing.T) probe.Launch
		known  string // findings although the agent is correct, and why
	}{
		"example":    {func(*testing.T) probe.Launch { return example }, ""},
		"plain":      {func(t *testing.T) probe.Launch { return nodeAgent(t, "testdata/plain.mjs") }, ""},
		"TypeScript": {func(t *testing.T) probe.Launch { return nodeAgent(t, filepath.Join(typeScript.Dir(t), "agent.mjs")) }, "SCH-2"}, // ids beyond 2⁵³
	} {
		t.Run("right/"+name, func(t *testing.T) {
			tier.Need(t, tier.Nightly) // TestExampleAgent plays one of them in tier full
			t.Parallel()
			r := must.Get(probe.Agent(t.Context(), right.launch(t), &probe.Options{
				Scratch: t.TempDir(), Answer: 20 * time.Second, Quiet: 300 * time.Millisecond, Rung: 20 * time.Second, Jobs: 8, MCP: mcp,
			}))(t)
			t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
			found := findings(t, r)
			if got := strings.Join(found, " "); got != right.known {
				t.Errorf("found %q, want %q", got, right.known)
			}
		})
	}
}

// findings returns the requirements with a negative verdict in a report.
func findings(t *testing.T, r *probe.Report) (found []string) {
	t.Helper()
	for _, row := range r.Rows {
		if row.Verdict == probe.Fail || row.Verdict == probe.Warn || row.Verdict == probe.Doubtful {
			found = append(found, row.ID)
			t.Logf("%s: %s", row.ID, row.Reason)
			for _, f := range row.Failures {
				t.Logf("%s %s %s: %s %s", f.Scenario, row.ID, f.Method, f.Message, f.Excerpt)
			}
		}
	}
	return found
}

// typeScript contains the agents on the official SDK that the interoperability tests use.
var typeScript = npmtest.Folder{Files: []string{"../interop/agent.mjs", "../interop/turns.mjs", "../interop/v2-agent.mjs", "../interop/package.json", "../interop/package-lock.json"}}

// nodeAgent starts a program with Node.js.
func nodeAgent(t *testing.T, program ...string) probe.Launch {
	npmtest.Need(t)
	return launchCommand(func(string) *exec.Cmd { return exec.Command("node", program...) })
}

// rewriting changes the agent's messages.
func rewriting(pattern, to string) fault {
	from := regexp.MustCompile(pattern)
	return fault{toClient: func(_ *state, m *line) []string { return []string{from.ReplaceAllString(m.text, to)} }}
}

// changedAlone leaves the other options out of answers to session/set_config_option.
func changedAlone(when func(*state, *line) bool) fault {
	const method = "session/set_config_option"
	f := editingEach(method, func(_ *state, m *line, result map[string]json.RawMessage) {
		var options []map[string]json.RawMessage
		var set struct{ ConfigID json.RawMessage }
		if err := errors.Join(json.Unmarshal(result["configOptions"], &options), json.Unmarshal(m.params, &set)); err != nil {
			panic(err)
		}
		result["configOptions"] = encoded(slices.DeleteFunc(options, func(o map[string]json.RawMessage) bool {
			return string(o["id"])+string(o["configId"]) != string(set.ConfigID) // of version 1 or 2
		}))
	})
	return changing(all(resultOf(method), when), f.toClient)
}

// changes reports whether a session/set_config_option sets another value than the one before of the same option.
func changes(s *state, m *line) bool {
	id := func(m *line) string {
		var p struct{ ConfigID string }
		if m.method != "session/set_config_option" || json.Unmarshal(m.params, &p) != nil {
			return ""
		}
		return p.ConfigID
	}
	same := slices.DeleteFunc(slices.Clone(s.all), func(sent *line) bool { return id(sent) != id(m) })
	return len(same) > 1 && string(same[len(same)-2].params) != string(m.params)
}

// changedEntryAlone leaves the other entries out of the second plan, in which the first one has changed.
var changedEntryAlone = changing(func(s *state, m *line) bool {
	return strings.Contains(m.text, `"sessionUpdate":"plan"`) && strings.Contains(m.text, "},{") && s.nth("plan") == 2
}, func(_ *state, m *line) []string {
	return []string{m.text[:strings.Index(m.text, "},{")+1] + m.text[strings.LastIndex(m.text, "]"):]}
})

// deletesAt deletes a file after the user has answered with a text.
func deletesAt(text string) fault {
	return fault{toAgent: func(s *state, m *line) ([]string, []string) {
		if m.answer && strings.Contains(m.text, text) {
			for _, sent := range s.all {
				var p struct{ Cwd string }
				if sent.method == "session/new" && json.Unmarshal(sent.params, &p) == nil {
					if err := os.Remove(filepath.Join(p.Cwd, "old.txt")); err != nil && !os.IsNotExist(err) {
						panic(err)
					}
				}
			}
		}
		return []string{m.text}, nil
	}}
}

// usesReleased asks for the output of a terminal after its release, and hides the answer from the agent.
var usesReleased = fault{
	toClient: func(_ *state, m *line) []string {
		if m.request && m.method == "terminal/release" {
			return []string{m.text, `{"jsonrpc":"2.0","id":"mutant","method":"terminal/output","params":` + string(m.params) + `}`}
		}
		return []string{m.text}
	},
	toAgent: hidesAnswer,
}

// launchCommand starts an agent as a process. Its command may depend on the folder of the scenario.
func launchCommand(command func(dir string) *exec.Cmd) probe.Launch {
	return func(ctx context.Context, dir string) (*probe.Target, error) {
		stderr := &probe.Stderr{}
		cmd := command(dir)
		cmd.Stderr = stderr
		transport := rpc.Command(cmd)
		transport.StopTime, transport.KillTime = time.Millisecond, 2*time.Second
		stream, err := transport.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return &probe.Target{Stream: stream, Stderr: stderr, Raw: stream.(rpc.FastStream).WriteLines, Process: true}, nil
	}
}
