package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// Open opens a store that keeps its sessions in dir, a directory for this store alone. If it is called again with the
// same directory, in this process or in another one, the store must have the same sessions. It fails the test if it
// cannot open the store. The tests close the result.
type Open func(tb testing.TB, dir string) sessionstore.Store

// Run tests a store: the behavior of its methods, with any ids, and through several handles and goroutines at once.
func Run(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(*suite)
	}{
		{"Records", (*suite).records},
		{"Refused", (*suite).refused},
		{"IDs", (*suite).ids},
		{"Change", (*suite).change},
		{"Updates", (*suite).updates},
		{"UpdatesInLoop", (*suite).updatesInLoop},
		{"AtOnce", (*suite).atOnce},
		{"Delete", (*suite).delete},
		{"List", (*suite).list},
		{"ListWhileChanging", (*suite).listWhileChanging},
		{"ListAtOnce", (*suite).listAtOnce},
		{"Cursors", (*suite).cursors},
		{"Fork", (*suite).fork},
		{"Context", (*suite).context},
		{"Close", (*suite).close},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&suite{t, open, t.TempDir()}) })
	}
}

// suite is one test.
type suite struct {
	*testing.T
	open Open
	dir  string
}

// store opens the store; it may be called several times.
func (s *suite) store() sessionstore.Store {
	s.Helper()
	dir := filepath.Join(s.dir, "store")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.Fatal(err)
	}
	store := s.open(s.T, dir)
	s.Cleanup(func() {
		if err := store.Close(); err != nil && !errors.Is(err, sessionstore.ErrClosed) {
			s.Errorf("closing: %v", err)
		}
	})
	return store
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) want(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Errorf("got the error %v, want %v", err, target)
	}
}

// get returns a session, which must be there.
func (s *suite) get(ctx context.Context, store sessionstore.Store, id acp.SessionID) sessionstore.Record {
	s.Helper()
	r, err := store.Get(ctx, id)
	s.must(err)
	return r
}

// fail requires that everything that is done with a session fails.
func (s *suite) fail(ctx context.Context, store sessionstore.Store, id acp.SessionID, want error) {
	s.Helper()
	_, got := store.Get(ctx, id)
	_, read := history(ctx, store, id)
	changed := store.Change(ctx, id, func(*sessionstore.Record) error { return nil })
	for _, err := range []error{got, read, changed, store.Append(ctx, id, s.text("x"))} {
		s.want(err, want)
	}
}

// began is the time of the first session in tests; others are updated seconds after it.
var began = time.Date(2026, 3, 4, 5, 6, 7, 89_012_000, time.UTC)

func record(id acp.SessionID, seconds int) sessionstore.Record {
	at := began.Add(time.Duration(seconds) * time.Second)
	return sessionstore.Record{Info: sessionstore.Info{ID: id, Cwd: "/w", Created: at, Updated: at}}
}

// text returns an update with a text, and textOf is the inverse.
func (s *suite) text(format string, args ...any) acp.SessionUpdate {
	return acp.AgentMessageText(fmt.Sprintf(format, args...))
}

func (s *suite) textOf(u acp.SessionUpdate) string {
	if _, ok := u.Variant.(*acp.SessionUpdateAgentMessageChunk); !ok {
		return fmt.Sprintf("not a text: %T", u.Variant)
	}
	return u.AgentText()
}

// update returns an update, given its JSON.
func (s *suite) update(text string) (u acp.SessionUpdate) {
	s.Helper()
	s.must(json.Unmarshal([]byte(text), &u))
	return u
}

// history reads the updates of a session.
func history(ctx context.Context, store sessionstore.Store, id acp.SessionID) (all []acp.SessionUpdate, err error) {
	for update, err := range store.Updates(ctx, id) {
		if err != nil {
			return all, err
		}
		all = append(all, update)
	}
	return all, nil
}

func (s *suite) history(store sessionstore.Store, id acp.SessionID) (texts []string) {
	s.Helper()
	all, err := history(s.Context(), store, id)
	s.must(err)
	for _, update := range all {
		texts = append(texts, s.textOf(update))
	}
	return texts
}

// listAll returns the ids of all sessions, page by page.
func (s *suite) listAll(store sessionstore.Store, q sessionstore.Query) (ids []acp.SessionID) {
	s.Helper()
	for {
		page, err := store.List(s.Context(), q)
		s.must(err)
		if len(page.Sessions) > q.Size() {
			s.Fatalf("a page has %d sessions, of at most %d", len(page.Sessions), q.Size())
		}
		for _, info := range page.Sessions {
			ids = append(ids, info.ID)
		}
		if page.Next == "" {
			return ids
		}
		if len(page.Sessions) == 0 || len(ids) > 1e6 {
			s.Fatal("the pages do not end")
		}
		q.Cursor = page.Next
	}
}

func (s *suite) equal(what string, got, want any) {
	s.Helper()
	g, err := json.Marshal(got)
	s.must(err)
	w, err := json.Marshal(want)
	s.must(err)
	if string(g) != string(w) {
		s.Errorf("%s: got %.2000s\nwant %.2000s", what, g, w)
	}
}

// A created session is found unchanged through every handle, and after closing the store.
func (s *suite) records() {
	ctx, store, other := s.Context(), s.store(), s.store()
	at := time.Date(2026, 7, 1, 12, 30, 0, 123_456_789, time.FixedZone("", 7200))
	want := sessionstore.Record{
		Info: sessionstore.Info{
			ID: "sess_1", Cwd: `C:\work <&>`, AdditionalDirectories: []string{"/b", "/a", "/é"},
			Title: "A \"title\"\nof two lines, \u2028 and 😀", Created: at, Updated: at.Add(time.Hour),
		},
		State: json.RawMessage(`{"big": 12345678901234567890, "text": "a\nb"}`),
	}
	s.must(store.Create(ctx, want))
	s.want(store.Create(ctx, want), sessionstore.ErrExists)
	s.want(other.Create(ctx, record("sess_1", 0)), sessionstore.ErrExists)
	s.must(store.Create(ctx, record("sess_2", 0)))
	s.fail(ctx, store, "sess_3", sessionstore.ErrNotFound)

	want.Created, want.Updated = at.UTC().Truncate(time.Microsecond), at.Add(time.Hour).UTC().Truncate(time.Microsecond)
	check := func(store sessionstore.Store) {
		s.Helper()
		got := s.get(ctx, store, "sess_1")
		s.equal("the session", got, want)
		if got.Created.Location() != time.UTC || got.Updated.Location() != time.UTC {
			s.Errorf("the times are %v and %v, not in UTC", got.Created, got.Updated)
		}
		page, err := store.List(ctx, sessionstore.Query{})
		s.must(err)
		if len(page.Sessions) != 2 || page.Next != "" {
			s.Fatalf("got the page %+v", page)
		}
		s.equal("the session in the list", page.Sessions[0], want.Info)
		got = s.get(ctx, store, "sess_2")
		if got.State != nil || got.Title != "" || len(got.AdditionalDirectories) != 0 {
			s.Errorf("a session without anything is %+v", got)
		}
	}
	check(store)
	check(other)
	s.must(store.Close())
	check(s.store())
}

// Records that cannot be stored are refused, and nothing changes.
func (s *suite) refused() {
	ctx, store := s.Context(), s.store()
	for _, id := range []acp.SessionID{"", acp.SessionID(strings.Repeat("x", sessionstore.MaxID+1)), "\xff"} {
		s.want(store.Create(ctx, record(id, 0)), sessionstore.ErrInvalid)
		s.fail(ctx, store, id, sessionstore.ErrNotFound)
		s.must(store.Delete(ctx, id))
	}
	s.must(store.Create(ctx, record("kept", 0)))
	s.must(store.Append(ctx, "kept", s.text("x")))
	// The size of an Info is that of its JSON.
	for title, want := range map[string]error{
		strings.Repeat("x", sessionstore.MaxInfo-1<<10):      nil,
		strings.Repeat("\x01", sessionstore.MaxInfo/6-1<<10): nil,
		strings.Repeat("\x01", sessionstore.MaxInfo/6):       sessionstore.ErrTooLarge,
	} {
		r := record("long", 1)
		r.Title = title
		if s.want(store.Create(ctx, r), want); want == nil {
			s.equal("a long title", s.get(ctx, store, "long"), r)
			s.equal("the list", s.listAll(store, sessionstore.Query{}), []string{"long", "kept"})
			s.must(store.Delete(ctx, "long"))
		}
	}
	for name, test := range map[string]struct {
		change func(*sessionstore.Record)
		want   error
	}{
		"title": {func(r *sessionstore.Record) { r.Title = strings.Repeat("x", sessionstore.MaxInfo) },
			sessionstore.ErrTooLarge},
		"not UTF-8": {func(r *sessionstore.Record) { r.Title = "\xff" }, sessionstore.ErrInvalid},
		"folders": {func(r *sessionstore.Record) { r.AdditionalDirectories = make([]string, sessionstore.MaxInfo) },
			sessionstore.ErrTooLarge},
		"state": {func(r *sessionstore.Record) { r.State = make([]byte, sessionstore.MaxState+1) },
			sessionstore.ErrTooLarge},
		"state form": {func(r *sessionstore.Record) { r.State = json.RawMessage(`{`) }, sessionstore.ErrInvalid},
		"year":       {func(r *sessionstore.Record) { r.Updated = time.Unix(1<<50, 0) }, sessionstore.ErrInvalid},
	} {
		r := record("new", 1)
		test.change(&r)
		if err := store.Create(ctx, r); !errors.Is(err, test.want) {
			s.Errorf("creating with a bad %s: got %v, want %v", name, err, test.want)
		}
		err := store.Change(ctx, "kept", func(r *sessionstore.Record) error {
			r.Title = "changed"
			test.change(r)
			return nil
		})
		if !errors.Is(err, test.want) {
			s.Errorf("changing to a bad %s: got %v, want %v", name, err, test.want)
		}
	}
	if err := store.Append(ctx, "kept", s.text("good"), *new(acp.SessionUpdate)); err == nil {
		s.Error("an update without a variant was kept")
	}
	s.equal("the session", s.get(ctx, store, "kept"), record("kept", 0))
	s.equal("its updates", s.history(store, "kept"), []string{"x"})
	s.equal("the list", s.listAll(store, sessionstore.Query{}), []string{"kept"})
}

// hostileIDs are all different, and none of them may be used as a path.
func hostileIDs() []acp.SessionID {
	ids := []acp.SessionID{
		"a", "A", "b ", "b", "b.", "c:", "c::$DATA", "con", "CON", "nul.json", "..", ".", "../a", "../../../etc/passwd",
		"/etc/passwd",
		`..\a`, `\\host\share`, "a/b", "a/../b", "a%2fb", "a\x00b", "a\nb", "\u00e9", "e\u0301", "É", "ſ", "s", "K", "\u212a", "*", "?", "[a]", "'", `"`,
		"'; DROP TABLE sessions; --", "{}", "\\u0061", "~", "$HOME", "-rf", "lock-0", "s-a", "sess_ABC", "sess_abc",
		"sess_Abc", "a.json", "a.jsonl",
		acp.SessionID(strings.Repeat("x", sessionstore.MaxID)), acp.SessionID(strings.Repeat("x", sessionstore.MaxID-1)),
		acp.SessionID(strings.Repeat("é", sessionstore.MaxID/2)), acp.SessionID(strings.Repeat("../", 50)), "\ufeffa",
		"\u202ea",
	}
	for n := 90; n < 260; n += 9 {
		ids = append(ids, acp.SessionID(strings.Repeat("y", n)))
	}
	return ids
}

// Any text can be an id, and is different from any other session's.
func (s *suite) ids() {
	ctx, store := s.Context(), s.store()
	for i, id := range hostileIDs() {
		s.must(store.Create(ctx, record(id, i)))
		s.must(store.Append(ctx, id, s.text("%s", id)))
	}
	for i, id := range hostileIDs() {
		got := s.get(ctx, store, id)
		if want := record(id, i); got.ID != id || !got.Updated.Equal(want.Updated) {
			s.Errorf("%.40q: got %+v", id, got)
		}
		s.equal(fmt.Sprintf("the updates of %.40q", id), s.history(store, id), []string{string(id)})
	}
	want := hostileIDs()
	slices.Reverse(want)
	s.equal("the list", s.listAll(store, sessionstore.Query{Limit: 7}), want)
	for i, id := range hostileIDs() {
		s.must(store.Delete(ctx, id))
		if left := s.listAll(store, sessionstore.Query{}); len(left) != len(want)-i-1 {
			s.Fatalf("after deleting %d sessions, %.40q last, %d of %d are left", i+1, id, len(left), len(want))
		}
	}
	entries, err := os.ReadDir(s.dir)
	s.must(err)
	if len(entries) != 1 {
		s.Errorf("beside the folder of the store there are %v", entries)
	}
}

// A change is made completely or not at all.
func (s *suite) change() {
	ctx, store, other := s.Context(), s.store(), s.store()
	s.must(store.Create(ctx, record("s", 0)))
	s.must(store.Create(ctx, record("t", 1)))
	stop := errors.New("stop")
	s.want(store.Change(ctx, "s", func(r *sessionstore.Record) error {
		r.Title = "not kept"
		return stop
	}), stop)
	s.want(store.Change(ctx, "none", func(*sessionstore.Record) error { return nil }), sessionstore.ErrNotFound)
	want := record("s", 5)
	want.Title, want.Cwd, want.AdditionalDirectories, want.State = "T", "/other", []string{"/x"}, json.RawMessage(`[1]`)
	want.Created = began
	s.must(other.Change(ctx, "s", func(r *sessionstore.Record) error {
		s.equal("before", *r, record("s", 0))
		created := want
		created.ID, created.Created = "t", began.Add(time.Hour) // which cannot be changed
		*r = created
		return nil
	}))
	s.equal("after", s.get(ctx, store, "s"), want)
	s.equal("the list", s.listAll(store, sessionstore.Query{}), []string{"s", "t"})
	s.must(store.Change(ctx, "s", func(r *sessionstore.Record) error {
		r.State, r.Title, r.AdditionalDirectories = nil, "", nil
		return nil
	}))
	if got := s.get(ctx, other, "s"); got.State != nil || got.Title != "" || len(got.AdditionalDirectories) != 0 {
		s.Errorf("what was taken away is still there: %+v", got)
	}
}

// increment adds one to the number that is a session's state.
func increment(r *sessionstore.Record) error {
	n := 0
	if r.State != nil {
		if err := json.Unmarshal(r.State, &n); err != nil {
			return err
		}
	}
	r.State = json.RawMessage(fmt.Sprint(n + 1))
	return nil
}

// Updates are returned unchanged, in order.
func (s *suite) updates() {
	ctx, store, other := s.Context(), s.store(), s.store()
	s.must(store.Create(ctx, record("s", 0)))
	s.must(store.Create(ctx, record("t", 0)))
	if all := s.history(store, "s"); len(all) != 0 {
		s.Errorf("a new session has the updates %v", all)
	}
	s.fail(ctx, store, "none", sessionstore.ErrNotFound)
	s.must(store.Append(ctx, "s")) // nothing

	entry := acp.PlanEntry{Content: "do it", Priority: acp.PlanEntryPriorityHigh, Status: acp.PlanEntryStatusPending}
	want := []acp.SessionUpdate{
		s.update(`{"sessionUpdate":"of_the_future","number":12345678901234567890,"_meta":{"a":[1.50]}}`),
		s.update(`{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"whole"}]}`),
		s.update(`{"sessionUpdate":"terminal_update","terminalId":"t","output":{"data":"QUJD"},"exitStatus":null}`),
		s.text("line\nline\u2028\x00\x1f\"\\ </script> 😀"),
		s.text(""),
		s.text("%s", strings.Repeat("é", 300_000)),
	}
	// In versions other than the first, some of these are of unknown kinds.
	for _, update := range []acp.SessionUpdate{
		acp.StartToolCall("c", "Edit", acp.WithKind(acp.ToolKindEdit), acp.WithLocation("/a", 3),
			acp.WithInput(map[string]any{"n": 1.5})),
		acp.UpdateToolCall("c", acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithContent(acp.ToolEdit("/a", "", "new"))),
		acp.UpdatePlan(entry, entry),
		acp.ModeUpdate("ask"),
		acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{
			MessageID: acp.Some(acp.MessageID("n")), Content: acp.ImageBlock(strings.Repeat("QUJD", 100_000), "image/png"),
		}),
	} {
		text, err := json.Marshal(update)
		s.must(err)
		want = append(want, s.update(string(text)))
	}
	for i, update := range want {
		if i%2 == 0 {
			s.must(store.Append(ctx, "s", update))
		} else {
			s.must(other.Append(ctx, "s", update))
		}
	}
	s.must(store.Append(ctx, "t", want...))
	s.must(store.Close())
	for _, store := range []sessionstore.Store{other, s.store()} {
		for _, id := range []acp.SessionID{"s", "t"} {
			got, err := history(ctx, store, id)
			s.must(err)
			s.equal("the updates", got, want)
		}
	}
}

// A loop over updates may be left early, may call the store, and may run concurrently with others.
func (s *suite) updatesInLoop() {
	ctx, store := s.Context(), s.store()
	s.must(store.Create(ctx, record("s", 0)))
	const n = 300
	for i := range n {
		s.must(store.Append(ctx, "s", s.text("%d", i)))
	}
	for range store.Updates(ctx, "s") {
		break
	}
	seen := 0
	for update, err := range store.Updates(ctx, "s") {
		s.must(err)
		if s.textOf(update) != fmt.Sprint(seen) && seen < n {
			s.Fatalf("update %d is %s", seen, s.textOf(update))
		}
		if seen++; seen > n {
			continue // appended in the meantime
		}
		switch seen {
		case 10:
			s.must(store.Append(ctx, "s", s.text("more")))
		case 20:
			s.must(store.Change(ctx, "s", func(r *sessionstore.Record) error { r.Title = "in the loop"; return nil }))
		case 30:
			s.must(store.Create(ctx, record("t", 0)))
		case 40:
			s.equal("in the loop, the list", s.listAll(store, sessionstore.Query{}), []string{"t", "s"})
		case 50:
			if all := s.history(store, "s"); len(all) != n+1 {
				s.Errorf("the inner loop sees %d updates", len(all))
			}
		case 60:
			s.must(store.Delete(ctx, "t"))
		}
	}
	if seen < n || seen > n+1 {
		s.Errorf("the loop saw %d updates", seen)
	}
	if all := s.history(store, "s"); len(all) != n+1 {
		s.Errorf("afterwards there are %d updates", len(all))
	}
}

// If several append and change at once, nothing is lost, the updates of each stay in order, and those of one call stay
// together.
func (s *suite) atOnce() {
	const workers, calls, each = 6, 25, 3
	ctx := s.Context()
	first := s.store()
	s.must(first.Create(ctx, record("s", 0)))
	s.must(first.Create(ctx, record("t", 0)))
	var group sync.WaitGroup
	for w := range workers {
		store := first
		if w%2 == 1 {
			store = s.store()
		}
		group.Go(func() {
			for i := range calls {
				var updates []acp.SessionUpdate
				for k := range each {
					updates = append(updates, s.text("%d %d", w, i*each+k))
				}
				for _, id := range []acp.SessionID{"s", "t"} {
					if err := errors.Join(store.Append(ctx, id, updates...), store.Change(ctx, id, increment)); err != nil {
						s.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	for _, id := range []acp.SessionID{"s", "t"} {
		all := s.history(first, id)
		if len(all) != workers*calls*each {
			s.Errorf("%s has %d updates", id, len(all))
		}
		if got, want := s.get(ctx, first, id), fmt.Sprint(workers*calls); string(got.State) != want {
			s.Errorf("after %s changes the state of %s is %s", want, id, got.State)
		}
		next := map[int]int{}
		for i, line := range all {
			var w, n int
			if _, err := fmt.Sscanf(line, "%d %d", &w, &n); err != nil {
				s.Fatalf("%q: %v", line, err)
			}
			if n != next[w] {
				s.Fatalf("%s: update %d of worker %d comes where %d should", id, n, w, next[w])
			}
			next[w]++
			if n%each > 0 && !strings.HasPrefix(all[i-1], fmt.Sprint(w, " ")) {
				s.Fatalf("%s: %q comes between the updates of one call", id, all[i-1])
			}
		}
	}
}

// A deleted session is gone, and does not come back with a new session of the same id.
func (s *suite) delete() {
	ctx, store, other := s.Context(), s.store(), s.store()
	for _, id := range []acp.SessionID{"s", "t"} {
		s.must(store.Create(ctx, record(id, 0)))
		s.must(store.Append(ctx, id, s.text("old %s", id)))
		s.must(store.Change(ctx, id, func(r *sessionstore.Record) error { r.State = json.RawMessage(`"old"`); return nil }))
	}
	s.equal("the list", s.listAll(other, sessionstore.Query{}), []string{"t", "s"})
	s.must(store.Delete(ctx, "s"))
	s.must(store.Delete(ctx, "s"))
	s.must(other.Delete(ctx, "s"))
	for _, store := range []sessionstore.Store{store, other} {
		s.fail(ctx, store, "s", sessionstore.ErrNotFound)
		s.equal("the list", s.listAll(store, sessionstore.Query{}), []string{"t"})
	}
	s.must(other.Create(ctx, record("s", 1)))
	s.must(store.Append(ctx, "s", s.text("new")))
	s.equal("the new session", s.get(ctx, store, "s"), record("s", 1))
	s.equal("its updates", s.history(other, "s"), []string{"new"})
	s.equal("the other session's updates", s.history(other, "t"), []string{"old t"})
}

// Lists contain every session once and in order, even if two were updated at the same time, and only those of a
// directory.
func (s *suite) list() {
	ctx, store, other := s.Context(), s.store(), s.store()
	if all := s.listAll(store, sessionstore.Query{}); len(all) != 0 {
		s.Errorf("an empty store has %v", all)
	}
	const n = 123
	var want, even []acp.SessionID
	for i := range n {
		r := record(acp.SessionID(fmt.Sprintf("s%03d", i)), i/3) // three with each time
		want = append(want, r.ID)
		if i%2 == 0 {
			r.Cwd = "/even"
			even = append(even, r.ID)
		}
		s.must(store.Create(ctx, r))
	}
	slices.Reverse(want)
	slices.Reverse(even)
	for _, limit := range []int{0, 1, 2, 50, n - 1, n, n + 1, sessionstore.MaxLimit * 10} {
		q := sessionstore.Query{Limit: limit}
		s.equal(fmt.Sprintf("by %d", limit), s.listAll(store, q), want)
		q.Cwd = "/even"
		s.equal(fmt.Sprintf("by %d of a folder", limit), s.listAll(other, q), even)
		q.Cwd = "/ev"
		if none := s.listAll(store, q); len(none) != 0 {
			s.Errorf("a folder without sessions has %v", none)
		}
	}
	s.must(store.Change(ctx, "s000", func(r *sessionstore.Record) error { r.Updated = began.Add(time.Hour); return nil }))
	s.must(store.Append(ctx, "s001", s.text("appending does not move a session")))
	want = append([]acp.SessionID{"s000"}, want[:n-1]...)
	s.equal("after a change", s.listAll(other, sessionstore.Query{}), want)
	// The clock may have been set back in the meantime.
	s.must(other.Change(ctx, "s000", func(r *sessionstore.Record) error { r.Updated = began.Add(-time.Hour); return nil }))
	want = append(want[1:], "s000")
	s.equal("after a change back", s.listAll(store, sessionstore.Query{}), want)
	s.equal("after a change back, by pages", s.listAll(store, sessionstore.Query{Limit: 7}), want)
}

// Lists do not fail because sessions come and go at the same time, and contain those that stay.
func (s *suite) listAtOnce() {
	const workers, rounds = 3, 30
	ctx, store := s.Context(), s.store()
	for _, id := range []acp.SessionID{"stays1", "stays2"} {
		s.must(store.Create(ctx, record(id, 0)))
	}
	var group sync.WaitGroup
	for w := range workers {
		other := s.store()
		group.Go(func() {
			for i := range rounds {
				id := acp.SessionID(fmt.Sprintf("goes%d-%d", w, i%2))
				err := errors.Join(other.Create(ctx, record(id, i)), other.Append(ctx, id, s.text("x")), other.Delete(ctx, id))
				if err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		group.Go(func() {
			for range rounds {
				page, err := store.List(ctx, sessionstore.Query{})
				if err != nil {
					s.Error(err)
					return
				}
				stay := 0
				for _, info := range page.Sessions {
					if strings.HasPrefix(string(info.ID), "stays") {
						stay++
					}
					for _, err := range store.Updates(ctx, info.ID) {
						if err != nil && !errors.Is(err, sessionstore.ErrNotFound) {
							s.Error(err)
						}
					}
				}
				if stay != 2 || len(page.Sessions) > 2+workers {
					s.Errorf("listed are %v", page.Sessions)
				}
			}
		})
	}
	group.Wait()
	s.equal("what stays", s.listAll(store, sessionstore.Query{}), []string{"stays2", "stays1"})
}

// A session that is not changed is on one page, whatever happens to others between the pages.
func (s *suite) listWhileChanging() {
	ctx, store, other := s.Context(), s.store(), s.store()
	const n = 60
	for i := range n {
		s.must(store.Create(ctx, record(acp.SessionID(fmt.Sprintf("s%02d", i)), i)))
	}
	seen := map[acp.SessionID]int{}
	q := sessionstore.Query{Limit: 5}
	for page := 0; ; page++ {
		got, err := store.List(ctx, q)
		s.must(err)
		for _, info := range got.Sessions {
			seen[info.ID]++
		}
		if q.Cursor = got.Next; q.Cursor == "" {
			break
		}
		// Even-numbered sessions come and go: the last one of this page, one after it, and a new one at the top.
		last := got.Sessions[len(got.Sessions)-1]
		if (n-1-(page*5+4))%2 == 0 {
			s.must(other.Delete(ctx, last.ID))
		}
		s.must(other.Change(ctx, "s00", func(r *sessionstore.Record) error {
			r.Updated = began.Add(time.Duration(n+page) * time.Second)
			return nil
		}))
		s.must(other.Create(ctx, record(acp.SessionID(fmt.Sprintf("new%02d", page)), n+page)))
	}
	for i := 1; i < n; i += 2 {
		if id := acp.SessionID(fmt.Sprintf("s%02d", i)); seen[id] != 1 {
			s.Errorf("%s was listed %d times", id, seen[id])
		}
	}
}

// A cursor that the store did not create is refused.
func (s *suite) cursors() {
	ctx, store := s.Context(), s.store()
	s.must(store.Create(ctx, record("s", 0)))
	for _, cursor := range []string{"bogus", "!", "0", "{}", "\x00", "e30", strings.Repeat("A", 1<<20), "../s"} {
		_, err := store.List(ctx, sessionstore.Query{Cursor: cursor})
		if !errors.Is(err, sessionstore.ErrCursor) {
			s.Errorf("the cursor %.20q: got the error %v", cursor, err)
		}
	}
}

// A fork begins with the other session's state and updates, and then changes independently.
func (s *suite) fork() {
	ctx, store := s.Context(), s.store()
	r := record("s", 0)
	r.State, r.Title = json.RawMessage(`{"a":1}`), "old"
	s.must(store.Create(ctx, r))
	var want []string
	for i := range 200 {
		s.must(store.Append(ctx, "s", s.text("%d", i)))
		want = append(want, fmt.Sprint(i))
	}
	to := record("t", 1)
	to.Title = "new"
	s.want(sessionstore.Fork(ctx, store, "none", to.Info), sessionstore.ErrNotFound)
	s.want(sessionstore.Fork(ctx, store, "s", record("s", 0).Info), sessionstore.ErrExists)
	s.must(sessionstore.Fork(ctx, store, "s", to.Info))
	s.must(store.Append(ctx, "t", s.text("own")))
	s.equal("the first", s.history(store, "s"), want)
	s.equal("the fork", s.history(store, "t"), append(want, "own"))
	got := s.get(ctx, store, "t")
	to.State = r.State
	s.equal("the fork", got, to)
}

// Calls with a context that has ended fail with its cause.
func (s *suite) context() {
	store := s.store()
	s.must(store.Create(s.Context(), record("s", 0)))
	s.must(store.Append(s.Context(), "s", s.text("x"), s.text("y")))
	cause := errors.New("given up")
	ctx, cancel := context.WithCancelCause(s.Context())
	defer cancel(nil)
	seen := 0
	for _, err := range store.Updates(ctx, "s") {
		if err == nil {
			seen++
		} else if !errors.Is(err, cause) {
			s.Errorf("the loop ends with %v", err)
		}
		cancel(cause)
	}
	if seen == 0 {
		s.Error("the loop had nothing")
	}
	s.want(store.Create(ctx, record("t", 0)), cause)
	s.fail(ctx, store, "s", cause)
	_, err := store.List(ctx, sessionstore.Query{})
	s.want(err, cause)
	s.want(store.Delete(ctx, "s"), cause)
	s.equal("the updates", s.history(store, "s"), []string{"x", "y"})
	s.equal("the list", s.listAll(store, sessionstore.Query{}), []string{"s"})
}

// A closed store returns ErrClosed, while another handle still works.
func (s *suite) close() {
	ctx, store, other := s.Context(), s.store(), s.store()
	s.must(store.Create(ctx, record("s", 0)))
	s.must(store.Close())
	s.want(store.Close(), sessionstore.ErrClosed)
	s.want(store.Create(ctx, record("t", 0)), sessionstore.ErrClosed)
	s.fail(ctx, store, "s", sessionstore.ErrClosed)
	_, err := store.List(ctx, sessionstore.Query{})
	s.want(err, sessionstore.ErrClosed)
	s.want(store.Delete(ctx, "s"), sessionstore.ErrClosed)
	s.equal("the list", s.listAll(other, sessionstore.Query{}), []string{"s"})
}
