package probe_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
)

// exampleAgent builds the example agent and returns its launch, with a state of its own.
func exampleAgent(t *testing.T) probe.Launch {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.Command("go", "build", "-o", binary, "../../examples/agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	state := t.TempDir()
	return func(ctx context.Context, dir string) (*probe.Target, error) {
		transport := rpc.Command(exec.Command(binary, "-state", state))
		transport.StopTime, transport.KillTime = time.Millisecond, 2*time.Second
		stream, err := transport.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return &probe.Target{Stream: stream}, nil
	}
}

func TestExampleAgent(t *testing.T) {
	r := probe.Check(t, exampleAgent(t), &probe.Options{Answer: 10 * time.Second, Quiet: 300 * time.Millisecond, Jobs: 4})
	t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
	for _, row := range r.Rows {
		if row.Verdict == probe.NotExercised && row.Reason != "only people can judge it" || row.Verdict == probe.Warn {
			t.Logf("%s %s %s: %s", row.Verdict, row.ID, row.Level, row.Reason)
		}
	}
}
