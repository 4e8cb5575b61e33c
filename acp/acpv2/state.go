package acpv2

import "hash/maphash"

func (x *InitializeRequest) capabilities() *ClientCapabilities { return &x.Capabilities }

func (x *InitializeResponse) capabilities() *AgentCapabilities { return &x.Capabilities }

// sessionState is the state of a session as the agent has reported it.
type sessionState struct {
	configOptions []SessionConfigOption // nil until the agent has reported them
	commands      []AvailableCommand
	meta          Meta
}

// opened records the answer that created or resumed the session, whose handle is s from then on.
func (s *ClientSession) opened(options []SessionConfigOption, commands []AvailableCommand, meta Meta) {
	if options == nil {
		options = []SessionConfigOption{} // the session has none
	}
	s.state.Store(&sessionState{options, commands, meta})
	s.conn.sessions.add(s)
}

func (s *ClientSession) configure(options []SessionConfigOption) {
	state := *s.current()
	state.configOptions = options
	s.state.Store(&state)
}

// follow records the state that a session's update carries. It is a route's Check, which the reader goroutine calls,
// and refuses nothing.
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
			state := *s.current()
			state.commands = u.AvailableCommands
			s.state.Store(&state)
		}
	default: // changes none of these
	}
	return nil
}

// ConfigOptions returns the session's config options with their values, as the agent last reported them: when the
// session was created or resumed, in an update, or in answer to SetConfigOption. An update takes effect here before the
// client's handler receives it. The result must not be changed.
func (s *ClientSession) ConfigOptions() []SessionConfigOption { return s.current().configOptions }

// knownConfigOptions returns the session's config options, if the agent has reported them.
func (s *ClientSession) knownConfigOptions() ([]SessionConfigOption, bool) {
	options := s.ConfigOptions()
	return options, options != nil
}

// AvailableCommands returns the session's commands, as the agent last reported them: when the session was created or
// resumed, or in an update. The result must not be changed.
func (s *ClientSession) AvailableCommands() []AvailableCommand { return s.current().commands }

// seen holds the states of sessions that the reader has seen. Only the reader uses it.
type seen struct {
	working map[idSum]struct{} // sessions whose last state was not idle
	stopped bool               // the current update ended a session's work
}

// idSum is a hash of an id, because the agent may choose ids of any length.
type idSum uint64

var idSeed = maphash.MakeSeed()

func sum[T ~string](id T) idSum { return idSum(maphash.String(idSeed, string(id))) }

// maxWorking bounds how many sessions are recorded as working, because the agent chooses their number.
const maxWorking = 1 << 16

// state records the state of a session.
func (s *seen) state(n *UpdateSessionNotification, state *SessionUpdateStateUpdate) {
	id := sum(n.SessionID)
	_, worked := s.working[id]
	switch _, idle := state.Variant.(*StateUpdateIdle); {
	case idle:
		delete(s.working, id)
		s.stopped = worked
	case !worked && len(s.working) < maxWorking:
		if s.working == nil {
			s.working = map[idSum]struct{}{}
		}
		s.working[id] = struct{}{}
	}
}
