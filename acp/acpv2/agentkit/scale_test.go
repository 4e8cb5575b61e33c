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
	var batch []acpv2.SessionUpdate
	for i := range updates() {
		call, message := acpv2.ToolCallID(fmt.Sprint("call_", i/4)), acpv2.MessageID(fmt.Sprint("message_", i))
		switch i % 4 {
		case 0:
			batch = append(batch, acpv2.AgentThoughtText(message, strings.Repeat("I think ", 30)))
		case 1:
			batch = append(batch, acpv2.StartToolCall(call, "Edit a file", acpv2.WithInput(map[string]int{"line": i})))
		case 2:
			batch = append(batch, acpv2.UpdateToolCall(call, acpv2.WithStatus(acpv2.ToolCallStatusCompleted), acpv2.WithContent(acpv2.ToolText("done"))))
		case 3:
			batch = append(batch, acpv2.AgentMessageText(message, strings.Repeat("It is done. ", 30)))
		}
		if len(batch) == 100 || i == updates()-1 {
			if err := store.Append(ctx, "long", batch...); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	sessions := agentkit.NewSessions(parrot(store))
	theirs, ours := acpv2.Pipe()
	agent, err := acpv2.StartAgent(ctx, theirs, sessions.Handlers(), &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "a", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Wait() // what is measured has passed by then
		sessions.Close()
	})
	n, peak := 0, uint64(0)
	var before, now runtime.MemStats
	conn, err := acpv2.Connect(ctx, ours, acpv2.ClientHandlers{
		SessionUpdate: func(context.Context, *acpv2.ClientSession, *acpv2.UpdateSessionNotification) error {
			if n++; n%1000 == 0 {
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc)
			}
			return nil
		},
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "c", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err = conn.ResumeSession(ctx, &acpv2.ResumeSessionRequest{
		SessionID: "long", Cwd: "/w", ReplayFrom: acpv2.Some(acpv2.NewReplayFromStart(acpv2.ReplayFromStart{})),
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
