package agentkit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/plain"
)

// Config configures the sessions of an agent. S is the type of the author's state of a session.
type Config[S any] struct {
	// Prompt answers a prompt. It is required. Its context behaves like that of acp.AgentHandlers.Prompt. One turn of a
	// session runs at a time. A nil response without an error ends the turn with the stop reason end_turn, and an error
	// that matches ErrDismissed ends it with cancelled.
	Prompt func(ctx context.Context, t *Turn[S], req *acp.PromptRequest) (*acp.PromptResponse, error)

	// Commands are commands with which a prompt may begin. They are sent to the client, and a prompt that begins with
	// one is answered by its Run; all other prompts go to Prompt.
	Commands []Command[S]

	// Open, if set, prepares a session that was created, loaded or resumed: it fills in State and the fields of o. An
	// error is sent to the client as the answer; then the session is not open, and Close is not called for it. Updates
	// that Open sends with ctx follow the answer if the session is new. When a session is loaded, updates that belong to
	// the conversation are sent after the history.
	Open func(ctx context.Context, s *Session[S], o *Opening) error

	// Close, if set, is called once for each session that Open has prepared, after the session has been closed, deleted
	// or loaded again, or its connection has ended, and all of its handlers have returned. Updates can no longer be
	// sent.
	Close func(s *Session[S])

	// SetMode, if set, is called when the client chooses one of the modes that Open provided, before it becomes the
	// current one. An error refuses it. Without SetMode every mode of the list is accepted.
	SetMode func(ctx context.Context, s *Session[S], mode acp.SessionModeID) error

	// SetOption, if set, is called when the client sets a config option to one of its values, except for the option of
	// the modes and those of Opening.Select and Opening.Toggle. It returns all of the author's options with their new
	// values; those of Select and Toggle may be left out. Without it such options cannot be changed.
	SetOption func(ctx context.Context, s *Session[S], req *acp.SetSessionConfigOptionRequest) ([]acp.SessionConfigOption,
		error)

	// Decide, if set, decides about a tool call before ToolCall.Ask asks the user. If it also is a Rememberer, the user
	// may decide always; if it is a Moder, sessions have its modes. The type Remembered of package acp/policy is all
	// three, and Policy in that package decides by fixed rules.
	Decide Decider

	// AutoSave stores the State of a session at the end of each turn, also of one that fails or is cancelled, as SaveState
	// does. Failures are logged.
	AutoSave bool

	// ToolError, if set, returns the text that a tool call shows when it fails because of err; "" means the default
	// text, see ToolCall.Fail. It must be quick, and must not use the tool call.
	ToolError func(call acp.ToolCall, err error) string

	// Title derives the title of a session from its first prompt; nil means the first words of its text. The title is
	// sent to the client at the end of that turn. "" means no title, and Title is called again with the next prompt. An
	// agent with better titles sends them with acp.TitleUpdate.
	Title func(prompt []acp.ContentBlock) string

	// Store keeps the sessions. Without one they end with their connection, and the client cannot list, load, resume or
	// delete any, although version 2 of the protocol requires most of that. With one, a prompt that the client sends
	// again with its idempotency key is not run again. Sessions does not close the store.
	Store sessionstore.Store

	// Login, if set, requires clients to log in first. The agent must be served with the options that Sessions.Options
	// returns, which offer its Methods.
	Login *Login

	// Fork lets clients fork a stored session (session/fork). The agent must be served with the options that
	// Sessions.Options returns, which enable acp.FeatureFork.
	//
	// Experimental: any minor release may change or remove it.
	Fork bool

	// Subagents lets turns have subagents, see Turn.Subagent. The agent must be served with the options that
	// Sessions.Options returns, which enable acp.FeatureSubagents.
	//
	// Experimental: any minor release may change or remove it.
	Subagents bool

	// Extend, if set, adds to the handlers and options with which Sessions.Serve serves a client. Enable of package
	// github.com/acpgo/sdk/contrib/mcpacp is such a function.
	Extend func(handlers *acp.AgentHandlers, opts *acp.AgentOptions)

	// WhileBusy selects what to do with a prompt that arrives while one is running. The default is Refuse.
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

// WhileBusy selects what to do with a prompt that arrives while another one of its session is running.
type WhileBusy int

const (
	// Refuse answers the prompt with an error at once: -32600, the session is busy.
	Refuse WhileBusy = iota

	// Queue makes the prompt wait until all earlier prompts have been answered. Its turn begins after the answer to the
	// previous turn, so that the client knows which updates belong to which turn.
	Queue

	// Steer offers the prompt to the running turn: see Turn.NextPrompt. A prompt that was taken is answered when that turn
	// ends, with the same stop reason or error, because clients take an answer to mean that the agent is done with the
	// prompt. A prompt that the turn did not take before it ended is not lost: it becomes the next turn, as with Queue.
	//
	// Clients that steer with the extension _session/steering, as the agents for Claude and Codex serve it, are served
	// too: Turn.NextPrompt returns their messages. Such a request is answered when the turn takes the message. If no turn
	// is running, or the turn ends without taking the message, the answer is promptRequired for clients that have opted in
	// to it (_meta.steering.idleBehavior), and -32600 for others; the client may then send the message as a prompt.
	// Prompts and messages that are sent without waiting for answers are taken, and messages answered, in their order.
	Steer
)

// ErrSessionClosed is the cause of contexts that end because their session was closed, and the error of Session.Update
// afterwards.
var ErrSessionClosed = turns.ErrSessionClosed

// Reason is the reason why a session is being opened.
type Reason int

// The reasons.
const (
	Created Reason = iota // session/new: the session is new
	Loaded                // session/load: its history is replayed after Open
	Resumed               // session/resume: its history is not replayed
	Forked                // Sessions.Fork: the session is new, with the history of another one
)

// Opening holds the client's parameters for a session that it opens, and the values that Config.Open sets for the
// session.
type Opening struct {
	Reason                Reason
	Cwd                   string   // cleaned, so that session/list finds it by any spelling
	AdditionalDirectories []string // all of them; those of an earlier opening no longer apply
	MCPServers            []acp.MCPServer
	Meta                  acp.Meta // the _meta of the request

	// SystemPrompt is the client's system prompt. Clients send one only if AgentOptions.SystemPrompt advertises it.
	// Config.Open must return an error if the agent cannot apply it.
	//
	// Experimental: any minor release may change or remove it. It needs [acp.FeatureSystemPrompt].
	SystemPrompt acp.Opt[acp.SystemPrompt]

	// Config.Open sets the following fields, all of which are optional.

	// Modes are the session's modes, and Mode is the current one. Before Open is called, Modes are those of
	// Config.Decide, and Mode is the stored one; if Mode is not in Modes, the first one becomes the current one. Clients
	// also get them as a config option with the id and the category "mode", before the author's, unless the author has
	// such an option.
	Modes []acp.SessionMode
	Mode  acp.SessionModeID
	// ConfigOptions are the author's config options with their current values: see Select and Toggle.
	ConfigOptions []acp.SessionConfigOption
	// Commands are sent to the client. Before Open is called, they are set to those of Config.Commands. If the session
	// was created or resumed, they are sent after the answer; if it was loaded, they are sent after the history and
	// before the answer.
	Commands []acp.AvailableCommand

	chosen   map[acp.SessionConfigID]string       // the stored values of the options of Select and Toggle
	booleans bool                                 // the client supports boolean options
	fields   map[acp.SessionConfigID]func(string) // setters for the fields passed to Select and Toggle
}

// Sessions holds the sessions of an agent. One Sessions may serve several connections; they share the stored sessions,
// but do not see each other's open ones. Its methods are safe for concurrent use.
type Sessions[S any] struct{ sessions }

// sessions has what does not depend on the type of the author's state: methods of a generic type are compiled for each
// type in each package that uses it.
type sessions struct {
	config config

	open *turns.Table[*acp.AgentConn, *session]

	loginMu  sync.Mutex
	loggedIn map[*acp.AgentConn]bool
}

// config is Config for sessions.
type config struct {
	Config[struct{}] // without the functions of an author's state, which follow

	makeSession func() *session        // with outer and state
	makeTurn    func(s *session) *turn // with outer

	prompt    func(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error)
	commands  []command
	open      func(ctx context.Context, s *session, o *Opening) error
	close     func(*session)
	setMode   func(ctx context.Context, s *session, mode acp.SessionModeID) error
	setOption func(ctx context.Context, s *session, req *acp.SetSessionConfigOptionRequest) ([]acp.SessionConfigOption,
		error)
}

// NewSessions returns the sessions of an agent. It panics if Config.Prompt is nil.
func NewSessions[S any](config Config[S]) *Sessions[S] {
	if config.Prompt == nil {
		panic("agentkit: NewSessions without Config.Prompt")
	}
	checkCommands(config.Commands)
	ss := new(Sessions[S])
	ss.init(untyped(config))
	return ss
}

func untyped[S any](c Config[S]) config {
	typed := func(s *session) *Session[S] { return s.outer.(*Session[S]) }
	core := config{
		makeSession: func() *session {
			s := new(Session[S])
			s.outer, s.state = s, &s.State
			return &s.session
		},
		makeTurn: func(s *session) *turn {
			t := &Turn[S]{Session: typed(s)}
			t.turn.outer = t
			return &t.turn
		},
		prompt: func(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			return c.Prompt(ctx, t.outer.(*Turn[S]), req)
		},
		Config: Config[struct{}]{
			Decide: c.Decide, AutoSave: c.AutoSave, ToolError: c.ToolError, Title: c.Title, Store: c.Store, Login: c.Login,
			Fork: c.Fork, Subagents: c.Subagents, Extend: c.Extend, WhileBusy: c.WhileBusy, MaxWaiting: c.MaxWaiting,
			MaxSessions: c.MaxSessions, PageSize: c.PageSize, Logger: c.Logger,
		},
	}
	for _, command := range c.Commands {
		core.commands = append(core.commands, newCommand(command))
	}
	if c.Open != nil {
		core.open = func(ctx context.Context, s *session, o *Opening) error { return c.Open(ctx, typed(s), o) }
	}
	if c.Close != nil {
		core.close = func(s *session) { c.Close(typed(s)) }
	}
	if c.SetMode != nil {
		core.setMode = func(ctx context.Context, s *session, mode acp.SessionModeID) error {
			return c.SetMode(ctx, typed(s), mode)
		}
	}
	if c.SetOption != nil {
		core.setOption = func(
			ctx context.Context, s *session, req *acp.SetSessionConfigOptionRequest,
		) ([]acp.SessionConfigOption, error) {
			return c.SetOption(ctx, typed(s), req)
		}
	}
	return core
}

func (ss *sessions) init(config config) {
	config.MaxWaiting = cmp.Or(config.MaxWaiting, 16)
	config.MaxSessions = cmp.Or(config.MaxSessions, 256)
	if config.Title == nil {
		config.Title = turns.FirstWords
	}
	ss.config, ss.loggedIn = config, map[*acp.AgentConn]bool{}
	life := func(s *session) *turns.Life { return &s.life }
	ss.open = turns.NewTable[*acp.AgentConn](config.MaxSessions, life)
}

// Handlers returns the handlers of an agent, to which its author may add. Handlers for stored sessions are included if
// there is a store. Use [Bind] for handlers of a session that the author adds. Extensions is never nil: add methods to
// it rather than replacing it, because it may contain methods of the kit.
func (ss *sessions) Handlers() acp.AgentHandlers {
	h := acp.AgentHandlers{
		NewSession:     ss.newSession,
		CloseSession:   ss.closeSession,
		Prompt:         ss.prompt,
		SetSessionMode: bind(ss, ss.setMode),

		SetSessionConfigOption: bind(ss, ss.setOption),

		Extensions: &acp.Extensions[acp.AgentConn]{},
	}
	if login := ss.config.Login; login != nil {
		h.Logout = ss.logout
		if login.Run != nil {
			h.Authenticate = ss.authenticate
		}
	}
	ss.handleCancel(h.Extensions)
	if ss.config.WhileBusy == Steer {
		rpc.Handle(h.Extensions, plain.SteerMethod, ss.steer)
	}
	if ss.config.Store != nil {
		h.LoadSession = ss.loadSession
		h.ResumeSession = ss.resumeSession
		h.ListSessions = ss.listSessions
		h.DeleteSession = ss.deleteSession
		if ss.config.Fork {
			h.ForkSession = ss.forkSession
		}
	}
	return h
}

// Options returns a copy of opts with the settings that WhileBusy, Fork, Subagents and Login need; opts may be nil. An
// agent that uses Queue, Steer, Fork, Subagents or Login must be served with these options: otherwise no session can be
// opened, the agent does not start, or there are no subagents.
func (ss *sessions) Options(opts *acp.AgentOptions) *acp.AgentOptions {
	o := *cmp.Or(opts, &acp.AgentOptions{})
	o.Conn.ConcurrentTurns = o.Conn.ConcurrentTurns || ss.config.WhileBusy != Refuse
	if ss.config.Fork {
		o.Experimental |= acp.FeatureFork
	}
	if ss.config.Subagents {
		o.Experimental |= acp.FeatureSubagents
	}
	var extensions []string
	if ss.config.WhileBusy == Steer {
		extensions = append(extensions, plain.SteerKey)
	}
	o.Initialize = advertise(o.Initialize, extensions)
	if login := ss.config.Login; login != nil {
		o.AuthMethods = append(slices.Clone(login.Methods), o.AuthMethods...)
	}
	return &o
}

// Serve serves one client over transport, as acp.ServeAgent does, with the handlers of Handlers, the settings of
// Options and what Config.Extend adds, and then closes the sessions. opts may be nil. Clients may speak version 1 or 2
// of the protocol; see package translate. An agent that serves several clients, or version 1 alone, calls Handlers,
// Options, acp.ServeAgent and Close itself.
func (ss *sessions) Serve(ctx context.Context, transport acp.Transport, opts *acp.AgentOptions) error {
	defer ss.Close()
	handlers, settings := ss.Handlers(), ss.Options(opts)
	if extend := ss.config.Extend; extend != nil {
		extend(&handlers, settings)
	}
	return acp.ServeAgent(ctx, translate.Agent(transport), handlers, settings)
}

// Close closes all sessions, and waits until Config.Close has returned for each, except for sessions with handlers that
// are still running. Call it when the connections are over. No session can be opened afterwards.
func (ss *sessions) Close() { ss.open.Close() }

// Bind converts a function that takes an open session, with its state, into a handler of the protocol. The session is
// the one with the id in the request; the request is refused if there is none. The handler's context ends when the
// session is closed.
func Bind[S, P, R any](
	ss *Sessions[S], handler func(ctx context.Context, s *Session[S], req *P) (*R, error),
) func(ctx context.Context, session *acp.AgentSession, req *P) (*R, error) {
	return bind(&ss.sessions, func(ctx context.Context, s *session, req *P) (*R, error) {
		return handler(ctx, s.outer.(*Session[S]), req)
	})
}

func bind[P, R any](
	ss *sessions, handler func(ctx context.Context, s *session, req *P) (*R, error),
) func(ctx context.Context, session *acp.AgentSession, req *P) (*R, error) {
	return func(ctx context.Context, session *acp.AgentSession, req *P) (*R, error) {
		s, release, err := ss.open.Use(session.Conn(), session.ID())
		if err != nil {
			return nil, err
		}
		defer release()
		ctx, end := s.life.Within(ctx)
		defer end()
		res, err := handler(ctx, s, req)
		return res, turns.Closed(ctx, err)
	}
}

// Lookup returns an open session of a connection, or an error that tells the client that the session does not exist.
func (ss *Sessions[S]) Lookup(session *acp.AgentSession) (*Session[S], error) {
	s, err := ss.lookup(session)
	if err != nil {
		return nil, err
	}
	return s.outer.(*Session[S]), nil
}

func (ss *sessions) lookup(session *acp.AgentSession) (*session, error) {
	s, release, err := ss.open.Use(session.Conn(), session.ID())
	if err == nil {
		release()
	}
	return s, err
}

var errOptions = errors.New("agentkit: WhileBusy needs the options that Sessions.Options returns")

// opening opens a session.
func (ss *sessions) opening(ctx context.Context, session *acp.AgentSession, o *Opening) (*session, error) {
	if err := ss.authorize(ctx, session.Conn()); err != nil {
		return nil, err
	}
	if ss.config.WhileBusy != Refuse && !(*engine.Conn)(session.RPC()).TakesConcurrentTurns() {
		return nil, errOptions
	}
	done, err := ss.open.Opening(ctx, session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	s := newSession(ss, session, o)
	prepared := false
	defer func() {
		if !prepared { // also if Config.Open has panicked
			s.life.Abandon(cmp.Or(err, ErrSessionClosed))
			if err := s.said.close(); err != nil {
				s.logger().Error("updates of a session that was not opened were not stored", "error", err)
			}
			s.runEnds()
		}
	}()
	err = s.prepare(ctx, o)
	prepared = err == nil
	if err != nil {
		return nil, err
	}
	err = s.introduce(ctx, o)
	if err == nil && !ss.open.Put(s.Conn(), s.ID(), s) {
		err = acp.ErrClosed
	}
	if err != nil {
		s.life.Close()
		return nil, err
	}
	return s, nil
}

// newID returns an id that cannot be guessed. It has no upper-case letters, so that it can be a file name on any
// system.
func newID() acp.SessionID { return acp.SessionID("sess_" + strings.ToLower(rand.Text())) }

// opened opens a session as a request asks for it.
func (ss *sessions) opened(
	ctx context.Context, session *acp.AgentSession, why Reason, req *acp.NewSessionRequest,
) (*acp.NewSessionResponse, error) {
	s, err := ss.opening(ctx, session, &Opening{
		Reason: why, Cwd: filepath.Clean(req.Cwd), AdditionalDirectories: req.AdditionalDirectories,
		MCPServers: req.MCPServers, SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	})
	if err != nil {
		return nil, err
	}
	return &acp.NewSessionResponse{SessionID: s.ID(), Modes: s.modeState(), ConfigOptions: s.optionState()}, nil
}

func (ss *sessions) newSession(ctx context.Context, conn *acp.AgentConn,
	req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return ss.opened(ctx, conn.Session(newID()), Created, req)
}

func (ss *sessions) loadSession(
	ctx context.Context, session *acp.AgentSession, req *acp.LoadSessionRequest,
) (*acp.LoadSessionResponse, error) {
	res, err := ss.opened(ctx, session, Loaded, &acp.NewSessionRequest{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	})
	if err != nil {
		return nil, err
	}
	return &acp.LoadSessionResponse{Modes: res.Modes, ConfigOptions: res.ConfigOptions}, nil
}

func (ss *sessions) resumeSession(
	ctx context.Context, session *acp.AgentSession, req *acp.ResumeSessionRequest,
) (*acp.ResumeSessionResponse, error) {
	res, err := ss.opened(ctx, session, Resumed, asNew((*acp.ForkSessionRequest)(req)))
	if err != nil {
		return nil, err
	}
	return &acp.ResumeSessionResponse{Modes: res.Modes, ConfigOptions: res.ConfigOptions}, nil
}

func (ss *sessions) closeSession(
	ctx context.Context, session *acp.AgentSession, _ *acp.CloseSessionRequest,
) (*acp.CloseSessionResponse, error) {
	was, done, err := ss.open.Closing(ctx, session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	if !was {
		return nil, acp.SessionNotFound(session.ID())
	}
	return &acp.CloseSessionResponse{}, nil
}

// deleteSession also succeeds if the session does not exist.
func (ss *sessions) deleteSession(
	ctx context.Context, session *acp.AgentSession, _ *acp.DeleteSessionRequest,
) (*acp.DeleteSessionResponse, error) {
	if err := ss.authorize(ctx, session.Conn()); err != nil {
		return nil, err
	}
	_, done, err := ss.open.Closing(ctx, session.Conn(), session.ID())
	if err != nil {
		return nil, err
	}
	defer done()
	return &acp.DeleteSessionResponse{}, ss.answer(session.ID(), ss.config.Store.Delete(ctx, session.ID()))
}

func (ss *sessions) listSessions(
	ctx context.Context, conn *acp.AgentConn, req *acp.ListSessionsRequest,
) (*acp.ListSessionsResponse, error) {
	if err := ss.authorize(ctx, conn); err != nil {
		return nil, err
	}
	cwd := req.Cwd.Value()
	if cwd != "" {
		cwd = filepath.Clean(cwd)
	}
	page, err := ss.config.Store.List(ctx, sessionstore.Query{
		Cwd: cwd, Cursor: req.Cursor.Value(), Limit: ss.config.PageSize,
	})
	switch {
	case errors.Is(err, sessionstore.ErrCursor), req.Cursor.Present() && req.Cursor.Value() == "":
		return nil, acp.InvalidParamsf("no such cursor")
	case err != nil:
		return nil, err
	}
	res := &acp.ListSessionsResponse{Sessions: make([]acp.SessionInfo, 0, len(page.Sessions))}
	for i := range page.Sessions {
		res.Sessions = append(res.Sessions, page.Sessions[i].SessionInfo())
	}
	if page.Next != "" {
		res.NextCursor = acp.Some(page.Next)
	}
	return res, nil
}

// answer returns the error that a client gets if the store has failed for a session.
func (ss *sessions) answer(id acp.SessionID, err error) error {
	switch {
	case errors.Is(err, sessionstore.ErrNotFound):
		return acp.SessionNotFound(id)
	case errors.Is(err, sessionstore.ErrTooLarge):
		return errors.Join(acp.ErrInvalidRequest.WithMessagef("Invalid request: this is too large for the session to "+
			"be stored"), err)
	case errors.Is(err, sessionstore.ErrInvalid):
		return errors.Join(acp.InvalidParamsf("the directories cannot be stored"), err)
	}
	return err
}

// saved is the state of a session in the store.
type saved struct {
	Mode    acp.SessionModeID              `json:"mode,omitempty"`
	Options map[acp.SessionConfigID]string `json:"options,omitempty"` // values of the options of Select and Toggle
	State   json.RawMessage                `json:"state,omitempty"`
	Refused []acp.MessageID                `json:"refused,omitempty"` // prompts that are not part of the conversation, nor are their turns
	Keyed   []keyed                        `json:"keyed,omitempty"`
}

// maxRefused is how many refused prompts of a session are remembered; older ones are forgotten.
const maxRefused = 1000

// savedIn reads the stored state of a session.
func savedIn(r *sessionstore.Record) (state saved, err error) {
	if r.State == nil {
		return state, nil
	}
	if err := json.Unmarshal(r.State, &state); err != nil {
		return saved{}, fmt.Errorf("the state that was stored: %w", err)
	}
	return state, nil
}

func (ss *sessions) logger() *slog.Logger {
	return cmp.Or(ss.config.Logger, slog.Default())
}

// Login requires clients to log in before they create, open, fork, list or delete sessions: until then, requests that
// do so are answered with acp.ErrAuthRequired. A login is valid for one connection. Prompts of open sessions continue
// after a logout.
type Login struct {
	// Methods are the authentication methods that clients are offered.
	Methods []acp.AuthMethod

	// Run logs a client in with one of the Methods, other than those that run in a terminal; an error refuses it. Run
	// is required if there is such a method.
	Run func(ctx context.Context, conn *acp.AgentConn, method acp.AuthMethodID) error

	// Valid, if set, reports whether stored credentials exist, such as those of a login in a terminal, so that the
	// client need not log in. It is called for each request of a client that has not logged in.
	Valid func(ctx context.Context, conn *acp.AgentConn) (bool, error)

	// Logout, if set, is called when a client logs out. It removes credentials that Valid would find.
	Logout func(ctx context.Context, conn *acp.AgentConn) error
}

// authenticate serves authenticate.
func (ss *sessions) authenticate(
	ctx context.Context, conn *acp.AgentConn, req *acp.AuthenticateRequest,
) (*acp.AuthenticateResponse, error) {
	if err := ss.config.Login.Run(ctx, conn, req.MethodID); err != nil {
		return nil, err
	}
	ss.loginMu.Lock()
	defer ss.loginMu.Unlock()
	for conn := range ss.loggedIn {
		select {
		case <-conn.Done():
			delete(ss.loggedIn, conn)
		default:
		}
	}
	ss.loggedIn[conn] = true
	return &acp.AuthenticateResponse{}, nil
}

// logout serves logout.
func (ss *sessions) logout(ctx context.Context, conn *acp.AgentConn, _ *acp.LogoutRequest) (*acp.LogoutResponse,
	error) {
	if logout := ss.config.Login.Logout; logout != nil {
		if err := logout(ctx, conn); err != nil {
			return nil, err
		}
	}
	ss.loginMu.Lock()
	defer ss.loginMu.Unlock()
	delete(ss.loggedIn, conn)
	return &acp.LogoutResponse{}, nil
}

// authorize refuses a client that has to log in.
func (ss *sessions) authorize(ctx context.Context, conn *acp.AgentConn) error {
	login := ss.config.Login
	if login == nil {
		return nil
	}
	ss.loginMu.Lock()
	ok := ss.loggedIn[conn]
	ss.loginMu.Unlock()
	var err error
	if !ok && login.Valid != nil {
		ok, err = login.Valid(ctx, conn)
	}
	if err == nil && !ok {
		err = acp.ErrAuthRequired
	}
	return err
}

func (ss *sessions) forkSession(
	ctx context.Context, session *acp.AgentSession, req *acp.ForkSessionRequest,
) (*acp.ForkSessionResponse, error) {
	if err := ss.authorize(ctx, session.Conn()); err != nil {
		return nil, err
	}
	res, err := ss.Fork(ctx, session.Conn(), session.ID(), asNew(req))
	return (*acp.ForkSessionResponse)(res), err
}

// asNew returns a request for a session that exists, without its id.
func asNew(req *acp.ForkSessionRequest) *acp.NewSessionRequest {
	return &acp.NewSessionRequest{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
}

// Fork creates and opens a session that begins with the history and the state of another stored session, which may be
// open. It requires a store. With Config.Fork, session/fork calls it. Otherwise it is for agents that offer forking in
// their own way: the client then learns the new session's id from the agent's answer, or from session/list.
func (ss *sessions) Fork(
	ctx context.Context, conn *acp.AgentConn, from acp.SessionID, req *acp.NewSessionRequest,
) (*acp.NewSessionResponse, error) {
	store := ss.config.Store
	if store == nil {
		return nil, fmt.Errorf("agentkit: Fork: %w", errors.ErrUnsupported)
	}
	if s, err := ss.lookup(conn.Session(from)); err == nil {
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
	info, err := store.Get(ctx, from)
	if err != nil {
		return nil, ss.answer(from, err)
	}
	id, now, cwd := newID(), time.Now(), filepath.Clean(req.Cwd)
	err = sessionstore.Fork(ctx, store, from, sessionstore.Info{
		ID: id, Cwd: cwd, AdditionalDirectories: req.AdditionalDirectories, Title: info.Title, Created: now, Updated: now,
	})
	if err != nil {
		return nil, ss.answer(from, err)
	}
	res, err := ss.opened(ctx, conn.Session(id), Forked, req)
	if err != nil {
		return nil, errors.Join(err, store.Delete(context.WithoutCancel(ctx), id))
	}
	return res, nil
}
