package agentkit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

type steering struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      acp.Meta           `json:"_meta,omitempty"`
}

type steered struct{ Outcome, Reason string }

// Messages of the extension go into the running turn and are answered when it takes them; one that it does not take is
// sent back, before the next prompt begins.
func TestSteeringExtension(t *testing.T) {
	take, gate := make(chan struct{}), make(chan struct{})
	play := map[string]func(*scene) error{"one": func(s *scene) error {
		<-s.Waiting()
		<-take
		if err := s.Update(s.ctx, acp.AgentMessageText("took "+promptText(s.Take()))); err != nil {
			return err
		}
		<-gate
		return nil
	}}
	onStage(t, agentkit.Steer, play, func(t *testing.T, x *stage) {
		take, gate = make(chan struct{}), make(chan struct{})
		var optedIn acp.Meta
		if err := optedIn.Set("steering", map[string]string{"idleBehavior": "promptRequired"}); err != nil {
			t.Fatal(err)
		}
		message := func(text string, meta acp.Meta) steering {
			return steering{x.session.ID(), []acp.ContentBlock{acp.TextBlock(text)}, meta}
		}
		steer := func(text string) <-chan steered {
			answer := make(chan steered, 1)
			go func() {
				res, err := rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", message(text, optedIn))
				if err != nil {
					t.Error(err)
					res = &steered{}
				}
				answer <- *res
			}()
			return answer
		}
		want := func(what string, answer <-chan steered, want steered) {
			t.Helper()
			if got := <-answer; got != want {
				t.Errorf("%s: got %+v, want %+v", what, got, want)
			}
		}
		late := steered{"promptRequired", "noRunningTurn"}
		var supported struct{ Supported bool }
		if ok, err := x.Initialized().Meta.Get("steering", &supported); !ok || err != nil || !supported.Supported {
			t.Errorf("advertised %v, %v, %v", ok, err, supported)
		}
		want("without a turn", steer("zero"), late)
		_, err := rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", message("zero", nil))
		wantError(t, "without a turn, and not opted in", err, acp.ErrInvalidRequest)
		one := x.ask(t.Context(), "one")
		synctest.Wait()
		taken := steer("now")
		synctest.Wait()
		if len(taken) != 0 {
			t.Error("answered before it was taken")
		}
		close(take)
		want("taken", taken, steered{"injected", ""})
		left := steer("left")
		synctest.Wait()
		two := x.ask(t.Context(), "two")
		synctest.Wait()
		close(gate)
		want("left", left, late)
		(<-one).check(t, "one", acp.StopReasonMaxTokens)
		(<-two).check(t, "two", acp.StopReasonMaxTokens)
		synctest.Wait()
		wantLines(t, "what passed", x.seen(), "begin one", "took now", "end one", "answer max_tokens", "begin two", "end two", "answer max_tokens")
		_, err = rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", steering{SessionID: "nobody"})
		wantError(t, "an unknown session", err, acp.ErrResourceNotFound)
	})
}

// An author adds extensions with and without Steer.
func TestExtensions(t *testing.T) {
	prompt := func(context.Context, *anyTurn, *acp.PromptRequest) (*acp.PromptResponse, error) { return nil, nil }
	for _, busy := range []agentkit.WhileBusy{agentkit.Refuse, agentkit.Steer} {
		sessions := agentkit.NewSessions(agentkit.Config[struct{}]{Prompt: prompt, WhileBusy: busy})
		handlers := sessions.Handlers()
		rpc.Handle(handlers.Extensions, "_own", func(context.Context, *acp.AgentConn, *struct{}) (*struct{}, error) { return &struct{}{}, nil })
		near, far := acp.Pipe()
		agent, err := acp.StartAgent(t.Context(), far, handlers, sessions.Options(nil))
		if err != nil {
			t.Fatal(err)
		}
		c, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, nil), acp.ClientHandlers{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rpc.Call[struct{}](t.Context(), c.RPC(), "_own", struct{}{}); err != nil {
			t.Error(err)
		}
		if err := errors.Join(c.Close(), agent.Wait()); err != nil {
			t.Error(err)
		}
		sessions.Close()
	}
}
