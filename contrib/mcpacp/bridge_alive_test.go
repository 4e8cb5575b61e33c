package mcpacp

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A silent response goes on with comments, and what the SDK writes then is right among them.
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

// A response that is quick is as the SDK writes it.
func TestMOA20_Quick(t *testing.T) {
	recorder := httptest.NewRecorder()
	alive := keepAlive(recorder, time.Hour)
	alive.Header().Set("Content-Type", "application/json")
	alive.WriteHeader(http.StatusNotFound)
	if _, err := io.WriteString(alive, "{}"); err != nil {
		t.Error(err)
	}
	alive.stop()
	if recorder.Code != http.StatusNotFound || recorder.Body.String() != "{}" || recorder.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d, %s, %v", recorder.Code, recorder.Body, recorder.Header())
	}
}
