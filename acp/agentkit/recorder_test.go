package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
	"github.com/acpgo/sdk/internal/test/ways"
)

// calls are tool calls as updates make them.
type calls map[acp.ToolCallID]acp.ToolCall

func (c calls) apply(update acp.SessionUpdate) {
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateToolCall:
		c[u.ToolCallID] = acp.ToolCall(*u)
	case *acp.SessionUpdateToolCallUpdate:
		call := c[u.ToolCallID]
		call.ToolCallID = u.ToolCallID
		call.Apply(acp.ToolCallUpdate(*u))
		c[u.ToolCallID] = call
	}
}

// storedOf has what the store has of a session, without asking the agent for it.
func storedOf(t *testing.T, store sessionstore.Store, id acp.SessionID) (updates []acp.SessionUpdate) {
	t.Helper()
	for update, err := range store.Updates(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		updates = append(updates, update)
	}
	return updates
}

// watching connects a client that folds tool calls.
func watching(t *testing.T, sessions *agentkit.Sessions[state]) (conn *acp.ClientConn, folded func() calls) {
	t.Helper()
	theirs, ours := ways.Pipe(t)
	agent := must.Get(acp.StartAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(nil)))(t)
	var mu sync.Mutex
	all := calls{}
	conn = must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			all.apply(n.Update)
			return nil
		},
	}, nil))(t)
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), agent.Wait()); err != nil {
			t.Error(err)
		}
		sessions.Close()
	})
	return conn, func() calls {
		mu.Lock()
		defer mu.Unlock()
		got := all
		all = calls{}
		return got
	}
}

// recorded calls do in a turn, and loads the session then, in which the client must see the same tool calls. It returns
// them and what was stored.
func recorded(
	t *testing.T, do func(context.Context, *agentkit.Turn[state]) error,
) (live calls, stored []acp.SessionUpdate) {
	t.Helper()
	store := open(t, t.TempDir())
	conn, folded := watching(t, agentkit.NewSessions(agentkit.Config[state]{Store: store, Prompt: func(
		ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest,
	) (*acp.PromptResponse, error) {
		return nil, do(ctx, turn)
	}}))
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
	live = folded()
	must.Get(conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	if loaded := folded(); !reflect.DeepEqual(live, loaded) {
		t.Errorf("live\n%.2000s\nloaded\n%.2000s", fmt.Sprint(live), fmt.Sprint(loaded))
	}
	return live, storedOf(t, store, s.ID())
}

// What a tool call shows is stored once and not each time that it grows, and a client that loads the session sees what
// the first one has seen at the end. Calls at the same time, and calls that an agent makes without ToolCall, are no
// exception.
func TestToolCallsAreStoredOnce(t *testing.T) {
	tier.Need(t, tier.Normal)
	const each, texts, length = 5, 100, 500
	seconds := 0
	live, stored := recorded(t, func(ctx context.Context, turn *agentkit.Turn[state]) error {
		begun := time.Now()
		var group sync.WaitGroup
		for i := range each {
			group.Go(func() {
				call, err := turn.StartToolCall(ctx, fmt.Sprint("Tool ", i))
				if err != nil {
					t.Error(err)
					return
				}
				for n := range texts {
					if err := call.Progress(fmt.Sprint(n, strings.Repeat("x", length))); err != nil {
						t.Error(err)
						return
					}
				}
				for n := range 10 {
					if err := call.Diff(fmt.Sprint("/w/", n%3), "old", strings.Repeat("new", n)); err != nil {
						t.Error(err)
						return
					}
				}
				if i > 0 { // the first one is left open
					if err := call.Done(acp.WithOutput(map[string]int{"n": i})); err != nil {
						t.Error(err)
					}
				}
			})
			group.Go(func() {
				id := acp.ToolCallID(fmt.Sprint("own", i))
				updates := []acp.SessionUpdate{acp.UpdateToolCall(id, acp.WithTitle("not announced"), acp.WithKind(acp.ToolKindRead))}
				for n := range texts {
					text := acp.ToolText(strings.Repeat("y", n*length/10))
					updates = append(updates, acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusInProgress), acp.WithContent(text)))
				}
				updates = append(updates, acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusCompleted)), acp.UpdateToolCall(id, acp.WithTitle("late")))
				for _, update := range updates {
					if err := turn.Update(ctx, update); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		seconds = int(time.Since(begun) / time.Second)
		return nil
	})
	if len(live) != 2*each {
		t.Errorf("there are %d calls", len(live))
	}
	for _, call := range live {
		if call.Status != acp.ToolCallStatusCompleted && (call.Title != "Tool 0" || call.Status != acp.ToolCallStatusFailed) {
			t.Errorf("%s is %s", call.Title, call.Status)
		}
	}
	// The prompt, the beginning and the end of each call, the titles after the end, and what is new in each, after one
	// second, two more, four more and so on.
	size, times := 0, bits.Len(uint(seconds))
	for _, update := range stored {
		text := must.Get(json.Marshal(update))(t)
		size += len(text)
	}
	if len(stored) > 1+5*each+2*each*times || size > 2*(2+times)*each*texts*length {
		t.Errorf("after %d seconds %d updates of %d bytes are stored", seconds, len(stored), size)
	}
}

// More calls than are joined at once lose nothing.
func TestManyOpenToolCalls(t *testing.T) {
	const n = 100
	live, _ := recorded(t, func(ctx context.Context, turn *agentkit.Turn[state]) error {
		var open []*agentkit.ToolCall
		for i := range n {
			call, err := turn.StartToolCall(ctx, fmt.Sprint("Tool ", i))
			if err != nil {
				return err
			}
			open = append(open, call)
			if i%16 != 15 {
				continue
			}
			for _, call := range open {
				if err := call.Progress(fmt.Sprint(i)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if len(live) != n {
		t.Errorf("there are %d calls", len(live))
	}
}

// What a call that continues for long shows is stored at intervals that double: a process that is killed loses at most
// what came since, and a client that then loads the session sees the call as failed.
func TestToolCallWhenKilled(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), open(t, dir)
		end := make(chan struct{})
		config := agentkit.Config[state]{Store: store, Prompt: func(
			ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest,
		) (*acp.PromptResponse, error) {
			call, err := turn.StartToolCall(ctx, "Tool", agentkit.WithToolCallID("c"))
			if err != nil {
				return nil, err
			}
			for second := range 100 {
				if err := call.Progress(fmt.Sprint(second)); err != nil {
					return nil, err
				}
				time.Sleep(time.Second) // of the bubble
			}
			<-end
			return endTurn, call.Done()
		}}
		conn, _ := watching(t, agentkit.NewSessions(config))
		s := must.Get(conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"}))(t)
		turn := s.Stream(ctx, acp.TextBlock("go"))
		turn.Discard()
		began := time.Now()
		kept := func() (updates int, last string) {
			synctest.Wait()
			all := calls{}
			for _, update := range storedOf(t, store, s.ID())[1:] {
				updates++
				all.apply(update)
			}
			if content := all["c"].Content; len(content) > 0 {
				last = content[len(content)-1].Text()
			}
			return updates, last
		}
		for range 6 {
			time.Sleep(time.Since(began) + 1500*time.Millisecond)
			_, last := kept()
			var second int
			if _, err := fmt.Sscan(last, &second); err != nil {
				t.Fatalf("the store has %q: %v", last, err)
			}
			if passed := int(time.Since(began) / time.Second); second < passed/2-2 {
				t.Errorf("after %d seconds the store has what was shown after %d", passed, second)
			}
		}
		// Another process loads it, as if this one had been killed.
		other, folded := watching(t, agentkit.NewSessions(config))
		must.Get(other.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
		if call := folded()["c"]; call.Status != acp.ToolCallStatusFailed || len(call.Content) == 0 {
			t.Errorf("loaded meanwhile the call is %s and shows %d", call.Status, len(call.Content))
		}
		close(end)
		must.Get(turn.Result())(t)
		if updates, last := kept(); updates > 12 || last != "99" {
			t.Errorf("stored are %d updates, which end with %q", updates, last)
		}
	})
}

// An author may use the list again that an update was made of.
func TestToolCallUpdatesAreCopied(t *testing.T) {
	recorded(t, func(ctx context.Context, turn *agentkit.Turn[state]) error {
		content := []acp.ToolCallContent{acp.ToolText("shown")}
		locations := []acp.ToolCallLocation{{Path: "/shown"}}
		raw := []byte(`"shown"`)
		err := errors.Join(turn.Update(ctx, acp.StartToolCall("c", "Tool")), turn.Update(ctx, acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{
			ToolCallID: "c", Content: acp.Some(content), Locations: acp.Some(locations), RawOutput: raw,
		})))
		content[0], locations[0].Path = acp.ToolText("never"), "/never"
		copy(raw, `"never"`)
		return errors.Join(err, turn.Update(ctx, acp.UpdateToolCall("c", acp.WithStatus(acp.ToolCallStatusCompleted))))
	})
}
