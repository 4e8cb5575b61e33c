//go:build unix

package sessionstore_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
)

// What is not a regular file is not waited for, not followed and not replaced.
func TestNotRegular(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	must.Do(t, os.WriteFile(outside, []byte("as it was"), 0o600))
	store, reported := watched(t, dir, sessionstore.Options{})
	create(t, store, "real", "one")
	create(t, store, "log-fifo")
	create(t, store, "log-link")
	fifo := func(name string) {
		must.Do(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	link := func(name, to string) {
		must.Do(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	fifo("s-fifo.json")
	fifo("s-log-fifo.jsonl")
	fifo("s-orphan.jsonl")
	link("s-link.json", outside)
	link("s-inner.json", "s-real.json")
	link("s-zero.json", "/dev/zero")
	link("s-log-link.jsonl", outside)
	link("s-dangling.json", filepath.Join(filepath.Dir(outside), "none"))
	link("s-real.new", outside)
	ctx := t.Context()

	if got := listed(t, store); !slices.Equal(got, []acp.SessionID{"real", "log-link", "log-fifo"}) {
		t.Errorf("listed are %q", got)
	}
	if reports := reported(); len(reports) != 5 {
		t.Errorf("reported are %v", reports)
	}
	for _, id := range []acp.SessionID{"fifo", "link", "inner", "zero", "dangling"} {
		if _, err := store.Get(ctx, id); err == nil || errors.Is(err, sessionstore.ErrNotFound) {
			t.Errorf("getting %s: %v", id, err)
		}
		if err := store.Create(ctx, sessionstore.Record{Info: sessionstore.Info{ID: id}}); err == nil {
			t.Errorf("%s was replaced", id)
		}
	}
	for _, id := range []acp.SessionID{"fifo", "link", "log-fifo", "log-link", "dangling"} {
		if err := store.Append(ctx, id, acp.AgentMessageText("x")); err == nil {
			t.Errorf("%s was appended to", id)
		}
		for _, err := range store.Updates(ctx, id) {
			if err == nil {
				t.Errorf("%s has updates", id)
			}
		}
	}
	// What is in the way of a new file is replaced, and not written through.
	if err := store.Change(ctx, "real", func(r *sessionstore.Record) error { r.Title = "T"; return nil }); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "as it was" {
		t.Errorf("outside there is %q, %v", text, err)
	}
	// A deletion takes away the names, and not what they lead to.
	for _, id := range []acp.SessionID{"link", "fifo", "log-link", "log-fifo"} {
		if err := store.Delete(ctx, id); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "as it was" {
		t.Errorf("outside there is %q, %v", text, err)
	}
}

func TestLockIsAPipe(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "lock-0"), 0o600))
	if store, err := sessionstore.Open(dir, nil); err == nil {
		store.Close()
		t.Error("opened")
	}
}

func TestPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	store, _ := watched(t, dir, sessionstore.Options{Sync: true})
	create(t, store, "s", "one")
	for path := dir; len(path) > len(filepath.Dir(filepath.Dir(dir))); path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
		}
	}
	files := must.Get(os.ReadDir(dir))(t)
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, %v", file.Name(), info.Mode(), err)
		}
	}
	for _, mode := range []os.FileMode{0o770, 0o702, 0o777 | os.ModeSticky} {
		must.Do(t, os.Chmod(dir, mode))
		if store, err := sessionstore.Open(dir, nil); err == nil || !strings.Contains(err.Error(), "others can write") {
			t.Errorf("a folder with the mode %v: %v", mode, err)
			if err == nil {
				store.Close()
			}
		}
	}
}

// limitFiles lets no file of this process grow beyond a size, as a disk that is full does.
func limitFiles(t *testing.T, size uint64) (restore func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	limit := old
	limit.Cur = size
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	return func() {
		must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	}
}

// Without room on the disk everything fails as a whole, leaves nothing behind, and continues when there is room.
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
	ctx, dir := t.Context(), t.TempDir()
	store, reported := watched(t, dir, sessionstore.Options{})
	create(t, store, "s", "one")
	before := readAll(t, store)
	files := func() (names []string) {
		entries := must.Get(os.ReadDir(dir))(t)
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	names := files()
	long := strings.Repeat("x", 900<<10)
	state := json.RawMessage(`"` + long + `"`)
	restore := limitFiles(t, 512<<10)
	err := map[string]error{
		"append": store.Append(ctx, "s", acp.AgentMessageText("two"), acp.AgentMessageText(long)),
		"change": store.Change(ctx, "s", func(r *sessionstore.Record) error { r.State = state; return nil }),
		"create": store.Create(ctx, sessionstore.Record{Info: sessionstore.Info{ID: "t"}, State: state}),
	}
	small := store.Append(ctx, "s", acp.AgentMessageText("small"))
	restore()
	for what, err := range err {
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("%s: got the error %v", what, err)
		}
	}
	if small != nil {
		t.Errorf("what has room is not kept: %v", small)
	}
	if got := files(); !slices.Equal(got, names) {
		t.Errorf("there are the files %q, and were %q", got, names)
	}
	want := before.after(operation{kind: "append", id: "s", texts: []string{"small"}})
	if got := readAll(t, store); !got.equal(want) {
		t.Errorf("there is %v, want %v", got, want)
	}
	if err := store.Append(ctx, "s", acp.AgentMessageText(long)); err != nil {
		t.Error(err)
	}
	if reports := reported(); len(reports) != 0 {
		t.Errorf("reported are %v", reports)
	}
}

// Why a folder is not opened that can only be read is said in words.
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := filepath.Join(t.TempDir(), "sessions")
	store, _ := watched(t, dir, sessionstore.Options{})
	create(t, store, "a", "one")
	must.Do(t, os.Remove(filepath.Join(dir, "lock-0")))
	for path, mode := range map[string]os.FileMode{dir: 0o500, filepath.Dir(dir): 0o500} {
		must.Do(t, os.Chmod(path, mode))
		t.Cleanup(func() {
			if err := os.Chmod(path, 0o700); err != nil {
				t.Error(err)
			}
		})
	}
	for _, path := range []string{dir, filepath.Join(filepath.Dir(dir), "new")} {
		_, err := sessionstore.Open(path, nil)
		if !errors.Is(err, sessionstore.ErrReadOnly) || !errors.Is(err, os.ErrPermission) {
			t.Errorf("opening %s: %v", path, err)
		}
	}
}
