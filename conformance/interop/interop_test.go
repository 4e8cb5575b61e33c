package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(traceVariable); path != "" {
		if err := record(path, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "relay:", err)
			os.Exit(1)
		}
		return
	}
	if kind := os.Getenv(floodVariable); kind != "" {
		if err := flooding(kind); err != nil {
			fmt.Fprintln(os.Stderr, "flood:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		printPartners()
		installed.Remove()
		buildtest.Remove()
		os.Exit(code)
	}))
}

// installed is a copy of the TypeScript programs together with the SDK.
var installed = npmtest.Folder{Files: []string{"*.mjs", "package.json", "package-lock.json"}}

// build compiles one of the examples.
func build(t *testing.T, example string) (program string) {
	t.Helper()
	if example == "agent" {
		return buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor")
	}
	return buildtest.Program(t, "../../examples/"+example) // it may be in a module of its own
}

// prompts are the prompts that the clients send. The TypeScript agent plays the same turn for all except the long one;
// the example agent interprets the words.
var prompts = map[string]string{
	"allow":  "Make a plan, think, read notes.txt, edit notes.txt, and run `cat notes.txt`.",
	"reject": "Now edit notes.txt, and run `cat notes.txt` again.",
	"long":   "Write a very long story.",
}

// summary is the report of client.mjs.
type summary struct {
	Agent            string
	StopReasons      map[string]string
	Updates          map[string]int
	Text             map[string]string
	ToolCalls        map[string]string
	Permissions      map[string][]string
	Reads, Writes    []string
	Terminals        []string
	Steps            []string
	Replayed         int
	ReplayedOnResume int
	Exit             any
}

// TestTypeScriptClient drives agents with the TypeScript client through a relay.
func TestTypeScriptClient(t *testing.T) {
	dir := installed.Dir(t)
	for _, test := range []struct {
		name  string
		agent func(t *testing.T) []string
	}{
		{"go", func(t *testing.T) []string { return []string{build(t, "agent"), "-state", t.TempDir()} }},
		{"typescript", func(*testing.T) []string { return []string{"node", filepath.Join(dir, "agent.mjs")} }},
		{"typescript-through-proxies", func(t *testing.T) []string {
			rules := filepath.Join(t.TempDir(), "rules.json")
			if err := os.WriteFile(rules, []byte(`{"rules":[]}`), 0o600); err != nil { // every permission is the user's
				t.Fatal(err)
			}
			return []string{build(t, "proxy"), "--", build(t, "guard"), "-rules", rules, "--", "node", filepath.Join(dir, "agent.mjs")}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			agent := test.agent(t)
			trace := filepath.Join(t.TempDir(), "trace.jsonl")
			root := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("Buy milk.\n"), 0o600))
			var s summary
			drive(t, filepath.Join(dir, "client.mjs"), root, trace, agent, &s)
			messages := validate(t, trace, conformance.V1())
			if test.name != "typescript-through-proxies" { // it repeats the same conversation
				keepClean(t, "v1-typescript-client-"+test.name, root, messages)
			}
			s.check(t)
		})
	}
}

// drive runs a TypeScript client, and decodes its summary. If the agent is a command, this program is a relay between
// them that records into trace.
func drive(t *testing.T, script, root, trace string, agent []string, summary any) {
	t.Helper()
	plan := must.Get(json.Marshal(map[string]string{
		"root": root, "allow": prompts["allow"], "reject": prompts["reject"], "long": prompts["long"],
	}))(t)
	args := []string{script, string(plan)}
	if trace != "" {
		self := must.Get(os.Executable())(t)
		args = append(args, self)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, "node", append(args, agent...)...)
	client.Env = append(os.Environ(), traceVariable+"="+trace)
	client.WaitDelay = time.Minute
	var stdout, stderr bytes.Buffer
	client.Stdout, client.Stderr = &stdout, &stderr
	if err := client.Run(); err != nil {
		t.Errorf("client: %v\n%s", err, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	last := lines[len(lines)-1]
	t.Log(last)
	if err := json.Unmarshal([]byte(last), summary); err != nil {
		t.Fatalf("summary: %v\n%s", err, &stderr)
	}
}

// check requires that the turns match the prompts.
func (s summary) check(t *testing.T) {
	t.Helper()
	for prompt, want := range map[string]string{"allow": "end_turn", "reject": "end_turn", "long": "cancelled"} {
		if got := s.StopReasons[prompt]; got != want {
			t.Errorf("%s: got stop reason %q, want %q", prompt, got, want)
		}
		if s.Text[prompt] == "" {
			t.Errorf("%s: no text", prompt)
		}
	}
	if s.Agent == "" {
		t.Error("the agent did not name itself")
	}
	for _, kind := range []string{"plan", "agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update"} {
		if s.Updates[kind] == 0 {
			t.Errorf("no update %s", kind)
		}
	}
	for prompt, kind := range map[string]string{"allow": "allow", "reject": "reject"} {
		other := func(chosen string) bool { return !strings.HasPrefix(chosen, kind) }
		if got := s.Permissions[prompt]; len(got) == 0 || slices.ContainsFunc(got, other) {
			t.Errorf("%s: got permissions %q, want some, and all to %s", prompt, got, kind)
		}
	}
	if len(s.Reads) == 0 || len(s.Writes) == 0 || len(s.Terminals) == 0 {
		t.Errorf("got reads %q, writes %q, terminals %q: want some of each", s.Reads, s.Writes, s.Terminals)
	}
	for _, status := range []string{"completed", "failed"} {
		if !slices.Contains(slices.Collect(maps.Values(s.ToolCalls)), status) {
			t.Errorf("no tool call is %s: %v", status, s.ToolCalls)
		}
	}
	for _, step := range []string{
		"initialize", "authenticate", "session/new", "session/set_mode", "session/set_config_option",
		"session/list", "session/close", "session/load", "session/resume", "session/delete", "logout",
	} {
		if !slices.Contains(s.Steps, step) {
			t.Errorf("no %s", step)
		}
	}
	if s.Replayed == 0 || s.ReplayedOnResume > 0 {
		t.Errorf("got %d updates with session/load and %d with session/resume, want some and none", s.Replayed, s.ReplayedOnResume)
	}
	if s.Exit != 0.0 {
		t.Errorf("the agent ended with %v when its input did", s.Exit)
	}
}
