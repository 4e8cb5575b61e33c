package mcpacp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// modern is the _meta of a request of MCP 2026-07-28.
const modern = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// message is a request to an offer's server. params are the members of an object, without _meta.
func message(offer *mcpacp.Offer, id, method, params string) *acp.MessageMCPRequest {
	if params != "" {
		params += ","
	}
	return rawMessage(offer, id, method, "{"+params+`"_meta":{"progressToken":"p",`+modern+"}}")
}

func rawMessage(offer *mcpacp.Offer, id, method, params string) *acp.MessageMCPRequest {
	req := &acp.MessageMCPRequest{
		ServerID: offer.Declaration.Variant.(*acp.MCPServerACP).ServerID, RequestID: acp.MCPRequestID(id), Method: method,
	}
	if params != "" {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(params), &members); err != nil {
			panic(err)
		}
		req.Params = acp.Some(members)
	}
	return req
}

// callTool is a request to call a tool.
func callTool(offer *mcpacp.Offer, id, tool string) *acp.MessageMCPRequest {
	return message(offer, id, "tools/call", `"name":"`+tool+`","arguments":{"text":"hello"}`)
}

// answer is the response as text: its result, or "inner CODE MESSAGE", or "outer CODE MESSAGE".
func answer(res *acp.MessageMCPResponse, err error) string {
	if e, ok := errors.AsType[*acp.Error](err); ok {
		return fmt.Sprintf("outer %d %s", e.Code, e.Message)
	}
	if err != nil {
		return err.Error()
	}
	switch v := res.Variant.(type) {
	case *acp.MessageMCPResponseResult:
		return string(v.Result)
	case *acp.MessageMCPResponseError:
		return fmt.Sprintf("inner %d %s %s", v.Error.Code, v.Error.Message, v.Error.Data)
	}
	return "neither a result nor an error"
}

// The provider answers, with errors of the right kind.
func TestMOA9_MOA10_MOA11_Answers(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools(nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "prompts/list" { // poses as an error of mcp/message
				return nil, &jsonrpc.Error{Code: -33001, Message: "mine", Data: json.RawMessage("null")}
			}
			if method == "prompts/get" {
				return nil, &jsonrpc.Error{Code: 1 << 40, Message: "not an int32"}
			}
			return next(ctx, method, req)
		}
	})
	offer, closed := p.provide(t, server.Server), p.provide(t, server.Server)
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	unknown, null := callTool(offer, "1", "echo"), rawMessage(offer, "1", "tools/list", "")
	unknown.ServerID, null.Params = "nobody", acp.Null[map[string]json.RawMessage]()
	for _, test := range []struct {
		name string
		req  *acp.MessageMCPRequest
		want string
	}{
		{"a tool", callTool(offer, "1", "echo"), `"text":"You said: hello"`},
		{"the tools", message(offer, "1", "tools/list", ""), `"name":"echo"`},
		{"discovery", message(offer, "1", "server/discover", ""), `"supportedVersions":["2026-07-28"]`},
		{"a tool that fails", callTool(offer, "1", "fail"), `"text":"no such file"`},
		{"a tool that panics", callTool(offer, "1", "panic"), "inner -32603 the handler of tools/call panicked"},
		{"no such tool", callTool(offer, "1", "nothing"), `inner -32602 unknown tool "nothing"`},
		{"no such method", message(offer, "1", "tools/dance", ""), "inner -32601"},
		{"an older MCP", message(offer, "1", "initialize", `"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}`), "inner -32601"},
		{"a notification as a request", message(offer, "1", "notifications/initialized", ""), "inner -32601"},
		{"a handler's own -33001", message(offer, "1", "prompts/list", ""), "inner -33001 mine"},
		{"a code that is too large", message(offer, "1", "prompts/get", `"name":"x"`), "outer -33002"},
		{"no params", rawMessage(offer, "1", "tools/list", ""), "inner -32602 Invalid params: no io.modelcontextprotocol/protocolVersion"},
		{"params null", null, "inner -32602 Invalid params: no io.modelcontextprotocol/protocolVersion"},
		{"a tool that asks", callTool(offer, "1", "ask"), `"resultType":"input_required"`},
		{"no version", rawMessage(offer, "1", "tools/list", `{"_meta":{}}`), "inner -32602 Invalid params: no io.modelcontextprotocol/protocolVersion"},
		{"a _meta that is not an object", rawMessage(offer, "1", "tools/list", `{"_meta":7}`), "inner -32602 Invalid params: no io.modelcontextprotocol/protocolVersion"},
		{"a version that is not a text", rawMessage(offer, "1", "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}`), "inner -32602"},
		{
			"another version", rawMessage(offer, "1", "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}}`),
			`inner -32022 Unsupported protocol version {"supported":["2026-07-28"],"requested":"2025-06-18"}`,
		},
		{
			"no capabilities", rawMessage(offer, "1", "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null}}`),
			"inner -32602 Invalid params: no io.modelcontextprotocol/clientCapabilities",
		},
		{"an unknown server", unknown, "outer -33001"},
		{"a closed offer", callTool(closed, "1", "echo"), "outer -33001"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := answer(p.agent.MessageMCP(t.Context(), test.req)); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if log := p.logged.String(); !strings.Contains(log, "out of cheese") || !strings.Contains(log, "provide_test.go") {
		t.Errorf("the panic is not logged: %s", log)
	}
}

// The agent may call while session/new is pending, and several sessions may share a server.
func TestMOA5_MOA17_WhileSessionNewIsPending(t *testing.T) {
	var offer *mcpacp.Offer
	var got []string
	p := start(t, acp.MCPCapabilities{ACP: true}, true, func(p *pair) {
		got = append(got, answer(p.agent.MessageMCP(t.Context(), callTool(offer, "1", "echo"))))
	})
	offer = p.provide(t, newTools(nil).Server)
	for range 2 {
		if _, err := p.client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/", MCPServers: []acp.MCPServer{offer.Declaration}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || !strings.Contains(got[0], "You said") || !strings.Contains(got[1], "You said") {
		t.Errorf("got %q", got)
	}
}

// Notifications come before the answer of their request, in order, and none comes after it.
func TestMOA12_Notifications(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools(nil)
	late, lateErr := make(chan struct{}), make(chan error)
	mcp.AddTool(server.Server, &mcp.Tool{Name: "late"}, func(ctx context.Context, req *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		go func() {
			<-late
			lateErr <- req.Session.NotifyProgress(context.WithoutCancel(ctx), &mcp.ProgressNotificationParams{ProgressToken: "p", Message: "too late"})
		}()
		return nil, nil, nil
	})
	mcp.AddTool(server.Server, &mcp.Tool{Name: "asks"}, func(ctx context.Context, req *mcp.CallToolRequest, _ input) (*mcp.CallToolResult, any, error) {
		return nil, nil, req.Session.Ping(ctx, nil)
	})
	offer := p.provide(t, server.Server)
	got := answer(p.agent.MessageMCP(t.Context(), callTool(offer, "7", "progress")))
	want := []string{
		`7 notifications/progress {"message":"one","progress":0,"progressToken":"p"}`,
		`7 notifications/progress {"message":"two","progress":0,"progressToken":"p"}`,
	}
	if all := p.notifications(); !slices.Equal(all, want) || !strings.Contains(got, "done") {
		t.Errorf("got %q, %s", all, got)
	}
	if _, err := p.agent.MessageMCP(t.Context(), callTool(offer, "8", "late")); err != nil {
		t.Error(err)
	}
	close(late)
	if err := <-lateErr; err == nil {
		t.Error("the late notification has no error")
	}
	// The server makes no requests. This call also comes after anything late.
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(offer, "9", "asks"))); !strings.Contains(got, "make no requests") {
		t.Errorf("got %s", got)
	}
	if all := p.notifications(); !slices.Equal(all, want) {
		t.Errorf("got %q", all)
	}
}

// A cancelled request is answered at once, and its handler's context ends. The handler keeps its place until it returns.
func TestMOA7_MOA13_Cancel(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools(nil)
	offer, other := p.provide(t, server.Server), p.provide(t, server.Server)
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan string)
	go func() { cancelled <- answer(p.agent.MessageMCP(ctx, callTool(offer, "1", "hang"))) }()
	handler := <-server.began
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(offer, "1", "echo"))); !strings.HasPrefix(got, "outer -32602") {
		t.Errorf("the id of a request in progress: got %s", got)
	}
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(other, "1", "echo"))); !strings.Contains(got, "You said") {
		t.Errorf("the same id for another server: got %s", got)
	}
	cancel()
	if got := <-cancelled; !strings.Contains(got, "-32800") && !strings.Contains(got, "canceled") {
		t.Errorf("the cancelled request: got %s", got)
	}
	<-handler.Done()
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(offer, "1", "echo"))); !strings.HasPrefix(got, "outer -32602") {
		t.Errorf("the id of a handler that still runs: got %s", got)
	}
	close(server.release)
	if err := offer.Close(t.Context()); err != nil { // waits for the handler
		t.Error(err)
	}
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(other, "2", "echo"))); !strings.Contains(got, "You said") { // behind anything late
		t.Errorf("got %s", got)
	}
	if all := p.notifications(); len(all) > 0 {
		t.Errorf("notifications of a cancelled request: %q", all)
	}
}

// No more than 64 requests to one server are in progress.
func TestMOA14_Limit(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools(nil)
	offer, other := p.provide(t, server.Server), p.provide(t, server.Server)
	answers := make(chan string)
	for i := range 64 {
		go func() { answers <- answer(p.agent.MessageMCP(t.Context(), callTool(offer, fmt.Sprint(i), "hang"))) }()
	}
	for range 64 {
		<-server.began
	}
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(offer, "more", "echo"))); !strings.HasPrefix(got, "outer -33000") {
		t.Errorf("got %s", got)
	}
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(other, "more", "echo"))); !strings.Contains(got, "You said") {
		t.Errorf("another server: got %s", got)
	}
	close(server.release)
	for range 64 {
		if got := <-answers; !strings.Contains(got, "late") {
			t.Errorf("got %s", got)
		}
	}
}

// Close cancels what is in progress, and returns when the handlers have.
func TestMOA15_Close(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools(nil)
	offer := p.provide(t, server.Server)
	answers := make(chan string, 2)
	for _, tool := range []string{"hang", "wait"} {
		go func() { answers <- answer(p.agent.MessageMCP(t.Context(), callTool(offer, tool, tool))) }()
		<-server.began
	}
	impatient, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := offer.Close(impatient); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if got := <-answers; !strings.HasPrefix(got, "outer -32800") {
			t.Errorf("got %s", got)
		}
	}
	close(server.release)
	for range 2 {
		if err := offer.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := answer(p.agent.MessageMCP(t.Context(), callTool(offer, "1", "echo"))); !strings.HasPrefix(got, "outer -33001") {
		t.Errorf("got %s", got)
	}
}

// The end of the connection ends the handlers.
func TestMOA13_ConnectionEnds(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools(nil)
	offer := p.provide(t, server.Server)
	failed := make(chan error)
	go func() {
		_, err := p.agent.MessageMCP(t.Context(), callTool(offer, "1", "wait"))
		failed <- err
	}()
	handler := <-server.began
	if err := p.client.Close(); err != nil {
		t.Error(err)
	}
	<-handler.Done()
	if err := <-failed; err == nil {
		t.Error("the call has not failed")
	}
	if err := offer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A subscription is one request, whose notifications are acknowledgement and events.
func TestMOA16_Subscription(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools(nil)
	offer := p.provide(t, server.Server)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan string)
	go func() {
		over <- answer(p.agent.MessageMCP(ctx, message(offer, "sub", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)))
	}()
	await := func(n int) {
		for len(p.notifications()) < n {
			if _, err := p.agent.MessageMCP(t.Context(), message(offer, "tick", "tools/list", "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	await(1)
	mcp.AddTool(server.Server, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	await(2)
	want := []string{
		`sub notifications/subscriptions/acknowledged {"notifications":{"toolsListChanged":true}}`, "sub notifications/tools/list_changed {}",
	}
	if all := p.notifications(); !slices.Equal(all, want) {
		t.Errorf("got %q", all)
	}
	cancel()
	if got := <-over; !strings.Contains(got, "canceled") && !strings.Contains(got, "-32800") {
		t.Errorf("got %s", got)
	}
}
