package view

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/acpgo/sdk/acp"
)

// Sessions holds the States of a client's sessions. Its method Update can be used as a client's handler. The zero value
// is ready to use, and its methods are safe for concurrent use.
type Sessions struct {
	// Options are the options of each State.
	Options *Options

	mu     sync.Mutex
	states map[acp.SessionID]*State
}

// ErrSessions reports that updates name more sessions than a client can have.
var ErrSessions = errors.New("view: too many sessions")

// maxSessions bounds the number of sessions, because agents may invent ids.
const maxSessions = 10_000

// Of returns the State of a session, creating it if there is none.
func (s *Sessions) Of(id acp.SessionID) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stateOf(id)
}

// stateOf is Of; mu is held.
func (s *Sessions) stateOf(id acp.SessionID) *State {
	state := s.states[id]
	if state == nil {
		if s.states == nil {
			s.states = map[acp.SessionID]*State{}
		}
		state = New(s.Options)
		s.states[id] = state
	}
	return state
}

// known returns the State of a session, or nil if there is none.
func (s *Sessions) known(id acp.SessionID) *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[id]
}

// Remove forgets the State of a session.
func (s *Sessions) Remove(id acp.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, id)
}

// received is Of for a session that the agent names, which may be one that this client is just opening.
func (s *Sessions) received(id acp.SessionID) (*State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states[id] == nil && len(s.states) >= maxSessions {
		return nil, fmt.Errorf("%w: %.64q is one of more than %d", ErrSessions, id, maxSessions)
	}
	return s.stateOf(id), nil
}

// Update serves session/update; use it as acp.ClientHandlers.SessionUpdate. Its error matches ErrSessions.
func (s *Sessions) Update(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	state, err := s.received(n.SessionID)
	if err != nil {
		return err
	}
	state.Update(n.Update)
	return nil
}

// ToolCall returns what is known about a tool call of a session, and whether anything is: see [State.ToolCall].
func (s *Sessions) ToolCall(session acp.SessionID, id acp.ToolCallID) (acp.ToolCall, bool) {
	state := s.known(session)
	if state == nil {
		return acp.ToolCall{}, false
	}
	return state.ToolCall(id)
}
