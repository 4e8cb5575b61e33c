package agentkit_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// updates is how many updates the session has that is loaded.
func updates() int { return tier.Pick(400, 1000, 2000, 100_000) }

// A long session is loaded in memory that does not grow with its length: agent, client and connection together.
func TestLongSession(t *testing.T) {
	ctx, store := t.Context(), open(t, t.TempDir())
	record := sessionstore.Record{Info: sessionstore.Info{ID: "long", Cwd: "/w"}}
	must.Do(t, store.Create(ctx, record))
	var batch []acp.SessionUpdate
	for i := range updates() {
		call := acp.ToolCallID(fmt.Sprint("call_", i/4))
		switch i % 4 {
		case 0:
			batch = append(batch, acp.AgentThoughtText(strings.Repeat("I think ", 30)))
		case 1:
			batch = append(batch, acp.StartToolCall(call, "Edit a file", acp.WithInput(map[string]int{"line": i})))
		case 2:
			batch = append(batch, acp.UpdateToolCall(call, acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithContent(acp.ToolEdit("/w/a.go", "old", "new"))))
		case 3:
			batch = append(batch, acp.AgentMessageText(strings.Repeat("It is done. ", 30)))
		}
		if len(batch) == 100 || i == updates()-1 {
			must.Do(t, store.Append(ctx, "long", batch...))
			batch = batch[:0]
		}
	}
	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Prompt: silent[state]})
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(ctx, theirs, sessions.Handlers(), sessions.Options(nil)))(t)
	t.Cleanup(func() {
		_ = agent.Wait() // what is measured has passed by then
		sessions.Close()
	})
	n, peak := 0, uint64(0)
	var before, now runtime.MemStats
	conn, err := acp.Connect(ctx, ours, acp.ClientHandlers{
		SessionUpdate: func(context.Context, *acp.ClientSession, *acp.SessionNotification) error {
			if n++; n%1000 == 0 {
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc)
			}
			return nil
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	must.Get(conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "long", Cwd: "/w"}))(t)
	growth := int64(peak) - int64(before.HeapAlloc)
	t.Logf("%d updates loaded in %v; the heap grew by at most %.1f MiB", updates(), time.Since(start).Round(time.Millisecond), float64(growth)/(1<<20))
	if n != updates() {
		t.Errorf("%d updates came before the answer", n)
	}
	if growth > 32<<20 {
		t.Errorf("the heap grew by %d bytes", growth)
	}
}

// chunkAllocs is what storing a chunk of 64 bytes may allocate beyond sending it.
const chunkAllocs = 0.5

// inTurn runs f in a turn of an agent with a store.
func inTurn(tb testing.TB, store sessionstore.Store, f func(ctx context.Context, t *agentkit.Turn[state])) {
	tb.Helper()
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Store: store,
		Prompt: func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			f(ctx, t)
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	})
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(tb.Context(), theirs, sessions.Handlers(), nil))(tb)
	conn := must.Get(acp.Connect(tb.Context(), ours, acp.ClientHandlers{}, nil))(tb)
	session := must.Get(conn.NewSession(tb.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(tb)
	must.Get(session.Prompt(tb.Context(), acp.TextBlock("go")))(tb)
	if err := conn.Close(); err != nil {
		tb.Error(err)
	}
	if err := agent.Wait(); err != nil {
		tb.Error(err)
	}
	sessions.Close()
}

func TestAllocations(t *testing.T) {
	tier.Need(t, tier.Normal)
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	update := acp.AgentMessageText(strings.Repeat("x", 64))
	var plain, stored float64
	const each = 100
	measure := func(send func() error) float64 {
		least := math.Inf(1)
		for range 20 { // the other side, in this process, allocates more when it waits for each message
			least = min(least, testing.AllocsPerRun(5, func() {
				for range each {
					if err := send(); err != nil {
						t.Error(err)
					}
				}
			})/each)
		}
		return least
	}
	inTurn(t, open(t, t.TempDir()), func(ctx context.Context, turn *agentkit.Turn[state]) {
		plain = measure(func() error { return turn.AgentSession.Update(ctx, update) })
		stored = measure(func() error { return turn.Update(ctx, update) })
	})
	t.Logf("a chunk sent: %.2f allocations; sent and stored: %.2f", plain, stored)
	if stored > plain+chunkAllocs {
		t.Errorf("storing a chunk allocates %.2f times", stored-plain)
	}
}
