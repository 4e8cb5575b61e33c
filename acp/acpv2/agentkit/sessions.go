package agentkit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/turns"
)

// Store keeps sessions of version 2.
type Store = sessionstore.StoreOf[acpv2.SessionUpdate]

// OpenStore opens a store in a directory; see sessionstore.Open. The directory may also contain sessions of version 1,
// which the store does not see.
func OpenStore(dir string, opts *sessionstore.Options) (*sessionstore.DirOf[acpv2.SessionUpdate], error) {
	return sessionstore.OpenOf[acpv2.SessionUpdate](dir, int(acpv2.Version), opts)
}

// Config configures the sessions of an agent. S is the type of the author's state of a session.
type Config[S any] struct {
	// Prompt does the work for a prompt. It is required. When it is called, the user's message has been accepted, shown
	// and stored, and the session is running. The rules of acpv2.Work apply to it.
	Prompt func(ctx context.Context, s *Session[S], req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error)

	// Store keeps the sessions. It is required. Sessions does not close it.
	Store Store

	// Open, if set, prepares a session that was created or resumed: it fills in State and the fields of o. An error is
	// sent to the client as the answer; then the session is not open, and Close is not called for it. Updates cannot be
	// sent yet.
	Open func(ctx context.Context, s *Session[S], o *Opening) error

	// Close, if set, is called once for each session that was open, after the session has been closed, deleted or
	// resumed again, or its connection has ended, and all of its handlers have returned. Updates can no longer be sent.
	Close func(s *Session[S])

	// Title derives the title of a session from its first prompt; nil means the first words of its text. The title is
	// sent to the client at the end of that turn. "" means no title, and Title is called again with the next prompt.
	Title func(prompt []acpv2.ContentBlock) string

	// Fork lets clients fork a stored session (session/fork). The agent must be served with the options that
	// Sessions.Options returns, which enable acpv2.FeatureFork.
	//
	// Experimental: any minor release may change or remove it.
	Fork bool

	// WhileBusy selects what to do with a prompt that arrives while one is running. The default is Queue.
	WhileBusy WhileBusy
	// MaxWaiting is how many prompts of a session may wait; one more is refused. The default is 16; -1 means that none
	// may wait.
	MaxWaiting int
	// MaxSessions is how many sessions of a connection may be open; one more is refused. The default is 256.
	MaxSessions int
	// PageSize is the greatest number of sessions in one answer to session/list. The default is 50.
	PageSize int
	// Logger receives errors that are not returned to any caller. Nil means slog.Default.
	Logger *slog.Logger
}

// ErrSessionClosed is the cause of contexts that end because their session was closed, and the error of Session.Update
// afterwards.
var ErrSessionClosed = turns.ErrSessionClosed

// Opening holds the client's parameters for a session that it opens, and the values that Config.Open sets for the
// session.
type Opening struct {
	Resumed               bool // the session existed before; otherwise it is new
	Forked                bool // the session is new, with the history and the state of another one
	Cwd                   acpv2.AbsolutePath
	AdditionalDirectories []acpv2.AbsolutePath // all of them; those of an earlier opening no longer apply
	MCPServers            []acpv2.MCPServer
	Meta                  acpv2.Meta // the _meta of the request

	// SystemPrompt is the client's system prompt. Clients send one only if AgentOptions.SystemPrompt advertises it.
	// Config.Open must return an error if the agent cannot apply it.
	//
	// Experimental: any minor release may change or remove it. It needs [acpv2.FeatureSystemPrompt].
	SystemPrompt acpv2.Opt[acpv2.SystemPrompt]

	// Config.Open sets the following fields, which are part of the answer. All of them are optional.
	ConfigOptions []acpv2.SessionConfigOption // with their current values
	Commands      []acpv2.AvailableCommand
}

// Sessions holds the sessions of an agent. One Sessions may serve several connections; they share the stored sessions,
// but do not see each other's open ones. Its methods are safe for concurrent use.
type Sessions[S any] struct {
	config Config[S]
	open   *turns.Table[*acpv2.AgentConn, acpv2.SessionID, *Session[S]]
}

// NewSessions returns the sessions of an agent. It panics if Config.Prompt or Config.Store is nil.
func NewSessions[S any](config Config[S]) *Sessions[S] {
	if config.Prompt == nil || config.Store == nil {
		panic("agentkit: NewSessions without Config.Prompt or Config.Store")
	}
	config.MaxWaiting = cmp.Or(config.MaxWaiting, 16)
	config.MaxSessions = cmp.Or(config.MaxSessions, 256)
	if config.Title == nil {
		config.Title = turns.FirstWords[acpv2.ContentBlock]
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	life := func(s *Session[S]) *turns.Life { return &s.life }
	return &Sessions[S]{config: config, open: turns.NewTable[*acpv2.AgentConn, acpv2.SessionID](config.MaxSessions, life)}
}

// Handlers returns the handlers of an agent, to which its author may add. Use [Bind] for handlers of a session that the
// author adds. The agent must be served without AgentOptions.Steer, unless Options has set it, or Config.Prompt may run
// several times at once for a session.
func (ss *Sessions[S]) Handlers() acpv2.AgentHandlers {
	h := acpv2.AgentHandlers{
		NewSession:    ss.newSession,
		ListSessions:  ss.listSessions,
		ResumeSession: ss.resumeSession,
		CloseSession:  ss.closeSession,
		DeleteSession: ss.deleteSession,
		Prompt:        ss.prompt,
	}
	if ss.config.Fork {
		h.ForkSession = ss.forkSession
	}
	return h
}

// Options returns a copy of opts with the settings that Fork and WhileBusy need; opts may be nil. An agent that uses
// Fork or Steer must be served with these options: otherwise it does not start, or prompts wait as with Queue.
func (ss *Sessions[S]) Options(opts *acpv2.AgentOptions) *acpv2.AgentOptions {
	var o acpv2.AgentOptions
	if opts != nil {
		o = *opts
	}
	if ss.config.Fork {
		o.Experimental |= acpv2.FeatureFork
	}
	o.Steer = o.Steer || ss.config.WhileBusy == Steer
	return &o
}

// Close closes all sessions, and waits until Config.Close has returned for each, except for sessions with handlers that
// are still running. Call it when the connections are over. No session can be opened afterwards.
func (ss *Sessions[S]) Close() { ss.open.Close() }

// Bind converts a function that takes an open session, with its state, into a handler of the protocol. The session is
// the one with the id in the request; the request is refused if there is none. The handler's context ends when the
// session is closed.
func Bind[S, P, R any](
	ss *Sessions[S], handler func(ctx context.Context, s *Session[S], req *P) (*R, error),
) func(ctx context.Context, session *acpv2.AgentSession, req *P) (*R, error) {
	return func(ctx context.Context, session *acpv2.AgentSession, req *P) (*R, error) {
		s, release, err := ss.open.Use(session.Conn(), session.ID())
		if err != nil {
			return nil, err
		}
		defer release()
		ctx, end := s.life.Within(ctx)
		defer end()
		return handler(ctx, s, req)
	}
}

// opening opens a session. If replay is set, its history is sent.
func (ss *Sessions[S]) opening(ctx context.Context, session *acpv2.AgentSession, o *Opening, replay bool) error {
	done, err := ss.open.Opening(ctx, session.Conn(), session.ID())
	if err != nil {
		return err
	}
	defer done()
	s := newSession(ss, session, o)
	prepared := false
	defer func() {
		if !prepared { // also if Config.Open has panicked
			s.life.Abandon(cmp.Or(err, ErrSessionClosed))
		}
	}()
	err = s.prepare(ctx, o)
	prepared = err == nil
	if err != nil {
		return err
	}
	err = s.keep(ctx, o)
	if err == nil && replay {
		err = s.replay(ctx)
	}
	if err == nil {
		s.begin()
		if !ss.open.Put(s.Conn(), s.ID(), s) {
			err = acpv2.ErrClosed
		}
	}
	if err != nil {
		s.life.Close()
	}
	return err
}

func (ss *Sessions[S]) newSession(
	ctx context.Context, conn *acpv2.AgentConn, req *acpv2.NewSessionRequest,
) (*acpv2.NewSessionResponse, error) {
	o := &Opening{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	id := acpv2.SessionID(newID("sess_"))
	if err := ss.opening(ctx, conn.Session(id), o, false); err != nil {
		return nil, err
	}
	return &acpv2.NewSessionResponse{SessionID: id, ConfigOptions: o.ConfigOptions, AvailableCommands: o.Commands}, nil
}

// newID returns an id that cannot be guessed. It has no upper-case letters, so that it can be a file name on any
// system.
func newID(kind string) string { return kind + strings.ToLower(rand.Text()) }

func (ss *Sessions[S]) resumeSession(
	ctx context.Context, session *acpv2.AgentSession, req *acpv2.ResumeSessionRequest,
) (*acpv2.ResumeSessionResponse, error) {
	replay := false
	switch req.ReplayFrom.Value().Variant.(type) {
	case nil:
	case *acpv2.ReplayFromStart:
		replay = true
	default:
		return nil, acpv2.InvalidParamsf("replayFrom: only the start is supported")
	}
	o := &Opening{
		Resumed: true, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	if err := ss.opening(ctx, session, o, replay); err != nil {
		return nil, err
	}
	return &acpv2.ResumeSessionResponse{ConfigOptions: o.ConfigOptions, AvailableCommands: o.Commands}, nil
}

func (ss *Sessions[S]) closeSession(
	ctx context.Context, session *acpv2.AgentSession, _ *acpv2.CloseSessionRequest,
) (*acpv2.CloseSessionResponse, error) {
	was, done, err := ss.open.Closing(ctx, session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	if !was {
		return nil, acpv2.SessionNotFound(session.ID())
	}
	return &acpv2.CloseSessionResponse{}, nil
}

// deleteSession also succeeds if the session does not exist.
func (ss *Sessions[S]) deleteSession(
	ctx context.Context, session *acpv2.AgentSession, _ *acpv2.DeleteSessionRequest,
) (*acpv2.DeleteSessionResponse, error) {
	_, done, err := ss.open.Closing(ctx, session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	return &acpv2.DeleteSessionResponse{}, ss.config.Store.Delete(ctx, acp.SessionID(session.ID()))
}

func (ss *Sessions[S]) listSessions(
	ctx context.Context, _ *acpv2.AgentConn, req *acpv2.ListSessionsRequest,
) (*acpv2.ListSessionsResponse, error) {
	page, err := ss.config.Store.List(ctx, sessionstore.Query{
		Cwd: string(req.Cwd.Value()), Cursor: string(req.Cursor.Value()), Limit: ss.config.PageSize,
	})
	switch {
	case errors.Is(err, sessionstore.ErrCursor), req.Cursor.Present() && req.Cursor.Value() == "":
		return nil, acpv2.InvalidParamsf("no such cursor")
	case err != nil:
		return nil, err
	}
	res := &acpv2.ListSessionsResponse{Sessions: make([]acpv2.SessionInfo, 0, len(page.Sessions))}
	for _, stored := range page.Sessions {
		info := acpv2.SessionInfo{SessionID: acpv2.SessionID(stored.ID), Cwd: acpv2.AbsolutePath(stored.Cwd)}
		for _, dir := range stored.AdditionalDirectories {
			info.AdditionalDirectories = append(info.AdditionalDirectories, acpv2.AbsolutePath(dir))
		}
		if stored.Title != "" {
			info.Title = acpv2.Some(stored.Title)
		}
		info.UpdatedAt = acpv2.Some(sessionstore.FormatTime(stored.Updated))
		res.Sessions = append(res.Sessions, info)
	}
	if page.Next != "" {
		res.NextCursor = acpv2.Some(acpv2.SessionListCursor(page.Next))
	}
	return res, nil
}

// prompt makes the runtime hold a prompt until its turn comes. The prompt is stored before it is accepted, and refused
// if it cannot be stored.
func (ss *Sessions[S]) prompt(
	ctx context.Context, session *acpv2.AgentSession, req *acpv2.PromptRequest,
) (*acpv2.PromptResponse, error) {
	var s *Session[S]
	var release func()
	var refused error
	var p *steered
	// Whether there are too many prompts is decided in the order in which they arrived.
	err := engine.EnterTurn(ctx, func() {
		most := max(1, 1+ss.config.MaxWaiting)
		if ss.config.WhileBusy == Steer {
			most = 0 // enter counts the waiting prompts: the turn may have taken others
		}
		s, release, refused = ss.open.UseForPrompt(session.Conn(), session.ID(), most)
		if refused != nil || ss.config.WhileBusy != Steer {
			return
		}
		if p, refused = s.enter(ctx, req); refused != nil {
			release()
		}
	})
	if err = cmp.Or(err, refused); err != nil {
		return nil, err
	}
	// The session is busy until the turn is over, and its work begins after this handler: a growing history cannot be
	// replayed. If there is no work, for example because the handler has panicked or the answer could not be sent, ctx
	// ends.
	free := context.AfterFunc(ctx, func() {
		s.leave(p)
		release()
	})
	message := acpv2.UserMessage{MessageID: acpv2.MessageID(newID("msg_")), Content: acpv2.Some(req.Prompt)}
	var res *acpv2.PromptResponse
	if err = p.awaitShown(ctx); err == nil {
		res, err = s.accept(ctx, message, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
			if !free() {
				return acpv2.IdleStateUpdate{}, context.Cause(ctx)
			}
			defer release()
			if p != nil {
				return s.steer(ctx, p)
			}
			return s.turn(ctx, req)
		})
	}
	if err != nil && free() {
		s.leave(p)
		release()
	}
	return res, err
}

// answer returns the error that a client gets if the store has failed for a session.
func answer(id acpv2.SessionID, err error) error {
	switch {
	case errors.Is(err, sessionstore.ErrNotFound):
		return acpv2.SessionNotFound(id)
	case errors.Is(err, sessionstore.ErrTooLarge):
		return errors.Join(acpv2.ErrInvalidRequest.WithMessagef("Invalid request: this is too large for the session to be stored"), err)
	case errors.Is(err, sessionstore.ErrInvalid):
		return errors.Join(acpv2.InvalidParamsf("the directories cannot be stored"), err)
	case err != nil:
		return fmt.Errorf("session %q: %w", id, err)
	}
	return nil
}
