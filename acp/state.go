package acp

func (x *InitializeRequest) capabilities() *ClientCapabilities { return &x.ClientCapabilities }

func (x *InitializeResponse) capabilities() *AgentCapabilities { return &x.AgentCapabilities }

// SupportsBooleanConfig reports whether the client advertised that it understands boolean config
// options, which must not be sent otherwise.
func (c *AgentConn) SupportsBooleanConfig() bool {
	return c.capabilities().Session.Value().ConfigOptions.Value().Boolean.Present()
}

// sessionState is the state of a session as the agent has reported it.
type sessionState struct {
	cwd           string
	modes         Opt[SessionModeState]
	configOptions Opt[[]SessionConfigOption]
	meta          Meta
	created       bool // by session/new or session/fork: anything that their answers leave out, the session does not have
}

// opened records the answer that created, loaded or resumed the session, whose handle is s from then on. Members that
// the answer leaves out keep the values of an earlier update. If the session was not created, nothing follows from
// their absence, because answers to session/load and session/resume may leave out everything.
func (s *ClientSession) opened(cwd string, created bool, modes Opt[SessionModeState],
	options Opt[[]SessionConfigOption], meta Meta) {
	state := *s.current()
	if modes.Present() {
		state.modes = modes
	}
	if options.Present() {
		state.configOptions = options
	}
	state.cwd, state.meta, state.created = cwd, meta, created
	s.state.Store(&state)
	s.conn.sessions.add(s)
}

func (s *ClientSession) configure(options []SessionConfigOption) {
	state := *s.current()
	state.configOptions = Some(options)
	s.state.Store(&state)
}

func (s *ClientSession) switchMode(mode SessionModeID) {
	state := *s.current()
	modes, ok := state.modes.Get()
	if !ok {
		return // a mode of an unknown list
	}
	modes.CurrentModeID = mode
	state.modes = Some(modes)
	s.state.Store(&state)
}

// follow records the state that a session's update carries. It is a route's Check, which the reader goroutine calls,
// and refuses nothing.
func (c *ClientConn) follow(params any) error {
	n, ok := params.(*SessionNotification)
	if !ok {
		return nil
	}
	switch u := n.Update.Variant.(type) {
	case *SessionUpdateCurrentModeUpdate:
		if s := c.sessions.get(n.SessionID); s != nil {
			s.switchMode(u.CurrentModeID)
		}
	case *SessionUpdateConfigOptionUpdate:
		if s := c.sessions.get(n.SessionID); s != nil {
			s.configure(u.ConfigOptions)
		}
	default: // changes neither
	}
	return nil
}

// Modes returns the session's modes and the current one, as the agent last reported them: when the session was created,
// loaded or resumed, in an update, or by accepting SetMode. An update takes effect here before the client's handler
// receives it. The result must not be changed.
func (s *ClientSession) Modes() Opt[SessionModeState] { return s.current().modes }

// ConfigOptions returns the session's config options with their values, as the agent last reported them: when the
// session was created, loaded or resumed, in an update, or in answer to SetConfigOption. An update takes effect here
// before the client's handler receives it. The result must not be changed.
func (s *ClientSession) ConfigOptions() Opt[[]SessionConfigOption] { return s.current().configOptions }

// knownConfigOptions returns the session's config options, if they are known: a session that was created without config
// options has none.
func (s *ClientSession) knownConfigOptions() ([]SessionConfigOption, bool) {
	options, ok := s.ConfigOptions().Get()
	return options, ok || s.current().created
}

// Cwd returns the working directory that the session was created, loaded, resumed or forked with on this connection, or
// "" if it was not.
func (s *ClientSession) Cwd() string { return s.current().cwd }
