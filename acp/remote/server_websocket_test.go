package remote_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/pipenet"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestREM9_LongFrame: a message over the limit closes the WebSocket with 1009, and one below does not.
func TestREM9_LongFrame(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	f := serve(t, &remote.HandlerOptions{MaxMessage: 5 << 20, KeepAlive: -1})
	s := f.openSocket()
	long := note("x", `{"text":"`+strings.Repeat("x", 5<<20-100)+`"}`)
	s.send(long)
	if got := receive(t, s.agent.got); got != long {
		t.Errorf("the agent got %d bytes of %d", len(got), len(long))
	}
	sent := make(chan error, 1)
	go func() { sent <- s.agent.send("%s", long) }() // in fragments
	s.want(long)
	if err := receive(t, sent); err != nil {
		t.Fatal(err)
	}
	// The server closes in the middle of it.
	_ = s.Write(t.Context(), websocket.MessageText, []byte(long+long))
	s.ends(websocket.StatusMessageTooBig)
	var closed *remote.CloseError
	if err := receive(t, s.agent.ended); !errors.As(err, &closed) || closed.Code != 1009 || !strings.Contains(err.Error(), "longer than 5242880") {
		t.Errorf("the agent read %v", err)
	}
}

// TestREM20_Frames: fragments are joined, and binary messages are ignored and reported.
func TestREM20_Frames(t *testing.T) {
	s := serve(t, nil).openSocket()
	if err := s.Write(t.Context(), websocket.MessageBinary, []byte(note("binary", "{}"))); err != nil {
		t.Fatal(err)
	}
	w, err := s.Writer(t.Context(), websocket.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte(note("fragments", "{}")) {
		if _, err := w.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, s.agent.got); got != note("fragments", "{}") {
		t.Errorf("the agent got %s", got)
	}
	if !strings.Contains(s.log.String(), "binary message") {
		t.Errorf("not reported:\n%s", s.log)
	}
}

// TestREM21_BeforeInitialize: what is not a message is answered, a response is ignored, and anything else is the end.
func TestREM21_BeforeInitialize(t *testing.T) {
	f := serve(t, nil)
	s := f.dial(nil)
	for text, code := range map[string]int{"{": -32700, "[]": -32600, "[" + initialize + "]": -32600, "{}": -32600, "1": -32600} {
		s.send(text)
		if m := parse(t, s.message()); m.Error == nil || m.Error.Code != code || string(m.ID) != "null" {
			t.Errorf("%s: %+v", text, m)
		}
	}
	s.send(result(1, "nothing"))
	s.send(initialize)
	if m := parse(t, s.message()); m.Result == nil {
		t.Errorf("initialize: %+v", m)
	}
	s.send(strings.Replace(initialize, `"id":0`, `"id":9`, 1))
	if m := parse(t, s.message()); m.Error == nil || m.Error.Code != -32600 || string(m.ID) != "9" {
		t.Errorf("a second initialize: %+v", m)
	}
	for _, first := range []string{
		request(1, "session/new", "{}"), note("x", "{}"), note("initialize", "{}"), request("null", "initialize", "{}"),
	} {
		s := f.dial(nil)
		s.send(first)
		s.ends(websocket.StatusProtocolError)
	}
	for len(f.agents) > 0 {
		if agent := <-f.agents; len(agent.got) > 0 {
			t.Error("an agent was started for nothing")
		}
	}
}

// TestREM21_Pipelined: what comes behind initialize waits for its answer, and after an error there is only initialize
// again.
func TestREM21_Pipelined(t *testing.T) {
	bubble(t, nil, func(f *fixture) {
		s := f.dial(nil)
		s.send(request(0, "initialize", `{"do":"hang"}`))
		go s.send(note("x", "{}")) // nobody reads it
		agent := <-f.agents
		synctest.Wait()
		if len(agent.got) > 0 {
			t.Errorf("the agent got %s", <-agent.got)
		}
		sent := make(chan error, 1)
		go func() { sent <- agent.send(`{"jsonrpc":"2.0","id":0,"result":{}}`) }()
		s.message()
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if got := <-agent.got; got != note("x", "{}") {
			t.Errorf("the agent got %s", got)
		}
		s.Close(websocket.StatusNormalClosure, "")

		s = f.dial(nil)
		s.send(request(0, "initialize", `{"do":"fail"}`))
		if m := parse(t, s.message()); m.Error == nil {
			t.Errorf("%+v", m)
		}
		s.send(initialize)
		if m := parse(t, s.message()); m.Result == nil {
			t.Errorf("%+v", m)
		}
	})
}

// TestREM21_Timeouts: a client that does not initialize, and an agent that does not answer, have half a minute.
func TestREM21_Timeouts(t *testing.T) {
	bubble(t, &remote.HandlerOptions{KeepAlive: -1}, func(f *fixture) {
		began := time.Now()
		s := f.dial(nil)
		s.ends(websocket.StatusPolicyViolation)
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("closed after %v", waited)
		}
		s = f.dial(nil)
		s.send(request(0, "initialize", `{"do":"hang"}`))
		// If the agent ends before the WebSocket does, what it was asked is answered.
		text, err := s.next()
		if err == nil && strings.Contains(text, `"code":-32603`) {
			text, err = s.next()
		}
		if websocket.CloseStatus(err) != websocket.StatusInternalError {
			t.Errorf("%q, %v", text, err)
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("closed after %v", waited)
		}
		if err := <-(<-f.agents).ended; !errors.Is(err, io.EOF) {
			t.Errorf("the agent read %v", err)
		}
	})
}

// TestREM22_Codes: 1000 for an end, 1001 when the server stops, 1011 when the agent fails, whose requests are answered
// before.
func TestREM22_Codes(t *testing.T) {
	t.Run("1000", func(t *testing.T) {
		s := serve(t, nil).openSocket()
		closed := make(chan error, 1)
		go func() { closed <- s.agent.stream.Close() }() // waits until the client has read that
		s.ends(websocket.StatusNormalClosure)
		if err := receive(t, closed); err != nil {
			t.Error(err)
		}
	})
	t.Run("1000 by the client", func(t *testing.T) {
		s := serve(t, nil).openSocket()
		if err := s.Close(websocket.StatusNormalClosure, "bye"); err != nil {
			t.Fatal(err)
		}
		var closed *remote.CloseError
		if err := receive(t, s.agent.ended); !errors.Is(err, io.EOF) || !errors.As(err, &closed) || closed.Code != 1000 || closed.Reason != "bye" {
			t.Errorf("the agent read %v", err)
		}
	})
	t.Run("1001", func(t *testing.T) {
		s := serve(t, nil).openSocket()
		s.send(request(1, "session/prompt", `{"sessionId":"s1","n":2}`))
		receive(t, s.agent.got)
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		s.want(update("s1", 0))
		s.want(update("s1", 1))
		s.want(result(1, "session/prompt"))
		s.ends(websocket.StatusGoingAway)
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
		if err := receive(t, s.agent.ended); !errors.Is(err, io.EOF) || !errors.Is(err, remote.ErrServerClosed) {
			t.Errorf("the agent read %v", err)
		}
		if _, resp, err := s.tryDial(nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("afterwards: %v", err)
		}
	})
	for _, do := range []string{"die", "panic"} {
		t.Run("1011 "+do, func(t *testing.T) {
			s := serve(t, nil).openSocket()
			s.send(request(1, "session/prompt", `{"sessionId":"s1","do":"hang"}`))
			s.send(request(2, "session/prompt", `{"sessionId":"s2","do":"`+do+`"}`))
			var ids strings.Builder
			for range 2 {
				text := s.message()
				m := parse(t, text)
				if m.Error == nil || m.Error.Code != -32603 || strings.Contains(text, "secret") {
					t.Errorf("%s", text)
				}
				ids.WriteString(string(m.ID))
			}
			if ids.String() != "12" && ids.String() != "21" {
				t.Errorf("answered %s", ids.String())
			}
			s.ends(websocket.StatusInternalError)
		})
		t.Run("1011 "+do+" without requests", func(t *testing.T) {
			s := serve(t, nil).openSocket()
			s.send(note("x", `{"do":"`+do+`"}`))
			s.ends(websocket.StatusInternalError)
		})
	}
}

// TestREM23_Subprotocols: one that begins with acp is selected, or one that is configured, and never another.
func TestREM23_Subprotocols(t *testing.T) {
	for _, c := range []struct {
		offered  []string
		selected string
	}{
		{nil, ""},
		{[]string{"acp"}, "acp"},
		{[]string{"graphql-ws", "acp.v1"}, "acp.v1"},
		{[]string{"mine"}, "mine"},
		{[]string{"s3cret-token"}, ""},
		{[]string{"acp-token.s3cret"}, ""},
		{[]string{"acp-token.s3cret", "acp"}, "acp"},
	} {
		f := serve(t, &remote.HandlerOptions{Subprotocols: []string{"mine"}, TokenSubprotocol: "acp-token."})
		s := f.dial(&websocket.DialOptions{Subprotocols: c.offered})
		if got := s.Subprotocol(); got != c.selected {
			t.Errorf("%q: selected %q, want %q", c.offered, got, c.selected)
		}
		for _, values := range s.resp.Header {
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "s3cret") }) {
				t.Errorf("a token was sent back: %v", s.resp.Header)
			}
		}
	}
}

// TestREM24_Pings: the server pings every 15 s, and ends a WebSocket whose client does not answer two in a row.
func TestREM24_Pings(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		bubble(t, nil, func(f *fixture) {
			var pings atomic.Int32
			s := f.dial(&websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
				pings.Add(1)
				return true
			}})
			s.send(initialize)
			s.message()
			agent := <-f.agents
			sent := make(chan error, 1)
			time.AfterFunc(10*time.Minute+time.Second, func() { sent <- agent.send("%s", note("x", "{}")) })
			s.want(note("x", "{}"))
			if err := <-sent; err != nil {
				t.Error(err)
			}
			if n := pings.Load(); n != 40 {
				t.Errorf("%d pings in 10 minutes", n)
			}
		})
	})
	t.Run("unanswered", func(t *testing.T) {
		bubble(t, nil, func(f *fixture) {
			began := time.Now()
			s := f.dial(&websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return false }})
			s.send(initialize)
			s.message()
			if text, err := s.next(); err == nil {
				t.Errorf("got %s", text)
			}
			if waited := time.Since(began); waited != 45*time.Second {
				t.Errorf("ended after %v", waited)
			}
			if err := <-(<-f.agents).ended; !errors.Is(err, remote.ErrUnanswered) || errors.Is(err, io.EOF) {
				t.Errorf("the agent read %v", err)
			}
		})
	})
	t.Run("held up", func(t *testing.T) {
		bubble(t, nil, func(f *fixture) {
			s := f.dial(&websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool { return false }})
			s.send(initialize)
			s.message()
			s.agent = <-f.agents
			s.agent.mu.Lock()
			s.send(request(1, "x", "{}")) // in whose answer the agent hangs, so that it does not read
			got := make(chan string)
			go func() { got <- s.message() }()
			time.Sleep(10 * time.Minute)
			s.agent.mu.Unlock()
			if text := <-got; text != result(1, "x") {
				t.Errorf("got %s", text)
			}
		})
	})
}

// TestREM24_SlowClient: a client that does not read for long, while it is sent much, and pings, does not lose its
// WebSocket; it gets everything, in order.
func TestREM24_SlowClient(t *testing.T) {
	bubble(t, nil, func(f *fixture) {
		s := f.openSocket()
		sent := make(chan error, 1)
		go func() {
			for i := range 10000 {
				if err := s.agent.send("%s", update("s1", i)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		ponged := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			ponged <- s.Ping(ctx)
		}()
		time.Sleep(50 * time.Second)
		for i := range 10000 {
			s.want(update("s1", i))
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		go s.next() // a ping needs a reader
		if err := <-ponged; err != nil {
			t.Errorf("ping: %v", err)
		}
	})
}

// TestREM40_StalledSocket: a client that takes nothing for 60 s loses its WebSocket.
func TestREM40_StalledSocket(t *testing.T) {
	bubble(t, nil, func(f *fixture) {
		s := f.openSocket()
		began := time.Now()
		s.send(request(1, "session/prompt", `{"sessionId":"s1","n":10000}`))
		f.gone(remote.WebSocket, 2*time.Minute)
		if waited := time.Since(began).Round(time.Second); waited != time.Minute {
			t.Errorf("ended after %v", waited)
		}
		if !strings.Contains(f.log.String(), "WebSocket: "+remote.ErrStalled.Error()) {
			t.Errorf("not logged:\n%s", f.log)
		}
	})
}

// TestREM25_Compression: an offer is declined, unless it is allowed.
func TestREM25_Compression(t *testing.T) {
	offer := func(f *fixture) *socket {
		return f.dial(&websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover})
	}
	if got := offer(serve(t, nil)).resp.Header.Get("Sec-Websocket-Extensions"); got != "" {
		t.Errorf("accepted %q", got)
	}
	s := offer(serve(t, &remote.HandlerOptions{Compression: true}))
	if got := s.resp.Header.Get("Sec-Websocket-Extensions"); !strings.HasPrefix(got, "permessage-deflate") {
		t.Errorf("accepted %q", got)
	}
	s.send(initialize)
	s.message()
	long := note("x", `{"text":"`+strings.Repeat("again ", 1000)+`"}`)
	s.send(long)
	agent := receive(t, s.agents)
	if got := receive(t, agent.got); got != long {
		t.Errorf("the agent got %s", got)
	}
	for _, text := range []string{long, note("x", `{"text":"`+strings.Repeat(rand.Text(), 100_000)+`"}`)} {
		if err := agent.send("%s", text); err != nil {
			t.Fatal(err)
		}
		s.want(text)
	}
}

// TestREM26_SecureWebSocket: wss works where the server also speaks HTTP/2.
func TestREM26_SecureWebSocket(t *testing.T) {
	f := serveBy(t, "HTTP/2", nil, nil)
	if resp, _ := f.do("POST", initialize); resp.ProtoMajor != 2 {
		t.Errorf("POST by %s", resp.Proto)
	}
	<-f.agents
	s := f.openSocket()
	if s.resp.ProtoMajor != 1 {
		t.Errorf("upgrade by %s", s.resp.Proto)
	}
	s.send(request(1, "x", "{}"))
	s.want(result(1, "x"))
}

// TestREM43_Grace: a WebSocket that is lost ends its agent's input at once, or after the grace; one that is closed, at
// once.
func TestREM43_Grace(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint(grace), func(t *testing.T) {
			bubble(t, &remote.HandlerOptions{Grace: grace}, func(f *fixture) {
				s := f.openSocket()
				s.CloseNow()
				began := time.Now()
				for grace > 0 && time.Since(began) < 30*time.Second {
					time.Sleep(10 * time.Second)
					if err := s.agent.send("%s", update("s1", 1)); err != nil {
						t.Errorf("within the grace: %v", err)
					}
				}
				if err := <-s.agent.ended; errors.Is(err, io.EOF) {
					t.Errorf("the agent read %v", err)
				}
				if waited := time.Since(began); waited != grace {
					t.Errorf("it read the end after %v", waited)
				}
				if f.gone(remote.WebSocket, time.Minute); grace > 0 &&
					!strings.Contains(f.log.String(), "messages=3") {
					t.Errorf("what was dropped is not logged:\n%s", f.log)
				}

				s = f.openSocket()
				began = time.Now()
				s.Close(websocket.StatusNormalClosure, "")
				if <-s.agent.ended; time.Since(began) != 0 {
					t.Errorf("closed, it read the end after %v", time.Since(began))
				}
			})
		})
	}
}

// TestCloseTime: an agent may run for some time after its connection has ended, and then its context ends.
func TestCloseTime(t *testing.T) {
	bubble(t, nil, func(f *fixture) {
		const linger = `{"do":"linger"}`
		s := f.openSocket()
		s.send(request(1, "x", linger))
		s.message()
		s.CloseNow()
		began := time.Now()
		if <-s.agent.ended; time.Since(began) != 10*time.Second {
			t.Errorf("over WebSocket it ended after %v", time.Since(began))
		}
		p := f.open()
		own := p.get("")
		p.post(request(1, "x", linger))
		own.message()
		began = time.Now()
		p.do("DELETE", "", p.header()...)
		if <-p.agent.ended; time.Since(began) != 10*time.Second {
			t.Errorf("over HTTP it ended after %v", time.Since(began))
		}
	})
}

// TestREM72_PermissionOfALostClient: what the agent asks its client waits for the grace and then fails with
// ErrClosed; nothing is taken for a rejection.
func TestREM72_PermissionOfALostClient(t *testing.T) {
	const grace = 30 * time.Second
	ask := func(failed chan<- error) func(context.Context, rpc.Transport, *remote.Peer) error {
		return func(ctx context.Context, tr rpc.Transport, _ *remote.Peer) error {
			return acp.ServeAgent(ctx, tr, acp.AgentHandlers{
				NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
					return &acp.NewSessionResponse{SessionID: "s1"}, nil
				},
				Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
					_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "t1"},
						acp.PermissionOption{OptionID: "ok", Name: "ok", Kind: acp.PermissionOptionKindAllowOnce})
					failed <- err
					return nil, err
				},
			}, nil)
		}
	}
	const newSession = `{"cwd":"/","mcpServers":[]}`
	const prompt = `{"sessionId":"s1","prompt":[]}`
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		f, _ := newFixture(t, nil, nil)
		f.patience = time.Hour
		s := remote.Handler(ask(failed), &remote.HandlerOptions{Grace: grace, Expiry: grace, KeepAlive: -1})
		l := pipenet.Listen()
		srv := remote.NewHTTPServer(s)
		go srv.Serve(l)
		f.client.Transport = &http.Transport{DialContext: l.Dial}
		f.url = "http://localhost/acp"
		defer srv.Close()
		defer s.Shutdown(t.Context())
		defer f.client.CloseIdleConnections()

		ws := f.dial(nil)
		ws.send(initialize)
		ws.message()
		ws.send(request(1, "session/new", newSession))
		ws.message()
		ws.send(request(2, "session/prompt", prompt))
		if m := parse(t, ws.message()); m.Method != "session/request_permission" {
			t.Fatalf("%+v", m)
		}
		began := time.Now()
		ws.CloseNow()
		if err := <-failed; !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("over WebSocket: %v", err)
		}
		if waited := time.Since(began); waited != grace {
			t.Errorf("over WebSocket it failed after %v", waited)
		}

		resp, _ := f.do("POST", initialize)
		p := &peer{fixture: f, id: resp.Header.Get("Acp-Connection-Id")}
		own, session := p.get(""), p.get("s1")
		p.post(request(1, "session/new", newSession))
		own.message()
		p.post(request(2, "session/prompt", prompt))
		session.message()
		own.close()
		session.close()
		began = time.Now()
		if err := <-failed; !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, remote.ErrExpired) {
			t.Errorf("over HTTP: %v", err)
		}
		if waited := time.Since(began).Round(time.Second); waited != grace {
			t.Errorf("over HTTP it failed after %v", waited)
		}
	})
}
