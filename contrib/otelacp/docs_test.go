package otelacp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/test/tier"
)

func TestGuide(t *testing.T) {
	tier.Need(t, tier.Normal)
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(guide, -1)
	if len(programs) != 1 {
		t.Fatalf("%d programs", len(programs))
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "main.go")
	if err := os.WriteFile(program, programs[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "agent.exe"), program).CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}

	shown := regexp.MustCompile("(?ms)^```text\n(.*?)^```$").FindSubmatch(guide)
	if shown == nil {
		t.Fatal("no trace is shown")
	}
	golden, err := os.ReadFile(filepath.Join("testdata", "trace.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shape(string(golden)), string(shown[1])); diff != "" {
		t.Errorf("not the trace of the test (-want +got):\n%s", diff)
	}
}
