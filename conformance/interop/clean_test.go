package interop

// The clean recordings of processes, which the judge's tests read. The flag -update writes them again. They are
// different each time, so the tests do not compare them; their messages are validated when they are made.

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "rewrite the clean recordings of processes")

// cleanRoot replaces the working folder in recordings.
const cleanRoot = "/home/ada/shop"

// chance and times match the parts that differ each time: ids, which are replaced by numbers, and times.
var (
	chance = regexp.MustCompile(`\b([a-z]+_)?([A-Z2-7]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// provoked are texts of requests that the tests send to provoke an error. The requests and their answers are not kept.
var provoked = []string{"anybody?", `"icy"`}

// keepClean writes messages as the clean recording with the given name if -update is set.
func keepClean(t *testing.T, name, root string, messages []conformance.Message) {
	t.Helper()
	if !*update {
		return
	}
	ids := map[string]string{}
	var kept conformance.Recording
	refused := map[string]bool{} // the ids of the client's requests that were provoked
	for _, m := range messages {
		var id struct{ ID json.RawMessage }
		if err := json.Unmarshal(m.Line, &id); err != nil {
			t.Fatal(err)
		}
		if m.Direction == conformance.ToAgent && slices.ContainsFunc(provoked, func(text string) bool { return strings.Contains(string(m.Line), text) }) {
			refused[string(id.ID)] = true
			continue
		}
		if m.Direction == conformance.ToClient && refused[string(id.ID)] && strings.Contains(string(m.Line), `"error"`) {
			continue
		}
		line := strings.ReplaceAll(string(m.Line), root, cleanRoot)
		line = times.ReplaceAllString(line, "2026-08-22T10:00:00Z")
		line = chance.ReplaceAllStringFunc(line, func(id string) string {
			if ids[id] == "" {
				kind, _, ok := strings.Cut(id, "_")
				if !ok {
					kind = "id"
				}
				ids[id] = fmt.Sprintf("%s_%d", kind, len(ids)+1)
			}
			return ids[id]
		})
		m.Line, m.Time = []byte(line), time.Time{} // times would change the file each time
		kept.Add(m)
	}
	file, err := os.Create(filepath.Join("..", "testdata", "clean", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := recording.WriteAll(file, recording.Header{Date: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, &kept, nil); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// TestExampleProcesses runs the example client with the example agent, and the clients and agents for both versions
// with each other, as processes with a relay between them. The examples' own tests run them together in every tier.
func TestExampleProcesses(t *testing.T) {
	tier.Need(t, tier.Full)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const script = `allow: plan, think, read greeting.txt, edit greeting.txt and run ` + "`cat greeting.txt`" + `
reject: permission
allow: form, link, mode, notice, compact and fail
allow: max_tokens
allow: refuse
cancel: Write a very long story.
allow: plan
`
	for _, test := range []struct {
		name          string
		client, agent string
		flags         func(t *testing.T) []string // of the agent
		schema        *conformance.Schema
	}{
		{"v1-examples", "client", "agent", func(t *testing.T) []string { return []string{"-state", t.TempDir()} }, conformance.V1()},
		{"n2-dual", "dual/client", "dual/agent", nil, conformance.Negotiated(conformance.V1(), conformance.V2())},
		{"n1-dual", "dual/client", "agent", func(t *testing.T) []string { return []string{"-state", t.TempDir()} }, conformance.Negotiated(conformance.V1(), conformance.V2())},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := greetingRoot(t)
			trace := filepath.Join(t.TempDir(), "trace.jsonl")
			agent := []string{self, build(t, test.agent)}
			if test.flags != nil {
				agent = append(agent, test.flags(t)...)
			}
			var args []string
			if test.client == "client" {
				path := filepath.Join(t.TempDir(), "script")
				if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
					t.Fatal(err)
				}
				args = []string{"-root", root, "-script", path, "--"}
			} else {
				args = []string{"allow: What is there?", "And now?", "cancel: Write a very long story.", "--"}
			}
			client := exec.CommandContext(t.Context(), build(t, test.client), append(args, agent...)...)
			client.Dir = root
			client.Env = append(os.Environ(), traceVariable+"="+trace)
			if out, err := client.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			keepClean(t, test.name, root, validate(t, trace, test.schema))
		})
	}
}
