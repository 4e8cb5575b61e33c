package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// witness returns the words of a program between two others, which passes everything on to the next program, whose words
// follow, and records it in a directory.
func witness(dir string, next ...string) []string {
	return append([]string{"sh", "-c", `tee "$0/in" | "$@" | tee "$0/out"`, dir}, next...)
}

// typescript returns a copy of the client and the agent for the TypeScript SDK, with the SDK installed next to them.
func typescript(t *testing.T) string {
	t.Helper()
	tier.Need(t, tier.Full)
	const programs = "../../conformance/interop/"
	folder := npmtest.Folder{Files: []string{programs + "*.mjs", programs + "package.json", programs + "package-lock.json"}}
	t.Cleanup(folder.Remove)
	return folder.Dir(t)
}

// Between the TypeScript client and the TypeScript agent, acp record changes no byte in either direction, and the
// recording contains all of them.
func TestRecordBetweenTypeScriptPrograms(t *testing.T) {
	dir := typescript(t)
	outer, inner, root := t.TempDir(), t.TempDir(), notes(t)
	plan := turnsPlan(t, root)
	file := filepath.Join(t.TempDir(), "run.jsonl")
	command := witness(outer, append([]string{must.Get(exec.LookPath("acp"))(t), "record", "--no-mask", "-o", file, "--"},
		witness(inner, "node", filepath.Join(dir, "agent.mjs"))...)...)
	client := exec.Command("node", append([]string{filepath.Join(dir, "client.mjs"), string(plan)}, command...)...)
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compareWitnesses(t, "record", outer, inner)
	all := must.Get(recording.ReadAll(strings.NewReader(string(must.Get(os.ReadFile(file))(t)))))(t)
	for side, name := range map[conformance.Side]string{conformance.Client: "in", conformance.Agent: "out"} {
		if got, want := string(all.Sent(side)), string(must.Get(os.ReadFile(filepath.Join(outer, name)))(t)); got != want {
			t.Errorf("%v: %d bytes were recorded of %d", side, len(got), len(want))
		}
	}
	replayTypeScript(t, dir, plan, root, file, all)
}

// notes creates a directory for the turns.
func notes(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "notes.txt"), []byte("Buy milk.\n"), 0o600))
	return root
}

// turnsPlan returns what the TypeScript client has to do.
func turnsPlan(t *testing.T, root string) []byte {
	t.Helper()
	plan, err := json.Marshal(map[string]string{
		"root": root, "allow": "Make a plan, think, read notes.txt, edit notes.txt, and run `cat notes.txt`.",
		"reject": "Now edit notes.txt, and run `cat notes.txt` again.", "long": "Write a very long story.",
	})
	must.Do(t, err)
	return plan
}

// compareWitnesses checks that two witnesses have seen the same lines.
func compareWitnesses(t *testing.T, through, outer, inner string) {
	t.Helper()
	for _, name := range []string{"in", "out"} {
		sent, got := string(must.Get(os.ReadFile(filepath.Join(outer, name)))(t)), string(must.Get(os.ReadFile(filepath.Join(inner, name)))(t))
		if sent != got || len(sent) == 0 {
			t.Errorf("%s, %s: %d bytes became %d", through, name, len(sent), len(got))
		}
	}
}

// replayTypeScript replays the recorded client to the TypeScript agent, and the recorded agent to the TypeScript
// client.
func replayTypeScript(t *testing.T, dir string, plan []byte, root, file string, all *conformance.Recording) {
	t.Helper()
	masked := filepath.Join(t.TempDir(), "masked.jsonl")
	out := must.Get(os.Create(masked))(t)
	must.Do(t, errors.Join(recording.WriteAll(out, recording.Header{}, all, recording.NewMasker()), out.Close()))
	for _, file := range []string{file, masked} {
		got, err := exec.Command(must.Get(exec.LookPath("acp"))(t), "replay", file, "--as", "client", "--", "node", filepath.Join(dir, "agent.mjs")).CombinedOutput()
		if err != nil || !bytes.Contains(got, []byte(", 0 differences\n")) {
			t.Errorf("the recorded client: %v\n%s", err, got)
		}
		// Restore the client's directory.
		must.Do(t, errors.Join(os.Remove(filepath.Join(root, "greeting.txt")), os.WriteFile(filepath.Join(root, "notes.txt"), []byte("Buy milk.\n"), 0o600)))
		client := exec.Command("node", filepath.Join(dir, "client.mjs"), string(plan), must.Get(exec.LookPath("acp"))(t), "replay", file, "--as", "agent")
		if got, err = client.CombinedOutput(); err != nil || !bytes.Contains(got, []byte(", 0 differences\n")) {
			t.Errorf("the recorded agent: %v\n%s", err, got)
		}
	}
}
