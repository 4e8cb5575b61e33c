package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance/probe"
)

// TestProbeAgent probes the example agent, whose users have to log in and whose commands are killed after half a second:
// nothing fails, no recommendation is broken, and nothing is left out but what it does not do.
func TestProbeAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel() // most of it is waiting
	binary := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./examples/agent")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, status := runJSON(t, 5*time.Minute, "probe", "--format", "json", "--quiet", "1s", "--end-timeout", "10s", "--jobs", "8",
		"--auth", "example-login", "--", binary, "-state", t.TempDir(), "-require-auth", "-command-time", "500ms")
	if status != 0 || !r.Conforms {
		t.Errorf("ended with status %d, conforms: %v", status, r.Conforms)
	}
	expectOpen(t, r, "CAN-2 EXT-1 EXT-6")
}

// expectOpen expects that nothing of a report fails, and that of what a machine can judge this alone was not exercised.
func expectOpen(t *testing.T, r *probe.Report, want string) {
	t.Helper()
	var open []string
	for _, row := range r.Rows {
		if row.Verdict == probe.Fail || row.Verdict == probe.Warn {
			t.Errorf("%s %s: %v", row.Verdict, row.ID, row.Failures)
		}
		if row.Verdict == probe.NotExercised && row.Reason != "only people can judge it" {
			open = append(open, row.ID)
		}
	}
	if got := strings.Join(open, " "); got != want {
		t.Errorf("not exercised: %s, want %s", got, want)
	}
}
