package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// ID returns the session's id.
func (s *AgentSession) ID() SessionID { return s.id }

// Conn returns the connection that the session belongs to.
func (s *AgentSession) Conn() *AgentConn { return s.conn }

// releaseTime bounds sending the messages that a cancelled turn still sends: its last updates, the release of its
// terminals.
const releaseTime = 10 * time.Second

// lasting returns ctx, or, if ctx belongs to a cancelled turn, a context in which the turn's last updates can be sent.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	if errors.Is(context.Cause(ctx), ErrTurnCancelled) {
		return context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	}
	return ctx, func() {}
}

// ElicitForm asks the user to fill in a form (elicitation/create, mode form).
func (s *AgentSession) ElicitForm(
	ctx context.Context, message string, schema ElicitationSchema,
) (*CreateElicitationResponse, error) {
	scope := ElicitationSessionScope{SessionID: s.id} // and not a request (ELI-34)
	req := NewCreateElicitationRequestForm(message, NewElicitationFormModeSession(schema, scope))
	return s.conn.CreateElicitation(ctx, &req)
}

// ElicitURL asks the user to open a URL (elicitation/create, mode url). id must be unique among the connection's
// elicitations in progress. When the user has finished with the page, tell the client with
// AgentConn.CompleteElicitation.
func (s *AgentSession) ElicitURL(
	ctx context.Context, message string, id ElicitationID, url string,
) (*CreateElicitationResponse, error) {
	scope := ElicitationSessionScope{SessionID: s.id}
	req := NewCreateElicitationRequestURL(message, NewElicitationURLModeSession(id, url, scope))
	return s.conn.CreateElicitation(ctx, &req)
}

// ID returns the session's id.
func (s *ClientSession) ID() SessionID { return s.id }

// Conn returns the connection that the session belongs to.
func (s *ClientSession) Conn() *ClientConn { return s.conn }

// Close ends the session at the agent (session/close). It also succeeds if the agent no longer knows the session;
// agents report this with the code -32002, or with another code and the words "session not found" in the message or the
// data.
func (s *ClientSession) Close(ctx context.Context) error {
	_, err := s.conn.CloseSession(ctx, &CloseSessionRequest{SessionID: s.id})
	return unlessGone(err)
}

// Delete removes the session from the agent's list (session/delete). It also succeeds if the session is not there; see
// Close.
func (s *ClientSession) Delete(ctx context.Context) error {
	_, err := s.conn.DeleteSession(ctx, &DeleteSessionRequest{SessionID: s.id})
	return unlessGone(err)
}

// CloseSession ends a session at the agent (session/close), which cancels the session's work in progress. An agent that
// does not know the session answers with an error; ClientSession.Close treats that as success.
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise support.
func (c *ClientConn) CloseSession(ctx context.Context, req *CloseSessionRequest) (*CloseSessionResponse, error) {
	req = orEmpty(req)
	id := req.SessionID
	res, err := c.closeSession(ctx, req, nil)
	c.forgetEnded(id, err)
	return res, err
}

// DeleteSession removes a session from the agent's list (session/delete). An agent that does not know the session may
// answer with an error; ClientSession.Delete treats that as success.
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise support.
func (c *ClientConn) DeleteSession(ctx context.Context, req *DeleteSessionRequest) (*DeleteSessionResponse, error) {
	req = orEmpty(req)
	id := req.SessionID
	res, err := c.deleteSession(ctx, req, nil)
	c.forgetEnded(id, err)
	return res, err
}

// forgetEnded forgets the handle of a session that the agent has ended, unless err reports that it has not.
func (c *ClientConn) forgetEnded(id SessionID, err error) {
	if unlessGone(err) == nil {
		c.sessions.remove(id)
	}
}

// unlessGone returns the error of a call that ends a session, or nil if the error reports that the agent does not know
// the session.
func unlessGone(err error) error {
	if notFound(err) {
		return nil
	}
	return err
}

// notFound reports whether an agent answered that it does not know the session. Agents written in TypeScript that throw
// a plain error answer -32603, others -32602 or -32001, with these words in the message or the data.
func notFound(err error) bool {
	if errors.Is(err, ErrResourceNotFound) {
		return true
	}
	answered, ok := errors.AsType[*CallError](err)
	if !ok {
		return false
	}
	const words = "session not found"
	return strings.Contains(strings.ToLower(answered.Err.Message), words) ||
		strings.Contains(strings.ToLower(string(answered.Err.Data)), words)
}

// pages yields the agent's sessions, page by page, starting with req.
func (c *ClientConn) pages(ctx context.Context, req *ListSessionsRequest) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		page := *req
		seen := map[any]bool{}
		if first, ok := req.Cursor.Get(); ok {
			seen[first] = true
		}
		for {
			res, err := c.ListSessions(ctx, &page)
			if err != nil {
				yield(SessionInfo{}, err)
				return
			}
			for _, info := range res.Sessions {
				if !yield(info, nil) {
					return
				}
			}
			next, ok := res.NextCursor.Get()
			if !ok {
				return
			}
			if seen[next] {
				yield(SessionInfo{}, fmt.Errorf("%s: the agent repeats the cursor %.64q", MethodListSessions, next))
				return
			}
			seen[next] = true
			page.Cursor = Some(next)
		}
	}
}
