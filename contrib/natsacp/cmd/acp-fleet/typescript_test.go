package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// installed has the TypeScript programs of conformance/interop, with the SDK.
var installed = npmtest.Folder{Files: []string{
	"../../../../conformance/interop/*.mjs", "../../../../conformance/interop/package.json", "../../../../conformance/interop/package-lock.json",
}}

// The TypeScript client has the same conversation with an agent of a fleet as with the agent itself.
func TestTypeScriptClient(t *testing.T) {
	modules := installed.Dir(t)
	agent := buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor")
	talk := func(to ...string) (summary map[string]any) {
		t.Helper()
		root := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("Buy milk.\n"), 0o600))
		plan := must.Get(json.Marshal(map[string]string{
			"root":   root,
			"allow":  "Make a plan, think, read notes.txt, edit notes.txt, and run `cat notes.txt`.",
			"reject": "Now edit notes.txt, and run `cat notes.txt` again.",
			"long":   "Write a very long story.",
		}))(t)
		client := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(modules, "client.mjs"), string(plan)}, to...)...)
		var stderr strings.Builder
		client.Stderr = &stderr
		out, err := client.Output()
		if err != nil {
			t.Fatalf("client: %v\n%s", err, &stderr)
		}
		lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(out), root, "ROOT")), "\n")
		must.Do(t, json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
		var calls []string // their ids are random
		for _, state := range summary["toolCalls"].(map[string]any) {
			calls = append(calls, state.(string))
		}
		slices.Sort(calls)
		summary["toolCalls"] = calls
		// How long the story is depends on when the cancellation arrives.
		const sentence = "On and on it goes. "
		said, updates := summary["text"].(map[string]any), summary["updates"].(map[string]any)
		story, chunks := said["long"].(string), updates["agent_message_chunk"].(float64)
		said["long"] = strings.ReplaceAll(story, sentence, "")
		updates["agent_message_chunk"] = chunks - float64(strings.Count(story, sentence))
		return summary
	}
	want := talk(agent, "-state", t.TempDir())
	up := start(t, "up", "--store", t.TempDir(), "--listen", "127.0.0.1:0", "--", agent, "-state", t.TempDir())
	url := line(t, up)
	for _, scheme := range []string{"http", "ws"} {
		got := talk(strings.Replace(url, "http", scheme, 1))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-directly +through the fleet):\n%s", scheme, diff)
		}
	}
}
