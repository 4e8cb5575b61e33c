//go:build unix

package sqlitestore_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
)

// Without room on the disk a call fails as a whole, and the store continues when there is room.
func TestNoRoom(t *testing.T) {
	// In a process of its own: the limit is also that of what the test itself writes.
	if os.Getenv("ACP_TEST_NO_ROOM") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoRoom$", "-test.count=1")
		cmd.Env = append(os.Environ(), "ACP_TEST_NO_ROOM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	ctx := t.Context()
	store := openWith(t, filepath.Join(t.TempDir(), "x.db"), nil)
	must.Do(t, store.Create(ctx, record("s", 0)))
	must.Do(t, store.Append(ctx, "s", acp.AgentMessageText("one")))
	long := acp.AgentMessageText(strings.Repeat("x", 4<<20))
	count := func() int { return len(texts(t, store, "s")) }
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	limit := old
	limit.Cur = 1 << 20
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	err := store.Append(ctx, "s", acp.AgentMessageText("two"), long)
	small := store.Append(ctx, "s", acp.AgentMessageText("small"))
	n := count()
	must.Do(t, store.Create(ctx, record("large", 0)))
	var full error
	for full == nil {
		full = store.Append(ctx, "large", acp.AgentMessageText(strings.Repeat("y", 10_000)))
	}
	deleted := store.Delete(ctx, "large")
	_, there := store.Get(ctx, "large")
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	if err == nil {
		t.Error("appended more than there is room for")
	}
	if deleted != nil || !errors.Is(there, sessionstore.ErrNotFound) {
		t.Errorf("deleted on a full disk (%v): %v, %v", full, deleted, there)
	}
	if small != nil || n != 2 {
		t.Errorf("what has room: %v, and %d updates are there", small, n)
	}
	must.Do(t, store.Append(ctx, "s", acp.AgentMessageText("two"), long))
	if n := count(); n != 4 {
		t.Errorf("%d updates are there", n)
	}
}
