// This file owns the sessions of version 2.

package v2draft

import (
	"context"
	"iter"
)

// SessionClient is the client as its agent sees it, scoped to one session. Its methods fill in the
// session's id, and are safe for concurrent use.
type SessionClient struct {
	peer *ClientPeer
	id   SessionID
}

// Update sends an update (session/update). Updates arrive in the order in which they were sent. With the
// context of a turn that was cancelled it still sends, and waits ten seconds at most while too much is
// unsent. The states of a turn are reported by StartTurn and RunTurn.
func (s *SessionClient) Update(ctx context.Context, update SessionUpdate) error {
	ctx, done := lasting(ctx)
	defer done()
	return s.peer.SessionUpdate(ctx, &UpdateSessionNotification{SessionID: s.id, Update: update})
}

// RequestPermission asks the user whether something may be done (session/request_permission); the
// session's id is filled in, and req is not changed. Within a turn it reports that user action is
// required, and when there is an answer that work goes on. When the turn is cancelled it returns an error,
// which the turn may return as it is. An outcome of a kind that is not known must be taken for a refusal.
func (s *SessionClient) RequestPermission(ctx context.Context, req *RequestPermissionRequest) (RequestPermissionOutcome, error) {
	own := *req
	own.SessionID = s.id
	res, err := requiringAction(ctx, s, func() (*RequestPermissionResponse, error) {
		return s.peer.RequestPermission(ctx, &own)
	})
	if err != nil {
		return RequestPermissionOutcome{}, err
	}
	return res.Outcome, nil
}

// ElicitForm asks the user to fill in a form (elicitation/create, mode form). Within a turn it reports
// that user action is required, and when there is an answer that work goes on.
func (s *SessionClient) ElicitForm(
	ctx context.Context, message string, schema ElicitationSchema,
) (*CreateElicitationResponse, error) {
	return requiringAction(ctx, s, func() (*CreateElicitationResponse, error) {
		return s.baseElicitForm(ctx, message, schema)
	})
}

// ElicitURL asks the user to open a URL (elicitation/create, mode url). id must be unique among the
// connection's elicitations that are under way; when what happens there is done, tell the client by
// ClientPeer.CompleteElicitation. Within a turn it reports that user action is required, and when there
// is an answer that work goes on.
func (s *SessionClient) ElicitURL(
	ctx context.Context, message string, id ElicitationID, url string,
) (*CreateElicitationResponse, error) {
	return requiringAction(ctx, s, func() (*CreateElicitationResponse, error) {
		return s.baseElicitURL(ctx, message, id, url)
	})
}

// SessionAgent is the agent as its client sees it, scoped to one session. Its methods fill in the
// session's id, and are safe for concurrent use.
type SessionAgent struct {
	peer          *AgentPeer
	id            SessionID
	configOptions []SessionConfigOption
	commands      []AvailableCommand
}

// ConfigOptions are the config options that the agent named when the session was created or resumed.
// Later changes come as updates.
func (s *SessionAgent) ConfigOptions() []SessionConfigOption { return s.configOptions }

// AvailableCommands are the commands that the agent named when the session was created or resumed. Later
// changes come as updates.
func (s *SessionAgent) AvailableCommands() []AvailableCommand { return s.commands }

// CancelToolCall cancels one tool call (tool_call/cancel), which must have offered that. The agent
// confirms with an update of the tool call that its status is final.
func (s *SessionAgent) CancelToolCall(ctx context.Context, id ToolCallID) error {
	_, err := s.peer.CancelToolCall(ctx, &CancelToolCallRequest{SessionID: s.id, ToolCallID: id})
	return err
}

// CancelTerminal stops the process of one terminal (terminal/cancel), which must have offered that. The
// agent confirms with an update of the terminal that it has exited.
func (s *SessionAgent) CancelTerminal(ctx context.Context, id TerminalID) error {
	_, err := s.peer.CancelTerminal(ctx, &CancelTerminalRequest{SessionID: s.id, TerminalID: id})
	return err
}

// NewSession creates a session (session/new).
func (c *AgentConn) NewSession(ctx context.Context, req *NewSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.NewSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, res.SessionID, res.ConfigOptions, res.AvailableCommands}, nil
}

// ResumeSession goes on with a session (session/resume). What req wants replayed of its history comes as
// updates before ResumeSession returns, and then the session's state.
func (c *AgentConn) ResumeSession(ctx context.Context, req *ResumeSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.ResumeSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, req.SessionID, res.ConfigOptions, res.AvailableCommands}, nil
}

// Sessions yields the agent's sessions, page by page (session/list). cwd limits them to one working
// directory; "" is all. After an error it ends.
func (c *AgentConn) Sessions(ctx context.Context, cwd AbsolutePath) iter.Seq2[SessionInfo, error] {
	req := &ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = Some(cwd)
	}
	return c.pages(ctx, req)
}
