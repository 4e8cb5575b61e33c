package mcpacp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
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

// call makes a request, and returns the response as text.
func (p *pair) call(ctx context.Context, req *acp.MessageMCPRequest) string {
	return answer(p.agent.MessageMCP(ctx, req))
}

// begin makes a request whose response comes later.
func (p *pair) begin(ctx context.Context, req *acp.MessageMCPRequest) <-chan string {
	answered := make(chan string, 1)
	go func() { answered <- p.call(ctx, req) }()
	return answered
}

// expect makes a request whose response has a text.
func (p *pair) expect(t *testing.T, what string, req *acp.MessageMCPRequest, want string) {
	t.Helper()
	if got := p.call(t.Context(), req); !strings.Contains(got, want) {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// The provider answers, with errors of the right kind.
func TestMOA9_MOA10_MOA11_Answers(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools()
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
	must.Do(t, closed.Close(t.Context()))
	for row := range strings.Lines(string(must.Get(os.ReadFile("testdata/answers.txt"))(t))) {
		words, want, ok := strings.Cut(strings.TrimSpace(row), " => ")
		if !ok {
			t.Fatalf("the row %q says nothing of the answer", row)
		}
		method, params, _ := strings.Cut(words, " ")
		var req *acp.MessageMCPRequest
		switch {
		case method == "closed":
			req = message(closed, "1", "tools/list", "")
		case params == "none" || strings.HasPrefix(params, "{"):
			req = rawMessage(offer, "1", method, strings.TrimPrefix(params, "none"))
		case params == "null":
			req = rawMessage(offer, "1", method, "")
			req.Params = acp.Null[map[string]json.RawMessage]()
		default:
			req = message(offer, "1", method, params)
		}
		if method == "unknown" {
			req.Method, req.ServerID = "tools/list", "nobody"
		}
		p.expect(t, words, req, want)
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
		got = append(got, p.call(t.Context(), callTool(offer, "1", "echo")))
	})
	offer = p.provide(t, newTools().Server)
	for range 2 {
		p.newSession(t, offer)
	}
	if len(got) != 2 || !strings.Contains(got[0], "You said") || !strings.Contains(got[1], "You said") {
		t.Errorf("got %q", got)
	}
}

// Notifications come before the answer of their request, in order, and none comes after it.
func TestMOA12_Notifications(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools()
	late, lateErr := make(chan struct{}), make(chan error)
	addText(server.Server, &mcp.Tool{Name: "late"}, func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		go func() {
			<-late
			lateErr <- req.Session.NotifyProgress(context.WithoutCancel(ctx), &mcp.ProgressNotificationParams{ProgressToken: "p", Message: "too late"})
		}()
		return "", nil
	})
	addText(server.Server, &mcp.Tool{Name: "asks"}, func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		return "", req.Session.Ping(ctx, nil)
	})
	offer := p.provide(t, server.Server)
	got := p.call(t.Context(), callTool(offer, "7", "progress"))
	want := []string{
		`7 notifications/progress {"message":"one","progress":0,"progressToken":"p"}`,
		`7 notifications/progress {"message":"two","progress":0,"progressToken":"p"}`,
	}
	if all := p.notifications(); !slices.Equal(all, want) || !strings.Contains(got, "done") {
		t.Errorf("got %q, %s", all, got)
	}
	p.expect(t, "late", callTool(offer, "8", "late"), "content")
	close(late)
	if err := <-lateErr; err == nil {
		t.Error("the late notification has no error")
	}
	// The server makes no requests. This call also comes after anything late.
	p.expect(t, "a request", callTool(offer, "9", "asks"), "make no requests")
	if all := p.notifications(); !slices.Equal(all, want) {
		t.Errorf("got %q", all)
	}
}

// A cancelled request is answered at once, and its handler's context ends. The handler keeps its place until it returns.
func TestMOA7_MOA13_Cancel(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools()
	offer, other := p.provide(t, server.Server), p.provide(t, server.Server)
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := p.begin(ctx, callTool(offer, "1", "hang"))
	handler := <-server.began
	p.expect(t, "the id of a request in progress", callTool(offer, "1", "echo"), "outer -32602")
	p.expect(t, "the same id for another server", callTool(other, "1", "echo"), "You said")
	cancel()
	if got := <-cancelled; !strings.Contains(got, "-32800") && !strings.Contains(got, "canceled") {
		t.Errorf("the cancelled request: got %s", got)
	}
	<-handler.Done()
	p.expect(t, "the id of a handler that still runs", callTool(offer, "1", "echo"), "outer -32602")
	close(server.release)
	must.Do(t, offer.Close(t.Context())) // waits for the handler
	p.expect(t, "behind anything late", callTool(other, "2", "echo"), "You said")
	if all := p.notifications(); len(all) > 0 {
		t.Errorf("notifications of a cancelled request: %q", all)
	}
}

// bothWays runs a test with an agent that calls over ACP, and with one that calls over HTTP. caller prepares a call of a
// tool, whose answer is a text.
func bothWays(t *testing.T, test func(t *testing.T, p *pair, overHTTP bool, caller func(offer *mcpacp.Offer, id, tool string) func() string)) {
	t.Run("acp", func(t *testing.T) {
		p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
		test(t, p, false, func(offer *mcpacp.Offer, id, tool string) func() string {
			return func() string { return p.call(t.Context(), callTool(offer, id, tool)) }
		})
	})
	t.Run("http", func(t *testing.T) {
		test(t, startBridged(t), true, func(offer *mcpacp.Offer, id, tool string) func() string {
			req := modernPost(t, offer, strconv.Quote(id), tool)
			return func() string { return do(t, req) }
		})
	})
}

// No more than 64 requests to one server are in progress. Other servers do not suffer from them.
func TestMOA14_MOA19_Limit(t *testing.T) {
	bothWays(t, func(t *testing.T, p *pair, overHTTP bool, call func(*mcpacp.Offer, string, string) func() string) {
		server := newTools()
		offer, other := p.provide(t, server.Server), p.provide(t, server.Server)
		answers := make(chan string)
		for i := range 64 {
			hang := call(offer, fmt.Sprint(i), "hang")
			go func() { answers <- hang() }()
		}
		for range 64 {
			<-server.began
		}
		refused := map[bool]string{false: "outer -33000", true: "429 "}[overHTTP]
		if got := call(offer, "more", "echo")(); !strings.HasPrefix(got, refused) || !strings.Contains(got, "-33000") {
			t.Errorf("got %s", got)
		}
		if got := call(other, "more", "echo")(); !strings.Contains(got, "You said") {
			t.Errorf("another server: got %s", got)
		}
		close(server.release)
		for range 64 {
			if got := <-answers; !strings.Contains(got, "late") {
				t.Errorf("got %s", got)
			}
		}
	})
}

// Close cancels what is in progress, and returns when the handlers have. The end of the connection ends the others, and
// the listener for HTTP.
func TestMOA13_MOA15_MOA18_Ends(t *testing.T) {
	bothWays(t, func(t *testing.T, p *pair, overHTTP bool, call func(*mcpacp.Offer, string, string) func() string) {
		server := newTools()
		offer, other := p.provide(t, server.Server), p.provide(t, server.Server)
		answered := make(chan string, 2)
		begin := func(offer *mcpacp.Offer, id, tool string) context.Context {
			run := call(offer, id, tool)
			go func() { answered <- run() }()
			return <-server.began
		}
		cancelled := func(got string) bool {
			return overHTTP && strings.Contains(got, "canceled") || strings.HasPrefix(got, "outer -32800")
		}
		slow := map[bool]string{false: "hang", true: "wait"}[overHTTP] // the server writes to a response over HTTP
		hanging, waiting, kept := begin(offer, "1", slow), begin(offer, "2", "wait"), begin(other, "3", "wait")
		impatient, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		if err := offer.Close(impatient); !overHTTP && !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
		<-hanging.Done()
		<-waiting.Done()
		close(server.release)
		for range 2 {
			if got := <-answered; !cancelled(got) {
				t.Errorf("got %s", got)
			}
		}
		for range 2 {
			must.Do(t, offer.Close(t.Context()))
		}
		if got := call(offer, "1", "echo")(); !strings.HasPrefix(got, "outer -33001") && !strings.HasPrefix(got, "404 ") {
			t.Errorf("closed: got %s", got)
		}
		if kept.Err() != nil {
			t.Errorf("the request to another server: %v", kept.Err())
		}
		must.Do(t, p.client.Close())
		<-kept.Done()
		if got := <-answered; !overHTTP && !cancelled(got) && !strings.Contains(got, "closed") {
			t.Errorf("got %s", got)
		}
		must.Do(t, other.Close(t.Context()))
		for overHTTP { // the listener ends with the connection, and not before Close returns
			got := call(other, "3", "echo")()
			if strings.Contains(got, "refused") {
				break
			}
			if !strings.HasPrefix(got, "404 ") && !strings.Contains(got, "EOF") && !strings.Contains(got, "reset") {
				t.Fatalf("got %s", got)
			}
		}
	})
}

// A subscription is one request, whose notifications are acknowledgement and events.
func TestMOA16_Subscription(t *testing.T) {
	p := start(t, acp.MCPCapabilities{ACP: true}, true, nil)
	server := newTools()
	offer := p.provide(t, server.Server)
	ctx, cancel := context.WithCancel(t.Context())
	over := p.begin(ctx, message(offer, "sub", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
	await := func(n int) {
		for len(p.notifications()) < n {
			p.expect(t, "a tick", message(offer, "tick", "tools/list", ""), "tools")
		}
	}
	await(1)
	addNew(server.Server)
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
