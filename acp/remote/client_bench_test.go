package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/rpc"
)

// BenchmarkRead reads small updates from a server that sends as fast as it can.
func BenchmarkRead(b *testing.B) {
	events := bytes.Repeat([]byte("data: "+smallUpdate+"\n\n"), 100)
	messages := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer ws.CloseNow()
			for r.Context().Err() == nil {
				if ws.Write(r.Context(), websocket.MessageText, []byte(smallUpdate)) != nil {
					return
				}
			}
		case r.Method == http.MethodPost:
			answerInitialize(w)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-messages
			for r.Context().Err() == nil {
				if _, err := w.Write(events); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		}
	}))
	b.Cleanup(srv.Close)
	for _, scheme := range []string{"http", "ws"} {
		b.Run(scheme, func(b *testing.B) {
			s := dialled(b, scheme, srv, &DialOptions{})
			defer s.Close()
			if scheme == "http" {
				messages <- struct{}{}
			}
			b.SetBytes(int64(len(smallUpdate)))
			b.ReportAllocs()
			waits := 0
			wait := func() { waits++ }
			for b.Loop() {
				if line, err := s.ReadLine(wait); err != nil || len(line) != len(smallUpdate) {
					b.Fatalf("%s, %v", line, err)
				}
			}
		})
	}
}

// BenchmarkWrite sends small notifications to a server that answers each POST at once.
func BenchmarkWrite(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer ws.CloseNow()
			for {
				_, in, err := ws.Reader(r.Context())
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, in); err != nil {
					return
				}
			}
		case r.Method == http.MethodPost && r.Header.Get(HeaderConnection) == "":
			answerInitialize(w)
		case r.Method == http.MethodPost:
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusAccepted)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	b.Cleanup(srv.Close)
	for _, scheme := range []string{"http", "ws"} {
		b.Run(scheme, func(b *testing.B) {
			s := dialled(b, scheme, srv, &DialOptions{MaxQueued: 1 << 16})
			defer s.Close()
			var lines bytes.Buffer
			for i := range 10 {
				fmt.Fprintf(&lines, `{"jsonrpc":"2.0","method":"_n","params":{"n":%d}}`+"\n", i)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.WriteLines(lines.Bytes()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// dialled is a stream to a server, initialized if that is over HTTP.
func dialled(b *testing.B, scheme string, srv *httptest.Server, o *DialOptions) rpc.FastStream {
	b.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	stream, err := Dial(scheme+srv.URL[len("http"):], o).Connect(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if scheme == "http" {
		if err := stream.Write([]byte(initRequest)); err != nil {
			b.Fatal(err)
		}
		if _, err := stream.Read(); err != nil {
			b.Fatal(err)
		}
	}
	return stream.(rpc.FastStream)
}
