package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gen/emit"
	"github.com/acpgo/sdk/internal/test/must"
)

// A file that somebody wrote is not replaced, whatever its name, and nothing else is written then.
func TestHandWrittenFilesStay(t *testing.T) {
	dir := t.TempDir()
	schema, out := filepath.Join(dir, "schema.json"), filepath.Join(dir, "pkg")
	writeFile(t, schema, schemaText)
	must.Do(t, os.Mkdir(out, 0o777))
	for _, mine := range []string{
		"package pkg\n",
		"",
		"\n" + emit.Header + "\npackage pkg\n",
		emit.Header + " But I did.\npackage pkg\n",
	} {
		writeFile(t, filepath.Join(out, "types_gen.go"), mine)
		writeFile(t, filepath.Join(out, "json_gen.go"), "package pkg // mine\n")
		writeFile(t, filepath.Join(out, "old_gen.go"), emit.Header+"\n\npackage pkg\n")
		before := contents(t, out)
		for _, args := range [][]string{nil, {"-check"}} {
			status, text := acpgen(t, append(args, "-schema", schema, "-package", "pkg", "-out", out)...)
			for _, name := range []string{"types_gen.go", "json_gen.go"} {
				if want := filepath.Join(out, name) + " was not written by acpgen, which needs that file name: rename the file\n"; status != failed || !strings.Contains(text, want) {
					t.Errorf("got %d and %s, want %d and %s", status, text, failed, want)
				}
			}
			if after := contents(t, out); !maps.Equal(before, after) {
				t.Errorf("the folder was changed: %q", after)
			}
		}
	}
	must.Do(t, os.RemoveAll(out))
	must.Do(t, os.MkdirAll(filepath.Join(out, "types_gen.go"), 0o777))
	if status, text := acpgen(t, "-schema", schema, "-package", "pkg", "-out", out); status != failed || !strings.Contains(text, "types_gen.go") {
		t.Errorf("a folder of that name: %d, %s", status, text)
	}
}

// A file that cannot be replaced is reported, and nothing else is left behind. A second run makes the rest.
func TestAFileFails(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "pkg")
	changed := []change{
		{filepath.Join(out, "a_gen.go"), []byte("a"), "missing"},
		{filepath.Join(out, "b_gen.go"), []byte("b"), "missing"},
	}
	blocked := filepath.Join(out, "b_gen.go", "file")
	must.Do(t, os.MkdirAll(blocked, 0o777))
	if err := apply(changed); err == nil || !strings.Contains(err.Error(), "b_gen.go") {
		t.Errorf("got %v", err)
	}
	must.Do(t, os.RemoveAll(filepath.Join(out, "b_gen.go")))
	if got := contents(t, out); !maps.Equal(got, map[string]string{"a_gen.go": "a"}) {
		t.Errorf("got %q", got)
	}
	must.Do(t, apply(changed))
	must.Do(t, apply([]change{{filepath.Join(out, "a_gen.go"), nil, "stale"}}))
	if got := contents(t, out); !maps.Equal(got, map[string]string{"b_gen.go": "b"}) {
		t.Errorf("got %q", got)
	}
}

// A text on the command line that cannot be Go is refused in a line, or shown.
func TestHostileArguments(t *testing.T) {
	dir := t.TempDir()
	schema := filepath.Join(dir, "a\n}func init() {}\n\x1b[31m.json")
	if err := os.WriteFile(schema, []byte(schemaText), 0o644); err != nil {
		t.Skipf("the system does not have such names: %v", err)
	}
	for _, args := range [][]string{
		{"-package", "a b"}, {"-package", "a\nimport \"C\""}, {"-package", "func"}, {"-package", "_"}, {"-package", "p", "-runtime", "x\"\n"},
		{"-package", "p", "-runtime", ""}, {"-package", "p", "-overrides", filepath.Join(dir, "none\x1b")}, {"-package", "p", "-protocol", "\n"},
	} {
		out := filepath.Join(dir, "out")
		status, text := acpgen(t, append(args, "-schema", schema, "-out", out)...)
		if status != failed || strings.Count(text, "\n") != 1 || strings.Contains(text, "\x1b") {
			t.Errorf("%q: got %d and %q", args, status, text)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: something was written", args)
		}
	}
	if status, text := acpgen(t, "-package", "p", "-schema", schema, "-out", filepath.Join(dir, "out")); status != ok {
		t.Errorf("got %d and %s", status, text)
	}
	for name, text := range contents(t, filepath.Join(dir, "out")) {
		if strings.Contains(text, "func init") && !strings.Contains(text, `// Schema: a }func init() {} \x1b[31m.json, sha256 `) || strings.Contains(text, "\n}func") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
