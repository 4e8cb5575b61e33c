package modelstub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
)

var update = flag.Bool("update", false, "write the answers in testdata")

// TestShapes sends the requests in testdata and compares the answers, byte for byte.
func TestShapes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		must.Do(t, err)
		model := New(&Options{Pace: time.Microsecond})
		for i := 0; i+1 < len(archive.Files); i += 2 {
			request, want := archive.Files[i], &archive.Files[i+1]
			label, path, _ := strings.Cut(request.Name, " POST ")
			w := httptest.NewRecorder()
			model.ServeHTTP(w, httptest.NewRequest("POST", path, bytes.NewReader(request.Data)))
			got := fmt.Sprintf("%d %s\n%s\n", w.Code, w.Header().Get("Content-Type"), bytes.TrimRight(w.Body.Bytes(), "\n"))
			if want.Name != label+" answer" {
				t.Fatalf("%s: after %s comes %s", file, request.Name, want.Name)
			}
			if *update {
				want.Data = []byte(got)
			} else if got != string(want.Data) {
				t.Errorf("%s, %s: got\n%s\nwant\n%s", file, label, got, want.Data)
			}
		}
		if *update {
			must.Do(t, os.WriteFile(file, txtar.Format(archive), 0o644))
		}
	}
}

const (
	fileSchema = `{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"number"}},"required":["file_path"]}`
	editSchema = `{"type":"object","properties":{"filePath":{"type":"string"},"oldString":{"type":"string"},"newString":{"type":"string"},"instruction":{"type":"string"}},"required":["filePath","oldString","newString","instruction"]}`
	bashSchema = `{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"},"is_background":{"type":"boolean"}},"required":["command","is_background"]}`
	execSchema = `{"type":"object","properties":{"command":{"type":["array","null"],"items":{"type":"string"}}},"required":["command"]}`
	todoSchema = `{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"type":"string","enum":["pending","in-progress","completed"]},"id":{"type":"string"},"priority":{"enum":["high","low"]},"extra":{"type":"boolean"}},"required":["content","status","id","extra"]}}},"required":["todos"]}`
)

var (
	full = map[string]string{
		"Read": fileSchema, "Edit": editSchema, "mcp__ide__Edit": editSchema, "run_shell_command": bashSchema, "todo_write": todoSchema,
		"mcp__x__acp_probe": `{"type":"object"}`,
	}
	shellOnly = map[string]string{"shell": execSchema}
	searching = map[string]string{"Read": fileSchema, "ToolSearch": `{"properties":{"query":{"type":"string"}},"required":["query"]}`}
	asking    = map[string]string{
		"AskUserQuestion": `{"properties":{"questions":{"type":"array","items":{"properties":{"question":{},"header":{},"multiSelect":{},` +
			`"options":{"type":"array","items":{"properties":{"label":{"type":"string"}}}}}}}}}`,
		"EnterPlanMode": `{"properties":{"reason":{"type":"string"}}}`,
	}
	indirect = map[string]string{"tool_search": `{"properties":{"query":{"type":"string"}},"required":["query"]}`, "tool_call": `{}`}
)

// TestScripts plays turns: the calls, of which the last ones may be told by the beginning of their name and arguments, and
// the answer after results of the tools.
func TestScripts(t *testing.T) {
	plan := func(states string) string {
		return `todo_write {"todos":[{"content":"Open the file","extra":false,"id":"1","priority":"high","status":"` + states
	}
	for _, test := range []struct {
		prompt  string // its kind, or the text
		tools   map[string]string
		results []string
		calls   []string
		says    string
	}{
		{"text", full, nil, nil, "OK"},
		{"read", full, []string{"Notes"}, []string{`Read {"file_path":"/work/notes.txt"}`}, "The file says: Notes"},
		{"read", shellOnly, []string{"Notes"}, []string{`shell {"command":["sh","-c","cat /work/notes.txt"]}`}, "The file says: Notes"},
		{"read", nil, nil, nil, "I cannot read files."},
		{
			"edit", full, []string{"<file>\n     1\tOne.\n     2\tTwo.\n(End of file)\n</file>", "edited"},
			[]string{`Read {"file_path":"/work/demo.txt"}`, `Edit {"filePath":"/work/demo.txt","instruction":"Append a line to the file.","newString":"Two.\nThe probe was here.","oldString":"Two."}`}, "Done.",
		},
		{
			"edit", shellOnly, []string{"One.\nTwo.", ""},
			[]string{`shell {"command":["sh","-c","cat /work/demo.txt"]}`, `shell {"command":["sh","-c","printf '%s\\n' 'The probe was here.' \u003e\u003e/work/demo.txt"]}`}, "Done.",
		},
		{"terminal", full, []string{"acp-probe"}, []string{`run_shell_command {"command":"echo acp-probe`}, "It printed: acp-probe"},
		{"terminal", nil, nil, nil, "I cannot run commands."},
		{"permission", full, []string{"gone"}, []string{`run_shell_command {"command":"rm /work/old.txt"`}, "gone"},
		{
			"plan", full, []string{"ok", "Notes", "ok", "ok"},
			[]string{plan(`in-progress"`), `Read {"file_path":"/work/notes.txt"}`, plan(`completed"`), plan(`completed"`)}, "Done.",
		},
		{"plan", shellOnly, []string{"Notes"}, []string{`shell {"command":["sh","-c","cat /work/notes.txt"]}`}, "Done."},
		{"plan", searching, []string{"found", "Notes"}, []string{`ToolSearch {"query":"select:TodoWrite,todo_write"}`, `Read {"file_path"`}, "Done."},
		{"mcp", full, []string{"nothing"}, []string{"mcp__x__acp_probe {}"}, "The tool says: nothing"},
		{`Call the MCP tool acp_probe with "x".`, full, []string{"nothing"}, []string{"mcp__x__acp_probe {}"}, "The tool says: nothing"},
		{`Call the MCP tool acp_probe with "x".`, shellOnly, nil, nil, "no such tool"},
		{
			`Call the MCP tool find_book with "x".`, indirect, []string{`<function>{"name":"mcp__shelf__find_book"}</function>`, "found"},
			[]string{`tool_search {"query":"find_book"}`, `tool_call {"arguments":{"text":"x"},"name":"mcp__shelf__find_book"}`}, "The tool says: found",
		},
		{"form", full, nil, nil, "I cannot ask with a form."},
		{
			"form", asking, []string{"Ada"}, []string{`AskUserQuestion {"questions":[{"header":"Name","multiSelect":false,` +
				`"options":[{"label":"Probe"},{"label":"Somebody else"}],"question":"What is your name?"}]}`}, "Thank you.",
		},
		{"mode", asking, []string{"ok"}, []string{`EnterPlanMode {"reason":"To plan first"}`}, "Done."},
		{"long", full, nil, nil, "chapter 420"},
		{"think", full, nil, nil, "larger"},
	} {
		prompt := probe.DefaultPrompts[test.prompt]
		if prompt == "" {
			prompt = test.prompt
		}
		c := &conversation{system: "Working directory: /work\n", turns: []turn{
			{texts: []string{"Please read the file earlier.txt"}}, {agent: true, texts: []string{"No."}}, {texts: []string{prompt}},
		}}
		for _, name := range slices.Sorted(maps.Keys(test.tools)) {
			c.tools = append(c.tools, tool{name, json.RawMessage(test.tools[name])})
		}
		model, ids := New(nil), map[string]bool{}
		for step := 0; ; step++ {
			r := model.decide(c)
			if len(r.calls) == 0 {
				if text := strings.Join(r.text, ""); step != len(test.calls) || !strings.Contains(text, test.says) {
					t.Errorf("%s: after %d calls it says %q, want %d and %q", test.prompt, step, text, len(test.calls), test.says)
				}
				if (r.thought != "") != (test.prompt == "think") || r.slow != (test.prompt == "long") {
					t.Errorf("%s: the thought is %q, slow: %t", test.prompt, r.thought, r.slow)
				}
				break
			}
			call := r.calls[0]
			got := call.name + " " + string(call.args)
			if step >= len(test.calls) || !strings.HasPrefix(got, test.calls[step]) || ids[call.id] {
				t.Errorf("%s: call %d, %q, is %s", test.prompt, step, call.id, got)
				break
			}
			ids[call.id] = true
			c.turns = append(c.turns, turn{agent: true, calls: []string{call.name}}, turn{results: []string{test.results[step]}})
		}
	}
}

// TestPrompts compares the scripts with the kinds of prompts of the probe: whoever changes a prompt changes its script.
func TestPrompts(t *testing.T) {
	want := map[string]string{
		"text": "", "long": "long", "read": "read", "missing": "read", "edit": "edit", "terminal": "run", "wait": "run", "permission": "delete", "plan": "plan",
		"think": "think", "refusal": "refusal", "form": "form", "mode": "mode", "mcp": "mcp", "link": "", "notice": "", "compact": "",
	}
	for _, kind := range probe.PromptKinds() {
		got := ""
		if s := find(probe.DefaultPrompts[kind]); s != nil {
			got = s.name
		}
		if name, known := want[kind]; !known || got != name {
			t.Errorf("%s: the script is %q, want %q", kind, got, name)
		}
	}
}

// TestAsides answers what agents ask for themselves: titles, and answers of a form.
func TestAsides(t *testing.T) {
	model := New(nil)
	for _, c := range []struct {
		c    conversation
		want string
	}{
		{conversation{system: "Generate a title for this conversation.", turns: []turn{{texts: []string{probe.DefaultPrompts["long"]}}}}, "A conversation with the probe"},
		{conversation{turns: []turn{{texts: []string{"Who speaks next?"}}}, schema: json.RawMessage(`{"type":"OBJECT","properties":{"next":{"type":"STRING","enum":["user","model"]},"n":{"type":"integer","minimum":3},"list":{"type":"array","minItems":1,"items":{"type":"boolean"}}},"required":["next","n","list"]}`)}, `{"list":[false],"n":3,"next":"user"}`},
		{conversation{}, "OK"},
		{conversation{turns: []turn{{texts: []string{""}}}}, "OK"},
	} {
		if got := strings.Join(model.decide(&c.c).text, ""); got != c.want {
			t.Errorf("%+v: %q, want %q", c.c, got, c.want)
		}
	}
}

// TestDirectory finds the working directory in the words of agents.
func TestDirectory(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a folder, with ä and <spaces>; and more. Yes")
	must.Do(t, os.Mkdir(odd, 0o700))
	for _, c := range []struct{ text, root, want string }{
		{"Working directory: /work/a\n", "", "/work/a"},
		{"- Primary working directory: /work/a\n", "", "/work/a"},
		{"<env>\n  Working directory: /work/a\n  Workspace root folder: /\n", "", "/work/a"},
		{"I'm currently working in the directory: /work/a\n", "", "/work/a"},
		{"I'm currently working in the following directories:\n  - /work/a\n  - /work/b\n", "", "/work/a"},
		{"<cwd>/work/a</cwd>", "", "/work/a"},
		{"Your memory is in /home/x. Workspace: /tmp/scratch/one/inside.", "/tmp/scratch", "/tmp/scratch/one/inside"},
		{"The working directory is /home/x; the workspace is /tmp/scratch/one", "/tmp/scratch", "/tmp/scratch/one"},
		{"Nothing of that sort.", "/tmp/scratch", ""},
		{"Working directory: " + odd + "\nPlatform: linux", filepath.Dir(odd), odd},
		{"You work in " + odd + ".", filepath.Dir(odd), odd},
		{"<cwd>" + odd + "</cwd>", "", odd},
	} {
		if got := (&conversation{system: c.text}).directory(c.root); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestBadRequests sends what no agent should: the answers are errors, in the shape of the maker.
func TestBadRequests(t *testing.T) {
	var log bytes.Buffer
	model := New(&Options{Log: &log})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v1/messages", `{`, 400, `"type":"error"`},
		{"POST", "/v1/messages", `{"messages":[{"role":"user","content":7}]}`, 400, `messages: 0`},
		{"POST", "/v1/chat/completions", `[]`, 400, `invalid_request_error`},
		{"POST", "/v1beta/models/m:generateContent", `x`, 400, `INVALID_ARGUMENT`},
		{"GET", "/v1/messages", ``, 405, `expected POST`},
		{"POST", "/v1/embeddings", `{}`, 404, `/v1/embeddings`},
		{"GET", "/v1/models", ``, 200, `fake-model`},
		{"HEAD", "/", ``, 200, ``},
		{"POST", "/v1/messages/count_tokens", `{"messages":[]}`, 200, `input_tokens`},
		{"POST", "/v1beta/models/m:countTokens", `{"contents":[]}`, 200, `totalTokens`},
		{"POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"read the file x"}],"tools":[{"function":{"name":"read","parameters":{"properties":7}}}]}`, 200, `"arguments":"{}"`},
	} {
		w := httptest.NewRecorder()
		model.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
		if c.method == "POST" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: no JSON: %s", c.method, c.path, w.Body)
		}
	}
	if model.Served() != 1 {
		t.Errorf("%d were served", model.Served())
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has the line %q", line)
		}
	}
}

// TestReaderLeaves ends a long answer when nobody reads it any more.
func TestReaderLeaves(t *testing.T) {
	ended := make(chan struct{})
	model := New(&Options{Pace: time.Hour})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		model.ServeHTTP(w, r)
		close(ended)
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	body := fmt.Sprintf(`{"stream":true,"messages":[{"role":"user","content":%q}]}`, probe.DefaultPrompts["long"])
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(body))
	must.Do(t, err)
	r, err := http.DefaultClient.Do(request)
	must.Do(t, err)
	defer r.Body.Close()
	if _, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil { // the first piece comes at once
		t.Fatal(err)
	}
	cancel()
	<-ended
}
