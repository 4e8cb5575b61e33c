package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestTypeScriptAgentVersion2 plays a turn with the TypeScript SDK's agent of version 2 in the programs that are written
// in version 1. The recordings on both sides of the translation conform.
func TestTypeScriptAgentVersion2(t *testing.T) {
	dir := typescript(t)
	agent := []string{"node", filepath.Join(dir, "v2-agent.mjs")}
	work, acp := t.TempDir(), must.Get(exec.LookPath("acp"))(t)
	rules := filepath.Join(work, "rules.json")
	for name, text := range map[string]string{rules: `{"rules": []}`, filepath.Join(work, "greeting.txt"): "Good morning\n"} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	kit := buildtest.Program(t, "../../examples/kit-client")
	t.Cleanup(buildtest.Remove)
	talk := func(t *testing.T, program, stdin string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, append(args, agent...)...)
		cmd.Dir, cmd.Stdin = work, strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Done.") || !strings.Contains(string(out), "completed") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for name, play := range map[string]func(t *testing.T, near, far string){
		"exec": func(t *testing.T, _, far string) {
			talk(t, acp, "", "exec", "--allow", "--record", far, "Read it.", "--")
		},
		"translate": func(t *testing.T, near, far string) {
			talk(t, acp, "", "exec", "--allow", "--protocol", "1", "--record", near, "Read it.", "--",
				acp, "translate", "--to", "2", "--", acp, "record", "-o", far, "--")
		},
		"kit-client": func(t *testing.T, _, far string) {
			talk(t, kit, "Read it.\n1\n", rules, acp, "record", "-o", far, "--")
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := filepath.Join(t.TempDir(), "near.jsonl"), filepath.Join(t.TempDir(), "far.jsonl")
			play(t, near, far)
			conforms(t, name, far, "--level", "should")
			if name == "translate" {
				conforms(t, name, near, "--level", "should")
			}
		})
	}
}

// TestTypeScriptClientVersion2 connects the TypeScript SDK's client of version 2 to an agent that acp new has written.
func TestTypeScriptClientVersion2(t *testing.T) {
	client := filepath.Join(typescript(t), "v2-client.mjs")
	sdk := must.Get(filepath.Abs("../.."))(t)
	acp, work := must.Get(exec.LookPath("acp"))(t), t.TempDir()
	agent, wire := filepath.Join(work, "my-agent", "agent.exe"), filepath.Join(work, "wire.jsonl")
	plan, err := json.Marshal(map[string]string{"root": work, "allow": "One", "reject": "Two", "long": "Three"})
	must.Do(t, err)
	var out []byte
	for _, words := range [][]string{
		{acp, "new", "agent", "--sdk", sdk, "my-agent"},
		{"go", "-C", "my-agent", "mod", "tidy"},
		{"go", "-C", "my-agent", "build", "-o", agent, "."},
		{"node", client, string(plan), acp, "record", "-o", wire, "--", agent},
	} {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Stderr = work, t.Output()
		if cmd.Env = os.Environ(); words[0] == "node" {
			cmd.Env = append(cmd.Env, "HOME="+work, "XDG_STATE_HOME="+work, "LocalAppData="+work)
		}
		if out, err = cmd.Output(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	var got struct {
		Agent    string
		Text     map[string]string
		Listed   bool
		Replayed map[string]int
		Unknown  int
	}
	must.Do(t, json.Unmarshal(out, &got))
	if got.Agent != "my-agent" || got.Text["reject"] != "Prompt 2: Two" || !got.Listed || got.Replayed["user_message"] != 3 ||
		got.Unknown != -32002 {
		t.Errorf("got %s", out)
	}
	conforms(t, "acp new", wire)
}

// TestTypeScriptClientVersion2Host lets the example agent, of version 1, write and run a command with the questions and
// terminals of the TypeScript SDK's client of version 2.
func TestTypeScriptClientVersion2Host(t *testing.T) {
	client := filepath.Join(typescript(t), "v2-client.mjs")
	agent := must.Get(exampleAgent())(t)
	acp, root, work := must.Get(exec.LookPath("acp"))(t), notes(t), t.TempDir()
	near, far := filepath.Join(work, "near.jsonl"), filepath.Join(work, "far.jsonl")
	cmd := exec.Command("node", client, string(turnsPlan(t, root)), acp, "record", "-o", near, "--",
		acp, "translate", "--files", "--terminals", "--", acp, "record", "-o", far, "--", agent, "-state", work)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		Permissions map[string][]string
		Terminals   []struct {
			Output string
			Exit   int
		}
	}
	must.Do(t, json.Unmarshal(out, &got))
	text := string(must.Get(os.ReadFile(filepath.Join(root, "notes.txt")))(t))
	if len(got.Terminals) != 1 || got.Terminals[0].Output != text || got.Terminals[0].Exit != 0 || len(got.Permissions["allow"]) != 4 {
		t.Errorf("got %s, with %q in the file", out, text)
	}
	conforms(t, "client", near, "--level", "should")
	conforms(t, "agent", far, "--level", "should")
}
