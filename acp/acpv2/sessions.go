package acpv2

import (
	"context"
	"iter"
)

// Update sends an update (session/update). Updates arrive in the order in which they were sent. With the context of a
// turn that was cancelled it still sends, and blocks for at most ten seconds while too much is unsent. With the
// context of a handler of session/new or session/fork, it sends updates of the new session after the answer, or not at
// all if the answer is an error. StartTurn and RunTurn report the states of a turn.
func (s *AgentSession) Update(ctx context.Context, update SessionUpdate) error {
	ctx, done := lasting(ctx)
	defer done()
	return s.conn.SessionUpdate(ctx, &UpdateSessionNotification{SessionID: s.id, Update: update})
}

// RequestPermission asks the user for permission (session/request_permission). It fills in the session's id and does
// not change req. Within a turn it reports that user action is required, and after the answer that the session is
// running again. If the turn is cancelled, RequestPermission returns an error, which the turn may return unchanged.
// Treat an outcome of an unknown kind as a refusal.
func (s *AgentSession) RequestPermission(ctx context.Context, req *RequestPermissionRequest) (RequestPermissionOutcome,
	error) {
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

// ElicitForm asks the user to fill in a form (elicitation/create, mode form). Within a turn it reports that user action
// is required, and after the answer that the session is running again.
func (s *AgentSession) ElicitForm(
	ctx context.Context, message string, schema ElicitationSchema,
) (*CreateElicitationResponse, error) {
	return requiringAction(ctx, s, func() (*CreateElicitationResponse, error) {
		return s.baseElicitForm(ctx, message, schema)
	})
}

// ElicitURL asks the user to open a URL (elicitation/create, mode url). id must be unique among the connection's
// elicitations in progress. When the user has finished with the page, tell the client with
// AgentConn.CompleteElicitation. Within a turn ElicitURL reports that user action is required, and after the answer
// that the session is running again.
func (s *AgentSession) ElicitURL(
	ctx context.Context, message string, id ElicitationID, url string,
) (*CreateElicitationResponse, error) {
	return requiringAction(ctx, s, func() (*CreateElicitationResponse, error) {
		return s.baseElicitURL(ctx, message, id, url)
	})
}

// CancelToolCall cancels a tool call (tool_call/cancel) that offers cancellation. The agent confirms it with an update
// that gives the tool call a final status.
func (s *ClientSession) CancelToolCall(ctx context.Context, id ToolCallID) error {
	_, err := s.conn.CancelToolCall(ctx, &CancelToolCallRequest{SessionID: s.id, ToolCallID: id})
	return err
}

// CancelTerminal stops the process of a terminal (terminal/cancel) that offers cancellation. The agent confirms it with
// an update that says that the terminal has exited.
func (s *ClientSession) CancelTerminal(ctx context.Context, id TerminalID) error {
	_, err := s.conn.CancelTerminal(ctx, &CancelTerminalRequest{SessionID: s.id, TerminalID: id})
	return err
}

// NewSession creates a session (session/new).
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise something that req needs.
func (c *ClientConn) NewSession(ctx context.Context, req *NewSessionRequest) (*ClientSession, error) {
	s := &ClientSession{conn: c}
	_, err := c.newSession(ctx, req, func(res *NewSessionResponse) {
		s.id = res.SessionID
		s.opened(res.ConfigOptions, res.AvailableCommands, res.Meta)
	})
	return s.created(MethodNewSession, err)
}

// ResumeSession continues a session (session/resume). If req asks for a replay of its history, that arrives as updates
// before ResumeSession returns, followed by the session's state.
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise something that req needs.
func (c *ClientConn) ResumeSession(ctx context.Context, req *ResumeSessionRequest) (*ClientSession, error) {
	req = orEmpty(req)
	return c.opening(req.SessionID, func(s *ClientSession) error {
		_, err := c.resumeSession(ctx, req, func(res *ResumeSessionResponse) {
			s.opened(res.ConfigOptions, res.AvailableCommands, res.Meta)
		})
		return err
	})
}

// Sessions returns an iterator over the agent's sessions, which fetches them page by page (session/list). cwd limits
// them to one working directory; "" means all. The iteration ends after an error; a repeated cursor is an error.
func (c *ClientConn) Sessions(ctx context.Context, cwd AbsolutePath) iter.Seq2[SessionInfo, error] {
	req := &ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = Some(cwd)
	}
	return c.pages(ctx, req)
}

// ForkSession creates a session that begins with the context of the session that req names (session/fork).
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise something that req needs.
//
// Experimental: any minor release may change or remove it. It needs [FeatureFork].
func (c *ClientConn) ForkSession(ctx context.Context, req *ForkSessionRequest) (*ClientSession, error) {
	s := &ClientSession{conn: c}
	_, err := c.forkSession(ctx, req, func(res *ForkSessionResponse) {
		s.id = res.SessionID
		s.opened(res.ConfigOptions, res.AvailableCommands, res.Meta)
	})
	return s.created(MethodForkSession, err)
}
