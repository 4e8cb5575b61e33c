package mcpacp_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// realAgents are agents from npm, and how each finds the fake model at {url} with {home} as its home.
var realAgents = []struct {
	name   string
	env    []string
	file   string // the configuration, below {home}
	config string
}{
	{
		name: "claude",
		env: []string{
			"ANTHROPIC_BASE_URL={url}", "ANTHROPIC_API_KEY=sk-ant-fake", "IS_SANDBOX=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CONFIG_DIR={home}/.claude",
		},
	},
	{
		name: "opencode",
		env:  []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
		file: ".config/opencode/opencode.json",
		config: `{"autoupdate": false, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model", "enabled_providers": ["fake"],
			"provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": {"baseURL": "{url}/v1", "apiKey": "fake"},
			"models": {"fake-model": {"name": "Fake", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}}}}`,
	},
	{
		name: "gemini",
		env:  []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL={url}", "GEMINI_MODEL=gemini-2.5-flash"},
		file: ".gemini/settings.json",
		config: `{"general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
			"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}}`,
	},
	{
		name: "qwen",
		env:  []string{"OPENAI_API_KEY=fake", "OPENAI_BASE_URL={url}/v1", "OPENAI_MODEL=fake-model"},
		file: ".qwen/settings.json",
		config: `{"general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
			"security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}}, "model": {"name": "fake-model"}, "tools": {"approvalMode": "default"}}`,
	},
}

// Agents from npm, whose model is fake, call a tool of the client over the bridge, and its result reaches their model.
func TestProvideRealAgents(t *testing.T) {
	commands := npmtest.Agents(t)
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			model := httptest.NewServer(modelstub.New(nil))
			defer model.Close()
			home, cwd := t.TempDir(), t.TempDir()
			fill := strings.NewReplacer("{url}", model.URL, "{home}", home).Replace
			if a.file != "" {
				name := filepath.Join(home, a.file)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(fill(a.config)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command := commands[a.name]
			agent := exec.Command(command[0], command[1:]...)
			agent.Dir = cwd
			agent.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"}
			for _, variable := range a.env {
				agent.Env = append(agent.Env, fill(variable))
			}

			server := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
			var mu sync.Mutex
			var calls []string
			var version string // of MCP
			mcp.AddTool(server, &mcp.Tool{Name: "find_book", Description: "Finds a book on the user's shelf."},
				func(_ context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
					mu.Lock()
					defer mu.Unlock()
					version = req.ProtocolVersion()
					calls = append(calls, in.Text)
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "It is on board 4711."}}}, nil, nil
				})
			var said strings.Builder
			handlers := acp.ClientHandlers{
				RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					for _, o := range req.Options {
						if o.Kind == acp.PermissionOptionKindAllowOnce {
							return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(o.OptionID)}, nil
						}
					}
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
				},
				SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
					if chunk, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
						text := chunk.Content.Text()
						said.WriteString(text)
					}
					return nil
				},
			}
			options := acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}}
			var provider mcpacp.Provider
			provider.Enable(&handlers, &options)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			began := time.Now()
			known := map[string]string{}
			for _, rule := range []string{"CFG-19", "EXT-2", "EXT-3", "PRM-6", "TOL-1"} {
				known[rule] = "docs/reference/real-agents.md"
			}
			transport := conformance.Tap(t, conformance.Client, acp.Command(agent), &conformance.TapOptions{Accept: known})
			conn, err := acp.Connect(ctx, transport, handlers, &options)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() // some agents do not end by themselves
			offer, err := provider.Provide(conn, "shelf", server)
			if err != nil {
				t.Fatal(err)
			}
			session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: cwd, MCPServers: []acp.MCPServer{offer.Declaration}})
			if err != nil {
				t.Fatal(err)
			}
			var res *acp.PromptResponse
			for range 20 { // some agents are still connecting to the server during the first turn
				if res, err = session.Prompt(ctx, acp.TextBlock(`Call the MCP tool find_book with "Dune".`)); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				called := len(calls) > 0
				mu.Unlock()
				if called {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(calls) != 1 || calls[0] != "Dune" {
				t.Errorf("the tool was called with %q", calls)
			}
			// The model repeats what the tool has said.
			if !strings.Contains(said.String(), "The tool says: ") || !strings.Contains(said.String(), "board 4711") {
				t.Errorf("the agent says %q", said.String())
			}
			t.Logf("bridged %v, MCP %s, %s, %.1f s: %q", offer.Bridged, version, res.StopReason, time.Since(began).Seconds(), said.String())
		})
	}
}
