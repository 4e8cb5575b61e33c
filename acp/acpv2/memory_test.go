package v2draft_test

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
	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/gentest"
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
	state := func(id v2draft.SessionID, state v2draft.StateUpdate) *v2draft.UpdateSessionNotification {
		return &v2draft.UpdateSessionNotification{SessionID: id, Update: v2draft.NewSessionUpdateStateUpdate(state)}
	}
	running := v2draft.NewStateUpdateRunning(v2draft.RunningStateUpdate{})
	idle := func(i int) v2draft.StateUpdate {
		idle := v2draft.EndTurn()
		idle.Meta = codec.Meta{"n": json.RawMessage(fmt.Sprintf("%q", long(i)))}
		return v2draft.NewStateUpdateIdle(idle)
	}
	agent := handlers(func(ctx context.Context, s *v2draft.AgentSession, _ *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
		send := func(u *v2draft.UpdateSessionNotification) {
			if err := rpc.Notify(ctx, s, v2draft.MethodSessionUpdate, u); err != nil {
				t.Error(err)
			}
		}
		for i := range n {
			send(state(v2draft.SessionID(long(i)), running))
		}
		for i := range n {
			send(&v2draft.UpdateSessionNotification{SessionID: s.ID(), Update: v2draft.NewSessionUpdateUserMessage(
				v2draft.UserMessage{MessageID: v2draft.MessageID(long(i))})})
			send(state(s.ID(), running))
			send(state(s.ID(), idle(i)))
		}
		close(filled)
		<-release
		return &v2draft.PromptResponse{MessageID: v2draft.MessageID(long(0))}, nil
	})
	near, far := v2draft.Pipe()
	served, err := v2draft.StartAgent(t.Context(), far, agent, &v2draft.AgentOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan struct{})
	conn, err := v2draft.Connect(t.Context(), near, v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			if u, ok := n.Update.Variant.(*v2draft.SessionUpdateUserMessage); ok && u.MessageID == "last" {
				close(handled)
			}
			return nil
		},
	}, &v2draft.ClientOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	session := newSession(t, conn)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result := prompting(t, session)
	<-filled
	err = rpc.Notify(t.Context(), served, v2draft.MethodSessionUpdate, &v2draft.UpdateSessionNotification{
		SessionID: session.ID(), Update: v2draft.NewSessionUpdateUserMessage(v2draft.UserMessage{MessageID: "last"}),
	})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := served.Wait(); err != nil {
		t.Error(err)
	}
}

// An agent may say that more sessions work than a client remembers. The turns of the client's own session end all the same.
func TestTurnAmongManySessions(t *testing.T) {
	tier.Need(t, tier.Normal)
	if gentest.Race && tier.Current() < tier.Nightly {
		t.Skip("many notifications, which take ten times as long with the race detector")
	}
	const many = 1<<16 + 10
	near, far := v2draft.Pipe()
	served, err := v2draft.StartAgent(t.Context(), far, handlers(func(
		ctx context.Context, s *v2draft.AgentSession, req *v2draft.PromptRequest,
	) (*v2draft.PromptResponse, error) {
		running := v2draft.NewSessionUpdateStateUpdate(v2draft.NewStateUpdateRunning(v2draft.RunningStateUpdate{}))
		for i := range many {
			err := rpc.Notify(ctx, s, v2draft.MethodSessionUpdate, &v2draft.UpdateSessionNotification{
				SessionID: v2draft.SessionID(fmt.Sprint("other-", i)), Update: running,
			})
			if err != nil {
				return nil, err
			}
		}
		return s.StartTurn(ctx, req, func(context.Context) (v2draft.IdleStateUpdate, error) { return v2draft.EndTurn(), nil })
	}), &v2draft.AgentOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := v2draft.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{
		Schema: conformance.V2(),
		Accept: map[string]string{"ADD-2": "the agent tells of sessions that the client does not know"},
	}),
		v2draft.ClientHandlers{}, &v2draft.ClientOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	session, err := conn.NewSession(t.Context(), &v2draft.NewSessionRequest{Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	res, err := session.Prompt(ctx, v2draft.TextBlock("hello"))
	if err != nil || res.Idle.StopReason() != "end_turn" {
		t.Errorf("got %v, %v", res, err)
	}
	if err := errors.Join(conn.Close(), served.Wait()); err != nil {
		t.Error(err)
	}
}
