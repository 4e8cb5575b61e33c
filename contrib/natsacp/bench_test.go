package natsacp_test

import (
	"context"
	"flag"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// fast is an agent without a store: it says as many updates as the prompt asks for.
func fast(ctx context.Context, t rpc.Transport) error {
	return acp.ServeAgent(ctx, t, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: acp.SessionID(time.Now().Format(time.RFC3339Nano))}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			for range strings.Count(text, "u") {
				if err := s.Update(ctx, acp.AgentMessageText(strings.Repeat("x", 64))); err != nil {
					return nil, err
				}
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
}

func opened(b testing.TB, t acp.Transport) (*acp.ClientConn, *acp.ClientSession) {
	conn := must.Get(acp.Connect(b.Context(), t, acp.ClientHandlers{}, nil))(b)
	s := must.Get(conn.NewSession(b.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(b)
	return conn, s
}

// BenchmarkCost measures updates of 64 bytes, in turns with many of them, and turns without updates. One run measures all
// ways in turn, so that their ratios mean something on a busy machine.
func BenchmarkCost(b *testing.B) {
	const updates = 20_000
	f := must.Get(natsacp.Open(b.Context(), dial(b, serve(b).ClientURL()), nil))(b)
	n := must.Get(f.StartNode(b.Context(), natsacp.InProcess(fast), nil))(b)
	b.Cleanup(func() { must.Do(b, n.Close()) })
	g := must.Get(f.StartGateway(b.Context(), nil))(b)
	fleet := httptest.NewServer(g)
	direct := httptest.NewServer(remote.Handler(func(ctx context.Context, t rpc.Transport, _ *remote.Peer) error { return fast(ctx, t) }, nil))
	b.Cleanup(func() {
		fleet.Close()
		direct.Close()
		must.Do(b, g.Close())
	})
	near, far := acp.Pipe()
	go fast(b.Context(), far)
	names := []string{"pipe", "direct", "fleet"}
	sessions := map[string]*acp.ClientSession{}
	for i, transport := range []acp.Transport{
		near, remote.Dial("ws"+strings.TrimPrefix(direct.URL, "http"), nil), remote.Dial("ws"+strings.TrimPrefix(fleet.URL, "http"), nil),
	} {
		name := names[i]
		conn, s := opened(b, transport)
		defer conn.Close()
		sessions[name] = s
	}
	spent := map[string]time.Duration{}
	took := func(what, text string) {
		for _, name := range names {
			begun := time.Now()
			must.Get(sessions[name].Prompt(b.Context(), acp.TextBlock(text)))(b)
			spent[what+name] += time.Since(begun)
		}
	}
	many := strings.Repeat("u", updates)
	for b.Loop() {
		took("updates/", many)
		for range 100 {
			took("turns/", "-")
		}
	}
	for _, name := range names {
		b.ReportMetric(float64(spent["updates/"+name].Nanoseconds())/float64(b.N*updates), "ns/update-"+name)
		b.ReportMetric(float64(spent["turns/"+name].Microseconds())/float64(b.N*100), "µs/turn-"+name)
	}
}

var (
	idleSessions = flag.Int("idle.sessions", 1000, "up to how many sessions TestIdleProcesses has")
	slowUpdates  = flag.Int("slow.updates", 100_000, "how many updates TestSlowProcesses sends")
	slowRate     = flag.Int("slow.rate", 4<<20, "how many bytes its client reads in a second")
)

// TestIdleProcesses measures what idle sessions cost in each process of a fleet. The agents are in the node.
func TestIdleProcesses(t *testing.T) {
	tier.Need(t, tier.Nightly)
	c := newCluster(t, 1, 1, 1, role{Fast: true, Lease: 30 * time.Second})
	total, before := 0, map[string]int{}
	for _, n := range []int{1, 100, 1000, 10_000} {
		if n > *idleSessions {
			break
		}
		begun := time.Now()
		added := n - total
		for ; total < n; total++ {
			conn, _ := opened(t, remote.Dial(c.gateways[0], &remote.DialOptions{Logger: quiet}))
			defer conn.Close()
		}
		t.Logf("%d sessions are open after %v", n, time.Since(begun).Round(time.Millisecond))
		for name, size := range c.memory(t, false) {
			t.Logf("%d sessions: %s has %d KiB, and each of the last %d takes %.1f KiB", n, name, size, added, float64(size-before[name])/float64(added))
			before[name] = size
		}
	}
}

// TestSlowProcesses sends many updates to a client that reads slowly. No process takes much memory, and nothing is lost.
func TestSlowProcesses(t *testing.T) {
	tier.Need(t, tier.Nightly)
	c := newCluster(t, 1, 1, 1, role{Fast: true, Lease: 30 * time.Second})
	var read atomic.Int64
	transport := wrapped{remote.Dial(c.gateways[0], &remote.DialOptions{Logger: quiet}), func(rpc.Stream) rpc.Wrapper {
		begun := time.Now()
		return rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			done := read.Add(int64(len(line)))
			if ahead := time.Duration(done)*time.Second/time.Duration(*slowRate) - time.Since(begun); ahead > 10*time.Millisecond {
				time.Sleep(ahead)
			}
			return line, err
		}}
	}}
	updates := 0
	conn := must.Get(acp.Connect(t.Context(), transport, acp.ClientHandlers{
		SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
			updates++
			return nil
		},
	}, nil))(t)
	defer conn.Close()
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	before := c.memory(t, true)
	begun := time.Now()
	must.Get(s.Prompt(t.Context(), acp.TextBlock(strings.Repeat("u", *slowUpdates))))(t)
	if updates != *slowUpdates {
		t.Errorf("%d updates have arrived, want %d", updates, *slowUpdates)
	}
	t.Logf("%d updates, %d MB in %v", updates, read.Load()/1e6, time.Since(begun).Round(time.Second))
	for name, most := range c.memory(t, true) {
		grown := (most - before[name]) >> 10
		t.Logf("%s: %d MiB, at most %d more than before", name, most>>10, grown)
		if grown > 200 {
			t.Errorf("%s has grown by %d MiB", name, grown)
		}
	}
}
