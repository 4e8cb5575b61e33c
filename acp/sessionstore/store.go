package sessionstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// Store keeps sessions. Its methods are safe for concurrent use, including by several processes that have opened the
// same location. Unless documented otherwise, each method either takes effect as a whole or fails and changes nothing,
// and its effect is visible to all later calls once it has returned. The methods return the cause of ctx if ctx ends
// first.
//
// Package storetest tests implementations.
type Store interface {
	// Create adds a session without updates. It fails with ErrExists if there is one with this id, and with ErrInvalid
	// or ErrTooLarge if the record cannot be kept.
	Create(ctx context.Context, r Record) error

	// Get returns a session without its updates, or fails with ErrNotFound.
	Get(ctx context.Context, id acp.SessionID) (Record, error)

	// Change calls change with the current session, and stores the result. The session is not changed by others in the
	// meantime. change must be quick and must not call the store. If it returns an error nothing is changed, and Change
	// returns an error that wraps it. ID and Created cannot be changed: changes to them are ignored.
	Change(ctx context.Context, id acp.SessionID, change func(*Record) error) error

	// Append adds updates to a session, in this order, after all that were appended before. It fails with ErrNotFound
	// if there is no such session, and with ErrTooLarge if an update, or the whole session, would be longer than the
	// store keeps. If the process ends in the meantime, the first of the updates may have been added without the
	// others.
	Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error

	// Updates returns an iterator over the updates that were appended to a session, in order; it may yield some or none
	// of those that are appended while the loop is running. Memory use does not grow with their number. The loop's body
	// may call the store. The iteration ends after an error, which matches ErrNotFound if there is no such session.
	Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acp.SessionUpdate, error]

	// List returns a page of the sessions, the most recently updated first; of two that were updated at the same time,
	// the one with the greater id comes first. It does not read updates. It fails with ErrCursor if the store did not
	// create the query's cursor. A session that exists and is not changed while its pages are read is on exactly one of
	// them.
	List(ctx context.Context, q Query) (Page, error)

	// Delete removes a session and all its data. It succeeds and does nothing if the session does not exist.
	Delete(ctx context.Context, id acp.SessionID) error

	// Close releases the store's system resources. Afterwards the other methods fail with ErrClosed; the sessions are
	// kept.
	Close() error
}

// Info describes a session in a list.
type Info struct {
	// ID is the session's id: any text of 1 to MaxID bytes of UTF-8.
	ID acp.SessionID
	// Cwd and AdditionalDirectories are the directories of the session.
	Cwd                   string
	AdditionalDirectories []string
	// Title is shown to people; "" means that there is none yet.
	Title string
	// Created is when the session was created, and Updated is when something last happened in it. A store keeps both to
	// the microsecond, and returns them in UTC.
	Created, Updated time.Time
}

// Record is the data that a store keeps for a session in addition to its updates.
type Record struct {
	Info
	// State is the agent's own data, any JSON value; nil means none. Lists do not read it.
	State json.RawMessage
}

// Query asks for a page of a list.
type Query struct {
	// Cwd limits the list to sessions with exactly this working directory; "" means all sessions.
	Cwd string
	// Cursor is Page.Next of the previous page, with the same Cwd, or "" for the first page.
	Cursor string
	// Limit is the maximum number of sessions on the page; 0 means DefaultLimit. No page has more than MaxLimit.
	Limit int
}

// Page is a part of a list.
type Page struct {
	Sessions []Info
	Next     string // the cursor of the next page; "" after the last one
}

// Bounds of every store.
const (
	DefaultLimit = 50      // sessions on a page by default
	MaxLimit     = 1000    // sessions on a page at most
	MaxID        = 1 << 10 // bytes in an id
	MaxInfo      = 1 << 16 // bytes in an Info, as JSON
	MaxState     = 1 << 20 // bytes in Record.State
)

// Errors to match with errors.Is.
var (
	ErrNotFound = errors.New("no such session")
	ErrExists   = errors.New("a session with this id already exists")
	ErrInvalid  = errors.New("not a session that can be stored")
	ErrTooLarge = errors.New("larger than the store allows")
	ErrCursor   = errors.New("not a cursor of this list")
	ErrClosed   = errors.New("the store is closed")
	// ErrReadOnly reports that a store cannot be opened because its directory cannot be written to.
	ErrReadOnly = errors.New("the session directory is not writable, and readers need to lock sessions there")
)

// Size returns the maximum number of sessions on a page of the query. Implementations of Store use it.
func (q Query) Size() int {
	if q.Limit <= 0 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}

// ValidID reports whether id is valid. No store has a session with an invalid id: Get, Change, Append and Updates fail
// with ErrNotFound for it, and Delete succeeds.
func ValidID(id acp.SessionID) bool {
	return id != "" && len(id) <= MaxID && utf8.ValidString(string(id))
}

// infoSize returns an upper bound of the size of the Info as JSON, in bytes.
func (r *Record) infoSize() int {
	size := 256 // for the names of members and the times
	for _, text := range append([]string{string(r.ID), r.Cwd, r.Title}, r.AdditionalDirectories...) {
		if size += len(text) + len(`"",`); size > MaxInfo {
			break
		}
		quoted, _ := json.Marshal(text) // marshaling a string cannot fail
		size += len(quoted) - len(text) - len(`""`)
	}
	return size
}

// Check returns the reason why a record cannot be stored, or nil. Implementations of Create and Change use it.
func (r *Record) Check() error {
	if !ValidID(r.ID) {
		return fmt.Errorf("%w: the id is empty, longer than %d bytes, or not UTF-8", ErrInvalid, MaxID)
	}
	for _, text := range append([]string{r.Cwd, r.Title}, r.AdditionalDirectories...) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%w: a directory or the title is not UTF-8, or has a zero byte", ErrInvalid)
		}
	}
	if r.infoSize() > MaxInfo {
		return fmt.Errorf("%w: the id, the directories and the title have more than %d bytes as JSON", ErrTooLarge, MaxInfo)
	}
	if len(r.State) > MaxState {
		return fmt.Errorf("%w: the state has more than %d bytes", ErrTooLarge, MaxState)
	}
	if len(r.State) > 0 && !json.Valid(r.State) {
		return fmt.Errorf("%w: the state is not JSON", ErrInvalid)
	}
	if year := r.Updated.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("%w: the year %d", ErrInvalid, year)
	}
	if year := r.Created.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("%w: the year %d", ErrInvalid, year)
	}
	return nil
}

// SessionInfo returns the session in the form that session/list uses.
func (i *Info) SessionInfo() acp.SessionInfo {
	info := acp.SessionInfo{SessionID: i.ID, Cwd: i.Cwd, AdditionalDirectories: i.AdditionalDirectories}
	if i.Title != "" {
		info.Title = acp.Some(i.Title)
	}
	if !i.Updated.IsZero() {
		info.UpdatedAt = acp.Some(FormatTime(i.Updated))
	}
	return info
}

// FormatTime formats a time as the protocol requires, in ISO 8601 with microseconds, so that the texts sort in the
// order of the times.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// Fork creates a new session in a store, which begins with the state and the updates of the session from. If Fork fails
// the new session does not exist; if the process ends in the meantime, it may exist with a part of the updates.
func Fork(ctx context.Context, store Store, from acp.SessionID, to Info) (err error) {
	r, err := store.Get(ctx, from)
	if err != nil {
		return fmt.Errorf("forking session %q: %w", from, err)
	}
	r.Info = to
	if err := store.Create(ctx, r); err != nil {
		return fmt.Errorf("forking session %q: %w", from, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Delete(context.WithoutCancel(ctx), to.ID))
		}
	}()
	const atOnce, bytesAtOnce = 64, 1 << 20
	updates := make([]acp.SessionUpdate, 0, atOnce)
	var text []byte // the pending updates, encoded to measure them
	flush := func() error {
		err := store.Append(ctx, to.ID, updates...)
		clear(updates)
		updates, text = updates[:0], text[:0]
		return err
	}
	for update, err := range store.Updates(ctx, from) {
		if err != nil {
			return fmt.Errorf("forking session %q: %w", from, err)
		}
		updates = append(updates, update)
		if text, err = codec.Append(text, &update); err != nil {
			return fmt.Errorf("forking session %q: %w", from, err)
		}
		if len(updates) == atOnce || len(text) >= bytesAtOnce {
			if err := flush(); err != nil {
				return fmt.Errorf("forking session %q: %w", from, err)
			}
		}
	}
	if len(updates) == 0 {
		return nil
	}
	if err := flush(); err != nil {
		return fmt.Errorf("forking session %q: %w", from, err)
	}
	return nil
}
