package interop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

const greeting = "Good morning ✓\n"

// greetingRoot returns a directory that contains only a greeting.
func greetingRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "greeting.txt"), []byte(greeting), 0o600))
	return root
}

// summaryV2 is the report of v2-client.mjs.
type summaryV2 struct {
	Agent       string
	StopReasons map[string]string
	States      map[string][]string
	Updates     map[string]int
	Text        map[string]string
	Echoed      map[string]bool
	ToolCalls   map[string]string
	Terminals   []struct {
		Output string
		Exit   int
	}
	Permissions map[string][]string
	Listed      bool
	Replayed    map[string]int
	Unknown     int
	Exit        any
}

// TestTypeScriptClientV2 drives agents with the TypeScript client of version 2 through a relay.
func TestTypeScriptClientV2(t *testing.T) {
	dir := installed.Dir(t)
	for _, test := range []struct {
		name, output string // what the terminal shows
		agent        func(t *testing.T) []string
	}{
		// The example is written in version 1, and a client of version 2 has no terminals for it.
		{"go", "", func(t *testing.T) []string { return []string{build(t, "agent"), "-state", t.TempDir()} }},
		{"typescript", greeting, func(*testing.T) []string { return []string{"node", filepath.Join(dir, "v2-agent.mjs")} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace.jsonl")
			root := greetingRoot(t)
			var s summaryV2
			drive(t, filepath.Join(dir, "v2-client.mjs"), root, trace, test.agent(t), &s)
			keepClean(t, "v2-typescript-client-"+test.name, root, validate(t, trace, conformance.V2()))
			s.check(t, test.output)
		})
	}
}

func (s summaryV2) check(t *testing.T, output string) {
	t.Helper()
	same := func(what string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	same("stop reasons", s.StopReasons, map[string]string{"allow": "end_turn", "reject": "end_turn", "long": "cancelled"})
	same("states", s.States, map[string][]string{
		"allow":  {"running", "requires_action", "running", "idle"},
		"reject": {"running", "requires_action", "running", "idle"},
		"long":   {"running", "idle"},
	})
	same("messages echoed", s.Echoed, map[string]bool{"allow": true, "reject": true, "long": true})
	same("permissions", s.Permissions, map[string][]string{"allow": {"allow_once"}, "reject": {"reject_once"}})
	kinds := []string{"user_message", "agent_message_chunk", "plan_update", "tool_call_update"}
	if output != "" {
		kinds = append(kinds, "terminal_update", "terminal_output_chunk")
	}
	for _, kind := range kinds {
		if s.Updates[kind] == 0 || s.Replayed[kind] == 0 {
			t.Errorf("%d updates %s, %d replayed: want some of both", s.Updates[kind], kind, s.Replayed[kind])
		}
	}
	for _, prompt := range []string{"allow", "reject", "long"} {
		if s.Text[prompt] == "" {
			t.Errorf("%s: no text", prompt)
		}
	}
	if output != "" && (len(s.Terminals) != 1 || s.Terminals[0].Output != output || s.Terminals[0].Exit != 0) {
		t.Errorf("got terminals %+v, want one that shows %q", s.Terminals, output)
	}
	for _, status := range []string{"completed", "failed"} {
		found := false
		for _, got := range s.ToolCalls {
			found = found || got == status
		}
		if !found {
			t.Errorf("no tool call is %s: %v", status, s.ToolCalls)
		}
	}
	if s.Agent == "" || !s.Listed || s.Unknown != -32002 || s.Exit != 0.0 {
		t.Errorf("got %+v", s)
	}
}
