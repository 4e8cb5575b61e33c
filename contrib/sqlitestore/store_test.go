package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
	"github.com/acpgo/sdk/contrib/sqlitestore"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	kills    = flag.Int("kills", 0, "how many processes are killed while they write (default: a few)")
	appends  = flag.Int("appends", 0, "how many updates each of two processes appends (default: a few)")
	sessions = flag.Int("sessions", 0, "how many sessions TestListIsFlat makes (default: what the tier says)")
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

func open(tb testing.TB, dir string) sessionstore.Store {
	tb.Helper()
	return openWith(tb, filepath.Join(dir, "sessions.db"), nil)
}

func openWith(tb testing.TB, path string, opts *sqlitestore.Options) *sqlitestore.Store {
	tb.Helper()
	store := must.Get(sqlitestore.Open(tb.Context(), path, opts))(tb)
	tb.Cleanup(func() {
		if err := store.Close(); err != nil && !errors.Is(err, sessionstore.ErrClosed) {
			tb.Errorf("closing: %v", err)
		}
	})
	return store
}

func record(id string, seconds int64) sessionstore.Record {
	at := time.Unix(1_800_000_000+seconds, 0)
	return sessionstore.Record{Info: sessionstore.Info{ID: acp.SessionID(id), Cwd: "/w", Created: at, Updated: at}}
}

// texts returns the texts of a session.
func texts(t *testing.T, store sessionstore.Store, id acp.SessionID) (all []string) {
	t.Helper()
	for update, err := range store.Updates(t.Context(), id) {
		must.Do(t, err)
		all = append(all, update.AgentText())
	}
	return all
}

// listed returns the ids of all sessions, and how many pages they have.
func listed(t *testing.T, store sessionstore.Store, limit int) (ids []string, pages int) {
	t.Helper()
	for q := (sessionstore.Query{Limit: limit}); ; {
		page := must.Get(store.List(t.Context(), q))(t)
		pages++
		for _, info := range page.Sessions {
			ids = append(ids, string(info.ID))
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return ids, pages
		}
	}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestStoreProcesses(t *testing.T) {
	tier.Need(t, tier.Normal)
	storetest.RunProcesses(t, open, &storetest.Processes{Kills: *kills, Updates: *appends})
}

// Of a file name nothing is taken for an option of the database, and the file is for its owner only.
func TestFile(t *testing.T) {
	name := "a?mode=memory&b#c%41 é.db"
	if runtime.GOOS == "windows" {
		name = "a&b#c%41 é.db"
	}
	path := filepath.Join(t.TempDir(), "new", "folder", name)
	store := openWith(t, path, &sqlitestore.Options{Sync: true})
	must.Do(t, store.Create(t.Context(), record("s", 0)))
	if runtime.GOOS != "windows" {
		files := must.Get(filepath.Glob(filepath.Join(filepath.Dir(path), "*")))(t)
		if len(files) != 3 {
			t.Errorf("the files are %q", files)
		}
		for _, file := range append(files, filepath.Dir(path)) {
			info := must.Get(os.Stat(file))(t)
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s may be used by others: %v", file, info.Mode())
			}
		}
	}
	must.Do(t, store.Close())
	entries := must.Get(os.ReadDir(filepath.Dir(path)))(t)
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("closed, the files are %v", entries)
	}
	if _, err := openWith(t, path, nil).Get(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}

// Databases of others are left alone.
func TestForeignDatabases(t *testing.T) {
	for name, test := range map[string]struct{ statement, want string }{
		"tables":      {"CREATE TABLE session (id)", "another program"},
		"application": {"PRAGMA application_id = 7", "another program"},
		"newer":       {"PRAGMA application_id = 1094930547; PRAGMA user_version = 2", "version 2"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			db := must.Get(sql.Open("sqlite", path))(t)
			must.Get(db.ExecContext(t.Context(), test.statement))(t)
			must.Do(t, db.Close())
			before := must.Get(os.ReadFile(path))(t)
			store, err := sqlitestore.Open(t.Context(), path, nil)
			if store != nil || err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, %v", store, err)
			}
			after := must.Get(os.ReadFile(path))(t)
			if !bytes.Equal(before, after) {
				t.Error("the database was changed")
			}
		})
	}
	path := filepath.Join(t.TempDir(), "text")
	must.Do(t, os.WriteFile(path, []byte(strings.Repeat("no database ", 100)), 0o600))
	if store, err := sqlitestore.Open(t.Context(), path, nil); store != nil || err == nil {
		t.Errorf("a text was opened: %v", err)
	}
	if store, err := sqlitestore.Open(t.Context(), t.TempDir(), nil); store != nil || err == nil {
		t.Errorf("a folder was opened: %v", err)
	}
}

// What is too large is refused as a whole.
func TestBounds(t *testing.T) {
	ctx := t.Context()
	store := openWith(t, filepath.Join(t.TempDir(), "x.db"), &sqlitestore.Options{MaxUpdate: 1000, MaxSession: 5000})
	must.Do(t, store.Create(ctx, record("s", 0)))
	small, large := acp.AgentMessageText(strings.Repeat("x", 800)), acp.AgentMessageText(strings.Repeat("x", 1000))
	count := func() int { return len(texts(t, store, "s")) }
	for _, updates := range [][]acp.SessionUpdate{{small, large}, {small, small, small, small, small, small}} {
		if err := store.Append(ctx, "s", updates...); !errors.Is(err, sessionstore.ErrTooLarge) {
			t.Errorf("got the error %v", err)
		}
		if n := count(); n != 0 {
			t.Errorf("%d updates were kept", n)
		}
	}
	kept := 0
	for store.Append(ctx, "s", small) == nil {
		kept++
	}
	if n := count(); n != kept || kept != 5 {
		t.Errorf("%d updates were kept, and %d are there", kept, n)
	}
	must.Do(t, store.Delete(ctx, "s"))
	must.Do(t, store.Create(ctx, record("s", 0)))
	must.Do(t, store.Append(ctx, "s", small))
}

// While somebody else writes, opening and reading continue, and writing waits for as long as was said, or up to the end of its context.
func TestLocked(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	store := openWith(t, path, &sqlitestore.Options{LockTime: 50 * time.Millisecond})
	patient := openWith(t, path, &sqlitestore.Options{LockTime: time.Hour})
	must.Do(t, store.Create(ctx, record("s", 0)))
	inside, leave := make(chan struct{}), make(chan struct{})
	changed := make(chan error, 1)
	go func() {
		changed <- patient.Change(ctx, "s", func(r *sessionstore.Record) error {
			close(inside)
			<-leave
			r.Title = "changed"
			return nil
		})
	}()
	<-inside
	if r, err := store.Get(ctx, "s"); err != nil || r.Title != "" {
		t.Errorf("reading meanwhile: %+v, %v", r, err)
	}
	if err := store.Append(ctx, "s", acp.AgentMessageText("x")); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("writing meanwhile: %v", err)
	}
	late := errors.New("too late")
	soon, cancel := context.WithTimeoutCause(ctx, 50*time.Millisecond, late)
	defer cancel()
	other := openWith(t, path, &sqlitestore.Options{LockTime: time.Hour})
	if err := other.Delete(soon, "s"); !errors.Is(err, late) {
		t.Errorf("waiting for another store: %v", err)
	}
	if err := patient.Delete(soon, "s"); !errors.Is(err, late) {
		t.Errorf("waiting within a store: %v", err)
	}
	close(leave)
	must.Do(t, <-changed)
	if r, err := store.Get(ctx, "s"); err != nil || r.Title != "changed" {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
}

// A page of a list is read by an index, and none of the updates or states: its time does not grow with them.
func TestListIsFlat(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	store := openWith(t, path, nil)
	count := *sessions
	if count == 0 {
		count = tier.Pick(60, 200, 500, 10_000)
	}
	for i := range count {
		r := record(fmt.Sprint("s", i), int64(i))
		r.Cwd = fmt.Sprint("/", i%2)
		r.State = []byte(`"` + strings.Repeat("x", 10_000) + `"`)
		must.Do(t, store.Create(ctx, r))
		must.Do(t, store.Append(ctx, r.ID, acp.AgentMessageText(strings.Repeat("x", 10_000))))
	}
	began := time.Now()
	ids, pages := listed(t, store, 0)
	t.Logf("%d sessions in %d pages: %v", len(ids), pages, time.Since(began))
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	for query, index := range map[string]string{
		"SELECT title FROM session WHERE protocol = 1 ORDER BY updated DESC, id DESC LIMIT 51":                                               "session_by_time",
		"SELECT title FROM session WHERE protocol = 1 AND (updated, id) < (1, x'00') ORDER BY updated DESC, id DESC LIMIT 51":                "session_by_time",
		"SELECT title FROM session WHERE protocol = 1 AND cwd = '/1' ORDER BY updated DESC, id DESC LIMIT 51":                                "session_by_cwd",
		"SELECT title FROM session WHERE protocol = 1 AND cwd = '/1' AND (updated, id) < (1, x'00') ORDER BY updated DESC, id DESC LIMIT 51": "session_by_cwd",
		"SELECT key, json FROM session_update WHERE session = 1 AND key > 7 ORDER BY key":                                                    "session_update_by_session",
	} {
		rows := must.Get(db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query))(t)
		var plan strings.Builder
		for rows.Next() {
			var id, parent, unused int
			var detail string
			must.Do(t, rows.Scan(&id, &parent, &unused, &detail))
			plan.WriteString(detail + "\n")
		}
		must.Do(t, rows.Err())
		if !strings.Contains(plan.String(), index) || strings.Contains(plan.String(), "TEMP B-TREE") {
			t.Errorf("%s: the plan is\n%s", query, plan.String())
		}
	}
}

// What another program has made unreadable is reported and left out, and the rest is there.
func TestDamagedRows(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "x.db")
	var reports []sqlitestore.Damage
	store := openWith(t, path, &sqlitestore.Options{Damaged: func(d sqlitestore.Damage) { reports = append(reports, d) }})
	for i := range 5 {
		must.Do(t, store.Create(ctx, record(fmt.Sprint("s", i), int64(i))))
		must.Do(t, store.Append(ctx, acp.SessionID(fmt.Sprint("s", i)), acp.AgentMessageText("a"), acp.AgentMessageText("b"), acp.AgentMessageText("c")))
	}
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	must.Get(db.ExecContext(ctx, "UPDATE session_update SET json = '{' WHERE key = 2; UPDATE session SET directories = '[' WHERE id IN (x'7331', x'7333', x'7334')"))(t)

	if got := texts(t, store, "s0"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("the updates are %q", got)
	}
	if len(reports) != 1 || reports[0].Table != "session_update" || reports[0].Key != 2 {
		t.Errorf("reported are %v", reports)
	}
	reports = nil
	for _, limit := range []int{1, 2, 50} {
		if ids, _ := listed(t, store, limit); !slices.Equal(ids, []string{"s2", "s0"}) {
			t.Errorf("listed by %d are %q", limit, ids)
		}
	}
	if len(reports) != 9 || reports[0].Table != "session" {
		t.Errorf("reported are %v", reports)
	}
	if _, err := store.Get(ctx, "s1"); err == nil || errors.Is(err, sessionstore.ErrNotFound) {
		t.Errorf("getting one of them: %v", err)
	}
}

// OpenApp keeps sessions in memory where no database can be created.
func TestNoPlace(t *testing.T) {
	tier.Need(t, tier.Normal)
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	for _, variable := range []string{"HOME", "XDG_STATE_HOME", "LocalAppData"} {
		t.Setenv(variable, file)
	}
	store, used, err := sessionstore.OpenApp("app", "", func(dir string) (sessionstore.Store, error) {
		return sqlitestore.Open(t.Context(), filepath.Join(dir, "sessions.db"), nil)
	})
	if err != nil || used != "" {
		t.Fatalf("opened in %q, %v", used, err)
	}
	record := sessionstore.Record{Info: sessionstore.Info{ID: "s"}}
	if err := errors.Join(store.Create(t.Context(), record), store.Close()); err != nil {
		t.Error(err)
	}
}
