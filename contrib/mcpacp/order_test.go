package mcpacp

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
)

// The notifications of a request are read before its answer, in order, and each request gets its own. After the answer
// nothing is known of the request, so later notifications are dropped.
func TestOrderOfNotifications_MOA7_MOA12(t *testing.T) {
	const calls, each = 4, 100
	theirs, ours := acp.Pipe()
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}, Experimental: acp.FeatureMCPOverACP}
	handlers := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
	Enable(&handlers, opts)
	agent, err := acp.StartAgent(t.Context(), theirs, handlers, opts)
	if err != nil {
		t.Fatal(err)
	}
	provide := func(ctx context.Context, conn *acp.ClientConn, req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
		for i := range each {
			n := &acp.MessageMCPNotification{ServerID: req.ServerID, RequestID: req.RequestID, Method: "notifications/progress"}
			n.Params = acp.Some(map[string]json.RawMessage{"of": req.Params.Value()["of"], "number": fmt.Append(nil, i)})
			if err := conn.MessageMCPNotification(ctx, n); err != nil {
				return nil, err
			}
		}
		res := acp.NewMessageMCPResponseResult(req.Params.Value()["of"])
		return &res, nil
	}
	tap := conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V1Unstable()})
	client, err := acp.Connect(t.Context(), tap, acp.ClientHandlers{MessageMCP: provide}, &acp.ClientOptions{
		Info: acp.Implementation{Name: "client", Version: "1"}, Experimental: acp.FeatureMCPOverACP,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newACPConn(agent, "server")
	for i := range calls {
		id, err := jsonrpc.MakeID(float64(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), &jsonrpc.Request{ID: id, Method: "tools/call", Params: fmt.Appendf(nil, `{"of":%d}`, i)}); err != nil {
			t.Fatal(err)
		}
	}
	next := make([]int, calls)
	for answered := 0; answered < calls; {
		m, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *jsonrpc.Request:
			var params struct{ Of, Number int }
			if err := json.Unmarshal(m.Params, &params); err != nil {
				t.Fatal(err)
			}
			if params.Number != next[params.Of] {
				t.Errorf("call %d: notification %d, want %d", params.Of, params.Number, next[params.Of])
			}
			next[params.Of]++
		case *jsonrpc.Response:
			if m.Error != nil || next[m.ID.Raw().(int64)] != each {
				t.Errorf("the answer to call %v, %v, came after %d notifications", m.ID.Raw(), m.Error, next[m.ID.Raw().(int64)])
			}
			answered++
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	active.Range(func(key, _ any) bool {
		t.Errorf("the request %v is still known", key)
		return true
	})
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := agent.Wait(); err != nil {
		t.Error(err)
	}
}
