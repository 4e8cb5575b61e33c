package mcpacp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The programs of the guide compile.
func TestGuide(t *testing.T) {
	tier.Need(t, tier.Normal)
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "mcp.md")))(t)
	programs := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(page, -1)
	if len(programs) == 0 {
		t.Error("no programs")
	}
	for i, program := range programs {
		dir := t.TempDir()
		file := filepath.Join(dir, fmt.Sprint("program", i, ".go"))
		must.Do(t, os.WriteFile(file, program[1], 0o600))
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "program.exe"), file).CombinedOutput(); err != nil {
			t.Errorf("go build: %v\n%s", err, out)
		}
	}
}
