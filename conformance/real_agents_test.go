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
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/gentest"
)

// trueFinding is something that an agent does although the protocol does not allow it.
type trueFinding struct {
	agent, rule string
	place       string // the method, the kind of update after a colon, the JSON pointer
	count       int    // in all recordings of the agent
	why         string // the finding is true
}

var trueFindings = []trueFinding{
	{
		"claude", "PRM-6", "session/update:tool_call_update /update/status", 3,
		"The tool calls that the user allowed go from pending to completed; the update between them has no status.",
	},
	{
		"gemini", "PRM-6", "session/update:tool_call_update /update/status", 3,
		"The first message about a tool call that needs permission is the request for it, and the next one says completed.",
	},
	{
		"gemini", "CFG-19", "session/new /configOptions", 5,
		"There are four modes and no config options: clients that know these alone cannot switch the mode.",
	},
	{
		"gemini", "TOL-1", "session/request_permission /toolCall/toolCallId", 5,
		"The request for permission is the first message about the tool call. Calls that need no permission are reported.",
	},
	{
		"gemini", "TOL-9", "session/prompt", 1,
		"The tool call that the user refused is never reported as failed: nothing more comes about it.",
	},
	{
		"gemini", "EXT-2", "session/new /models", 5,
		"The member models was part of an unstable version; neither the stable nor the unstable schema has it now.",
	},
	{
		"opencode", "CFG-19", "session/new /modes", 5,
		"There is a config option of the category mode, and no modes: clients that know these alone cannot switch the mode.",
	},
	{
		"zed-claude-old", "CFG-19", "session/new /configOptions", 5,
		"There are five modes and no config options.",
	},
	{
		"zed-claude-old", "TOL-2", "session/update:tool_call /update/toolCallId", 6,
		"Each tool call is announced twice under one id: at once, and when its input is known. The second one should be a tool_call_update.",
	},
	{
		"zed-claude-old", "EXT-2", "session/new /models", 5,
		"The member models was part of an unstable version; neither the stable nor the unstable schema has it now.",
	},
	{
		"zed-claude-old", "OVW-2", "session/update:tool_call /update/locations/0/line", 1,
		"A file that is read from its beginning has the location line 0.",
	},
	{
		"zed-claude-old", "PRM-6", "session/update:tool_call_update /update/status", 1,
		"The edit that the user allowed goes from pending to completed; the update between them has no status. (Commands are reported as in_progress.)",
	},
}

// TestRealAgents judges the recordings of real agents by all rules and all published schemas. The findings must be
// exactly those in the table above and in docs/reference/real-agents.md.
func TestRealAgents(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	type key struct{ agent, rule, place string }
	got, examples := map[key]int{}, map[key]string{}
	messages := 0
	for _, file := range files {
		lines := talkOf(trace(t, file))
		messages += len(lines)
		for _, f := range judgeTalk(nil, lines, conformance.Client) {
			place := f.Method
			if f.Number > 0 && f.Method == "session/update" {
				kind, _ := at(lines[f.Number-1].decode(), "/params/update/sessionUpdate").(string)
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
	found := 0
	for _, want := range trueFindings {
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
	t.Logf("%d messages in %d recordings, %d findings of %d kinds", messages, len(files), found, len(trueFindings))
}

// TestRealAgentsDocument requires that docs/reference/real-agents.md has a row for each agent and rule of the table, and no
// others. The results of the probe have a separate section.
func TestRealAgentsDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/real-agents.md")
	if err != nil {
		t.Fatal(err)
	}
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
	for _, f := range trueFindings {
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
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, "index.json")), &examples); err != nil {
		t.Fatal(err)
	}
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
			if err := json.Compact(&text, readFile(t, filepath.Join(dir, e.Name+".json"))); err != nil {
				t.Fatal(err)
			}
			v2 := e.Group == "v2"
			file := map[bool]string{false: "../schema.json", true: "../schema/v2.json"}[v2]
			to := e.direction(t, file)
			var lines []line
			if e.Method != "initialize" {
				for _, message := range append(slices.Clone(preamble[v2]),
					`-> {"id":"n","method":"session/new","params":{"cwd":"/x","mcpServers":[]}}`, `<- {"id":"n","result":{"sessionId":"`+session+`"}}`) {
					lines = append(lines, written(message))
				}
			}
			if e.Kind == "response" || e.Kind == "error" {
				lines = append(lines, line{conformance.ToAgent + conformance.ToClient - to, encode(map[string]any{
					"jsonrpc": "2.0", "id": line{text: text.Bytes()}.decode()["id"], "method": e.Method,
					"params": map[string]any{"sessionId": session},
				})})
			}
			before := len(judgeTalk(nil, lines, 0)) // of the request that was made up
			findings := judgeTalk(nil, append(lines, line{to, text.Bytes()}), 0)[before:]
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

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
