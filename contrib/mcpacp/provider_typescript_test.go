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

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
)

// An agent on the official TypeScript SDKs of ACP and MCP uses the tools over mcp/message.
func TestProvideTypeScript(t *testing.T) {
	agent := exec.Command("node", filepath.Join(folder.Dir(t), "agent.mjs"))
	var stderr bytes.Buffer
	agent.Stderr = &stderr
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("standard error: %s", &stderr)
		}
	})

	server := newTools()
	var handler context.Context
	seen := make(chan struct{})
	for name, wait := range map[string]func(){
		"began": func() { handler = <-server.began },
		"ended": func() { <-handler.Done() },
		"seen":  func() { seen <- struct{}{} },
	} {
		addText(server.Server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest) (string, error) {
			wait()
			return "", nil
		})
	}
	addText(server.Server, &mcp.Tool{Name: "steps"}, func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		for i, message := range []string{"one", "two"} {
			n := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Message: message, Progress: float64(i)}
			if err := req.Session.NotifyProgress(ctx, n); err != nil {
				return "", err
			}
			<-seen
		}
		return "done", nil
	})

	h := &host{provider: &mcpacp.Provider{}, tap: &conformance.TapOptions{Schema: conformance.V1Unstable()}}
	h.connect(t, acp.Command(agent))
	offer := must.Get(h.provider.Provide(h.ClientConn, "tools", server.Server))(t)
	h.newSession(t, offer.Declaration)
	h.prompt(t, "Use the tools.")
	var got map[string]any
	if err := json.Unmarshal([]byte(h.said()), &got); err != nil || offer.Bridged {
		t.Fatal(err, offer.Bridged, stderr.String())
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
