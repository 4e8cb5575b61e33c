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

// owner is a client, and its agent with tools of its own, whose prompts make calls.
type owner struct {
	host
	set   *mcpacp.Set
	calls []mcp.CallToolParamsRaw
	made  []acp.ToolCall
}

// open opens a session. add adds tools to its set.
func (o *owner) open(t *testing.T, add func(s *agentkit.Session[state], set *mcpacp.Set) error, servers ...acp.MCPServer) {
	t.Helper()
	config := config(nil)
	connect := config.Open
	config.Open = func(ctx context.Context, s *agentkit.Session[state], opening *agentkit.Opening) error {
		if err := connect(ctx, s, opening); err != nil {
			return err
		}
		o.set = s.State.tools
		return add(s, o.set)
	}
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (_ *acp.PromptResponse, err error) {
		o.made, err = t.State.tools.CallAll(ctx, t, o.calls)
		return nil, err
	}
	o.host.open(t, config, servers...)
}

// use adds calls, each a name and its arguments.
func (o *owner) use(calls ...string) {
	for _, call := range calls {
		name, args, _ := strings.Cut(call, "(")
		o.calls = append(o.calls, mcp.CallToolParamsRaw{Name: name, Arguments: []byte(args)})
	}
}

// addOwn adds a tool without an input.
func addOwn(s *mcpacp.Set, name string, kind acp.ToolKind, run func(context.Context, *agentkit.ToolCall) (string, error)) {
	mcpacp.AddTool(s, name, kind, "", func(ctx context.Context, call *agentkit.ToolCall, _ nothing) (string, error) {
		return run(ctx, call)
	})
}

// Tools of the agent's own are listed and called like those of servers.
func TestAddTool(t *testing.T) {
	o := &owner{}
	o.use(`greet({"name": "Ada", "times": 2}`, `greet({"name": 7}`, `greet({"times": 7}`, `greet({"name": "Ada", "other": 1}`, `greet({"name": "A`,
		"look", "edit", "fail", "good__echo", "fly to/the moon({}", "({}")
	o.open(t, func(_ *agentkit.Session[state], s *mcpacp.Set) error {
		mcpacp.AddTool(s, "greet", acp.ToolKindOther, "Greets.", func(ctx context.Context, call *agentkit.ToolCall, in greeting) (string, error) {
			if _, err := call.Ask(ctx); err != nil {
				return "", err
			}
			return strings.Repeat("Hello "+in.Name+". ", in.Times), nil
		})
		addOwn(s, "look", acp.ToolKindRead, func(_ context.Context, call *agentkit.ToolCall) (string, error) {
			if got := call.State().Status; got != acp.ToolCallStatusInProgress {
				t.Errorf("a tool that reads is %s", got)
			}
			return "a view", nil
		})
		addOwn(s, "edit", acp.ToolKindEdit, func(_ context.Context, call *agentkit.ToolCall) (string, error) {
			return "done", call.Diff("/a", "1", "2")
		})
		addOwn(s, "fail", acp.ToolKindExecute, func(context.Context, *agentkit.ToolCall) (string, error) {
			return "what it printed", errors.New("exit status 1")
		})
		return nil
	}, server(t, "good", ""))
	o.prompt(t, "Go")
	var got []string
	for _, call := range o.made {
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
	seen := o.seen()
	for i, want := range []string{
		"other: Greet Ada, completed:", "other: greet, failed: ", "other: greet, failed: ", "other: greet, failed: ", "other: greet, failed: ",
		"read: look, completed: \"```\\na view\\n```\"", "edit: edit, completed:", `execute: fail, failed: "exit status 1"`,
	} {
		if !strings.HasPrefix(seen[i], want) {
			t.Errorf("the client shows %q, want %q", seen[i], want)
		}
	}
	tools, err := o.set.Tools(t.Context())
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
		"taken":         func() { mcpacp.AddTool[nothing](o.set, "look", acp.ToolKindRead, "", nil) },
		"not valid":     func() { mcpacp.AddTool[nothing](o.set, "look at", acp.ToolKindRead, "", nil) },
		"not an object": func() { mcpacp.AddTool[string](o.set, "new", acp.ToolKindRead, "", nil) },
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
	o := &owner{host: host{cwd: t.TempDir()}}
	o.use(`write({"path": "a.txt", "content": "one\ntwo\n"}`, `read({"path": "a.txt", "line": 2}`, `list({}`, `search({"pattern": "t[w]o"}`,
		`edit({"path": "a.txt", "old_string": "two", "new_string": "2"}`, `run({"command": "cat a.txt; exit 3"}`, `read({"path": "../a.txt"}`,
		`write({"path": "long.txt", "content": "`+strings.Repeat("long ", 20_000)+`"}`, `read({"path": "long.txt"}`)
	o.open(t, func(s *agentkit.Session[state], set *mcpacp.Set) error {
		files, err := workspace.Open(s, nil)
		if err == nil {
			mcpacp.AddWorkspace(set, files)
		}
		return err
	})
	o.prompt(t, "Go")
	var got []string
	for _, call := range o.made {
		result := strings.ReplaceAll(agentkit.ToolResult(call), o.cwd+"/", "")
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
	if len(o.asked) != 4 { // about the changes and the command
		t.Errorf("asked %d times", len(o.asked))
	}
	if at := o.made[1].Locations; len(at) != 1 || at[0].Path != filepath.Join(o.cwd, "a.txt") || at[0].Line.Value() != 2 {
		t.Errorf("the location of the read is %+v", at)
	}
}

// A call that the user does not allow fails, and the turn goes on.
func TestAddToolAsks(t *testing.T) {
	o := &owner{host: host{answer: "reject"}}
	o.use("ask", "ask")
	o.open(t, func(_ *agentkit.Session[state], s *mcpacp.Set) error {
		addOwn(s, "ask", acp.ToolKindExecute, func(ctx context.Context, call *agentkit.ToolCall) (string, error) {
			_, err := call.Ask(ctx)
			return "", err
		})
		return nil
	})
	if stop := o.prompt(t, "Go"); stop != acp.StopReasonEndTurn || len(o.made) != 2 {
		t.Errorf("the turn ended with %s and %d calls", stop, len(o.made))
	}
	if got := agentkit.ToolResult(o.made[0]); got != "error: the user did not allow it" {
		t.Errorf("the model gets %q", got)
	}
}

// Calls in a row that read are made at the same time, others alone and in order. One that panics fails the turn, and the
// agent continues.
func TestCallAll(t *testing.T) {
	var mu sync.Mutex
	var order []string
	var together sync.WaitGroup
	together.Add(3)
	o := &owner{host: host{quiet: true}}
	o.use("write", "read", "find", "read", "write", "write")
	o.open(t, func(_ *agentkit.Session[state], s *mcpacp.Set) error {
		note := func(what string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
			return "", nil
		}
		read := func(context.Context, *agentkit.ToolCall) (string, error) {
			together.Done()
			together.Wait() // for the other two
			return note("read")
		}
		addOwn(s, "read", acp.ToolKindRead, read)
		addOwn(s, "find", acp.ToolKindSearch, read)
		addOwn(s, "write", acp.ToolKindEdit, func(context.Context, *agentkit.ToolCall) (string, error) { return note("write") })
		addOwn(s, "panic", acp.ToolKindRead, func(context.Context, *agentkit.ToolCall) (string, error) { panic("oh") })
		return nil
	})
	o.prompt(t, "Go")
	if got := strings.Join(order, " "); got != "write read read read write write" {
		t.Errorf("the order is %s", got)
	}
	for i, call := range o.made {
		if want := o.calls[i].Name; call.Name.Value() != want || call.Status != acp.ToolCallStatusCompleted {
			t.Errorf("call %d is %s, %s; want %s", i, call.Name.Value(), call.Status, want)
		}
	}
	together.Add(2)
	o.calls = nil
	o.use("read", "panic", "read")
	if _, err := o.session.Prompt(t.Context(), acp.TextBlock("Go")); !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("a tool that panics: %v", err)
	}
	o.calls = o.calls[:0]
	o.use("write")
	if o.prompt(t, "Go"); len(o.made) != 1 {
		t.Errorf("afterwards %d calls were made", len(o.made))
	}
}
