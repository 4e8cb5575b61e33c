// This file owns the sessions of version 1.

package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// SessionClient is the client as its agent sees it, scoped to one session. Its methods fill in the
// session's id, and are safe for concurrent use.
type SessionClient struct {
	peer *ClientPeer
	id   SessionID
}

// RequestPermission asks the user whether a tool call may go on (session/request_permission). When the
// turn is cancelled it returns an error, which the prompt's handler may return as it is. An outcome of
// a kind that is not known must be taken for a refusal.
func (s *SessionClient) RequestPermission(
	ctx context.Context, call ToolCallUpdate, options ...PermissionOption,
) (RequestPermissionOutcome, error) {
	req := &RequestPermissionRequest{SessionID: s.id, ToolCall: call, Options: options}
	res, err := s.peer.RequestPermission(ctx, req)
	if err == nil && errors.Is(context.Cause(ctx), ErrTurnCancelled) {
		err = ErrTurnCancelled // the answer came right behind session/cancel
	}
	if err != nil {
		return RequestPermissionOutcome{}, err
	}
	return res.Outcome, nil
}

// SessionAgent is the agent as its client sees it, scoped to one session. Its methods fill in the
// session's id, and are safe for concurrent use.
type SessionAgent struct {
	peer          *AgentPeer
	id            SessionID
	modes         Opt[SessionModeState]
	configOptions Opt[[]SessionConfigOption]
}

// Modes are the modes that the agent named when the session was created, loaded or resumed. Later
// changes come as updates.
func (s *SessionAgent) Modes() Opt[SessionModeState] { return s.modes }

// ConfigOptions are the config options that the agent named when the session was created, loaded or
// resumed. Later changes come as updates.
func (s *SessionAgent) ConfigOptions() Opt[[]SessionConfigOption] { return s.configOptions }

// SetMode chooses one of the session's modes (session/set_mode).
// It fails with ErrInvalidParams, unsent, when the agent named modes and this is none of them.
func (s *SessionAgent) SetMode(ctx context.Context, mode SessionModeID) error {
	if modes, ok := s.modes.Get(); ok && !slices.ContainsFunc(modes.AvailableModes, func(m SessionMode) bool { return m.ID == mode }) {
		return fmt.Errorf("%s: %w", MethodSetSessionMode, invalid("/modeId", "not a mode of the session"))
	}
	_, err := s.peer.SetSessionMode(ctx, &SetSessionModeRequest{SessionID: s.id, ModeID: mode})
	return err
}

// NewSession creates a session (session/new).
func (c *AgentConn) NewSession(ctx context.Context, req *NewSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.NewSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, res.SessionID, res.Modes, res.ConfigOptions}, nil
}

// LoadSession loads a session, whose history comes as updates before LoadSession returns
// (session/load).
func (c *AgentConn) LoadSession(ctx context.Context, req *LoadSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.LoadSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, req.SessionID, res.Modes, res.ConfigOptions}, nil
}

// ResumeSession goes on with a session without its history (session/resume).
func (c *AgentConn) ResumeSession(ctx context.Context, req *ResumeSessionRequest) (*SessionAgent, error) {
	res, err := c.AgentPeer.ResumeSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{c.AgentPeer, req.SessionID, res.Modes, res.ConfigOptions}, nil
}

// Sessions yields the agent's sessions, page by page (session/list). cwd limits them to one working
// directory; "" is all. After an error it ends.
func (c *AgentConn) Sessions(ctx context.Context, cwd string) iter.Seq2[SessionInfo, error] {
	req := &ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = Some(cwd)
	}
	return c.pages(ctx, req)
}

// SupportsBooleanConfig reports whether the client advertised that it understands boolean config
// options, which must not be sent otherwise.
func (c *ClientPeer) SupportsBooleanConfig() bool {
	return c.capabilities().Session.Value().ConfigOptions.Value().Boolean.Present()
}
