package mcpacp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// overACP connects an agent to a client that answers requests of MCP by provide, and returns the client's connection and the
// agent's connection to an MCP server of the client. Both end with the test, and no request may be left.
func overACP(
	t *testing.T, provide func(context.Context, *acp.ClientConn, *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error),
) (*acp.ClientConn, *acpConn) {
	t.Helper()
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
	agent := must.Get(acp.StartAgent(t.Context(), theirs, handlers, opts))(t)
	tap := conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V1Unstable()})
	client := must.Get(acp.Connect(t.Context(), tap, acp.ClientHandlers{MessageMCP: provide}, &acp.ClientOptions{
		Info: acp.Implementation{Name: "client", Version: "1"}, Experimental: acp.FeatureMCPOverACP,
	}))(t)
	c := newACPConn(agent, "server")
	t.Cleanup(func() {
		must.Do(t, c.Close())
		active.Range(func(key, _ any) bool {
			t.Errorf("the request %v is still known", key)
			return true
		})
		if err := errors.Join(client.Close(), agent.Wait()); err != nil {
			t.Error(err)
		}
	})
	return client, c
}

// writeCall writes a request with this id and these params.
func writeCall(t *testing.T, c *acpConn, id int, params string) {
	t.Helper()
	made := must.Get(jsonrpc.MakeID(float64(id)))(t)
	must.Do(t, c.Write(t.Context(), &jsonrpc.Request{ID: made, Method: "tools/call", Params: json.RawMessage(params)}))
}

// The notifications of a request are read before its answer, in order, and each request gets its own. After the answer
// nothing is known of the request, so later notifications are dropped.
func TestOrderOfNotifications_MOA7_MOA12(t *testing.T) {
	const calls, each = 4, 100
	_, c := overACP(t, func(ctx context.Context, conn *acp.ClientConn, req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
		for i := range each {
			n := &acp.MessageMCPNotification{ServerID: req.ServerID, RequestID: req.RequestID, Method: "notifications/progress"}
			n.Params = acp.Some(map[string]json.RawMessage{"of": req.Params.Value()["of"], "number": fmt.Append(nil, i)})
			if err := conn.MessageMCPNotification(ctx, n); err != nil {
				return nil, err
			}
		}
		return new(acp.NewMessageMCPResponseResult(req.Params.Value()["of"])), nil
	})
	for i := range calls {
		writeCall(t, c, i, fmt.Sprintf(`{"of":%d}`, i))
	}
	next := make([]int, calls)
	for answered := 0; answered < calls; {
		m := must.Get(c.Read(t.Context()))(t)
		switch m := m.(type) {
		case *jsonrpc.Request:
			var params struct{ Of, Number int }
			must.Do(t, json.Unmarshal(m.Params, &params))
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
}

// Params of a notification that are null count as absent.
func TestNullParams_MOA8(t *testing.T) {
	_, c := overACP(t, func(ctx context.Context, conn *acp.ClientConn, req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
		for _, params := range []acp.Opt[map[string]json.RawMessage]{{}, acp.Null[map[string]json.RawMessage](), acp.Some(map[string]json.RawMessage{})} {
			n := &acp.MessageMCPNotification{ServerID: req.ServerID, RequestID: req.RequestID, Method: "notifications/message", Params: params}
			if err := conn.MessageMCPNotification(ctx, n); err != nil {
				return nil, err
			}
		}
		return new(acp.NewMessageMCPResponseResult(json.RawMessage("{}"))), nil
	})
	writeCall(t, c, 1, "{}")
	var got []string
	for {
		m := must.Get(c.Read(t.Context()))(t)
		n, ok := m.(*jsonrpc.Request)
		if !ok {
			break
		}
		got = append(got, string(n.Params))
	}
	if want := []string{"", "", "{}"}; !slices.Equal(got, want) {
		t.Errorf("got the params %q, want %q", got, want)
	}
}

// The end of the connection ends its requests in progress, and the connection to the server.
func TestConnectionEnds_MOA13(t *testing.T) {
	began := make(chan struct{})
	_, c := overACP(t, func(ctx context.Context, _ *acp.ClientConn, _ *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
		close(began)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	writeCall(t, c, 1, "{}")
	<-began
	must.Do(t, c.conn.Close())
	if m, err := c.Read(t.Context()); !errors.Is(err, errNoServer) {
		t.Errorf("read %v, %v", m, err)
	}
}
