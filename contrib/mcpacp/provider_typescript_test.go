package mcpacp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// An agent on the official TypeScript SDKs of ACP and MCP uses the tools over mcp/message.
func TestProvideTypeScript(t *testing.T) {
	agent := exec.Command("node", filepath.Join(folder.Dir(t), "agent.mjs"))
	var stderr bytes.Buffer
	agent.Stderr = &stderr

	server := newTools(nil)
	var handler context.Context
	seen := make(chan struct{})
	for name, wait := range map[string]func(){
		"began": func() { handler = <-server.began },
		"ended": func() { <-handler.Done() },
		"seen":  func() { seen <- struct{}{} },
	} {
		mcp.AddTool(server.Server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
			wait()
			return nil, nil, nil
		})
	}

	mcp.AddTool(server.Server, &mcp.Tool{Name: "steps"}, func(ctx context.Context, req *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		for i, message := range []string{"one", "two"} {
			n := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Message: message, Progress: float64(i)}
			if err := req.Session.NotifyProgress(ctx, n); err != nil {
				return nil, nil, err
			}
			<-seen
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})

	var said strings.Builder
	handlers := acp.ClientHandlers{
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
	transport := conformance.Tap(t, conformance.Client, acp.Command(agent), &conformance.TapOptions{Schema: conformance.V1Unstable()})
	conn, err := acp.Connect(t.Context(), transport, handlers, &options)
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err, stderr.String())
		}
	}()
	offer, err := provider.Provide(conn, "tools", server.Server)
	if err != nil || offer.Bridged {
		t.Fatalf("bridged %v, %v", offer.Bridged, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: t.TempDir(), MCPServers: []acp.MCPServer{offer.Declaration}})
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	if _, err := session.Prompt(ctx, acp.TextBlock("Use the tools.")); err != nil {
		t.Fatal(err, stderr.String())
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(said.String()), &got); err != nil {
		t.Fatal(err, stderr.String())
	}
	names, _ := got["tools"].([]any)
	slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	for name, want := range map[string]any{
		"tools": []any{"ask", "began", "echo", "ended", "fail", "hang", "panic", "progress", "seen", "steps", "wait"}, "echo": "You said: hello",
		"progress": []any{"one", "two"}, "progressed": "done", "failed": []any{true, "no such file"}, "unknown": -32602.0,
		"cancelled": "cancelled", "outer": map[string]any{"unknown": -33001.0},
		"inner": map[string]any{
			"code": -32022.0, "message": "Unsupported protocol version",
			"data": map[string]any{"supported": []any{"2026-07-28"}, "requested": "2025-06-18"},
		},
	} {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", &stderr)
	}
}
