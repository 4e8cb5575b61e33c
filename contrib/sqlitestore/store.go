package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"modernc.org/sqlite"
	sqlitecodes "modernc.org/sqlite/lib"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/codec"
)

// Create implements sessionstore.Store.
func (s *Store) Create(ctx context.Context, r sessionstore.Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	return s.write(ctx, "creating", r.ID, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `INSERT INTO session (protocol, id, cwd, title, directories, created, updated, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (protocol, id) DO NOTHING`, protocol, []byte(r.ID), r.Cwd, r.Title, directories(r.AdditionalDirectories), r.Created.UnixMicro(), r.Updated.UnixMicro(), state(r.State))
		if err != nil {
			return err
		}
		return changedOne(res, sessionstore.ErrExists)
	})
}

// Get implements sessionstore.Store.
func (s *Store) Get(ctx context.Context, id acp.SessionID) (r sessionstore.Record, err error) {
	err = s.read(ctx, "reading", id, func() error {
		r, err = get(ctx, s.db, id)
		return err
	})
	return r, err
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const infoColumns = "key, id, cwd, title, directories, created, updated"

func get(ctx context.Context, q querier, id acp.SessionID) (r sessionstore.Record, err error) {
	row := q.QueryRowContext(ctx, "SELECT "+infoColumns+", state FROM session WHERE protocol = ? AND id = ?", protocol,
		[]byte(id))
	var raw []byte
	if _, r.Info, err = scan(row, &raw); errors.Is(err, sql.ErrNoRows) {
		return r, sessionstore.ErrNotFound
	}
	if len(raw) > 0 {
		r.State = raw
	}
	return r, err
}

// scan reads the key of a session and its Info, and any more columns of the row. If there is a key, the error is only
// about the directories.
func scan(row interface{ Scan(...any) error }, more ...any) (key int64, info sessionstore.Info, err error) {
	var id, dirs []byte
	var created, updated int64
	err = row.Scan(append([]any{&key, &id, &info.Cwd, &info.Title, &dirs, &created, &updated}, more...)...)
	if err != nil {
		return 0, sessionstore.Info{}, err
	}
	info.ID = acp.SessionID(id)
	info.Created, info.Updated = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	if err := json.Unmarshal(dirs, &info.AdditionalDirectories); err != nil {
		return key, info, fmt.Errorf("the directories: %w", err)
	}
	return key, info, nil
}

// directories and state return the values of these columns.
func directories(dirs []string) string {
	if len(dirs) == 0 {
		return "null"
	}
	text, _ := json.Marshal(dirs) // a slice of strings cannot fail
	return string(text)
}

func state(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return []byte(raw)
}

// changedOne returns none if a statement has changed no row.
func changedOne(res sql.Result, none error) error {
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		err = none
	}
	return err
}

// Change implements sessionstore.Store.
func (s *Store) Change(ctx context.Context, id acp.SessionID, change func(*sessionstore.Record) error) error {
	return s.write(ctx, "changing", id, func(tx *sql.Tx) error {
		r, err := get(ctx, tx, id)
		if err != nil {
			return err
		}
		created := r.Created
		if err := change(&r); err != nil {
			return err
		}
		r.ID, r.Created = id, created
		if err := r.Check(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			"UPDATE session SET cwd = ?, title = ?, directories = ?, updated = ?, state = ? WHERE protocol = ? AND id = ?",
			r.Cwd, r.Title, directories(r.AdditionalDirectories), r.Updated.UnixMicro(), state(r.State), protocol, []byte(id))
		return err
	})
}

// Append implements sessionstore.Store. All updates are added, or none.
func (s *Store) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	lines := make([][]byte, len(updates))
	var added int64
	for i := range updates {
		line, err := codec.Append(nil, &updates[i])
		if err != nil {
			return fmt.Errorf("appending to session %q: update %d: %w", id, i, err)
		}
		if len(line) > s.opts.MaxUpdate {
			return fmt.Errorf("appending to session %q: %w: an update of %d bytes", id, sessionstore.ErrTooLarge, len(line))
		}
		lines[i] = line
		added += int64(len(line))
	}
	return s.write(ctx, "appending to", id, func(tx *sql.Tx) error {
		var key, size int64
		err := tx.QueryRowContext(ctx, "SELECT key, size FROM session WHERE protocol = ? AND id = ?", protocol, []byte(id)).
			Scan(&key, &size)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return sessionstore.ErrNotFound
		case err != nil:
			return err
		case len(lines) == 0:
			return nil
		case size+added > s.opts.MaxSession:
			return fmt.Errorf("%w: the session has %d bytes of updates, and may have %d", sessionstore.ErrTooLarge, size,
				s.opts.MaxSession)
		}
		for _, line := range lines {
			if _, err := tx.ExecContext(ctx, "INSERT INTO session_update (session, json) VALUES (?, ?)", key,
				string(line)); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "UPDATE session SET size = size + ? WHERE key = ?", added, key)
		return err
	})
}

// pageBytes is approximately how many bytes Updates reads at once. Between pages it holds nothing in the database.
const pageBytes = 1 << 20

// Updates implements sessionstore.Store.
func (s *Store) Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		var session, last int64
		err := s.read(ctx, "reading", id, func() error {
			err := s.db.QueryRowContext(ctx, "SELECT key FROM session WHERE protocol = ? AND id = ?", protocol, []byte(id)).
				Scan(&session)
			if errors.Is(err, sql.ErrNoRows) {
				return sessionstore.ErrNotFound
			}
			return err
		})
		for err == nil {
			var lines []line
			from := last
			err = s.read(ctx, "reading", id, func() (err error) {
				lines, last, err = s.page(ctx, session, from)
				return err
			})
			if err == nil && len(lines) == 0 {
				return
			}
			for _, line := range lines {
				if ctx.Err() != nil {
					yield(*new(acp.SessionUpdate), context.Cause(ctx))
					return
				}
				var update acp.SessionUpdate
				if err := codec.Unmarshal(line.text, &update); err != nil {
					s.opts.Damaged(Damage{Table: "session_update", Key: line.key, Err: err})
					continue
				}
				if !yield(update, nil) {
					return
				}
			}
		}
		yield(*new(acp.SessionUpdate), err)
	}
}

// line is a stored update.
type line struct {
	key  int64
	text []byte
}

// page reads updates of a session after the one with the key from, and returns the key of the last one.
func (s *Store) page(ctx context.Context, session, from int64) (lines []line, last int64, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT key, json FROM session_update WHERE session = ? AND key > ? ORDER BY key",
		session, from)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for bytes := 0; bytes < pageBytes && rows.Next(); {
		var l line
		if err := rows.Scan(&l.key, &l.text); err != nil {
			return nil, 0, err
		}
		last = l.key
		bytes += len(l.text)
		lines = append(lines, l)
	}
	return lines, last, rows.Err()
}

// List implements sessionstore.Store.
func (s *Store) List(ctx context.Context, q sessionstore.Query) (page sessionstore.Page, err error) {
	where, args := "WHERE protocol = ?", []any{protocol}
	if q.Cwd != "" {
		where, args = where+" AND cwd = ?", append(args, q.Cwd)
	}
	if q.Cursor != "" {
		after, err := sessionstore.ParseCursor(q.Cursor)
		if err != nil {
			return page, err
		}
		where, args = where+" AND (updated, id) < (?, ?)", append(args, after.Updated.UnixMicro(), []byte(after.ID))
	}
	query := "SELECT " + infoColumns + " FROM session " + where + " ORDER BY updated DESC, id DESC LIMIT ?"
	args = append(args, q.Size()+1)
	err = s.read(ctx, "listing", "", func() (err error) {
		rows, err := s.db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		page = sessionstore.Page{}
		var last sessionstore.Position
		for n := 0; rows.Next(); n++ {
			if n == q.Size() {
				page.Next = last.Cursor()
				break
			}
			key, info, err := scan(rows)
			if err != nil && key == 0 {
				return err
			}
			last = info.Position()
			if err != nil {
				s.opts.Damaged(Damage{Table: "session", Key: key, Err: err})
				continue
			}
			page.Sessions = append(page.Sessions, info)
		}
		return rows.Err()
	})
	return page, err
}

// Delete implements sessionstore.Store. On a full disk it writes to space in the write-ahead log that is no longer
// needed; it fails if there is too little.
func (s *Store) Delete(ctx context.Context, id acp.SessionID) error {
	remove := func() error {
		return s.write(ctx, "deleting", id, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM session WHERE protocol = ? AND id = ?", protocol, []byte(id))
			return err
		})
	}
	err := remove()
	if noRoom(err) {
		if _, failed := s.db.ExecContext(ctx, "PRAGMA wal_checkpoint(RESTART)"); failed != nil {
			return errors.Join(err, failed)
		}
		err = remove()
	}
	return err
}

// noRoom reports whether a disk, a quota or a limit prevented a file from growing.
func noRoom(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqlitecodes.SQLITE_FULL || e.Code() == sqlitecodes.SQLITE_IOERR_WRITE)
}
