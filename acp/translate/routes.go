package translate

import (
	"bytes"
	"errors"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/wire"
)

// Message translates a message from one side. It returns the messages that result, in order: usually one for the other
// side, but possibly none, or several, also for the sender. The slice is valid until the next call, and so is the line
// if messages pass; otherwise lines are new. The line has no newline.
func (s *State) Message(from Side, line []byte) []Message {
	s.out = s.out[:0]
	if from == HostSide && !s.hasHost() {
		return nil
	}
	if s.mode == pass {
		s.emit(from.other(), line)
		return s.out
	}
	line = bytes.Clone(line) // parts of it are kept, and what comes out stays as it is
	switch m, err := read(from, line); {
	case (err != nil || m == nil) && s.unread(from, line):
	case err != nil:
		s.emit(from, failure(null, err))
	case m == nil && from == HostSide:
	case m == nil: // the reader says what is wrong
		s.emit(from.other(), line)
	case from == HostSide:
		s.fromHost(m)
	default:
		if from == AgentSide {
			s.credit = min(s.credit+maxTimes*len(line), maxCredit)
		}
		if len(s.stale) > 0 && !m.isOutput() {
			s.flush()
		}
		s.message(m)
	}
	return s.out
}

// unread fails the request that a line answers which cannot be read, and reports whether there is one. Its id may be
// the translation's own.
func (s *State) unread(from Side, line []byte) bool {
	id, response, known := wire.Recover(line)
	if !response || !known {
		return false
	}
	lost := (&rpc.CallLostError{ID: id, Err: errUnread}).Response()
	m, _ := read(from, lost)
	_, waits := s.calls[callID{from, canonical(m.id)}]
	if waits {
		s.response(m)
	}
	return waits
}

var errUnread = errors.New("the answer cannot be read, or has a member twice")

func (s *State) message(m *message) {
	var err *fault
	switch {
	case m.method == "":
		s.response(m)
	case s.isOwn(m.id):
		err = &fault{-32600, "Invalid request: a reserved id", nil}
	case m.method == "initialize" && m.from == ClientSide:
		err = s.initialize(m)
	case s.mode == undecided:
		err = s.forward(m)
	case s.hold(m):
	default:
		err = s.dispatch(m)
	}
	if err != nil && m.id != nil {
		s.emit(m.from, failure(m.id, err))
	}
}

// hold keeps a message of an agent of version 2 until the session is known that it is about: version 2 allows updates
// before the answer that names their session.
func (s *State) hold(m *message) bool {
	id := m.str("sessionId")
	if sess := s.sessions.get(short(id)); s.opening == 0 || m.from == ClientSide || id == "" || sess != nil &&
		sess.opened {
		return false
	}
	if s.heldSize+len(m.line) > maxHeld {
		opening := s.opening
		s.opening = 0 // an update too early is better than none
		s.releaseHeld()
		s.opening = opening
		return false
	}
	s.held = append(s.held, Message{m.from, m.line})
	s.heldSize += len(m.line)
	return true
}

// releaseHeld translates the messages that waited for an answer, except those that still do.
func (s *State) releaseHeld() {
	held := s.held
	s.held, s.heldSize = nil, 0
	for _, early := range held {
		if m, _ := read(early.To, early.Line); m != nil {
			s.message(m)
		}
	}
}

// dispatch calls the function for a request or notification.
func (s *State) dispatch(m *message) *fault {
	handlers := &routes[s.mode-agent1]
	handle, ok := handlers[m.from-ClientSide][m.method]
	switch {
	case !ok:
		return s.forward(m)
	case handle == nil:
		return errNoMethod(m.method)
	case m.params == nil:
		return errParams("params is not an object, or has a member twice")
	case len(m.str("sessionId")) > maxID:
		return errParams("the sessionId is too long")
	}
	return handle(s, m)
}

type handler func(*State, *message) *fault

// routes has, by mode and sender, the methods that do not simply pass. Nil refuses a method that the sender's version
// does not have, or the receiver's version cannot serve.
var routes [2][2]map[string]handler

func init() {
	files := []string{
		"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/release",
		"terminal/wait_for_exit", "terminal/kill",
	}
	refuse := func(handlers map[string]handler, methods ...string) map[string]handler {
		for _, method := range methods {
			handlers[method] = nil
		}
		return handlers
	}
	routes = [2][2]map[string]handler{
		{ // The agent speaks version 1.
			refuse(map[string]handler{
				"auth/login":                renamed("authenticate"),
				"auth/logout":               (*State).logout1,
				"session/new":               (*State).open1,
				"session/fork":              (*State).open1,
				"session/resume":            (*State).resume1,
				"session/list":              (*State).list1,
				"session/close":             (*State).close1,
				"session/delete":            (*State).delete,
				"session/prompt":            (*State).prompt1,
				"session/cancel":            (*State).cancel1,
				"session/set_config_option": (*State).setOption1,
				"$/cancel_request":          (*State).cancelRequest1,
				"tool_call/cancel":          (*State).cancelWork1,
				"terminal/cancel":           (*State).cancelWork1,
			}, "authenticate", "logout", "session/load", "session/set_mode"),
			{
				"session/update":             (*State).update1,
				"session/request_permission": (*State).permission1,
				"elicitation/create":         (*State).elicitation1,
				"$/cancel_request":           (*State).cancelHost1,
			},
		},
		{ // The agent speaks version 2.
			refuse(map[string]handler{
				"authenticate":              renamed("auth/login"),
				"logout":                    renamed("auth/logout"),
				"session/new":               (*State).open2,
				"session/fork":              (*State).open2,
				"session/load":              (*State).load2,
				"session/resume":            (*State).resume2,
				"session/close":             (*State).delete,
				"session/delete":            (*State).delete,
				"session/prompt":            (*State).prompt2,
				"session/cancel":            (*State).cancel2,
				"session/set_mode":          (*State).setMode2,
				"session/set_config_option": (*State).setOption2,
				"session/status":            (*State).status2,
				"$/cancel_request":          (*State).cancelRequest2,
			}, "auth/login", "auth/logout", "tool_call/cancel", "terminal/cancel"),
			refuse(map[string]handler{
				"session/update":             (*State).update2,
				"session/request_permission": (*State).permission2,
				"elicitation/create":         (*State).elicitation2,
			}, files...),
		},
	}
	for _, method := range files {
		routes[0][1][method] = (*State).host1
	}
}

// renamed returns a handler for a method of which only the name differs.
func renamed(to string) handler {
	return func(s *State, m *message) *fault {
		return s.send(m, to, m.params, nil)
	}
}
