package mcpacp

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A silent response continues with comments, and what the SDK writes then is right among them.
func TestMOA20_KeepAlive(t *testing.T) {
	for name, test := range map[string]struct {
		write func(w http.ResponseWriter)
		want  string
	}{
		"an event": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: {}\n\n")
		}, "event: message\n"},
		"an error of MCP": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "{}")
		}, "event: message\n"},
	} {
		t.Run(name, func(t *testing.T) {
			write := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				alive := keepAlive(w, time.Millisecond)
				defer alive.stop()
				<-write
				test.write(alive)
				if err := http.NewResponseController(alive).Flush(); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			res, err := http.Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got := res.Header.Get("Content-Type"); got != "text/event-stream" || res.StatusCode != http.StatusOK {
				t.Errorf("got %d, %s", res.StatusCode, got)
			}
			lines := bufio.NewReader(res.Body)
			for range 3 {
				if got, err := lines.ReadString('\n'); got != ": keep-alive\n" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
				if got, err := lines.ReadString('\n'); got != "\n" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
			close(write)
			var got string
			for got == "" || got == ": keep-alive\n" || got == "\n" {
				if got, err = lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			data, err := lines.ReadString('\n')
			if got != test.want || data != "data: {}\n" || err != nil {
				t.Errorf("got %q, %q, %v", got, data, err)
			}
		})
	}
}

// A response that is quick is as the SDK writes it, and nothing comes after it.
func TestMOA20_Quick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := httptest.NewRecorder()
		alive := keepAlive(recorder, time.Hour)
		alive.Header().Set("Content-Type", "application/json")
		alive.WriteHeader(http.StatusNotFound)
		if _, err := io.WriteString(alive, "{}"); err != nil {
			t.Error(err)
		}
		alive.stop()
		time.Sleep(2 * time.Hour)
		if recorder.Code != http.StatusNotFound || recorder.Body.String() != "{}" || recorder.Header().Get("Content-Type") != "application/json" {
			t.Errorf("got %d, %s, %v", recorder.Code, recorder.Body, recorder.Header())
		}
	})
}

// The response to a call that is silent for 40 s has two comments before its answer: one every 15 s.
func TestMOA20_SilentCall(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		time.Sleep(40 * time.Second)
		return nil, nil, nil
	})
	var offer *Offer
	b, err := listen(func(string) *Offer { return offer }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
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
