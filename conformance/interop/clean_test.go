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

// TestExampleProcesses runs the example client with the example agent, as processes with a relay between them. The
// examples' own tests run them together in every tier.
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
	root := greetingRoot(t)
	trace := filepath.Join(t.TempDir(), "trace.jsonl")
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	client := exec.CommandContext(t.Context(), build(t, "client"), "-root", root, "-script", path, "--",
		self, build(t, "agent"), "-state", t.TempDir())
	client.Dir = root
	client.Env = append(os.Environ(), traceVariable+"="+trace)
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	keepClean(t, "v1-examples", root, validate(t, trace, conformance.V1()))
}
