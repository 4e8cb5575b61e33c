package probe_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// dualAgent returns the launch of the example that speaks both versions.
func dualAgent(t *testing.T) probe.Launch {
	t.Helper()
	binary := buildtest.Program(t, "../../examples/dual/agent")
	return launchCommand(func(dir string) *exec.Cmd { return exec.Command(binary, "-state", probe.Home(dir)) })
}

// TestDraft: nothing is found of right agents of version 2: the example, and one on the TypeScript SDK.
func TestDraft(t *testing.T) {
	tier.Need(t, tier.Full)
	t.Parallel()
	for name, launch := range map[string]func(t *testing.T) probe.Launch{
		"example":    dualAgent,
		"TypeScript": func(t *testing.T) probe.Launch { return nodeAgent(t, filepath.Join(typeScript.Dir(t), "v2-agent.mjs")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := probe.Agent(t.Context(), launch(t), &probe.Options{
				Protocol: 2, Scratch: t.TempDir(), Answer: 20 * time.Second, Quiet: 300 * time.Millisecond, Rung: 20 * time.Second, Jobs: 8,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, in %.1f s", r.Badge, r.Seconds)
			if found := findings(t, r); len(found) > 0 {
				t.Errorf("found %q", strings.Join(found, " "))
			}
			for _, row := range r.Rows {
				if row.Verdict == probe.NotExercised || row.Verdict == probe.NotApplicable && strings.HasPrefix(row.ID, "V2") {
					t.Logf("%s %s %s", row.Verdict, row.ID, row.Reason)
				}
			}
			for _, s := range r.Scenarios {
				if s.Skipped != "" {
					t.Logf("%s: %s", s.Name, s.Skipped)
				}
			}
		})
	}
}
