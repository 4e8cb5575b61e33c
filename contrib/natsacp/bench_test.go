package natsacp_test

import (
	"context"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// fast is an agent without a store: it says as many updates as the prompt asks for.
func fast(ctx context.Context, t rpc.Transport) error {
	return acp.ServeAgent(ctx, t, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: acp.SessionID(time.Now().Format(time.RFC3339Nano))}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text, _ := req.Prompt[0].Text()
			for range strings.Count(text, "u") {
				if err := s.Update(ctx, acp.AgentMessageText(strings.Repeat("x", 64))); err != nil {
					return nil, err
				}
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
}

// ways returns the ways to reach the agent, by name.
func ways(b testing.TB) map[string]func() acp.Transport {
	url := serve(b)
	f, err := natsacp.Open(b.Context(), dial(b, url), nil)
	must(b, err)
	n, err := f.StartNode(b.Context(), natsacp.InProcess(fast), nil)
	must(b, err)
	b.Cleanup(func() { must(b, n.Close()) })
	g, err := f.StartGateway(b.Context(), nil)
	must(b, err)
	fleet := httptest.NewServer(g)
	direct := httptest.NewServer(remote.Handler(func(ctx context.Context, t rpc.Transport, _ *remote.Peer) error { return fast(ctx, t) }, nil))
	b.Cleanup(func() {
		fleet.Close()
		direct.Close()
		must(b, g.Close())
	})
	socket := func(s *httptest.Server) func() acp.Transport {
		return func() acp.Transport { return remote.Dial("ws"+strings.TrimPrefix(s.URL, "http"), nil) }
	}
	return map[string]func() acp.Transport{
		"fleet": socket(fleet), "direct": socket(direct),
		"pipe": func() acp.Transport {
			near, far := acp.Pipe()
			go fast(b.Context(), far)
			return near
		},
	}
}

func opened(b testing.TB, t acp.Transport) (*acp.ClientConn, *acp.ClientSession) {
	conn, err := acp.Connect(b.Context(), t, acp.ClientHandlers{}, nil)
	must(b, err)
	s, err := conn.NewSession(b.Context(), &acp.NewSessionRequest{Cwd: "/w"})
	must(b, err)
	return conn, s
}

// BenchmarkCost measures updates of 64 bytes, in turns with many of them, and turns without updates. One run measures all
// ways in turn, so that their ratios mean something on a busy machine.
func BenchmarkCost(b *testing.B) {
	const updates = 20_000
	all := ways(b)
	names := []string{"pipe", "direct", "fleet"}
	sessions := map[string]*acp.ClientSession{}
	for _, name := range names {
		conn, s := opened(b, all[name]())
		defer conn.Close()
		sessions[name] = s
	}
	spent := map[string]time.Duration{}
	took := func(what, text string) {
		for _, name := range names {
			begun := time.Now()
			_, err := sessions[name].Prompt(b.Context(), acp.TextBlock(text))
			must(b, err)
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

// TestIdleMemory measures what idle sessions cost: their clients, gateway, node, server and agents, all in this process,
// and the same without a fleet.
func TestIdleMemory(t *testing.T) {
	tier.Need(t, tier.Nightly)
	all := ways(t)
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	for _, name := range []string{"direct", "fleet"} {
		for _, n := range []int{100, 900} {
			before := used()
			for range n {
				conn, _ := opened(t, all[name]())
				defer conn.Close()
			}
			t.Logf("%s: %d more idle sessions take %d KiB each", name, n, (used()-before)/uint64(n)>>10)
		}
	}
}
