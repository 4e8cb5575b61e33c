package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/ways"
)

// pairOptions tune the two ends of a pair.
type pairOptions struct {
	agent  acp.AgentHandlers
	client acp.ClientHandlers
	sees   func(sent bool, message []byte) // shown the client's messages
	anyWay bool                            // not only in memory
}

// openPair connects an agent and a client under the tap, and opens a session.
func openPair(t *testing.T, o pairOptions) (*acp.AgentConn, *acp.ClientSession) {
	t.Helper()
	a, c := acp.Pipe()
	if o.anyWay {
		a, c = ways.Pipe(t)
	}
	if o.agent.NewSession == nil {
		o.agent.NewSession = newSession
	}
	agent := must.Get(acp.StartAgent(t.Context(), a, o.agent,
		&acp.AgentOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.DiscardHandler)}}))(t)
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, c, nil), o.client,
		&acp.ClientOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{Message: o.sees}}}))(t)
	t.Cleanup(func() { must.Do(t, errors.Join(conn.Close(), agent.Close())) })
	session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
	return agent, session
}

// cancelled requires that a turn ends as cancelled.
func cancelled(t *testing.T, turn *acp.Turn) {
	t.Helper()
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("got %+v, %v; want stop reason cancelled", res, err)
	}
}

// asks is a prompt handler that asks for permission.
func asks(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
	_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "c"}, options("Yes", "No")...)
	return nil, err
}

// waits is a prompt handler that waits for its cancellation.
func waits(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A turn that is cancelled at any time, even before its request was sent, ends with the stop reason cancelled.
func TestCancelRightAfterStream(t *testing.T) {
	_, session := openPair(t, pairOptions{agent: acp.AgentHandlers{Prompt: waits}})
	for name, cancel := range map[string]func(turn *acp.Turn) error{
		"turn":    func(turn *acp.Turn) error { turn.Cancel(); return nil },
		"session": func(*acp.Turn) error { return session.Cancel(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				turn := session.Stream(t.Context(), acp.TextBlock("hello"))
				must.Do(t, cancel(turn))
				cancelled(t, turn)
			}
		})
	}
}

// A cancelled turn is answered as cancelled although its handler's result cannot be sent.
func TestCancelledAnswerThatCannotBeSent(t *testing.T) {
	begun := make(chan struct{})
	_, session := openPair(t, pairOptions{agent: acp.AgentHandlers{
		Prompt: func(ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			close(begun)
			<-ctx.Done()
			return &acp.PromptResponse{StopReason: acp.StopReasonCancelled, Meta: acp.Meta{"x": json.RawMessage("{")}}, nil
		},
	}})
	turn := session.Stream(t.Context(), acp.TextBlock("hello"))
	<-begun
	turn.Cancel()
	cancelled(t, turn)
}

// A cancellation that cannot be sent cancels nothing.
func TestCancellationThatCannotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, session := openPair(t, pairOptions{agent: acp.AgentHandlers{Prompt: waits}})
		turn := session.Stream(t.Context(), acp.TextBlock("hello"))
		err := session.Conn().Cancel(t.Context(), &acp.CancelNotification{SessionID: session.ID(), Meta: acp.Meta{"x": json.RawMessage("{")}})
		time.Sleep(time.Hour)
		select {
		case <-turn.Done():
			t.Error("the turn has ended")
		default:
		}
		if err == nil || session.Cancel(t.Context()) != nil {
			t.Errorf("got %v", err)
		}
		cancelled(t, turn)
	})
}

// The next prompt waits for the answer to a cancelled one. It can be cancelled itself before it begins, and another one
// beside it is refused.
func TestPromptBehindCancelledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var begun []string
		_, session := openPair(t, pairOptions{agent: acp.AgentHandlers{
			Prompt: func(ctx context.Context, _ *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
				text := req.Prompt[0].Text()
				begun = append(begun, text)
				<-ctx.Done()
				if text == "first" {
					<-release
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
			},
		}})
		start := func(text string) *acp.Turn {
			turn := session.Stream(t.Context(), acp.TextBlock(text))
			synctest.Wait()
			return turn
		}
		first := start("first")
		first.Cancel()
		second := start("second")
		if _, err := start("third").Result(); !errors.Is(err, acp.ErrInvalidRequest) {
			t.Errorf("a prompt beside one that waits: %v, want it refused", err)
		}
		second.Cancel()
		cancelled(t, second)
		fourth := start("fourth")
		if len(begun) != 1 {
			t.Errorf("began %q before the first prompt was answered", begun)
		}
		close(release)
		cancelled(t, first)
		synctest.Wait()
		fourth.Cancel()
		cancelled(t, fourth)
		if len(begun) != 2 || begun[1] != "fourth" {
			t.Errorf("began %q, want first and fourth", begun)
		}
	})
}

// Closing a session ends its turn.
func TestCloseEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := acp.AgentHandlers{Prompt: waits}
		agent.CloseSession = nothing
		_, session := openPair(t, pairOptions{agent: agent})
		turn := session.Stream(t.Context(), acp.TextBlock("hello"))
		synctest.Wait()
		must.Do(t, session.Close(t.Context()))
		cancelled(t, turn)
	})
}

// An agent that closes its connection in a turn answers that the request was cancelled, not that something is wrong.
func TestCAN8_AgentClosesInTurn(t *testing.T) {
	for name, prompt := range map[string]func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error){
		"turn":               waits,
		"permission request": asks,
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				var codes []int
				asked := make(chan struct{}, 1)
				agent, session := openPair(t, pairOptions{
					agent: acp.AgentHandlers{
						Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
							if name == "turn" {
								asked <- struct{}{}
							}
							return prompt(ctx, s, req)
						},
					},
					client: acp.ClientHandlers{RequestPermission: holds(asked)},
					sees: func(sent bool, message []byte) {
						var m struct{ Error *struct{ Code int } }
						if !sent && json.Unmarshal(message, &m) == nil && m.Error != nil {
							codes = append(codes, m.Error.Code)
						}
					},
				})
				turn := session.Stream(t.Context(), acp.TextBlock("hello"))
				<-asked
				must.Do(t, agent.Close())
				_, err := turn.Result()
				if !errors.Is(err, acp.ErrRequestCancelled) && !errors.Is(err, acp.ErrClosed) {
					t.Errorf("Result: %v", err)
				}
				_ = session.Conn().Close()
				for _, code := range codes {
					if code != -32800 {
						t.Fatalf("the agent answered with the code %d, want -32800", code)
					}
				}
			}
		})
	}
}

// A client that closes its connection in a turn is notified, whatever the agent still answers.
func TestClientClosesInTurn(t *testing.T) {
	for range 50 {
		asked := make(chan struct{}, 1)
		_, session := openPair(t, pairOptions{
			agent: acp.AgentHandlers{Prompt: asks}, client: acp.ClientHandlers{RequestPermission: holds(asked)},
		})
		turn := session.Stream(t.Context(), acp.TextBlock("hello"))
		<-asked
		must.Do(t, session.Conn().Close())
		res, err := turn.Result()
		if cancelled := err == nil && res.StopReason == acp.StopReasonCancelled; !cancelled && !errors.Is(err, acp.ErrClosed) {
			t.Fatalf("Result: %+v, %v; want ErrClosed, or that the agent has cancelled the turn in time", res, err)
		}
	}
}

// A turn begins when what follows the answers before it, and is about its session, has been sent.
func TestTurnsFollowAfterResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the sessions are independent
		var order []string
		happened := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		later := func(ctx context.Context, what string, s *acp.AgentSession) {
			acp.AfterResponse(ctx, func(ctx context.Context) {
				time.Sleep(time.Hour)
				happened(what)
				if err := s.Update(ctx, acp.CommandsUpdate()); err != nil {
					t.Error(err)
				}
			})
		}
		conn, _ := pair(t, acp.AgentHandlers{
			NewSession: func(ctx context.Context, conn *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				id := acp.SessionID(req.Cwd)
				later(ctx, "after new", conn.Session(id))
				return &acp.NewSessionResponse{SessionID: id}, nil
			},
			Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				happened("turn")
				later(ctx, "after turn", s)
				return nil, nil
			},
		}, nil, acp.ClientHandlers{}, nil)
		for _, cwd := range []string{"/1", "/2"} { // the second session does not wait for the first one
			begun := time.Now()
			s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: cwd}))(t)
			for range 2 {
				must.Get(s.Prompt(t.Context()))(t)
			}
			if took := time.Since(begun); took != 2*time.Hour {
				t.Errorf("took %v", took)
			}
			soon, cancel := context.WithTimeout(t.Context(), time.Minute)
			res, err := s.Prompt(soon)
			if cancel(); err != nil || res.StopReason != acp.StopReasonCancelled {
				t.Errorf("a prompt that was cancelled while it waited: %v, %v", res, err)
			}
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		want := "after new turn after turn turn"
		if got := strings.Join(order, " "); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
