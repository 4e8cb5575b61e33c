package mcpacp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
)

// faulty is an MCP server over HTTP with one fault.
type faulty struct {
	fault            string
	result           string // of each call
	status, refusals int    // of the first calls

	mu       sync.Mutex
	sessions []string
	made     int
	calls    int
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Cursor *string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	tool := func(name, more string) string {
		return `{"name":"` + name + `","inputSchema":{"type":"object"}` + more + `}`
	}
	session := r.Header.Get("Mcp-Session-Id")
	events := func(text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}
	status := func(status int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	first := m.Method == "tools/call" && f.calls == 0
	switch {
	case f.fault == "says 200" && !slices.Contains(f.sessions, session) && m.Method != "initialize":
		events("event: message\ndata: {\"error\":\"Session not found\"}\n\n")
	case m.Method == "initialize":
		f.made++
		f.sessions = append(f.sessions, fmt.Sprint(f.made))
		w.Header().Set("Mcp-Session-Id", fmt.Sprint(f.made))
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"faulty","version":"1"}}`)
	case m.ID == nil && f.fault == "stray":
		status(200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}`)
	case m.ID == nil && f.fault == "stray 404":
		status(404, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"no such method"}}`)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case !slices.Contains(f.sessions, session) && f.fault == "says 404":
		status(404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`)
	case !slices.Contains(f.sessions, session) && f.fault == "says 400":
		status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
	case !slices.Contains(f.sessions, session) && f.fault == "says -32001":
		status(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`, m.ID))
	case !slices.Contains(f.sessions, session):
		w.WriteHeader(http.StatusNotFound)
	case m.Method == "tools/list":
		switch {
		case f.fault == "early" && f.made == 1: // it restarts
			f.sessions = nil
			w.WriteHeader(http.StatusNotFound)
		case f.fault == "tasks":
			answer(`{"tools":[` + tool("ask", "") + `,` + tool("slow", `,"execution":{"taskSupport":"required"}`) + `]}`)
		case f.fault == "cursor" && m.Params.Cursor == nil:
			answer(`{"tools":[` + tool("ask", "") + `],"nextCursor":""}`)
		case f.fault == "cursor":
			answer(`{"tools":[` + tool("second", "") + `]}`)
		case f.fault == "circle":
			answer(`{"tools":[` + tool("ask", "") + `],"nextCursor":""}`)
		default:
			answer(`{"tools":[` + tool("ask", "") + `]}`)
		}
	case f.refusals > 0 && first:
		f.refusals--
		w.WriteHeader(f.status)
	case first && f.fault == "cut":
		f.calls++
		panic(http.ErrAbortHandler)
	case first && f.fault == "resumes":
		f.calls++
		f.sessions = nil
		events("id: 1\nretry: 1\ndata:\n\n")
	case f.fault == "stray event":
		f.calls++
		events(fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID))
	case f.fault == "batch":
		status(200, fmt.Sprintf(`[{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]`, m.ID))
	case f.result != "":
		answer(f.result)
	default:
		f.calls++
		if strings.HasPrefix(f.fault, "says") && f.calls == 1 {
			f.sessions = nil // the next request finds no session
		}
		answer(fmt.Sprintf(`{"content":[{"type":"text","text":"answer %d"}]}`, f.calls))
	}
}

// A server that forgets its session, refuses a call for the moment, or loses a connection keeps its tools. A call is made
// again only if it has certainly not been carried out. What the MCP SDK would drop is not lost.
func TestFaultyServers(t *testing.T) {
	const twice = "result: answer 1. |result: answer 2. "
	for name, test := range map[string]struct {
		server    *faulty // nil has the fault of that name
		want, not string
	}{
		"none":             {want: twice},
		"says nothing":     {want: twice, not: "lost"},
		"early":            {want: twice, not: "start"},
		"says 404":         {want: twice},
		"says 400":         {want: twice},
		"says 200":         {want: twice},
		"says -32001":      {want: twice},
		"401 once":         {&faulty{status: 401, refusals: 1}, twice, "failed"},
		"401 for long":     {&faulty{status: 401, refusals: 4}, "it did not accept the request: 401 Unauthorized|result: answer 1. ", "may have run"},
		"429 once":         {&faulty{status: 429, refusals: 1}, twice, "failed"},
		"403 once":         {&faulty{status: 403, refusals: 1}, "403 Forbidden|result: answer 1. ", "may have run"},
		"503 once":         {&faulty{status: 503, refusals: 1}, "the tool may have run|result: answer 1. ", ""},
		"500 once":         {&faulty{status: 500, refusals: 1}, "the tool may have run|result: answer 1. ", ""},
		"cut":              {want: "the tool may have run|result: answer 2. ", not: "answer 1"},
		"resumes":          {want: "the tool may have run|result: answer 2. ", not: "answer 1"},
		"stray":            {want: twice},
		"stray 404":        {want: twice},
		"stray event":      {want: "result: . ", not: "failed"},
		"batch":            {want: "it sent an invalid message", not: "lost"},
		"cursor":           {want: twice},
		"circle":           {want: twice, not: "missing"},
		"tasks":            {want: "slow|it can only be called as a task|" + twice},
		"structured":       {&faulty{result: `{"content":[{"type":"text","text":"see below"}],"structuredContent":{"total":36}}`}, "see below \n{\"total\":36}. ", ""},
		"structured alone": {&faulty{result: `{"content":null,"structuredContent":{"id":9007199254740993}}`}, `result: {"id":9007199254740993}. `, ""},
		"structured error": {&faulty{result: `{"isError":true,"structuredContent":[1]}`}, `failed: [1]. `, ""},
		"structured twice": {&faulty{result: `{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}}`}, `result: {"a": 1}. `, ""},
		"wrapped text":     {&faulty{result: `{"content":[{"type":"text","text":"x"}],"structuredContent":{"result":"x"}}`}, `result: x. `, ""},
		"wrapped list":     {&faulty{result: `{"content":[{"type":"text","text":"x"},{"type":"text","text":"2"}],"structuredContent":{"result":["x",2]}}`}, `result: x 2. `, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.server == nil {
				test.server = &faulty{fault: name}
			}
			server := httptest.NewServer(test.server)
			defer server.Close()
			h := open(t, nil, acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "bad", URL: server.URL}))
			h.prompt(t, "bad__ask")
			h.prompt(t, "bad__ask")
			if name == "cursor" {
				h.prompt(t, "bad__second")
				test.want += "|result: answer 3. "
			}
			seen := strings.Join(h.seen(), "\n")
			for text := range strings.SplitSeq(test.want, "|") {
				if !strings.Contains(seen, text) {
					t.Errorf("%q is not in what the user saw:\n%s", text, seen)
				}
			}
			if test.not != "" && strings.Contains(seen, test.not) {
				t.Errorf("%q is in what the user saw:\n%s", test.not, seen)
			}
		})
	}
}

// A server that is started again is connected to anew, and a call meanwhile waits for it. Each start refuses one request.
func TestRestart(t *testing.T) {
	for name, make := range map[string]func(find func(*http.Request) *mcp.Server) http.Handler{
		"http": func(find func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(find, nil)
		},
		"http, stateless": func(find func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(find, &mcp.StreamableHTTPOptions{Stateless: true})
		},
		"sse": func(find func(*http.Request) *mcp.Server) http.Handler { return mcp.NewSSEHandler(find, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := kinds()
			defer func() {
				for session := range served.Sessions() {
					session.Close()
				}
			}()
			handler := func() http.Handler {
				var requests atomic.Int32
				serve := make(func(*http.Request) *mcp.Server { return served })
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if requests.Add(1) == 1 {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					serve.ServeHTTP(w, r)
				})
			}
			server := httptest.NewServer(handler())
			server.Config.SetKeepAlivesEnabled(false) // so that no call meets a connection that is just being closed
			address := server.Listener.Addr().String()
			declared := acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "web", URL: server.URL})
			if name == "sse" {
				declared = acp.NewMCPServerSSE(acp.MCPServerSSE{Name: "web", URL: server.URL})
			}
			h := open(t, nil, declared)
			h.prompt(t, "web__search")
			server.CloseClientConnections()
			server.Close()
			again := time.AfterFunc(500*time.Millisecond, func() {
				var listening net.ListenConfig
				listener, err := listening.Listen(context.Background(), "tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				server = httptest.NewUnstartedServer(handler())
				server.Listener.Close()
				server.Listener = listener
				server.Start()
			})
			defer again.Stop()
			if name == "sse" {
				h.await(t, `notice: The connection to the MCP server "web" was lost, and is made again`)
			}
			h.prompt(t, "web__search")
			server.CloseClientConnections()
			server.Close()
			if seen := strings.Join(h.seen(), "\n"); strings.Contains(seen, ", failed") || strings.Count(seen, "completed") != 2 {
				t.Errorf("the user saw:\n%s", seen)
			}
		})
	}
}
