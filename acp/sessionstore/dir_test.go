package sessionstore_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(tb testing.TB, dir string) sessionstore.Store {
	d := must.Get(sessionstore.Open(dir, nil))(tb)
	return d
}

func TestDir(t *testing.T) {
	tier.Need(t, tier.Normal)
	storetest.Run(t, open)
}

// processes is how much the tests with several processes do.
func processes() *storetest.Processes { return &storetest.Processes{Kills: tier.Pick(0, 0, 0, 500)} }

func TestDirProcesses(t *testing.T) {
	tier.Need(t, tier.Normal)
	storetest.RunProcesses(t, open, processes())
}

// The contract is not fulfilled by processes that end before they have kept anything.
func TestContractNeedsWork(t *testing.T) {
	if os.Getenv("ACP_TEST_IDLE") != "" {
		storetest.RunProcesses(t, func(tb testing.TB, dir string) sessionstore.Store {
			if os.Getenv("ACP_STORETEST_ROLE") != "" {
				os.Exit(1)
			}
			return open(tb, dir)
		}, nil)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestContractNeedsWork$/^Killed$", "-test.count=1")
	cmd.Env = append(os.Environ(), "ACP_TEST_IDLE=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestContractNeedsWork/Killed") {
		t.Errorf("%v: %s", err, out)
	}
}

// batches notes how much is appended at once.
type batches struct {
	sessionstore.Store
	bytes, updates int // the most
}

func (b *batches) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	bytes := 0
	for _, u := range updates {
		bytes += len(u.Variant.(*acp.SessionUpdateAgentMessageChunk).Content.Variant.(*acp.ContentBlockText).Text)
	}
	b.bytes, b.updates = max(b.bytes, bytes), max(b.updates, len(updates))
	return b.Store.Append(ctx, id, updates...)
}

// A fork does not have much of a session in memory at once, however long its updates are.
func TestForkInMemory(t *testing.T) {
	tier.Need(t, tier.Normal)
	const length = 500_000
	n := tier.Pick(0, 10, 20, 40)
	store := open(t, t.TempDir())
	defer store.Close()
	create(t, store, "s", "short", "short")
	for range n {
		must.Do(t, store.Append(t.Context(), "s", acp.AgentMessageText(strings.Repeat("x", length))))
	}
	watched := &batches{Store: store}
	must.Do(t, sessionstore.Fork(t.Context(), watched, "s", sessionstore.Info{ID: "t"}))
	if watched.bytes > 1<<20+length || watched.updates < 2 {
		t.Errorf("appended are at most %d updates and %d bytes at once", watched.updates, watched.bytes)
	}
	if got := readAll(t, store); len(got["t"]) != n+3 {
		t.Errorf("the fork has %d updates", len(got["t"])-1)
	}
}
