package translate

import "slices"

// session returns what is remembered of a session, or begins to remember.
func (s *State) session(id string) *session {
	key := short(id)
	sess := s.sessions.get(key)
	if sess == nil {
		sess = &session{id: id, reset: true, unique: s.unique}
		s.forgetContent(sess)
		s.sessions.put(key, sess)
		s.measure(sess)
	}
	return sess
}

// opened makes a session usable.
func (s *State) opened(id string, params object) *session {
	sess := s.session(id)
	sess.closed, sess.opened = false, true
	sess.info = obj("sessionId", id, "cwd", params.get("cwd"), "additionalDirectories",
		params.get("additionalDirectories"))
	if len(sess.info.text()) > maxOptions {
		sess.info = obj("sessionId", id)
	}
	sess.info = sess.info.clone()
	s.measure(sess)
	return sess
}

// measure measures the settings of a session, and forgets other sessions if there are too many, or too much of them.
func (s *State) measure(sess *session) {
	if s.sessions.get(short(sess.id)) != sess {
		return // it was forgotten while a request about it was in flight
	}
	size := len(sess.options) + len(sess.modes.text()) + len(sess.info.text())
	for _, entries := range sess.plans.values {
		size += len(entries)
	}
	s.settings += size - sess.size
	sess.size = size
	for len(s.sessions.order) > maxSessions || s.settings > maxSettings && len(s.sessions.order) > 1 {
		others := slices.DeleteFunc(slices.Clone(s.sessions.order),
			func(key string) bool { return s.sessions.get(key) == sess })
		at := slices.IndexFunc(others, func(key string) bool {
			other := s.sessions.get(key)
			return other.turn == nil && len(other.waiting) == 0 && !other.replay.on
		})
		s.forgetSession(s.sessions.get(others[max(at, 0)]).id)
	}
}

// release ends the prompts of a session that is forgotten, and forgets what is kept of it.
func (s *State) release(sess *session) {
	s.endPrompts(sess)
	s.endHosted(sess)
	s.tellHost("session/close", obj("sessionId", sess.id))
	s.forgetContent(sess)
}

// forgetContent forgets the tool calls, messages and plans of a session.
func (s *State) forgetContent(sess *session) {
	for _, c := range sess.calls.values {
		s.accounts.release(&c.content)
	}
	for _, t := range sess.terms.values {
		s.accounts.release(&t.output)
	}
	s.stale = slices.DeleteFunc(s.stale, func(one stale) bool { return one.sess == sess })
	sess.calls, sess.terms = recent[*call]{max: 512}, recent[*terminal]{max: 64}
	sess.texts, sess.plans = recent[*text]{max: 256}, recent[raw]{max: 16}
	sess.seen, sess.latest, sess.worked = recent[int]{max: 256}, "", false
}

func (s *State) forgetSession(id string) {
	if old := s.sessions.remove(short(id)); old != nil {
		s.release(old)
		s.settings -= old.size
	}
}

// closeSession ends a session's turn. The session is remembered as closed, because the agent's messages about the turn
// may still arrive.
func (s *State) closeSession(id string) {
	if sess := s.sessions.get(short(id)); sess != nil {
		s.release(sess)
		sess.closed = true
	}
}
