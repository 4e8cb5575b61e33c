package mcpacp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server that is started again is connected to anew, and a call meanwhile waits for it. Each start refuses one request.
func TestRestart(t *testing.T) {
	type find = func(*http.Request) *mcp.Server
	for name, make := range map[string]func(find) http.Handler{
		"http": func(f find) http.Handler { return mcp.NewStreamableHTTPHandler(f, nil) },
		"http, stateless": func(f find) http.Handler {
			return mcp.NewStreamableHTTPHandler(f, &mcp.StreamableHTTPOptions{Stateless: true})
		},
		"sse": func(f find) http.Handler { return mcp.NewSSEHandler(f, nil) },
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
			declared := declareHTTP("web", server.URL)
			if name == "sse" {
				declared = declareSSE("web", server.URL)
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
