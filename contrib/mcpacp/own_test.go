package mcpacp_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/agentkit/workspace"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

type greeting struct {
	Name  string `json:"name" jsonschema:"whom to greet"`
	Times int    `json:"times,omitempty"`
}

func (g greeting) String() string { return "Greet " + g.Name }

type nothing struct{}

// own is the configuration of an agent with tools of its own, whose prompts make calls.
func own(calls func() []mcp.CallToolParamsRaw, made *[]acp.ToolCall, add func(s *mcpacp.Set)) agentkit.Config[state] {
	config := config(nil)
	connect := config.Open
	config.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		err := connect(ctx, s, o)
		if err == nil {
			add(s.State.tools)
		}
		return err
	}
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (_ *acp.PromptResponse, err error) {
		*made, err = t.State.tools.CallAll(ctx, t, calls())
		return nil, err
	}
	return config
}

// Tools of the agent's own are listed and called like those of servers.
func TestAddTool(t *testing.T) {
	var made []acp.ToolCall
	var set *mcpacp.Set
	calls := []mcp.CallToolParamsRaw{
		{Name: "greet", Arguments: []byte(`{"name": "Ada", "times": 2}`)},
		{Name: "greet", Arguments: []byte(`{"name": 7}`)},
		{Name: "greet", Arguments: []byte(`{"times": 7}`)},
		{Name: "greet", Arguments: []byte(`{"name": "Ada", "other": 1}`)},
		{Name: "greet", Arguments: []byte(`{"name": "A`)},
		{Name: "look"},
		{Name: "edit"},
		{Name: "fail"},
		{Name: "good__echo"},
		{Name: "fly to/the moon", Arguments: []byte("{}")},
		{Name: "", Arguments: []byte("{}")},
	}
	h := (&host{}).open(t, own(func() []mcp.CallToolParamsRaw { return calls }, &made, func(s *mcpacp.Set) {
		set = s
		mcpacp.AddTool(s, "greet", acp.ToolKindOther, "Greets.", func(ctx context.Context, call *agentkit.ToolCall, in greeting) (string, error) {
			if _, err := call.Ask(ctx); err != nil {
				return "", err
			}
			return strings.Repeat("Hello "+in.Name+". ", in.Times), nil
		})
		mcpacp.AddTool(s, "look", acp.ToolKindRead, "Looks.", func(_ context.Context, call *agentkit.ToolCall, _ nothing) (string, error) {
			if got := call.State().Status; got != acp.ToolCallStatusInProgress {
				t.Errorf("a tool that reads is %s", got)
			}
			return "a view", nil
		})
		mcpacp.AddTool(s, "edit", acp.ToolKindEdit, "Edits.", func(_ context.Context, call *agentkit.ToolCall, _ nothing) (string, error) {
			return "done", call.Diff("/a", "1", "2")
		})
		mcpacp.AddTool(s, "fail", acp.ToolKindExecute, "Fails.", func(context.Context, *agentkit.ToolCall, nothing) (string, error) {
			return "what it printed", errors.New("exit status 1")
		})
	}), server(t, "good", "plain"))
	h.prompt(t, "Go")
	var got []string
	for _, call := range made {
		got = append(got, fmt.Sprintf("%s %s = %s", call.Name.Value(), call.RawInput, agentkit.ToolResult(call)))
	}
	const wrong = "error: the input does not fit: "
	for i, line := range got { // the text after that is of another module
		if at := strings.Index(line, wrong); at >= 0 {
			got[i] = line[:at+len(wrong)]
		}
	}
	if diff := cmp.Diff([]string{
		`greet {"name":"Ada","times":2} = Hello Ada. Hello Ada. `,
		`greet {"name":7} = ` + wrong,
		`greet {"times":7} = ` + wrong,
		`greet {"name":"Ada","other":1} = ` + wrong,
		`greet  = error: the input is not a JSON object: {"name": "A`,
		`look {} = a view`,
		`edit {} = done`,
		"fail {} = error: exit status 1\nwhat it printed",
		`good__echo {} = {} after 0 cancellations`,
		`fly_to_the_moon {} = error: there is no tool "fly_to_the_moon"`,
		`unknown {} = error: there is no tool "unknown"`,
	}, got); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
	seen := h.seen()
	for i, want := range []string{
		"other: Greet Ada, completed:", "other: greet, failed: ", "other: greet, failed: ", "other: greet, failed: ", "other: greet, failed: ",
		"read: look, completed: \"```\\na view\\n```\"", "edit: edit, completed:", `execute: fail, failed: "exit status 1"`,
	} {
		if !strings.HasPrefix(seen[i], want) {
			t.Errorf("the client shows %q, want %q", seen[i], want)
		}
	}
	tools, err := set.Tools(t.Context())
	if err != nil || len(tools) != 6 || tools[0].Name != "greet" || tools[0].Description != "Greets." {
		t.Fatalf("the tools are %v, %v", tools, err)
	}
	schema, _ := tools[0].InputSchema.(map[string]any)
	if diff := cmp.Diff(map[string]any{
		"type": "object", "required": []any{"name"}, "additionalProperties": false, "properties": map[string]any{
			"name": map[string]any{"type": "string", "description": "whom to greet"}, "times": map[string]any{"type": "integer"},
		},
	}, schema); diff != "" {
		t.Errorf("the schema (-want +got):\n%s", diff)
	}
	for name, add := range map[string]func(){
		"taken":         func() { mcpacp.AddTool[nothing](set, "look", acp.ToolKindRead, "", nil) },
		"not valid":     func() { mcpacp.AddTool[nothing](set, "look at", acp.ToolKindRead, "", nil) },
		"not an object": func() { mcpacp.AddTool[string](set, "new", acp.ToolKindRead, "", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: AddTool did not panic", name)
				}
			}()
			add()
		}()
	}
}

// The tools for files and commands.
func TestAddWorkspace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the command is one of Unix")
	}
	var made []acp.ToolCall
	var calls []mcp.CallToolParamsRaw
	use := func(name, args string) {
		calls = append(calls, mcp.CallToolParamsRaw{Name: name, Arguments: []byte(args)})
	}
	use("write", `{"path": "a.txt", "content": "one\ntwo\n"}`)
	use("read", `{"path": "a.txt", "line": 2}`)
	use("list", `{}`)
	use("search", `{"pattern": "t[w]o"}`)
	use("edit", `{"path": "a.txt", "old_string": "two", "new_string": "2"}`)
	use("run", `{"command": "cat a.txt; exit 3"}`)
	use("read", `{"path": "../a.txt"}`)
	use("write", `{"path": "long.txt", "content": "`+strings.Repeat("long ", 20_000)+`"}`)
	use("read", `{"path": "long.txt"}`)
	theirs := config(nil)
	connect := theirs.Open
	theirs.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		if err := connect(ctx, s, o); err != nil {
			return err
		}
		files, err := workspace.Open(s, nil)
		if err == nil {
			mcpacp.AddWorkspace(s.State.tools, files)
		}
		return err
	}
	theirs.Prompt = func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (_ *acp.PromptResponse, err error) {
		made, err = t.State.tools.CallAll(ctx, t, calls)
		return nil, err
	}
	h := (&host{cwd: t.TempDir()}).open(t, theirs)
	h.prompt(t, "Go")
	var got []string
	for _, call := range made {
		result := strings.ReplaceAll(agentkit.ToolResult(call), h.cwd+"/", "")
		got = append(got, fmt.Sprintf("%s: %s, %s: %s", call.Kind, call.Title, call.Status, result))
	}
	if diff := cmp.Diff([]string{
		"edit: Write a.txt, completed: ", "read: Read a.txt, completed: two\n", "read: List, completed: a.txt\n",
		"search: Search t[w]o, completed: a.txt:2:two\n", "edit: Edit a.txt, completed: ",
		"execute: Run cat a.txt; exit 3, failed: error: exit status 3\none\n2\n",
	}, got[:6]); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
	if !strings.Contains(got[6], "outside the directories of the session") {
		t.Errorf("a file outside: %s", got[6])
	}
	if n := len(got[8]); n < 64<<10 || n > 65<<10 || !strings.HasSuffix(got[8], "\n(cut off)") {
		t.Errorf("a long file has %d bytes", n)
	}
	if len(h.asked) != 4 { // about the changes and the command
		t.Errorf("asked %d times", len(h.asked))
	}
	if at := made[1].Locations; len(at) != 1 || at[0].Path != filepath.Join(h.cwd, "a.txt") || at[0].Line.Value() != 2 {
		t.Errorf("the location of the read is %+v", at)
	}
}

// A call that the user does not allow fails, and a dismissed question ends the turn.
func TestAddToolAsks(t *testing.T) {
	var made []acp.ToolCall
	calls := func() []mcp.CallToolParamsRaw { return []mcp.CallToolParamsRaw{{Name: "ask"}, {Name: "ask"}} }
	h := (&host{answer: "reject"}).open(t, own(calls, &made, func(s *mcpacp.Set) {
		mcpacp.AddTool(s, "ask", acp.ToolKindExecute, "Asks.", func(ctx context.Context, call *agentkit.ToolCall, _ nothing) (string, error) {
			_, err := call.Ask(ctx)
			return "", err
		})
	}))
	if stop := h.prompt(t, "Go"); stop != acp.StopReasonEndTurn || len(made) != 2 {
		t.Errorf("the turn ended with %s and %d calls", stop, len(made))
	}
	if got := agentkit.ToolResult(made[0]); got != "error: the user did not allow it" {
		t.Errorf("the model gets %q", got)
	}
}

// Calls in a row that read are made at the same time, others alone and in order.
func TestCallAll(t *testing.T) {
	var made []acp.ToolCall
	var mu sync.Mutex
	var order []string
	var together sync.WaitGroup
	together.Add(3)
	calls := func() []mcp.CallToolParamsRaw {
		return []mcp.CallToolParamsRaw{{Name: "write"}, {Name: "read"}, {Name: "find"}, {Name: "read"}, {Name: "write"}, {Name: "write"}}
	}
	h := (&host{}).open(t, own(calls, &made, func(s *mcpacp.Set) {
		read := func(context.Context, *agentkit.ToolCall, nothing) (string, error) {
			together.Done()
			together.Wait() // for the other two
			mu.Lock()
			defer mu.Unlock()
			order = append(order, "read")
			return "", nil
		}
		mcpacp.AddTool(s, "read", acp.ToolKindRead, "", read)
		mcpacp.AddTool(s, "find", acp.ToolKindSearch, "", read)
		mcpacp.AddTool(s, "write", acp.ToolKindEdit, "", func(context.Context, *agentkit.ToolCall, nothing) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, "write")
			return "", nil
		})
	}))
	h.prompt(t, "Go")
	if got := strings.Join(order, " "); got != "write read read read write write" {
		t.Errorf("the order is %s", got)
	}
	for i, call := range made {
		if want := calls()[i].Name; call.Name.Value() != want || call.Status != acp.ToolCallStatusCompleted {
			t.Errorf("call %d is %s, %s; want %s", i, call.Name.Value(), call.Status, want)
		}
	}
}

// A tool that panics fails the turn, and the agent continues.
func TestCallAllPanics(t *testing.T) {
	var made []acp.ToolCall
	next := []mcp.CallToolParamsRaw{{Name: "read"}, {Name: "panic"}, {Name: "read"}}
	calls := func() []mcp.CallToolParamsRaw { return next }
	theirs := own(calls, &made, func(s *mcpacp.Set) {
		mcpacp.AddTool(s, "read", acp.ToolKindRead, "", func(context.Context, *agentkit.ToolCall, nothing) (string, error) { return "", nil })
		mcpacp.AddTool(s, "panic", acp.ToolKindRead, "", func(context.Context, *agentkit.ToolCall, nothing) (string, error) { panic("oh") })
	})
	h := (&host{quiet: true}).open(t, theirs)
	if _, err := h.session.Prompt(t.Context(), acp.TextBlock("Go")); !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("a tool that panics: %v", err)
	}
	next = next[:1]
	if h.prompt(t, "Go"); len(made) != 1 {
		t.Errorf("afterwards %d calls were made", len(made))
	}
}
