package sessionstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/filelock"
	"github.com/acpgo/sdk/internal/test/must"
)

// watched opens a store that reports damages to the test.
func watched(t *testing.T, dir string, opts sessionstore.Options) (*sessionstore.Dir, func() []sessionstore.Damage) {
	t.Helper()
	var reports []sessionstore.Damage
	opts.Damaged = func(d sessionstore.Damage) { reports = append(reports, d) }
	store := must.Get(sessionstore.Open(dir, &opts))(t)
	t.Cleanup(func() { store.Close() })
	return store, func() []sessionstore.Damage {
		said := reports
		reports = nil
		return said
	}
}

func create(t *testing.T, store sessionstore.Store, id acp.SessionID, texts ...string) {
	t.Helper()
	must.Do(t, store.Create(t.Context(), sessionstore.Record{Info: sessionstore.Info{ID: id, Cwd: "/w"}}))
	for _, text := range texts {
		must.Do(t, store.Append(t.Context(), id, acp.AgentMessageText(text)))
	}
}

func listed(t *testing.T, store sessionstore.Store) (ids []acp.SessionID) {
	t.Helper()
	page := must.Get(store.List(t.Context(), sessionstore.Query{Limit: sessionstore.MaxLimit}))(t)
	for _, info := range page.Sessions {
		ids = append(ids, info.ID)
	}
	return ids
}

// No file has a name that is another one on a system that does not tell upper from lower case, is special to a
// system, or leads out of the folder.
func TestFileNames(t *testing.T) {
	seen := map[string]acp.SessionID{}
	ids := []acp.SessionID{
		"", "a", "A", "con", "CON", "nul", "..", ".", "a.b", "a b", "a ", "é", "É", "a/b", `a\b`, "a:b", "s-a", "h-a", "lock-0", "\x00",
		acp.SessionID(strings.Repeat("a", 100)), acp.SessionID(strings.Repeat("a", 101)), acp.SessionID(sessionstore.FileName("A")),
	}
	for _, id := range ids {
		name := sessionstore.FileName(id)
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q are both %s", id, other, name)
		}
		seen[name] = id
		if name != strings.ToLower(name) || len(name) > 110 || !filepath.IsLocal(name) ||
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || !strings.HasPrefix(name, "s-") && !strings.HasPrefix(name, "h-") {
			t.Errorf("%q is the file %q", id, name)
		}
	}
}

// A line that is damaged is left out and reported; those around it are there.
func TestDamagedLines(t *testing.T) {
	dir := t.TempDir()
	store, reported := watched(t, dir, sessionstore.Options{MaxUpdate: 1000})
	create(t, store, "s", "one", "two", "three")
	path := filepath.Join(dir, "s-s.jsonl")
	data := must.Get(os.ReadFile(path))(t)
	lines := strings.SplitAfter(string(data), "\n")
	damaged := lines[0] + strings.Replace(lines[1], `"two"`, `"two`, 1) + "\n" + strings.Repeat("x", 5000) + "\n" + lines[2]
	must.Do(t, os.WriteFile(path, []byte(damaged), 0o600))
	got := readAll(t, store)
	if want := []string{"", "one", "three"}; !slices.Equal(got["s"], want) {
		t.Errorf("there is %q, want %q", got["s"], want)
	}
	reports := reported()
	if len(reports) != 3 { // the one that was changed, an empty one, one that is too long
		t.Fatalf("reported are %v", reports)
	}
	for _, report := range reports {
		part := damaged[report.Offset : report.Offset+report.Length]
		if report.File != path || report.Torn || !strings.HasSuffix(part, "\n") || strings.Count(part, "\n") != 1 {
			t.Errorf("reported is %+v: %q", report, part)
		}
	}
}

// Heads that cannot be read are reported and left out of the list; other files are not looked at.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	store, reported := watched(t, dir, sessionstore.Options{})
	create(t, store, "s", "one")
	head := must.Get(os.ReadFile(filepath.Join(dir, "s-s.json")))(t)
	for name, text := range map[string]string{
		"s-empty.json":    "",
		"s-text.json":     "hello\n",
		"s-torn.json":     strings.TrimSuffix(string(head), "\n"),
		"s-copied.json":   string(head), // of another session
		"s-future.json":   strings.Replace(string(head), `"version":1`, `"version":2`, 1),
		"s-long.json":     `{"cwd":"` + strings.Repeat("x", 1<<20) + "\"}\n",
		"S-UPPER.json":    string(head),
		"readme.txt":      "hello",
		".DS_Store":       "\x00",
		"s-s.json.backup": string(head),
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must.Do(t, os.Mkdir(filepath.Join(dir, "s-dir.json"), 0o700))
	if got := listed(t, store); !slices.Equal(got, []acp.SessionID{"s"}) {
		t.Errorf("listed are %q", got)
	}
	var files []string
	for _, report := range reported() {
		files = append(files, filepath.Base(report.File))
	}
	slices.Sort(files)
	want := []string{"s-copied.json", "s-dir.json", "s-empty.json", "s-future.json", "s-long.json", "s-text.json", "s-torn.json"}
	if !slices.Equal(files, want) {
		t.Errorf("reported are %q, want %q", files, want)
	}
	for _, id := range []acp.SessionID{"empty", "copied", "future", "long", "dir"} {
		if r, err := store.Get(t.Context(), id); err == nil || errors.Is(err, sessionstore.ErrNotFound) {
			t.Errorf("getting %q: %+v, %v", id, r, err)
		}
		if err := store.Create(t.Context(), sessionstore.Record{Info: sessionstore.Info{ID: id}}); err == nil {
			t.Errorf("%q was replaced", id)
		}
	}
}

// holdLocks holds the locks of a store, as another process does that changes all of its sessions.
func holdLocks(t *testing.T, dir string) (release func()) {
	t.Helper()
	locks := must.Get(filepath.Glob(filepath.Join(dir, "lock-*")))(t)
	if len(locks) == 0 {
		t.Fatal("there are no locks")
	}
	var held []*filelock.Lock
	for _, path := range locks {
		held = append(held, must.Get(filelock.Try(path))(t))
	}
	return func() {
		for _, lock := range held {
			must.Do(t, lock.Unlock())
		}
	}
}

// What a creation, a change or a deletion has left that was cut off is removed. A list neither waits for who is changing
// a session, whose leftovers it would remove, nor forgets them.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	store, reported := watched(t, dir, sessionstore.Options{LockTime: time.Hour})
	create(t, store, "s", "one")
	create(t, store, "deleted", "two")
	must.Do(t, os.Remove(filepath.Join(dir, "s-deleted.json")))
	leftovers := []string{"s-deleted.jsonl", "s-gone.jsonl", "s-never.new", "s-s.new", "h-x.new"}
	for _, name := range leftovers[1:] {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("{}\n"), 0o600))
	}
	list := func(there bool) {
		t.Helper()
		if got := listed(t, store); !slices.Equal(got, []acp.SessionID{"s"}) {
			t.Errorf("listed are %q", got)
		}
		for _, name := range leftovers {
			if _, err := os.Stat(filepath.Join(dir, name)); there && err != nil || !there && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	release := holdLocks(t, dir)
	list(true)
	list(true)
	release()
	list(false)
	if got := readAll(t, store)["s"]; !slices.Equal(got, []string{"", "one"}) {
		t.Errorf("there is %q", got)
	}
	if reports := reported(); len(reports) != 0 {
		t.Errorf("reported are %v", reports)
	}
}

// What cannot be removed is reported once, and lists are as they are without it.
func TestLeftoverStays(t *testing.T) {
	dir := t.TempDir()
	store, reported := watched(t, dir, sessionstore.Options{})
	create(t, store, "s", "one")
	orphan := filepath.Join(dir, "s-gone.jsonl")
	sessionstore.Cut(store, func(*os.File, int64, []byte) { // as if the system refused
		if err := errors.Join(os.RemoveAll(orphan), os.MkdirAll(filepath.Join(orphan, "x"), 0o700)); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		must.Do(t, errors.Join(os.RemoveAll(orphan), os.WriteFile(orphan, nil, 0o600)))
		if got := listed(t, store); !slices.Equal(got, []acp.SessionID{"s"}) {
			t.Errorf("listed are %q", got)
		}
	}
	if reports := reported(); len(reports) != 1 || !strings.Contains(reports[0].Error(), "cannot be removed") {
		t.Errorf("reported are %v", reports)
	}
}

// With Sync, the folder reaches the disk when a file is new in it or gone.
func TestSync(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders cannot be synchronized here")
	}
	ctx, dir := t.Context(), t.TempDir()
	for _, sync := range []bool{true, false} {
		store, _ := watched(t, dir, sessionstore.Options{Sync: sync})
		var synced []string
		sessionstore.Synced(store, func(name string) { synced = append(synced, filepath.Base(name)) })
		update := acp.AgentMessageText("x")
		for _, step := range []struct {
			what string
			do   func() error
			want []string
		}{
			{"create", func() error { return store.Create(ctx, sessionstore.Record{Info: sessionstore.Info{ID: "s"}}) }, []string{"s-s.new", "."}},
			{"append", func() error { return store.Append(ctx, "s", update) }, []string{"s-s.jsonl", "."}},
			{"append again", func() error { return store.Append(ctx, "s", update) }, []string{"s-s.jsonl"}},
			{"change", func() error { return store.Change(ctx, "s", func(*sessionstore.Record) error { return nil }) }, []string{"s-s.new", "."}},
			{"delete", func() error { return store.Delete(ctx, "s") }, []string{".", "."}},
		} {
			synced = nil
			must.Do(t, step.do())
			if !sync {
				step.want = nil
			}
			if !slices.Equal(synced, step.want) {
				t.Errorf("%s, sync %v: synchronized are %q, want %q", step.what, sync, synced, step.want)
			}
		}
	}
}

// What would be too large is refused, and nothing of it is kept.
func TestBounds(t *testing.T) {
	ctx := t.Context()
	store, _ := watched(t, t.TempDir(), sessionstore.Options{MaxUpdate: 1000, MaxSession: 3000})
	create(t, store, "s")
	if err := store.Append(ctx, "s", acp.AgentMessageText("a"), acp.AgentMessageText(strings.Repeat("x", 1000))); !errors.Is(err, sessionstore.ErrTooLarge) {
		t.Errorf("a long update: %v", err)
	}
	n := 0
	for ; n < 10; n++ {
		if err := store.Append(ctx, "s", acp.AgentMessageText(strings.Repeat("x", 800))); errors.Is(err, sessionstore.ErrTooLarge) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 {
		t.Errorf("%d updates of 800 bytes have room in 3000", n)
	}
	if got := readAll(t, store)["s"]; len(got) != 1+n {
		t.Errorf("%d updates are there", len(got)-1)
	}
}

// Another process that holds a session is waited for, up to the end of the context or LockTime.
func TestLockTime(t *testing.T) {
	dir := t.TempDir()
	store, _ := watched(t, dir, sessionstore.Options{LockTime: 20 * time.Millisecond})
	create(t, store, "s")
	release := holdLocks(t, dir)
	if err := store.Append(t.Context(), "s", acp.AgentMessageText("x")); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("appending to a session that is held: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("given up")
	patient, _ := watched(t, dir, sessionstore.Options{})
	time.AfterFunc(10*time.Millisecond, func() { cancel(cause) })
	if err := patient.Append(ctx, "s", acp.AgentMessageText("x")); !errors.Is(err, cause) {
		t.Errorf("giving up: %v", err)
	}
	done := make(chan error)
	go func() { done <- patient.Append(t.Context(), "s", acp.AgentMessageText("y")) }()
	release()
	if err := <-done; err != nil {
		t.Errorf("when it is free: %v", err)
	}
	if got := readAll(t, store)["s"]; !slices.Equal(got, []string{"", "y"}) {
		t.Errorf("there is %q", got)
	}
}

func TestDefaultDir(t *testing.T) {
	home := t.TempDir()
	state := filepath.Join(home, "state")
	t.Setenv("HOME", home)
	t.Setenv("LocalAppData", filepath.Join(home, "local"))
	for _, test := range []struct{ xdg, want string }{
		{state, filepath.Join(state, "my-agent", "sessions")},
		{"relative", filepath.Join(home, ".local", "state", "my-agent", "sessions")},
		{"", filepath.Join(home, ".local", "state", "my-agent", "sessions")},
	} {
		t.Setenv("XDG_STATE_HOME", test.xdg)
		switch runtime.GOOS {
		case "windows":
			test.want = filepath.Join(home, "local", "my-agent", "sessions")
		case "darwin":
			test.want = filepath.Join(home, "Library", "Application Support", "my-agent", "sessions")
		}
		if got, err := sessionstore.DefaultDir("my-agent"); err != nil || got != test.want {
			t.Errorf("with XDG_STATE_HOME=%s: got %s, %v, want %s", test.xdg, got, err, test.want)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, "../x", "c:x", "/x"} {
		if got, err := sessionstore.DefaultDir(name); err == nil {
			t.Errorf("the program %q has %s", name, got)
		}
	}
}

// The format is read by other programs than this one: what it is does not change by accident.
func TestFormat(t *testing.T) {
	dir := t.TempDir()
	store, _ := watched(t, dir, sessionstore.Options{})
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	must.Do(t, store.Create(t.Context(), sessionstore.Record{
		Info:  sessionstore.Info{ID: "s", Cwd: "/w", AdditionalDirectories: []string{"/x"}, Title: "T", Created: at, Updated: at},
		State: json.RawMessage(`{"a": 1}`),
	}))
	must.Do(t, store.Append(t.Context(), "s", acp.AgentMessageText("a\nb"), acp.ModeUpdate("m")))
	for name, want := range map[string]string{
		"s-s.json": `{"version":1,"protocol":1,"id":"s","cwd":"/w","additionalDirectories":["/x"],"title":"T",` +
			`"created":"2026-01-02T03:04:05.000006Z","updated":"2026-01-02T03:04:05.000006Z"}` + "\n" + `{"a":1}` + "\n",
		"s-s.jsonl": `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\nb"}}` + "\n" +
			`{"sessionUpdate":"current_mode_update","currentModeId":"m"}` + "\n",
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v: got\n%swant\n%s", name, err, got, want)
		}
	}
}

// A session that cannot be deleted keeps what it has.
func TestDeletionFails(t *testing.T) {
	dir := t.TempDir()
	store, _ := watched(t, dir, sessionstore.Options{})
	create(t, store, "a", "kept")
	// A folder with something in it cannot be removed.
	head := filepath.Join(dir, "s-a.json")
	must.Do(t, os.Rename(head, head+".old"))
	must.Do(t, os.MkdirAll(filepath.Join(head, "x"), 0o700))
	if err := store.Delete(t.Context(), "a"); err == nil {
		t.Error("deleted")
	}
	must.Do(t, os.RemoveAll(head))
	must.Do(t, os.Rename(head+".old", head))
	if got := readAll(t, store)["a"]; !slices.Equal(got, []string{"", "kept"}) {
		t.Errorf("there is %q", got)
	}
}
