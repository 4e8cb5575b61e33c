package reconnect_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/cutproxy"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var soakTime = flag.Duration("soak.time", 0, "how long each soak runs; 0 is what the tier says")

// TestSoak cuts the network under turns, again and again. A turn ends in one of three ways: all its updates came, in
// order, and its answer; or it was interrupted, and that was said; or, over HTTP, its answer is missing, or updates are,
// and a gap was reported; streams that are resumed have one only if they were lost before their first event. Over HTTP a
// prompt may also fail because no connection could be made for it: then the agent never saw it. In the end everything is
// free.
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		*soakTime = tier.Pick(100*time.Millisecond, 500*time.Millisecond, 2*time.Second, 10*time.Second)
	}
	for _, way := range []string{"ws", "http resumed", "http"}[:tier.Pick(1, 2, 3, 3)] { // a lost answer takes lostAnswer
		t.Run(way, func(t *testing.T) {
			way, resumed := strings.CutSuffix(way, " resumed")
			soak(t, way, resumed)
		})
	}
}

// lostAnswer is how long a turn is waited for whose answer may be missing: many times what a turn takes.
const lostAnswer = 5 * time.Second

func soak(t *testing.T, way string, resumed bool) {
	const sessions, updates = 4, 50
	var created atomic.Int32
	agent := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: acp.SessionID(fmt.Sprint("s", created.Add(1)))}, nil
		},
		ResumeSession: func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			return &acp.ResumeSessionResponse{}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			turn := req.Prompt[0].Variant.(*acp.ContentBlockText).Text
			for i := range updates {
				if err := s.Update(ctx, acp.AgentMessageText(fmt.Sprint(turn, " ", i))); err != nil {
					return nil, err
				}
				if i%10 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
	logger := slog.New(slog.DiscardHandler)
	options := &remote.HandlerOptions{Logger: logger, Expiry: 5 * time.Second}
	if resumed {
		options.History = remote.MemoryHistory(10_000, 1<<20)
	}
	server := remote.Handler(func(ctx context.Context, t rpc.Transport, _ *remote.Peer) error {
		return acp.ServeAgent(ctx, t, agent, &acp.AgentOptions{Conn: acp.ConnOptions{Logger: logger, ConcurrentTurns: true}})
	}, options)
	srv := httptest.NewServer(http.Handler(server))
	defer srv.Close()
	proxy := must.Get(cutproxy.New(srv.Listener.Addr().String()))(t)
	defer proxy.Close()

	var gaps atomic.Int32
	transport := remote.Dial(way+"://"+proxy.Addr(), &remote.DialOptions{
		MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond, AnswerTimeout: 200 * time.Millisecond, Resume: resumed,
		OnGap:  func(string, error) { gaps.Add(1) },
		Logger: logger,
	})
	var mu sync.Mutex
	got := map[string][]int{} // the updates of each turn
	var losses atomic.Int32
	var restoring atomic.Bool
	c, err := reconnect.Connect(t.Context(), tapped(t, func(context.Context) (acp.Transport, error) { return transport, nil }),
		acp.ClientHandlers{SessionUpdate: func(_ context.Context, s *acp.ClientSession, n *acp.SessionNotification) error {
			text := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk).Content.Variant.(*acp.ContentBlockText).Text
			var turn string
			var i int
			if _, err := fmt.Sscan(text, &turn, &i); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[turn] = append(got[turn], i)
			return nil
		}},
		&acp.ClientOptions{Conn: acp.ConnOptions{Logger: logger, CancelGrace: 100 * time.Millisecond}},
		&reconnect.Options{MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond, Notify: func(_ context.Context, e reconnect.Event) {
			switch e.Kind {
			case reconnect.Lost:
				losses.Add(1)
				restoring.Store(true)
			case reconnect.Restored:
				if e.Session == "" {
					restoring.Store(false)
				}
			case reconnect.SessionLost, reconnect.GaveUp:
				t.Errorf("%v: %v", e.Kind, e.Err)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	var whole, interrupted, missing, unsent atomic.Int32
	// going reports whether the soak continues: on a busy machine also until something was lost and a turn was whole.
	until := time.Now().Add(*soakTime)
	going := func() bool {
		tried := whole.Load() > 0 && (resumed || losses.Load()+gaps.Load() > 0)
		return time.Now().Before(until) || !tried && time.Now().Before(until.Add(time.Minute))
	}
	var turns sync.WaitGroup
	for n := range sessions {
		s := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
		turns.Go(func() {
			for i := 0; going(); i++ {
				turn := strconv.Itoa(n) + "." + strconv.Itoa(i)
				before := gaps.Load()
				ctx, cancel := context.WithTimeout(t.Context(), lostAnswer)
				_, err := s.Prompt(ctx, acp.TextBlock(turn))
				cancel()
				mu.Lock()
				list := got[turn]
				delete(got, turn)
				mu.Unlock()
				for k := 1; k < len(list); k++ {
					if list[k] <= list[k-1] {
						t.Errorf("turn %s: %d after %d", turn, list[k], list[k-1])
					}
				}
				_, cut := errors.AsType[*reconnect.InterruptedError](err)
				_, unknown := errors.AsType[*remote.OutcomeError](err)
				switch {
				case err == nil && len(list) == updates:
					whole.Add(1)
				case cut:
					interrupted.Add(1)
				case way == "http" && (gaps.Load() > before || unknown):
					missing.Add(1)
				case way == "http" && notConnected(err) && len(list) == 0:
					unsent.Add(1)
				default:
					t.Errorf("turn %s: %d updates, %v, and no gap", turn, len(list), err)
				}
			}
		})
	}
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		for going() {
			time.Sleep(time.Duration(20+rand.IntN(80)) * time.Millisecond)
			if !restoring.Load() { // a session is lost if its connection ends again and again
				proxy.Cut()
			}
		}
	}()
	turns.Wait()
	<-cutting
	t.Logf("%d turns whole, %d interrupted, %d with a gap, %d not sent; %d connections lost, %d gaps",
		whole.Load(), interrupted.Load(), missing.Load(), unsent.Load(), losses.Load(), gaps.Load())
	if whole.Load() == 0 || !resumed && losses.Load()+gaps.Load() == 0 {
		t.Error("nothing was tried")
	}
	must.Do(t, c.Close())
	deadline := time.Now().Add(2 * time.Minute)
	for stats := server.Stats(); stats.Connections[remote.HTTP]+stats.Connections[remote.WebSocket] > 0; stats = server.Stats() {
		if time.Now().After(deadline) {
			t.Fatalf("connections are left: %+v", stats)
		}
		time.Sleep(10 * time.Millisecond)
	}
	must.Do(t, server.Shutdown(t.Context()))
}

// notConnected reports whether a message was not sent because no connection was made for it.
func notConnected(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
