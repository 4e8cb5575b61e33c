// Package repo_test tests the promises of the repository as a whole: the exports and imports of each package, the
// contents of the documents, and that connections in tests are judged.
package repo_test

import (
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// All paths are from the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// TestServers: no HTTP server keeps connections that say nothing. Those of tests and of the probe end with a scenario.
func TestServers(t *testing.T) {
	literal := regexp.MustCompile(`http\.Server\{(?:[^{}]|\{[^{}]*\})*`)
	found := 0
	walkTree(t, func(path string) {
		path = filepath.ToSlash(path)
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/test/") || strings.HasPrefix(path, "conformance/probe/") {
			return
		}
		text := must.Get(os.ReadFile(path))(t)
		for _, server := range literal.FindAllString(string(text), -1) {
			found++
			if !strings.Contains(server, "ReadHeaderTimeout:") || !strings.Contains(server, "IdleTimeout:") {
				t.Errorf("%s: %.200s… has no ReadHeaderTimeout or no IdleTimeout", path, server)
			}
		}
	})
	if found < 5 {
		t.Errorf("%d servers were found", found)
	}
}
