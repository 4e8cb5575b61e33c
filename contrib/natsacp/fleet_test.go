package natsacp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/cutproxy"
	"github.com/acpgo/sdk/internal/test/must"
)

// rig is a fleet in this process.
type rig struct {
	*testing.T
	url  string
	opts *natsacp.Options
	// connect connects agents to their store.
	connect func() (*nats.Conn, error)

	nc *nats.Conn // of the test

	mu   sync.Mutex
	runs map[string]int // how often each prompt was run
}

func newRig(t *testing.T, change ...func(*server.Options)) *rig {
	r := &rig{
		T: t, url: serve(t, change...), runs: map[string]int{},
		opts: &natsacp.Options{InMemory: true, Lease: 20 * time.Second},
	}
	r.connect = func() (*nats.Conn, error) { return nats.Connect(r.url) }
	r.nc = dial(r, r.url)
	return r
}

// newFleet returns a fleet of a node n1 and a gateway g1, with the URL of that.
func newFleet(t *testing.T, change ...func(*natsacp.GatewayOptions)) (*rig, string) {
	t.Helper()
	r := newRig(t)
	r.node("n1")
	_, url := r.gateway("g1", change...)
	return r, url
}

// newSession returns such a fleet, and a client with a session.
func newSession(t *testing.T) (*rig, *user, *acp.ClientSession) {
	t.Helper()
	r, url := newFleet(t)
	u := r.user(url)
	return r, u, u.session()
}

func (r *rig) fleet(nc *nats.Conn) *natsacp.Fleet {
	r.Helper()
	f := must.Get(natsacp.Open(r.Context(), nc, r.opts))(r)
	return f
}

// own is the fleet as the test has it.
func (r *rig) own() *natsacp.Fleet { return r.fleet(r.nc) }

func (r *rig) js() jetstream.JetStream { return must.Get(jetstream.New(r.nc))(r) }

// log is what agents have said.
func (r *rig) log() jetstream.Stream { return must.Get(r.js().Stream(r.Context(), "acp_log"))(r) }

// quiet drops what nodes and gateways log: the tests make them fail.
var quiet = slog.New(slog.DiscardHandler)

// node starts a node.
func (r *rig) node(name string, change ...func(*natsacp.NodeOptions)) *natsacp.Node {
	r.Helper()
	return r.nodeOn(dial(r, r.url), name, change...)
}

func (r *rig) nodeOn(nc *nats.Conn, name string, change ...func(*natsacp.NodeOptions)) *natsacp.Node {
	r.Helper()
	return r.nodeOf(nc, name, r.agent(name), change...)
}

func (r *rig) nodeOf(nc *nats.Conn, name string, agent natsacp.Agent, change ...func(*natsacp.NodeOptions)) *natsacp.Node {
	r.Helper()
	opts := &natsacp.NodeOptions{Name: name, Logger: quiet}
	for _, c := range change {
		c(opts)
	}
	n := must.Get(r.fleet(nc).StartNode(r.Context(), agent, opts))(r)
	r.Cleanup(func() {
		if err := n.Close(); err != nil && !nc.IsClosed() {
			r.Errorf("closing node %s: %v", name, err)
		}
	})
	return n
}

// agent returns the agent of the tests. Each word of a prompt makes it do something.
func (r *rig) agent(node string) natsacp.Agent {
	return natsacp.InProcess(func(ctx context.Context, t rpc.Transport) error {
		nc, err := r.connect()
		if err != nil {
			return err
		}
		defer nc.Close()
		store, err := natsacp.OpenStore(ctx, nc, r.opts)
		if err != nil {
			return err
		}
		defer store.Close()
		var crash func() error
		var spoil atomic.Pointer[string] // what the next answer to a prompt has in place of its result
		t = wrapped{t, func(stream rpc.Stream) rpc.Wrapper {
			crash = stream.Close
			return rpc.Wrapper{Write: func(line []byte) ([]byte, error) {
				if before, _, ok := bytes.Cut(line, []byte(`"result":{"stopReason"`)); ok {
					if end := spoil.Swap(nil); end != nil {
						return append(bytes.Clone(before), *end...), nil
					}
				}
				return line, nil
			}}
		}}
		sessions := agentkit.NewSessions(agentkit.Config[any]{Store: store, Prompt: func(
			ctx context.Context, t *agentkit.Turn[any], req *acp.PromptRequest,
		) (*acp.PromptResponse, error) {
			text := agentkit.PromptText(req)
			r.mu.Lock()
			r.runs[string(req.SessionID)+" "+text]++
			r.mu.Unlock()
			switch text {
			case "bare":
				spoil.Store(new(`"_meta":{}}`))
			case "cut":
				spoil.Store(new(`"result":{`))
			}
			err := act(ctx, t, node, text)
			if errors.Is(err, errCrash) {
				_ = crash()
				<-ctx.Done()
			}
			return nil, err
		}})
		return sessions.Serve(ctx, t, nil)
	})
}

var errCrash = errors.New("the agent crashes")

// wrapped is a transport whose stream is wrapped.
type wrapped struct {
	rpc.Transport
	with func(stream rpc.Stream) rpc.Wrapper
}

func (w wrapped) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := w.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return rpc.Wrap(stream, w.with(stream)), nil
}

func act(ctx context.Context, t *agentkit.Turn[any], node, text string) error {
	say := func(text string) error {
		return t.Update(ctx, acp.AgentMessageText(text))
	}
	for word := range strings.FieldsSeq(text) {
		var n int
		var err error
		name, arg, _ := strings.Cut(word, "=")
		if arg != "" {
			if _, err := fmt.Sscan(arg, &n); err != nil {
				return err
			}
		}
		switch name {
		case "say": // numbered updates
			for i := 0; i < n && err == nil; i++ {
				err = say(fmt.Sprintf("%d;", i))
			}
		case "long":
			err = say(strings.Repeat("x", n))
		case "node":
			err = say(node)
		case "crash":
			return errCrash
		case "hang":
			<-ctx.Done()
			err = context.Cause(ctx)
		case "wait":
			select {
			case <-time.After(time.Duration(n) * time.Millisecond):
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		case "ask":
			var outcome acp.RequestPermissionOutcome
			outcome, err = t.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "call"},
				acp.PermissionOption{OptionID: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce})
			if err == nil {
				chosen, ok := outcome.Selected()
				if !ok {
					return errors.New("nothing was chosen")
				}
				err = say(string(chosen))
				if strings.Contains(text, "crash") {
					time.Sleep(100 * time.Millisecond) // so that the text is sent
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gateway starts a gateway, and returns its URL, for WebSocket.
func (r *rig) gateway(name string, change ...func(*natsacp.GatewayOptions)) (*natsacp.Gateway, string) {
	r.Helper()
	g, front := r.gatewayOn(dial(r, r.url), name, change...)
	return g, "ws://" + front.Addr()
}

// gatewayOn starts a gateway behind a proxy. Who closes that ends the connections of clients, as if the gateway's process
// had died.
func (r *rig) gatewayOn(nc *nats.Conn, name string, change ...func(*natsacp.GatewayOptions)) (*natsacp.Gateway, *cutproxy.Proxy) {
	r.Helper()
	opts := &natsacp.GatewayOptions{Name: name, Logger: quiet, OpenTimeout: patience, Server: &remote.HandlerOptions{Logger: quiet}}
	for _, c := range change {
		c(opts)
	}
	g := must.Get(r.fleet(nc).StartGateway(r.Context(), opts))(r)
	s := httptest.NewServer(g)
	front := must.Get(cutproxy.New(s.Listener.Addr().String()))(r)
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = g.Shutdown(ctx) // some tests leave clients
		front.Close()
		s.Close()
		if err := g.Close(); err != nil {
			r.Errorf("closing gateway %s: %v", name, err)
		}
	})
	return g, front
}

// user is a client.
type user struct {
	*rig
	*acp.ClientConn

	mu        sync.Mutex
	transport acp.Transport
	accept    map[string]string // see conformance.TapOptions
	texts     map[acp.SessionID]string
	grew      chan struct{}
	ask       func(ctx context.Context, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error)
}

func (r *rig) user(url string, change ...func(*user)) *user {
	r.Helper()
	u := &user{rig: r, texts: map[acp.SessionID]string{}, grew: make(chan struct{}, 1)}
	u.ask = func(_ context.Context, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
	}
	for _, c := range change {
		c(u)
	}
	if u.transport == nil {
		u.transport = remote.Dial(url, nil)
	}
	conn := must.Get(acp.Connect(r.Context(), conformance.Tap(r, conformance.Client, u.transport, &conformance.TapOptions{Accept: u.accept}), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, s *acp.ClientSession, n *acp.SessionNotification) error {
			if text := n.Update.AgentText(); text != "" {
				u.mu.Lock()
				u.texts[s.ID()] += text
				u.mu.Unlock()
				select {
				case u.grew <- struct{}{}:
				default:
				}
			}
			return nil
		},
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return u.ask(ctx, req)
		},
	}, nil))(r)
	u.ClientConn = conn
	r.Cleanup(func() { conn.Close() })
	return u
}

func (u *user) session() *acp.ClientSession {
	u.Helper()
	s := must.Get(u.NewSession(u.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(u)
	return s
}

// said returns the text of a session since the last call.
func (u *user) said(s *acp.ClientSession) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	text := u.texts[s.ID()]
	delete(u.texts, s.ID())
	return text
}

// await waits until a session has said a text.
func (u *user) await(s *acp.ClientSession, text string) {
	u.Helper()
	for {
		u.mu.Lock()
		got := u.texts[s.ID()]
		u.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-u.grew:
		case <-time.After(patience):
			u.Fatalf("the session said %q, and not %q", got, text)
		}
	}
}

// prompt runs a turn, and returns its text.
func (u *user) prompt(s *acp.ClientSession, text string) string {
	u.Helper()
	res := must.Get(s.Prompt(u.Context(), acp.TextBlock(text)))(u)
	if res.StopReason != acp.StopReasonEndTurn {
		u.Errorf("the turn ended with %q", res.StopReason)
	}
	return u.said(s)
}

// numbers is what say=n says.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d;", i)
	}
	return b.String()
}

// prompting runs a turn meanwhile, and sends how it ends.
func prompting(s *acp.ClientSession, text string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Prompt(context.Background(), acp.TextBlock(text))
		done <- err
	}()
	return done
}

func (u *user) wantSaid(got, want string) {
	u.Helper()
	if got != want {
		u.Fatalf("the session said %.200q (%d bytes), want %.200q (%d bytes)", got, len(got), want, len(want))
	}
}

func TestTurn(t *testing.T) {
	for _, scheme := range []string{"ws", "http", "version 2"} {
		t.Run(scheme, func(t *testing.T) {
			r := newRig(t)
			r.node("n1")
			fleet := r.own()
			defer r.eventually("the node says which version its agents speak", func() bool {
				nodes, err := fleet.Nodes(t.Context())
				return err == nil && len(nodes) == 1 && nodes[0].Protocol == 1
			})
			_, url := r.gateway("g1")
			u := r.user(scheme+strings.TrimPrefix(url, "ws"), func(u *user) {
				if scheme == "version 2" {
					u.transport = translate.Transport(remote.Dial(url, nil), translate.ClientSide, 1, &translate.Options{Only: 2})
				}
			})
			one, two := u.session(), u.session()
			if one.ID() == two.ID() {
				t.Fatal("two sessions have one id")
			}
			u.wantSaid(u.prompt(one, "say=1000"), numbers(1000))
			u.wantSaid(u.prompt(two, "ask say=3"), "yes"+numbers(3))
			u.wantSaid(u.prompt(one, "long=3000000 say=2"), strings.Repeat("x", 3000000)+numbers(2))

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				u.await(two, "0;")
				cancel()
			}()
			res, err := two.Prompt(ctx, acp.TextBlock("say=1 hang"))
			if err != nil || res.StopReason != acp.StopReasonCancelled {
				t.Errorf("a cancelled turn ends with %+v, %v", res, err)
			}
			u.said(two)
			u.wantSaid(u.prompt(two, "say=1"), numbers(1))
		})
	}
}
