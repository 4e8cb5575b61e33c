package translate

import (
	"maps"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// advertise adds what the host offers to the capabilities of a client of version 1.
func (h Host) advertise(caps *object) {
	if h.ReadFiles || h.WriteFiles {
		caps.set("fs", obj("readTextFile", boolean(h.ReadFiles), "writeTextFile", boolean(h.WriteFiles)).text())
	}
	if h.Terminals {
		caps.set("terminal", yes)
	}
}

// hasHost reports whether the agent has a host.
func (s *State) hasHost() bool {
	return s.mode == agent1 && (s.host.ReadFiles || s.host.WriteFiles || s.host.Terminals)
}

// tellHost sends a notification to the host, if there is one.
func (s *State) tellHost(method string, params object) {
	if s.hasHost() {
		s.notify(HostSide, method, params)
	}
}

// hostEnded answers all that the host has. It serves nothing more.
func (s *State) hostEnded() []Message {
	s.out, s.host = s.out[:0], Host{}
	gone := &fault{-32603, "Internal error: the files and terminals are gone", nil}
	calls := slices.SortedFunc(maps.Keys(s.calls), func(a, b callID) int { return strings.Compare(a.id, b.id) })
	for _, key := range calls {
		if key.to == HostSide {
			m, _ := read(HostSide, failure(s.calls[key].id, gone))
			s.fromHost(m)
		}
	}
	return s.out
}

// directories tells the host what a session can reach.
func (s *State) directories(id string, params object) {
	s.tellHost("session/resume", obj("sessionId", id, "cwd", params.get("cwd"), "additionalDirectories",
		params.get("additionalDirectories")))
}

// host1 is fs/* and terminal/* of an agent of version 1.
func (s *State) host1(m *message) *fault {
	offered, asks := s.host.Terminals, false
	switch m.method {
	case "fs/read_text_file":
		offered = s.host.ReadFiles
	case "fs/write_text_file":
		offered, asks = s.host.WriteFiles, true
	case "terminal/create":
		asks = true
	}
	id := m.str("sessionId")
	sess := s.sessions.get(short(id))
	switch {
	case !offered:
		return errNoMethod(m.method)
	case m.id == nil:
		return nil
	case sess == nil || sess.closed:
		return errNoSession(id)
	case asks && sess.stopped():
		return errCancelled
	}
	h := &hosted{id: slices.Clone(m.id)}
	err := s.expect(HostSide, m.id, len(m.line), func(answer *message) {
		sess.hosted = slices.DeleteFunc(sess.hosted, func(other *hosted) bool { return other == h })
		switch made := answer.all.sub("result").str("terminalId"); {
		case made == "":
		case h.over:
			s.kill(sess, made)
		case sess.turn != nil:
			sess.made = append(sess.made[max(0, len(sess.made)-maxWaiting):], made)
		}
		s.emit(AgentSide, answer.line)
	})
	if err != nil {
		return err
	}
	if m.method == "terminal/release" {
		sess.made = slices.DeleteFunc(sess.made, func(id string) bool { return id == m.str("terminalId") })
	}
	s.accept(sess, "")
	if asks {
		sess.hosted = append(sess.hosted, h)
	}
	s.emit(HostSide, m.line)
	return nil
}

// stopped reports whether the session's turn was cancelled, and the agent still works on it.
func (sess *session) stopped() bool { return sess.turn != nil && sess.turn.cancelled }

// endHosted cancels the requests of a turn that ends about which the user may be asked, and, if it was cancelled, ends
// the commands that were started in it.
func (s *State) endHosted(sess *session) {
	for _, h := range sess.hosted {
		if !h.over {
			h.over = true
			s.tellHost("$/cancel_request", obj("requestId", h.id))
		}
	}
	if sess.stopped() {
		for _, id := range sess.made {
			s.kill(sess, id)
		}
	}
	sess.made = nil
}

// kill ends a command. Its terminal stays, so that the agent can read what it has printed.
func (s *State) kill(sess *session, terminal string) {
	id := s.own()
	if s.hasHost() && s.expect(HostSide, id, 0, func(*message) {}) == nil {
		s.emit(HostSide, obj("jsonrpc", "2.0", "id", id, "method", "terminal/kill", "params",
			obj("sessionId", sess.id, "terminalId", terminal)).text())
	}
}

// cancelHost1 is $/cancel_request of an agent of version 1, for a request that the host or the client has.
func (s *State) cancelHost1(m *message) *fault {
	id := m.params.get("requestId")
	if _, ok := s.calls[callID{HostSide, canonical(id)}]; ok {
		s.emit(HostSide, m.line)
		return nil
	} else if s.isOwn(id) {
		return nil
	}
	return s.forward(m)
}

// fromHost handles a message of the host.
func (s *State) fromHost(m *message) {
	sess := s.sessions.get(short(m.str("sessionId")))
	switch kind := m.params.sub("update").str("sessionUpdate"); {
	case m.method == "":
		if m.id != nil && !isNull(m.id) {
			s.response(m)
		}
	case m.method == "session/update" && m.id == nil:
		if sess != nil && !sess.closed && (kind == "terminal_update" || kind == "terminal_output_chunk") {
			s.emit(ClientSide, m.line)
		}
	case m.method == "$/cancel_request" && m.id == nil:
		if id := s.hostID(m.params.get("requestId")); s.calls[callID{ClientSide, canonical(id)}].done != nil {
			s.notify(ClientSide, m.method, obj("requestId", id))
		}
	case m.method == "session/request_permission" && m.id != nil:
		if err := s.askForHost(sess, m); err != nil {
			s.emit(HostSide, failure(m.id, err))
		}
	case m.id != nil:
		s.emit(HostSide, failure(m.id, errNoMethod(m.method)))
	}
}

// hostID returns the id that a question of the host's has with the client.
func (s *State) hostID(id raw) raw {
	return raw(s.prefix + string(quote("host-" + canonicalName(id))[1:]))
}

// askForHost asks the user whether the host may do something. Whatever is not the choice of an option that allows it is
// a refusal.
func (s *State) askForHost(sess *session, m *message) *fault {
	about, options := m.params.sub("toolCall"), m.params.list("options")
	if sess == nil || sess.closed || sess.stopped() || about == nil || len(options) == 0 {
		s.answer(HostSide, m.id, cancelledOutcome())
		return nil
	}
	// The agent may have a tool call for it, which then waits for the answer, too.
	var working []*call
	for _, id := range sess.calls.order {
		if c := sess.calls.get(id); c.status == "in_progress" && c.questions == 0 {
			working = append(working, c)
		}
	}
	var owner *call
	if len(working) > 0 {
		owner = working[len(working)-1]
	}
	about = append(object{}, about...)
	subject := obj("type", "tool_call")
	shown := about.str("toolCallId")
	if input := about.sub("rawInput"); about.str("kind") == "execute" && input.str("command") != "" &&
		input.str("cwd") != "" {
		subject = obj("type", "command", "command", commandLine(input), "cwd", input.get("cwd"))
		if shown = ""; len(working) == 1 && owner.id != "" {
			subject.set("toolCallId", quote(owner.id))
		}
	} else {
		s.toolCallTo2(&about)
		subject.set("toolCall", about.text())
	}
	question := *m
	question.id = s.hostID(m.id)
	question.all = slices.Clone(m.all)
	question.all.set("id", question.id)
	params := obj("sessionId", sess.id, "title", about.str("title"), "subject", subject, "options", array(options...))
	return s.ask(sess, owner, &question, params, func(answer *message) {
		outcome, status := answer.all.sub("result").sub("outcome"), "failed"
		id := outcome.str("optionId")
		if answer.all.has("error") || sess.closed || outcome.str("outcome") != "selected" ||
			!slices.Contains(optionIDs(options), id) {
			s.answer(HostSide, m.id, cancelledOutcome())
		} else {
			s.answer(HostSide, m.id, obj("outcome", obj("outcome", "selected", "optionId", id)))
			if allows(options, id) {
				status = "completed"
			}
		}
		if shown != "" && !sess.closed {
			s.update(sess.id, obj("sessionUpdate", "tool_call_update", "toolCallId", shown, "title", about.str("title"),
				"status", status))
		}
	})
}

// commandLine returns a command as one text, with the variables that it gets. A command without arguments may be a line
// for a shell.
func commandLine(input object) string {
	var words []string
	if env := input.sub("env"); len(env) > 0 {
		words = append(words, "env")
		for _, v := range env {
			words = append(words, v.name+"="+unquote(v.value))
		}
	}
	command, args := input.str("command"), input.list("args")
	if len(words)+len(args) == 0 {
		return command
	}
	words = append(words, command)
	for _, arg := range args {
		words = append(words, unquote(arg))
	}
	return plain.Quote(words...)
}
