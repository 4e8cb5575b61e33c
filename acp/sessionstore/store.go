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
	"github.com/acpgo/sdk/acp/codec"
)

// Store keeps sessions of version 1 of the protocol.
type Store = StoreOf[acp.SessionUpdate]

// StoreOf keeps sessions whose updates are of type U: that of a version of the protocol. Its methods are safe for concurrent use, also by several processes that have opened the same
// place. Each either happens as a whole or fails and changes nothing, unless it says otherwise, and what it has done
// before it returns is there for all that come after it. They return the cause of ctx when that ends first.
//
// Package storetest tests implementations.
type StoreOf[U any] interface {
	// Create adds a session without updates. It fails with ErrExists if there is one with this id, with ErrInvalid or
	// ErrTooLarge if the record cannot be kept.
	Create(ctx context.Context, r Record) error

	// Get returns a session without its updates, or fails with ErrNotFound.
	Get(ctx context.Context, id acp.SessionID) (Record, error)

	// Change calls change with the session as it is, and keeps what change makes of it. Nobody else changes the session
	// meanwhile. change must be quick and must not call the store. If it returns an error nothing is changed, and
	// Change returns an error that wraps it. ID and Created cannot be changed: what change makes of them is ignored.
	Change(ctx context.Context, id acp.SessionID, change func(*Record) error) error

	// Append adds updates to a session, in this order, after all that were appended before. It fails with ErrNotFound if
	// there is no such session, and with ErrTooLarge if an update, or all of the session, would be longer than the
	// store keeps. If the process ends meanwhile, the first of the updates may have been added without the others.
	Append(ctx context.Context, id acp.SessionID, updates ...U) error

	// Updates yields the updates that were appended to a session, in order; of those that are appended while the loop
	// runs it may yield some or none. Memory does not grow with their number. The loop's body may call the store. It ends after an
	// error, which matches ErrNotFound if there is no such session.
	Updates(ctx context.Context, id acp.SessionID) iter.Seq2[U, error]

	// List returns a page of the sessions, those updated last first, and of two that were updated at the same time the
	// one with the greater id first. It does not read updates. It fails with ErrCursor if the store has not made the
	// query's cursor. A session that is there and not changed while its pages are read is on exactly one of them.
	List(ctx context.Context, q Query) (Page, error)

	// Delete removes a session and all that was kept of it. Of one that is not there it does nothing, and succeeds.
	Delete(ctx context.Context, id acp.SessionID) error

	// Close frees what the store holds of the system. Afterwards the other methods fail with ErrClosed; the
	// sessions are kept.
	Close() error
}

// Info is what lists say of a session.
type Info struct {
	// ID is the session's id: any text of 1 to MaxID bytes of UTF-8. It has the type of version 1 also in stores of other
	// versions.
	ID acp.SessionID
	// Cwd and AdditionalDirectories are the directories of the session.
	Cwd                   string
	AdditionalDirectories []string
	// Title is for people; "" means that there is none yet.
	Title string
	// Created and Updated say when the session was made, and when something last happened in it. A store keeps them to
	// the microsecond and returns them in UTC.
	Created, Updated time.Time
}

// Record is what a store keeps of a session beside its updates.
type Record struct {
	Info
	// State is what the agent keeps for itself, any JSON value; nil is nothing. Lists do not read it.
	State json.RawMessage
}

// Query asks for a page of a list.
type Query struct {
	// Cwd limits the list to sessions with exactly this working directory; "" is all of them.
	Cwd string
	// Cursor is Page.Next of the page before, with the same Cwd, or "" for the first page.
	Cursor string
	// Limit is how many sessions the page has at most; 0 means DefaultLimit, and no page has more than MaxLimit.
	Limit int
}

// Page is a part of a list.
type Page struct {
	Sessions []Info
	Next     string // the cursor of the next page; "" after the last one
}

// Bounds of every store.
const (
	DefaultLimit = 50      // sessions on a page
	MaxLimit     = 1000    // the same, at most
	MaxID        = 1 << 10 // bytes of an id
	MaxInfo      = 1 << 16 // bytes of an Info, as JSON
	MaxState     = 1 << 20 // bytes of Record.State
)

// Errors to match with errors.Is.
var (
	ErrNotFound = errors.New("there is no such session")
	ErrExists   = errors.New("there is a session with this id")
	ErrInvalid  = errors.New("not a session that can be kept")
	ErrTooLarge = errors.New("larger than the store keeps")
	ErrCursor   = errors.New("not a cursor of this list")
	ErrClosed   = errors.New("the store is closed")
	// ErrReadOnly is why a store is not opened.
	ErrReadOnly = errors.New("the folder of the sessions cannot be written in, and also who reads writes there, to lock a session")
)

// Size returns how many sessions a page of the query has at most. It is for implementations.
func (q Query) Size() int {
	if q.Limit <= 0 {
		return DefaultLimit
	}
	return min(q.Limit, MaxLimit)
}

// ValidID reports whether a store can have a session with this id. No store has one with another id: Get, Change,
// Append and Updates fail with ErrNotFound for it, and Delete succeeds.
func ValidID(id acp.SessionID) bool {
	return id != "" && len(id) <= MaxID && utf8.ValidString(string(id))
}

// infoSize is how many bytes the Info takes as JSON, at most.
func (r *Record) infoSize() int {
	size := 256 // for the names of members and the times
	for _, text := range append([]string{string(r.ID), r.Cwd, r.Title}, r.AdditionalDirectories...) {
		if size += len(text) + len(`"",`); size > MaxInfo {
			break
		}
		quoted, _ := json.Marshal(text) // no string fails
		size += len(quoted) - len(text) - len(`""`)
	}
	return size
}

// Check says why a record cannot be kept; nil if it can. It is for implementations of Create and Change.
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

// SessionInfo is what session/list says of a session.
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

// FormatTime writes a time as the protocol has it, in ISO 8601 with microseconds, so that the order of the texts is that
// of the times.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// Fork makes a new session in a store that begins with the state and the updates of the session from. The new one is not
// there if Fork fails; if the process ends meanwhile, it may be there with a part of the updates.
func Fork[U any](ctx context.Context, store StoreOf[U], from acp.SessionID, to Info) (err error) {
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
	updates := make([]U, 0, atOnce)
	var text []byte // of the updates that wait, to know how much that is
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
		if text, err = appendUpdate(text, &update); err != nil {
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

// Update is an update as the packages of the protocol's versions have it: a pointer to their SessionUpdate.
type Update[U any] interface {
	*U
	EncodeJSON(*codec.Encoder)
	DecodeJSON(*codec.Decoder)
}

// appendUpdate adds the JSON of an update to dst.
func appendUpdate[U any](dst []byte, u *U) ([]byte, error) {
	v, ok := any(u).(interface{ EncodeJSON(*codec.Encoder) })
	if !ok {
		return dst, fmt.Errorf("%w: updates of type %T", ErrInvalid, *u)
	}
	return codec.Append(dst, v)
}
