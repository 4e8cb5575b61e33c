// This file owns the sessions of version 2.

package v2draft

import (
	"context"
	"iter"
	"sync/atomic"
)

// AgentSession is one session as its agent holds it: what the agent sends to the client for it. Its methods
// fill in the session's id, and are safe for concurrent use.
type AgentSession struct {
	conn *AgentConn
	id   SessionID
}

// Update sends an update (session/update). Updates arrive in the order in which they were sent. With the
// context of a turn that was cancelled it still sends, and waits ten seconds at most while too much is
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
	own := *req
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
	setup atomic.Pointer[sessionSetup] // nil if the connection has not opened the session
}

// sessionSetup is what an agent answers when a session is created or resumed.
type sessionSetup struct {
	configOptions []SessionConfigOption
	commands      []AvailableCommand
	meta          Meta
}

func (s *ClientSession) answered() *sessionSetup {
	if setup := s.setup.Load(); setup != nil {
		return setup
	}
	return &sessionSetup{}
}

// ConfigOptions are the config options that the agent named when the session was created or resumed.
// Later changes come as updates.
func (s *ClientSession) ConfigOptions() []SessionConfigOption { return s.answered().configOptions }

// AvailableCommands are the commands that the agent named when the session was created or resumed. Later
// changes come as updates.
func (s *ClientSession) AvailableCommands() []AvailableCommand { return s.answered().commands }

// Meta is the _meta of the agent's answer when the session was created or resumed.
func (s *ClientSession) Meta() Meta { return s.answered().meta }

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
		s.setup.Store(&sessionSetup{res.ConfigOptions, res.AvailableCommands, res.Meta})
		c.sessions.add(s)
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
	s := c.Session(req.SessionID)
	return c.opening(s, func() error {
		_, err := c.resumeSession(ctx, req, func(res *ResumeSessionResponse) {
			s.setup.Store(&sessionSetup{res.ConfigOptions, res.AvailableCommands, res.Meta})
		})
		return err
	})
}

// Sessions yields the agent's sessions, page by page (session/list). cwd limits them to one working
// directory; "" is all. After an error it ends.
func (c *ClientConn) Sessions(ctx context.Context, cwd AbsolutePath) iter.Seq2[SessionInfo, error] {
	req := &ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = Some(cwd)
	}
	return c.pages(ctx, req)
}
