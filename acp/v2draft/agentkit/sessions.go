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
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/turns"
)

// Store keeps sessions of version 2.
type Store = sessionstore.StoreOf[v2draft.SessionUpdate]

// OpenStore opens a store in a folder; see sessionstore.Open. The folder may also have sessions of version 1, which are not
// found.
func OpenStore(dir string, opts *sessionstore.Options) (*sessionstore.DirOf[v2draft.SessionUpdate], error) {
	return sessionstore.OpenOf[v2draft.SessionUpdate](dir, int(v2draft.Version), opts)
}

// Config says what an agent does with its sessions. S is the author's state of a session.
type Config[S any] struct {
	// Prompt does the work that a prompt asks for. It is required. The user's message was accepted, shown and stored, and the
	// session is running. The same holds for it as for v2draft.Work.
	Prompt func(ctx context.Context, s *Session[S], req *v2draft.PromptRequest) (v2draft.IdleStateUpdate, error)

	// Store keeps the sessions. It is required, and not closed.
	Store Store

	// Open, if set, prepares a session that was created or resumed: it fills in State, and what o asks for. An error is
	// answered to the client, and the session is not open; Close is not called for it then. Updates cannot be sent yet.
	Open func(ctx context.Context, s *Session[S], o *Opening) error

	// Close, if set, is called once for each session that was open, when the session was closed, deleted, or resumed again,
	// or its connection has ended, and none of its handlers runs any more. Updates cannot be sent any more.
	Close func(s *Session[S])

	// Title makes the title of a session of its first prompt; nil means the first words of its text. The title is sent to
	// the client at the end of that turn. "" is none, and the next prompt is asked.
	Title func(prompt []v2draft.ContentBlock) string

	// Fork lets clients fork a stored session (session/fork). The agent must be served with the options that
	// Sessions.Options returns, which enable v2draft.FeatureFork.
	//
	// Experimental: any minor release may change or remove it.
	Fork bool

	// WhileBusy says what to do with a prompt that arrives while one is running. The default is Queue.
	WhileBusy WhileBusy
	// MaxWaiting is how many prompts of a session may wait. One more is refused. Default 16; with -1 none waits.
	MaxWaiting int
	// MaxSessions is how many sessions of a connection may be open. One more is refused. Default 256.
	MaxSessions int
	// PageSize is how many sessions an answer to session/list has at most. Default 50.
	PageSize int
	// Logger is told of what goes wrong and no caller hears of. Nil means slog.Default.
	Logger *slog.Logger
}

// ErrSessionClosed is the cause of contexts that end because their session was closed, and the error of Session.Update
// afterwards.
var ErrSessionClosed = turns.ErrSessionClosed

// Opening is what the client says of a session that it opens, and what Config.Open says of it.
type Opening struct {
	Resumed               bool // it was there before; otherwise it is new
	Forked                bool // it is new, with the history and the state of another one
	Cwd                   v2draft.AbsolutePath
	AdditionalDirectories []v2draft.AbsolutePath // all of them: those of an earlier opening do not count
	MCPServers            []v2draft.MCPServer
	Meta                  v2draft.Meta // of the request

	// SystemPrompt is the client's system prompt. Clients send one only if AgentOptions.SystemPrompt advertises it.
	// Config.Open must return an error if the agent cannot apply it.
	//
	// Experimental: any minor release may change or remove it. It needs [v2draft.FeatureSystemPrompt].
	SystemPrompt v2draft.Opt[v2draft.SystemPrompt]

	// Config.Open fills in what follows, which the answer tells the client. All of it may be left out.
	ConfigOptions []v2draft.SessionConfigOption // with their current values
	Commands      []v2draft.AvailableCommand
}

// Sessions are the sessions of an agent. One Sessions may serve several connections, which do not see each other's open
// sessions, and share those that are stored. Its methods are safe for concurrent use.
type Sessions[S any] struct {
	config Config[S]
	open   *turns.Table[*v2draft.AgentConn, v2draft.SessionID, *Session[S]]
}

// NewSessions makes the sessions of an agent. It panics without Config.Prompt and Config.Store.
func NewSessions[S any](config Config[S]) *Sessions[S] {
	if config.Prompt == nil || config.Store == nil {
		panic("agentkit: NewSessions without Config.Prompt or Config.Store")
	}
	config.MaxWaiting = cmp.Or(config.MaxWaiting, 16)
	config.MaxSessions = cmp.Or(config.MaxSessions, 256)
	if config.Title == nil {
		config.Title = turns.FirstWords[v2draft.ContentBlock]
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	life := func(s *Session[S]) *turns.Life { return &s.life }
	return &Sessions[S]{config: config, open: turns.NewTable[*v2draft.AgentConn, v2draft.SessionID](config.MaxSessions, life)}
}

// Handlers returns the handlers of an agent, to which its author may add. Use [Bind] for handlers that the author adds for
// a session. The agent must be served without AgentOptions.Steer, except by Options, unless Config.Prompt may run several
// times at once for a session.
func (ss *Sessions[S]) Handlers() v2draft.AgentHandlers {
	h := v2draft.AgentHandlers{
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

// Options returns a copy of opts with the settings that Fork and WhileBusy need; opts may be nil. With Fork or Steer, an
// agent must be served with these options: otherwise it does not start, or prompts wait as with Queue.
func (ss *Sessions[S]) Options(opts *v2draft.AgentOptions) *v2draft.AgentOptions {
	var o v2draft.AgentOptions
	if opts != nil {
		o = *opts
	}
	if ss.config.Fork {
		o.Experimental |= v2draft.FeatureFork
	}
	o.Steer = o.Steer || ss.config.WhileBusy == Steer
	return &o
}

// Close closes all sessions, and waits until Config.Close has returned for each, but for sessions with handlers that still
// run. Call it when the connections are over. No session can be opened afterwards.
func (ss *Sessions[S]) Close() { ss.open.Close() }

// Bind makes a handler of the protocol one that is given the open session of the request's id, with its state. The request is
// refused if there is none. The handler's context ends when the session is closed.
func Bind[S, P, R any](
	ss *Sessions[S], handler func(ctx context.Context, s *Session[S], req *P) (*R, error),
) func(ctx context.Context, session *v2draft.AgentSession, req *P) (*R, error) {
	return func(ctx context.Context, session *v2draft.AgentSession, req *P) (*R, error) {
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

// opening opens a session. With replay, its history is sent.
func (ss *Sessions[S]) opening(ctx context.Context, session *v2draft.AgentSession, o *Opening, replay bool) error {
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
			err = v2draft.ErrClosed
		}
	}
	if err != nil {
		s.life.Close()
	}
	return err
}

func (ss *Sessions[S]) newSession(
	ctx context.Context, conn *v2draft.AgentConn, req *v2draft.NewSessionRequest,
) (*v2draft.NewSessionResponse, error) {
	o := &Opening{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	id := v2draft.SessionID(newID("sess_"))
	if err := ss.opening(ctx, conn.Session(id), o, false); err != nil {
		return nil, err
	}
	return &v2draft.NewSessionResponse{SessionID: id, ConfigOptions: o.ConfigOptions, AvailableCommands: o.Commands}, nil
}

// newID makes an id that nobody guesses. It has no upper case, so that it may be the name of a file anywhere.
func newID(kind string) string { return kind + strings.ToLower(rand.Text()) }

func (ss *Sessions[S]) resumeSession(
	ctx context.Context, session *v2draft.AgentSession, req *v2draft.ResumeSessionRequest,
) (*v2draft.ResumeSessionResponse, error) {
	replay := false
	switch req.ReplayFrom.Value().Variant.(type) {
	case nil:
	case *v2draft.ReplayFromStart:
		replay = true
	default:
		return nil, v2draft.InvalidParamsf("replayFrom: only the start is known")
	}
	o := &Opening{
		Resumed: true, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	if err := ss.opening(ctx, session, o, replay); err != nil {
		return nil, err
	}
	return &v2draft.ResumeSessionResponse{ConfigOptions: o.ConfigOptions, AvailableCommands: o.Commands}, nil
}

func (ss *Sessions[S]) closeSession(
	ctx context.Context, session *v2draft.AgentSession, _ *v2draft.CloseSessionRequest,
) (*v2draft.CloseSessionResponse, error) {
	was, done, err := ss.open.Closing(ctx, session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	if !was {
		return nil, v2draft.SessionNotFound(session.ID())
	}
	return &v2draft.CloseSessionResponse{}, nil
}

// deleteSession succeeds whether there was a session or not.
func (ss *Sessions[S]) deleteSession(
	ctx context.Context, session *v2draft.AgentSession, _ *v2draft.DeleteSessionRequest,
) (*v2draft.DeleteSessionResponse, error) {
	_, done, err := ss.open.Closing(ctx, session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	return &v2draft.DeleteSessionResponse{}, ss.config.Store.Delete(ctx, acp.SessionID(session.ID()))
}

func (ss *Sessions[S]) listSessions(
	ctx context.Context, _ *v2draft.AgentConn, req *v2draft.ListSessionsRequest,
) (*v2draft.ListSessionsResponse, error) {
	page, err := ss.config.Store.List(ctx, sessionstore.Query{
		Cwd: string(req.Cwd.Value()), Cursor: string(req.Cursor.Value()), Limit: ss.config.PageSize,
	})
	switch {
	case errors.Is(err, sessionstore.ErrCursor), req.Cursor.Present() && req.Cursor.Value() == "":
		return nil, v2draft.InvalidParamsf("no such cursor")
	case err != nil:
		return nil, err
	}
	res := &v2draft.ListSessionsResponse{Sessions: make([]v2draft.SessionInfo, 0, len(page.Sessions))}
	for _, stored := range page.Sessions {
		info := v2draft.SessionInfo{SessionID: v2draft.SessionID(stored.ID), Cwd: v2draft.AbsolutePath(stored.Cwd)}
		for _, dir := range stored.AdditionalDirectories {
			info.AdditionalDirectories = append(info.AdditionalDirectories, v2draft.AbsolutePath(dir))
		}
		if stored.Title != "" {
			info.Title = v2draft.Some(stored.Title)
		}
		info.UpdatedAt = v2draft.Some(sessionstore.FormatTime(stored.Updated))
		res.Sessions = append(res.Sessions, info)
	}
	if page.Next != "" {
		res.NextCursor = v2draft.Some(v2draft.SessionListCursor(page.Next))
	}
	return res, nil
}

// prompt has the runtime hold a prompt until its turn comes. It is stored before it is accepted, and refused if that fails.
func (ss *Sessions[S]) prompt(
	ctx context.Context, session *v2draft.AgentSession, req *v2draft.PromptRequest,
) (*v2draft.PromptResponse, error) {
	var s *Session[S]
	var release func()
	var refused error
	var p *steered
	// Which prompt is one too many is decided in the order in which they came.
	err := engine.EnterTurn(ctx, func() {
		most := max(1, 1+ss.config.MaxWaiting)
		if ss.config.WhileBusy == Steer {
			most = 0 // enter counts those that wait: the turn may have taken others
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
	// The session is busy until the turn is over, whose work begins after this handler: a history that is about to grow
	// cannot be replayed. If there is no work, for example because the handler has panicked or the answer could not be
	// sent, ctx ends.
	free := context.AfterFunc(ctx, func() {
		s.leave(p)
		release()
	})
	message := v2draft.UserMessage{MessageID: v2draft.MessageID(newID("msg_")), Content: v2draft.Some(req.Prompt)}
	res, err := s.accept(ctx, message, func(ctx context.Context) (v2draft.IdleStateUpdate, error) {
		if !free() {
			return v2draft.IdleStateUpdate{}, context.Cause(ctx)
		}
		defer release()
		if p != nil {
			return s.steer(ctx, p)
		}
		return s.turn(ctx, req)
	})
	if err != nil && free() {
		s.leave(p)
		release()
	}
	return res, err
}

// answer is what a client gets when the store has failed about a session.
func answer(id v2draft.SessionID, err error) error {
	switch {
	case errors.Is(err, sessionstore.ErrNotFound):
		return v2draft.SessionNotFound(id)
	case errors.Is(err, sessionstore.ErrTooLarge):
		return errors.Join(v2draft.ErrInvalidRequest.WithMessagef("Invalid request: this is too large for the session to be stored"), err)
	case errors.Is(err, sessionstore.ErrInvalid):
		return errors.Join(v2draft.InvalidParamsf("the directories cannot be stored"), err)
	case err != nil:
		return fmt.Errorf("session %q: %w", id, err)
	}
	return nil
}
