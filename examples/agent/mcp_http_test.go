package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
)

// mcpOverHTTP is an MCP server, which answers in one of the two ways, and notes what comes.
type mcpOverHTTP struct {
	events  bool   // it answers with streams of events
	session string // that it names

	mu   sync.Mutex
	came []string
}

func (s *mcpOverHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	var m struct {
		ID     *int64
		Method string
	}
	if len(body) > 0 && json.Unmarshal(body, &m) != nil {
		panic(string(body))
	}
	s.mu.Lock()
	about := []string{r.Method, m.Method, r.Header.Get("Key"), r.Header.Get("Mcp-Session-Id"), r.Header.Get("MCP-Protocol-Version")}
	s.came = append(s.came, strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), " "))
	s.mu.Unlock()
	result := map[string]string{
		"initialize": `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"hammer"},{"name":"saw"}]}`,
	}[m.Method]
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "initialize" && s.session != "":
		w.Header().Set("Mcp-Session-Id", s.session)
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, *m.ID, result)
	if s.events {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		half := strings.Index(answer, ",") + 1
		fmt.Fprintf(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: %s\ndata: %s\n\n", answer[:half], answer[half:])
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, answer)
}

// SES-26: MCP servers over HTTP are spoken to with their headers, and their session is ended with that of the client.
func TestSES26_MCPOverHTTP(t *testing.T) {
	for _, server := range []*mcpOverHTTP{{}, {events: true, session: "m1"}} {
		listener := httptest.NewServer(server)
		defer listener.Close()
		h := connect(t, setup{})
		s := h.session(t, func(r *acp.NewSessionRequest) {
			r.MCPServers = []acp.MCPServer{acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "tools", URL: listener.URL, Headers: []acp.HTTPHeader{{Name: "Key", Value: "secret"}}})}
		})
		say(t, s, "mcp", acp.StopReasonEndTurn)
		if got := spoken(h.seen(s.ID())); !strings.Contains(got, "tools: hammer, saw") {
			t.Errorf("got %q", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		want := "POST initialize secret; POST notifications/initialized secret 2024-11-05; POST tools/list secret 2024-11-05"
		if server.session != "" {
			want = "POST initialize secret; POST notifications/initialized secret m1 2024-11-05; POST tools/list secret m1 2024-11-05; DELETE secret m1 2024-11-05"
		}
		server.mu.Lock()
		if got := strings.Join(server.came, "; "); got != want {
			t.Errorf("came %q, want %q", got, want)
		}
		server.mu.Unlock()
	}
}

// MCP servers over HTTP that answer wrongly are reported, and are no reason to refuse the session.
func TestMCPOverHTTPThatBreaks(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "hi")
		},
		"no type": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil },
		"no event": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {}\n\ndata: {\"id\":1,\"result\"")
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`)
		},
	} {
		listener := httptest.NewServer(serve)
		h := connect(t, setup{})
		s := h.session(t, func(r *acp.NewSessionRequest) {
			r.MCPServers = []acp.MCPServer{acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "broken", URL: listener.URL})}
		})
		say(t, s, "mcp", acp.StopReasonEndTurn)
		if got := spoken(h.seen(s.ID())); !strings.Contains(got, "no MCP servers") {
			t.Errorf("%s: got %q", name, got)
		}
		if got := variants[*acp.SessionUpdateNotice](h.seen(s.ID())); len(got) != 1 {
			t.Errorf("%s: got %d notices", name, len(got))
		}
		listener.Close()
	}
}
