package natsacp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/test/must"
)

// keyed runs a prompt with an idempotency key.
func (u *user) keyed(s *acp.ClientSession, key, text string) (*acp.PromptResponse, error) {
	u.Helper()
	req := &acp.PromptRequest{SessionID: s.ID(), Prompt: []acp.ContentBlock{acp.TextBlock(text)}}
	must.Do(u, req.Meta.Set(translate.MetaIdempotencyKey, key))
	return s.Conn().Prompt(u.Context(), req)
}

// wantKeyed requires that a prompt with a key ends like the first one with it.
func (u *user) wantKeyed(s *acp.ClientSession, key, text string, want acp.StopReason) {
	u.Helper()
	if res, err := u.keyed(s, key, text); err != nil || res.StopReason != want {
		u.Errorf("%q: %+v, %v", text, res, err)
	}
}

// A prompt with a known key is not run again: on the same connection, on another one, while it runs, after a handover,
// nor after its agent has died.
func TestKeys(t *testing.T) {
	r, url := newFleet(t)
	u := r.user(url, func(u *user) { u.accept = map[string]string{"PRM-5": "another connection takes the session"} })
	s := u.session()
	u.wantKeyed(s, "a", "say=2", acp.StopReasonEndTurn)
	u.wantSaid(u.said(s), numbers(2))
	u.wantKeyed(s, "a", "say=2", acp.StopReasonEndTurn)
	if _, err := u.keyed(s, "a", "say=3"); !errors.Is(err, rpc.ErrInvalidParams) {
		t.Errorf("the same key for another prompt: %v", err)
	}

	asked, answer := make(chan struct{}), make(chan struct{})
	u.ask = func(context.Context, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		close(asked)
		<-answer
		return nil, errors.New("too late")
	}
	go u.keyed(s, "b", "ask say=3")
	<-asked
	two := r.user(url)
	resumed := must.Get(two.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(r)
	close(answer)
	two.wantKeyed(resumed, "b", "ask say=3", acp.StopReasonEndTurn)
	two.wantSaid(two.said(resumed), "yes"+numbers(3))

	n2 := r.node("n2")
	must.Do(r, r.own().Drain(t.Context(), "n1"))
	two.wantSaid(two.prompt(resumed, "node"), "n2")
	two.wantKeyed(resumed, "a", "say=2", acp.StopReasonEndTurn)
	two.wantKeyed(resumed, "b", "ask say=3", acp.StopReasonEndTurn)

	failed := make(chan error, 1)
	go func() {
		_, err := two.keyed(resumed, "c", "say=1 hang")
		failed <- err
	}()
	two.await(resumed, "0;")
	must.Do(r, n2.Close())
	if err := next(r, failed, "the end of the prompt"); err == nil {
		t.Error("the prompt has succeeded, whose node was stopped")
	}
	r.node("n3")
	if _, err := two.keyed(resumed, "c", "say=1 hang"); err == nil || !strings.Contains(err.Error(), "outcome is not known") {
		t.Errorf("after the end of the agent: %v", err)
	}
	for _, prompt := range []string{"say=2", "ask say=3", "say=1 hang"} {
		if n := r.ran(s, prompt); n != 1 {
			t.Errorf("%q ran %d times", prompt, n)
		}
	}
}

// A client that loses its gateway gets the outcome of its prompt at another one.
func TestRetryPrompts(t *testing.T) {
	for _, version := range []int{1, 2} {
		r := newRig(t)
		r.node("n1")
		nc, network := r.network()
		_, front := r.gatewayOn(nc, "g1")
		_, second := r.gateway("g2")
		urls := make(chan string, 10)
		urls <- "ws://" + front.Addr()
		for range cap(urls) - 1 {
			urls <- second
		}
		asked := make(chan struct{}, 10)
		c := must.Get(reconnect.Connect(t.Context(), func(context.Context) (acp.Transport, error) {
			return translate.Transport(remote.Dial(<-urls, nil), translate.ClientSide, 1, &translate.Options{Only: version}), nil
		}, acp.ClientHandlers{
			RequestPermission: func(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
				if asked <- struct{}{}; len(asked) == 1 {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
			},
		}, nil, &reconnect.Options{RetryPrompts: true, MinBackoff: time.Millisecond}))(r)
		s := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(r)
		live := must.Get(s.Live(t.Context()))(r)
		done := make(chan error, 1)
		go func() {
			res, err := s.Prompt(t.Context(), acp.TextBlock("ask say=3"))
			if err == nil && res.StopReason != acp.StopReasonEndTurn {
				err = errors.New(string(res.StopReason))
			}
			done <- err
		}()
		eventually(r, "the permission is asked for", func() bool { return len(asked) == 1 })
		network.Hold(true)
		must.Do(r, front.Close())
		if err := <-done; err != nil {
			t.Error(err)
		}
		network.Hold(false)
		if n := r.ran(live, "ask say=3"); n != 1 {
			t.Errorf("the prompt ran %d times", n)
		}
		must.Do(r, c.Close())
	}
}
