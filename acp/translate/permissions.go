package translate

import (
	"cmp"
	"slices"
)

// permission1 is session/request_permission of an agent of version 1.
func (s *State) permission1(m *message) *fault {
	id, about := m.str("sessionId"), m.params.sub("toolCall")
	if id == "" || about == nil {
		return errParams("a permission without session or tool call")
	}
	sess := s.session(id)
	options := m.params.list("options")
	if m.id == nil {
		return nil
	}
	if sess.closed || len(options) == 0 {
		// Version 2 has no question without options.
		s.answer(AgentSide, m.id, cancelledOutcome())
		return nil
	}
	c, _ := s.call(sess, about.str("toolCallId"))
	about = append(object{}, about...)
	s.toolCallTo2(&about)
	c.note(about)
	params := append(object{}, m.params...)
	params.drop("toolCall")
	params.put(obj("title", cmp.Or(c.title, "Permission"), "subject", obj("type", "tool_call", "toolCall", about)))
	ids := optionIDs(options)
	return s.ask(sess, c, m, params, func(answer *message) {
		if sess.closed {
			ids = nil // closing has cancelled the turn, and with it the question
		}
		s.outcome(answer, ids)
	})
}

// elicitation1 is elicitation/create of an agent of version 1.
func (s *State) elicitation1(m *message) *fault {
	params := append(object{}, m.params...)
	if schema := params.sub("requestedSchema"); schema != nil {
		if schema.get("type") == nil {
			schema.set("type", quote("object"))
		}
		if schema.get("properties") == nil {
			schema.set("properties", emptyObj)
		}
		params.set("requestedSchema", schema.text())
	}
	id := m.str("sessionId")
	if id == "" || m.id == nil {
		return s.send(m, m.method, params, nil)
	}
	sess := s.session(id)
	if sess.closed {
		s.answer(AgentSide, m.id, obj("action", "cancel"))
		return nil
	}
	return s.ask(sess, nil, m, params, func(answer *message) {
		if sess.closed {
			s.answer(AgentSide, answer.id, obj("action", "cancel"))
		} else {
			s.emit(AgentSide, answer.line)
		}
	})
}

// ask sends a question to the user, and reports that the work waits for it, unless other work continues. Done is called
// with the answer.
func (s *State) ask(sess *session, c *call, m *message, params object, done func(*message)) *fault {
	s.accept(sess, "")
	others := false
	for _, other := range sess.calls.values {
		others = others || other != c && other.questions == 0 && other.status == "in_progress"
	}
	err := s.expect(ClientSide, m.id, len(m.line), func(answer *message) {
		sess.asking--
		if c != nil {
			c.questions--
		}
		if sess.needs && sess.asking == 0 && sess.turn != nil {
			sess.needs = false
			s.state(sess, "running")
		}
		done(answer)
	})
	if err != nil {
		return err
	}
	sess.asking++
	if c != nil {
		c.questions++
	}
	if !others && !sess.needs && sess.turn != nil {
		sess.needs = true
		s.state(sess, "requires_action")
	}
	s.emit(ClientSide, m.with(m.method, params))
	return nil
}

// outcome passes the answer to a question, and returns the option that was chosen. The answer to a request for
// permission must be one of the options; everything else is a cancellation, and never an approval.
func (s *State) outcome(answer *message, options []string) (chosen string) {
	result := s.result(answer)
	if result == nil {
		return ""
	}
	outcome := result.sub("outcome")
	if id := outcome.str("optionId"); outcome.str("outcome") == "selected" && slices.Contains(options, id) {
		chosen = id
	} else if outcome.str("outcome") != "cancelled" {
		result.set("outcome", obj("outcome", "cancelled").text())
	}
	s.reply(answer, result)
	return chosen
}

func cancelledOutcome() object { return obj("outcome", obj("outcome", "cancelled")) }

// optionIDs returns the ids of a question's options.
func optionIDs(options []raw) (ids []string) {
	for _, option := range options {
		if o, _ := parse(option); o.str("optionId") != "" {
			ids = append(ids, o.str("optionId"))
		}
	}
	return ids
}

// allows reports whether a question has an option of this id that allows what it is about.
func allows(options []raw, id string) bool {
	return id != "" && slices.ContainsFunc(options, func(option raw) bool {
		o, _ := parse(option)
		return o.str("optionId") == id && slices.Contains([]string{"allow_once", "allow_always"}, o.str("kind"))
	})
}

// permission2 is session/request_permission of an agent of version 2.
func (s *State) permission2(m *message) *fault {
	id, title := m.str("sessionId"), m.str("title")
	if id == "" {
		return errParams("a permission without session")
	}
	if m.id == nil {
		return nil
	}
	options := editObjects(m.params.list("options"), func(o *object) bool {
		return slices.Contains([]string{"allow_once", "allow_always", "reject_once", "reject_always"}, o.str("kind"))
	})
	if len(list(options)) == 0 {
		s.answer(AgentSide, m.id, cancelledOutcome())
		return nil
	}
	sess := s.session(id)
	about, invented := s.subject(sess, m, title)
	params := append(object{}, m.params...)
	params.drop("title", "description", "subject")
	params.set("toolCall", about.text())
	params.set("options", options)
	ids := optionIDs(list(options))
	call := about.str("toolCallId")
	if c, fresh := s.call(sess, call); fresh {
		c.note(about)
		s.update(id, obj("sessionUpdate", "tool_call").and(about))
	}
	return s.send(m, m.method, params, func(answer *message) {
		chosen := s.outcome(answer, ids)
		if invented {
			status := "failed"
			if allows(list(options), chosen) {
				status = "completed"
			}
			s.update(id, obj("sessionUpdate", "tool_call_update", "toolCallId", call, "status", status))
		}
	})
}

// subject returns the tool call that a client of version 1 is asked about. Its title is the question, as agents of
// version 1 do it.
func (s *State) subject(sess *session, m *message, title string) (about object, invented bool) {
	subject := m.params.sub("subject")
	var text []raw
	if description := m.str("description"); description != "" {
		text = append(text, toolText(description))
	}
	switch subject.str("type") {
	case "tool_call":
		about = append(object{}, subject.sub("toolCall")...)
		c := cmp.Or(sess.calls.get(short(about.str("toolCallId"))), &call{})
		content := about.list("content")
		s.toolCallTo1(sess, c, &about, false)
		if content == nil {
			content = c.content.pieces
		}
		if len(text) > 0 {
			text = append(text, list(s.contentTo1(sess, &c.content, content))...)
		}
	case "command":
		about = obj("toolCallId", subject.get("toolCallId"), "kind", "execute",
			"rawInput", obj("command", subject.get("command"), "cwd", subject.get("cwd")), "_meta", subject.get("_meta"))
		if text == nil {
			text = append(text, toolText("$ "+subject.str("command")))
		}
	default:
		about = obj("kind", "other", "rawInput", m.params.get("subject"))
	}
	if invented = about.str("toolCallId") == ""; invented {
		about.set("toolCallId", quote("permission-"+s.unique+canonicalName(m.id)))
	}
	about.set("title", quote(cmp.Or(title, about.str("title"), "Permission")))
	if text != nil {
		about.set("content", array(text...))
	}
	return about, invented
}

// canonicalName returns an id as a part of a name.
func canonicalName(id raw) string {
	if s := unquote(id); s != "" {
		return short(s)
	}
	return short(string(id))
}

// elicitation2 is elicitation/create of an agent of version 2, whose forms may have formats that version 1 lacks.
func (s *State) elicitation2(m *message) *fault {
	schema := m.params.sub("requestedSchema")
	fields := schema.sub("properties")
	changed := false
	for i, field := range fields {
		o, ok := parse(field.value)
		if format := o.str("format"); ok && format != "" &&
			!slices.Contains([]string{"email", "uri", "date", "date-time"}, format) {
			o.drop("format")
			fields[i].value = o.text()
			changed = true
		}
	}
	if !changed {
		return s.forward(m)
	}
	params := append(object{}, m.params...)
	schema.set("properties", fields.text())
	params.set("requestedSchema", schema.text())
	return s.send(m, m.method, params, nil)
}
