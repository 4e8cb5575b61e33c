package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance/acptest"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
)

const runAs = "TOOLS_TEST_RUN_AS"

type state struct{ tools *mcpacp.Set }

func TestMain(m *testing.M) {
	role := os.Getenv(runAs)
	os.Unsetenv(runAs)
	switch {
	case len(os.Args) > 1 && os.Args[1] == "-serve", role == "proxy":
		main()
	case role == "agent": // calls each tool that it is given
		sessions := agentkit.NewSessions(agentkit.Config[state]{
			Open: func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) (err error) {
				s.State.tools, err = mcpacp.Connect(ctx, s, o.MCPServers, nil)
				return err
			},
			Prompt: func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				tools, err := t.State.tools.Tools(ctx)
				for _, tool := range tools {
					_, err = t.State.tools.Call(ctx, t, tool.Name, json.RawMessage(`{"text":"write docs"}`))
				}
				return nil, err
			},
		})
		if sessions.Serve(context.Background(), acp.Stdio(), nil) != nil {
			os.Exit(1)
		}
	default:
		goleak.VerifyTestMain(m)
	}
}

// An agent that was given no server gets the tool, and calls it after the user's consent.
func TestTools(t *testing.T) {
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self, "--", "env", runAs+"=agent", self)
	cmd.Env = append(os.Environ(), runAs+"=proxy", "GORACE=atexit_sleep_ms=0")
	client := acptest.Dial(t, acp.Command(cmd), nil)
	dir := t.TempDir()
	session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}))(t)
	client.Say(t, session, "go")
	text, err := os.ReadFile(filepath.Join(dir, "TODO.md"))
	if err != nil || string(text) != "- [ ] write docs\n" {
		t.Errorf("got %q, %v", text, err)
	}
	must.Do(t, client.Close())
}
