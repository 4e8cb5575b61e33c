package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/turns"
)

// Session is an open session. Its methods are safe for concurrent use. State belongs to the author: prompts run one at
// a time, but other handlers run concurrently with them.
type Session[S any] struct {
	*acpv2.AgentSession

	// State is the value that Config.Open sets, or the one that SaveState has stored.
	State S

	sessions *Sessions[S]
	cwd      acpv2.AbsolutePath
	roots    []acpv2.AbsolutePath
	life     turns.Life

	out   sync.Mutex // held while an update is sent and recorded, so that both happen in the same order
	said  recorder
	phase phase

	mu      sync.Mutex
	created bool            // the session is in the store
	early   json.RawMessage // the state passed to SaveState before that
	titled  bool
	running *steered      // with Steer: the turn
	waiting []*steered    // with Steer: the prompts that wait for it
	entered chan struct{} // with Steer: closed when the prompt that entered last is shown
	more    chan struct{} // holds a token when there may be a prompt to take
}

// phase is the phase of a session's life. out guards it.
type phase int

const (
	opening phase = iota // nothing can be sent yet
	open
	over // nothing can be sent any more
)

func newSession[S any](ss *Sessions[S], session *acpv2.AgentSession, o *Opening) *Session[S] {
	s := &Session[S]{
		AgentSession: session, sessions: ss, cwd: o.Cwd, roots: slices.Clone(o.AdditionalDirectories), created: o.Resumed || o.Forked,
		more: make(chan struct{}, 1),
	}
	s.life.Init(s.free)
	s.said = recorder{
		store: ss.config.Store, id: s.storeID(), due: turns.Timer{Lock: &s.out},
		failed: func(err error) { s.logger().Error("not stored", "error", err) },
	}
	return s
}

// Context returns a context that ends when the session is closed, with the cause ErrSessionClosed. Use it for work that
// belongs to the session rather than to a turn.
func (s *Session[S]) Context() context.Context { return s.life.Context() }

// Cwd returns the session's working directory.
func (s *Session[S]) Cwd() acpv2.AbsolutePath { return s.cwd }

// AdditionalDirectories returns the session's other directories. The result must not be changed.
func (s *Session[S]) AdditionalDirectories() []acpv2.AbsolutePath { return s.roots }

func (s *Session[S]) storeID() acp.SessionID { return acp.SessionID(s.ID()) }

func (s *Session[S]) logger() *slog.Logger { return s.sessions.config.Logger.With("session", s.ID()) }

// free is called once, when the session is no longer in use.
func (s *Session[S]) free() {
	s.out.Lock()
	s.phase = over
	err := s.said.flush()
	s.out.Unlock()
	s.said.due.Wait()
	if err != nil {
		s.logger().Error("the end of the session was not stored", "error", err)
	}
	if s.sessions.config.Close == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil { // like the runtime for handlers, keep serving other sessions
			s.logger().Error(fmt.Sprintf("Config.Close panicked: %v\n%s", v, debug.Stack()))
		}
	}()
	s.sessions.config.Close(s)
}

// prepare sets up the session from the store and with Config.Open.
func (s *Session[S]) prepare(ctx context.Context, o *Opening) error {
	if o.Resumed || o.Forked {
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

// keep stores the session as it was opened.
func (s *Session[S]) keep(ctx context.Context, o *Opening) error {
	if o.Forked {
		return nil // it is stored already
	}
	dirs := plain(s.roots)
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

// plain returns directories in the form that the store has.
func plain(dirs []acpv2.AbsolutePath) (all []string) {
	for _, dir := range dirs {
		all = append(all, string(dir))
	}
	return all
}

// begin allows updates to be sent.
func (s *Session[S]) begin() {
	s.out.Lock()
	defer s.out.Unlock()
	s.phase = open
}

// SaveState stores State, encoded with encoding/json, so that it is restored before the next call of Config.Open for
// the session. The author must prevent concurrent changes to State. In Config.Open of a new session, State is stored
// when Open has succeeded.
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

// accept accepts a prompt when its turn has come.
func (s *Session[S]) accept(
	ctx context.Context, message acpv2.UserMessage, work acpv2.Work,
) (*acpv2.PromptResponse, error) {
	if err := s.AwaitTurn(ctx); err != nil {
		return nil, err
	}
	if s.Context().Err() != nil { // it was closed in the meantime
		return nil, acpv2.SessionNotFound(s.ID())
	}
	if err := s.record(ctx, acpv2.NewSessionUpdateUserMessage(message)); err != nil {
		s.logger().Error("a prompt was not stored, and not accepted", "error", err)
		if refused := answer(s.ID(), err); rpc.ErrorOf(refused).Code != rpc.ErrInternal {
			return nil, refused
		}
		return nil, errors.Join(rpc.Errorf(rpc.ErrInternal, "Internal error: the prompt could not be stored"), err)
	}
	return s.StartTurnWith(ctx, message, work)
}

// turn does the work of a prompt.
func (s *Session[S]) turn(ctx context.Context, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
	ctx, end := s.life.Within(ctx)
	defer end()
	ctx, opened := turns.With(ctx)
	defer func() {
		s.report("texts, tool calls and terminals that were left open", opened.End(ctx))
		s.finish(ctx, req)
	}()
	return s.sessions.config.Prompt(ctx, s, req)
}

// endTime bounds the work at the end of a turn.
const endTime = 10 * time.Second

// finish stores pending updates at the end of a turn, the time, and the title if there was none.
func (s *Session[S]) finish(ctx context.Context, req *acpv2.PromptRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	s.report("the end of a turn", s.flush())
	s.report("the time of a turn", s.said.store.Change(ctx, s.storeID(), func(r *sessionstore.Record) error {
		r.Updated = time.Now()
		return nil
	}))
	s.mu.Lock()
	titled := s.titled
	s.mu.Unlock()
	if titled {
		return
	}
	if title := s.sessions.config.Title(req.Prompt); title != "" {
		s.report("the title", s.Update(ctx, acpv2.TitleUpdate(title)))
	}
}

// report logs failures that are not returned to any caller. It does not log the end of the connection.
func (s *Session[S]) report(what string, err error) {
	if err != nil && (!errors.Is(err, acpv2.ErrClosed) || errors.Is(err, ErrNotStored)) {
		s.logger().Error(what+": failed", "error", err)
	}
}

// retitle records a title.
func (s *Session[S]) retitle(ctx context.Context, title acpv2.Opt[string]) error {
	if title.IsZero() {
		return nil // the title stays
	}
	s.mu.Lock()
	s.titled = title.Present()
	s.mu.Unlock()
	return s.said.store.Change(ctx, s.storeID(), func(r *sessionstore.Record) error {
		r.Title = turns.Shortened(title.Value())
		return nil
	})
}

// ErrNotStored is matched by an error of Session.Update if the update could not be stored. It was sent.
var ErrNotStored = turns.ErrNotStored

var errNotOpen = errors.New("agentkit: the session is being opened: updates cannot be sent yet")

// Update sends an update and stores it, if it belongs to the conversation; see the package documentation, and
// acpv2.AgentSession.Update. Updates are stored in the order in which they are sent, also if several goroutines send
// them.
//
// An update that cannot be stored is still sent, and the error matches ErrNotStored. Because chunks are joined, the
// error may be about an earlier update. An update that is refused before it is sent, for example because a path is not
// absolute, is not stored either. Once the session is closed, and Config.Close has been called, the error is
// ErrSessionClosed. With the context of a turn, the update is sent after the texts of that turn.
func (s *Session[S]) Update(ctx context.Context, update acpv2.SessionUpdate) error {
	turns.Of(ctx).Flush()
	s.out.Lock()
	defer s.out.Unlock()
	switch s.phase {
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
	if info, ok := update.Variant.(*acpv2.SessionUpdateSessionInfoUpdate); ok {
		stored = s.retitle(context.WithoutCancel(ctx), info.Title)
	} else {
		stored = s.said.add(ctx, update)
	}
	if stored == nil {
		return sent
	}
	return errors.Join(sent, fmt.Errorf("%w: %w", ErrNotStored, stored))
}

// RequestPermission is acpv2.AgentSession.RequestPermission, after the texts of the turn that ctx belongs to. To ask
// about a tool call with all its content, use ToolCall.Ask.
func (s *Session[S]) RequestPermission(
	ctx context.Context, req *acpv2.RequestPermissionRequest,
) (acpv2.RequestPermissionOutcome, error) {
	turns.Of(ctx).Flush()
	return s.AgentSession.RequestPermission(ctx, req)
}

// ElicitForm is acpv2.AgentSession.ElicitForm, after the texts of the turn that ctx belongs to. acpv2.Ask makes a form
// from a struct.
func (s *Session[S]) ElicitForm(
	ctx context.Context, message string, schema acpv2.ElicitationSchema,
) (*acpv2.CreateElicitationResponse, error) {
	turns.Of(ctx).Flush()
	return s.AgentSession.ElicitForm(ctx, message, schema)
}

// ElicitURL is acpv2.AgentSession.ElicitURL, after the texts of the turn that ctx belongs to.
func (s *Session[S]) ElicitURL(
	ctx context.Context, message string, id acpv2.ElicitationID, url string,
) (*acpv2.CreateElicitationResponse, error) {
	turns.Of(ctx).Flush()
	return s.AgentSession.ElicitURL(ctx, message, id, url)
}

// StartToolCall starts a tool call; see [StartToolCall]. It belongs to the turn of ctx.
func (s *Session[S]) StartToolCall(ctx context.Context, title string, options ...acpv2.ToolCallOption) (*ToolCall, error) {
	return StartToolCall(ctx, s, title, options...)
}

// StartTerminal starts a terminal; see [StartTerminal]. It belongs to the turn of ctx.
func (s *Session[S]) StartTerminal(ctx context.Context, command string, cwd acpv2.AbsolutePath) (*Terminal, error) {
	return StartTerminal(ctx, s, command, cwd)
}

// NewMessage begins a message; see [NewMessage]. It belongs to the turn of ctx.
func (s *Session[S]) NewMessage(ctx context.Context) *Text { return NewMessage(ctx, s) }

// NewThought begins a thought; see [NewThought]. It belongs to the turn of ctx.
func (s *Session[S]) NewThought(ctx context.Context) *Text { return NewThought(ctx, s) }

// unsent reports whether an update was not sent because it is not valid. An update that this client does not support is
// valid.
func unsent(err error) bool {
	_, unsent := errors.AsType[*engine.UnsentError](err)
	return unsent && !errors.Is(err, acpv2.ErrUnsupported)
}

// record stores an update that has been sent.
func (s *Session[S]) record(ctx context.Context, update acpv2.SessionUpdate) error {
	s.out.Lock()
	defer s.out.Unlock()
	return s.said.add(ctx, update)
}

// flush stores pending updates.
func (s *Session[S]) flush() error {
	s.out.Lock()
	defer s.out.Unlock()
	return s.said.flush()
}

// History returns an iterator over the stored conversation, in order. An agent uses it to rebuild its model's context
// for a session that was resumed. The iteration ends after an error.
func (s *Session[S]) History(ctx context.Context) iter.Seq2[acpv2.SessionUpdate, error] {
	return func(yield func(acpv2.SessionUpdate, error) bool) {
		s.mu.Lock()
		created := s.created
		s.mu.Unlock()
		if !created {
			return
		}
		if err := s.flush(); err != nil {
			yield(acpv2.SessionUpdate{}, err)
			return
		}
		s.said.store.Updates(ctx, s.storeID())(yield)
	}
}

// replay sends the history. Nothing else of the session is sent in the meantime, because it is not open yet.
func (s *Session[S]) replay(ctx context.Context) error {
	shown := newHistory()
	send := func(updates ...acpv2.SessionUpdate) error {
		for _, update := range updates {
			err := s.AgentSession.Update(ctx, update)
			if unsent(err) { // from another program
				s.logger().Warn("an update was not replayed", "error", err)
			} else if err != nil && !errors.Is(err, acpv2.ErrUnsupported) {
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
