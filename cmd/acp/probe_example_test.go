package main

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestProbeAgent probes the example agent, whose users have to log in and whose commands are killed after half a second:
// nothing fails, no recommendation is broken, and nothing is left out but what it does not do.
func TestProbeAgent(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel() // most of it is waiting
	r, status := runJSON(t, "probe", "--format", "json", "--timeout", "1m", "--quiet", "1s", "--end-timeout", "1m", "--jobs", "8",
		"--auth", "example-login", "--", built(t, exampleAgent), "-state", t.TempDir(), "-require-auth", "-command-time", "500ms")
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
