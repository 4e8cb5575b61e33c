package v2draft_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/acpv2"
)

// A question that its asker gives up leaves a turn that works on.
func TestQuestionGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		conn := connect(t, handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
			ask, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := s.RequestPermission(ask, &v2draft.RequestPermissionRequest{
				Title:   "May I?",
				Options: []v2draft.PermissionOption{{OptionID: "yes", Name: "Yes", Kind: v2draft.PermissionOptionKindAllowOnce}},
			})
			if err == nil {
				t.Error("there was an answer")
			}
			return v2draft.EndTurn(), s.Update(ctx, v2draft.AgentMessageText("m", "then"))
		})), v2draft.ClientHandlers{
			SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
				got = append(got, kind(n.Update))
				return nil
			},
			RequestPermission: func(ctx context.Context, _ *v2draft.ClientSession, _ *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}, nil)
		res, err := newSession(t, conn).Prompt(t.Context(), v2draft.TextBlock("hi"))
		if stop := stopped(t, res, err); stop != "EndTurn" {
			t.Errorf("got %s", stop)
		}
		if want := "user running requires_action running then idle"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A turn whose message cannot be shown ends all the same.
func TestMessageThatCannotBeSent(t *testing.T) {
	conn := connectThat(t, map[string]string{"V2-1": "the message cannot be sent"}, handlers(func(ctx context.Context, session *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
		bad := v2draft.UserMessage{MessageID: "u", Meta: v2draft.Meta{"x": json.RawMessage("{")}}
		return session.StartTurnWith(ctx, bad, func(context.Context) (v2draft.IdleStateUpdate, error) {
			t.Error("the work was done")
			return v2draft.EndTurn(), nil
		})
	}), v2draft.ClientHandlers{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := newSession(t, conn).Prompt(ctx, v2draft.TextBlock("hi"))
	if stop := stopped(t, res, err); stop != "Error" {
		t.Errorf("got %s", stop)
	}
}

// A turn ends although what its author has given for the end cannot be sent, and the log says so.
func TestStatesThatCannotBeSent(t *testing.T) {
	bad := v2draft.Meta{"x": json.RawMessage("{")}
	with := func(change func(*v2draft.IdleStateUpdate)) v2draft.IdleStateUpdate {
		idle := v2draft.EndTurn()
		change(&idle)
		return idle
	}
	data := &v2draft.Error{Code: -32000, Message: "no", Data: json.RawMessage("{")}
	for name, tt := range map[string]struct {
		idle       v2draft.IdleStateUpdate
		err        error
		background []v2draft.BackgroundWork
		want       string
	}{
		"usage without its feature": {idle: with(func(i *v2draft.IdleStateUpdate) { i.Usage = v2draft.Some(v2draft.Usage{}) }), want: "EndTurn"},
		"bad _meta":                 {idle: with(func(i *v2draft.IdleStateUpdate) { i.Meta = bad }), want: "EndTurn"},
		"an unknown reason":         {idle: v2draft.IdleStateUpdate{Variant: &v2draft.IdleStateUpdateUnknown{Tag: "x"}}, want: "Error"},
		"no variant":                {idle: v2draft.IdleStateUpdate{Variant: (*v2draft.IdleStateUpdateError)(nil)}, want: "Error"},
		"an error's data":           {err: data, want: "Error"},
		"work in the background":    {background: []v2draft.BackgroundWork{{}}, want: "EndTurn"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			conn := connect(t, handlers(working(func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
				return tt.idle, tt.err
			})), v2draft.ClientHandlers{}, &v2draft.AgentOptions{
				Background: func(v2draft.SessionID) []v2draft.BackgroundWork { return tt.background },
				Conn:       v2draft.ConnOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := newSession(t, conn).Prompt(ctx, v2draft.TextBlock("hi"))
			if stop := stopped(t, res, err); stop != tt.want {
				t.Errorf("got %s, want %s", stop, tt.want)
			}
			if e, ok := res.Idle.Variant.(*v2draft.IdleStateUpdateError); ok && tt.err != nil && e.Error.Value().Message != "no" {
				t.Errorf("the error is %+v", e.Error)
			}
			if !strings.Contains(logged.String(), "level=WARN") {
				t.Errorf("logged %q", logged.String())
			}
		})
	}
}

// A session that is resumed while its turn ends is idle at last.
func TestResumeAsATurnEnds(t *testing.T) {
	var got []string
	ending, held := make(chan struct{}), make(chan struct{})
	var states atomic.Int32
	conn := connect(t, handlers(working(func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		return v2draft.EndTurn(), nil
	})), v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			got = append(got, kind(n.Update))
			return nil
		},
	}, &v2draft.AgentOptions{Background: func(v2draft.SessionID) []v2draft.BackgroundWork {
		if states.Add(1) == 2 { // the turn's end
			close(ending)
			<-held
		}
		return nil
	}})
	result := prompting(t, newSession(t, conn))
	<-ending
	resumed := make(chan error, 1)
	go func() {
		_, err := conn.ResumeSession(t.Context(), &v2draft.ResumeSessionRequest{SessionID: session, Cwd: "/"})
		resumed <- err
	}()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(".repeatState(")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the session is not resumed")
		}
	}
	close(held)
	if err := <-resumed; err != nil {
		t.Fatal(err)
	}
	if _, err := result(); err != nil {
		t.Fatal(err)
	}
	if want := "user running idle idle"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The end of a turn whose context ends while the client is slow is reported all the same.
func TestEndBehindASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		ended, held := make(chan error, 1), make(chan struct{})
		agent := handlers(working(func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
			return v2draft.EndTurn(), nil
		}))
		agent.NewSession = func(ctx context.Context, client *v2draft.AgentConn, _ *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
			v2draft.AfterResponse(ctx, func(ctx context.Context) {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				s := client.Session(session)
				ended <- s.RunTurn(ctx, func(ctx context.Context) (v2draft.IdleStateUpdate, error) {
					for {
						if err := s.Update(ctx, v2draft.AgentMessageText("m", strings.Repeat("x", 1<<16))); err != nil {
							return v2draft.IdleStateUpdate{}, err
						}
					}
				})
			})
			return &v2draft.NewSessionResponse{SessionID: session}, nil
		}
		conn := connect(t, agent, v2draft.ClientHandlers{
			SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
				<-held
				got = append(got, kind(n.Update))
				return nil
			},
		}, nil)
		newSession(t, conn)
		time.Sleep(2 * time.Second) // the context has ended
		close(held)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if last := got[len(got)-1]; last != "idle" {
			t.Errorf("the last of %d updates is %.10q", len(got), last)
		}
	})
}
