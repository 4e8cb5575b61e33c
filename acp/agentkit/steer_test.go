package agentkit_test

import (
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
)

type steering struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
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
		steer := func(text string) <-chan steered {
			answer := make(chan steered, 1)
			go func() {
				res, err := rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", steering{x.session.ID(), []acp.ContentBlock{acp.TextBlock(text)}})
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
		_, err := rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", steering{SessionID: "nobody"})
		wantError(t, "an unknown session", err, acp.ErrResourceNotFound)
	})
}
