// Package schema_test tests the script that brings the schemas.
package schema_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// fetch runs fetch.sh and returns what it prints.
func fetch(t *testing.T, source, dir string, env ...string) (string, error) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: no sh")
	}
	cmd := exec.Command(sh, "fetch.sh", source, dir)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// write writes files of a folder, by their paths.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must.Do(t, os.WriteFile(path, []byte(text), 0o666))
	}
}

// listed reads schema/VERSIONS in dir, and checks its digests. It returns the rows without them.
func listed(t *testing.T, dir string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(dir, "schema", "VERSIONS")))(t)
	versions := must.Get(gen.ParseVersions(string(text)))(t)
	var rows strings.Builder
	for _, v := range versions {
		data := must.Get(os.ReadFile(filepath.Join(dir, filepath.FromSlash(v.Path))))(t)
		if sum := fmt.Sprintf("%x", sha256.Sum256(data)); sum != v.SHA256 {
			t.Errorf("%s has the digest %s, listed is %s", v.Path, sum, v.SHA256)
		}
		fmt.Fprintf(&rows, "%s %s %s %s %q %s\n", v.Path, v.Package, v.Version, v.Date, v.Release, data)
	}
	return rows.String()
}

// Each kind of folder and archive, one after the other into the same place.
func TestFetchLocal(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir, to := t.TempDir(), t.TempDir()
	flat := func(n int, stable, unstable string) map[string]string {
		return map[string]string{
			"schema.json": stable, "schema.unstable.json": unstable, "meta.json": fmt.Sprintf("{\n  \"version\": %d,\n  \"a\": {}\n}\n", n),
		}
	}
	all := map[string]string{
		"schema/v1/schema.json": "a1", "schema/v1/schema.unstable.json": "a2",
		"schema/v2/schema.json": "a3", "schema/v2/schema.unstable.json": "a4",
	}
	write(t, filepath.Join(dir, "npm", "package"), all)
	write(t, filepath.Join(dir, "npm", "package"), map[string]string{"package.json": "{\n  \"name\": \"@agentclientprotocol/sdk\",\n  \"version\": \"3.0.0\"\n}\n"})
	write(t, filepath.Join(dir, "schema-v1.2.0"), flat(1, "a1", "b2"))
	write(t, filepath.Join(dir, "two"), flat(2, "c3", "c4"))
	tree := filepath.Join(dir, "tree", "agent-client-protocol-schema-v1.3.0")
	write(t, tree, all)
	write(t, tree, map[string]string{"schema/v1/schema.json": "d1", "schema/v1/CHANGELOG.md": "# Changelog\n\n## [1.3.0](https://example.com) - 2026-01-03\n\n## [1.2.0](https://example.com) - 2026-01-02\n"})
	archive := func(folder, name string) string {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("tar", "-czf", path, "-C", filepath.Join(dir, folder), ".").CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: tar: %v: %s", err, out)
		}
		return path
	}

	const repository = "agentclientprotocol/agent-client-protocol"
	for _, step := range []struct {
		name, source string
		env          []string
		want         string
	}{
		{"npm's archive", archive("npm", "sdk-3.0.0.tgz"), nil, `schema.json @agentclientprotocol/sdk 3.0.0 - "" a1
schema/v1.unstable.json @agentclientprotocol/sdk 3.0.0 - "" a2
schema/v2.json @agentclientprotocol/sdk 3.0.0 - "" a3
schema/v2.unstable.json @agentclientprotocol/sdk 3.0.0 - "" a4
`},
		{"a release's files, of which one is here", filepath.Join(dir, "schema-v1.2.0"), []string{"DATE=2026-01-02"},
			`schema.json @agentclientprotocol/sdk 3.0.0 - "schema-v1.2.0" a1
schema/v1.unstable.json ` + repository + ` schema-v1.2.0 2026-01-02 "schema-v1.2.0" b2
schema/v2.json @agentclientprotocol/sdk 3.0.0 - "" a3
schema/v2.unstable.json @agentclientprotocol/sdk 3.0.0 - "" a4
`},
		{"npm's folder again", filepath.Join(dir, "npm", "package"), []string{"DATE=2026-01-09"},
			`schema.json @agentclientprotocol/sdk 3.0.0 2026-01-09 "schema-v1.2.0" a1
schema/v1.unstable.json @agentclientprotocol/sdk 3.0.0 2026-01-09 "" a2
schema/v2.json @agentclientprotocol/sdk 3.0.0 2026-01-09 "" a3
schema/v2.unstable.json @agentclientprotocol/sdk 3.0.0 2026-01-09 "" a4
`},
		{"a named release of version 2", filepath.Join(dir, "two"), []string{"RELEASE=schema-v2.0.0-alpha.1"},
			`schema.json @agentclientprotocol/sdk 3.0.0 2026-01-09 "schema-v1.2.0" a1
schema/v1.unstable.json @agentclientprotocol/sdk 3.0.0 2026-01-09 "" a2
schema/v2.json ` + repository + ` schema-v2.0.0-alpha.1 - "schema-v2.0.0-alpha.1" c3
schema/v2.unstable.json ` + repository + ` schema-v2.0.0-alpha.1 - "schema-v2.0.0-alpha.1" c4
`},
		{"the repository's source", archive("tree", "agent-client-protocol-schema-v1.3.0.tar.gz"), nil,
			`schema.json ` + repository + ` schema-v1.3.0 2026-01-03 "schema-v1.3.0" d1
schema/v1.unstable.json @agentclientprotocol/sdk 3.0.0 2026-01-09 "schema-v1.3.0" a2
schema/v2.json ` + repository + ` schema-v1.3.0 2026-01-03 "" a3
schema/v2.unstable.json ` + repository + ` schema-v1.3.0 2026-01-03 "" a4
`},
	} {
		out, err := fetch(t, step.source, to, step.env...)
		if got := listed(t, to); err != nil || got != step.want {
			t.Fatalf("%s: %v: %s\ngot\n%s\nwant\n%s", step.name, err, out, got, step.want)
		}
	}
}

// What is no source is refused, and nothing changes.
func TestFetchRefuses(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{
		"text":                       "text",
		"empty/README.md":            "",
		"unknown/schema.json":        "a1",
		"name/schema/v1/schema.json": "a1",
		"name/package.json":          `{"name": "a b", "version": "1"}`,
		"part/schema/v1/schema.json": "a1",
		"part/package.json":          `{"name": "@agentclientprotocol/sdk", "version": "1.0.0"}`,
	})
	for source, want := range map[string]string{
		"absent":  "is no version, no folder and no archive",
		"text":    "is no .tar.gz",
		"empty":   "empty has no schemas",
		"unknown": "must say which version of the protocol unknown/schema.json describes",
		"name":    "other characters than letters",
		"part":    "1 of the four schemas",
	} {
		out, err := fetch(t, filepath.Join(dir, source), to)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: got %v, %q, want %q", source, err, out, want)
		}
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v, want an empty folder", left, err)
	}
}
