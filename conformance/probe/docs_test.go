package probe_test

import (
	"os"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// TestDocsScenario: the scenario in docs/maintaining.md is an exact copy of one in this package.
func TestDocsScenario(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/maintaining.md"))(t)
	_, section, _ := strings.Cut(string(page), "\n## Add a scenario of the probe\n")
	_, section, _ = strings.Cut(section, "\n```\n")
	shown, _, ok := strings.Cut(section, "```\n")
	source := must.Get(os.ReadFile("agent_prompts.go"))(t)
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if !ok || !strings.Contains(shown, "Exercises") || !strings.Contains(flat(string(source)), flat(shown)) {
		t.Errorf("no scenario of agent_prompts.go matches the one on the page:\n%s", shown)
	}
}
