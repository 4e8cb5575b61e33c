package probe_test

import (
	"os"
	"strings"
	"testing"
)

// TestDocsScenario: the scenario in docs/maintaining.md is an exact copy of one in this package.
func TestDocsScenario(t *testing.T) {
	page, err := os.ReadFile("../../docs/maintaining.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Add a scenario of the probe\n")
	_, section, _ = strings.Cut(section, "\n```\n")
	shown, _, ok := strings.Cut(section, "```\n")
	source, err := os.ReadFile("agent_prompts.go")
	if err != nil {
		t.Fatal(err)
	}
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if !ok || !strings.Contains(shown, "Exercises") || !strings.Contains(flat(string(source)), flat(shown)) {
		t.Errorf("no scenario of agent_prompts.go matches the one on the page:\n%s", shown)
	}
}
