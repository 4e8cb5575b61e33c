package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestProbeAgent probes the example agent, whose users have to log in and whose commands are killed after half a
// second: nothing fails, no recommendation is broken, and only features that it lacks are not exercised.
func TestProbeAgent(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel() // it mostly waits
	r, status := runJSON(t, "probe", "--timeout", "1m", "--quiet", "1s", "--end-timeout", "1m", "--jobs", "8",
		"--auth", "example-login", "--", must.Get(exampleAgent())(t), "-state", t.TempDir(), "-require-auth", "-command-time", "500ms")
	if status != 0 || !r.Conforms {
		t.Errorf("ended with status %d, conforms: %v", status, r.Conforms)
	}
	expectOpen(t, r, "CAN-2 EXT-1 EXT-6")
}

// TestProbeREADME probes the programs of the README: nothing fails.
func TestProbeREADME(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel() // it mostly waits
	page := must.Get(os.ReadFile("../../README.md"))(t)
	shown := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(page, -1)
	if len(shown) != 2 {
		t.Fatalf("%d programs in the README", len(shown))
	}
	dir := t.TempDir()
	for i, c := range []struct {
		args  []string
		known string // what it does not do, or what cannot be determined
	}{
		// It has no tools, and so no use for MCP servers.
		{[]string{"probe"}, "doubtful SES-25"},
		// It does not state its name, and asks its user nothing.
		{[]string{"probe-client"}, "warn INI-3, warn ERR-4"},
	} {
		source, program := filepath.Join(dir, c.args[0]+".go"), filepath.Join(dir, c.args[0])
		must.Do(t, os.WriteFile(source, shown[i][1], 0o600))
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, source)
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		args := append(c.args[1:], "--timeout", "1m", "--quiet", "500ms", "--jobs", "4", "--", program)
		if i == 1 {
			args = append(args, "{agent}")
		}
		r, status := runJSON(t, c.args[0], args...)
		var found []string
		for _, row := range r.Rows {
			if row.Verdict == probe.Fail || row.Verdict == probe.Warn || row.Verdict == probe.Doubtful {
				found = append(found, string(row.Verdict)+" "+row.ID)
			}
		}
		if got := strings.Join(found, ", "); status != 0 || got != c.known {
			t.Errorf("%s ended with status %d and found %s, want %s", c.args[0], status, got, c.known)
		}
	}
}

// expectOpen expects that nothing in a report fails, and that of the requirements that can be judged automatically only
// these were not exercised.
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
