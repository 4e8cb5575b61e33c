package sessionstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// OpenApp opens the store of the program app, for agents that should run wherever a client starts them. dir is the
// directory, and used is its name: the program may keep other state there. open opens the store in it; nil means [Open]
// with the default options.
//
// If dir is "", it is that of [DefaultDir]. Some clients start agents without the variables that name it, and in some
// places it cannot be created or written to. Then OpenApp logs a warning to slog.Default, and returns a store that
// keeps sessions in memory, up to 256 MiB of updates, and "" for used. It fails for a dir that cannot be used.
func OpenApp(app, dir string, open func(dir string) (Store, error)) (store Store, used string, err error) {
	if open == nil {
		open = func(dir string) (Store, error) { return Open(dir, nil) }
	}
	if used = dir; dir == "" {
		if used, err = DefaultDir(app); errors.Is(err, errName) {
			return nil, "", err
		}
	}
	if err == nil {
		store, err = open(used)
	}
	switch {
	case err == nil:
		return store, used, nil
	case dir != "":
		return nil, "", err
	}
	slog.Warn("sessions are kept in memory, and are lost when this program ends", "error", err)
	return &memory{shared: &shared{sessions: map[acp.SessionID]*remembered{}}}, "", nil
}

// maxMemory bounds the updates of all sessions in a memory, in bytes.
const maxMemory = 256 << 20

// memory is a Store in memory. Several may share their sessions.
type memory struct {
	*shared
	closed atomic.Bool
}

type shared struct {
	mu       sync.Mutex
	sessions map[acp.SessionID]*remembered
	size     int // of all updates, in bytes
}

// remembered is a session. Its updates are encoded, so that nobody else can change them.
type remembered struct {
	record  Record
	updates [][]byte // elements are only added
	size    int
}

func clone(r Record) Record {
	r.AdditionalDirectories, r.State = slices.Clone(r.AdditionalDirectories), slices.Clone(r.State)
	r.Created, r.Updated = r.Created.UTC().Truncate(time.Microsecond), r.Updated.UTC().Truncate(time.Microsecond)
	return r
}

// with calls use with the session, or with nil if there is none; mu is held.
func (m *memory) with(ctx context.Context, id acp.SessionID, use func(*remembered) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed.Load():
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return use(m.sessions[id])
}

func (m *memory) existing(ctx context.Context, id acp.SessionID, use func(*remembered) error) error {
	return m.with(ctx, id, func(s *remembered) error {
		if s == nil {
			return ErrNotFound
		}
		return use(s)
	})
}

func (m *memory) Create(ctx context.Context, r Record) error {
	err := r.Check()
	if err == nil {
		err = m.with(ctx, r.ID, func(s *remembered) error {
			if s != nil {
				return ErrExists
			}
			m.sessions[r.ID] = &remembered{record: clone(r)}
			return nil
		})
	}
	return failed("creating", r.ID, err)
}

func (m *memory) Get(ctx context.Context, id acp.SessionID) (r Record, err error) {
	err = m.existing(ctx, id, func(s *remembered) error {
		r = clone(s.record)
		return nil
	})
	return r, failed("reading", id, err)
}

func (m *memory) Change(ctx context.Context, id acp.SessionID, change func(*Record) error) error {
	return failed("changing", id, m.existing(ctx, id, func(s *remembered) error {
		r := clone(s.record)
		if err := change(&r); err != nil {
			return err
		}
		r.ID, r.Created = id, s.record.Created
		if err := r.Check(); err != nil {
			return err
		}
		s.record = clone(r)
		return nil
	}))
}

func (m *memory) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	lines, size := make([][]byte, len(updates)), 0
	for i := range updates {
		var err error
		if lines[i], err = codec.Append(nil, &updates[i]); err != nil {
			return failed("adding to", id, err)
		}
		size += len(lines[i])
	}
	return failed("adding to", id, m.existing(ctx, id, func(s *remembered) error {
		if m.size+size > maxMemory {
			return fmt.Errorf("%w: all sessions in memory have %d bytes of updates, and may have %d", ErrTooLarge, m.size,
				maxMemory)
		}
		m.size, s.size, s.updates = m.size+size, s.size+size, append(s.updates, lines...)
		return nil
	}))
}

func (m *memory) Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		var lines [][]byte
		err := m.existing(ctx, id, func(s *remembered) error {
			lines = s.updates
			return nil
		})
		for _, line := range lines {
			var u acp.SessionUpdate
			if err = context.Cause(ctx); err == nil {
				err = codec.Unmarshal(line, &u)
			}
			if err != nil {
				break
			}
			if !yield(u, nil) {
				return
			}
		}
		if err != nil {
			yield(acp.SessionUpdate{}, failed("reading", id, err))
		}
	}
}

func (m *memory) List(ctx context.Context, q Query) (Page, error) {
	var infos []Info
	err := m.with(ctx, "", func(*remembered) error {
		for _, s := range m.sessions {
			infos = append(infos, clone(s.record).Info)
		}
		return nil
	})
	if err != nil {
		return Page{}, fmt.Errorf("listing sessions: %w", err)
	}
	return pageOf(infos, q)
}

func (m *memory) Delete(ctx context.Context, id acp.SessionID) error {
	return failed("deleting", id, m.with(ctx, id, func(s *remembered) error {
		if s != nil {
			m.size -= s.size
			delete(m.sessions, id)
		}
		return nil
	}))
}

func (m *memory) Close() error {
	if m.closed.Swap(true) {
		return ErrClosed
	}
	return nil
}
