package mcpacp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// A client that provides tools and an agent that connects to them work together, over the connection and over HTTP: lists,
// calls, progress, failures, and tools that are added in a turn.
func TestBothSides(t *testing.T) {
	for name, enable := range map[string]bool{"acp": true, "http": false} {
		t.Run(name, func(t *testing.T) {
			theirs, ours := acp.Pipe()
			opts := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
			served := make(chan error, 1)
			go func() { served <- agentkit.NewSessions(config(nil)).Serve(context.Background(), theirs, opts) }()

			server := newTools(nil)
			mcp.AddTool(server.Server, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
				mcp.AddTool(server.Server, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "I am new"}}}, nil, nil
				})
				return nil, nil, nil
			})
			var said strings.Builder
			handlers := acp.ClientHandlers{
				RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
				},
				SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
					if chunk, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
						text, _ := chunk.Content.Text()
						said.WriteString(text)
					}
					return nil
				},
			}
			options := acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
			var provider mcpacp.Provider
			if enable {
				provider.Enable(&handlers, &options)
			}
			conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V1Unstable()}), handlers, &options)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(conn.Close(), <-served); err != nil {
					t.Error(err)
				}
			}()
			offer, err := provider.Provide(conn, "own", server.Server)
			if err != nil || offer.Bridged == enable {
				t.Fatal(offer, err)
			}
			session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir(), MCPServers: []acp.MCPServer{offer.Declaration}})
			if err != nil {
				t.Fatal(err)
			}
			prompt := strings.Join([]string{"tools", `own__echo {"text":"hello"}`, "own__progress {}", "own__fail {}", "own__grow {}", "await own__grown", "own__grown {}"}, "\n")
			if _, err := session.Prompt(t.Context(), acp.TextBlock(prompt)); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"tools: own__ask own__echo", "result: You said: hello.", "result: done.", "failed: no such file.", "result: I am new."} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("no %q in %s", want, said.String())
				}
			}
		})
	}
}
