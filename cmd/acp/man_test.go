package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/internal/test/must"
)

// printed returns the output of the program.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := run(&program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}, args); status != statusOK || stderr.Len() > 0 {
		t.Fatalf("%q: %d, %s", args, status, &stderr)
	}
	return stdout.String()
}

// same compares a part of a page with its source.
func same(t *testing.T, name string, part *regexp.Regexp, want string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !*update {
		t.Fatal(err)
	}
	got := part.FindString(string(text))
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the program says; go test . -update writes it", name)
	}
	if got != "" {
		want = strings.Replace(string(text), got, want, 1)
	}
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(t, os.WriteFile(name, []byte(want), 0o644))
}

// TestMan compares docs/reference/acp.1 with the commands, and checks it with man if that is installed.
func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0") // the date in the page
	page := printed(t, "man")
	same(t, "../../docs/reference/acp.1", regexp.MustCompile(`(?s)^.*$`), page)
	for _, want := range []string{`.TH "ACP-AGENTS-INSTALL"`, `\fB--registry-prefer\fP`, "  3  something", `.TH "ACP-CHECK"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, tool := range []string{"mandoc", "groff"} {
		if path, err := exec.LookPath(tool); err == nil {
			args := map[string][]string{"mandoc": {"-T", "lint", "-W", "warning"}, "groff": {"-man", "-ww", "-z", "-Tutf8"}}[tool]
			cmd := exec.CommandContext(t.Context(), path, args...)
			cmd.Stdin = strings.NewReader(page)
			if out, err := cmd.CombinedOutput(); err != nil || tool == "groff" && len(out) > 0 {
				t.Errorf("%s: %v\n%s", tool, err, out)
			}
		}
	}
}

// TestConfigManual compares the table in docs/reference/settings.md with the table of settings.
func TestConfigManual(t *testing.T) {
	same(t, "../../docs/reference/settings.md", regexp.MustCompile(`(?m)^\| key in the file(.*\n)(\|.*\n)+`), manual())
}

// manual returns the list of settings as a Markdown table.
func manual() string {
	var b strings.Builder
	b.WriteString("| key in the file | flag | variable | default | what it is | commands |\n| --- | --- | --- | --- | " +
		"--- | --- |\n")
	for i := range config.Table {
		row := &config.Table[i]
		value := row.Default()
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | `%s` | %s | %s | %s |\n", row.Key, row.Flag(), row.Variable(), value,
			strings.ReplaceAll(strings.ReplaceAll(row.Usage, "`", ""), "|", "\\|"), strings.Join(row.Commands, ", "))
	}
	return b.String()
}
