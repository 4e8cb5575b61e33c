package mcpacp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"
)

// The programs of the guide compile, and the tests that the reference names exist.
func TestGuide(t *testing.T) {
	tier.Need(t, tier.Normal)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(page, -1)
	names := regexp.MustCompile(`\bTest\w+`).FindAllString(string(reference), -1)
	if len(programs) == 0 || len(names) == 0 {
		t.Errorf("%d programs, %d names of tests", len(programs), len(names))
	}
	for i, program := range programs {
		dir := t.TempDir()
		file := filepath.Join(dir, fmt.Sprint("program", i, ".go"))
		if err := os.WriteFile(file, program[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "program.exe"), file).CombinedOutput(); err != nil {
			t.Errorf("go build: %v\n%s", err, out)
		}
	}

	var tests strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name+"(") {
			t.Errorf("no test %s", name)
		}
	}
}
