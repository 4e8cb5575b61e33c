package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
)

// example is an entry of the index of the messages in the protocol's documents.
type example struct {
	Name, Group, Kind, Method, Definition, Valid string
	Findings                                     []string
}

// TestExamples judges every message of the protocol's documents: the valid ones have no findings, and each invalid one
// has errors exactly at the places in the index.
func TestExamples(t *testing.T) {
	dir := gentest.Shared(t, "examples")
	text := must.Get(os.ReadFile(filepath.Join(dir, "index.json")))(t)
	var examples []example
	must.Do(t, json.Unmarshal(text, &examples))
	schemas := map[string]*conformance.Schema{
		"v1":   conformance.V1(),
		"seed": conformance.V1(),
		"v2":   conformance.V2(),
	}
	files := map[string]string{"v1": "schema.json", "seed": "schema.json", "v2": "schema/v2.json"}
	counts := map[string]int{}
	for _, e := range examples {
		t.Run(e.Name, func(t *testing.T) {
			counts[e.Group+" "+e.Valid]++
			if slices.Contains(gentest.Before, e.Name) {
				e.Group = "v1"
			}
			text := must.Get(os.ReadFile(filepath.Join(dir, e.Name+".json")))(t)
			var line bytes.Buffer
			must.Do(t, json.Compact(&line, text))
			v := conformance.NewValidator(schemas[e.Group])
			direction := e.direction(t, filepath.Join("..", files[e.Group]))
			if e.Kind == "response" || e.Kind == "error" {
				ask(t, v, direction, e.Method, text)
			}
			e.compare(t, v.Message(direction, line.Bytes()))
		})
	}
	for _, group := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%d examples: %s", counts[group], group)
	}
}

// direction returns the direction of the message, from the side that handles its method.
func (e example) direction(t *testing.T, schema string) conformance.Direction {
	t.Helper()
	text := must.Get(os.ReadFile(schema))(t)
	toClient := gentest.DefinitionsOf(t, string(text))[e.Definition].Side == "client"
	if e.Kind == "response" || e.Kind == "error" {
		toClient = !toClient
	}
	if toClient {
		return conformance.ToClient
	}
	return conformance.ToAgent
}

// ask lets the validator see the request that a response answers.
func ask(t *testing.T, v *conformance.Validator, answer conformance.Direction, method string, response []byte) {
	t.Helper()
	var m struct{ ID json.RawMessage }
	must.Do(t, json.Unmarshal(response, &m))
	direction := conformance.ToAgent
	if answer == conformance.ToAgent {
		direction = conformance.ToClient
	}
	v.Message(direction, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q}`, m.ID, method))
}

func (e example) compare(t *testing.T, findings []conformance.Finding) {
	t.Helper()
	var errors, warnings []string
	for _, f := range findings {
		if f.Rule != "EXT-2" {
			errors = append(errors, f.Pointer)
		} else {
			warnings = append(warnings, f.Pointer)
		}
	}
	var want []string
	for _, f := range e.Findings {
		pointer, reason, _ := strings.Cut(f, ": ")
		if !strings.HasPrefix(reason, "matches none") { // explains the one that follows it
			want = append(want, strings.TrimSuffix(pointer, "/"))
		}
	}
	// If the index names a value whose tag is wrong, the finding may name the tag itself.
	same := func(got, want string) bool { return got == want || strings.HasPrefix(got, want+"/") }
	if !slices.EqualFunc(errors, want, same) {
		t.Errorf("got %v, want errors at %q", findings, want)
	}
	if unknown := e.Valid == "ok-unknown-fields"; len(errors) == 0 && unknown != (len(warnings) > 0) {
		t.Errorf("got %v, want unknown members: %v", findings, unknown)
	}
}

// TestTraces judges recordings of real agents. They break no rule of the schema. The only unknown members that they
// send belong to its unstable features and older versions, and the complete list is here.
func TestTraces(t *testing.T) {
	known := map[string]string{
		`initialize: /agentCapabilities/providers`:                        "unstable: providers/*",
		`initialize: /agentCapabilities/sessionCapabilities/fork`:         "unstable: session/fork",
		`initialize: /agentCapabilities/sessionCapabilities/systemPrompt`: "unstable: systemPrompt of a session",
		`session/prompt: /usage`:                                          "unstable: tokens of a turn",
		`session/new: /models`:                                            "older: before models became a config option",
	}
	files := cleantest.Files(t, gentest.Shared(t, "traces"), "*", "*.jsonl")
	messages, warnings, seen := 0, 0, map[string]bool{}
	for _, file := range files {
		v := conformance.NewValidator(conformance.V1())
		for _, m := range cleantest.Recording(t, file).Messages() {
			messages++
			for _, f := range v.Message(m.Direction, m.Line) {
				place := f.Method + ": " + f.Pointer
				if f.Rule == "EXT-2" && f.Kind == conformance.Response && known[place] != "" {
					warnings++
					seen[place] = true
					continue
				}
				t.Errorf("%s: %s", file, f)
			}
		}
	}
	for place, why := range known {
		if !seen[place] {
			t.Errorf("no trace has %s (%s) any more", place, why)
		}
	}
	t.Logf("%d messages of %d traces, %d unknown members", messages, len(files), warnings)
}

// TestPublishedSchemas reads every published schema that marks its methods, and compiles all of the newer ones, which
// are those of the TypeScript SDK.
func TestPublishedSchemas(t *testing.T) {
	files := cleantest.Files(t, gentest.Shared(t, "schemas"), "*", "schema.json")
	read, compiled := 0, 0
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		if !bytes.Contains(text, []byte(`"x-method"`)) {
			continue
		}
		read++
		name := filepath.Base(filepath.Dir(file))
		if strings.HasPrefix(name, "npm-sdk-") {
			compiled++
			t.Run(name, func(t *testing.T) { compileAll(t, text) })
		} else if _, err := conformance.NewSchema(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Logf("%d schemas read, %d of them compiled; %d more do not mark their methods", read, compiled, len(files)-read)
}
