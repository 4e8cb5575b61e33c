package mcpacp_test

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

// faulty is an MCP server over HTTP with one fault.
type faulty struct {
	fault string

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
	switch {
	case m.Method == "initialize":
		f.made++
		f.sessions = append(f.sessions, fmt.Sprint(f.made))
		w.Header().Set("Mcp-Session-Id", fmt.Sprint(f.made))
		answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"faulty","version":"1"}}`)
	case m.ID == nil && f.fault == "stray":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}`)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case !slices.Contains(f.sessions, session):
		w.WriteHeader(http.StatusNotFound)
	case m.Method == "tools/list":
		switch {
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
	case m.Method == "tools/call":
		f.calls++
		switch {
		case f.fault == "forgets" && f.calls == 1:
			f.sessions = nil // the next request finds no session
		case f.fault == "unauthorized" && f.calls == 1:
			w.WriteHeader(http.StatusUnauthorized)
			return
		case f.fault == "cut" && f.calls == 1:
			panic(http.ErrAbortHandler)
		case f.fault == "structured":
			answer(`{"content":[{"type":"text","text":"see below"}],"structuredContent":{"total":36}}`)
			return
		}
		answer(fmt.Sprintf(`{"content":[{"type":"text","text":"answer %d"}]}`, f.calls))
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	}
}

// A server that forgets its session, refuses a call for the moment, or loses a connection keeps its tools. A call is made
// again only if it has certainly not been carried out. What the MCP SDK would drop is not lost.
func TestFaultyServers(t *testing.T) {
	for fault, want := range map[string]string{
		"none":         "answer 1. |answer 2. ",
		"forgets":      "answer 1. |answer 2. ",
		"unauthorized": "answer 2. |answer 3. ",
		"cut":          "the tool may have run|answer 2. ",
		"stray":        "answer 1. |answer 2. ",
		"structured":   `see below {"total":36}|see below {"total":36}`,
		"cursor":       "answer 1. |answer 2. ",
		"circle":       "answer 1. |answer 2. ",
		"tasks":        "slow|it can only be called as a task|answer 1. |answer 2. ",
	} {
		t.Run(fault, func(t *testing.T) {
			server := httptest.NewServer(&faulty{fault: fault})
			defer server.Close()
			h := open(t, nil, acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "bad", URL: server.URL}))
			h.prompt(t, "bad__ask")
			h.prompt(t, "bad__ask")
			seen := strings.Join(h.seen(), "\n")
			for _, text := range strings.Split(want, "|") {
				if !strings.Contains(seen, text) {
					t.Errorf("%q is not in what the user saw:\n%s", text, seen)
				}
			}
			if fault == "cursor" {
				if h.prompt(t, "bad__second"); !strings.Contains(strings.Join(h.seen(), "\n"), "answer 3") {
					t.Errorf("the tool of the page behind an empty cursor: %q", h.seen())
				}
			}
			if fault == "circle" && strings.Contains(seen, "missing") {
				t.Errorf("an empty cursor at the end is reported:\n%s", seen)
			}
		})
	}
}
