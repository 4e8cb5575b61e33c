package remote_test

// What becomes of a connection whose network, proxy, agent or server fails: our client and our server with a proxy
// between them that fails by rules. The names of the tests are those of the failures.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/faultproxy"
	"github.com/acpgo/sdk/internal/test/tier"
)

// route is a client, a proxy and a server with one agent in a row.
type route struct {
	t      *testing.T
	way    string // ws, http or h2c
	proxy  *faultproxy.Proxy
	server *remote.Server
	web    *http.Server
	dial   *remote.DialOptions
	log    syncBuilder // of the server

	client  *acp.ClientConn
	session *acp.ClientSession

	mu      sync.Mutex
	gaps    []string // sessions of which the client has said that messages may be lost
	unsent  []string // methods that the client could not send
	updates []string
	came    chan struct{} // has a value when one came

	// The agent sends an update for each value; it ends the turn when the channel is closed.
	say       chan string
	prompts   chan string   // those that came
	cancelled chan struct{} // one for each turn that could not continue
	ended     chan error    // how the agents' connections ended
	die       chan struct{} // closed: the agent's function returns
	agents    sync.WaitGroup

	accepted atomic.Int32 // sockets that the server has accepted
	sockets  atomic.Int32 // those of them that are open
}

// syncBuilder is text that several goroutines write.
type syncBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// the ways by which a client connects.
var (
	allWays  = []string{"ws", "http", "h2c"}
	httpWays = []string{"http", "h2c"}
)

// onEach runs a test over each of the ways, in tier Short over the first one, at the same time as other such tests.
func onEach(t *testing.T, ways []string, test func(t *testing.T, r *route)) {
	t.Parallel()
	for _, way := range ways[:tier.Pick(1, len(ways), len(ways), len(ways))] {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, &route{
				t: t, way: way, say: make(chan string), prompts: make(chan string, 10), cancelled: make(chan struct{}, 10),
				ended: make(chan error, 10), came: make(chan struct{}, 1), die: make(chan struct{}),
			})
		})
	}
}

// open starts all of it. Options may be nil.
func (r *route) open(server *remote.HandlerOptions, dial *remote.DialOptions, rules ...*faultproxy.Rule) {
	t := r.t
	t.Helper()
	if server == nil {
		server = &remote.HandlerOptions{}
	}
	server.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	server.InitializeTimeout = patience
	server.StallTimeout = cmp.Or(server.StallTimeout, patience)
	r.server = remote.Handler(r.agent, server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.web = remote.NewHTTPServer(r.server)
	r.web.ReadHeaderTimeout = patience
	r.web.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			r.accepted.Add(1)
			r.sockets.Add(1)
		case http.StateClosed, http.StateHijacked:
			r.sockets.Add(-1)
		}
	}
	served := make(chan error, 1)
	go func() { served <- r.web.Serve(listener) }()
	if r.proxy, err = faultproxy.New(listener.Addr().String(), rules...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if r.client != nil {
			r.client.Close() // whatever became of it
		}
		// Not the server's Shutdown: it does not end a connection of HTTP/2 that begins meanwhile.
		for what, err := range map[string]error{"proxy": r.proxy.Close(), "agents": r.server.Shutdown(ctx), "server": r.web.Close()} {
			if err != nil {
				t.Errorf("closing the %s: %v", what, err)
			}
		}
		r.agents.Wait()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	if dial == nil {
		dial = &remote.DialOptions{}
	}
	r.dial = dial
	protocols := new(http.Protocols)
	protocols.SetHTTP1(r.way != "h2c")
	protocols.SetUnencryptedHTTP2(r.way == "h2c")
	transport := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	dial.HTTPClient = &http.Client{Transport: transport}
	dial.MinBackoff, dial.MaxBackoff = 10*time.Millisecond, 100*time.Millisecond
	dial.StreamTimeout = cmp.Or(dial.StreamTimeout, patience)
	dial.AnswerTimeout = cmp.Or(dial.AnswerTimeout, patience)
	dial.IdleTimeout = cmp.Or(dial.IdleTimeout, patience)
	dial.KeepAlive = cmp.Or(dial.KeepAlive, patience)
	dial.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	dial.OnGap = func(session string, _ error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gaps = append(r.gaps, session)
	}
	dial.OnUnsent = func(_, method string, _ error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unsent = append(r.unsent, method)
	}
}

// connect connects the client and opens a session.
func (r *route) connect() {
	r.t.Helper()
	if err := r.tryConnect(); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if r.session, err = r.client.NewSession(r.t.Context(), &acp.NewSessionRequest{Cwd: "/"}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *route) tryConnect() (err error) {
	scheme := "http://"
	if r.way == "ws" {
		scheme = "ws://"
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	tap := conformance.Tap(r.t, conformance.Client, remote.Dial(scheme+r.proxy.Addr()+remote.DefaultPath, r.dial), &conformance.TapOptions{
		Accept: map[string]string{"PRM-5": "connections break in a turn"},
	})
	r.client, err = acp.Connect(ctx, tap, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			u, _ := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk)
			text := u.Content.Text()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.updates = append(r.updates, text)
			select {
			case r.came <- struct{}{}:
			default:
			}
			return nil
		},
	}, &acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}})
	return err
}

// agent is the agent of a connection.
func (r *route) agent(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
	sessions := 0 // the test opens one after the other
	conn, err := acp.StartAgent(ctx, transport, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			sessions++
			return &acp.NewSessionResponse{SessionID: acp.SessionID(strings.Repeat("s", sessions))}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			r.prompts <- text
			for {
				select {
				case text, ok := <-r.say:
					if !ok {
						return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
					}
					if err := session.Update(ctx, acp.AgentMessageText(text)); err != nil {
						r.cancelled <- struct{}{}
						return nil, err
					}
				case <-ctx.Done():
					r.cancelled <- struct{}{}
					return nil, ctx.Err()
				}
			}
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}})
	if err != nil {
		return err
	}
	r.agents.Go(func() { <-conn.Done() })
	select {
	case <-conn.Done():
		err = conn.Wait()
	case <-r.die: // its goroutines end with the stream
		err = errors.New("out of memory")
	}
	r.ended <- err
	return err
}

// outcome is how a prompt ended.
type outcome struct {
	res *acp.PromptResponse
	err error
}

// prompt begins a turn.
func (r *route) prompt(text string) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		res, err := r.session.Prompt(context.Background(), acp.TextBlock(text))
		ended <- outcome{res, err}
	}()
	return ended
}

// begun waits until the agent has got a prompt.
func (r *route) begun() { r.t.Helper(); await(r.t, "the prompt at the agent", r.prompts) }

// hear has the agent say texts, and waits until the client has heard them, in order and once.
func (r *route) hear(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		select {
		case r.say <- text:
		case <-time.After(patience):
			r.t.Fatalf("the agent cannot say %s", text)
		}
	}
	r.heard(texts...)
}

// heard waits for updates.
func (r *route) heard(texts ...string) {
	r.t.Helper()
	for timer := time.After(patience); ; {
		r.mu.Lock()
		got := slices.Clone(r.updates)
		if len(got) >= len(texts) {
			r.updates = nil
		}
		r.mu.Unlock()
		if len(got) >= len(texts) {
			if !slices.Equal(got, texts) {
				r.t.Errorf("got %q, want %q", got, texts)
			}
			return
		}
		select {
		case <-r.came:
		case <-timer:
			r.t.Fatalf("got %q, want %q", got, texts)
		}
	}
}

// await waits for something that must come.
func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("it takes too long: %s", what)
	}
	panic("unreachable")
}

// good requires that a turn ends as if nothing had happened.
func (r *route) good(ended <-chan outcome) {
	r.t.Helper()
	if out := await(r.t, "the end of the turn", ended); out.err != nil || out.res.StopReason != acp.StopReasonEndTurn {
		r.t.Errorf("the turn ended with %v, %v", out.res, out.err)
	}
}

// lost requires that the client's connection is lost, for a reason.
func (r *route) lost(want error) {
	r.t.Helper()
	await(r.t, "the end of the connection", r.client.Done())
	if err := r.client.Wait(); !errors.Is(err, want) {
		r.t.Errorf("the connection ended with %v, want %v", err, want)
	}
}

// hadGap waits until the client has reported a gap.
func (r *route) hadGap(session string) {
	r.t.Helper()
	r.until("a gap of stream "+session+" is reported", func() bool { return slices.Contains(r.gaps, session) })
}

// until waits until something is so.
func (r *route) until(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		so := is()
		r.mu.Unlock()
		if so {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("it takes too long until %s", what)
		}
	}
}

// A session's stream that is reset, or ends cleanly, in a turn is opened again; the turn continues, and the gap is reported.
func TestFailure_SessionStreamLost(t *testing.T) {
	for name, fault := range map[string]func(<-chan struct{}) faultproxy.Fault{"reset": faultproxy.CutWhen, "ends": faultproxy.EndWhen} {
		t.Run(name, func(t *testing.T) {
			onEach(t, httpWays, func(t *testing.T, r *route) {
				event := make(chan struct{})
				r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.Stream("s"), Times: 1, Do: fault(event)})
				r.connect()
				turn := r.prompt("go")
				r.begun()
				r.hear("one", "two")
				close(event)
				r.hadGap("s")
				r.hear("three", "four")
				close(r.say)
				r.good(turn)
			})
		})
	}
}

// The connection's stream that is lost is opened again. When the server no longer knows the connection, that is the end.
func TestFailure_ConnectionStreamLost(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		event, again := make(chan struct{}), make(chan struct{})
		r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.Stream(""), Times: 1, Do: faultproxy.CutWhen(event)},
			&faultproxy.Rule{Match: faultproxy.Stream(""), Times: 1, Do: faultproxy.CutWhen(again)},
			&faultproxy.Rule{Match: faultproxy.Stream(""), Do: faultproxy.Answer(http.StatusNotFound, nil, "unknown")})
		r.connect()
		close(event)
		r.hadGap("")
		if _, err := r.client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}); err != nil { // answered there
			t.Error(err)
		}
		close(again)
		r.lost(remote.ErrConnectionGone)
	})
}

// A request that is refused fails alone, with the status.
func TestFailure_RequestRefused(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		r.open(nil, &remote.DialOptions{AnswerTimeout: 100 * time.Millisecond},
			&faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: faultproxy.Answer(429, http.Header{"Retry-After": {"7"}}, "later")},
			&faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: faultproxy.Answer(502, nil, "bad gateway")},
			&faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: faultproxy.BodyLimit(1000)})
		r.connect()
		for _, want := range []struct {
			prompt string
			status int
			is     error
		}{{"one", 429, remote.ErrBusy}, {"two", 502, nil}, {strings.Repeat("x", 2000), 413, remote.ErrTooLarge}} {
			out := await(t, "the refusal", r.prompt(want.prompt))
			status, ok := errors.AsType[*remote.StatusError](out.err)
			if !ok || status.Status != want.status || want.is != nil && !errors.Is(out.err, want.is) {
				t.Errorf("got %v, want a status of %d", out.err, want.status)
				continue
			}
			switch want.status {
			case 429:
				if status.RetryAfter != 7*time.Second {
					t.Errorf("got Retry-After %v", status.RetryAfter)
				}
			case 502: // nobody knows whether the server has taken it
				if _, ok := errors.AsType[*remote.OutcomeError](out.err); !ok {
					t.Errorf("got %v, want an *OutcomeError", out.err)
				}
			case 413:
				if status.Size < 2000 || !strings.Contains(out.err.Error(), fmt.Sprint(status.Size)) {
					t.Errorf("got %v, want the size", out.err)
				}
			}
		}
		turn := r.prompt("four")
		r.begun()
		r.hear("still here")
		close(r.say)
		r.good(turn)
	})
}

// When the answer to a POST is lost, the request's answer settles the call.
func TestFailure_OutcomeUnknown(t *testing.T) {
	for name, fault := range map[string]faultproxy.Fault{"502": faultproxy.AnswerAfter(502, "bad gateway"), "reset": faultproxy.ResetAfter} {
		t.Run(name, func(t *testing.T) {
			onEach(t, httpWays, func(t *testing.T, r *route) {
				r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: fault})
				r.connect()
				turn := r.prompt("go")
				r.begun()
				r.hear("one")
				close(r.say)
				r.good(turn)
				posts := 0
				for _, req := range r.proxy.Requests() {
					if req.RPC == "session/prompt" {
						posts++
					}
				}
				if posts != 1 {
					t.Errorf("the prompt was sent %d times", posts)
				}
			})
		})
	}
}

// A request that a proxy sends twice runs once.
func TestFailure_Doubled(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: faultproxy.Double})
		r.connect()
		turn := r.prompt("go")
		r.begun()
		r.until("the second one is refused", func() bool { return r.server.Stats().Refused[http.StatusBadRequest] == 1 })
		r.hear("one")
		close(r.say)
		// What answers the second one is all that the client gets.
		out := await(t, "the end of the turn", turn)
		if status, ok := errors.AsType[*remote.StatusError](out.err); out.err != nil && (!ok || status.Status != http.StatusBadRequest) {
			t.Errorf("the turn ended with %v", out.err)
		}
		select {
		case text := <-r.prompts:
			t.Errorf("the agent got %q twice", text)
		default:
		}
	})
}

// A cancellation whose POST fails is sent once more, and then reported. The connection lives on.
func TestFailure_CancelRefused(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.RPC("session/cancel"), Times: 3, Do: faultproxy.Answer(502, nil, "bad gateway")})
		r.connect()
		turn := r.prompt("go")
		r.begun()
		if err := r.session.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.until("the cancellation is reported", func() bool { return slices.Equal(r.unsent, []string{"session/cancel"}) })
		if err := r.session.Cancel(t.Context()); err != nil { // refused once more, and taken the second time
			t.Fatal(err)
		}
		await(t, "the cancelled turn", r.cancelled)
		if out := await(t, "the end of the turn", turn); out.err != nil || out.res.StopReason != acp.StopReasonCancelled {
			t.Errorf("the turn ended with %v, %v", out.res, out.err)
		}
	})
}

// A client that is refused asks for a new token once, and is notified.
func TestFailure_Unauthorized(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		var mu sync.Mutex
		var refused []int
		r.open(nil, &remote.DialOptions{Header: func(ctx context.Context) (http.Header, error) {
			if err := remote.Refused(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, err.Status)
			}
			return nil, nil
		}},
			&faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: faultproxy.Answer(401, nil, "who?")},
			&faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Skip: 1, Times: 2, Do: faultproxy.Answer(403, nil, "no")})
		r.connect()
		turn := r.prompt("go")
		r.begun()
		r.hear("one")
		close(r.say)
		r.good(turn)
		if out := await(t, "the refusal", r.prompt("no")); !errors.Is(out.err, remote.ErrUnauthorized) {
			t.Errorf("got %v, want %v", out.err, remote.ErrUnauthorized)
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(refused, []int{401, 403}) {
			t.Errorf("a token was asked for again after %v", refused)
		}
	})
}

// A server that does not know the connection, or another node, ends it; a new one can be opened.
func TestFailure_ConnectionGone(t *testing.T) {
	for _, status := range []int{404, 410} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			onEach(t, httpWays, func(t *testing.T, r *route) {
				unknown := faultproxy.Answer(status, nil, "unknown")
				r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: unknown},
					&faultproxy.Rule{Match: faultproxy.Stream(""), Skip: 1, Times: 1, Do: unknown})
				r.connect()
				if out := await(t, "the end of the call", r.prompt("go")); !errors.Is(out.err, remote.ErrConnectionGone) {
					t.Errorf("got %v", out.err)
				}
				r.lost(remote.ErrConnectionGone)
				r.connect()
			})
		})
	}
}

// A client that is gone without a word is forgotten after a while, and its turn ends.
func TestFailure_ClientGone(t *testing.T) {
	tier.Need(t, tier.Full)
	onEach(t, allWays, func(t *testing.T, r *route) {
		const life = 20 * time.Second // a busy machine may take seconds to connect
		r.open(&remote.HandlerOptions{Expiry: life, Grace: life}, nil)
		r.connect()
		r.prompt("go")
		r.begun()
		begun := time.Now()
		if err := r.proxy.Refuse(); err != nil {
			t.Fatal(err)
		}
		r.proxy.Cut()
		await(t, "the end of the turn", r.cancelled)
		await(t, "the end of the agent", r.ended)
		if took := time.Since(begun); took < life {
			t.Errorf("the turn ended after %v, before %v had passed", took, life)
		}
		r.until("no connection is left", func() bool {
			n := r.server.Stats().Connections
			return n["websocket"]+n["http"] == 0
		})
	})
}

// A client that does not read blocks the agent, and its connection is closed after a while.
func TestFailure_ClientStopsReading(t *testing.T) {
	tier.Need(t, tier.Full)
	onEach(t, allWays, func(t *testing.T, r *route) {
		const stall = 10 * time.Second // a busy machine may take a second for a message
		r.open(&remote.HandlerOptions{StallTimeout: stall, MaxBuffered: 1 << 20, Expiry: stall, KeepAlive: -1}, &remote.DialOptions{ReopenTime: time.Second})
		r.connect()
		r.prompt("go")
		r.begun()
		r.hear("one")
		r.proxy.Freeze()
		text, said := strings.Repeat("x", 64<<10), 0
		for open := true; open; {
			select {
			case r.say <- text:
				said++
			case <-r.cancelled:
				open = false
			case <-time.After(patience):
				t.Fatal("the agent is held up for ever")
			}
		}
		if most := 64 << 20; said*len(text) > most {
			t.Errorf("%d bytes were taken of the agent", said*len(text))
		}
		await(t, "the end of the agent", r.ended)
		r.proxy.Cut()
	})
}

// When the agent fails, those who wait are notified, and the connection ends.
func TestFailure_AgentDies(t *testing.T) {
	onEach(t, allWays, func(t *testing.T, r *route) {
		r.open(nil, &remote.DialOptions{ReopenTime: time.Second})
		r.connect()
		turn := r.prompt("go")
		r.begun()
		r.hear("one")
		close(r.die)
		out := await(t, "the end of the turn", turn)
		// A client that has not opened the stream of the connection by then finds that the connection is gone.
		gone := r.way != "ws" && errors.Is(out.err, remote.ErrConnectionGone)
		if !errors.Is(out.err, rpc.ErrInternal) && !gone || strings.Contains(out.err.Error(), "memory") {
			t.Errorf("got %v, want an internal error that says nothing of the agent", out.err)
		}
		await(t, "the end of the connection", r.client.Done())
		if closed, ok := errors.AsType[*remote.CloseError](r.client.Wait()); r.way == "ws" && (!ok || closed.Code != 1011) {
			t.Errorf("the connection ended with %v, want code 1011", r.client.Wait())
		}
	})
}

// A server that is stopped says so.
func TestFailure_ServerStops(t *testing.T) {
	tier.Need(t, tier.Normal)
	onEach(t, allWays, func(t *testing.T, r *route) {
		r.open(nil, &remote.DialOptions{ReopenTime: time.Second})
		r.connect()
		turn := r.prompt("go")
		r.begun()
		r.hear("one")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := r.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		out := await(t, "the end of the turn", turn)
		t.Logf("the turn ended with %v, %v", out.res, out.err)
		await(t, "the end of the connection", r.client.Done())
		_, err := r.client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
		if closed, ok := errors.AsType[*remote.CloseError](err); r.way == "ws" && (!ok || closed.Code != 1001) {
			t.Errorf("the connection ended with %v, want code 1001", err)
		}
	})
}

// A proxy that holds back the header of a stream is an error that says so.
func TestFailure_ProxyBuffers(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		never := make(chan struct{})
		r.open(nil, &remote.DialOptions{StreamTimeout: 100 * time.Millisecond, ReopenTime: 200 * time.Millisecond},
			&faultproxy.Rule{Match: faultproxy.Method(http.MethodGet), Do: faultproxy.Buffer(never)})
		err := r.tryConnect()
		if err == nil {
			_, err = r.client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
		}
		if err == nil || !strings.Contains(err.Error(), "proxy") {
			t.Errorf("got %v, want an error that speaks of a proxy", err)
		}
	})
}

// What a proxy cuts when it is idle is kept alive by both sides.
func TestFailure_IdleCut(t *testing.T) {
	tier.Need(t, tier.Full)
	onEach(t, allWays, func(t *testing.T, r *route) {
		const idle = 20 * time.Second // a busy machine may take seconds for a message
		r.open(&remote.HandlerOptions{KeepAlive: idle / 10}, &remote.DialOptions{KeepAlive: idle / 10},
			&faultproxy.Rule{Match: faultproxy.Method(http.MethodGet), Do: faultproxy.IdleCut(idle)},
			&faultproxy.Rule{Match: faultproxy.Upgrade, Do: faultproxy.IdleCut(idle)})
		r.connect()
		turn := r.prompt("go")
		r.begun()
		select {
		case out := <-turn:
			t.Fatalf("the turn ended with %v", out.err)
		case <-time.After(idle + idle/4):
		}
		r.hear("one")
		close(r.say)
		r.good(turn)
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.gaps) > 0 {
			t.Errorf("streams were lost: %q", r.gaps)
		}
	})
}

// A network that no longer answers, as after the sleep of a laptop, is noticed.
func TestFailure_NetworkGone(t *testing.T) {
	tier.Need(t, tier.Full) // TestREM24_Pings and TestREM45_IdleTimeout take no time for it
	onEach(t, allWays, func(t *testing.T, r *route) {
		r.open(&remote.HandlerOptions{KeepAlive: 3 * time.Second}, &remote.DialOptions{
			KeepAlive: 5 * time.Second, IdleTimeout: 15 * time.Second, StreamTimeout: 15 * time.Second, ReopenTime: time.Second,
			CloseTimeout: 100 * time.Millisecond,
		})
		r.connect()
		turn := r.prompt("go")
		r.begun()
		r.proxy.Freeze()
		out := await(t, "the end of the turn", turn)
		if out.err == nil {
			t.Error("the turn has ended well")
		}
		await(t, "the end of the connection", r.client.Done())
		if err := r.client.Wait(); r.way == "ws" && !errors.Is(err, remote.ErrUnanswered) {
			t.Errorf("the connection ended with %v, want %v", err, remote.ErrUnanswered)
		} else {
			t.Logf("the connection ended with %v", err)
		}
		r.proxy.Cut()
		r.proxy.Thaw()
	})
}

// A network that comes back, with other addresses, finds an HTTP connection where it was.
func TestFailure_NetworkChanges(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		r.open(nil, nil)
		r.connect()
		turn := r.prompt("go")
		r.begun()
		r.hear("one")
		if err := r.proxy.Refuse(); err != nil {
			t.Fatal(err)
		}
		// While the sockets are cut one by one, the client may open a stream again. What the server writes to such a
		// stream is lost with it, so nothing may be left of one: no request that the proxy has yet to serve, and no
		// socket that the server has yet to accept.
		r.proxy.Add(&faultproxy.Rule{Do: faultproxy.Reset})
		r.proxy.Cut()
		r.until("nothing passes", func() bool { return r.proxy.Passing() == 0 })
		r.proxy.Cut()
		r.until("the server knows", func() bool {
			return r.accepted.Load() == r.proxy.Dialed() && r.sockets.Load() == 0 && r.server.Stats().Streams == 0
		})
		r.say <- "two" // nobody reads it
		r.proxy.Clear()
		if err := r.proxy.Accept(); err != nil {
			t.Fatal(err)
		}
		r.heard("two")
		r.hadGap("s")
		r.hear("three")
		close(r.say)
		r.good(turn)
	})
}

// TestREM73_FirstMessage: of a stream that is cut before the client has got any message, nothing is lost either.
func TestREM73_FirstMessage(t *testing.T) {
	onEach(t, httpWays, func(t *testing.T, r *route) {
		// The comment passes, and not all of the first message.
		cut := &faultproxy.Rule{Match: faultproxy.Stream("s"), Times: 1, Do: faultproxy.CutAfter(40)}
		r.open(&remote.HandlerOptions{History: remote.MemoryHistory(100, 1<<20)}, &remote.DialOptions{Resume: true}, cut)
		r.connect()
		var said []string
		go func() {
			defer close(r.say)
			for i := range 10 {
				r.say <- fmt.Sprint(i)
			}
		}()
		for i := range 10 {
			said = append(said, fmt.Sprint(i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := r.session.Prompt(ctx, acp.TextBlock("go")); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.Equal(r.updates, said) || len(r.gaps) > 0 {
			t.Errorf("got %q, gaps %q", r.updates, r.gaps)
		}
	})
}

// TestServeAgent serves one agent to two clients.
func TestServeAgent(t *testing.T) {
	server := remote.ServeAgent(acp.ServeAgent, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return nil, nil
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}}, nil)
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	for _, scheme := range []string{"http", "ws"} {
		transport := remote.Dial(scheme+strings.TrimPrefix(web.URL, "http"), nil)
		client, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, transport, nil), acp.ClientHandlers{},
			&acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		session, err := client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := session.Prompt(t.Context(), acp.TextBlock("hello")); err != nil || res.StopReason != acp.StopReasonEndTurn {
			t.Errorf("%s: %v, %v", scheme, res, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
