package natsacp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// Store is a sessionstore.Store in JetStream. Its methods are safe for concurrent use. A method that writes may have
// taken effect although it fails with a timeout.
type Store struct {
	*engine
	records jetstream.KeyValue
	updates jetstream.Stream
	closed  atomic.Bool
}

var _ sessionstore.Store = (*Store)(nil)

// keyPrefix is the beginning of keys: the version of the protocol.
const keyPrefix = "v1."

// maxUpdate is the greatest size of one update in a store, in bytes.
const maxUpdate = 32 << 20

// OpenStore opens the session store of a fleet, and creates it if necessary. It needs nothing of the fleet, and can be
// in an account of its own. The caller closes nc, after the store.
func OpenStore(ctx context.Context, nc *nats.Conn, opts *Options) (*Store, error) {
	e, err := newEngine(nc, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{engine: e}
	if s.records, err = e.bucket(ctx, "store", 0); err == nil {
		s.updates, err = e.stream(ctx, jetstream.StreamConfig{
			Name:        e.opts.Name + "_updates",
			Subjects:    []string{e.opts.Name + ".updates.>"},
			Discard:     jetstream.DiscardNew,
			AllowDirect: true,
		})
	}
	return s, s.explain(ctx, "opening the session store", "", err)
}

// stored is a Record in the bucket.
type stored struct {
	ID      acp.SessionID `json:"id"`
	Cwd     string        `json:"cwd"`
	Dirs    []string      `json:"dirs,omitempty"`
	Title   string        `json:"title,omitempty"`
	Created int64         `json:"created"` // microseconds since 1970
	Updated int64         `json:"updated"`
	// Generation is part of the subjects of the session's data, so that a session that is created again has none of it.
	Generation string `json:"generation"`
	State      []byte `json:"state,omitempty"`   // as it is; in JSON it would be written anew
	StateAt    string `json:"stateAt,omitempty"` // the last part of the subject of a long state

	revision uint64
}

// maxInline is the greatest size of a state in its record, in bytes: lists read all records.
const maxInline = 1 << 10

func (r *stored) info() sessionstore.Info {
	return sessionstore.Info{
		ID: r.ID, Cwd: r.Cwd, AdditionalDirectories: r.Dirs, Title: r.Title,
		Created: time.UnixMicro(r.Created).UTC(), Updated: time.UnixMicro(r.Updated).UTC(),
	}
}

func (s *Store) key(id acp.SessionID) string {
	sum := sha256.Sum256([]byte(id))
	return keyPrefix + hex.EncodeToString(sum[:])
}

func (s *Store) subject(generation, what string) string {
	return s.opts.Name + ".updates." + generation + "." + what
}

// explain converts an error to one that callers can match.
func (s *Store) explain(ctx context.Context, doing string, id acp.SessionID, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return sessionstore.ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case id == "":
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s session %q: %w", doing, id, err)
}

// check returns why a method cannot begin, or nil.
func (s *Store) check(ctx context.Context) error {
	if s.closed.Load() {
		return sessionstore.ErrClosed
	}
	return context.Cause(ctx)
}

// find returns a session's record.
func (s *Store) find(ctx context.Context, id acp.SessionID) (*stored, error) {
	if !sessionstore.ValidID(id) {
		return nil, sessionstore.ErrNotFound
	}
	entry, err := s.records.Get(ctx, s.key(id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, sessionstore.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	r := &stored{revision: entry.Revision()}
	if err := json.Unmarshal(entry.Value(), r); err != nil {
		return nil, err
	}
	return r, nil
}

// record reads what find leaves out. changed reports that the session has been changed since then.
func (s *Store) record(ctx context.Context, r *stored) (record sessionstore.Record, changed bool, err error) {
	record = sessionstore.Record{Info: r.info(), State: r.State}
	if r.StateAt == "" {
		return record, false, nil
	}
	for line, err := range s.lines(ctx, s.subject(r.Generation, r.StateAt)) {
		if err != nil {
			return record, false, err
		}
		record.State = line
	}
	return record, record.State == nil, nil
}

// pack returns the form in which a record is stored. It stores a long state.
func (s *Store) pack(ctx context.Context, r sessionstore.Record, generation string) (*stored, []byte, error) {
	p := &stored{
		ID: r.ID, Cwd: r.Cwd, Dirs: r.AdditionalDirectories, Title: r.Title,
		Created: r.Created.UnixMicro(), Updated: r.Updated.UnixMicro(), Generation: generation, State: r.State,
	}
	if len(r.State) > maxInline {
		p.State, p.StateAt = nil, unique()
		if err := s.write(ctx, s.subject(generation, p.StateAt), [][]byte{r.State}, true); err != nil {
			return nil, nil, err
		}
	}
	text, err := json.Marshal(p)
	return p, text, err
}

// Create implements sessionstore.Store.
func (s *Store) Create(ctx context.Context, r sessionstore.Record) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	generation := unique()
	_, text, err := s.pack(ctx, r, generation)
	if err == nil {
		_, err = s.records.Create(ctx, s.key(r.ID), text)
	}
	if err != nil {
		s.drop(ctx, s.subject(generation, ">"))
	}
	if errors.Is(err, jetstream.ErrKeyExists) {
		err = sessionstore.ErrExists
	}
	return s.explain(ctx, "creating", r.ID, err)
}

// drop removes data that no record refers to any more. If it fails, the data takes space and nothing else.
func (s *Store) drop(ctx context.Context, subject string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.updates.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		slog.Warn("natsacp: data of a session is left over", "subject", subject, "error", err)
	}
}

// Get implements sessionstore.Store.
func (s *Store) Get(ctx context.Context, id acp.SessionID) (r sessionstore.Record, err error) {
	err = s.retry(ctx, "reading", id, func() (changed bool, err error) {
		found, err := s.find(ctx, id)
		if err == nil {
			r, changed, err = s.record(ctx, found)
		}
		return changed, err
	})
	return r, err
}

// retry calls a function, again while another process has changed the session meanwhile.
func (s *Store) retry(ctx context.Context, doing string, id acp.SessionID, do func() (changed bool, err error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if err := s.check(ctx); err != nil {
			return err
		}
		if changed, err := do(); !changed {
			return s.explain(ctx, doing, id, err)
		}
		if err := pause(ctx, rand.N(wait)); err != nil {
			return err
		}
	}
}

// Change implements sessionstore.Store. It calls change again if another process has changed the session meanwhile.
func (s *Store) Change(ctx context.Context, id acp.SessionID, change func(*sessionstore.Record) error) error {
	return s.retry(ctx, "changing", id, func() (changed bool, err error) {
		old, err := s.find(ctx, id)
		if err != nil {
			return false, err
		}
		r, changed, err := s.record(ctx, old)
		if changed || err != nil {
			return changed, err
		}
		created := r.Created
		if err := change(&r); err != nil {
			return false, err
		}
		r.ID, r.Created = id, created
		if err := r.Check(); err != nil {
			return false, err
		}
		packed, text, err := s.pack(ctx, r, old.Generation)
		if err != nil {
			return false, err
		}
		unused := old.StateAt
		if _, err = s.records.Update(ctx, s.key(id), text, old.revision); err != nil {
			unused = packed.StateAt
		}
		if unused != "" {
			s.drop(ctx, s.subject(old.Generation, unused))
		}
		return errors.Is(err, jetstream.ErrKeyRevisionMismatch), err
	})
}

// Append implements sessionstore.Store.
func (s *Store) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	lines := make([][]byte, len(updates))
	for i := range updates {
		line, err := codec.Append(nil, &updates[i])
		if err != nil {
			return fmt.Errorf("appending to session %q: update %d: %w", id, i, err)
		}
		if len(line) > maxUpdate {
			return fmt.Errorf("appending to session %q: %w: an update of %d bytes", id, sessionstore.ErrTooLarge, len(line))
		}
		lines[i] = wire.AppendLine(nil, line)
	}
	return s.retry(ctx, "appending to", id, func() (changed bool, err error) {
		r, err := s.find(ctx, id)
		if err == nil && len(lines) > 0 {
			if err = s.write(ctx, s.subject(r.Generation, "u"), lines, false); err == nil {
				err = s.stillThere(ctx, id, r.Generation)
			}
		}
		return false, err
	})
}

// stillThere removes what was written to a session that was deleted meanwhile.
func (s *Store) stillThere(ctx context.Context, id acp.SessionID, generation string) error {
	r, err := s.find(ctx, id)
	if err == nil && r.Generation != generation {
		err = sessionstore.ErrNotFound
	}
	if errors.Is(err, sessionstore.ErrNotFound) {
		s.drop(ctx, s.subject(generation, ">"))
	}
	return err
}

// headerPart is in the messages that hold the parts of one line: an id that all of them have, and + before it in all
// but the last one.
const headerPart = "Acp-Part"

// write stores lines: several in a message, or one in several. A line may contain newlines only if it is alone.
func (s *Store) write(ctx context.Context, subject string, lines [][]byte, alone bool) error {
	size := s.payload()
	var batch []byte
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		m := nats.NewMsg(subject)
		m.Data, batch = batch, nil
		return s.publish(ctx, m)
	}
	for _, line := range lines {
		if len(batch)+len(line) >= size {
			if err := flush(); err != nil {
				return err
			}
		}
		if len(line) < size && !alone {
			batch = append(append(batch, line...), '\n')
			continue
		}
		id := unique()
		for part := range slices.Chunk(line, size) {
			m := nats.NewMsg(subject)
			m.Header.Set(headerPart, "+"+id)
			if line = line[len(part):]; len(line) == 0 {
				m.Header.Set(headerPart, id)
			}
			m.Data = part
			if err := s.publish(ctx, m); err != nil {
				return err
			}
		}
	}
	return flush()
}

// lines returns what write has stored. Lines that were not written to their end are left out.
func (s *Store) lines(ctx context.Context, subject string) iter.Seq2[[]byte, error] {
	const maxParted = 16 // lines written at once, or never finished
	return func(yield func([]byte, error) bool) {
		var order []string // ids of lines, oldest first
		parted := map[string][]byte{}
		for m, err := range s.messages(ctx, subject) {
			if err != nil {
				yield(nil, err)
				return
			}
			part := m.Header.Get(headerPart)
			if part == "" {
				for line := range bytes.SplitSeq(bytes.TrimSuffix(m.Data, []byte{'\n'}), []byte{'\n'}) {
					if !yield(line, nil) {
						return
					}
				}
				continue
			}
			id, more := strings.CutPrefix(part, "+")
			line, begun := parted[id]
			line = append(line, m.Data...)
			if !more {
				delete(parted, id)
				order = slices.DeleteFunc(order, func(other string) bool { return other == id })
				if !yield(line, nil) {
					return
				}
				continue
			}
			if parted[id] = line; !begun {
				if order = append(order, id); len(order) > maxParted {
					delete(parted, order[0])
					order = order[1:]
				}
			}
		}
	}
}

// messages returns the messages of a subject that were stored before it is called.
func (s *Store) messages(ctx context.Context, subject string) iter.Seq2[*nats.Msg, error] {
	return func(yield func(*nats.Msg, error) bool) {
		count, err := s.count(ctx, subject)
		next := uint64(0)
		for wait := time.Millisecond; err == nil && count > 0; {
			var batch []*nats.Msg
			if batch, err = s.read(ctx, s.updates.CachedInfo().Config.Name, subject, next); err != nil {
				break
			}
			for _, m := range batch {
				if next = sequence(m) + 1; !yield(m, nil) {
					return
				}
				if count--; count == 0 {
					return
				}
			}
			if len(batch) > 0 {
				continue
			}
			// Either a replica is behind, or they were removed.
			if wait = 2 * wait; wait > 5*time.Second {
				return
			}
			if err = pause(ctx, wait); err != nil {
				break
			}
			var now uint64
			if now, err = s.count(ctx, subject); now == 0 {
				break
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// count returns the number of messages of a subject. The stream's leader answers.
func (s *Store) count(ctx context.Context, subject string) (uint64, error) {
	info, err := s.updates.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	return info.State.Subjects[subject], nil
}

// Updates implements sessionstore.Store.
func (s *Store) Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		err := s.check(ctx)
		if err != nil {
			yield(*new(acp.SessionUpdate), err)
			return
		}
		r, err := s.find(ctx, id)
		if err != nil {
			yield(*new(acp.SessionUpdate), s.explain(ctx, "reading", id, err))
			return
		}
		for line, err := range s.lines(ctx, s.subject(r.Generation, "u")) {
			if err == nil {
				err = s.check(ctx)
			}
			if err != nil {
				yield(*new(acp.SessionUpdate), s.explain(ctx, "reading", id, err))
				return
			}
			var update acp.SessionUpdate
			if err := codec.Unmarshal(line, &update); err != nil {
				slog.Warn("natsacp: an update was left out", "session", id, "error", err)
				continue
			}
			if !yield(update, nil) {
				return
			}
		}
	}
}

// List implements sessionstore.Store. It reads the records of all sessions for each page, without long states.
func (s *Store) List(ctx context.Context, q sessionstore.Query) (page sessionstore.Page, err error) {
	if err := s.check(ctx); err != nil {
		return page, err
	}
	var after sessionstore.Position
	if q.Cursor != "" {
		if after, err = sessionstore.ParseCursor(q.Cursor); err != nil {
			return page, err
		}
	}
	var all []sessionstore.Info
	err = s.each(ctx, s.records, keyPrefix+">", func(entry jetstream.KeyValueEntry) {
		var r stored
		if err := json.Unmarshal(entry.Value(), &r); err != nil {
			slog.Warn("natsacp: a session was left out", "key", entry.Key(), "error", err)
			return
		}
		info := r.info()
		if (q.Cwd == "" || q.Cwd == r.Cwd) && (q.Cursor == "" || after.Compare(info.Position()) < 0) {
			all = append(all, info)
		}
	})
	if err != nil {
		return page, s.explain(ctx, "listing sessions", "", err)
	}
	slices.SortFunc(all, func(a, b sessionstore.Info) int { return a.Position().Compare(b.Position()) })
	if page.Sessions = all; len(all) > q.Size() {
		page.Sessions = all[:q.Size()]
		page.Next = all[q.Size()-1].Position().Cursor()
	}
	return page, nil
}

// Delete implements sessionstore.Store.
func (s *Store) Delete(ctx context.Context, id acp.SessionID) error {
	return s.retry(ctx, "deleting", id, func() (changed bool, err error) {
		r, err := s.find(ctx, id)
		if errors.Is(err, sessionstore.ErrNotFound) {
			return false, nil
		}
		if err == nil {
			err = s.records.Purge(ctx, s.key(id), jetstream.LastRevision(r.revision), jetstream.PurgeTTL(markerTime))
		}
		if err == nil {
			s.drop(ctx, s.subject(r.Generation, ">"))
		}
		return errors.Is(err, jetstream.ErrKeyRevisionMismatch), err
	})
}

// Close implements sessionstore.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return sessionstore.ErrClosed
	}
	return nil
}
