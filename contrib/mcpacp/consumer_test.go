package mcpacp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// declareACP declares a server over ACP.
func declareACP(name string) acp.MCPServer {
	return acp.NewMCPServerACP(acp.MCPServerACP{Name: name, ServerID: "server-1"})
}

// Two sessions use one server at the same time. Requests have ids of their own, and say which version of MCP they are of.
// testdata/servers.txt has what else a server over ACP does.
func TestOverACP_MOA1_MOA6_MOA8_MOA9(t *testing.T) {
	var mu sync.Mutex
	var ids []acp.MCPRequestID
	server := newScript("", acpDefaults)
	h := &host{handlers: acp.ClientHandlers{MessageMCP: func(ctx context.Context, conn *acp.ClientConn, req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
		mu.Lock()
		ids = append(ids, req.RequestID)
		mu.Unlock()
		var meta map[string]any
		if err := json.Unmarshal(req.Params.Value()["_meta"], &meta); err != nil || req.Method == "initialize" ||
			meta["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" || meta["io.modelcontextprotocol/clientCapabilities"] == nil {
			t.Errorf("the server got %s with the _meta %v, %v", req.Method, meta, err)
		}
		return server.overACP(ctx, conn, req)
	}}}
	h.open(t, config(nil), declareACP("client"))
	first := h.session
	second := h.newSession(t, declareACP("client")).session
	var both sync.WaitGroup
	for _, s := range []*acp.ClientSession{first, second} {
		both.Go(func() {
			if _, err := s.Prompt(t.Context(), acp.TextBlock("client__ask")); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	for _, line := range h.seen() {
		if strings.ReplaceAll(line, "result: fine. ", "") != "agent: " && line != `other: client: ask, completed: "fine"` {
			t.Errorf("the user saw %s", line)
		}
	}
	slices.Sort(ids)
	if n := len(ids); n < 6 || len(slices.Compact(ids)) != n {
		t.Errorf("the ids %q are not unique, or too few", ids)
	}
}

// The agent lists the tools before session/new is answered: the answer waits for them here.
func TestCallsBeforeTheAnswer_MOA5(t *testing.T) {
	config := config(nil)
	connect := config.Open
	config.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		if err := connect(ctx, s, o); err != nil {
			return err
		}
		tools, err := s.State.tools.Tools(ctx)
		if len(tools) == 0 {
			t.Error("no tools before the answer")
		}
		return err
	}
	h := &host{handlers: acp.ClientHandlers{MessageMCP: newScript("", acpDefaults).overACP}}
	h.open(t, config, declareACP("client"))
}
