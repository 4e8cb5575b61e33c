package acpv2_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The ids and states that a client remembers for as long as sessions work and turns last may be long: it remembers
// little of them all the same, and a turn ends with the state that ended it.
func TestLongIDsAreNotRemembered(t *testing.T) {
	tier.Need(t, tier.Normal)
	const n = 64
	size := tier.Pick(0, 1<<17, 1<<17, 1<<20)
	filled, release := make(chan struct{}), make(chan struct{})
	long := func(i int) string { return fmt.Sprintf("%d", i) + strings.Repeat("x", size) }
	state := func(id acpv2.SessionID, state acpv2.StateUpdate) *acpv2.UpdateSessionNotification {
		return &acpv2.UpdateSessionNotification{SessionID: id, Update: acpv2.NewSessionUpdateStateUpdate(state)}
	}
	running := acpv2.NewStateUpdateRunning(acpv2.RunningStateUpdate{})
	idle := func(i int) acpv2.StateUpdate {
		idle := acpv2.EndTurn()
		idle.Meta = codec.Meta{"n": json.RawMessage(fmt.Sprintf("%q", long(i)))}
		return acpv2.NewStateUpdateIdle(idle)
	}
	agent := handlers(func(ctx context.Context, s *acpv2.AgentSession, _ *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
		send := func(u *acpv2.UpdateSessionNotification) {
			if err := rpc.Notify(ctx, s, acpv2.MethodSessionUpdate, u); err != nil {
				t.Error(err)
			}
		}
		for i := range n {
			send(state(acpv2.SessionID(long(i)), running))
		}
		for i := range n {
			send(&acpv2.UpdateSessionNotification{SessionID: s.ID(), Update: acpv2.NewSessionUpdateUserMessage(
				acpv2.UserMessage{MessageID: acpv2.MessageID(long(i))})})
			send(state(s.ID(), running))
			send(state(s.ID(), idle(i)))
		}
		close(filled)
		<-release
		return &acpv2.PromptResponse{MessageID: acpv2.MessageID(long(0))}, nil
	})
	near, far := acpv2.Pipe()
	served := must.Get(acpv2.StartAgent(t.Context(), far, agent, &acpv2.AgentOptions{Info: info}))(t)
	handled := make(chan struct{})
	conn := must.Get(acpv2.Connect(t.Context(), near, acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			if u, ok := n.Update.Variant.(*acpv2.SessionUpdateUserMessage); ok && u.MessageID == "last" {
				close(handled)
			}
			return nil
		},
	}, &acpv2.ClientOptions{Info: info}))(t)
	session := newSession(t, conn)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result := prompting(t, session)
	<-filled
	must.Do(t, rpc.Notify(t.Context(), served, acpv2.MethodSessionUpdate, &acpv2.UpdateSessionNotification{
		SessionID: session.ID(), Update: acpv2.NewSessionUpdateUserMessage(acpv2.UserMessage{MessageID: "last"}),
	}))
	<-handled
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int(after.HeapAlloc) - int(before.HeapAlloc); kept > n*size/4 {
		t.Errorf("%d MiB are kept", kept>>20)
	}
	close(release)
	if res, err := result(); err != nil || res.Idle.Meta == nil || !strings.HasPrefix(string(res.Idle.Meta["n"]), `"0x`) || len(res.MessageID) <= size {
		t.Errorf("got %.100v, %v", res, err)
	}
	must.Do(t, conn.Close())
	must.Do(t, served.Wait())
}

// An agent may say that more sessions work than a client remembers. The turns of the client's own session end all the same.
func TestTurnAmongManySessions(t *testing.T) {
	tier.Need(t, tier.Normal)
	if gentest.Race && tier.Current() < tier.Nightly {
		t.Skip("many notifications, which take ten times as long with the race detector")
	}
	const many = 1<<16 + 10
	near, far := acpv2.Pipe()
	served := must.Get(acpv2.StartAgent(t.Context(), far, handlers(func(
		ctx context.Context, s *acpv2.AgentSession, req *acpv2.PromptRequest,
	) (*acpv2.PromptResponse, error) {
		running := acpv2.NewSessionUpdateStateUpdate(acpv2.NewStateUpdateRunning(acpv2.RunningStateUpdate{}))
		for i := range many {
			err := rpc.Notify(ctx, s, acpv2.MethodSessionUpdate, &acpv2.UpdateSessionNotification{
				SessionID: acpv2.SessionID(fmt.Sprint("other-", i)), Update: running,
			})
			if err != nil {
				return nil, err
			}
		}
		return s.StartTurn(ctx, req, func(context.Context) (acpv2.IdleStateUpdate, error) { return acpv2.EndTurn(), nil })
	}), &acpv2.AgentOptions{Info: info}))(t)
	conn := must.Get(acpv2.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{
		Schema: conformance.V2(),
		Accept: map[string]string{"ADD-2": "the agent tells of sessions that the client does not know"},
	}),
		acpv2.ClientHandlers{}, &acpv2.ClientOptions{Info: info}))(t)
	session := must.Get(conn.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	res, err := session.Prompt(ctx, acpv2.TextBlock("hello"))
	if err != nil || res.Idle.StopReason() != "end_turn" {
		t.Errorf("got %v, %v", res, err)
	}
	must.Do(t, errors.Join(conn.Close(), served.Wait()))
}
