package mcpacp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/internal/test/must"
)

// A silent response continues with comments, and what the SDK writes then is right among them. One that is quick is as the
// SDK writes it. Nothing comes after it.
func TestMOA20_KeepAlive(t *testing.T) {
	event := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message\ndata: {}\n\n")
	}
	failure := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "{}")
	}
	const comments, stream = ": keep-alive\n\n: keep-alive\n\n", "text/event-stream"
	for name, test := range map[string]struct {
		silent     time.Duration
		write      func(w http.ResponseWriter)
		status     int
		kind, want string
	}{
		"an event":        {40 * time.Second, event, http.StatusOK, stream, comments + "event: message\ndata: {}\n\n"},
		"an error of MCP": {40 * time.Second, failure, http.StatusOK, stream, comments + "event: message\ndata: {}\n\n"},
		"a quick event":   {0, event, http.StatusOK, stream, "event: message\ndata: {}\n\n"},
		"a quick error":   {0, failure, http.StatusNotFound, "application/json", "{}"},
	} {
		synctest.Test(t, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			alive := keepAlive(recorder, 15*time.Second)
			time.Sleep(test.silent)
			test.write(alive)
			must.Do(t, http.NewResponseController(alive).Flush())
			alive.stop()
			time.Sleep(time.Hour)
			if kind := recorder.Header().Get("Content-Type"); recorder.Code != test.status || recorder.Body.String() != test.want || kind != test.kind {
				t.Errorf("%s: got %d, %s, %q", name, recorder.Code, kind, recorder.Body)
			}
		})
	}
}

// The response to a call that is silent for 40 s has two comments before its answer: one every 15 s.
func TestMOA20_SilentCall(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		time.Sleep(40 * time.Second)
		return nil, nil, nil
	})
	var offer *Offer
	b := must.Get(listen(func(string) *Offer { return offer }, slog.New(slog.DiscardHandler)))(t)
	defer b.server.Close()
	synctest.Test(t, func(t *testing.T) {
		offer = &Offer{id: "x", server: server, life: t.Context(), active: map[any]struct{}{}}
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.address+routePrefix+"x", strings.NewReader(call))
		for name, value := range map[string]string{
			"Authorization": "Bearer " + b.token("x"), "Accept": "application/json, text/event-stream", "Content-Type": "application/json",
		} {
			req.Header.Set(name, value)
		}
		recorder := httptest.NewRecorder()
		b.ServeHTTP(recorder, req)
		const want = ": keep-alive\n\n: keep-alive\n\nevent: message\ndata: {"
		if got := recorder.Body.String(); !strings.HasPrefix(got, want) || recorder.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("got %v, %s", recorder.Header(), got)
		}
	})
}

// Of more connections than a bridge may have, the oldest that have not shown a token are closed.
func TestConnections(t *testing.T) {
	var c conns
	var others []net.Conn
	for i := range maxConns + 10 {
		ours, other := net.Pipe()
		defer other.Close()
		others = append(others, other)
		c.changed(ours, http.StateNew)
		if i == 2 {
			c.known(c.context(t.Context(), ours))
		}
	}
	for i, other := range others {
		_ = other.SetReadDeadline(time.Unix(1, 0)) // an error if ours is closed
		_, err := other.Read(make([]byte, 1))
		if closed := errors.Is(err, io.EOF); closed != (i <= 10 && i != 2) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if len(c.open) != maxConns {
		t.Errorf("%d are open", len(c.open))
	}
}

// stalled is the response to a client that neither sends its body nor reads.
type stalled struct {
	*httptest.ResponseRecorder
	read, write time.Time // the deadlines
}

func (s *stalled) SetReadDeadline(t time.Time) error  { s.read = t; return nil }
func (s *stalled) SetWriteDeadline(t time.Time) error { s.write = t; return nil }
func (s *stalled) Write([]byte) (int, error) {
	time.Sleep(time.Until(s.write))
	return 0, os.ErrDeadlineExceeded
}

// Reading a request, also one that is refused, and each write of a response are bounded in time.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stalled{ResponseRecorder: httptest.NewRecorder()}
		b := &bridge{address: "x", find: func(string) *Offer { return nil }}
		start := time.Now()
		b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://x/mcp-1", nil))
		if took := time.Since(start); w.read.Sub(start) != stallTime || took != stallTime {
			t.Errorf("refused after %v; the body may take %v", took, w.read.Sub(start))
		}
		alive := keepAlive(w, time.Hour)
		time.Sleep(30 * time.Minute)
		for range 2 {
			start = time.Now()
			_, err := alive.Write([]byte("event: message\n\n"))
			if took := time.Since(start); took != stallTime || err == nil {
				t.Errorf("a write ended after %v with %v", took, err)
			}
		}
		start = time.Now()
		time.Sleep(time.Hour) // the next comment waits, too
		alive.stop()
		if took := time.Since(start); took > time.Hour+stallTime {
			t.Errorf("stopped after %v", took)
		}
	})
}
