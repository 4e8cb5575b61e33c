package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/dialogue"
	"github.com/acpgo/sdk/internal/test/tier"
)

const runAs = "CODER_TEST_RUN_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(runAs) {
	case "agent":
		main()
		return
	case "server":
		serveMCP()
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		buildtest.Remove()
		os.Exit(code)
	}))
}

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

// The APIs, which the tests use alike.
var apis = []string{"openai", "anthropic"}

// model is what the model answers: the sections "model", whose lines are the answers to a prompt, before it says what
// the last tool has returned, and "requests", whose lines are the answers to requests, the last one to all others. Words
// behind the name are the beginning of prompts that the section is for. A line is "say TEXT", a tool and its input, or an
// answer of modelstub as JSON.
type model struct {
	requests bool
	served   atomic.Int32
	prompt   string
	answers  []*modelstub.Answer
}

func (m *model) answer(r modelstub.Request) *modelstub.Answer {
	if m.requests {
		return m.answers[min(int(m.served.Add(1)), len(m.answers))-1]
	}
	left := len(r.Results)
	for _, a := range m.answers {
		if left == 0 {
			return a
		}
		left -= len(a.Calls)
	}
	return &modelstub.Answer{Text: []string{"Result: " + r.Results[len(r.Results)-1]}}
}

func newModel(t *testing.T, words []string, text string) *model {
	t.Helper()
	m := &model{requests: words[0] == "requests", prompt: strings.Join(words[1:], " ")}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		a := &modelstub.Answer{}
		switch {
		case strings.HasPrefix(line, "{"):
			if err := json.Unmarshal([]byte(line), a); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		case word == "say":
			a.Text = []string{rest}
		default:
			a.Calls = []modelstub.Call{{ID: "call", Name: word, Args: rest}}
		}
		m.answers = append(m.answers, a)
	}
	return m
}

// serveRequests serves a model that says OK, and keeps its last request.
func serveRequests(t *testing.T, last *atomic.Pointer[modelstub.Request]) (url string) {
	t.Helper()
	return serve(t, func(r modelstub.Request) *modelstub.Answer {
		last.Store(&r)
		return &modelstub.Answer{Text: []string{"OK"}}
	})
}

// serveModel serves a model whose answers are those of the newest of models that is for the prompt.
func serveModel(t *testing.T, models func() []*model) (url string) {
	t.Helper()
	return serve(t, func(r modelstub.Request) *modelstub.Answer {
		if strings.HasSuffix(r.Prompt, "Are you there?") {
			return &modelstub.Answer{Text: []string{"Yes."}}
		}
		for _, m := range slices.Backward(models()) {
			if strings.HasPrefix(r.Prompt, m.prompt) {
				return m.answer(r)
			}
		}
		return &modelstub.Answer{Text: []string{"OK"}}
	})
}

func serve(t *testing.T, script func(modelstub.Request) *modelstub.Answer) (url string) {
	t.Helper()
	server := httptest.NewServer(modelstub.New(&modelstub.Options{Strict: true, Pace: time.Millisecond, Script: script}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// command is the agent as a process, with a model's address in its environment.
func command(t *testing.T, api, url, state string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"-state", state, "-api", api}, args...)...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OPENAI_") && !strings.HasPrefix(variable, "ANTHROPIC_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, runAs+"=agent", "GORACE=atexit_sleep_ms=0", "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	if url != "" {
		cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+url+"/v1", "OPENAI_API_KEY=secret", "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=secret")
	}
	return cmd
}

// TestDialogues plays testdata with both APIs, the second one with a client that has neither files nor terminals.
// Sections of these dialogues are the model's, "server", with the arguments of the MCP server, "odd", which makes files
// that are hard to read, and "check", a command that must succeed.
func TestDialogues(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the commands are those of Unix")
	}
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			dialogue.Run(t, func() dialogue.Agent {
				var models []*model
				server := []string{}
				return dialogue.Agent{
					Start: func(t *testing.T, client *actor.Client, state string, args []string) *exec.Cmd {
						self, err := os.Executable()
						if err != nil {
							t.Fatal(err)
						}
						client.Bare = api == "anthropic"
						client.Servers = []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{
							Name: "greeter", Command: self, Args: server, Env: []acp.EnvVariable{{Name: runAs, Value: "server"}},
						})}
						now := models
						models = nil
						return command(t, api, serveModel(t, func() []*model { return now }), state, args...)
					},
					Section: func(t *testing.T, dir string, words []string, text string) {
						switch words[0] {
						case "model", "requests":
							models = append(models, newModel(t, words, text))
						case "server":
							server = words[1:]
						case "odd":
							makeOdd(t, dir)
						case "check":
							cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
							cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off")
							if out, err := cmd.CombinedOutput(); err != nil {
								t.Errorf("%s: %v\n%s", text, err, out)
							}
						default:
							t.Fatalf("the section %q is unknown", words)
						}
					},
				}
			})
		})
	}
}

// makeOdd makes files that are hard to read, where they are not there.
func makeOdd(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(dir, "link")); err == nil {
		return
	}
	for name, text := range map[string]string{"a.txt": "the text\n", "binary": "a\x00\xff\xfe the text", "huge": "", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Truncate(filepath.Join(dir, "huge"), 1<<30), os.Symlink("/etc", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
}

// connect connects a client that allows everything once to an agent. Both end with the test. broken are rules that the
// test breaks; PRM-5, that prompts are answered, by killing the agent.
func connect(t *testing.T, agent *exec.Cmd, dir string, update func(acp.SessionUpdate), broken ...string) *acp.ClientConn {
	t.Helper()
	tier.Need(t, tier.Normal)
	handlers := acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("once")}, nil
		},
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			update(n.Update)
			return nil
		},
	}
	machine, err := local.Serve(&handlers, local.Trusted(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tap := &conformance.TapOptions{
		Schema: conformance.V1Unstable(), Ignore: func(f conformance.Finding) bool { return slices.Contains(broken, f.Rule) },
	}
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, acp.Command(agent), tap), handlers,
		&acp.ClientOptions{TerminalAuth: true, Experimental: acp.FeatureFork})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := conn.Close()
		if slices.Contains(broken, "PRM-5") {
			closed = nil
		}
		if err := errors.Join(closed, machine.Close()); err != nil {
			t.Error(err)
		}
	})
	return conn
}
