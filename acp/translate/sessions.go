package translate

// result of a request that makes a session: the result and the session's id, or nil if the answer has none.
func (s *State) made(answer *message) (object, string) {
	result := s.result(answer)
	id := result.str("sessionId")
	if result != nil && (id == "" || len(id) > maxID) {
		s.emit(ClientSide, failure(answer.id, &fault{-32603, "Internal error: the agent's answer has no session", nil}))
		return nil, ""
	}
	return result, id
}

// open1 is session/new and session/fork for an agent of version 1.
func (s *State) open1(m *message) *fault {
	params := append(object{}, m.params...)
	if m.method == "session/new" || params.has("mcpServers") {
		params.set("mcpServers", serversTo1(params.list("mcpServers")))
	}
	systemPromptTo1(&params)
	return s.send(m, m.method, params, func(answer *message) {
		if result, id := s.made(answer); result != nil {
			sess := s.opened(id, m.params)
			sess.reset = m.method != "session/new"
			s.directories(id, m.params)
			s.openedTo2(sess, &result)
			s.reply(answer, result)
		}
	})
}

// openedTo2 translates the members that answers about sessions share.
func (s *State) openedTo2(sess *session, result *object) {
	if result.get("configOptions") == nil && result.get("modes") == nil {
		result.drop("configOptions", "modes")
		return
	}
	sess.setModes(result.sub("modes"))
	result.drop("modes")
	result.set("configOptions", s.optionsTo2(sess, result.list("configOptions")))
}

// resume1 is session/resume for an agent of version 1, which has up to two methods for it, or none.
func (s *State) resume1(m *message) *fault {
	id := m.str("sessionId")
	params := append(object{}, m.params...)
	params.drop("replayFrom")
	params.set("mcpServers", serversTo1(params.list("mcpServers")))
	systemPromptTo1(&params)
	known := s.sessions.get(short(id))
	from := m.params.get("replayFrom")
	method := "session/load"
	switch {
	case from != nil && m.params.sub("replayFrom").str("type") != "start":
		return errParams("replays begin at the start only")
	case s.agent.load && from != nil:
	case from != nil:
		return errParams("the agent cannot replay sessions")
	case s.agent.resume:
		method = "session/resume"
	case known != nil && known.opened && !known.closed:
		s.resumed(known, false)
		s.answer(ClientSide, m.id, object{})
		return nil
	case !s.agent.load:
		return errNoSession(id)
	}
	if m.id == nil {
		return nil
	}
	sess := s.session(id)
	wasClosed, wasReset, before := sess.closed, sess.reset, sess.messages
	sess.closed = false
	if method == "session/load" {
		if sess.replay.on {
			return &fault{-32600, "Invalid request: the session is being resumed", nil}
		}
		sess.replay = replay{on: true, swallow: from == nil, begun: map[string]bool{}}
		sess.restart()
		sess.reset = false
	}
	err := s.send(m, method, params, func(answer *message) {
		swallowed := sess.replay.on && sess.replay.swallow
		sess.replay = replay{}
		sess.endMessage()
		if answer.all.has("error") {
			sess.closed, sess.reset, sess.messages = wasClosed, wasReset, before
			if sess.opened && !sess.closed {
				s.directories(id, sess.info)
			} else {
				s.tellHost("session/close", obj("sessionId", id))
			}
		}
		result := s.result(answer)
		if result == nil {
			return
		}
		sess = s.opened(id, m.params)
		s.resumed(sess, method == "session/load" && !swallowed)
		s.openedTo2(sess, &result)
		s.reply(answer, result)
	})
	if err != nil {
		sess.replay, sess.closed, sess.reset, sess.messages = replay{}, wasClosed, wasReset, before
		return err
	}
	s.directories(id, m.params) // the agent may need files for its answer
	return nil
}

// resumed sends what version 2 wants before the answer to session/resume.
func (s *State) resumed(sess *session, replayed bool) {
	if replayed {
		s.update(sess.id, obj("sessionUpdate", "replay_complete"))
	}
	state := "idle"
	if sess.turn != nil && sess.turn.accepted {
		state = "running"
		if sess.needs {
			state = "requires_action"
		}
	}
	s.state(sess, state)
}

// list1 is session/list. An agent without it has the sessions of this connection.
func (s *State) list1(m *message) *fault {
	if s.agent.list {
		return s.forward(m)
	}
	if m.params.get("cursor") != nil {
		return errParams("the cursor is not one of this agent's")
	}
	var all []raw
	cwd := m.str("cwd")
	for _, key := range s.sessions.order {
		sess := s.sessions.get(key)
		if sess.opened && !sess.closed && (cwd == "" || sess.info.str("cwd") == cwd) {
			all = append(all, sess.info.text())
		}
	}
	if m.id != nil {
		s.answer(ClientSide, m.id, obj("sessions", array(all...)))
	}
	return nil
}

// close1 is session/close. For an agent without it, the turn is cancelled.
func (s *State) close1(m *message) *fault {
	id := m.str("sessionId")
	if s.agent.close {
		return s.send(m, m.method, m.params, func(answer *message) {
			if result := s.result(answer); result != nil {
				s.closeSession(id)
				s.reply(answer, result)
			}
		})
	}
	sess := s.sessions.get(short(id))
	if sess == nil || !sess.opened || sess.closed {
		return errNoSession(id)
	}
	if m.id == nil {
		return nil
	}
	if sess.turn != nil {
		s.notify(AgentSide, "session/cancel", obj("sessionId", id))
	}
	s.closeSession(id)
	s.answer(ClientSide, m.id, object{})
	return nil
}

// delete is session/delete, and session/close for an agent of version 2. Nothing of the session is remembered then,
// except that an agent of version 1 may not have noticed yet.
func (s *State) delete(m *message) *fault {
	id := m.str("sessionId")
	return s.send(m, m.method, m.params, func(answer *message) {
		if result := s.result(answer); result != nil {
			if s.mode == agent1 {
				s.closeSession(id)
			} else {
				s.forgetSession(id)
			}
			s.reply(answer, result)
		}
	})
}

// open2 is session/new and session/fork for an agent of version 2.
func (s *State) open2(m *message) *fault {
	params, err := withServers2(m.params, m.method == "session/new")
	if err != nil {
		return err
	}
	s.opening++
	err = s.send(m, m.method, params, func(answer *message) {
		s.opening--
		if result, id := s.made(answer); result != nil {
			sess := s.opened(id, m.params)
			commands := s.openedTo1(sess, &result)
			s.reply(answer, result)
			s.commands(sess, commands)
		}
		s.releaseHeld()
	})
	if err != nil || m.id == nil {
		s.opening--
	}
	return err
}

// openedTo1 translates the members that answers about sessions share, and returns the commands, which version 1 has in
// an update after the answer.
func (s *State) openedTo1(sess *session, result *object) (commands raw) {
	commands = result.get("availableCommands")
	result.drop("availableCommands", "modes")
	if result.get("configOptions") == nil {
		return commands
	}
	result.set("configOptions", s.optionsTo1(sess, result.list("configOptions")))
	if sess.modes != nil {
		result.set("modes", sess.modes.text())
	}
	return commands
}

func (s *State) commands(sess *session, commands raw) {
	if commands != nil {
		s.update(sess.id, obj("sessionUpdate", "available_commands_update", "availableCommands", commandsTo1(list(commands))))
	}
}

// load2 is session/load, for an agent of version 2.
func (s *State) load2(m *message) *fault {
	params := append(object{}, m.params...)
	params.set("replayFrom", obj("type", "start").text())
	return s.resumeFor(m, params)
}

// resume2 is session/resume, for an agent of version 2.
func (s *State) resume2(m *message) *fault {
	params := append(object{}, m.params...)
	params.drop("replayFrom")
	return s.resumeFor(m, params)
}

func (s *State) resumeFor(m *message, params object) *fault {
	params, err := withServers2(params, m.method == "session/load")
	if err != nil {
		return err
	}
	id := m.str("sessionId")
	sess := s.opened(id, m.params)
	if m.method == "session/load" {
		s.forgetContent(sess)
		sess.replay.on = true
	}
	sess.whole = false
	return s.send(m, "session/resume", params, func(answer *message) {
		whole, idle := sess.replay.whole, sess.replay.idle
		sess.replay = replay{}
		if idle != nil {
			s.state2(sess, idle) // the work on prompts before has ended
		}
		if result := s.result(answer); result != nil {
			sess = s.opened(id, m.params)
			sess.whole = whole
			commands := s.openedTo1(sess, &result)
			s.reply(answer, result)
			s.commands(sess, commands)
		}
	})
}

// status2 is session/status, whose answer has more in version 2.
func (s *State) status2(m *message) *fault {
	return s.send(m, m.method, m.params, func(answer *message) {
		if result := s.result(answer); result != nil {
			result.drop("state")
			s.reply(answer, result)
		}
	})
}

// serversTo1 translates MCP servers: version 1 requires the lists, and has no type for a command.
func serversTo1(servers []raw) raw {
	return editObjects(servers, func(o *object) bool {
		switch o.str("type") {
		case "stdio":
			o.drop("type")
			defaultList(o, "args", "env")
		case "http":
			defaultList(o, "headers")
		}
		return true
	})
}

func systemPromptTo1(params *object) {
	if prompt := params.sub("systemPrompt"); prompt != nil {
		blocksTo1(&prompt, "content")
		params.set("systemPrompt", prompt.text())
	}
}

func defaultList(o *object, names ...string) {
	for _, name := range names {
		if o.get(name) == nil {
			o.set(name, emptyList)
		}
	}
}

// withServers2 translates MCP servers for an agent of version 2, which has none that speak SSE.
func withServers2(params object, required bool) (object, *fault) {
	var refused string
	params = append(object{}, params...)
	switch servers := params.get("mcpServers"); {
	case servers == nil && !required:
		return params, nil
	case servers == nil || servers[0] != '[': // version 2 takes a missing one for an empty one
		return nil, errParams("mcpServers is not a list")
	}
	params.set("mcpServers", editObjects(params.list("mcpServers"), func(o *object) bool {
		switch o.str("type") {
		case "":
			o.set("type", quote("stdio"))
		case "sse":
			refused = o.str("name")
			return false
		}
		return true
	}))
	if refused != "" {
		return nil, errParams("the MCP server %q uses SSE, which version 2 of the protocol does not have", refused)
	}
	return params, nil
}
