package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// RequestPermission asks the user whether a tool call may proceed (session/request_permission). call describes what to
// show: the client may know nothing else about the tool call; see ToolCallRef. options are the answers that the user
// may choose from; see AllowOnce. If the turn is cancelled, RequestPermission returns an error, which the prompt's
// handler may return unchanged. An answer with an option that was not offered is also an error. Treat an outcome of an
// unknown kind as a refusal.
func (s *AgentSession) RequestPermission(
	ctx context.Context, call ToolCallUpdate, options ...PermissionOption,
) (RequestPermissionOutcome, error) {
	req := &RequestPermissionRequest{SessionID: s.id, ToolCall: call, Options: options}
	res, err := s.conn.RequestPermission(ctx, req)
	if err == nil && errors.Is(context.Cause(ctx), ErrTurnCancelled) {
		err = ErrTurnCancelled // the answer arrived right after session/cancel
	}
	if err != nil {
		return RequestPermissionOutcome{}, err
	}
	if selected, ok := res.Outcome.Variant.(*RequestPermissionOutcomeSelected); ok {
		is := func(option PermissionOption) bool { return option.OptionID == selected.OptionID }
		if !slices.ContainsFunc(options, is) {
			return RequestPermissionOutcome{}, fmt.Errorf("%s: the client selected the option %.64q, which was not offered",
				MethodRequestPermission, selected.OptionID)
		}
	}
	return res.Outcome, nil
}

// SetMode chooses one of the session's modes (session/set_mode). It fails with ErrInvalidParams, without sending
// anything, if mode is not one of the session's modes, as far as this connection knows them: a session that was created
// on this connection without modes has none, but an agent may leave out the modes when it loads or resumes a session.
func (s *ClientSession) SetMode(ctx context.Context, mode SessionModeID) error {
	_, err := s.conn.SetSessionMode(ctx, &SetSessionModeRequest{SessionID: s.id, ModeID: mode})
	return err
}

// SetSessionMode chooses one of a session's modes (session/set_mode). See ClientSession.SetMode.
func (c *ClientConn) SetSessionMode(ctx context.Context, req *SetSessionModeRequest) (*SetSessionModeResponse, error) {
	req = orEmpty(req)
	if err := c.check(MethodSetSessionMode, req); err != nil {
		return nil, err
	}
	id, mode := req.SessionID, req.ModeID
	return callThen(ctx, c.rpc, methodSetSessionMode, req, func(*SetSessionModeResponse) {
		if s := c.sessions.get(id); s != nil {
			s.switchMode(mode)
		}
	})
}

// NewSession creates a session (session/new).
//
// It fails with ErrUnsupported, without sending anything, if req needs something that the agent did not advertise.
func (c *ClientConn) NewSession(ctx context.Context, req *NewSessionRequest) (*ClientSession, error) {
	req = orEmpty(req)
	s := &ClientSession{conn: c}
	_, err := c.newSession(ctx, req, func(res *NewSessionResponse) {
		s.id = res.SessionID
		s.opened(req.Cwd, true, res.Modes, res.ConfigOptions, res.Meta)
	})
	return s.created(MethodNewSession, err)
}

// LoadSession loads a session (session/load). Its history arrives as updates before LoadSession returns.
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise loadSession or something else
// that req needs.
func (c *ClientConn) LoadSession(ctx context.Context, req *LoadSessionRequest) (*ClientSession, error) {
	req = orEmpty(req)
	return c.opening(req.SessionID, func(s *ClientSession) error {
		_, err := c.loadSession(ctx, req, func(res *LoadSessionResponse) {
			s.opened(req.Cwd, false, res.Modes, res.ConfigOptions, res.Meta)
		})
		return err
	})
}

// ResumeSession continues a session without replaying its history (session/resume).
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise sessionCapabilities.resume or
// something else that req needs.
func (c *ClientConn) ResumeSession(ctx context.Context, req *ResumeSessionRequest) (*ClientSession, error) {
	req = orEmpty(req)
	return c.opening(req.SessionID, func(s *ClientSession) error {
		_, err := c.resumeSession(ctx, req, func(res *ResumeSessionResponse) {
			s.opened(req.Cwd, false, res.Modes, res.ConfigOptions, res.Meta)
		})
		return err
	})
}

// Sessions returns an iterator over the agent's sessions, which fetches them page by page (session/list). cwd limits
// them to one working directory; "" means all. The iteration ends after an error; a repeated cursor is an error.
func (c *ClientConn) Sessions(ctx context.Context, cwd string) iter.Seq2[SessionInfo, error] {
	req := &ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = Some(cwd)
	}
	return c.pages(ctx, req)
}

// Select returns the value that the client chooses for a select; ok is false for other requests.
func (x *SetSessionConfigOptionRequest) Select() (value SessionConfigValueID, ok bool) {
	if v, is := x.Variant.(*SetSessionConfigOptionRequestValueID); is {
		return v.Value, true
	}
	return "", false
}

// Bool returns the value that the client chooses for a boolean option; ok is false for other requests.
func (x *SetSessionConfigOptionRequest) Bool() (value, ok bool) {
	if v, is := x.Variant.(*SetSessionConfigOptionRequestBoolean); is {
		return v.Value, true
	}
	return false, false
}

// ForkSession makes a new session that begins with the context of the one that req names (session/fork).
//
// It fails with ErrUnsupported, without sending anything, if the agent did not advertise what req needs.
//
// Experimental: any minor release may change or remove it. It needs [FeatureFork].
func (c *ClientConn) ForkSession(ctx context.Context, req *ForkSessionRequest) (*ClientSession, error) {
	s := &ClientSession{conn: c}
	_, err := c.forkSession(ctx, req, func(res *ForkSessionResponse) {
		s.id = res.SessionID
		s.opened(req.Cwd, true, res.Modes, res.ConfigOptions, res.Meta)
	})
	return s.created(MethodForkSession, err)
}
