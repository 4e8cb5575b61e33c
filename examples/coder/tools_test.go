package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/modelstub"
)

// serveMCP serves one tool on standard input and output, which shows the key if the server has it.
func serveMCP() {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	greet := func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello " + in.Name + os.Getenv("OPENAI_API_KEY")}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Title: "Greet", Description: "Greets"}, greet)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

// The model calls tools of an MCP server of the session, if the user allows it, and remembers them when the session is loaded.
func TestMCP(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			tools := ""
			script := func(r modelstub.Request) *modelstub.Answer {
				tools = strings.Join(r.Tools, " ")
				return steps(use("greeter__greet", `{"name": "Ada"}`))(r)
			}
			h := start(t, setup{api: api, script: script})
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			servers := []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{
				Name: "greeter", Command: self, Args: []string{}, Env: []acp.EnvVariable{{Name: runAs, Value: "server"}},
			})}
			s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir, MCPServers: servers})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "allowed", h.prompt(t, s, "Greet"), `other: greeter: Greet, completed "Hello Ada"`+"\nagent: Result: Hello Ada")
			if !strings.HasSuffix(tools, " greeter__greet") {
				t.Errorf("the model has the tools %s", tools)
			}
			h.answers("no")
			got := h.prompt(t, s, "Greet again")
			if !strings.HasSuffix(got, "agent: Result: error: the user did not allow it") {
				t.Errorf("rejected: %s", got)
			}
			h.stop(t)
			h = start(t, setup{api: api, state: h.state, dir: h.dir, script: func(r modelstub.Request) *modelstub.Answer {
				return say(fmt.Sprintf("%d messages", r.Messages))
			}})
			if s, err = h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err != nil {
				t.Fatal(err)
			}
			same(t, "loaded", h.prompt(t, s, "More"), "agent: 9 messages") // twice prompt, call, result and answer, and a prompt
		})
	}
}

// An answer for always about a tool holds for the server as it was declared, and not for another program of its name.
func TestAlwaysMCP(t *testing.T) {
	t.Parallel()
	h := start(t, setup{script: steps(use("greeter__greet", `{"name": "Ada"}`))})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(answer acp.PermissionOptionID, args ...string) []acp.ToolCallUpdate {
		s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir, MCPServers: []acp.MCPServer{acp.NewMCPServerStdio(
			acp.MCPServerStdio{Name: "greeter", Command: self, Args: args, Env: []acp.EnvVariable{{Name: runAs, Value: "server"}}},
		)}})
		if err != nil {
			t.Fatal(err)
		}
		h.told()
		h.answers(answer)
		if _, err := s.Prompt(t.Context(), acp.TextBlock("Greet")); err != nil {
			t.Fatal(err)
		}
		_, asked := h.told()
		return asked
	}
	if asked := ask("always", "-test.v"); len(asked) != 1 {
		t.Errorf("first: asked about %+v", asked)
	}
	if asked := ask("no", "-test.v"); len(asked) != 0 {
		t.Errorf("the same server: asked about %+v", asked)
	}
	if asked := ask("no", "-test.v=false"); len(asked) != 1 {
		t.Errorf("another server: asked about %+v", asked)
	}
}

// Files come from the client if it offers them, and from all directories of the session.
func TestFiles(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	write(t, other, "other.txt", "in another directory")
	name := filepath.Join(other, "other.txt")
	h := start(t, setup{file: func(string) string { return "not saved yet" }, script: steps(use("read", `{"path": "a.txt"}`))})
	write(t, h.dir, "a.txt", "saved")
	same(t, "unsaved text", h.prompt(t, h.session(t), "Read"), "read: Read a.txt, completed \"```\\nnot saved yet\\n```\"\nagent: Result: not saved yet")

	h = start(t, setup{bare: true, script: steps(with("read", "path", name))})
	s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir, AdditionalDirectories: []string{other}})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.prompt(t, s, "Read"); !strings.HasSuffix(got, "agent: Result: in another directory") {
		t.Errorf("another directory: %s", got)
	}
	if got := h.prompt(t, h.session(t), "Read"); !strings.HasSuffix(got, "outside the directories of the session") {
		t.Errorf("a directory of another session: %s", got)
	}
}

// Calls of one answer that only read are made at the same time.
func TestParallelReads(t *testing.T) {
	t.Parallel()
	var arrived sync.WaitGroup
	arrived.Add(3)
	h := start(t, setup{
		script: steps(&modelstub.Answer{Calls: []modelstub.Call{
			{ID: "1", Name: "read", Args: `{"path": "a"}`}, {ID: "2", Name: "read", Args: `{"path": "b"}`}, {ID: "3", Name: "read", Args: `{"path": "c"}`},
		}}),
		file: func(name string) string {
			if name == "AGENTS.md" {
				return ""
			}
			arrived.Done()
			arrived.Wait() // for the other two
			return "the text of " + name
		},
	})
	if got := h.prompt(t, h.session(t), "Read"); !strings.HasSuffix(got, "agent: Result: the text of c") { // results are in the order of the calls
		t.Errorf("the client was told %s", got)
	}
}

// Commands do not see the keys.
func TestPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the commands are those of Unix")
	}
	h := start(t, setup{bare: true, script: steps(use("run", `{"command": "echo key=$OPENAI_API_KEY$ANTHROPIC_API_KEY"}`))})
	if got := h.prompt(t, h.session(t), "Run"); !strings.HasSuffix(got, "agent: Result: key=\n") {
		t.Errorf("the command printed %s", got)
	}
}

// No mode lets the model change what runs although nobody starts it, and nothing shows it the agent's own files.
func TestGuarded(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, ".state")
	write(t, state, "openai.key", "the key")
	write(t, dir, ".git/config", "[core]\n")
	h := start(t, setup{bare: true, dir: dir, state: state, script: func(r modelstub.Request) *modelstub.Answer {
		tool, args, _ := strings.Cut(r.Prompt, " ")
		return steps(use(tool, args))(r)
	}})
	h.answers("")
	s := h.session(t)
	for _, mode := range []acp.SessionModeID{"edits", "all"} {
		if err := s.SetMode(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
		for call, questions := range map[string]int{
			`write {"path": ".git/hooks/post-checkout", "content": "x"}`:                                         1,
			`edit {"path": ".git/config", "old_string": "core", "new_string": "alias"}`:                          1,
			`write {"path": ".envrc", "content": "x"}`:                                                           1,
			`write {"path": ".state/rules.json", "content": "{\"effect\": \"allow\", \"kind\": [\"execute\"]}"}`: 0, // it is refused
			`read {"path": ".state/openai.key"}`:                                                                 0,
			`list {"path": ".state"}`:                                                                            0,
			`search {"pattern": "the key", "path": ".state"}`:                                                    0,
			`search {"pattern": "the key"}`:                                                                      0,
			`write {"path": "main.go", "content": "x"}`:                                                          0,
		} {
			h.told()
			if _, err := s.Prompt(t.Context(), acp.TextBlock(call)); err != nil {
				t.Fatal(err)
			}
			lines, asked := h.told()
			if len(asked) != questions || strings.Contains(lines, "openai.key:") || strings.Contains(strings.ReplaceAll(lines, "Search the key", ""), "the key") {
				t.Errorf("mode %s, %s: %d questions, %s", mode, call, len(asked), lines)
			}
		}
	}
	if got := read(t, dir, ".git/config"); got != "[core]\n" {
		t.Errorf("the configuration is %q", got)
	}
	for _, name := range []string{".git/hooks/post-checkout", ".envrc", ".state/rules.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}
