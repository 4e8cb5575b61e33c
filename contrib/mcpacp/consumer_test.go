package mcpacp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/test/must"
)

// provider is a client's MCP server over ACP, on the level of messages.
type provider struct {
	mu       sync.Mutex
	requests []*acp.MessageMCPRequest
	gone     bool          // it refuses everything
	hanging  func()        // called when the tool "hang" is called
	ended    chan struct{} // closed when the call of "hang" was cancelled
	shown    chan struct{} // closed when the user has seen the progress of the tool "wait"
}

func declared(name, id string) acp.MCPServer {
	return acp.NewMCPServerACP(acp.MCPServerACP{Name: name, ServerID: acp.MCPServerACPID(id)})
}

func (p *provider) serve(ctx context.Context, conn *acp.ClientConn, req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
	p.mu.Lock()
	p.requests = append(p.requests, req)
	gone := p.gone
	p.mu.Unlock()
	if gone {
		return nil, &acp.Error{Code: -33001, Message: "no such server"}
	}
	result := func(text string) (*acp.MessageMCPResponse, error) {
		return new(acp.NewMessageMCPResponseResult(json.RawMessage(text))), nil
	}
	switch req.Method {
	case "server/discover":
		return result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case "tools/list":
		if req.Params.Value()["cursor"] != nil {
			return result(`{"resultType":"complete","tools":[` + tool("count", `{"type":"object"}`) + `]}`)
		}
		var tools []string
		for _, name := range []string{"ask", "refuse", "break", "hang", "wait"} {
			tools = append(tools, tool(name, `{"type":"object"}`))
		}
		return result(`{"resultType":"complete","nextCursor":"","tools":[` + strings.Join(tools, ",") + `]}`)
	case "tools/call":
		params := req.Params.Value()
		switch string(params["name"]) {
		case `"refuse"`:
			return new(acp.NewMessageMCPResponseError(acp.MCPError{Code: -32602, Message: "not today"})), nil
		case `"break"`:
			return nil, &acp.Error{Code: -33002, Message: "the backend failed"}
		case `"count"`:
			return result(`{"resultType":"complete","content":[],"structuredContent":{"total":36}}`)
		case `"hang"`:
			p.hanging()
			<-ctx.Done()
			close(p.ended)
			return nil, context.Cause(ctx)
		}
		if string(params["name"]) == `"wait"` {
			var meta struct{ ProgressToken json.RawMessage }
			if err := json.Unmarshal(params["_meta"], &meta); err != nil {
				return nil, err
			}
			for id, message := range map[acp.MCPRequestID]string{"unknown": "for nobody", req.RequestID: "for you"} {
				n := &acp.MessageMCPNotification{ServerID: req.ServerID, RequestID: id, Method: "notifications/progress"}
				n.Params = acp.Some(map[string]json.RawMessage{
					"progressToken": meta.ProgressToken, "progress": acp.Raw(1), "message": acp.Raw(message),
				})
				if err := conn.MessageMCPNotification(ctx, n); err != nil {
					return nil, err
				}
			}
			select {
			case <-p.shown:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return result(`{"resultType":"complete","content":[{"type":"text","text":"fine"}]}`)
	}
	return new(acp.NewMessageMCPResponseError(acp.MCPError{Code: -32601, Message: "no " + req.Method})), nil
}

// Two sessions use one server at the same time. Requests have ids of their own, notifications reach the call that they
// belong to, errors of the server are not errors of the connection, and cancelling the turn cancels the request.
func TestOverACP_MOA1_MOA6_MOA7_MOA8_MOA9_MOA10_MOA12_MOA13(t *testing.T) {
	p := &provider{ended: make(chan struct{})}
	h := &host{handlers: acp.ClientHandlers{MessageMCP: p.serve}}
	h.open(t, config(nil), declared("client", "server-1"))
	p.hanging = func() {
		if err := h.session.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	}
	first := h.session
	second := must.Get(h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir(), MCPServers: []acp.MCPServer{declared("client", "server-1")}}))(t)
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
	h.updates = nil
	h.prompt(t, "client__refuse", "client__break", "client__ask", "client__count")
	if got := h.prompt(t, "client__hang"); got != acp.StopReasonCancelled {
		t.Errorf("the turn ended with %s", got)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("the request was not cancelled")
	}
	want := []string{
		`other: client: refuse, failed: "the MCP server \"client\" answered: not today"`,
		`agent: failed: the MCP server "client" answered: not today. `,
		`other: client: break, failed: ANY`, `agent: failed: ANYthe backend failed (-33002); the tool may have run. `,
		`other: client: ask, completed: "fine"`, `agent: result: fine. `,
		`other: client: count, completed: "{\"total\":36}"`, `agent: result: {"total":36}. `,
		`other: client: hang, failed: "cancelled"`,
	}
	h.sees(t, want...)
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []acp.MCPRequestID
	for _, req := range p.requests {
		ids = append(ids, req.RequestID)
		var meta map[string]any
		must.Do(t, json.Unmarshal(req.Params.Value()["_meta"], &meta))
		if meta["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" || meta["io.modelcontextprotocol/clientCapabilities"] == nil {
			t.Errorf("%s had the _meta %v", req.Method, meta)
		}
		if req.Method == "initialize" || req.Method == "notifications/cancelled" {
			t.Errorf("the server got %s", req.Method)
		}
	}
	slices.Sort(ids)
	if n := len(ids); len(slices.Compact(ids)) != n {
		t.Errorf("the ids %q are not unique", ids)
	}
}

// The notifications of a request are shown while it runs. One of an unknown request is dropped.
func TestProgressOverACP_MOA6_MOA7_MOA12(t *testing.T) {
	p := &provider{shown: make(chan struct{})}
	h := &host{handlers: acp.ClientHandlers{MessageMCP: p.serve}}
	h.watch = func(u acp.SessionUpdate) {
		call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
		if !ok {
			return
		}
		for _, content := range call.Content.Value() {
			switch text := content.Text(); text {
			case "1 for you":
				close(p.shown)
			case "1 for nobody":
				t.Error("a notification without a request was shown")
			}
		}
	}
	h.open(t, config(nil), declared("client", "server-1"))
	h.prompt(t, "client__wait")
	h.sees(t, `other: client: wait, completed: "fine"`, "agent: result: fine. ")
}

// A server that the client does not have any more costs only its own tools; one that refuses to be discovered does not
// start, and is not asked in another way.
func TestServerGone_MOA1_MOA10_MOA15(t *testing.T) {
	p := &provider{}
	h := &host{handlers: acp.ClientHandlers{MessageMCP: p.serve}}
	h.open(t, config(nil), declared("client", "server-1"))
	h.prompt(t, "tools")
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	h.prompt(t, "client__ask")
	h.await(t, `notice: The MCP server "client" has ended: the client does not have the server`)
	h.prompt(t, "tools")
	if got := h.seen(); !like(got[len(got)-1], "ANYtools: . ") {
		t.Errorf("the user saw %q", got)
	}
	h = &host{handlers: acp.ClientHandlers{MessageMCP: func(ctx context.Context, conn *acp.ClientConn, req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
		if req.Method != "server/discover" {
			t.Errorf("the server got %s", req.Method)
		}
		return new(acp.NewMessageMCPResponseError(acp.MCPError{Code: -32603, Message: "not well"})), nil
	}}}
	h.open(t, config(nil), declared("client", "server-1"))
	h.await(t, `notice: The MCP server "client" did not start: calling "initialize": `)
	if got := h.seen()[0]; !like(got, "ANYnot well") {
		t.Errorf("the user saw %q", got)
	}
}

// The agent lists the tools before session/new is answered: the answer waits for them here.
func TestCallsBeforeTheAnswer_MOA5(t *testing.T) {
	p := &provider{}
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
	(&host{handlers: acp.ClientHandlers{MessageMCP: p.serve}}).open(t, config, declared("client", "server-1"))
}
