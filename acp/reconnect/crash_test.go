package reconnect_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestREM71_CrashLoopEnds: an agent that is lost again and again, right after each start, is given up after the budget,
// counted from the first loss. One that holds between has all of the budget again.
func TestREM71_CrashLoopEnds(t *testing.T) {
	for _, holds := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := &agent{}
			c, ev := start(t, a, acp.ClientHandlers{}, &reconnect.Options{Budget: 10 * time.Minute, MaxBackoff: 30 * time.Second})
			begin := time.Now()
			losses, over := 0, false
			for !over && time.Since(begin) < time.Hour {
				a.kill()
				losses++
				for e := range ev.next {
					if over = e.Kind == reconnect.GaveUp; over || e.Kind == reconnect.Restored {
						break
					}
				}
				if holds {
					time.Sleep(time.Minute)
				}
			}
			took := time.Since(begin)
			if over == holds || !holds && (took < 9*time.Minute || took > 11*time.Minute) {
				t.Errorf("holds: %t; given up: %t, after %v and %d losses", holds, over, took, losses)
			}
			if !holds {
				if err := c.Wait(); !errors.Is(err, acp.ErrClosed) || !strings.Contains(err.Error(), "times in a row") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// TestREM71_CrashLoopTransports: an agent that ends with the first call, behind every transport, is started again at
// intervals, and given up; each loss is reported.
func TestREM71_CrashLoopTransports(t *testing.T) {
	t.Parallel()
	// The agent ends when it gets its first session.
	dying := func(end func()) acp.AgentHandlers {
		return acp.AgentHandlers{
			NewSession: func(ctx context.Context, _ *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				end()
				<-ctx.Done()
				return nil, context.Cause(ctx)
			},
			Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
				return &acp.PromptResponse{}, nil
			},
		}
	}
	tier.Need(t, tier.Normal)
	// The budget has time for a start on a busy machine.
	budget := tier.Pick(0, 3*time.Second, 20*time.Second, 20*time.Second)
	for _, way := range []string{"http", "subprocess", "ws"}[:tier.Pick(0, 1, 3, 3)] {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var transport func(context.Context) (acp.Transport, error)
			if way == "subprocess" {
				transport = process("dies")
			} else {
				logger := slog.New(slog.DiscardHandler)
				server := remote.Handler(func(ctx context.Context, t rpc.Transport, _ *remote.Peer) error {
					ctx, end := context.WithCancel(ctx)
					defer end()
					return acp.ServeAgent(ctx, t, dying(end), &acp.AgentOptions{Conn: quiet()})
				}, &remote.HandlerOptions{Logger: logger})
				srv := httptest.NewServer(server)
				defer srv.Close()
				defer server.Shutdown(t.Context())
				dial := remote.Dial(way+strings.TrimPrefix(srv.URL, "http"), &remote.DialOptions{MinBackoff: time.Millisecond, ReopenTime: 50 * time.Millisecond, Logger: logger})
				transport = func(context.Context) (acp.Transport, error) { return dial, nil }
			}
			var restored sync.WaitGroup
			c, ev := tappedClient(t, transport, acp.ClientHandlers{}, &acp.ClientOptions{Conn: quiet()}, &reconnect.Options{
				MinBackoff: time.Millisecond, MaxBackoff: time.Minute, Budget: budget,
			})
			defer restored.Wait()
			losses := 0
			for over := false; !over; {
				restored.Go(func() { _, _ = c.NewSession(t.Context(), folder) }) // which ends the agent
				for e := range ev.next {
					if e.Kind == reconnect.Lost {
						losses++
						_, ended := errors.AsType[*rpc.ExitError](e.Err)
						want := reconnect.Interrupted{Method: acp.MethodNewSession} // over a network the agent has the time to answer
						if process := way == "subprocess"; ended != process || process && !slices.Contains(e.Interrupted, want) {
							t.Errorf("lost by %v, interrupted %v", e.Err, e.Interrupted)
						}
					}
					if over = e.Kind == reconnect.GaveUp; over || e.Kind == reconnect.Restored {
						break
					}
				}
			}
			if losses < 2 {
				t.Errorf("%d losses", losses)
			}
			if err := c.Wait(); !errors.Is(err, acp.ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestREM70_PoisonedSession: a session whose history kills the agent is given up after some tries, and the others continue.
func TestREM70_PoisonedSession(t *testing.T) {
	tier.Need(t, tier.Normal)
	c, ev := tappedClient(t, process("poisoned"), acp.ClientHandlers{}, &acp.ClientOptions{Conn: quiet()},
		&reconnect.Options{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond})
	poison := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/poison"}))(t)
	good := must.Get(c.NewSession(t.Context(), folder))(t)
	if _, err := good.Prompt(t.Context(), acp.TextBlock("die")); !errors.Is(err, acp.ErrClosed) {
		t.Errorf("got %v", err)
	}
	_, all := ev.until(t, reconnect.Restored, "")
	lost := slices.IndexFunc(all, func(e reconnect.Event) bool { return e.Kind == reconnect.SessionLost })
	if lost < 0 || all[lost].Session != poison.ID() {
		t.Fatalf("got %v", all)
	}
	if exit, ok := errors.AsType[*rpc.ExitError](all[lost].Err); !ok || exit.State.ExitCode() != 5 {
		t.Errorf("lost by %v", all[lost].Err)
	}
	if _, err := poison.Prompt(t.Context(), acp.TextBlock("more")); err == nil || !strings.Contains(err.Error(), "the connection ended 3 times") {
		t.Errorf("got %v", err)
	}
	must.Get(good.Prompt(t.Context(), acp.TextBlock("more")))(t)
}

// TestREM70_PoisonedConnection: the same for a session whose history ends the connection, to whatever transport.
func TestREM70_PoisonedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{loads: true}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/poison"}))(t)
		a.kill()
		kinds, _ := ev.until(t, reconnect.Restored, "")
		if n := len(slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind != "replaying poison" })); n != 3 || !slices.Contains(kinds, "session lost poison") {
			t.Errorf("got %q", kinds)
		}
	})
}

// TestREM70_Differences: an agent that has forgotten the mode and the options of a session: that is reported.
func TestREM70_Differences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{resumes: true, settings: true}
		c, ev := start(t, a, acp.ClientHandlers{}, nil)
		s := must.Get(c.NewSession(t.Context(), folder))(t)
		a.kill()
		_, all := ev.until(t, reconnect.Restored, "s")
		if got := all[len(all)-1].Differences; got != nil {
			t.Errorf("nothing differs: %v", got)
		}
		ev.until(t, reconnect.Restored, "")
		current := must.Get(s.Live(t.Context()))(t)
		must.Do(t, errors.Join(current.SetMode(t.Context(), "code"), current.SetConfigOption(t.Context(), "model", "large")))
		a.kill()
		_, all = ev.until(t, reconnect.Restored, "s")
		want := []reconnect.Difference{{Mode: true, Was: "code", Is: "ask"}, {Option: "model", Was: "large", Is: "small"}}
		if got := all[len(all)-1].Differences; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
