package natsacp_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/cutproxy"
	"github.com/acpgo/sdk/internal/test/must"
)

// rig is a fleet in this process.
type rig struct {
	*testing.T
	server *server.Server
	url    string
	opts   *natsacp.Options
	nc     *nats.Conn // of the test
	agents *nats.Conn // of the agents' store

	mu   sync.Mutex
	runs map[string]int // how often each prompt was run
}

func newRig(t *testing.T, change ...func(*server.Options)) *rig {
	r := &rig{T: t, server: serve(t, change...), runs: map[string]int{}, opts: &natsacp.Options{InMemory: true, Lease: 20 * time.Second}}
	r.url = r.server.ClientURL()
	r.nc = dial(r, r.url)
	r.agents = r.nc
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

func (r *rig) fleet(nc *nats.Conn) *natsacp.Fleet {
	r.Helper()
	return must.Get(natsacp.Open(r.Context(), nc, r.opts))(r)
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
	return r.nodeOf(dial(r, r.url), name, r.agent(name), change...)
}

func (r *rig) nodeOf(nc *nats.Conn, name string, agent natsacp.Agent, change ...func(*natsacp.NodeOptions)) *natsacp.Node {
	r.Helper()
	opts := &natsacp.NodeOptions{Name: name, Logger: quiet}
	for _, c := range change {
		c(opts)
	}
	n := must.Get(r.fleet(nc).StartNode(r.Context(), agent, opts))(r)
	r.Cleanup(func() { must.Do(r, n.Close()) })
	return n
}

// keeping returns an agent that keeps its sessions in a store.
func keeping(store sessionstore.Store, prompt func(context.Context, *agentkit.Turn[any], *acp.PromptRequest) error) natsacp.Agent {
	return natsacp.InProcess(func(ctx context.Context, t rpc.Transport) error {
		return agentkit.NewSessions(agentkit.Config[any]{Store: store, Prompt: func(
			ctx context.Context, t *agentkit.Turn[any], req *acp.PromptRequest,
		) (*acp.PromptResponse, error) {
			return nil, prompt(ctx, t, req)
		}}).Serve(ctx, t, nil)
	})
}

// agent returns the agent of the tests. Each word of a prompt makes it do something.
func (r *rig) agent(node string) natsacp.Agent {
	store := must.Get(natsacp.OpenStore(r.Context(), r.agents, r.opts))(r)
	r.Cleanup(func() { must.Do(r, store.Close()) })
	return keeping(store, func(ctx context.Context, t *agentkit.Turn[any], req *acp.PromptRequest) (err error) {
		text := agentkit.PromptText(req)
		r.mu.Lock()
		r.runs[string(req.SessionID)+" "+text]++
		r.mu.Unlock()
		say := func(text string) error { return t.Update(ctx, acp.AgentMessageText(text)) }
		for word := range strings.FieldsSeq(text) {
			name, arg, _ := strings.Cut(word, "=")
			n, _ := strconv.Atoi(arg)
			switch name {
			case "say": // numbered updates
				for i := 0; i < n && err == nil; i++ {
					err = say(fmt.Sprintf("%d;", i))
				}
			case "long":
				err = say(strings.Repeat("x", n))
			case "node":
				err = say(node)
			case "hang", "wait":
				select {
				case <-time.After(cmp.Or(time.Duration(n)*time.Millisecond, time.Hour)):
				case <-ctx.Done():
					err = context.Cause(ctx)
				}
			case "ask":
				var outcome acp.RequestPermissionOutcome
				outcome, err = t.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "call"},
					acp.PermissionOption{OptionID: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce})
				if chosen, ok := outcome.Selected(); ok {
					err = say(string(chosen))
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

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
		must.Do(r, g.Close())
	})
	return g, front
}

// user is a client.
type user struct {
	*rig
	*acp.ClientConn
	transport acp.Transport
	accept    map[string]string // see conformance.TapOptions
	ask       func(ctx context.Context, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error)

	mu    sync.Mutex
	texts map[acp.SessionID]string
}

func (r *rig) user(url string, change ...func(*user)) *user {
	r.Helper()
	u := &user{rig: r, transport: remote.Dial(url, nil), texts: map[acp.SessionID]string{}}
	u.ask = func(_ context.Context, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
	}
	for _, c := range change {
		c(u)
	}
	tapped := conformance.Tap(r, conformance.Client, u.transport, &conformance.TapOptions{Accept: u.accept})
	u.ClientConn = must.Get(acp.Connect(r.Context(), tapped, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, s *acp.ClientSession, n *acp.SessionNotification) error {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.texts[s.ID()] += n.Update.AgentText()
			return nil
		},
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return u.ask(ctx, req)
		},
	}, nil))(r)
	r.Cleanup(func() { u.ClientConn.Close() })
	return u
}

func (u *user) session() *acp.ClientSession {
	u.Helper()
	return must.Get(u.NewSession(u.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(u)
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
	eventually(u, fmt.Sprintf("the session says %q", text), func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return strings.Contains(u.texts[s.ID()], text)
	})
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
			defer eventually(r, "the node says which version its agents speak", func() bool {
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
