package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gen/emit"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

const schemaText = `{"$defs":{"Thing":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}`

// acpgen runs the command and returns its exit status and output.
func acpgen(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(args, &stdout, &stderr)
	return status, stdout.String() + stderr.String()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
}

// contents returns the names and texts of the files in a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[filepath.Base(path)] = string(text)
		return err
	}))
	return out
}

func TestGenerateAndCheck(t *testing.T) {
	dir := t.TempDir()
	schema, out := filepath.Join(dir, "schema.json"), filepath.Join(dir, "pkg")
	writeFile(t, schema, schemaText)
	args := []string{"-schema", schema, "-package", "pkg", "-out", out}
	check := append([]string{"-check"}, args...)

	if status, text := acpgen(t, check...); status != differs || !strings.Contains(text, "types_gen.go: missing") {
		t.Errorf("check before: %d, %s", status, text)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("-check made a folder")
	}
	if status, text := acpgen(t, args...); status != ok {
		t.Fatalf("generate: %d, %s", status, text)
	}
	generated := contents(t, out)
	if text := generated["doc_gen.go"]; !strings.Contains(text, "// Package pkg holds the types and methods that schema.json describes") {
		t.Errorf("the package comment: %s", text)
	}
	if status, text := acpgen(t, check...); status != ok || text != "" {
		t.Errorf("check after: %d, %s", status, text)
	}

	types := filepath.Join(out, "types_gen.go")
	writeFile(t, types, strings.Replace(generated["types_gen.go"], "Name", "Nome", 1))
	writeFile(t, filepath.Join(out, "old_gen.go"), emit.Header+"\n\npackage pkg\n")
	writeFile(t, filepath.Join(out, "mine_gen.go"), "package pkg\n")
	status, text := acpgen(t, check...)
	want := types + ": differs\n" + filepath.Join(out, "old_gen.go") + ": stale\n"
	if status != differs || text != want {
		t.Errorf("check of changed files: got %d and\n%s\nwant %d and\n%s", status, text, differs, want)
	}
	unchanged := filepath.Join(out, "json_gen.go")
	before := must.Get(os.Stat(unchanged))(t)
	if status, text := acpgen(t, args...); status != ok {
		t.Fatalf("generate again: %d, %s", status, text)
	}
	if after := must.Get(os.Stat(unchanged))(t); !os.SameFile(before, after) {
		t.Error("a file that was right was written again")
	}
	generated["mine_gen.go"] = "package pkg\n"
	if got := contents(t, out); !maps.Equal(got, generated) {
		t.Errorf("generating again did not restore the files: %v", got)
	}

	// A package comment by hand takes the place of the generated one.
	doc := filepath.Join(out, "doc.go")
	writeFile(t, doc, "// Package pkg is ours.\npackage pkg\n")
	if status, text := acpgen(t, check...); status != differs || text != filepath.Join(out, "doc_gen.go")+": stale\n" {
		t.Errorf("check beside doc.go: got %d and\n%s", status, text)
	}
}

// A command that fails says why and writes nothing, however large the schema or the error is.
func TestNothingIsWrittenOnFailure(t *testing.T) {
	dir := t.TempDir()
	out, versions := filepath.Join(dir, "pkg"), filepath.Join(dir, "schema", "VERSIONS")
	must.Do(t, os.Mkdir(filepath.Dir(versions), 0o777))
	writeFile(t, versions, "schema.json some-package 1.0.0 2026-01-01 "+strings.Repeat("0", 64)+"\n")
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, text)
		return path
	}
	bad := file("bad.json", strings.Replace(schemaText, `"string"`, `"string","contentType":"text/html"`, 1))
	none, unlisted := filepath.Join(dir, "none.json"), file("schema.json", schemaText)
	one := func(schema string, more ...string) []string {
		return append([]string{"-schema", schema, "-package", "pkg", "-out", out}, more...)
	}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"bad schema", one(bad), "bad.json: /$defs/Thing/properties/name/contentType: unknown keyword"},
		{"no schema", one(none), "none.json"},
		{"a directory", one(dir), dir},
		{"too large", one(file("large.json", strings.Repeat(" ", tier.Pick(17, 17, 100, 100)<<20))), "larger than 16 MiB"},
		{"a long name", one(file("name.json", `{"$defs":{"A":{"properties":{"`+strings.Repeat("é", 1_000_000)+`":{"nosuch":1}}}}}`)), "é … "},
		{"many problems", one(file("many.json", `{"$defs":{"A":{"anyOf":[`+strings.Repeat(`{"nosuch":1},`, 10_000)+`true]}}}`)), "acpgen: 9000 more problems\n"},
		{"no schema named", []string{"-package", "pkg"}, "-schema and -package must be used together"},
		{"both forms", one(unlisted, "-root", dir), "-schema and -package must be used together, and without -root"},
		{"arguments", []string{"schema.json"}, "unexpected arguments"},
		{"unlisted schema", one(unlisted, "-versions", versions), "no listed schema has the digest"},
		{"unknown protocol", one(unlisted, "-protocol", "v9"), `unknown protocol "v9"`},
		{"stale decision", one(unlisted, "-protocol", "v1"), "is not used"},
		{"unknown flag", []string{"-nope"}, "flag provided but not defined"},
		{"no versions", []string{"-root", filepath.Dir(versions)}, "VERSIONS"},
		{"unlisted schema of a repository", []string{"-root", dir}, "schema.json: no listed schema has the digest"},
		{"one schema to compare", []string{"-api", unlisted}, "-api takes two schema files"},
		{"comparing and checking", []string{"-api", "-check", unlisted, unlisted}, "-api takes two schema files"},
		{"no old schema", []string{"-api", none, unlisted}, "none.json"},
		{"bad new schema", []string{"-api", unlisted, bad}, "bad.json: /$defs/Thing/properties/name/contentType: unknown keyword"},
		{"JSON of no report", []string{"-json", unlisted, unlisted}, "-json needs -api"},
		{"no runtime", []string{"-api", "-runtime", "example.com/none", unlisted, unlisted}, "example.com/none/acp/rpc"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.args[0] == "-api" {
				tier.Need(t, tier.Normal) // it lists and loads the packages of the library
			}
			status, text := acpgen(t, test.args...)
			if status != failed || !strings.Contains(text, test.want) || len(text) > 400_000 {
				t.Errorf("got %d and %.1000q, want %d and %q", status, text, failed, test.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestCompare(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	old, same, wider, narrower := filepath.Join(dir, "old.json"), filepath.Join(dir, "same.json"), filepath.Join(dir, "wider.json"), filepath.Join(dir, "narrower.json")
	writeFile(t, old, schemaText)
	writeFile(t, same, schemaText+"\n")
	writeFile(t, wider, strings.Replace(schemaText, `"properties":{`, `"properties":{"size":{"type":"boolean"},`, 1))
	writeFile(t, narrower, strings.Replace(schemaText, "name", "title", 2))
	tests := []struct {
		new    string
		status int
		want   string
	}{
		{same, ok, "Nothing changes for programs.\n"},
		{wider, ok, "## Added (1)\n\n- `Thing.Size`: new field `codec.Opt[bool]`\n"},
		{narrower, differs, "## Breaking (1)\n\n- `Thing.Name`: field `string` is gone\n"},
	}
	for _, test := range tests {
		t.Run(filepath.Base(test.new), func(t *testing.T) {
			status, text := acpgen(t, "-api", old, test.new)
			head := "# API changes from " + filepath.ToSlash(old) + " to " + filepath.ToSlash(test.new) + "\n\n"
			if status != test.status || !strings.HasPrefix(text, head+test.want) {
				t.Errorf("got %d and\n%s\nwant %d and\n%s", status, text, test.status, head+test.want)
			}
		})
	}

	// Tools read the report as JSON.
	status, text := acpgen(t, "-api", "-json", old, narrower)
	var reports []struct {
		Old, New string
		Breaks   bool
		Changes  []struct{ Level, Subject, Text string }
	}
	if err := json.Unmarshal([]byte(text), &reports); err != nil || status != differs || len(reports) != 1 {
		t.Fatalf("got %d and %s, %v", status, text, err)
	}
	if r := reports[0]; !r.Breaks || len(r.Changes) != 2 || r.Changes[0].Level != "breaking" || r.Changes[0].Subject != "Thing.Name" || r.New != filepath.ToSlash(narrower) {
		t.Errorf("got %+v", r)
	}
	if status, text := acpgen(t, "-help"); status != ok || !strings.Contains(text, "acpgen -api [-json]") || !strings.Contains(text, "-overrides file") {
		t.Errorf("got %d and %s", status, text)
	}
}

// Two folders are compared package by package, and named by their releases.
func TestCompareFolders(t *testing.T) {
	tier.Need(t, tier.Normal)
	old := t.TempDir()
	text := must.Get(os.ReadFile("../../schema.json"))(t)
	text = bytes.Replace(text, []byte(`"cwd"`), []byte(`"dir"`), -1)
	writeFile(t, filepath.Join(old, "schema.json"), string(text))
	must.Do(t, os.Mkdir(filepath.Join(old, "schema"), 0o777))
	writeFile(t, filepath.Join(old, "schema", "VERSIONS"), fmt.Sprintf("schema.json some-package 1.2.3 2026-01-01 %x\n", sha256.Sum256(text)))
	status, out := acpgen(t, "-api", old, "../..")
	for _, want := range []string{
		"# API changes from schema.json of some-package 1.2.3 to schema.json of @agentclientprotocol/sdk ",
		"\n- `NewSessionRequest.Dir`: field `string` is gone\n",
		"\n- `NewSessionRequest.Cwd`: new field `string`; the member must be there",
	} {
		if status != differs || !strings.Contains(out, want) {
			t.Errorf("got %d and\n%s\nwant %d and %q", status, out, differs, want)
		}
	}
}

// The files of this repository are what the schemas give.
func TestRepositoryIsGenerated(t *testing.T) {
	tier.Need(t, tier.Normal)
	if status, text := acpgen(t, "-check"); status != ok {
		t.Errorf("exit status %d\n%s", status, text)
	}
}
