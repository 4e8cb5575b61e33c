package proxy_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/internal/test/buildtest"

	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// rig is a proxy between a client and an agent that a test plays, in a bubble.
type rig struct {
	t             *testing.T
	client, agent *peer
	served        chan error
	cancel        context.CancelFunc
}

// peer is the far end of one of the proxy's connections.
type peer struct {
	t      *testing.T
	stream rpc.Stream
	lines  chan string
}

// quiet are options without a log.
func quiet() *proxy.Options { return &proxy.Options{Logger: slog.New(slog.DiscardHandler)} }

// newRig starts a proxy. Without an agent, a conductor is played by client.
func newRig(t *testing.T, hooks proxy.Hooks, opts *proxy.Options, agent bool) *rig {
	t.Helper()
	if opts == nil {
		opts = quiet()
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &rig{t: t, served: make(chan error, 1), cancel: cancel}
	far, up := rpc.Pipe()
	r.client = newPeer(t, far)
	var down rpc.Transport
	if agent {
		near, far := rpc.Pipe()
		down = near
		r.agent = newPeer(t, far)
	}
	go func() { r.served <- proxy.Serve(ctx, up, down, hooks, opts) }()
	return r
}

func newPeer(t *testing.T, transport rpc.Transport) *peer {
	t.Helper()
	stream := must.Get(transport.Connect(t.Context()))(t)
	p := &peer{t: t, stream: stream, lines: make(chan string, 10_000)}
	go func() {
		defer close(p.lines)
		for {
			line, err := stream.Read()
			if err != nil {
				return
			}
			p.lines <- string(line)
		}
	}()
	return p
}

func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if err := p.stream.Write([]byte(line)); err != nil {
			p.t.Fatalf("%v, writing %.200s", err, line)
		}
	}
}

// want checks that these messages have arrived, and no others.
func (p *peer) want(lines ...string) {
	p.t.Helper()
	synctest.Wait()
	for _, want := range lines {
		select {
		case got := <-p.lines:
			if got != want {
				p.t.Fatalf("got  %.500s\nwant %.500s", got, want)
			}
		default:
			p.t.Fatalf("got nothing, want %.500s", want)
		}
	}
	p.wantNone()
}

func (p *peer) wantNone() {
	p.t.Helper()
	synctest.Wait()
	select {
	case got, ok := <-p.lines:
		if ok {
			p.t.Fatalf("got %.500s, want nothing", got)
		}
	default:
	}
}

// next returns the next message.
func (p *peer) next() string {
	p.t.Helper()
	synctest.Wait()
	select {
	case line := <-p.lines:
		return line
	default:
		p.t.Fatal("got nothing")
		return ""
	}
}

// end ends the client's side, then the agent's, and checks that the proxy ends without an error.
func (r *rig) end() {
	r.t.Helper()
	if err := r.client.stream.(rpc.HalfCloser).CloseWrite(); err != nil {
		r.t.Error(err)
	}
	if r.agent != nil {
		synctest.Wait()
		time.Sleep(time.Millisecond) // of the bubble
		r.agent.stream.Close()
	}
	if err := <-r.served; err != nil {
		r.t.Errorf("the proxy ended with %v", err)
	}
	r.client.stream.Close()
	r.cancel()
}

// inBubble runs a test with a proxy between a client and an agent.
func inBubble(t *testing.T, hooks proxy.Hooks, test func(t *testing.T, client, agent *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, hooks, nil, true)
		test(t, r.client, r.agent)
		r.end()
	})
}

func TestMain(m *testing.M) { buildtest.Main(m, nil) }
