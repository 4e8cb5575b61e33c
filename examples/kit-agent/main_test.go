package main

import (
	"bytes"
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/dialogue"
	"github.com/acpgo/sdk/internal/test/tier"
)

const runAs = "KIT_AGENT_TEST_RUN_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(runAs) {
	case "agent":
		main()
		return
	case "server":
		serveMCP()
		return
	}
	goleak.VerifyTestMain(m)
}

// serveMCP serves one tool on standard input and output.
func serveMCP() {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	greet := func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello " + in.Name}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Title: "Greet"}, greet)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

// agent is the agent as a process of its own, and an MCP server for the client's sessions.
func agent(t *testing.T, client *actor.Client, state string, args []string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if client != nil {
		client.Servers = []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{
			Name: "hall", Command: self, Args: []string{}, Env: []acp.EnvVariable{{Name: runAs, Value: "server"}},
		})}
	}
	cmd := exec.Command(self, append([]string{"-state", state}, args...)...)
	cmd.Env = append(os.Environ(), runAs+"=agent", "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestDialogues(t *testing.T) {
	dialogue.Run(t, func() dialogue.Agent { return dialogue.Agent{Start: agent} })
}

// A turn is cancelled while it writes, and while a command runs, which is killed.
func TestCancel(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	handlers := acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("once")}, nil
		},
	}
	machine, err := local.Serve(&handlers, local.Trusted(), dir)
	if err != nil {
		t.Fatal(err)
	}
	transport := conformance.Tap(t, conformance.Client, acp.Command(agent(t, nil, t.TempDir(), nil)), nil)
	conn, err := acp.Connect(t.Context(), transport, handlers, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	for text, until := range map[string]func(acp.SessionUpdate) bool{
		"long": func(u acp.SessionUpdate) bool { return u.AgentText() != "" },
		"run `sleep 100`": func(u acp.SessionUpdate) bool {
			call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
			return ok && call.Content.Present()
		},
	} {
		turn := s.Stream(t.Context(), acp.TextBlock(text))
		failed := false
		for u := range turn.Updates() {
			if until(u) {
				turn.Cancel()
			}
			call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
			failed = failed || ok && call.Status.Value() == acp.ToolCallStatusFailed
		}
		if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
			t.Errorf("%s: %v, %v", text, res, err)
		}
		if failed != strings.HasPrefix(text, "run") {
			t.Errorf("%s: a call has failed: %v", text, failed)
		}
	}
	if err := errors.Join(conn.Close(), machine.Close()); err != nil {
		t.Error(err)
	}
}

// The example stays as small as it is said to be.
func TestLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n > 165 {
		t.Errorf("main.go has %d lines, more than 165", n)
	}
}

// Some clients start agents with an empty environment, or where no state can be kept: the agent warns, and works.
func TestNoHome(t *testing.T) {
	tier.Need(t, tier.Normal)
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no program starts with an empty environment")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string][]string{"empty": nil, "file": {"HOME=" + file}, "missing": {"HOME=" + file + "/none"}} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			printed := dialogue.Talk(t, t.TempDir(), "Hello\n:sessions\n", func(*actor.Client) *exec.Cmd {
				cmd := exec.Command(self)
				cmd.Env, cmd.Stderr = append(env, runAs+"=agent"), &log
				return cmd
			})
			if !strings.Contains(printed, "You said: Hello") || !strings.Contains(printed, "session ") {
				t.Errorf("the client prints:\n%s", printed)
			}
			if !strings.Contains(log.String(), "sessions are kept in memory") {
				t.Errorf("standard error has %q", &log)
			}
		})
	}
}
