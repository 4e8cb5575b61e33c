// This file owns a session: its life, its turns, and what it has in the store beside its updates.

package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/titles"
)

// Session is an open session. Its methods are safe for concurrent use. State is the author's: prompts run one at a time,
// but other handlers run beside them.
type Session[S any] struct {
	*v2draft.AgentSession

	// State is what Config.Open makes it, or what SaveState has stored.
	State S

	sessions *Sessions[S]
	cwd      v2draft.AbsolutePath
	roots    []v2draft.AbsolutePath
	ctx      context.Context
	cancel   context.CancelCauseFunc
	freed    chan struct{} // closed when nobody uses it any more, and Config.Close has returned

	out  sync.Mutex // held while an update is sent and recorded, so that both are in one order
	said recorder
	life life

	mu      sync.Mutex
	users   int // handlers that run
	prompts int // of them, those of prompts
	closed  bool
	created bool            // the store has it
	early   json.RawMessage // the state that SaveState was given before that
	titled  bool
}

// life is how far a session has come. out guards it.
type life int

const (
	opening life = iota // nothing can be sent yet
	open
	over // nothing can be sent any more
)

func newSession[S any](ss *Sessions[S], session *v2draft.AgentSession, o *Opening) *Session[S] {
	s := &Session[S]{
		AgentSession: session, sessions: ss, cwd: o.Cwd, roots: o.AdditionalDirectories,
		freed: make(chan struct{}), created: o.Resumed,
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.said = recorder{store: ss.config.Store, id: s.storeID(), out: &s.out, failed: func(err error) {
		s.logger().Error("not stored", "error", err)
	}}
	return s
}

// Context ends when the session is closed, with the cause ErrSessionClosed. It is for what belongs to the session
// and not to a turn.
func (s *Session[S]) Context() context.Context { return s.ctx }

// Cwd is the session's working directory.
func (s *Session[S]) Cwd() v2draft.AbsolutePath { return s.cwd }

// AdditionalDirectories are the session's other directories. The result must not be changed.
func (s *Session[S]) AdditionalDirectories() []v2draft.AbsolutePath { return s.roots }

func (s *Session[S]) storeID() acp.SessionID { return acp.SessionID(s.ID()) }

func (s *Session[S]) logger() *slog.Logger { return s.sessions.config.Logger.With("session", s.ID()) }

// acquire notes that a handler uses the session, unless it is closed.
func (s *Session[S]) acquire(prompts int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return v2draft.SessionNotFound(s.ID())
	}
	s.users++
	s.prompts += prompts
	return nil
}

// release notes that the handler has ended.
func (s *Session[S]) release(prompts int) {
	s.mu.Lock()
	s.users--
	s.prompts -= prompts
	last := s.closed && s.users == 0
	s.mu.Unlock()
	if last {
		s.free()
	}
}

// within returns ctx as one that also ends when the session is closed.
func (s *Session[S]) within(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(ErrSessionClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// close ends the session; what it holds is freed when no handler uses it any more.
func (s *Session[S]) close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	last := first && s.users == 0
	s.mu.Unlock()
	if first {
		s.cancel(ErrSessionClosed)
	}
	if last {
		s.free()
	}
}

// free is called once.
func (s *Session[S]) free() {
	defer close(s.freed)
	defer s.sessions.forget(s)
	s.out.Lock()
	s.life = over
	err := s.said.flush()
	s.out.Unlock()
	s.said.running.Wait()
	if err != nil {
		s.logger().Error("the end of the session was not stored", "error", err)
	}
	if s.sessions.config.Close != nil {
		s.sessions.config.Close(s)
	}
}

// crowded reports whether more prompts wait than may. One more runs; while it is about to, it is not counted.
func (s *Session[S]) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompts > 1+s.sessions.config.MaxWaiting
}

// busy reports whether a prompt runs or waits, or is about to.
func (s *Session[S]) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompts > 0
}

// prepare makes the session what the store and the author make it.
func (s *Session[S]) prepare(ctx context.Context, o *Opening) error {
	if o.Resumed {
		r, err := s.said.store.Get(ctx, s.storeID())
		if err != nil {
			return answer(s.ID(), err)
		}
		s.titled = r.Title != ""
		if r.State != nil {
			if err := json.Unmarshal(r.State, &s.State); err != nil {
				return fmt.Errorf("the state that was stored: %w", err)
			}
		}
	}
	if s.sessions.config.Open == nil {
		return nil
	}
	return s.sessions.config.Open(ctx, s, o)
}

// keep has the store know the session as it was opened.
func (s *Session[S]) keep(ctx context.Context, o *Opening) error {
	var dirs []string
	for _, dir := range s.roots {
		dirs = append(dirs, string(dir))
	}
	if o.Resumed {
		return answer(s.ID(), s.said.store.Change(ctx, s.storeID(), func(r *sessionstore.Record) error {
			r.Cwd, r.AdditionalDirectories = string(s.cwd), dirs
			return nil
		}))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	info := sessionstore.Info{ID: s.storeID(), Cwd: string(s.cwd), AdditionalDirectories: dirs, Created: now, Updated: now}
	err := s.said.store.Create(ctx, sessionstore.Record{Info: info, State: s.early})
	s.created = err == nil
	return answer(s.ID(), err)
}

// begin has updates be sent.
func (s *Session[S]) begin() {
	s.out.Lock()
	defer s.out.Unlock()
	s.life = open
}

// SaveState stores State, as encoding/json writes it: it is there again before Config.Open is called for the session the next
// time. The author keeps others from changing it meanwhile. In Config.Open of a new session it is stored when Open has
// succeeded.
func (s *Session[S]) SaveState(ctx context.Context) error {
	data, err := json.Marshal(s.State)
	if err != nil {
		return fmt.Errorf("the state: %w", err)
	}
	s.mu.Lock()
	if !s.created {
		defer s.mu.Unlock()
		s.early = data
		return nil
	}
	s.mu.Unlock()
	return s.said.store.Change(ctx, s.storeID(), func(r *sessionstore.Record) error {
		r.State = data
		return nil
	})
}

// turn does the work of a prompt.
func (s *Session[S]) turn(
	ctx context.Context, message v2draft.UserMessage, req *v2draft.PromptRequest,
) (idle v2draft.IdleStateUpdate, err error) {
	ctx, end := s.within(ctx)
	defer end()
	if err := s.record(ctx, v2draft.NewSessionUpdateUserMessage(message)); err != nil {
		return idle, answer(s.ID(), err)
	}
	defer func() {
		if err := s.finish(context.WithoutCancel(ctx), req); err != nil {
			s.logger().Error("the end of the turn was not stored", "error", err)
		}
	}()
	return s.sessions.config.Prompt(ctx, s, req)
}

// finish stores what waits when a turn ends, the time, and the title, if there was none.
func (s *Session[S]) finish(ctx context.Context, req *v2draft.PromptRequest) error {
	s.mu.Lock()
	titled := s.titled
	s.mu.Unlock()
	var sent error
	if !titled {
		if title := s.sessions.config.Title(req.Prompt); title != "" {
			sent = s.Update(ctx, v2draft.TitleUpdate(title))
		}
	}
	return errors.Join(sent, s.flush(), s.said.store.Change(ctx, s.storeID(), func(r *sessionstore.Record) error {
		r.Updated = time.Now()
		return nil
	}))
}

// retitle takes note of a title.
func (s *Session[S]) retitle(ctx context.Context, title v2draft.Opt[string]) error {
	if title.IsZero() {
		return nil // it stays as it is
	}
	s.mu.Lock()
	s.titled = title.Present()
	s.mu.Unlock()
	return s.said.store.Change(ctx, s.storeID(), func(r *sessionstore.Record) error {
		r.Title = titles.Shortened(title.Value())
		return nil
	})
}

// ErrNotStored is what an error of Session.Update matches when the update could not be stored. It was sent.
var ErrNotStored = errors.New("the update was not stored")

var errNotOpen = errors.New("agentkit: the session is being opened: updates cannot be sent yet")

// Update sends an update and stores it, if it belongs to the conversation; see the package's description, and
// v2draft.AgentSession.Update. Updates are sent and stored in one order, also those of several goroutines.
//
// An update that cannot be stored is sent all the same, and the error matches ErrNotStored. Because chunks are joined, it
// may be about an earlier update. One that is refused before it is sent, such as for a path that is not absolute, is not
// stored either. When the session is closed, and Config.Close is called, the error is ErrSessionClosed.
func (s *Session[S]) Update(ctx context.Context, update v2draft.SessionUpdate) error {
	s.out.Lock()
	defer s.out.Unlock()
	switch s.life {
	case opening:
		return errNotOpen
	case over:
		return ErrSessionClosed
	}
	sent := s.AgentSession.Update(ctx, update)
	if unsent(sent) {
		return sent
	}
	var stored error
	if info, ok := update.Variant.(*v2draft.SessionUpdateSessionInfoUpdate); ok {
		stored = s.retitle(context.WithoutCancel(ctx), info.Title)
	} else {
		stored = s.said.add(ctx, update)
	}
	if stored == nil {
		return sent
	}
	return errors.Join(sent, fmt.Errorf("%w: %w", ErrNotStored, stored))
}

// unsent reports whether an update was not sent because it is not valid. One that this client cannot take is.
func unsent(err error) bool {
	_, unsent := errors.AsType[*engine.UnsentError](err)
	return unsent && !errors.Is(err, v2draft.ErrUnsupported)
}

// record stores an update that was sent already.
func (s *Session[S]) record(ctx context.Context, update v2draft.SessionUpdate) error {
	s.out.Lock()
	defer s.out.Unlock()
	return s.said.add(ctx, update)
}

// flush stores what waits.
func (s *Session[S]) flush() error {
	s.out.Lock()
	defer s.out.Unlock()
	return s.said.flush()
}

// History yields what the store has of the conversation, in order: an agent makes of it what its model must know of a
// session that was resumed. It ends after an error.
func (s *Session[S]) History(ctx context.Context) iter.Seq2[v2draft.SessionUpdate, error] {
	return func(yield func(v2draft.SessionUpdate, error) bool) {
		s.mu.Lock()
		created := s.created
		s.mu.Unlock()
		if !created {
			return
		}
		if err := s.flush(); err != nil {
			yield(v2draft.SessionUpdate{}, err)
			return
		}
		s.said.store.Updates(ctx, s.storeID())(yield)
	}
}

// replay sends the history. Nothing else of the session is sent meanwhile: it is not open yet.
func (s *Session[S]) replay(ctx context.Context) error {
	var shown history
	send := func(updates ...v2draft.SessionUpdate) error {
		for _, update := range updates {
			err := s.AgentSession.Update(ctx, update)
			if unsent(err) { // of another program
				s.logger().Warn("an update was not replayed", "error", err)
			} else if err != nil && !errors.Is(err, v2draft.ErrUnsupported) {
				return fmt.Errorf("replaying: %w", err)
			}
		}
		return nil
	}
	for update, err := range s.said.store.Updates(ctx, s.storeID()) {
		if err != nil {
			return answer(s.ID(), err)
		}
		if err := send(append(shown.ahead(update), update)...); err != nil {
			return err
		}
	}
	return send(shown.ends()...)
}
