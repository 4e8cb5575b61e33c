package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlitecodes "modernc.org/sqlite/lib"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// Options configures a Store. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// MaxSession is the greatest total size of a session's updates, in bytes. The default is 256 MiB.
	MaxSession int64
	// MaxUpdate is the greatest size of one update, in bytes. The default is 32 MiB.
	MaxUpdate int
	// LockTime is how long a method waits for another process that is writing to the database before it fails. The wait
	// also ends with the method's context. The default is 10 s.
	LockTime time.Duration
	// Sync syncs written data to the disk before a method returns, so that it survives a power failure. Without it, the
	// data survives the end of the process, and the database stays intact in any case.
	Sync bool
	// Damaged is called for data that is skipped because it cannot be read. It must be quick, must not call the store,
	// and may be called by several goroutines at once. Nil means a warning to slog.Default.
	Damaged func(Damage)
}

// Damage is a row in the database that cannot be read, because another program has changed it, and was skipped.
type Damage struct {
	Table string // session or session_update
	Key   int64  // primary key of the row
	Err   error  // what is wrong with it
}

// Error describes the damage.
func (d Damage) Error() string { return fmt.Sprintf("%s %d: %v", d.Table, d.Key, d.Err) }

// Unwrap returns Err.
func (d Damage) Unwrap() error { return d.Err }

// Store is a sessionstore.Store in an SQLite database. Its methods are safe for concurrent use.
type Store struct {
	db      *sql.DB
	opts    Options
	writing chan struct{} // capacity 1: held by the write transaction of this process
	closed  atomic.Bool
}

var _ sessionstore.Store = (*Store)(nil)

// application marks the file as belonging to this package: "ACPs". version is the version of the tables.
const (
	application = 0x41435073
	version     = 1
	protocol    = 1 // the version of the protocol of the updates
)

const tables = `
CREATE TABLE session (
	key         INTEGER PRIMARY KEY AUTOINCREMENT,
	protocol    INTEGER NOT NULL,
	id          BLOB NOT NULL,
	cwd         TEXT NOT NULL,
	title       TEXT NOT NULL,
	directories TEXT NOT NULL,
	created     INTEGER NOT NULL,
	updated     INTEGER NOT NULL,
	size        INTEGER NOT NULL DEFAULT 0,
	state       BLOB,
	UNIQUE (protocol, id)
) STRICT;
CREATE INDEX session_by_time ON session (protocol, updated DESC, id DESC);
CREATE INDEX session_by_cwd ON session (protocol, cwd, updated DESC, id DESC);
CREATE TABLE session_update (
	key     INTEGER PRIMARY KEY AUTOINCREMENT,
	session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
	json    TEXT NOT NULL
) STRICT;
CREATE INDEX session_update_by_session ON session_update (session, key);
`

// Open opens the database in a file, creating the file and its directory if necessary. It fails for a database of
// another program, or of a newer version of this package. ctx bounds only opening.
func Open(ctx context.Context, path string, opts *Options) (store *Store, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &Store{writing: make(chan struct{}, 1)}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.MaxSession = cmp.Or(s.opts.MaxSession, 256<<20)
	s.opts.MaxUpdate = cmp.Or(s.opts.MaxUpdate, 32<<20)
	s.opts.LockTime = cmp.Or(s.opts.LockTime, 10*time.Second)
	if s.opts.Damaged == nil {
		s.opts.Damaged = func(damage Damage) { slog.Warn("a part of a session was left out", "error", damage) }
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("opening the session store: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would create a file that others can read
	if err != nil {
		return nil, fmt.Errorf("opening the session store: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("opening the session store: %w", err)
	}
	if s.db, err = sql.Open("sqlite", source(path, s.opts.Sync)); err != nil {
		return nil, fmt.Errorf("opening the session store: %w", err)
	}
	defer func() {
		if err != nil {
			store, err = nil, errors.Join(fmt.Errorf("opening the session store %s: %w", path, err), s.db.Close())
		}
	}()
	var ready bool // checked before anything is changed
	err = s.retry(ctx, func() (err error) {
		ready, err = check(ctx, s.db)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Readers then do not wait for a writer. The setting is stored in the file.
	err = s.retry(ctx, func() error {
		var mode string
		if err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode = wal").Scan(&mode); err != nil {
			return err
		}
		if mode != "wal" {
			return fmt.Errorf("the database remains in mode %q: it must be on a local disk", mode)
		}
		return nil
	})
	if err == nil && !ready {
		err = s.transact(ctx, func(tx *sql.Tx) error { return prepare(ctx, tx) })
	}
	return s, err
}

// source returns the name of the file for database/sql.
func source(path string, sync bool) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	// retry does the waiting, so that contexts can end it; the driver waits for the usual duration of a transaction.
	pragmas := []string{"busy_timeout(20)", "foreign_keys(on)", "synchronous(normal)"}
	if sync {
		pragmas[2] = "synchronous(full)"
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}.Encode()}
	return u.String()
}

// check reports whether the tables exist, and refuses those of other programs.
func check(ctx context.Context, q querier) (ready bool, err error) {
	var app, v, others int
	err = q.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&app, &v, &others)
	switch {
	case err != nil:
		return false, err
	case app == application && v == version:
		return true, nil
	case app == application && v > version:
		return false, fmt.Errorf("the tables have the version %d, and this program knows %d", v, version)
	case app != 0 || v != 0 || others > 0:
		return false, errors.New("the database belongs to another program")
	}
	return false, nil
}

// prepare creates the tables, unless another process has done so in the meantime.
func prepare(ctx context.Context, tx *sql.Tx) error {
	if ready, err := check(ctx, tx); ready || err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", tables,
		application, version))
	return err
}

// Close implements sessionstore.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return sessionstore.ErrClosed
	}
	return s.db.Close()
}

// write runs a write transaction, one at a time. The error names the operation and the session.
func (s *Store) write(ctx context.Context, doing string, id acp.SessionID, do func(*sql.Tx) error) error {
	return s.explain(ctx, doing, id, s.transact(ctx, do))
}

// read runs statements that only read.
func (s *Store) read(ctx context.Context, doing string, id acp.SessionID, do func() error) error {
	return s.explain(ctx, doing, id, s.retry(ctx, do))
}

// explain converts an error to one that callers can match.
func (s *Store) explain(ctx context.Context, doing string, id acp.SessionID, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return sessionstore.ErrClosed
	case ctx.Err() != nil: // if a statement was interrupted, the driver has its own error
		return context.Cause(ctx)
	case id == "":
		return fmt.Errorf("%s sessions: %w", doing, err)
	}
	return fmt.Errorf("%s session %q: %w", doing, id, err)
}

func (s *Store) transact(ctx context.Context, do func(*sql.Tx) error) error {
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var tx *sql.Tx
	err := s.retry(ctx, func() (err error) {
		tx, err = s.db.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		if back := tx.Rollback(); back != nil && !errors.Is(back, sql.ErrTxDone) {
			err = errors.Join(err, back)
		}
		return err
	}
	return tx.Commit()
}

// retry calls do until no other process holds the lock, for at most LockTime.
func (s *Store) retry(ctx context.Context, do func() error) error {
	const longest = 50 * time.Millisecond
	end := time.Now().Add(s.opts.LockTime)
	for wait := time.Millisecond; ; wait = min(2*wait, longest) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := do()
		if !busy(err) || time.Now().After(end) {
			return err
		}
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// busy reports whether an error means that another process holds the lock.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlitecodes.SQLITE_BUSY || e.Code()&0xff == sqlitecodes.SQLITE_LOCKED)
}
