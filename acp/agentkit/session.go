package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// Session is an open session. Its methods are safe for concurrent use. State belongs to the author: prompts run one at
// a time, but other handlers run concurrently with them.
//
// It also has the methods of [acp.AgentSession].
type Session[S any] struct {
	session

	// State is the value that Config.Open sets, or the one that SaveState has stored.
	State S
}

// session is what does not depend on the type of the state; see sessions.
type session struct {
	*acp.AgentSession

	outer Place // the *Session[S]
	state any   // a pointer to its State

	sessions *sessions
	cwd      string
	roots    []string
	life     turns.Life

	saving sync.Mutex // guards early
	// the record to store when Config.Open has created the session; nil if the store has the session
	early *sessionstore.Record

	choosing chan struct{} // capacity 1: held while the mode or an option is changed for the client with the author's hook

	out  sync.Mutex // held while an update is recorded and sent, so that both happen in the same order
	said recorder
	// replays reports that the history is about to be sent: updates that Config.Open sends belong after it.
	replays bool

	mu      sync.Mutex
	mode    acp.SessionModeID
	modes   []acp.SessionMode         // not changed after Config.Open
	options []acp.SessionConfigOption // the author's options
	// setters for the options of Select and Toggle; not changed after Config.Open
	fields  map[acp.SessionConfigID]func(value string)
	titled  bool
	title   string        // the stored title, until the client was sent it or another one
	turn    *turn         // the turn that runs, or waits for the answer to the previous one
	waiting []*prompt     // the prompts that wait for it
	keyed   []keyed       // the last prompts with idempotency keys
	steered chan struct{} // closed when the last message for a running turn has been answered
	ends    []func()      // the functions of AtClose
	over    bool          // they have run

	cancels map[any]context.CancelCauseFunc // of the tool calls and terminals that the client may cancel, by id
}

func newSession(ss *sessions, of *acp.AgentSession, o *Opening) *session {
	s := ss.config.makeSession()
	s.AgentSession, s.sessions = of, ss
	s.cwd, s.roots = o.Cwd, slices.Clone(o.AdditionalDirectories)
	s.choosing = make(chan struct{}, 1)
	s.life.Init(s.free)
	s.said = recorder{
		store: ss.config.Store, id: of.ID(),
		out: &s.out, textDue: turns.Timer{Lock: &s.out}, callsDue: turns.Timer{Lock: &s.out},
		failed: func(err error) { s.logger().Error("not stored", "error", err) },
	}
	s.replays = o.Reason == Loaded
	if o.Reason == Created {
		s.early, s.said.unknown = &sessionstore.Record{}, true
	}
	return s
}

// Context returns a context that ends when the session is closed, with the cause ErrSessionClosed. Use it for work that
// belongs to the session rather than to a turn.
func (s *session) Context() context.Context { return s.life.Context() }

// Cwd returns the session's working directory.
func (s *session) Cwd() string { return s.cwd }

// AdditionalDirectories returns the session's other directories. The result must not be changed.
func (s *session) AdditionalDirectories() []string { return s.roots }

func (s *session) home() (*session, bool) { return s, true }

func (s *session) logger() *slog.Logger { return s.sessions.logger().With("session", s.ID()) }

// AtClose registers f to be called once at the end of the session: after it was closed and its handlers have returned,
// and before Config.Close; or after opening it failed. Functions are called in reverse order of registration.
// Sessions.Close waits for them. If the session has already ended, AtClose calls f itself.
func (s *session) AtClose(f func()) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.ends = append(s.ends, f)
	}
	s.mu.Unlock()
	if over {
		f()
	}
}

// runEnds runs the functions of AtClose.
func (s *session) runEnds() {
	s.mu.Lock()
	ends := s.ends
	s.ends, s.over = nil, true
	s.mu.Unlock()
	for _, f := range slices.Backward(ends) {
		s.guard("a function of AtClose", f)
	}
}

// guard calls a function of the author, and logs its panic as the runtime does for handlers: others are served on.
func (s *session) guard(what string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			s.logger().Error(fmt.Sprintf("%s panicked: %v\n%s", what, v, debug.Stack()))
		}
	}()
	f()
}

// free is called once, when the session is no longer in use.
func (s *session) free() {
	if err := s.said.close(); err != nil {
		s.logger().Error("the end of the session was not stored", "error", err)
	}
	s.runEnds()
	if done := s.sessions.config.close; done != nil {
		s.guard("Config.Close", func() { done(s) })
	}
}

// prepare sets up the session from the store and with Config.Open.
func (s *session) prepare(ctx context.Context, o *Opening) error {
	if o.Reason != Created {
		if err := s.restore(ctx, o); err != nil {
			return err
		}
	}
	o.Commands = s.sessions.commands()
	o.booleans = s.Conn().SupportsBooleanConfig()
	if moder, ok := s.sessions.config.Decide.(Moder); ok {
		o.Modes = moder.Modes()
	}
	if open := s.sessions.config.open; open != nil {
		if err := open(ctx, s, o); err != nil {
			return err
		}
	}
	s.setModes(o)
	return nil
}

// introduce announces the session to the store and the client.
func (s *session) introduce(ctx context.Context, o *Opening) error {
	if err := s.keep(ctx, o); err != nil {
		return err
	}
	if o.Reason == Loaded {
		return s.replay(ctx, o)
	}
	// Clients drop messages about a session that they do not know yet.
	acp.AfterResponse(ctx, func(ctx context.Context) {
		s.out.Lock()
		defer s.out.Unlock()
		err := s.present(o, func(update acp.SessionUpdate) error { return s.AgentSession.Update(ctx, update) })
		if err != nil && !errors.Is(err, acp.ErrClosed) {
			s.logger().Warn("the title or commands were not sent", "error", err)
		}
	})
	return nil
}

// present sends the title, which the client may not know, and the commands; out is held.
func (s *session) present(o *Opening, send func(acp.SessionUpdate) error) error {
	s.mu.Lock()
	title := s.title
	s.title = ""
	s.mu.Unlock()
	var failed error
	if title != "" {
		failed = send(acp.TitleUpdate(title))
	}
	if failed == nil && len(o.Commands) != 0 {
		failed = send(acp.CommandsUpdate(o.Commands...))
	}
	return failed
}

// restore loads the stored data of the session.
func (s *session) restore(ctx context.Context, o *Opening) error {
	r, err := s.said.store.Get(ctx, s.ID())
	if err != nil {
		return s.sessions.answer(s.ID(), err)
	}
	s.titled = r.Title != ""
	if o.Reason != Forked { // the client may not know the session
		s.title = r.Title
	}
	state, err := savedIn(&r)
	if err != nil {
		return err
	}
	o.Mode, o.chosen = state.Mode, state.Options
	for _, k := range state.Keyed {
		k.begun = true
		s.keyed = append(s.keyed, k)
	}
	if state.State == nil {
		return nil
	}
	if err := json.Unmarshal(state.State, s.state); err != nil {
		return fmt.Errorf("the state that was stored: %w", err)
	}
	return nil
}

// keep stores the session as it was opened.
func (s *session) keep(ctx context.Context, o *Opening) error {
	store, now := s.said.store, time.Now()
	if store == nil {
		return nil
	}
	if o.Reason != Created {
		err := s.changeStored(ctx, func(r *sessionstore.Record, _ *saved) {
			r.Cwd, r.AdditionalDirectories = s.cwd, s.roots
		})
		return s.sessions.answer(s.ID(), err)
	}
	s.out.Lock()
	defer s.out.Unlock()
	s.saving.Lock()
	defer s.saving.Unlock()
	r := *s.early
	r.Info = sessionstore.Info{
		ID: s.ID(), Cwd: s.cwd, AdditionalDirectories: s.roots, Title: r.Title, Created: now, Updated: now,
	}
	if err := store.Create(ctx, r); err != nil {
		return s.sessions.answer(s.ID(), err)
	}
	s.early = nil
	if err := s.said.markStored(ctx); err != nil {
		return errors.Join(s.sessions.answer(s.ID(), err), store.Delete(context.WithoutCancel(ctx), s.ID()))
	}
	return nil
}

// replay sends the history, and then the commands. Nothing else of the session is sent in the meantime. Tool calls and
// compactions that never ended, because their process was killed, are shown as failed.
func (s *session) replay(ctx context.Context, o *Opening) error {
	s.out.Lock()
	defer s.out.Unlock()
	send := func(update acp.SessionUpdate) error {
		err := s.AgentSession.Update(ctx, update)
		if turns.Mistaken(err) { // from another program, or recorded
			s.logger().Warn("an update was not sent when the session was loaded", "error", err)
			return nil
		}
		if err != nil && !errors.Is(err, acp.ErrUnsupported) {
			return fmt.Errorf("replaying: %w", err)
		}
		return nil
	}
	s.replays = false
	if err := s.said.flush(); err != nil {
		return err
	}
	open := map[string]acp.SessionUpdate{}
	for update, err := range s.conversation(ctx) {
		if err != nil {
			return s.sessions.answer(s.ID(), err)
		}
		if err := send(update); err != nil {
			return err
		}
		follow(open, update)
	}
	for _, key := range slices.Sorted(maps.Keys(open)) {
		if failed := open[key]; failed.Variant != nil {
			if err := send(failed); err != nil {
				return err
			}
		}
	}
	return s.present(o, send)
}

// follow keeps track of the tool calls and compactions that have not ended, with the updates that show them as failed.
// Of a compaction that has ended it keeps an empty one, because the rest of its summary may follow.
func follow(open map[string]acp.SessionUpdate, update acp.SessionUpdate) {
	call := func(id acp.ToolCallID, status acp.ToolCallStatus) {
		key := "call " + string(id)
		if open[key] = acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusFailed)); ends(status) {
			delete(open, key)
		}
	}
	compaction := func(id acp.CompactionID) {
		failed := acp.CompactionUpdate{CompactionID: id, Status: acp.CompactionStatusFailed}
		open["compaction "+string(id)] = acp.NewSessionUpdateCompactionUpdate(failed)
	}
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateToolCall:
		call(u.ToolCallID, u.Status)
	case *acp.SessionUpdateToolCallUpdate:
		if status, ok := u.Status.Get(); ok {
			call(u.ToolCallID, status)
		}
	case *acp.SessionUpdateCompactionUpdate:
		switch compaction(u.CompactionID); u.Status {
		case acp.CompactionStatusCompleted, acp.CompactionStatusFailed, acp.CompactionStatusCancelled:
			open["compaction "+string(u.CompactionID)] = acp.SessionUpdate{}
		default: // it has not ended
		}
	case *acp.SessionUpdateCompactionSummaryChunk: // the first one may begin it
		if _, known := open["compaction "+string(u.CompactionID)]; !known {
			compaction(u.CompactionID)
		}
	default: // is about neither
	}
}

// changeStored changes the session's stored data other than its updates, or the data to be stored. Without a store it
// does nothing.
func (s *session) changeStored(ctx context.Context, change func(*sessionstore.Record, *saved)) error {
	if s.said.store == nil {
		return nil
	}
	whole := func(r *sessionstore.Record) error {
		state, err := savedIn(r)
		if err != nil {
			return err
		}
		change(r, &state)
		data, err := json.Marshal(state)
		if err != nil {
			return fmt.Errorf("the state: %w", err)
		}
		r.State = data
		return nil
	}
	s.saving.Lock()
	if s.early != nil { // in Config.Open
		defer s.saving.Unlock()
		return whole(s.early)
	}
	s.saving.Unlock()
	return s.said.store.Change(ctx, s.ID(), whole)
}

// SaveState stores State, encoded with encoding/json, so that it is restored before the next call of Config.Open for
// the session. The author must prevent concurrent changes to State. In Config.Open of a new session, State is stored
// when Open has succeeded. Without a store SaveState does nothing.
func (s *session) SaveState(ctx context.Context) error {
	if s.said.store == nil {
		return nil
	}
	data, err := json.Marshal(s.state)
	if err != nil {
		return fmt.Errorf("the state: %w", err)
	}
	return s.changeStored(ctx, func(_ *sessionstore.Record, state *saved) { state.State = data })
}

// History returns an iterator over the stored conversation, in order, as it would be replayed. An agent uses it to
// rebuild its model's context for a session that was loaded or resumed. Turns that ended with the stop reason refusal
// are left out, because the protocol says that refused content is no longer part of the conversation. Without a store
// the history is empty. The iteration ends after an error.
func (s *session) History(ctx context.Context) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		if s.said.store == nil {
			return
		}
		if err := s.flush(); err != nil {
			yield(acp.SessionUpdate{}, err)
			return
		}
		if early, ok := s.saidEarly(); ok {
			for _, update := range early {
				if !yield(update, nil) {
					return
				}
			}
			return
		}
		s.conversation(ctx)(yield)
	}
}

// conversation yields the stored updates, except turns that were refused.
func (s *session) conversation(ctx context.Context) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		r, err := s.said.store.Get(ctx, s.ID())
		if err != nil {
			yield(acp.SessionUpdate{}, err)
			return
		}
		state, err := savedIn(&r)
		if err != nil {
			yield(acp.SessionUpdate{}, err)
			return
		}
		refused := map[acp.MessageID]bool{}
		for _, id := range state.Refused {
			refused[id] = true
		}
		skip := false
		for update, err := range s.said.store.Updates(ctx, s.ID()) {
			if chunk, ok := update.Variant.(*acp.SessionUpdateUserMessageChunk); ok { // each turn begins with one
				skip = refused[chunk.MessageID.Value()]
			}
			if (err != nil || !skip) && !yield(update, err) {
				return
			}
		}
	}
}

// ErrNotStored is matched by an error of Session.Update if the update could not be stored. It was sent.
var ErrNotStored = turns.ErrNotStored

// Update stores an update, if it belongs to the conversation, and sends it; see the package documentation and
// acp.AgentSession.Update. Updates are stored in the order in which they are sent, also if several goroutines send
// them. Update records changes to the title, the current mode and the config options, and also reports a new mode to
// the client as a config option; see Opening.Modes.
//
// An update that cannot be stored is still sent, and the error matches ErrNotStored. Because chunks are joined, it may
// be about an earlier update. An update that is refused before it is sent, for example because a path is not absolute,
// is not stored either. Once the session is closed, and Config.Close has been called, the error is ErrSessionClosed.
func (s *session) Update(ctx context.Context, update acp.SessionUpdate) error {
	s.out.Lock()
	defer s.out.Unlock()
	if s.said.closed {
		return ErrSessionClosed
	}
	var stored, sent error
	switch update.Variant.(type) {
	case *acp.SessionUpdateSessionInfoUpdate, *acp.SessionUpdateCurrentModeUpdate, *acp.SessionUpdateConfigOptionUpdate:
		stored = s.record(ctx, update, true) // what is sent for the session depends on it
		sent = s.send(ctx, update)
	default:
		if s.replays && lasting(update) {
			stored = s.record(ctx, update, false)
			break
		}
		if sent = s.send(ctx, update); turns.Mistaken(sent) {
			return sent
		}
		stored = s.record(ctx, update, true)
	}
	if stored == nil {
		return sent
	}
	return errors.Join(sent, fmt.Errorf("%w: %w", ErrNotStored, stored))
}

// sendOnly sends an update that is not stored.
func (s *session) sendOnly(ctx context.Context, update acp.SessionUpdate) error {
	s.out.Lock()
	defer s.out.Unlock()
	if s.said.closed {
		return ErrSessionClosed
	}
	return s.AgentSession.Update(ctx, update)
}

// Record stores an update without sending it. Use it for content that the client already has in another form, such as a
// tool call's output shown in a terminal that will be gone when the session is loaded.
func (s *session) Record(ctx context.Context, update acp.SessionUpdate) error {
	return s.recordOnly(ctx, update, false)
}

// recordOnly is Record, also for updates that are known to be valid.
func (s *session) recordOnly(ctx context.Context, update acp.SessionUpdate, valid bool) error {
	s.out.Lock()
	defer s.out.Unlock()
	if s.said.closed {
		return ErrSessionClosed
	}
	if err := s.record(ctx, update, valid); err != nil {
		return fmt.Errorf("%w: %w", ErrNotStored, err)
	}
	return nil
}

// record stores the effects of an update; out is held.
func (s *session) record(ctx context.Context, update acp.SessionUpdate, valid bool) error {
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateSessionInfoUpdate:
		return s.retitle(context.WithoutCancel(ctx), u.Title)
	case *acp.SessionUpdateCurrentModeUpdate:
		return s.switchMode(context.WithoutCancel(ctx), u.CurrentModeID)
	case *acp.SessionUpdateConfigOptionUpdate:
		s.setOptions(u.ConfigOptions)
		return s.storeOptions(ctx)
	default:
		return s.said.add(ctx, update, valid)
	}
}

// retitle records a title.
func (s *session) retitle(ctx context.Context, title acp.Opt[string]) error {
	if title.IsZero() {
		return nil // the title stays
	}
	s.mu.Lock()
	s.titled, s.title = title.Present(), ""
	s.mu.Unlock()
	return s.changeStored(ctx, func(r *sessionstore.Record, _ *saved) { r.Title = turns.Shortened(title.Value()) })
}

// saidEarly returns the updates of a session that the store does not have yet because Config.Open has not returned.
func (s *session) saidEarly() (updates []acp.SessionUpdate, early bool) {
	s.out.Lock()
	defer s.out.Unlock()
	return s.said.early, s.said.unknown
}

// flush stores updates that are not stored yet.
func (s *session) flush() error {
	s.out.Lock()
	defer s.out.Unlock()
	return s.said.flush()
}
