package conformance_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
)

// trueFinding is something that an agent does although the protocol does not allow it.
type trueFinding struct {
	agent, rule string
	count       int    // in all recordings of the agent
	place       string // the method, the kind of update after a colon, the JSON pointer
	why         string // the finding is true
}

// trueFindings reads testdata/real-agents.txt, which has the members of a finding in this order.
func trueFindings(t *testing.T) (all []trueFinding) {
	t.Helper()
	text := strings.ReplaceAll(string(must.Get(os.ReadFile("testdata/real-agents.txt"))(t)), "\n\t", "\t")
	for line := range strings.Lines(text) {
		var f trueFinding
		head, why, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words := strings.SplitN(head, " ", 4)
		count := must.Get(strconv.Atoi(words[2]))(t)
		f.agent, f.rule, f.count, f.place, f.why = words[0], words[1], count, words[3], why
		all = append(all, f)
	}
	return all
}

// TestRealAgents judges the recordings of real agents by all rules and all published schemas. The findings must be
// exactly those in testdata/real-agents.txt and in docs/reference/real-agents.md.
func TestRealAgents(t *testing.T) {
	files := cleantest.Files(t, gentest.Shared(t, "traces"), "*", "*.jsonl")
	type key struct{ agent, rule, place string }
	got, examples := map[key]int{}, map[key]string{}
	messages := 0
	for _, file := range files {
		lines := cleantest.Recording(t, file).Messages()
		messages += len(lines)
		for _, f := range cleantest.Judge(nil, lines, conformance.Client) {
			place := f.Method
			if f.Number > 0 && f.Method == "session/update" {
				kind, _ := at(decode(lines[f.Number-1].Line), "/params/update/sessionUpdate").(string)
				place += ":" + kind
			}
			if f.Pointer != "" {
				place += " " + f.Pointer
			}
			k := key{filepath.Base(filepath.Dir(file)), f.Rule, place}
			got[k]++
			examples[k] = cmp.Or(examples[k], fmt.Sprintf("%s%s", filepath.Base(file), show(lines, []conformance.Finding{f})))
		}
	}
	found, table := 0, trueFindings(t)
	for _, want := range table {
		k := key{want.agent, want.rule, want.place}
		if got[k] != want.count {
			t.Errorf("%s: %s at %s: %d times, want %d: %s", k.agent, k.rule, k.place, got[k], want.count, want.why)
		}
		found += got[k]
		delete(got, k)
	}
	for _, k := range slices.SortedFunc(maps.Keys(got), func(a, b key) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		t.Errorf("%s: %s at %s: %d times, but it is not in the table\n%s", k.agent, k.rule, k.place, got[k], examples[k])
	}
	t.Logf("%d messages in %d recordings, %d findings of %d kinds", messages, len(files), found, len(table))
}

// TestRealAgentsDocument requires that docs/reference/real-agents.md has a row for each agent and rule of testdata/real-agents.txt, and no
// others. The results of the probe have a separate section.
func TestRealAgentsDocument(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/reference/real-agents.md"))(t)
	recorded, _, found := strings.Cut(string(text), "\n## What the probe shows")
	if !found {
		t.Error("there is no section about the probe")
	}
	names := map[string]string{
		"claude-agent-acp": "claude", "opencode": "opencode", "gemini-cli": "gemini", "claude-code-acp": "zed-claude-old",
	}
	rows := map[[2]string]bool{}
	for line := range strings.Lines(recorded) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || !strings.Contains(cells[1], "-") || strings.HasPrefix(cells[0], "---") {
			continue
		}
		agent, _, _ := strings.Cut(cells[0], " ")
		rule := cells[1]
		if names[agent] == "" {
			t.Errorf("no recordings of %s", agent)
		}
		rows[[2]string{names[agent], rule}] = true
	}
	for _, f := range trueFindings(t) {
		k := [2]string{f.agent, f.rule}
		if _, ok := rows[k]; !ok {
			t.Errorf("docs/reference/real-agents.md has no row for %s and %s", f.agent, f.rule)
		}
		rows[k] = false
	}
	for k, left := range rows {
		if left {
			t.Errorf("docs/reference/real-agents.md has a row for %s and %s, which was not found", k[0], k[1])
		}
	}
}

// outOfContext holds the rules that messages of the protocol's documents break when they are judged one by one, and the
// reasons why this is correct.
var outOfContext = map[string]string{
	"ADD-2":  "the session was made in an earlier example",
	"AUT-3":  "the methods were offered in an earlier example",
	"CFG-14": "the pages leave out the values of options",
	"CFG-19": "each page shows its own of the two",
	"EXT-2":  "mistakes in the documents, which TestExamples compares with the index",
	"EXT-6":  "the method was advertised in another example",
	"INI-3":  "the pages leave out what they are not about",
	"INI-4":  "a mistake in the documents: clientCapabilities in an answer",
	"INI-5":  "the pages leave out what they are not about",
	"INI-6":  "mistakes in the documents, which TestExamples compares with the index",
	"LST-10": "the cursor was given in an earlier example",
	"MOD-1":  "the modes were offered in an earlier example",
	"SES-2":  "the examples have one id for all sessions",
	"TOL-1":  "the tool call was announced in an earlier example",
	"TOL-5":  "the options were offered in an earlier example",
	"TOL-8":  "the terminal was made in an earlier example",
	"V2-2":   "the work was reported in an earlier example",
	"V2-6":   "the tool call was announced in an earlier example",
	"V2-10":  "the state was reported in an earlier example",
}

// TestExamplesByRules judges each message of the protocol's documents after an initialization in which both sides state
// everything.
func TestExamplesByRules(t *testing.T) {
	dir := gentest.Shared(t, "examples")
	var examples []example
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(dir, "index.json")))(t), &examples))
	const session = "sess_abc123def456" // of most examples
	preamble := map[bool][]string{
		false: {
			`-> {"id":"i","method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"},"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}}}}}`,
			`<- {"id":"i","result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"},"agentCapabilities":{"loadSession":true,"auth":{"logout":{}},"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true},"sessionCapabilities":{"list":{},"delete":{},"resume":{},"close":{},"fork":{},"additionalDirectories":{}}}}}`,
		},
		true: {
			`-> {"id":"i","method":"initialize","params":{"protocolVersion":2,"capabilities":{"elicitation":{"form":{},"url":{}},"auth":{"terminal":{}}},"info":{"name":"c","version":"1"}}}`,
			`<- {"id":"i","result":{"protocolVersion":2,"authMethods":[{"type":"agent","methodId":"a","name":"A"}],"capabilities":{"session":{"delete":{},"additionalDirectories":{},"prompt":{"image":{},"audio":{},"embeddedContext":{}},"mcp":{"stdio":{},"http":{}}}},"info":{"name":"a","version":"1"}}}`,
		},
	}
	seen := map[string]int{}
	for _, e := range examples {
		t.Run(e.Name, func(t *testing.T) {
			var text bytes.Buffer
			must.Do(t, json.Compact(&text, must.Get(os.ReadFile(filepath.Join(dir, e.Name+".json")))(t)))
			v2 := e.Group == "v2"
			file := map[bool]string{false: "../schema.json", true: "../schema/v2.json"}[v2]
			to := e.direction(t, file)
			var lines []conformance.Message
			if e.Method != "initialize" {
				for _, message := range append(slices.Clone(preamble[v2]),
					`-> {"id":"n","method":"session/new","params":{"cwd":"/x","mcpServers":[]}}`, `<- {"id":"n","result":{"sessionId":"`+session+`"}}`) {
					lines = append(lines, written(message))
				}
			}
			if e.Kind == "response" || e.Kind == "error" {
				lines = append(lines, conformance.Message{Direction: conformance.ToAgent + conformance.ToClient - to, Line: encode(map[string]any{
					"jsonrpc": "2.0", "id": decode(text.Bytes())["id"], "method": e.Method,
					"params": map[string]any{"sessionId": session},
				})})
			}
			before := len(cleantest.Judge(nil, lines, 0)) // of the request that was made up
			findings := cleantest.Judge(nil, append(lines, conformance.Message{Direction: to, Line: text.Bytes()}), 0)[before:]
			for _, f := range findings {
				seen[f.Rule]++
				if outOfContext[f.Rule] == "" {
					t.Errorf("%s", f)
				}
			}
		})
	}
	for rule, why := range outOfContext {
		if seen[rule] == 0 {
			t.Errorf("no example breaks %s (%s) any more", rule, why)
		}
	}
}
