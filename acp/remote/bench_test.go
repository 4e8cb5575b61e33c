package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

const (
	question = `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}`
	answer   = `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`
)

// BenchmarkPlain compares a connection with the least code that carries the same messages: messages of the same library
// for WebSockets, and POSTs and a stream of events by net/http, without checks, queues, limits or reconnections. An
// operation is an update that the agent sends alone, or a call with one in flight; both sides are measured.
func BenchmarkPlain(b *testing.B) {
	for _, scheme := range []string{"ws", "http"} {
		open := []struct {
			name string
			open func(*testing.B, *script) link
		}{{"ours", func(b *testing.B, s *script) link { return dialOurs(b, scheme, s) }}, {"plain", dialPlainSocket}}
		if scheme == "http" {
			open[1].open = dialPlainEvents
		}
		for _, size := range []int{64, 1 << 10} {
			for _, o := range open {
				b.Run(fmt.Sprintf("%s/update of %d/%s", scheme, size, o.name), func(b *testing.B) {
					s := &script{update: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":`+
						`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, strings.Repeat("x", size))}
					l := o.open(b, s)
					ask(b, l, nil, 0) // the session's stream is opened
					s.updates.Store(int64(b.N))
					b.ReportAllocs()
					b.ResetTimer()
					ask(b, l, s.update, b.N)
				})
			}
		}
		for _, o := range open {
			b.Run(scheme+"/call/"+o.name, func(b *testing.B) {
				l := o.open(b, &script{})
				ask(b, l, nil, 0)
				b.ReportAllocs()
				for b.Loop() {
					ask(b, l, nil, 0)
				}
			})
		}
	}
}

// ask sends a question, and reads n updates and the answer.
func ask(b *testing.B, l link, update []byte, n int) {
	must.Do(b, l.Write([]byte(question)))
	for i := range n + 1 {
		want := update
		if i == n {
			want = []byte(answer)
		}
		if got, err := l.Read(); err != nil || !bytes.Equal(got, want) {
			b.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
}

// script is an agent that answers a question with updates and the answer.
type script struct {
	updates atomic.Int64
	update  []byte
}

func (s *script) answer(write func([]byte) error) error {
	for range s.updates.Load() {
		if err := write(s.update); err != nil {
			return err
		}
	}
	return write([]byte(answer))
}

// link is a client's end of a connection.
type link interface {
	Write(message []byte) error
	Read() ([]byte, error)
}

func dialOurs(b *testing.B, scheme string, s *script) link {
	server := remote.Handler(func(ctx context.Context, t rpc.Transport, _ *remote.Peer) error {
		stream, err := t.Connect(ctx)
		if err != nil {
			return err
		}
		if _, err := stream.Read(); err != nil {
			return err
		}
		for err = stream.Write([]byte(`{"jsonrpc":"2.0","id":0,"result":{}}`)); err == nil; err = s.answer(stream.Write) {
			if _, err := stream.Read(); err != nil {
				return nil
			}
		}
		return err
	}, nil)
	web := httptest.NewServer(server)
	stream := must.Get(remote.Dial(scheme+strings.TrimPrefix(web.URL, "http"), nil).Connect(b.Context()))(b)
	b.Cleanup(func() {
		if err := errors.Join(stream.Close(), server.Shutdown(context.Background())); err != nil {
			b.Error(err)
		}
		web.Close()
	})
	must.Do(b, stream.Write([]byte(initialize)))
	must.Get(stream.Read())(b)
	return stream
}

func dialPlainSocket(b *testing.B, s *script) link {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for err == nil {
			if _, _, err = ws.Read(context.Background()); err == nil {
				err = s.answer(plainSocket{ws}.Write)
			}
		}
	}))
	b.Cleanup(web.Close)
	ws, _, err := websocket.Dial(b.Context(), web.URL, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { ws.CloseNow() })
	return plainSocket{ws}
}

type plainSocket struct{ ws *websocket.Conn }

func (p plainSocket) Write(message []byte) error {
	return p.ws.Write(context.Background(), websocket.MessageText, message)
}

func (p plainSocket) Read() ([]byte, error) {
	_, message, err := p.ws.Read(context.Background())
	return message, err
}

func dialPlainEvents(b *testing.B, s *script) link {
	questions := make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if _, err := io.ReadAll(r.Body); err == nil {
				questions <- struct{}{}
				w.WriteHeader(http.StatusAccepted)
			}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		write := func(message []byte) error {
			if _, err := fmt.Fprintf(w, "data: %s\n\n", message); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case <-questions:
				if s.answer(write) != nil {
					return
				}
			case <-r.Context().Done():
				return
			}
		}
	}))
	b.Cleanup(web.Close)
	client := web.Client()
	resp := must.Get(client.Get(web.URL))(b)
	b.Cleanup(func() { resp.Body.Close() })
	return &plainEvents{web.URL, client, bufio.NewScanner(resp.Body)}
}

type plainEvents struct {
	url    string
	client *http.Client
	lines  *bufio.Scanner
}

func (p *plainEvents) Write(message []byte) error {
	resp, err := p.client.Post(p.url, "application/json", bytes.NewReader(message))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func (p *plainEvents) Read() ([]byte, error) {
	for p.lines.Scan() {
		if message, ok := bytes.CutPrefix(p.lines.Bytes(), []byte("data: ")); ok {
			return message, nil
		}
	}
	return nil, errors.Join(p.lines.Err(), io.ErrUnexpectedEOF)
}
