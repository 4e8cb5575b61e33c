package modelstub

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/tier"
)

// said is what an agent reads in an answer, in any shape.
type said struct {
	thought, text, refusal string
	calls                  []call
	finish                 string
	events                 []string // of a stream
}

// wire is an agent's side of a shape, in the words of its maker's documentation and of no code of this package.
type wire struct {
	name   string
	path   func(stream bool) string
	user   func(text string) string
	calls  func(s *said) string
	result func(c call, text string) string
	// request is a request with messages and tools; toolText is one tool.
	request func(messages, tools []string, system string, stream bool) string
	tool    func(name, schema string) string
	whole   func(t *testing.T, body []byte) *said
	piece   func(t *testing.T, s *said, event string, data []byte)
	reasons [3]string // why it stops: the end, tools, a refusal
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func read[T any](t *testing.T, data []byte) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}

func flag(name string, on bool) string { return fmt.Sprintf(`,%q:%t`, name, on) }

var wires = []wire{
	{
		name: "anthropic", path: func(bool) string { return "/v1/messages" }, reasons: [3]string{"end_turn", "tool_use", "refusal"},
		user: func(s string) string {
			return `{"role":"user","content":[{"type":"text","text":"<system-reminder>\nread the file other.txt\n</system-reminder>"},{"type":"text","text":` + text(s) + `}]}`
		},
		calls: func(s *said) string {
			c := s.calls[0]
			return `{"role":"assistant","content":[{"type":"text","text":` + text(s.text) + `},{"type":"tool_use","id":` + text(c.id) + `,"name":` + text(c.name) + `,"input":` + string(c.args) + `}]}`
		},
		result: func(c call, s string) string {
			return `{"role":"user","content":[{"type":"tool_result","tool_use_id":` + text(c.id) + `,"content":[{"type":"text","text":` + text(s) + `}]},{"type":"text","text":"Remember to be kind."}]}`
		},
		tool: func(name, schema string) string {
			return `{"name":` + text(name) + `,"description":"A tool","input_schema":` + schema + `}`
		},
		request: func(messages, tools []string, system string, stream bool) string {
			return `{"model":"m","max_tokens":1000,"system":[{"type":"text","text":` + text(system) + `}],"messages":[` + strings.Join(messages, ",") + `],"tools":[` + strings.Join(tools, ",") + `]` + flag("stream", stream) + `}`
		},
		whole: func(t *testing.T, body []byte) *said {
			r := read[struct {
				Type, Role string
				Content    []struct {
					Type, Text, Thinking, ID, Name string
					Input                          json.RawMessage
				}
				StopReason string `json:"stop_reason"`
				Usage      struct {
					OutputTokens int `json:"output_tokens"`
				}
			}](t, body)
			if r.Type != "message" || r.Role != "assistant" || r.Usage.OutputTokens < 1 {
				t.Errorf("%s", body)
			}
			s := &said{finish: r.StopReason}
			for _, b := range r.Content {
				switch b.Type {
				case "text":
					s.text += b.Text
				case "thinking":
					s.thought += b.Thinking
				case "tool_use":
					s.calls = append(s.calls, call{b.ID, b.Name, b.Input})
				default:
					t.Errorf("a block of type %q", b.Type)
				}
			}
			return s
		},
		piece: func(t *testing.T, s *said, event string, data []byte) {
			r := read[struct {
				Type         string
				Index        int
				ContentBlock struct{ Type, ID, Name string } `json:"content_block"`
				Delta        struct {
					Type, Text, Thinking string
					PartialJSON          string `json:"partial_json"`
					StopReason           string `json:"stop_reason"`
				}
			}](t, data)
			if r.Type != event {
				t.Errorf("event %q with type %q", event, r.Type)
			}
			if r.ContentBlock.Type == "tool_use" {
				s.calls = append(s.calls, call{id: r.ContentBlock.ID, name: r.ContentBlock.Name})
			}
			s.text += r.Delta.Text
			s.thought += r.Delta.Thinking
			if r.Delta.PartialJSON != "" {
				last := &s.calls[len(s.calls)-1]
				last.args = append(last.args, r.Delta.PartialJSON...)
			}
			if r.Delta.StopReason != "" {
				s.finish = r.Delta.StopReason
			}
		},
	},
	{
		name: "chat", path: func(bool) string { return "/v1/chat/completions" }, reasons: [3]string{"stop", "tool_calls", "stop"},
		user: func(s string) string { return `{"role":"user","content":` + text(s) + `}` },
		calls: func(s *said) string {
			c := s.calls[0]
			return `{"role":"assistant","content":null,"tool_calls":[{"id":` + text(c.id) + `,"type":"function","function":{"name":` + text(c.name) + `,"arguments":` + text(string(c.args)) + `}}]}`
		},
		result: func(c call, s string) string {
			return `{"role":"tool","tool_call_id":` + text(c.id) + `,"content":` + text(s) + `}`
		},
		tool: func(name, schema string) string {
			return `{"type":"function","function":{"name":` + text(name) + `,"parameters":` + schema + `}}`
		},
		request: func(messages, tools []string, system string, stream bool) string {
			messages = append([]string{`{"role":"system","content":` + text(system) + `}`}, messages...)
			return `{"model":"m","messages":[` + strings.Join(messages, ",") + `],"tools":[` + strings.Join(tools, ",") + `]` + flag("stream", stream) + `}`
		},
		whole: func(t *testing.T, body []byte) *said {
			r := read[struct {
				Object  string
				Choices []struct {
					Message struct {
						Content, Refusal *string
						Reasoning        string `json:"reasoning_content"`
						Calls            []struct {
							ID, Type string
							Function struct{ Name, Arguments string }
						} `json:"tool_calls"`
					}
					Finish string `json:"finish_reason"`
				}
			}](t, body)
			if r.Object != "chat.completion" || len(r.Choices) != 1 {
				t.Fatalf("%s", body)
			}
			m := r.Choices[0].Message
			s := &said{thought: m.Reasoning, finish: r.Choices[0].Finish}
			if m.Content != nil {
				s.text = *m.Content
			}
			if m.Refusal != nil {
				s.refusal = *m.Refusal
			}
			for _, c := range m.Calls {
				s.calls = append(s.calls, call{c.ID, c.Function.Name, json.RawMessage(c.Function.Arguments)})
			}
			return s
		},
		piece: func(t *testing.T, s *said, _ string, data []byte) {
			if string(data) == "[DONE]" {
				return
			}
			r := read[struct {
				Object  string
				Choices []struct {
					Delta struct {
						Content, Refusal string
						Reasoning        string `json:"reasoning_content"`
						Calls            []struct {
							Index    int
							ID       string
							Function struct{ Name, Arguments string }
						} `json:"tool_calls"`
					}
					Finish *string `json:"finish_reason"`
				}
			}](t, data)
			if r.Object != "chat.completion.chunk" {
				t.Errorf("%s", data)
			}
			for _, c := range r.Choices {
				s.text += c.Delta.Content
				s.refusal += c.Delta.Refusal
				s.thought += c.Delta.Reasoning
				for _, x := range c.Delta.Calls {
					s.calls = append(s.calls, call{x.ID, x.Function.Name, json.RawMessage(x.Function.Arguments)})
				}
				if c.Finish != nil {
					s.finish = *c.Finish
				}
			}
		},
	},
	{
		name: "responses", path: func(bool) string { return "/v1/responses" }, reasons: [3]string{"completed", "completed", "completed"},
		user: func(s string) string {
			return `{"role":"user","content":[{"type":"input_text","text":` + text(s) + `}]}`
		},
		calls: func(s *said) string {
			c := s.calls[0]
			return `{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","call_id":` + text(c.id) + `,"name":` + text(c.name) + `,"arguments":` + text(string(c.args)) + `}`
		},
		result: func(c call, s string) string {
			return `{"type":"function_call_output","call_id":` + text(c.id) + `,"output":` + text(s) + `}`
		},
		tool: func(name, schema string) string {
			return `{"type":"function","name":` + text(name) + `,"parameters":` + schema + `,"strict":false}`
		},
		request: func(messages, tools []string, system string, stream bool) string {
			return `{"model":"m","instructions":` + text(system) + `,"input":[` + strings.Join(messages, ",") + `],"tools":[` + strings.Join(tools, ",") + `]` + flag("stream", stream) + `}`
		},
		whole: func(t *testing.T, body []byte) *said {
			r := read[struct {
				Object, Status string
				Output         []json.RawMessage
			}](t, body)
			if r.Object != "response" {
				t.Errorf("%s", body)
			}
			s := &said{finish: r.Status}
			for _, item := range r.Output {
				i := read[struct {
					Type, Name, Arguments string
					CallID                string `json:"call_id"`
					Content               []struct{ Type, Text, Refusal string }
					Summary               []struct{ Text string }
				}](t, item)
				for _, c := range i.Content {
					s.text += c.Text
					s.refusal += c.Refusal
				}
				for _, x := range i.Summary {
					s.thought += x.Text
				}
				if i.Type == "function_call" {
					s.calls = append(s.calls, call{i.CallID, i.Name, json.RawMessage(i.Arguments)})
				}
			}
			return s
		},
		piece: func(t *testing.T, s *said, event string, data []byte) {
			r := read[struct {
				Type     string
				Number   *int `json:"sequence_number"`
				Delta    string
				Response struct{ Status string }
				Item     struct {
					Type, Name, Arguments string
					CallID                string `json:"call_id"`
				}
			}](t, data)
			if r.Type != event || r.Number == nil || *r.Number != len(s.events)-1 {
				t.Errorf("event %q, number %d: %s", event, len(s.events)-1, data)
			}
			switch r.Type {
			case "response.output_text.delta":
				s.text += r.Delta
			case "response.refusal.delta":
				s.refusal += r.Delta
			case "response.reasoning_summary_text.delta":
				s.thought += r.Delta
			case "response.output_item.done":
				if r.Item.Type == "function_call" {
					s.calls = append(s.calls, call{r.Item.CallID, r.Item.Name, json.RawMessage(r.Item.Arguments)})
				}
			case "response.completed":
				s.finish = r.Response.Status
			}
		},
	},
	{
		name: "gemini", reasons: [3]string{"STOP", "STOP", "SAFETY"},
		path: func(stream bool) string {
			if stream {
				return "/v1beta/models/m:streamGenerateContent?alt=sse"
			}
			return "/v1beta/models/m:generateContent"
		},
		user: func(s string) string { return `{"role":"user","parts":[{"text":` + text(s) + `}]}` },
		calls: func(s *said) string {
			c := s.calls[0]
			return `{"role":"model","parts":[{"functionCall":{"id":` + text(c.id) + `,"name":` + text(c.name) + `,"args":` + string(c.args) + `}}]}`
		},
		result: func(c call, s string) string {
			return `{"role":"user","parts":[{"functionResponse":{"id":` + text(c.id) + `,"name":` + text(c.name) + `,"response":{"output":` + text(s) + `}}}]}`
		},
		tool: func(name, schema string) string {
			return `{"functionDeclarations":[{"name":` + text(name) + `,"parametersJsonSchema":` + schema + `}]}`
		},
		request: func(messages, tools []string, system string, _ bool) string {
			return `{"systemInstruction":{"role":"user","parts":[{"text":` + text(system) + `}]},"contents":[` + strings.Join(messages, ",") + `],"tools":[` + strings.Join(tools, ",") + `]}`
		},
		whole: geminiAnswer,
		piece: func(t *testing.T, s *said, _ string, data []byte) {
			one := geminiAnswer(t, data)
			s.text += one.text
			s.thought += one.thought
			s.calls = append(s.calls, one.calls...)
			if one.finish != "" {
				s.finish = one.finish
			}
		},
	},
}

func geminiAnswer(t *testing.T, body []byte) *said {
	r := read[struct {
		Candidates []struct {
			Content struct {
				Role  string
				Parts []struct {
					Text         string
					Thought      bool
					FunctionCall *struct {
						ID, Name string
						Args     json.RawMessage
					}
				}
			}
			FinishReason string
		}
	}](t, body)
	if len(r.Candidates) != 1 || r.Candidates[0].Content.Role != "model" {
		t.Fatalf("%s", body)
	}
	s := &said{finish: r.Candidates[0].FinishReason}
	for _, p := range r.Candidates[0].Content.Parts {
		switch {
		case p.FunctionCall != nil:
			s.calls = append(s.calls, call{p.FunctionCall.ID, p.FunctionCall.Name, p.FunctionCall.Args})
		case p.Thought:
			s.thought += p.Text
		default:
			s.text += p.Text
		}
	}
	return s
}

// ask sends a request and reads the answer.
func (w *wire) ask(t *testing.T, url, body string, stream bool) *said {
	t.Helper()
	r, err := http.Post(url+w.path(stream), "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(r.Body)
		t.Fatalf("%s: %s", r.Status, text)
	}
	if !stream {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.whole(t, text)
	}
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("the stream is %s", kind)
	}
	s := &said{}
	event := ""
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
		} else if data, ok := strings.CutPrefix(line, "data: "); ok {
			s.events = append(s.events, event)
			w.piece(t, s, event, []byte(data))
			event = ""
		} else if line != "" {
			t.Errorf("the line %q", line)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// tools are those of an agent, by the name that each has, with what they do.
type tools map[string]struct {
	schema string
	do     func(t *testing.T, dir string, args map[string]any) string
}

func doRead(t *testing.T, _ string, args map[string]any) string {
	return readFile(t, first(args, "file_path", "filePath"))
}

func first(args map[string]any, names ...string) string {
	for _, name := range names {
		if s, ok := args[name].(string); ok {
			return s
		}
	}
	return ""
}

func readFile(t *testing.T, name string) string {
	if !filepath.IsAbs(name) {
		t.Errorf("the path %q is not absolute", name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	out.WriteString("<file>\n")
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		fmt.Fprintf(&out, "%6d\t%s\n", i+1, line)
	}
	return out.String() + "(End of file)\n</file>"
}

func doEdit(t *testing.T, _ string, args map[string]any) string {
	name := first(args, "file_path", "filePath")
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	before, after := first(args, "old_string", "oldString"), first(args, "new_string", "newString")
	if strings.Count(string(b), before) != 1 {
		return "not found"
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(b), before, after, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return "edited"
}

func doRun(t *testing.T, dir string, args map[string]any) string {
	command := []string{"sh", "-c", first(args, "command")}
	if list, ok := args["command"].([]any); ok {
		command = nil
		for _, word := range list {
			command = append(command, word.(string))
		}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

const (
	fileSchema = `{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"number"}},"required":["file_path"]}`
	editSchema = `{"type":"object","properties":{"filePath":{"type":"string"},"oldString":{"type":"string"},"newString":{"type":"string"},"instruction":{"type":"string"}},"required":["filePath","oldString","newString","instruction"]}`
	bashSchema = `{"type":"object","properties":{"command":{"type":"string"},"description":{"type":"string"},"is_background":{"type":"boolean"}},"required":["command","is_background"]}`
	execSchema = `{"type":"object","properties":{"command":{"type":["array","null"],"items":{"type":"string"}}},"required":["command"]}`
	todoSchema = `{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"type":"string","enum":["pending","in-progress","completed"]},"id":{"type":"string"},"priority":{"enum":["high","low"]},"extra":{"type":"boolean"}},"required":["content","status","id","extra"]}}},"required":["todos"]}`
)

var (
	full = tools{
		"Read":              {fileSchema, doRead},
		"Edit":              {editSchema, doEdit},
		"mcp__ide__Edit":    {editSchema, nil},
		"run_shell_command": {bashSchema, doRun},
		"todo_write":        {todoSchema, func(*testing.T, string, map[string]any) string { return "ok" }},
		"mcp__x__acp_probe": {`{"type":"object"}`, func(*testing.T, string, map[string]any) string { return "nothing" }},
	}
	searching = tools{
		"Read":       {fileSchema, doRead},
		"ToolSearch": {`{"properties":{"query":{"type":"string"}},"required":["query"]}`, func(*testing.T, string, map[string]any) string { return "found" }},
	}
	indirect = tools{
		"tool_search": {`{"properties":{"query":{"type":"string"}},"required":["query"]}`, func(*testing.T, string, map[string]any) string {
			return `<function>{"name":"mcp__shelf__find_book"}</function>`
		}},
		"tool_call": {`{}`, func(_ *testing.T, _ string, args map[string]any) string {
			text, err := json.Marshal(args)
			if err != nil {
				return err.Error()
			}
			return string(text)
		}},
	}
	shellOnly = tools{"shell": {execSchema, doRun}}
)

// play plays one turn as an agent does, and returns the names and arguments of the calls, and the last answer.
func (w *wire) play(t *testing.T, url, dir, prompt string, offered tools, stream bool) (calls []call, end *said) {
	t.Helper()
	var described []string
	var names []string
	for name := range offered {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		described = append(described, w.tool(name, offered[name].schema))
	}
	system := "You are an agent.\nWorking directory: " + dir + "\nBe kind."
	messages := []string{w.user("Please read the file earlier.txt"), w.user(prompt)}
	for range 10 {
		s := w.ask(t, url, w.request(messages, described, system, stream), stream)
		if len(s.calls) == 0 {
			return calls, s
		}
		if s.finish != w.reasons[1] {
			t.Errorf("calls, and the finish %q", s.finish)
		}
		c := s.calls[0]
		var args map[string]any
		if err := json.Unmarshal(c.args, &args); err != nil {
			t.Fatalf("%v: %s", err, c.args)
		}
		x, ok := offered[c.name]
		if !ok || x.do == nil {
			t.Fatalf("a call of %s", c.name)
		}
		calls = append(calls, c)
		if c.name == "ToolSearch" { // what it finds is in the list from now on
			offered = maps.Clone(offered)
			offered["TodoWrite"] = full["todo_write"]
			described = append(described, w.tool("TodoWrite", todoSchema))
		}
		messages = append(messages, w.calls(s), w.result(c, x.do(t, dir, args)))
	}
	t.Fatal("no end")
	return nil, nil
}

// TestTurns plays turns with real files and commands, in each shape, streamed and whole.
func TestTurns(t *testing.T) {
	for _, w := range wires[:tier.Pick(1, len(wires), len(wires), len(wires))] {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%t", w.name, stream), func(t *testing.T) {
				s := httptest.NewServer(New(&Options{Pace: time.Microsecond}))
				defer s.Close()
				for _, c := range []struct {
					prompt  string
					tools   tools
					calls   string // the names
					end     string // what the last answer says
					demo    string // is in demo.txt then
					removed bool   // old.txt
					finish  int
				}{
					{"text", full, "", "OK", "", false, 0},
					{"read", full, "Read", "Notes of the probe.", "", false, 0},
					{"read", shellOnly, "shell", "Notes of the probe.", "", false, 0},
					{"missing", full, "Read", "no such file", "", false, 0},
					{"edit", full, "Read Edit", "Done.", "One.\nTwo.\nThe probe was here.\n", false, 0},
					{"edit", shellOnly, "shell shell", "Done.", "One.\nTwo.\nThe probe was here.\n", false, 0},
					{"terminal", full, "run_shell_command", "acp-probe", "", false, 0},
					{"terminal", tools{}, "", "cannot", "", false, 0},
					{"permission", full, "run_shell_command", "", "", true, 0},
					{"plan", full, "todo_write Read todo_write todo_write", "Done.", "", false, 0},
					{"plan", shellOnly, "shell", "Done.", "", false, 0},
					{"plan", searching, "ToolSearch TodoWrite Read TodoWrite TodoWrite", "Done.", "", false, 0},
					{"mcp", full, "mcp__x__acp_probe", "nothing", "", false, 0},
					{`Call the MCP tool acp_probe with "x".`, full, "mcp__x__acp_probe", "The tool says: nothing", "", false, 0},
					{`Call the MCP tool acp_probe with "x".`, shellOnly, "", "no such tool", "", false, 0},
					{`Call the MCP tool find_book with "x".`, indirect, "tool_search tool_call", `The tool says: {"arguments":{"text":"x"},"name":"mcp__shelf__find_book"}`, "", false, 0},
					{`Call the MCP tool todo_write with "x".`, searching, "ToolSearch TodoWrite", "The tool says: ", "", false, 0},
					{"form", full, "", "cannot", "", false, 0},
					{"long", full, "", "chapter 420", "", false, 0},
					{"think", full, "", "larger", "", false, 0},
					{"refusal", full, "", "", "", false, 2},
				} {
					dir := t.TempDir()
					write := func(name, text string) {
						if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					write("notes.txt", "Notes of the probe.\n")
					write("demo.txt", "One.\nTwo.\n")
					write("old.txt", "Old.\n")
					calls, end := w.play(t, s.URL, dir, cmp.Or(probe.DefaultPrompts[c.prompt], c.prompt), c.tools, stream)
					var names, ids []string
					for _, x := range calls {
						names = append(names, x.name)
						ids = append(ids, x.id)
					}
					if got := strings.Join(names, " "); got != c.calls {
						t.Errorf("%s: the calls are %q, want %q", c.prompt, got, c.calls)
					}
					slices.Sort(ids)
					if len(slices.Compact(ids)) != len(calls) {
						t.Errorf("%s: the ids are %q", c.prompt, ids)
					}
					if !strings.Contains(end.text, c.end) || end.finish != w.reasons[c.finish] {
						t.Errorf("%s: it ends with %q, %s", c.prompt, end.text, end.finish)
					}
					if b, _ := os.ReadFile(filepath.Join(dir, "demo.txt")); c.demo != "" && string(b) != c.demo {
						t.Errorf("%s: demo.txt is %q", c.prompt, b)
					}
					if _, err := os.Stat(filepath.Join(dir, "old.txt")); (err != nil) != c.removed {
						t.Errorf("%s: old.txt: %v", c.prompt, err)
					}
					if (end.thought != "") != (c.prompt == "think") {
						t.Errorf("%s: the thought is %q", c.prompt, end.thought)
					}
					if refused := end.refusal != ""; w.name != "anthropic" && w.name != "gemini" && refused != (c.prompt == "refusal") {
						t.Errorf("%s: the refusal is %q", c.prompt, end.refusal)
					}
					if c.prompt == "long" && stream && len(end.events) < 400 {
						t.Errorf("a long text comes in %d events", len(end.events))
					}
				}
			})
		}
	}
}

// TestEvents compares the events of a stream with those that the makers document.
func TestEvents(t *testing.T) {
	want := map[string]string{
		"anthropic": "message_start content_block_start content_block_delta content_block_stop content_block_start content_block_delta content_block_stop message_delta message_stop",
		"responses": "response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta response.output_text.done response.content_part.done response.output_item.done response.output_item.added response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done response.completed",
	}
	s := httptest.NewServer(New(nil))
	defer s.Close()
	for _, w := range wires {
		if want[w.name] == "" {
			continue
		}
		body := w.request([]string{w.user(probe.DefaultPrompts["read"])}, []string{w.tool("Read", fileSchema)}, "cwd: /x", true)
		if got := strings.Join(w.ask(t, s.URL, body, true).events, " "); got != want[w.name] {
			t.Errorf("%s: the events are %s", w.name, got)
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
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
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
		{"POST", "/v1/responses", `{"input":7}`, 400, `input`},
		{"POST", "/v1beta/models/m:generateContent", `x`, 400, `INVALID_ARGUMENT`},
		{"GET", "/v1/messages", ``, 405, `expected POST`},
		{"POST", "/v1/embeddings", `{}`, 404, `/v1/embeddings`},
		{"GET", "/v1/models", ``, 200, `fake-model`},
		{"HEAD", "/", ``, 200, ``},
		{"POST", "/v1/messages/count_tokens", `{"messages":[]}`, 200, `input_tokens`},
		{"POST", "/v1beta/models/m:countTokens", `{"contents":[]}`, 200, `totalTokens`},
		{"POST", "/v1beta/models/m:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, 200, `[{"candidates"`},
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
	if model.Served() != 2 {
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
	body := wires[1].request([]string{wires[1].user(probe.DefaultPrompts["long"])}, nil, "", true)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil { // the first piece comes at once
		t.Fatal(err)
	}
	cancel()
	<-ended
}
