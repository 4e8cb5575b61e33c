package v2draft

import (
	"context"
	"iter"
	"sync/atomic"
)

// AgentSession is an agent's handle of one session: it sends the session's updates and calls to the client. Its
// methods fill in the session's id, and are safe for concurrent use. It holds nothing else: what an agent knows of a
// session, such as its working directory, the agent keeps under its ID.
type AgentSession struct {
	conn *AgentConn
	id   SessionID
}

// Update sends an update (session/update). Updates arrive in the order in which they were sent. With the
// context of a turn that was cancelled it still sends, and blocks for at most ten seconds while too much is
// unsent. The states of a turn are reported by StartTurn and RunTurn.
func (s *AgentSession) Update(ctx context.Context, update SessionUpdate) error {
	ctx, done := lasting(ctx)
	defer done()
	return s.conn.SessionUpdate(ctx, &UpdateSessionNotification{SessionID: s.id, Update: update})
}

// RequestPermission asks the user whether something may be done (session/request_permission); the
// session's id is filled in, and req is not changed. Within a turn it reports that user action is
// required, and when there is an answer that work goes on. When the turn is cancelled it returns an error,
// which the turn may return as it is. An outcome of a kind that is not known must be taken for a refusal.
func (s *AgentSession) RequestPermission(ctx context.Context, req *RequestPermissionRequest) (RequestPermissionOutcome, error) {
	own := *orEmpty(req)
	own.SessionID = s.id
	res, err := requiringAction(ctx, s, func() (*RequestPermissionResponse, error) {
		return s.conn.RequestPermission(ctx, &own)
	})
	if err != nil {
		return RequestPermissionOutcome{}, err
	}
	return res.Outcome, nil
}

// ElicitForm asks the user to fill in a form (elicitation/create, mode form). Within a turn it reports
// that user action is required, and when there is an answer that work goes on.
func (s *AgentSession) ElicitForm(
	ctx context.Context, message string, schema ElicitationSchema,
) (*CreateElicitationResponse, error) {
	return requiringAction(ctx, s, func() (*CreateElicitationResponse, error) {
		return s.baseElicitForm(ctx, message, schema)
	})
}

// ElicitURL asks the user to open a URL (elicitation/create, mode url). id must be unique among the
// connection's elicitations that are under way; when what happens there is done, tell the client by
// AgentConn.CompleteElicitation. Within a turn it reports that user action is required, and when there
// is an answer that work goes on.
func (s *AgentSession) ElicitURL(
	ctx context.Context, message string, id ElicitationID, url string,
) (*CreateElicitationResponse, error) {
	return requiringAction(ctx, s, func() (*CreateElicitationResponse, error) {
		return s.baseElicitURL(ctx, message, id, url)
	})
}

// ClientSession is one session as its client holds it: what the client asks of the agent for it. Its methods
// fill in the session's id, and are safe for concurrent use.
type ClientSession struct {
	conn  *ClientConn
	id    SessionID
	state atomic.Pointer[sessionState] // nil until something is known; only the reader changes it
}

// sessionState is what an agent has said of a session.
type sessionState struct {
	configOptions []SessionConfigOption // nil until the agent has said which there are
	commands      []AvailableCommand
	meta          Meta
}

func (s *ClientSession) known() *sessionState {
	if state := s.state.Load(); state != nil {
		return state
	}
	return &sessionState{}
}

// opened takes note of the answer that created or resumed the session, and makes s its handle.
func (s *ClientSession) opened(options []SessionConfigOption, commands []AvailableCommand, meta Meta) {
	if options == nil {
		options = []SessionConfigOption{} // it has none
	}
	s.state.Store(&sessionState{options, commands, meta})
	s.conn.sessions.add(s)
}

func (s *ClientSession) configure(options []SessionConfigOption) {
	state := *s.known()
	state.configOptions = options
	s.state.Store(&state)
}

// follow takes note of what an update says of its session. It is a route's Check, which the reader calls, and
// refuses nothing.
func (c *ClientConn) follow(params any) error {
	n, ok := params.(*UpdateSessionNotification)
	if !ok {
		return nil
	}
	switch u := n.Update.Variant.(type) {
	case *SessionUpdateStateUpdate:
		c.seen.state(n, u)
	case *SessionUpdateConfigOptionUpdate:
		if s := c.sessions.get(n.SessionID); s != nil {
			s.configure(u.ConfigOptions)
		}
	case *SessionUpdateAvailableCommandsUpdate:
		if s := c.sessions.get(n.SessionID); s != nil {
			state := *s.known()
			state.commands = u.AvailableCommands
			s.state.Store(&state)
		}
	}
	return nil
}

// ConfigOptions are the session's config options with their values, as the agent has last said it: when the
// session was created or resumed, and since in updates and in answer to SetConfigOption. An update counts
// before the client's handler is given it. What is returned must not be changed.
func (s *ClientSession) ConfigOptions() []SessionConfigOption { return s.known().configOptions }

// AvailableCommands are the session's commands, as the agent has last said it: when the session was created
// or resumed, and since in updates. What is returned must not be changed.
func (s *ClientSession) AvailableCommands() []AvailableCommand { return s.known().commands }

// Meta is the _meta of the agent's answer when the session was created or resumed.
func (s *ClientSession) Meta() Meta { return s.known().meta }

// CancelToolCall cancels one tool call (tool_call/cancel), which must have offered that. The agent
// confirms with an update of the tool call that its status is final.
func (s *ClientSession) CancelToolCall(ctx context.Context, id ToolCallID) error {
	_, err := s.conn.CancelToolCall(ctx, &CancelToolCallRequest{SessionID: s.id, ToolCallID: id})
	return err
}

// CancelTerminal stops the process of one terminal (terminal/cancel), which must have offered that. The
// agent confirms with an update of the terminal that it has exited.
func (s *ClientSession) CancelTerminal(ctx context.Context, id TerminalID) error {
	_, err := s.conn.CancelTerminal(ctx, &CancelTerminalRequest{SessionID: s.id, TerminalID: id})
	return err
}

// NewSession creates a session (session/new).
//
// It fails with ErrUnsupported, unsent, when the agent did not advertise what req needs.
func (c *ClientConn) NewSession(ctx context.Context, req *NewSessionRequest) (*ClientSession, error) {
	s := &ClientSession{conn: c}
	_, err := c.newSession(ctx, req, func(res *NewSessionResponse) {
		s.id = res.SessionID
		s.opened(res.ConfigOptions, res.AvailableCommands, res.Meta)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ResumeSession goes on with a session (session/resume). What req wants replayed of its history comes as
// updates before ResumeSession returns, and then the session's state.
//
// It fails with ErrUnsupported, unsent, when the agent did not advertise what req needs.
func (c *ClientConn) ResumeSession(ctx context.Context, req *ResumeSessionRequest) (*ClientSession, error) {
	req = orEmpty(req)
	return c.opening(req.SessionID, func(s *ClientSession) error {
		_, err := c.resumeSession(ctx, req, func(res *ResumeSessionResponse) {
			s.opened(res.ConfigOptions, res.AvailableCommands, res.Meta)
		})
		return err
	})
}

// Sessions yields the agent's sessions, page by page (session/list). cwd limits them to one working
// directory; "" is all. After an error it ends; that the agent repeats a cursor is one.
func (c *ClientConn) Sessions(ctx context.Context, cwd AbsolutePath) iter.Seq2[SessionInfo, error] {
	req := &ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = Some(cwd)
	}
	return c.pages(ctx, req)
}

// ForkSession makes a new session that begins with the context of the one that req names (session/fork).
//
// It fails with ErrUnsupported, unsent, when the agent did not advertise what req needs.
//
// Experimental: any minor release may change or remove it. It needs [FeatureFork].
func (c *ClientConn) ForkSession(ctx context.Context, req *ForkSessionRequest) (*ClientSession, error) {
	s := &ClientSession{conn: c}
	_, err := c.forkSession(ctx, req, func(res *ForkSessionResponse) {
		s.id = res.SessionID
		s.opened(res.ConfigOptions, res.AvailableCommands, res.Meta)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
