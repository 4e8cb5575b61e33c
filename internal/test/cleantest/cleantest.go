// Package cleantest reads and writes the clean recordings, conformance/testdata/clean, for the tests of several packages. They
// contain the messages between agents and clients that follow the protocol.
package cleantest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
)

// Dir is a folder with recordings. A name is that of a file without its extension.
type Dir string

// Read reads a recording.
func (d Dir) Read(tb testing.TB, name string) []conformance.Message {
	tb.Helper()
	return Recording(tb, d.file(name)).Messages()
}

// Recording reads the recording in a file, which must have no problems.
func Recording(tb testing.TB, path string) *conformance.Recording {
	tb.Helper()
	all, err := recording.ReadAll(bytes.NewReader(must.Get(os.ReadFile(path))(tb)))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return all
}

// Judge judges a conversation that one side ends, or an unknown one if closedBy is 0. A nil schema is that of the version
// that is negotiated.
func Judge(schema *conformance.Schema, messages []conformance.Message, closedBy conformance.Side) []conformance.Finding {
	judge := conformance.NewJudge(schema, nil)
	var findings []conformance.Finding
	for _, m := range messages {
		findings = append(findings, judge.Message(m)...)
	}
	judge.Closed(closedBy)
	return append(findings, judge.End()...)
}

// Entries reads the entries of a recording, which must have no problems.
func Entries(tb testing.TB, from io.Reader) (all []recording.Entry) {
	tb.Helper()
	r := recording.NewReader(from, nil)
	for {
		e, err := r.Read()
		if err == io.EOF {
			return all
		}
		if err != nil || e.Err != nil {
			tb.Fatal(err, e.Err)
		}
		copied := *e
		copied.Line = bytes.Clone(e.Line)
		all = append(all, copied)
	}
}

// Files returns the files that match a pattern, of which there must be some.
func Files(tb testing.TB, pattern ...string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no files %s: %v", filepath.Join(pattern...), err)
	}
	return files
}

func (d Dir) file(name string) string { return filepath.Join(string(d), name+".jsonl") }

// write writes a recording without the times: otherwise each run would change the file.
func (d Dir) write(t *testing.T, name string, messages []conformance.Message) {
	t.Helper()
	var all conformance.Recording
	for _, m := range messages {
		m.Time = time.Time{}
		all.Add(m)
	}
	file := must.Get(os.Create(d.file(name)))(t)
	if err := recording.WriteAll(file, recording.Header{Date: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, &all, nil); err != nil {
		t.Error(err)
	}
	must.Do(t, file.Close())
}

// Keep compares a recording with the file of that name, or writes the file. The messages of each side must be the same,
// in the same order; messages of different sides may cross in different places each time.
func (d Dir) Keep(t *testing.T, name string, said *conformance.Recording, update bool) {
	t.Helper()
	if update {
		d.write(t, name, said.Messages())
		return
	}
	var kept conformance.Recording
	for _, m := range d.Read(t, name) {
		kept.Add(m)
	}
	for _, side := range []conformance.Side{conformance.Client, conformance.Agent} {
		got, want := strings.Split(string(said.Sent(side)), "\n"), strings.Split(string(kept.Sent(side)), "\n")
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("line %d of the %s's (-update rewrites the file)\n got %q\nwant %q",
					i+1, side, got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
			}
		}
	}
}

// cleanRoot replaces the working folder in recordings.
const cleanRoot = "/home/ada/shop"

// chance and times match the parts that differ each time: ids, which are replaced by numbers, and times.
var (
	chance = regexp.MustCompile(`\b([a-z]+_)?([A-Z2-7]{26}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// provoked are texts of requests that the tests send to provoke an error. The requests and their answers are not kept.
var provoked = []string{"anybody?", `"icy"`}

// WriteProcesses writes messages of processes, whose working folder is root. They are different each time, so they cannot
// be compared.
func (d Dir) WriteProcesses(t *testing.T, name, root string, messages []conformance.Message) {
	t.Helper()
	ids := map[string]string{}
	var kept []conformance.Message
	refused := map[string]bool{} // the ids of the client's requests that were provoked
	for _, m := range messages {
		var id struct{ ID json.RawMessage }
		must.Do(t, json.Unmarshal(m.Line, &id))
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
		m.Line = []byte(line)
		kept = append(kept, m)
	}
	d.write(t, name, kept)
}
