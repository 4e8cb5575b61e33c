package mcpacp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
)

// startBridged connects a client to an agent that takes servers over HTTP.
func startBridged(t *testing.T) *pair {
	return start(t, acp.MCPCapabilities{HTTP: true}, true, nil)
}

// overHTTP is the declaration of an offer over HTTP.
func overHTTP(offer *mcpacp.Offer) *acp.MCPServerHTTP {
	return offer.Declaration.Variant.(*acp.MCPServerHTTP)
}

// post makes a request as an agent does.
func post(t *testing.T, offer *mcpacp.Offer, body string) *http.Request {
	t.Helper()
	d := overHTTP(offer)
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL, strings.NewReader(body)))(t)
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	for _, h := range d.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	return req
}

// modernPost is a request of MCP 2026-07-28 to call a tool.
func modernPost(t *testing.T, offer *mcpacp.Offer, id, tool string) *http.Request {
	t.Helper()
	req := post(t, offer, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"`+tool+`","arguments":{"text":"hello"},"_meta":{"progressToken":"p",`+modern+`}}}`)
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", tool)
	return req
}

// olderPost is the same of an older version.
func olderPost(t *testing.T, offer *mcpacp.Offer, id, tool string) *http.Request {
	t.Helper()
	req := post(t, offer, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"`+tool+`","arguments":{"text":"hello"}}}`)
	req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	return req
}

// do returns the status of a response, a space, and its body.
func do(t *testing.T, req *http.Request) string {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", res.StatusCode, body)
}

// authorized sends the headers of a declaration.
type authorized struct{ headers []acp.HTTPHeader }

func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for _, h := range a.headers {
		req.Header.Set(h.Name, h.Value)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// Agents with MCP 2026-07-28 and with older versions call the tools.
func TestMOA18_MOA21_BothEras(t *testing.T) {
	p := startBridged(t)
	server := newTools()
	offer := p.provide(t, server.Server)
	if d := overHTTP(offer); !strings.HasPrefix(d.URL, "http://127.0.0.1:") || d.Name != "tools" || strings.Contains(d.URL, strings.TrimPrefix(d.Headers[0].Value, "Bearer ")) {
		t.Errorf("declaration %+v", d)
	}
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			messages := make(chan string, 2)
			client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { messages <- req.Params.Message },
			})
			d := overHTTP(offer)
			session := must.Get(client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: d.URL, HTTPClient: &http.Client{Transport: authorized{d.Headers}}, DisableStandaloneSSE: true,
			}, &mcp.ClientSessionOptions{ProtocolVersion: version}))(t)
			defer session.Close()
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("version %s", got)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) == 0 {
				t.Fatalf("got %v, %v", list, err)
			}
			params := &mcp.CallToolParams{Name: "progress"}
			params.SetProgressToken("p")
			res, err := session.CallTool(t.Context(), params)
			if err != nil || res.Content[0].(*mcp.TextContent).Text != "done" {
				t.Errorf("got %v, %v", res, err)
			}
			if one, two := <-messages, <-messages; one != "one" || two != "two" {
				t.Errorf("progress %s, %s", one, two)
			}
		})
	}
}

// The bridge refuses what is not right, in the order of its checks: each request is also wrong for all later ones.
func TestMOA19_Checks(t *testing.T) {
	p := startBridged(t)
	server := newTools()
	offer, other, closed := p.provide(t, server.Server), p.provide(t, server.Server), p.provide(t, server.Server)
	must.Do(t, closed.Close(t.Context()))
	for row := range strings.Lines(string(must.Get(os.ReadFile("testdata/checks.txt"))(t))) {
		changes, want, ok := strings.Cut(strings.TrimSpace(row), " => ")
		if !ok {
			t.Fatalf("the row %q says nothing of the answer", row)
		}
		req := modernPost(t, offer, "1", "echo")
		fill := strings.NewReplacer("$host", req.URL.Host, "$port", req.URL.Port(), "$token", req.Header.Get("Authorization")[len("Bearer "):],
			"$other", overHTTP(other).Headers[0].Value[len("Bearer "):], "$closed", urlPath(closed), "$path", req.URL.Path,
			"$encoded", strings.Replace(req.URL.Path, "/mcp-", "/%6dcp-", 1),
			"$long", strings.Repeat("x", 1<<20)).Replace
		for change := range strings.SplitSeq(changes, "; ") {
			verb, value, _ := strings.Cut(fill(change), " ")
			name, text, _ := strings.Cut(value, ": ")
			switch verb {
			case "set":
				req.Header.Set(name, text)
			case "add":
				req.Header.Add(name, text)
			case "drop":
				req.Header.Del(name)
			case "host":
				req.Host = value
			case "method":
				req.Method = value
			case "path":
				req.URL.Opaque = "http://" + req.URL.Host + value
			case "body":
				setBody(req, value)
			case "right":
			default:
				t.Fatalf("no change %q", verb)
			}
		}
		got := do(t, req)
		var e struct{ Error struct{ Code int } }
		status, body, _ := strings.Cut(got, " ")
		if json.Unmarshal([]byte(body), &e) == nil && e.Error.Code != 0 {
			got = fmt.Sprint(status, " ", e.Error.Code)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", changes, got, want)
		}
	}
}

// A request that ends before its body does is answered if the agent still reads.
func TestIncompleteBody(t *testing.T) {
	req := modernPost(t, startBridged(t).provide(t, newTools().Server), "1", "echo")
	conn := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", req.URL.Host))(t)
	defer conn.Close()
	var text bytes.Buffer
	must.Do(t, req.Write(&text))
	must.Get(conn.Write(text.Bytes()[:text.Len()-1]))(t)
	must.Do(t, conn.(*net.TCPConn).CloseWrite())
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), req))(t)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if want := `"code":-32600`; err != nil || res.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), want) {
		t.Errorf("got %s, %s, %v", res.Status, body, err)
	}
}

func urlPath(offer *mcpacp.Offer) string {
	_, rest, _ := strings.Cut(overHTTP(offer).URL, "127.0.0.1:")
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}

func setBody(r *http.Request, body string) {
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
}

// Errors of MCP have the statuses that it wants, which are those of the request's version.
func TestMOA20_Statuses(t *testing.T) {
	p := startBridged(t)
	offer := p.provide(t, newTools().Server)
	for _, test := range []struct {
		name    string
		request func(*testing.T, *mcpacp.Offer, string, string) *http.Request
		method  string
		tool    string
		want    string
	}{
		{"a tool", modernPost, "tools/call", "echo", "200 event: message\ndata: "},
		{"a tool that panics", modernPost, "tools/call", "panic", "200 event: message\ndata: "},
		{"a tool that asks", modernPost, "tools/call", "ask", "200 event: message\ndata: "},
		{"no such tool", modernPost, "tools/call", "nothing", "400 {"},
		{"no such method", modernPost, "tools/dance", "echo", "404 {"},
		{"a tool, older", olderPost, "tools/call", "echo", "200 event: message\ndata: "},
		{"no such tool, older", olderPost, "tools/call", "nothing", "200 event: message\ndata: "},
		{"a notification, older", olderPost, "notifications/initialized", "", "202 "},
	} {
		req := test.request(t, offer, "1", test.tool)
		if req.Header.Get("Mcp-Method") != "" {
			req.Header.Set("Mcp-Method", test.method)
		}
		body := strings.Replace(string(must.Get(io.ReadAll(req.Body))(t)), "tools/call", test.method, 1)
		if strings.HasPrefix(test.method, "notifications/") {
			body = strings.Replace(body, `"id":1,`, "", 1)
		}
		setBody(req, body)
		if got := do(t, req); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %s", test.name, got)
		}
	}
	if log := p.logged.String(); !strings.Contains(log, "out of cheese") {
		t.Errorf("the panic is not logged: %s", log)
	}
}

// A response that the agent closes ends its handler, and no other one, in all versions.
func TestMOA18_ClosedResponse(t *testing.T) {
	p := startBridged(t)
	server := newTools()
	offer := p.provide(t, server.Server)
	for name, request := range map[string]func(*testing.T, *mcpacp.Offer, string, string) *http.Request{"2026-07-28": modernPost, "2025-06-18": olderPost} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			gone, kept := make(chan string), make(chan string)
			first := request(t, offer, "1", "wait").WithContext(ctx)
			go func() { gone <- do(t, first) }()
			handler := <-server.began
			second := request(t, offer, "1", "hang")
			go func() { kept <- do(t, second) }()
			other := <-server.began
			cancel()
			<-handler.Done()
			if got := <-gone; !strings.Contains(got, "canceled") {
				t.Errorf("got %s", got)
			}
			if err := other.Err(); err != nil {
				t.Errorf("the other request: %v", err)
			}
			server.release <- struct{}{}
			if got := <-kept; !strings.Contains(got, "late") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Whoever opens connections without end keeps nobody out who knows the token.
func TestManyConnections(t *testing.T) {
	p := startBridged(t)
	offer := p.provide(t, newTools().Server)
	call := func() string { return do(t, modernPost(t, offer, "1", "echo")) }
	if got := call(); !strings.HasPrefix(got, "200 ") {
		t.Fatalf("got %s", got)
	}
	var open []net.Conn
	for range 1000 {
		open = append(open, must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", modernPost(t, offer, "1", "echo").URL.Host))(t))
	}
	http.DefaultClient.CloseIdleConnections()
	if got := call(); !strings.HasPrefix(got, "200 ") {
		t.Errorf("beside them, a call got %s", got)
	}
	for _, conn := range open {
		conn.Close()
	}
}

// A request whose body does not arrive takes no place of the offer, and ends.
func TestSlowBody(t *testing.T) {
	p := startBridged(t)
	offer := p.provide(t, newTools().Server)
	req := modernPost(t, offer, "1", "echo")
	for range 70 { // more than an offer may have in progress
		conn := must.Get(new(net.Dialer).DialContext(t.Context(), "tcp", req.URL.Host))(t)
		defer conn.Close()
		must.Get(fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\nContent-Length: 10\r\n\r\n{",
			req.URL.Path, req.URL.Host, req.Header.Get("Authorization")))(t)
	}
	if got := do(t, modernPost(t, offer, "2", "echo")); !strings.HasPrefix(got, "200 ") {
		t.Errorf("beside slow bodies, a call got %s", got)
	}
	must.Do(t, offer.Close(t.Context()))
}

// Two connections have listeners of their own, and the token of one is worth nothing to the other.
func TestMOA18_Connections(t *testing.T) {
	one, two := startBridged(t), startBridged(t)
	server := newTools()
	a, b := one.provide(t, server.Server), two.provide(t, server.Server)
	req := modernPost(t, a, "1", "echo")
	req.URL.Host = strings.TrimSuffix(strings.TrimPrefix(overHTTP(b).URL, "http://"), urlPath(b))
	req.Host = req.URL.Host
	if got := do(t, req); !strings.HasPrefix(got, "404 ") {
		t.Errorf("got %s", got)
	}
}
