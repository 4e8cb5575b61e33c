package sdk_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestREADME does what the README says about importing the module, and runs its client against its
// agent.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(programs) != 2 {
		t.Fatalf("%d programs in the README", len(programs))
	}
	setUp := regexp.MustCompile("(?s)```sh\n(go mod edit.*?)```").FindSubmatch(readme)
	if setUp == nil {
		t.Fatal("the README does not say how to import the module")
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(string(setUp[1]), "/path/to/clone", root)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("go", "mod", "init", "example.com/try")
	for i, name := range []string{"agent", "client"} {
		program := programs[i][1]
		if n := strings.Count(program, "\n"); n > 40 {
			t.Errorf("the %s has %d lines", name, n)
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "main.go"), []byte(program), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("sh", "-ec", script)
	run("go", "build", "-o", dir+"/bin/", "./agent", "./client")
	if got, want := run("bin/client", "bin/agent"), "You said: hello\nend_turn\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
