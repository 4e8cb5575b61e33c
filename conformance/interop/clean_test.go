package interop

// The clean recordings of processes, which the judge's tests read. The flag -update writes them again. They are
// different each time, so the tests do not compare them; their messages are validated when they are made.

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "rewrite the clean recordings of processes")

// keepClean writes messages as the clean recording with the given name if -update is set.
func keepClean(t *testing.T, name, root string, messages []conformance.Message) {
	t.Helper()
	if *update {
		cleantest.Dir("../testdata/clean").WriteProcesses(t, name, root, messages)
	}
}

// TestExampleProcesses runs the example client with the example agent, and the clients and agents for both versions
// with each other, as processes with a relay between them. The examples' own tests run them together in every tier.
func TestExampleProcesses(t *testing.T) {
	tier.Need(t, tier.Full)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const script = `allow: plan, think, read greeting.txt, edit greeting.txt and run ` + "`cat greeting.txt`" + `
reject: permission
allow: form, link, mode, notice, compact and fail
allow: max_tokens
allow: refuse
cancel: Write a very long story.
allow: plan
`
	for _, test := range []struct {
		name          string
		client, agent string
		flags         func(t *testing.T) []string // of the agent
		schema        *conformance.Schema
	}{
		{"v1-examples", "client", "agent", func(t *testing.T) []string { return []string{"-state", t.TempDir()} }, conformance.V1()},
		{"n2-dual", "dual/client", "dual/agent", nil, conformance.Negotiated(conformance.V1(), conformance.V2())},
		{"n1-dual", "dual/client", "agent", func(t *testing.T) []string { return []string{"-state", t.TempDir()} }, conformance.Negotiated(conformance.V1(), conformance.V2())},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := greetingRoot(t)
			trace := filepath.Join(t.TempDir(), "trace.jsonl")
			agent := []string{self, build(t, test.agent)}
			if test.flags != nil {
				agent = append(agent, test.flags(t)...)
			}
			var args []string
			if test.client == "client" {
				path := filepath.Join(t.TempDir(), "script")
				if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
					t.Fatal(err)
				}
				args = []string{"-root", root, "-script", path, "--"}
			} else {
				args = []string{"allow: What is there?", "And now?", "cancel: Write a very long story.", "--"}
			}
			client := exec.CommandContext(t.Context(), build(t, test.client), append(args, agent...)...)
			client.Dir = root
			client.Env = append(os.Environ(), traceVariable+"="+trace)
			if out, err := client.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			keepClean(t, test.name, root, validate(t, trace, test.schema))
		})
	}
}
