package otelacp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp" // the guide's program imports it

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestGuide(t *testing.T) {
	tier.Need(t, tier.Normal)
	guide := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "telemetry.md")))(t)
	programs := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(guide, -1)
	if len(programs) != 1 {
		t.Fatalf("%d programs", len(programs))
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "main.go")
	must.Do(t, os.WriteFile(program, programs[0][1], 0o600))
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "agent.exe"), program).CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}

	shown := regexp.MustCompile("(?ms)^```text\n(.*?)^```$").FindSubmatch(guide)
	if shown == nil {
		t.Fatal("no trace is shown")
	}
	golden := must.Get(os.ReadFile(filepath.Join("testdata", "trace.txt")))(t)
	if diff := cmp.Diff(shape(string(golden)), string(shown[1])); diff != "" {
		t.Errorf("not the trace of the test (-want +got):\n%s", diff)
	}
}
