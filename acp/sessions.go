// This file owns the sessions of version 1.

package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
)

// AgentSession is one session as its agent holds it: what the agent sends to the client for it. Its methods
// fill in the session's id, and are safe for concurrent use.
type AgentSession struct {
	conn *AgentConn
	id   SessionID
}

// RequestPermission asks the user whether a tool call may go on (session/request_permission). When the
// turn is cancelled it returns an error, which the prompt's handler may return as it is. An outcome of
// a kind that is not known must be taken for a refusal.
func (s *AgentSession) RequestPermission(
	ctx context.Context, call ToolCallUpdate, options ...PermissionOption,
) (RequestPermissionOutcome, error) {
	req := &RequestPermissionRequest{SessionID: s.id, ToolCall: call, Options: options}
	res, err := s.conn.RequestPermission(ctx, req)
	if err == nil && errors.Is(context.Cause(ctx), ErrTurnCancelled) {
		err = ErrTurnCancelled // the answer came right behind session/cancel
	}
	if err != nil {
		return RequestPermissionOutcome{}, err
	}
	return res.Outcome, nil
}

// ClientSession is one session as its client holds it: what the client asks of the agent for it. Its methods
// fill in the session's id, and are safe for concurrent use.
type ClientSession struct {
	conn  *ClientConn
	id    SessionID
	setup atomic.Pointer[sessionSetup] // nil if the connection has not opened the session
}

// sessionSetup is what an agent answers when a session is created, loaded or resumed.
type sessionSetup struct {
	modes         Opt[SessionModeState]
	configOptions Opt[[]SessionConfigOption]
	meta          Meta
}

func (s *ClientSession) answered() *sessionSetup {
	if setup := s.setup.Load(); setup != nil {
		return setup
	}
	return &sessionSetup{}
}

// Modes are the modes that the agent named when the session was created, loaded or resumed. Later
// changes come as updates.
func (s *ClientSession) Modes() Opt[SessionModeState] { return s.answered().modes }

// ConfigOptions are the config options that the agent named when the session was created, loaded or
// resumed. Later changes come as updates.
func (s *ClientSession) ConfigOptions() Opt[[]SessionConfigOption] { return s.answered().configOptions }

// Meta is the _meta of the agent's answer when the session was created, loaded or resumed.
func (s *ClientSession) Meta() Meta { return s.answered().meta }

// SetMode chooses one of the session's modes (session/set_mode).
// It fails with ErrInvalidParams, unsent, when the agent named modes and this is none of them.
func (s *ClientSession) SetMode(ctx context.Context, mode SessionModeID) error {
	if modes, ok := s.Modes().Get(); ok && !slices.ContainsFunc(modes.AvailableModes, func(m SessionMode) bool { return m.ID == mode }) {
		return fmt.Errorf("%s: %w", MethodSetSessionMode, invalid("/modeId", "not a mode of the session"))
	}
	_, err := s.conn.SetSessionMode(ctx, &SetSessionModeRequest{SessionID: s.id, ModeID: mode})
	return err
}

// NewSession creates a session (session/new).
//
// It fails with ErrUnsupported, unsent, when the agent did not advertise what req needs.
func (c *ClientConn) NewSession(ctx context.Context, req *NewSessionRequest) (*ClientSession, error) {
	s := &ClientSession{conn: c}
	_, err := c.newSession(ctx, req, func(res *NewSessionResponse) {
		s.id = res.SessionID
		s.setup.Store(&sessionSetup{res.Modes, res.ConfigOptions, res.Meta})
		c.sessions.add(s)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// LoadSession loads a session, whose history comes as updates before LoadSession returns
// (session/load).
//
// It fails with ErrUnsupported, unsent, when the agent did not advertise loadSession or what req needs.
func (c *ClientConn) LoadSession(ctx context.Context, req *LoadSessionRequest) (*ClientSession, error) {
	s := c.Session(req.SessionID)
	return c.opening(s, func() error {
		_, err := c.loadSession(ctx, req, func(res *LoadSessionResponse) {
			s.setup.Store(&sessionSetup{res.Modes, res.ConfigOptions, res.Meta})
		})
		return err
	})
}

// ResumeSession goes on with a session without its history (session/resume).
//
// It fails with ErrUnsupported, unsent, when the agent did not advertise sessionCapabilities.resume or what
// req needs.
func (c *ClientConn) ResumeSession(ctx context.Context, req *ResumeSessionRequest) (*ClientSession, error) {
	s := c.Session(req.SessionID)
	return c.opening(s, func() error {
		_, err := c.resumeSession(ctx, req, func(res *ResumeSessionResponse) {
			s.setup.Store(&sessionSetup{res.Modes, res.ConfigOptions, res.Meta})
		})
		return err
	})
}

// Sessions yields the agent's sessions, page by page (session/list). cwd limits them to one working
// directory; "" is all. After an error it ends.
func (c *ClientConn) Sessions(ctx context.Context, cwd string) iter.Seq2[SessionInfo, error] {
	req := &ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = Some(cwd)
	}
	return c.pages(ctx, req)
}

// SupportsBooleanConfig reports whether the client advertised that it understands boolean config
// options, which must not be sent otherwise.
func (c *AgentConn) SupportsBooleanConfig() bool {
	return c.capabilities().Session.Value().ConfigOptions.Value().Boolean.Present()
}
