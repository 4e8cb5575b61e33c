package main

import (
	"bytes"
	"crypto/sha256"
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
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[filepath.Base(path)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
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

func TestNothingIsWrittenOnFailure(t *testing.T) {
	dir := t.TempDir()
	bad, unlisted, versions := filepath.Join(dir, "bad.json"), filepath.Join(dir, "schema.json"), filepath.Join(dir, "VERSIONS")
	writeFile(t, bad, strings.Replace(schemaText, `"string"`, `"string","contentType":"text/html"`, 1))
	writeFile(t, unlisted, schemaText)
	writeFile(t, versions, "schema.json some-package 1.0.0 2026-01-01 "+strings.Repeat("0", 64)+"\n")
	out := filepath.Join(dir, "pkg")
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"bad schema", []string{"-schema", bad, "-package", "pkg", "-out", out}, "bad.json: /$defs/Thing/properties/name/contentType: unknown keyword"},
		{"no schema", []string{"-schema", filepath.Join(dir, "none.json"), "-package", "pkg", "-out", out}, "none.json"},
		{"no schema named", []string{"-package", "pkg"}, "-schema and -package must be used together"},
		{"both forms", []string{"-package", "pkg", "-schema", unlisted, "-root", dir}, "-schema and -package must be used together, and without -root"},
		{"arguments", []string{"schema.json"}, "unexpected arguments"},
		{"unlisted schema", []string{"-schema", unlisted, "-package", "pkg", "-out", out, "-versions", versions}, "no listed schema has the digest"},
		{"unknown protocol", []string{"-schema", unlisted, "-package", "pkg", "-out", out, "-protocol", "v9"}, `unknown protocol "v9"`},
		{"stale decision", []string{"-schema", unlisted, "-package", "pkg", "-out", out, "-protocol", "v1"}, "is not used"},
		{"unknown flag", []string{"-nope"}, "flag provided but not defined"},
		{"no versions", []string{"-root", dir}, "VERSIONS"},
		{"one schema to compare", []string{"-api", unlisted}, "-api takes two schema files"},
		{"comparing and checking", []string{"-api", "-check", unlisted, unlisted}, "-api takes two schema files"},
		{"no old schema", []string{"-api", filepath.Join(dir, "none.json"), unlisted}, "none.json"},
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
			if status != failed || !strings.Contains(text, test.want) {
				t.Errorf("got %d and %q, want %d and %q", status, text, failed, test.want)
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

// A refused schema makes the command say where, fail, and write nothing, however large it or the error is.
func TestRefusedSchemas(t *testing.T) {
	dir := t.TempDir()
	schema, out := filepath.Join(dir, "schema.json"), filepath.Join(dir, "pkg")
	refused := func(t *testing.T, text, want string) {
		t.Helper()
		writeFile(t, schema, text)
		status, got := acpgen(t, "-schema", schema, "-package", "pkg", "-out", out)
		if status != failed || !strings.Contains(got, want) || len(got) > 400_000 {
			t.Errorf("got %d and %.1000q, want %d and %q", status, got, failed, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("something was written")
		}
	}
	t.Run("too large", func(t *testing.T) {
		refused(t, strings.Repeat(" ", tier.Pick(17, 17, 100, 100)<<20), "larger than 16 MiB")
	})
	t.Run("10,000 levels", func(t *testing.T) {
		refused(t, `{"$defs":{"A":`+strings.Repeat(`{"items":`, 10_000)+`true`+strings.Repeat(`}`, 10_000)+`}}`, "/items/items: not read: schemas nested deeper than 100 levels")
	})
	t.Run("a long name", func(t *testing.T) {
		refused(t, `{"$defs":{"A":{"properties":{"`+strings.Repeat("é", 1_000_000)+`":{"nosuch":1}}}}}`, "é … ")
	})
	t.Run("many problems", func(t *testing.T) {
		refused(t, `{"$defs":{"A":{"anyOf":[`+strings.Repeat(`{"nosuch":1},`, 10_000)+`true]}}}`, "acpgen: 9000 more problems\n")
	})
	t.Run("empty", func(t *testing.T) { refused(t, "", "not JSON: unexpected EOF") })
	t.Run("a directory", func(t *testing.T) {
		if status, got := acpgen(t, "-schema", dir, "-package", "pkg", "-out", out); status != failed {
			t.Errorf("got %d and %q", status, got)
		}
	})
	t.Run("not UTF-8", func(t *testing.T) { refused(t, "{\"$defs\":{\"A\xff\":{\"type\":\"object\"}}}", "UTF-8") })
}

// The files of this repository are what the schemas give, and -check notices when one is changed.
func TestRepositoryIsGenerated(t *testing.T) {
	tier.Need(t, tier.Normal)
	if status, text := acpgen(t, "-check"); status != ok {
		t.Errorf("exit status %d\n%s", status, text)
	}
	tier.Need(t, tier.Full) // what follows generates three times more; TestGenerateAndCheck has it for one package

	root := t.TempDir()
	must.Do(t, os.CopyFS(filepath.Join(root, "schema"), os.DirFS(filepath.Join("..", "..", "schema"))))
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "schema.json")))(t)
	writeFile(t, filepath.Join(root, "schema.json"), string(text))
	if status, text := acpgen(t, "-root", root); status != ok {
		t.Fatalf("exit status %d\n%s", status, text)
	}
	if status, text := acpgen(t, "-check", "-root", root); status != ok {
		t.Fatalf("exit status %d\n%s", status, text)
	}
	unions := filepath.Join(root, "acp", "unions_gen.go")
	code := must.Get(os.ReadFile(unions))(t)
	writeFile(t, unions, strings.Replace(string(code), "Variant", "variant", 1))
	if status, text := acpgen(t, "-check", "-root", root); status != differs || text != unions+": differs\n" {
		t.Errorf("exit status %d\n%s", status, text)
	}
	writeFile(t, filepath.Join(root, "schema.json"), string(text)+"\n")
	if status, text := acpgen(t, "-root", root); status != failed || !strings.Contains(text, "schema.json: no listed schema has the digest") {
		t.Errorf("exit status %d\n%s", status, text)
	}
}
