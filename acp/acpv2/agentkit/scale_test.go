package agentkit_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/tier"
)

// updates is how many updates the session has that is resumed.
func updates() int { return tier.Pick(400, 1000, 2000, 100_000) }

// itemGrowth is how many bytes each message and tool call of a history may take while it is replayed: their ids must be
// known.
const itemGrowth = 400

// A long session is resumed in memory that grows with the ids of what it has shown, and not with its texts: agent, client
// and connection together.
func TestLongSession(t *testing.T) {
	ctx, store := t.Context(), open(t, t.TempDir(), nil)
	record := sessionstore.Record{Info: sessionstore.Info{ID: "long", Cwd: "/w"}}
	if err := store.Create(ctx, record); err != nil {
		t.Fatal(err)
	}
	var batch []v2draft.SessionUpdate
	for i := range updates() {
		call, message := v2draft.ToolCallID(fmt.Sprint("call_", i/4)), v2draft.MessageID(fmt.Sprint("message_", i))
		switch i % 4 {
		case 0:
			batch = append(batch, v2draft.AgentThoughtText(message, strings.Repeat("I think ", 30)))
		case 1:
			batch = append(batch, v2draft.StartToolCall(call, "Edit a file", v2draft.WithInput(map[string]int{"line": i})))
		case 2:
			batch = append(batch, v2draft.UpdateToolCall(call, v2draft.WithStatus(v2draft.ToolCallStatusCompleted), v2draft.WithContent(v2draft.ToolText("done"))))
		case 3:
			batch = append(batch, v2draft.AgentMessageText(message, strings.Repeat("It is done. ", 30)))
		}
		if len(batch) == 100 || i == updates()-1 {
			if err := store.Append(ctx, "long", batch...); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	sessions := agentkit.NewSessions(parrot(store))
	theirs, ours := v2draft.Pipe()
	agent, err := v2draft.StartAgent(ctx, theirs, sessions.Handlers(), &v2draft.AgentOptions{Info: v2draft.Implementation{Name: "a", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Wait() // what is measured has passed by then
		sessions.Close()
	})
	n, peak := 0, uint64(0)
	var before, now runtime.MemStats
	conn, err := v2draft.Connect(ctx, ours, v2draft.ClientHandlers{
		SessionUpdate: func(context.Context, *v2draft.ClientSession, *v2draft.UpdateSessionNotification) error {
			if n++; n%1000 == 0 {
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc)
			}
			return nil
		},
	}, &v2draft.ClientOptions{Info: v2draft.Implementation{Name: "c", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err = conn.ResumeSession(ctx, &v2draft.ResumeSessionRequest{
		SessionID: "long", Cwd: "/w", ReplayFrom: v2draft.Some(v2draft.NewReplayFromStart(v2draft.ReplayFromStart{})),
	})
	if err != nil {
		t.Fatal(err)
	}
	growth := int64(peak) - int64(before.HeapAlloc)
	t.Logf("%d updates replayed in %v; the heap grew by at most %.1f MiB", updates(), time.Since(start).Round(time.Millisecond), float64(growth)/(1<<20))
	if want := updates() + updates()/2 + 1; n != want { // what empties messages, and the state
		t.Errorf("%d updates came before the answer, want %d", n, want)
	}
	if growth > int64(32<<20+updates()*itemGrowth) {
		t.Errorf("the heap grew by %d bytes", growth)
	}
}
