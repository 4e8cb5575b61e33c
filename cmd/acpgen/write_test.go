package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gen/emit"
)

// A file that somebody wrote is not replaced, whatever its name, and nothing else is written then.
func TestHandWrittenFilesStay(t *testing.T) {
	dir := t.TempDir()
	schema, out := filepath.Join(dir, "schema.json"), filepath.Join(dir, "pkg")
	writeFile(t, schema, schemaText)
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
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
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(out, "types_gen.go"), 0o777); err != nil {
		t.Fatal(err)
	}
	if status, text := acpgen(t, "-schema", schema, "-package", "pkg", "-out", out); status != failed || !strings.Contains(text, "types_gen.go") {
		t.Errorf("a folder of that name: %d, %s", status, text)
	}
}

// Whichever step fails, everything is as it was, in all folders.
func TestAllOrNothing(t *testing.T) {
	errFull := errors.New("the disk is full")
	for fail := 0; ; fail++ {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "deep", "two")
		if err := os.Mkdir(one, 0o777); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(one, "a_gen.go"), emit.Header+"\n\npackage old\n")
		writeFile(t, filepath.Join(one, "stale_gen.go"), emit.Header+"\n\npackage old\n")
		writeFile(t, filepath.Join(one, "mine.go"), "package old\n")
		before := everything(t, dir)
		file := func(s string) []byte { return []byte(emit.Header + "\n\npackage " + s + "\n") }
		folders := []folder{{one, map[string][]byte{"a_gen.go": file("a"), "b_gen.go": file("b")}}, {two, map[string][]byte{"c_gen.go": file("c"), "d_gen.go": file("d")}}}
		changed, err := changes(folders)
		if err != nil {
			t.Fatal(err)
		}
		step := 0
		err = apply(changed, func(from, to string) error {
			if step++; step > fail {
				return errFull
			}
			return replace(from, to)
		})
		after := everything(t, dir)
		if err == nil {
			want := []string{"deep", "deep/two", "deep/two/c_gen.go", "deep/two/d_gen.go", "one", "one/a_gen.go", "one/b_gen.go", "one/mine.go"}
			if got := slices.Sorted(maps.Keys(after)); !slices.Equal(got, want) || after["one/a_gen.go"] != string(file("a")) {
				t.Errorf("got %q, want %q", got, want)
			}
			if fail < 5 {
				t.Errorf("only %d steps can fail", fail)
			}
			return
		}
		if !errors.Is(err, errFull) || err.Error() != errFull.Error() {
			t.Errorf("step %d: got %v, want %v", fail, err, errFull)
		}
		if !maps.Equal(before, after) {
			t.Errorf("step %d: got %q, want %q", fail, after, before)
		}
	}
}

// everything returns the files and folders below one, with the text of files.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(name)] = ""
		if !d.IsDir() {
			text, err := os.ReadFile(path)
			out[filepath.ToSlash(name)] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
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
