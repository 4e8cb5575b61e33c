package main

import (
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "replace the recordings in testdata by those of this run")

// A script uses the agent with acp exec, which records the conversations. The judge finds nothing in the recordings, nor in those of
// testdata.
func TestExec(t *testing.T) {
	tier.Need(t, tier.Full)
	program := buildtest.Program(t, "../../cmd/acp")
	server := httptest.NewServer(modelstub.New(&modelstub.Options{Strict: true}))
	defer server.Close()
	dir, state := t.TempDir(), t.TempDir()
	agent := command(t, "openai", server.URL, state)
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("the notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	acp := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = dir, append(agent.Env, "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		recording := filepath.Join(state, name)
		out := acp(slices.Concat([]string{"exec", "--record", recording}, args, []string{"--"}, agent.Args)...)
		stored, err := filepath.Abs(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			text, err := os.ReadFile(recording)
			if err != nil {
				t.Fatal(err)
			}
			places := strings.NewReplacer(dir, "/home/ada/project", agent.Args[0], "coder", state, "/home/ada/.coder")
			if err := os.WriteFile(stored, []byte(places.Replace(string(text))), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		acp("check", "--level", "advice", recording)
		acp("check", "--level", "advice", stored)
		return out
	}
	if out := run("read.jsonl", "read the file notes.txt"); !strings.Contains(out, "The file says: the notes") {
		t.Errorf("acp exec printed %s", out)
	}
	run("edit.jsonl", "--allow", `edit the file notes.txt and append the line "the end"`)
	if text, err := os.ReadFile(notes); string(text) != "the notes\nthe end" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
