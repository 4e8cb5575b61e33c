package mcpacp_test

import (
	"context"
	"encoding/json"
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
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// realAgent is an agent from npm, and how it finds the fake model at {url} with {home} as its home; testdata/agents.json.
type realAgent struct {
	Name   string
	Env    []string
	File   string // the configuration, below {home}
	Config json.RawMessage
}

// Agents from npm, whose model is fake, call a tool of the client over the bridge, and its result reaches their model.
func TestProvideRealAgents(t *testing.T) {
	commands := npmtest.Agents(t)
	var agents []realAgent
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile("testdata/agents.json"))(t), &agents))
	for _, a := range agents {
		t.Run(a.Name, func(t *testing.T) {
			model := httptest.NewServer(modelstub.New(nil))
			defer model.Close()
			home, cwd := t.TempDir(), t.TempDir()
			fill := strings.NewReplacer("{url}", model.URL, "{home}", home).Replace
			if a.File != "" {
				name := filepath.Join(home, a.File)
				must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
				must.Do(t, os.WriteFile(name, []byte(fill(string(a.Config))), 0o600))
			}
			command := commands[a.Name]
			agent := exec.Command(command[0], command[1:]...)
			agent.Dir = cwd
			agent.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"}
			for _, variable := range a.Env {
				agent.Env = append(agent.Env, fill(variable))
			}

			server := mcp.NewServer(&mcp.Implementation{Name: "shelf", Version: "1"}, nil)
			var mu sync.Mutex
			var calls []string
			var version string // of MCP
			add(server, &mcp.Tool{Name: "find_book", Description: "Finds a book on the user's shelf."},
				func(_ context.Context, req *mcp.CallToolRequest, text string) (*mcp.CallToolResult, error) {
					mu.Lock()
					defer mu.Unlock()
					version = req.ProtocolVersion()
					calls = append(calls, text)
					return textResult("It is on board 4711."), nil
				})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			began := time.Now()
			known := map[string]string{}
			for _, rule := range []string{"CFG-19", "EXT-2", "EXT-3", "PRM-6", "TOL-1"} {
				known[rule] = "docs/reference/real-agents.md"
			}
			h := &host{provider: &mcpacp.Provider{}, cwd: cwd, tap: &conformance.TapOptions{Accept: known}}
			h.lax = true // some agents do not end by themselves
			h.connect(t, acp.Command(agent))
			offer := must.Get(h.provider.Provide(h.ClientConn, "shelf", server))(t)
			h.newSession(t, offer.Declaration)
			var res *acp.PromptResponse
			for range 20 { // some agents are still connecting to the server during the first turn
				res = must.Get(h.session.Prompt(ctx, acp.TextBlock(`Call the MCP tool find_book with "Dune".`)))(t)
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
			if !strings.Contains(h.said(), "The tool says: ") || !strings.Contains(h.said(), "board 4711") {
				t.Errorf("the agent says %q", h.said())
			}
			t.Logf("bridged %v, MCP %s, %s, %.1f s: %q", offer.Bridged, version, res.StopReason, time.Since(began).Seconds(), h.said())
		})
	}
}
