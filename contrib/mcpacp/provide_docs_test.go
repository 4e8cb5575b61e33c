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

// The program of the guide for clients compiles, and the tests that its table names are there.
func TestGuideForClients(t *testing.T) {
	tier.Need(t, tier.Normal)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, guide, found := strings.Cut(string(page), "## For clients\n")
	if !found {
		t.Fatal("no guide for clients")
	}
	guide, _, _ = strings.Cut(guide, "\n## ")
	programs := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(guide, -1)
	if len(programs) == 0 {
		t.Error("no program")
	}
	for i, program := range programs {
		dir := t.TempDir()
		file := filepath.Join(dir, fmt.Sprint("program", i, ".go"))
		if err := os.WriteFile(file, []byte(program[1]), 0o600); err != nil {
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
	for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(guide, -1) {
		if !strings.Contains(tests.String(), "func "+name+"(") {
			t.Errorf("no test %s", name)
		}
	}
}
