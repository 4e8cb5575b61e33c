package remote_test

// What becomes of a connection whose network, proxy, agent or server fails: our client and our server with a proxy
// between them that fails by rules. The names of the tests are those of the failures.

import (
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
	way    string // http or h2c
	proxy  *faultproxy.Proxy
	server *remote.Server
	web    *http.Server
	log    logBuffer // of the server

	client  *acp.ClientConn
	session *acp.ClientSession

	mu      sync.Mutex
	gaps    []string // sessions of which the client has said that messages may be lost
	updates []string
	came    chan struct{} // has a value when one came

	// The agent sends an update for each value; it ends the turn when the channel is closed.
	say     chan string
	prompts chan string // those that came

	accepted atomic.Int32 // sockets that the server has accepted
	sockets  atomic.Int32 // those of them that are open
}

// onEach runs a test by HTTP/1.1 and, but for tier Short, h2c, at the same time as other such tests.
func onEach(t *testing.T, test func(t *testing.T, r *route)) {
	t.Parallel()
	ways := []string{"http", "h2c"}
	for _, way := range ways[:tier.Pick(1, 2, 2, 2)] {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			test(t, &route{t: t, way: way, say: make(chan string), prompts: make(chan string, 10), came: make(chan struct{}, 1)})
		})
	}
}

// open starts all of it, and opens a session. Options may be nil.
func (r *route) open(server *remote.HandlerOptions, dial *remote.DialOptions, rules ...*faultproxy.Rule) {
	t := r.t
	t.Helper()
	if server == nil {
		server = &remote.HandlerOptions{}
	}
	server.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	server.InitializeTimeout, server.StallTimeout = patience, patience
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
	protocols := new(http.Protocols)
	protocols.SetHTTP1(r.way != "h2c")
	protocols.SetUnencryptedHTTP2(r.way == "h2c")
	transport := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	dial.HTTPClient = &http.Client{Transport: transport}
	dial.MinBackoff, dial.MaxBackoff = 10*time.Millisecond, 100*time.Millisecond
	dial.StreamTimeout, dial.AnswerTimeout, dial.IdleTimeout = patience, patience, patience
	dial.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	dial.OnGap = func(session string, _ error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gaps = append(r.gaps, session)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tap := conformance.Tap(t, conformance.Client, remote.Dial("http://"+r.proxy.Addr()+remote.DefaultPath, dial), &conformance.TapOptions{
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
	if err == nil {
		r.session, err = r.client.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// agent is the agent of a connection.
func (r *route) agent(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
	return acp.ServeAgent(ctx, transport, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			r.prompts <- req.Prompt[0].Text()
			for {
				select {
				case text, ok := <-r.say:
					if !ok {
						return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
					}
					if err := session.Update(ctx, acp.AgentMessageText(text)); err != nil {
						return nil, err
					}
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}})
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
func (r *route) begun() { r.t.Helper(); receive(r.t, r.prompts) }

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

// good requires that a turn ends as if nothing had happened.
func (r *route) good(ended <-chan outcome) {
	r.t.Helper()
	if out := receive(r.t, ended); out.err != nil || out.res.StopReason != acp.StopReasonEndTurn {
		r.t.Errorf("the turn ended with %v, %v", out.res, out.err)
	}
}

// hadGap waits until the client has reported a gap.
func (r *route) hadGap(session string) {
	r.t.Helper()
	r.until(func() bool { return slices.Contains(r.gaps, session) })
}

// until waits until something is so.
func (r *route) until(is func() bool) {
	r.t.Helper()
	waitFor(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return is()
	})
}

// A session's stream that is reset, or ends cleanly, in a turn is opened again; the turn continues, and the gap is reported.
func TestFailure_SessionStreamLost(t *testing.T) {
	for name, fault := range map[string]func(<-chan struct{}) faultproxy.Fault{"reset": faultproxy.CutWhen, "ends": faultproxy.EndWhen} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, r *route) {
				event := make(chan struct{})
				r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.Stream("s"), Times: 1, Do: fault(event)})
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

// A request that a proxy sends twice runs once.
func TestFailure_Doubled(t *testing.T) {
	onEach(t, func(t *testing.T, r *route) {
		r.open(nil, nil, &faultproxy.Rule{Match: faultproxy.RPC("session/prompt"), Times: 1, Do: faultproxy.Double})
		turn := r.prompt("go")
		r.begun()
		r.until(func() bool { return r.server.Stats().Refused[http.StatusBadRequest] == 1 })
		r.hear("one")
		close(r.say)
		r.good(turn)
		select {
		case text := <-r.prompts:
			t.Errorf("the agent got %q twice", text)
		default:
		}
	})
}

// A network that comes back, with other addresses, finds an HTTP connection where it was.
func TestFailure_NetworkChanges(t *testing.T) {
	onEach(t, func(t *testing.T, r *route) {
		r.open(nil, nil)
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
		r.until(func() bool { return r.proxy.Passing() == 0 })
		r.proxy.Cut()
		r.until(func() bool {
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
	onEach(t, func(t *testing.T, r *route) {
		// The comment passes, and not all of the first message.
		cut := &faultproxy.Rule{Match: faultproxy.Stream("s"), Times: 1, Do: faultproxy.CutAfter(40)}
		r.open(&remote.HandlerOptions{History: remote.MemoryHistory(100, 1<<20)}, &remote.DialOptions{Resume: true}, cut)
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
