package remote

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

// socketServer serves one WebSocket after the other by f, and returns its URL.
func socketServer(t *testing.T, f func(ws *websocket.Conn, r *http.Request), o *websocket.AcceptOptions) string {
	return listening(t, func(l net.Listener) func() { return serveSocket(l, f, o) })
}

// rawServer takes a connection as HTTP/1.1 has it, answers an upgrade with the header, and leaves the rest to f.
func rawServer(t *testing.T, header string, f func(conn net.Conn, in *bufio.Reader)) string {
	return listening(t, func(l net.Listener) func() { return serveRaw(l, header, f) })
}

// listening serves on the loopback interface until the test ends, and returns the URL.
func listening(t *testing.T, serve func(l net.Listener) (stop func())) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(serve(l))
	return "ws://" + l.Addr().String()
}

// serveSocket is socketServer on any listener. stop closes the listener and the connections, and waits.
func serveSocket(l net.Listener, f func(ws *websocket.Conn, r *http.Request), o *websocket.AcceptOptions) (stop func()) {
	srv := httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, o)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		f(ws, r)
	})}}
	srv.Start()
	return srv.Close
}

// serveRaw is rawServer on any listener. stop closes the listener and waits for f.
func serveRaw(l net.Listener, header string, f func(conn net.Conn, in *bufio.Reader)) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n%s\r\n",
			base64.StdEncoding.EncodeToString(sum[:]), header)
		f(conn, in)
	}()
	return func() {
		l.Close()
		<-done
	}
}

// TestREM20_Frames: text frames are messages, fragments are joined, binary ones and pings are not read; lines are split
// into frames. The server need not name the connection (REM-4).
func TestREM20_Frames(t *testing.T) {
	got := make(chan string, 10)
	url := socketServer(t, func(ws *websocket.Conn, r *http.Request) {
		ctx := r.Context()
		w, _ := ws.Writer(ctx, websocket.MessageText)
		io.WriteString(w, `{"jsonrpc":"2.0",`)
		io.WriteString(w, "\n"+`"method":"_a"}`)
		w.Close()
		ws.Write(ctx, websocket.MessageBinary, []byte(update("s", 1)))
		ws.Write(ctx, websocket.MessageText, []byte(" \r\n"))
		ws.Write(ctx, websocket.MessageText, []byte(update("s", 2)))
		ws.SetReadLimit(-1)
		for {
			kind, message, err := ws.Read(ctx)
			if err != nil {
				return
			}
			got <- fmt.Sprint(kind, string(message))
		}
	}, nil)
	c := dial(t, url, nil)
	c.want(`{"jsonrpc":"2.0", "method":"_a"}`, update("s", 2))
	c.write(cancel("a"))
	if err := c.s.(rpc.FastStream).WriteLines([]byte(cancel("b") + "\n" + cancel("c") + "\n")); err != nil {
		t.Fatal(err)
	}
	long := cancel(strings.Repeat("x", 2_000_000))
	c.write(long)
	for _, want := range []string{cancel("a"), cancel("b"), cancel("c"), long} {
		if got := within(t, got); got != fmt.Sprint(websocket.MessageText, want) {
			t.Errorf("got %.100s", got)
		}
	}
}

// TestREM22_Close: the error says code and reason; 1000 and 1001 are an orderly end, others are not.
func TestREM22_Close(t *testing.T) {
	for code, orderly := range map[websocket.StatusCode]bool{1000: true, 1001: true, 1002: false, 1008: false, 1009: false, 1011: false, 4000: false} {
		url := socketServer(t, func(ws *websocket.Conn, r *http.Request) { ws.Close(code, "because") }, nil)
		c := dial(t, url, nil)
		err := c.next().(error)
		closed, ok := errors.AsType[*CloseError](err)
		if !ok || closed.Code != int(code) || closed.Reason != "because" || errors.Is(err, io.EOF) != orderly ||
			!strings.Contains(err.Error(), fmt.Sprint(int(code))) || !strings.Contains(err.Error(), "because") {
			t.Errorf("%d: %v", code, err)
		}
	}
	t.Run("1006", func(t *testing.T) {
		c := dial(t, socketServer(t, func(ws *websocket.Conn, r *http.Request) { ws.CloseNow() }, nil), nil)
		if closed, ok := errors.AsType[*CloseError](c.next().(error)); !ok || closed.Code != 1006 || closed.Err == nil {
			t.Errorf("got %v", closed)
		}
	})
	t.Run("no handshake", func(t *testing.T) { // as goose does
		url := rawServer(t, "", func(conn net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
		o := testOptions(t)
		o.CloseTimeout = 50 * time.Millisecond
		c := dial(t, url, o)
		begin := time.Now()
		if err := c.s.Close(); err != nil || time.Since(begin) > patience {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
	t.Run("ours", func(t *testing.T) {
		codes := make(chan websocket.StatusCode, 1)
		url := socketServer(t, func(ws *websocket.Conn, r *http.Request) {
			_, _, err := ws.Read(r.Context())
			codes <- websocket.CloseStatus(err)
		}, nil)
		if err := dial(t, url, nil).s.Close(); err != nil {
			t.Error(err)
		}
		if code := within(t, codes); code != 1000 {
			t.Errorf("closed with %d", code)
		}
	})
}

// TestREM9_Frame: a frame over the limit closes with 1009.
func TestREM9_Frame(t *testing.T) {
	codes := make(chan websocket.StatusCode, 1)
	url := socketServer(t, func(ws *websocket.Conn, r *http.Request) {
		ws.Write(r.Context(), websocket.MessageText, []byte(update("s", 1)))
		ws.Write(r.Context(), websocket.MessageText, []byte(update(strings.Repeat("x", 10_000), 2)))
		_, _, err := ws.Read(r.Context())
		codes <- websocket.CloseStatus(err)
	}, nil)
	o := testOptions(t)
	o.MaxMessage = 10_000
	c := dial(t, url, o)
	c.want(update("s", 1))
	if closed, ok := errors.AsType[*CloseError](c.next().(error)); !ok || closed.Code != 1009 {
		t.Errorf("got %v", closed)
	}
	if code := within(t, codes); code != 1009 {
		t.Errorf("closed with %d", code)
	}
}

// TestREM23_Subprotocol: none is offered unless told; one that was not offered fails, none at all too if one was.
func TestREM23_Subprotocol(t *testing.T) {
	offered := make(chan string, 10)
	serve := func(ws *websocket.Conn, r *http.Request) {
		offered <- strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ",") + r.Header.Get("Sec-WebSocket-Extensions")
		ws.Read(r.Context())
	}
	dial(t, socketServer(t, serve, nil), nil)
	if got := within(t, offered); got != "" {
		t.Errorf("offered %q", got)
	}
	o := testOptions(t)
	o.Subprotocols = []string{"acp.v1"}
	dial(t, socketServer(t, serve, &websocket.AcceptOptions{Subprotocols: []string{"acp.v1"}}), o)
	if got := within(t, offered); got != "acp.v1" {
		t.Errorf("offered %q", got)
	}
	url := rawServer(t, "Sec-WebSocket-Protocol: mine\r\n", func(net.Conn, *bufio.Reader) {})
	if _, err := Dial(url, nil).Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("got %v", err)
	}
}

// TestREM25_Compression: it is offered only on demand.
func TestREM25_Compression(t *testing.T) {
	url := socketServer(t, func(ws *websocket.Conn, r *http.Request) {
		if !strings.Contains(r.Header.Get("Sec-WebSocket-Extensions"), "permessage-deflate") {
			t.Error("not offered")
		}
		for {
			kind, message, err := ws.Read(r.Context())
			if err != nil {
				return
			}
			ws.Write(r.Context(), kind, message)
		}
	}, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
	o := testOptions(t)
	o.Compression = true
	c := dial(t, url, o)
	for range 3 {
		message := update(strings.Repeat("x", 10_000), 1)
		c.write(message)
		c.want(message)
	}
}

// TestREM24_Pings: a server that answers nothing is given up after two pings; one that is only quiet is not.
func TestREM24_Pings(t *testing.T) {
	inBubble := func(name string, serve func(l net.Listener) (stop func()), test func(t *testing.T, s rpc.Stream)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := pipenet.Listen()
				defer serve(l)()
				o := testOptions(t)
				transport := &http.Transport{DialContext: l.Dial}
				defer transport.CloseIdleConnections()
				o.HTTPClient, o.KeepAlive = &http.Client{Transport: transport}, 20*time.Second
				s, err := Dial("ws://localhost", o).Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				test(t, s)
			})
		})
	}
	inBubble("dead", func(l net.Listener) func() {
		return serveRaw(l, "", func(_ net.Conn, in *bufio.Reader) { io.Copy(io.Discard, in) })
	}, func(t *testing.T, s rpc.Stream) {
		if _, err := s.Read(); !errors.Is(err, ErrUnanswered) || errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
	})
	var pings atomic.Int32
	inBubble("quiet", func(l net.Listener) func() {
		return serveSocket(l, func(ws *websocket.Conn, r *http.Request) {
			ctx := ws.CloseRead(r.Context())
			for pings.Load() < 3 && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
			ws.Write(ctx, websocket.MessageText, []byte(update("s", 1)))
			<-ctx.Done()
		}, &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool { pings.Add(1); return true }})
	}, func(t *testing.T, s rpc.Stream) {
		if got, err := s.Read(); err != nil || string(got) != update("s", 1) {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

// TestREM26_TLS: wss goes over HTTP/1.1 though the server speaks HTTP/2, and https over HTTP/2, with one client.
func TestREM26_TLS(t *testing.T) {
	fake := newFakeServer(t)
	protos := make(chan string, 100)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protos <- r.Proto
		if r.Header.Get("Upgrade") == "" {
			fake.ServeHTTP(w, r)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		ws.Write(r.Context(), websocket.MessageText, []byte(update("s", 1)))
		ws.Read(r.Context())
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	o := testOptions(t)
	o.HTTPClient = srv.Client()
	o.Header = func(context.Context) (http.Header, error) { return http.Header{"Authorization": {"Bearer x"}}, nil }
	c := dial(t, strings.Replace(srv.URL, "https", "wss", 1), o)
	c.want(update("s", 1))
	if got := within(t, protos); got != "HTTP/1.1" {
		t.Errorf("wss over %s", got)
	}
	h := dial(t, srv.URL, o)
	h.write(initRequest)
	h.want(initAnswer)
	if got := within(t, protos); got != "HTTP/2.0" {
		t.Errorf("https over %s", got)
	}
	h.write(prompt(1, "s"))
	fake.send("s", result(1, `{}`))
	h.want(result(1, `{}`))
	if err := h.s.Close(); err != nil {
		t.Error(err)
	}
	// A server that nobody vouches for has not seen a request.
	u := dial(t, srv.URL, nil)
	u.write(initRequest)
	if err := u.fails(0); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}

// TestREM56_Upgrade: an upgrade that is refused has the same errors as a POST; a 401 is tried again with a new token.
func TestREM56_Upgrade(t *testing.T) {
	var status atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer new" {
			ws, err := websocket.Accept(w, r, nil)
			if err == nil {
				ws.Read(r.Context())
			}
			return
		}
		http.Error(w, "because", int(status.Load()))
	}))
	defer srv.Close()
	for code, is := range map[int]error{200: nil, 401: ErrUnauthorized, 404: ErrConnectionGone, 426: nil, 503: ErrBusy} {
		status.Store(int32(code))
		_, err := Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil).Connect(t.Context())
		got, ok := errors.AsType[*StatusError](err)
		if !ok || got.Status != code || got.Text != "because" || is != nil && !errors.Is(err, is) {
			t.Errorf("%d: %v", code, err)
		}
	}
	status.Store(401)
	o := testOptions(t)
	o.Header = func(ctx context.Context) (http.Header, error) {
		if Refused(ctx) != nil {
			return http.Header{"Authorization": {"Bearer new"}}, nil
		}
		return http.Header{"Authorization": {"Bearer old"}}, nil
	}
	dial(t, "ws"+strings.TrimPrefix(srv.URL, "http"), o)
}

// TestREM58_ConnectContext: the context of Connect applies to opening only.
func TestREM58_ConnectContext(t *testing.T) {
	url := socketServer(t, func(ws *websocket.Conn, r *http.Request) {
		kind, message, err := ws.Read(r.Context())
		if err == nil {
			ws.Write(r.Context(), kind, message)
			ws.Read(r.Context())
		}
	}, nil)
	ctx, cancelCtx := context.WithCancel(t.Context())
	s, err := Dial(url, testOptions(t)).Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancelCtx()
	c := newClient(t, s)
	c.write(cancel("s"))
	c.want(cancel("s"))

	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	why := errors.New("enough")
	ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer stop()
	if _, err := Dial("ws://"+l.Addr().String(), nil).Connect(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
