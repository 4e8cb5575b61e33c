package translate

import (
	"bytes"
	"strconv"
)

// emit appends a message.
func (s *State) emit(to Side, line []byte) { s.out = append(s.out, Message{to, line}) }

// forward passes a message as it is.
func (s *State) forward(m *message) *fault {
	if m.method != "" && m.id != nil {
		if err := s.expect(m.from.other(), m.id, len(m.id), nil); err != nil {
			return err
		}
	}
	s.emit(m.from.other(), m.line)
	return nil
}

// notify sends a notification.
func (s *State) notify(to Side, method string, params object) {
	s.emit(to, obj("jsonrpc", "2.0", "method", method, "params", params).text())
}

// update sends a session/update with the members of an update, to the client.
func (s *State) update(session string, update object) {
	s.notify(ClientSide, "session/update", obj("sessionId", session, "update", update))
}

// send passes a request or notification with another method or other params, under its own id. Done is called with the
// answer, and sends it on; if it is nil, the answer passes.
func (s *State) send(m *message, method string, params object, done func(*message)) *fault {
	if m.id != nil {
		if err := s.expect(m.from.other(), m.id, len(m.line), done); err != nil {
			return err
		}
	}
	s.emit(m.from.other(), m.with(method, params))
	return nil
}

// expect remembers what to do with the answer to a request that occupies so many bytes. Nothing is a request of which
// two are in flight with one id, or whose answer would come twice.
func (s *State) expect(to Side, id raw, size int, done func(*message)) *fault {
	key := callID{to, canonical(id)}
	_, twice := s.calls[key]
	if !twice { // the agent asks the client and the host, and the client asks the agent and nobody
		_, twice = s.calls[callID{to ^ AgentSide, key.id}]
	}
	switch {
	case len(key.id) > maxID:
		return &fault{-32600, "Invalid request: the id is too long", nil}
	case twice:
		return &fault{-32600, "Invalid request: the id is in use", nil}
	case len(s.calls) >= maxCalls, s.pending > maxPending:
		return &fault{-32603, "Too many requests in flight", nil}
	}
	s.calls[key] = pending{bytes.Clone(id), done, size}
	s.pending += size
	return nil
}

// response handles an answer.
func (s *State) response(m *message) {
	key := callID{m.from, canonical(m.id)}
	if call, ok := s.calls[key]; ok {
		delete(s.calls, key)
		if s.pending -= call.size; call.done != nil {
			call.done(m)
			return
		}
	} else if m.id != nil && !isNull(m.id) {
		return // nobody waits for it
	}
	s.emit(m.from.other(), m.line)
}

// result returns a successful answer's result, or passes the error on and returns nil.
func (s *State) result(m *message) object {
	if i := m.all.index("result"); i >= 0 && !m.all.has("error") {
		if o, ok := parse(m.all[i].value); ok {
			return o
		} else if isNull(m.all[i].value) {
			return object{}
		}
		s.emit(m.from.other(), failure(m.id,
			&fault{-32603, "Internal error: the result is not an object, or has a member twice", nil}))
		return nil
	} else if m.all.get("error") == nil {
		s.emit(m.from.other(), failure(m.id, &fault{-32603, "Internal error: the answer has neither a result nor an error",
			nil}))
		return nil
	}
	s.emit(m.from.other(), m.line)
	return nil
}

// reply passes an answer with another result.
func (s *State) reply(m *message, result object) {
	all := append(object{}, m.all...)
	all.set("result", result.text())
	s.emit(m.from.other(), all.text())
}

// answer sends a result for a request.
func (s *State) answer(to Side, id raw, result object) {
	s.emit(to, obj("jsonrpc", "2.0", "id", id, "result", result).text())
}

// isOwn reports whether an id is like those of the translation's own requests.
func (s *State) isOwn(id raw) bool {
	return len(id) > len(s.prefix) && string(id[:len(s.prefix)]) == s.prefix
}

// own returns a new id for a request of the translation's own.
func (s *State) own() raw {
	s.prompts++
	return raw(s.prefix + strconv.Itoa(s.prompts) + `"`)
}
