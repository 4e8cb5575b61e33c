package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/acpgo/sdk/internal/engine"
)

// Meta returns the _meta of the agent's answer when the session was created, loaded or resumed.
func (s *ClientSession) Meta() Meta { return s.current().meta }

// ID returns the session's id.
func (s *AgentSession) ID() SessionID { return s.id }

// Conn returns the connection that the session belongs to.
func (s *AgentSession) Conn() *AgentConn { return s.conn }

// releaseTime bounds sending the messages that a cancelled turn still sends: its last updates, the release of its
// terminals.
const releaseTime = 10 * time.Second

// lasting returns ctx, or, if ctx belongs to a cancelled turn in progress, a context in which the turn's last updates
// can be sent.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	if errors.Is(context.Cause(ctx), ErrTurnCancelled) && !engine.TurnOver(ctx) {
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

// ElicitURL asks the user to open a URL (elicitation/create, mode url); see AgentConn.CreateElicitation for id. When
// the user has finished with the page, tell the client with AgentConn.CompleteElicitation.
func (s *AgentSession) ElicitURL(
	ctx context.Context, message string, id ElicitationID, url string,
) (*CreateElicitationResponse, error) {
	scope := ElicitationSessionScope{SessionID: s.id}
	req := NewCreateElicitationRequestURL(message, NewElicitationURLModeSession(id, url, scope))
	return s.conn.CreateElicitation(ctx, &req)
}

// OpenURL asks the user to open a URL, such as that of a login (elicitation/create, mode url). If the user accepts, it
// calls wait, which returns when the user has finished with the page, and then notifies the client
// (elicitation/complete). It reports whether the user has accepted; false, without an error, also if the client does
// not open URLs. An error is that of the call or of wait.
func (s *AgentSession) OpenURL(
	ctx context.Context, message, url string, wait func(ctx context.Context) error,
) (accepted bool, err error) {
	id := ElicitationID(fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()))
	res, err := s.ElicitURL(ctx, message, id, url)
	if errors.Is(err, ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, accepted = res.Accepted(); !accepted {
		return false, nil
	}
	failed := wait(ctx)
	// The client stops showing the page also if waiting has failed.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	return true, errors.Join(failed,
		s.conn.CompleteElicitation(sending, &CompleteElicitationNotification{ElicitationID: id}))
}

// CreateElicitation asks the user to fill in a form or to open a URL (elicitation/create). The id of a URL must be
// unique among those of the connection that are outstanding: neither declined, cancelled, failed nor completed with
// CompleteElicitation (ELI-19). Otherwise CreateElicitation fails with ErrInvalidParams, without sending anything.
//
// It fails with ErrUnsupported, without sending anything, if the client did not advertise what req needs.
func (c *AgentConn) CreateElicitation(ctx context.Context, req *CreateElicitationRequest) (*CreateElicitationResponse,
	error) {
	req = orEmpty(req)
	page, ok := req.Variant.(*CreateElicitationRequestURL)
	if !ok || page == nil {
		return c.createElicitation(ctx, req, nil)
	}
	id := page.ElicitationID
	if !c.urls.add(id) {
		return nil, unsent(MethodCreateElicitation,
			wrongParams{&flaw{"/elicitationId", "belongs to an outstanding elicitation"}})
	}
	res, err := c.createElicitation(ctx, req, nil)
	if err != nil {
		c.urls.remove(id)
		return nil, err
	}
	if _, accepted := res.Variant.(*CreateElicitationResponseAccept); !accepted {
		c.urls.remove(id)
	}
	return res, nil
}

// CompleteElicitation notifies the client that the user has finished with the page of an elicitation
// (elicitation/complete).
//
// It fails with ErrUnsupported, without sending anything, if the client did not advertise elicitation.url.
func (c *AgentConn) CompleteElicitation(ctx context.Context, n *CompleteElicitationNotification) error {
	n = orEmpty(n)
	if err := c.check(MethodCompleteElicitation, n); err != nil {
		return err
	}
	if missing := c.capabilities().lacksForCompleteElicitation(n); missing != "" {
		return unsupported(MethodCompleteElicitation, missing)
	}
	err := notify(ctx, c.rpc, MethodCompleteElicitation, n)
	if err == nil {
		c.urls.remove(n.ElicitationID)
	}
	return err
}

// completing wraps the handler of elicitation/complete so that it is called once for each elicitation of this
// connection, and not for other ids (ELI-22).
func (c *ClientConn) completing(
	fn func(context.Context, *ClientConn, *CompleteElicitationNotification) error,
) func(context.Context, *ClientConn, *CompleteElicitationNotification) error {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, conn *ClientConn, n *CompleteElicitationNotification) error {
		if !c.urls.remove(n.ElicitationID) {
			return nil
		}
		return fn(ctx, conn, n)
	}
}

// ID returns the session's id.
func (s *ClientSession) ID() SessionID { return s.id }

// Conn returns the connection that the session belongs to.
func (s *ClientSession) Conn() *ClientConn { return s.conn }

// Close ends the session at the agent (session/close); see ClientConn.CloseSession.
func (s *ClientSession) Close(ctx context.Context) error {
	_, err := s.conn.CloseSession(ctx, &CloseSessionRequest{SessionID: s.id})
	return err
}

// Delete removes the session from the agent's list (session/delete); see ClientConn.DeleteSession.
func (s *ClientSession) Delete(ctx context.Context) error {
	_, err := s.conn.DeleteSession(ctx, &DeleteSessionRequest{SessionID: s.id})
	return err
}

// CloseSession ends a session at the agent (session/close), which cancels the session's work in progress. It also
// succeeds if the agent no longer knows the session (ERR-8); agents report this with the code -32002, or with another
// code and the words "session not found" in the message or the data.
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise support.
func (c *ClientConn) CloseSession(ctx context.Context, req *CloseSessionRequest) (*CloseSessionResponse, error) {
	req = orEmpty(req)
	id := req.SessionID
	res, err := c.closeSession(ctx, req, nil)
	return ended(c, id, res, err)
}

// DeleteSession removes a session from the agent's list (session/delete). It also succeeds if the session is not there;
// see CloseSession.
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise support.
func (c *ClientConn) DeleteSession(ctx context.Context, req *DeleteSessionRequest) (*DeleteSessionResponse, error) {
	req = orEmpty(req)
	id := req.SessionID
	res, err := c.deleteSession(ctx, req, nil)
	return ended(c, id, res, err)
}

// ended returns the result of a call that ends a session: an empty one if the agent does not know the session. If the
// session is over, its handle is forgotten.
func ended[R any](c *ClientConn, id SessionID, res *R, err error) (*R, error) {
	if notFound(err) {
		res, err = new(R), nil
	}
	if err == nil {
		c.sessions.remove(id)
	}
	return res, err
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
