package acpv2_test

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
	"github.com/acpgo/sdk/internal/test/must"
)

// A question that its asker gives up leaves a turn that works on.
func TestQuestionGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got heard
		client := got.handlers()
		client.RequestPermission = holds(make(chan struct{}))
		conn := connect(t, handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
			ask, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if _, err := s.RequestPermission(ask, &acpv2.RequestPermissionRequest{Title: "May I?", Options: mayI}); err == nil {
				t.Error("there was an answer")
			}
			return acpv2.EndTurn(), s.Update(ctx, acpv2.AgentMessageText("m", "then"))
		})), client, nil)
		ends(t, "end_turn")(newSession(t, conn).Prompt(t.Context(), acpv2.TextBlock("hi")))
		if want := "user running requires_action running then idle"; got.String() != want {
			t.Errorf("got %q, want %q", &got, want)
		}
	})
}

// A turn whose message cannot be shown ends all the same.
func TestMessageThatCannotBeSent(t *testing.T) {
	conn := connectThat(t, map[string]string{"V2-1": "the message cannot be sent"}, handlers(func(ctx context.Context, session *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
		bad := acpv2.UserMessage{MessageID: "u", Meta: acpv2.Meta{"x": json.RawMessage("{")}}
		return session.StartTurnWith(ctx, bad, func(context.Context) (acpv2.IdleStateUpdate, error) {
			t.Error("the work was done")
			return acpv2.EndTurn(), nil
		})
	}), acpv2.ClientHandlers{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ends(t, "error")(newSession(t, conn).Prompt(ctx, acpv2.TextBlock("hi")))
}

// A turn ends although what its author has given for the end cannot be sent, and the log says so.
func TestStatesThatCannotBeSent(t *testing.T) {
	bad := acpv2.Meta{"x": json.RawMessage("{")}
	with := func(change func(*acpv2.IdleStateUpdate)) acpv2.IdleStateUpdate {
		idle := acpv2.EndTurn()
		change(&idle)
		return idle
	}
	data := &acpv2.Error{Code: -32000, Message: "no", Data: json.RawMessage("{")}
	for name, tt := range map[string]struct {
		idle       acpv2.IdleStateUpdate
		err        error
		background []acpv2.BackgroundWork
		want       string
	}{
		"usage without its feature": {idle: with(func(i *acpv2.IdleStateUpdate) { i.Usage = acpv2.Some(acpv2.Usage{}) }), want: "end_turn"},
		"bad _meta":                 {idle: with(func(i *acpv2.IdleStateUpdate) { i.Meta = bad }), want: "end_turn"},
		"an unknown reason":         {idle: acpv2.IdleStateUpdate{Variant: &acpv2.IdleStateUpdateUnknown{Tag: "x"}}, want: "error"},
		"no variant":                {idle: acpv2.IdleStateUpdate{Variant: (*acpv2.IdleStateUpdateError)(nil)}, want: "error"},
		"an error's data":           {err: data, want: "error"},
		"work in the background":    {background: []acpv2.BackgroundWork{{}}, want: "end_turn"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			conn := connect(t, handlers(working(func(context.Context, *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
				return tt.idle, tt.err
			})), acpv2.ClientHandlers{}, &acpv2.AgentOptions{
				Background: func(acpv2.SessionID) []acpv2.BackgroundWork { return tt.background },
				Conn:       acpv2.ConnOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res := ends(t, tt.want)(newSession(t, conn).Prompt(ctx, acpv2.TextBlock("hi")))
			if e, ok := res.Idle.Variant.(*acpv2.IdleStateUpdateError); ok && tt.err != nil && e.Error.Value().Message != "no" {
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
	var got heard
	ending, held := make(chan struct{}), make(chan struct{})
	var states atomic.Int32
	conn := connect(t, handlers(working(done)), got.handlers(), &acpv2.AgentOptions{Background: func(acpv2.SessionID) []acpv2.BackgroundWork {
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
		_, err := conn.ResumeSession(t.Context(), &acpv2.ResumeSessionRequest{SessionID: session, Cwd: "/"})
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
	must.Do(t, <-resumed)
	must.Get(result())(t)
	if want := "user running idle idle"; got.String() != want {
		t.Errorf("got %q, want %q", &got, want)
	}
}

// The end of a turn whose context ends while the client is slow is reported all the same.
func TestEndBehindASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		ended, held := make(chan error, 1), make(chan struct{})
		agent := handlers(working(done))
		agent.NewSession = func(ctx context.Context, client *acpv2.AgentConn, _ *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
			acpv2.AfterResponse(ctx, func(ctx context.Context) {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				s := client.Session(session)
				ended <- s.RunTurn(ctx, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
					for {
						if err := s.Update(ctx, acpv2.AgentMessageText("m", strings.Repeat("x", 1<<16))); err != nil {
							return acpv2.IdleStateUpdate{}, err
						}
					}
				})
			})
			return &acpv2.NewSessionResponse{SessionID: session}, nil
		}
		conn := connect(t, agent, acpv2.ClientHandlers{
			SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
				<-held
				got = append(got, kind(n.Update))
				return nil
			},
		}, nil)
		newSession(t, conn)
		time.Sleep(2 * time.Second) // the context has ended
		close(held)
		must.Do(t, <-ended)
		synctest.Wait()
		if last := got[len(got)-1]; last != "idle" {
			t.Errorf("the last of %d updates is %.10q", len(got), last)
		}
	})
}
