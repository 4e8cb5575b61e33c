package proxy_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// osPipe is rpc.Pipe over pipes of the system.
func osPipe(b *testing.B) (rpc.Transport, rpc.Transport) {
	b.Helper()
	var files [4]*os.File
	for i := 0; i < 4; i += 2 {
		var err error
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			b.Fatal(err)
		}
	}
	return rpc.IO(files[0], files[3], 0), rpc.IO(files[2], files[1], 0)
}

// BenchmarkHop measures what one proxy adds: an update of 64 bytes of text, and a call. The direct connection and the one
// with the proxy take turns.
func BenchmarkHop(b *testing.B) {
	for _, hooks := range []struct {
		name string
		proxy.Hooks
	}{{"pass", proxy.Hooks{}}, {"other hooks", proxy.Hooks{CreateTerminal: pass[acp.CreateTerminalRequest, acp.CreateTerminalResponse]}}, {"hooked", proxy.Hooks{SessionUpdate: transparent().SessionUpdate, ListSessions: pass[acp.ListSessionsRequest, acp.ListSessionsResponse]}}} {
		for _, what := range []string{"update", "call"} {
			b.Run(hooks.name+"/"+what, func(b *testing.B) {
				direct := newSubject(b, nil)
				through := newSubject(b, &hooks.Hooks)
				const chunk = 500
				var times [2]time.Duration
				for b.Loop() {
					for i, s := range []*subject{direct, through} {
						began := time.Now()
						s.run(b, what, chunk)
						times[i] += time.Since(began)
					}
				}
				n := float64(b.N * chunk)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(times[0])/n, "ns-direct")
				b.ReportMetric(float64(times[1])/n, "ns-hop")
				b.ReportMetric(float64(times[1])/float64(times[0]), "ratio")
			})
		}
	}
}

// subject is a client connected to an agent, which sends as many updates as a prompt says.
type subject struct {
	session *acp.ClientSession
	updates int
	wanted  int
}

func newSubject(b *testing.B, hooks *proxy.Hooks) *subject {
	b.Helper()
	s := &subject{}
	text := acp.AgentMessageText(fmt.Sprintf("%064d", 0))
	near, far := osPipe(b)
	var ends []func() error
	if hooks != nil {
		up := far
		var down rpc.Transport
		down, far = osPipe(b)
		served := make(chan error, 1)
		go func() { served <- proxy.Serve(context.Background(), up, down, *hooks, nil) }()
		ends = append(ends, func() error { return <-served })
	}
	agent, err := acp.StartAgent(b.Context(), far, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			for range s.wanted {
				if err := session.Update(ctx, text); err != nil {
					return nil, err
				}
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
		ListSessions: func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			return &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}, nil
		},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	client, err := acp.Connect(b.Context(), near, acp.ClientHandlers{
		SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
			s.updates++
			return nil
		},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if s.session, err = client.NewSession(b.Context(), &acp.NewSessionRequest{Cwd: "/"}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		for _, end := range append([]func() error{client.Close}, append(ends, agent.Close)...) {
			if err := end(); err != nil {
				b.Error(err)
			}
		}
	})
	return s
}

func (s *subject) run(b *testing.B, what string, n int) {
	if what == "call" {
		for range n {
			must.Get(s.session.Conn().ListSessions(b.Context(), nil))(b)
		}
		return
	}
	s.wanted, s.updates = n, 0
	if _, err := s.session.Prompt(b.Context(), acp.TextBlock("go")); err != nil || s.updates != n {
		b.Fatalf("%d updates, %v", s.updates, err)
	}
}
