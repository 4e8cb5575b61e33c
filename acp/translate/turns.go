package translate

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/acpgo/sdk/internal/plain"
)

// state reports the session's state to a client of version 2.
func (s *State) state(sess *session, state string, more ...any) {
	s.update(sess.id, append(obj("sessionUpdate", "state_update", "state", state), obj(more...)...))
}

// prompt1 is session/prompt for an agent of version 1.
func (s *State) prompt1(m *message) *fault {
	id := m.str("sessionId")
	p := &prompt{id: m.id, params: append(object{}, m.params...), content: m.params.list("prompt"), size: len(m.line),
		key: m.str("idempotencyKey")}
	switch {
	case m.id == nil:
		return nil
	case id == "" || len(p.content) == 0:
		return errParams("a prompt without session or content")
	}
	sess := s.session(id)
	if sess.closed {
		return errNoSession(id)
	}
	if len(p.key) > maxKey {
		return errParams("the idempotencyKey is too long")
	}
	waits := sess.turn != nil || len(sess.queue) > 0
	if waits && (len(sess.queue) >= maxWaiting || s.queued+p.size > maxQueued) {
		return &fault{-32603, "Too many prompts wait", nil}
	}
	if err := s.expect(nobody, p.id, 0, nil); err != nil {
		return err
	}
	if p.key != "" {
		digest := sha256.Sum256([]byte(compact(p.params.get("prompt"))))
		if known, fresh := s.keys.use(id, p.key, digest); !fresh {
			err := s.retry(sess, p, known, digest)
			if err != nil {
				s.answered(p.id)
			}
			return err
		}
	}
	p.params.drop("idempotencyKey")
	if p.key != "" && s.agent.keys {
		meta := append(object{}, p.params.sub("_meta")...)
		meta.set(MetaIdempotencyKey, quote(p.key))
		p.params.set("_meta", meta.text())
	}
	p.params.set("prompt", edit(p.content, blockTo1))
	if waits {
		sess.queue = append(sess.queue, p)
		s.queued += p.size
		s.steer(sess, p)
		return nil
	}
	return s.start(sess, p)
}

// retry answers a prompt whose key is known.
func (s *State) retry(sess *session, p *prompt, known *keyed, digest [32]byte) *fault {
	switch {
	case known.digest != digest:
		return errParams("the idempotencyKey belongs to another prompt")
	case known.messageID != "":
		s.answered(p.id)
		s.answer(ClientSide, p.id, obj("messageId", known.messageID))
		return nil
	}
	for _, first := range append([]*prompt{sess.turn}, sess.queue...) {
		if first != nil && first.key == p.key {
			if len(first.retries) >= maxWaiting {
				return &fault{-32603, "Too many prompts wait", nil}
			}
			first.retries = append(first.retries, p.id)
			return nil
		}
	}
	return errUnknown
}

// errUnknown answers a prompt that was sent again.
var errUnknown = &fault{-32603, "The prompt was sent before, and its outcome is not known",
	obj(MetaIdempotencyKey, "unknown").text()}

// start sends a prompt to an agent of version 1.
func (s *State) start(sess *session, p *prompt) *fault {
	p.own = s.own()
	err := s.expect(AgentSide, p.own, p.size, func(answer *message) { s.ended(sess, p, answer) })
	if err != nil {
		s.keys.accept(sess.id, p.key, "")
		s.answered(p.id)
		return err
	}
	p.echo = p.content
	sess.turn = p
	if !slices.Contains(s.silent, sess) {
		s.silent = append(s.silent, sess)
	}
	s.emit(AgentSide, obj("jsonrpc", "2.0", "id", p.own, "method", "session/prompt", "params", p.params).text())
	return nil
}

// answered frees the id of a prompt to an agent of version 1.
func (s *State) answered(id raw) { delete(s.calls, callID{nobody, canonical(id)}) }

// accept tells the client that its prompt is in the conversation. There is no such message in version 1: the first one
// about the turn shows it.
func (s *State) accept(sess *session, messageID string) {
	p := sess.turn
	if p == nil || p.accepted {
		return
	}
	s.insert(sess, p, messageID)
	s.state(sess, "running")
}

// insert tells the client that a prompt of its is in the conversation.
func (s *State) insert(sess *session, p *prompt, messageID string) {
	sess.endMessage()
	if len(messageID) > maxMessageID {
		messageID = ""
	}
	s.inserted(sess, p, sess.addUser(messageID))
	s.update(sess.id, obj("sessionUpdate", "user_message", "messageId", p.messageID, "content", array(p.content...)))
}

// inserted answers a prompt whose message is in the conversation.
func (s *State) inserted(sess *session, p *prompt, messageID string) {
	p.accepted, p.messageID = true, messageID
	s.keys.accept(sess.id, p.key, messageID)
	for _, id := range append([]raw{p.id}, p.retries...) {
		s.answered(id)
		s.answer(ClientSide, id, obj("messageId", messageID))
	}
}

// steer offers a prompt that waits to the running turn, if the agent has the extension for that. Prompts keep their
// order.
func (s *State) steer(sess *session, p *prompt) {
	waits := func(other *prompt) bool { return other != p && other.own == nil }
	if !s.agent.steering || sess.turn == nil || slices.ContainsFunc(sess.queue, waits) {
		return
	}
	id := s.own()
	if s.expect(AgentSide, id, 0,
		func(answer *message) { s.steered(sess, p, answer.all.sub("result").str("outcome")) }) != nil {
		return // it waits for its own turn
	}
	p.own = id
	params := obj("sessionId", sess.id, "prompt", p.params.get("prompt"), "_meta",
		obj(plain.SteerKey, obj("idleBehavior", "promptRequired")))
	s.emit(AgentSide, obj("jsonrpc", "2.0", "id", id, "method", plain.SteerMethod, "params", params).text())
}

// steered handles the answer.
func (s *State) steered(sess *session, p *prompt, outcome string) {
	p.own = nil
	i := slices.Index(sess.queue, p)
	if i < 0 {
		return // it was withdrawn, or the agent has repeated it
	}
	if outcome == "injected" || outcome == "startedNewTurn" {
		s.unqueue(sess, i)
		s.insert(sess, p, "")
		if sess.turn != nil {
			sess.turn.echo = p.content
		} else { // which ended before the answer
			s.state(sess, "running")
			s.idle(sess, obj("stopReason", "end_turn"))
		}
	}
	if sess.turn == nil {
		s.next(sess)
	}
}

// Waiting reports whether Tick should be called: because an agent of version 1 has shown no sign of a prompt yet, or a
// client of version 1 does not have all output.
func (s *State) Waiting() bool {
	s.silent = slices.DeleteFunc(s.silent, func(sess *session) bool { return sess.turn == nil || sess.turn.accepted })
	return len(s.silent)+len(s.stale) > 0
}

// Tick sends what waits for time to pass: that prompts are accepted which the agent has for longer than a tick, and
// output. Call it regularly while Waiting. A tick is long enough for an agent to refuse a prompt, for example because
// the user must log in, and so short that the user sees that the prompt has arrived: a quarter of a second.
func (s *State) Tick() []Message {
	s.out = s.out[:0]
	for _, sess := range s.silent {
		if sess.turn != nil && sess.turn.ticked {
			s.accept(sess, "")
		} else if sess.turn != nil {
			sess.turn.ticked = true
		}
	}
	s.credit = min(s.credit+perTick, maxCredit)
	s.flush()
	return s.out
}

// ended handles the answer of an agent of version 1 to a prompt.
func (s *State) ended(sess *session, p *prompt, answer *message) {
	if sess.turn != p {
		return // the session was closed
	}
	s.endHosted(sess)
	result, code := object(nil), ""
	failed := answer.all.sub("error")
	if i := answer.all.index("result"); i >= 0 && failed == nil {
		result, _ = parse(answer.all[i].value)
	}
	if failed != nil {
		code = string(failed.get("code"))
	} else if result == nil {
		failed = obj("code", number(-32603), "message", "the agent's answer is not an object")
	}
	switch {
	case failed != nil && !p.accepted:
		s.refuse(sess, p, failed)
	case failed != nil && code == "-32800":
		s.idle(sess, obj("stopReason", "cancelled"))
	case failed != nil:
		s.idle(sess, obj("stopReason", "error", "error", failed))
	case !p.accepted && result.sub("_meta").has(MetaIdempotencyKey):
		id := result.sub("_meta").str(MetaIdempotencyKey) // it was inserted before, on another connection
		s.inserted(sess, p, cmp.Or(id[:min(len(id), maxMessageID)], sess.lastUser()))
	default:
		s.accept(sess, "")
		s.idle(sess, result)
	}
	s.next(sess)
}

func (s *State) idle(sess *session, end object) {
	sess.needs = false
	sess.endMessage()
	for _, c := range sess.calls.values {
		c.status = "" // whatever it was, the turn does not wait for it
	}
	s.update(sess.id, obj("sessionUpdate", "state_update", "state", "idle").and(end))
}

// refuse answers a prompt, and its retries, with an error. Its key is free again.
func (s *State) refuse(sess *session, p *prompt, err object) {
	s.keys.accept(sess.id, p.key, "")
	for _, id := range append([]raw{p.id}, p.retries...) {
		s.answered(id)
		s.emit(ClientSide, obj("jsonrpc", "2.0", "id", id, "error", err).text())
	}
}

// next starts the prompt that has waited longest.
func (s *State) next(sess *session) {
	for sess.turn = nil; sess.turn == nil && len(sess.queue) > 0 && sess.queue[0].own == nil; {
		p := sess.queue[0]
		s.unqueue(sess, 0)
		if err := s.start(sess, p); err != nil {
			s.refuse(sess, p, errObject(err))
		}
	}
}

func (s *State) unqueue(sess *session, i int) {
	s.queued -= sess.queue[i].size
	sess.queue = slices.Delete(sess.queue, i, i+1)
}

// withdraw refuses all prompts that wait.
func (s *State) withdraw(sess *session) {
	for len(sess.queue) > 0 {
		p := sess.queue[0]
		s.unqueue(sess, 0)
		s.refuse(sess, p, errObject(errCancelled))
	}
}

// cancel1 is session/cancel for an agent of version 1. It also withdraws the prompts that wait.
func (s *State) cancel1(m *message) *fault {
	if sess := s.sessions.get(short(m.str("sessionId"))); sess != nil {
		s.withdraw(sess)
		if sess.turn != nil {
			sess.turn.cancelled = true
			s.endHosted(sess)
		}
	}
	return s.forward(m)
}

// cancelRequest1 is $/cancel_request from a client of version 2. A prompt has another id with the agent, and one that
// was answered cannot be cancelled this way.
func (s *State) cancelRequest1(m *message) *fault {
	id := canonical(m.params.get("requestId"))
	for _, sess := range s.sessions.values {
		if p := sess.turn; p != nil && !p.accepted && canonical(p.id) == id {
			params := append(object{}, m.params...)
			params.set("requestId", p.own)
			return s.send(m, m.method, params, nil)
		}
		for i, p := range sess.queue {
			if canonical(p.id) == id {
				if p.own != nil {
					s.notify(AgentSide, m.method, obj("requestId", p.own))
				}
				s.unqueue(sess, i)
				s.refuse(sess, p, errObject(errCancelled))
				if sess.turn == nil {
					s.next(sess) // it had waited for the answer of the agent about p
				}
				return nil
			}
		}
	}
	if !s.isOwn(m.params.get("requestId")) {
		return s.forward(m)
	}
	return nil
}

// endPrompts ends all prompts of a session that is over.
func (s *State) endPrompts(sess *session) {
	s.withdraw(sess)
	if p := sess.turn; p != nil {
		sess.turn = nil
		if p.accepted {
			s.idle(sess, obj("stopReason", "cancelled"))
		} else {
			s.refuse(sess, p, errObject(errCancelled))
		}
	}
	for _, p := range sess.waiting {
		s.answer(ClientSide, p.id, obj("stopReason", "cancelled"))
		p.cancelled = true
	}
	sess.waiting = nil
}

// prompt2 is session/prompt for an agent of version 2.
func (s *State) prompt2(m *message) *fault {
	id := m.str("sessionId")
	p := &prompt{id: m.id, content: m.params.list("prompt"), size: len(m.line)}
	params := append(object{}, m.params...)
	if meta := params.sub("_meta"); meta.has(MetaIdempotencyKey) {
		params.set("idempotencyKey", meta.get(MetaIdempotencyKey))
		meta.drop(MetaIdempotencyKey)
		params.setMeta(meta)
	}
	p.key = params.str("idempotencyKey")
	switch {
	case len(p.key) > maxKey:
		return errParams("the idempotencyKey is too long")
	case id == "" || p.content == nil:
		return errParams("a prompt without session or content")
	case len(p.content) == 0:
		return errParams("version 2 of the protocol has no empty prompts")
	case m.id == nil:
		return nil
	}
	sess := s.session(id)
	if len(sess.waiting) >= maxWaiting {
		return &fault{-32603, "Too many prompts wait", nil}
	}
	if slices.ContainsFunc(sess.waiting, func(other *prompt) bool { return canonical(other.id) == canonical(m.id) }) {
		return &fault{-32600, "Invalid request: the id is in use", nil}
	}
	if p.key != "" {
		digest := sha256.Sum256([]byte(compact(params.get("prompt"))))
		known, fresh := s.keys.use(id, p.key, digest)
		if !fresh && known.digest != digest {
			p.key = "" // the agent refuses it
		} else if p.repeats = !fresh; p.repeats && known.messageID != "" {
			p.accepted, p.messageID, p.content = true, known.messageID, nil
			sess.waiting = append(sess.waiting, p)
			s.repeated(sess, p, known.end)
			return nil
		} else if p.repeats && !sess.whole && !sess.waits(p.key) {
			return errUnknown // the answer would not tell whether the agent had inserted it before
		}
	}
	sess.sent++
	p.sent = sess.sent
	err := s.send(m, m.method, params, func(answer *message) { s.accepted(sess, p, answer) })
	if err == nil {
		sess.waiting = append(sess.waiting, p)
	} else if !p.repeats {
		s.keys.accept(id, p.key, "")
	}
	return err
}

func (sess *session) waits(key string) bool {
	return slices.ContainsFunc(sess.waiting, func(p *prompt) bool { return p.key == key })
}

// repeated handles a prompt whose message was in the conversation before it was sent. It may have been sent on another
// connection, so that the state of the session says how its turn ended, if anything does.
func (s *State) repeated(sess *session, p *prompt, end string) {
	isFirst := func(first *prompt) bool { return first != p && first.accepted && first.messageID == p.messageID }
	switch {
	case end != "":
		sess.finish(p)
		s.stop(sess, p, obj("stopReason", end))
	case slices.ContainsFunc(sess.waiting, isFirst),
		working(sess.state) && (sess.latest == "" || sess.latest == p.messageID):
		p.ran = working(sess.state)
	case sess.lastEnd != "" && sess.latest == p.messageID && sess.worked:
		sess.finish(p)
		s.stop(sess, p, obj("stopReason", sess.lastEnd))
	default:
		sess.finish(p)
		s.emit(ClientSide, failure(p.id, errUnknown))
	}
}

// saw remembers what a session's history has of the user's messages.
func (s *State) saw(sess *session, kind, id string) {
	switch id = short(id); kind {
	case "user_message", "user_message_chunk":
		if id == "" {
			return
		}
		if _, ok := sess.seen.values[id]; !ok {
			sess.seen.put(id, sess.sent)
		}
		sess.worked = sess.worked && sess.latest == id
		sess.latest = id
	case "agent_message", "agent_message_chunk", "agent_thought", "agent_thought_chunk", "tool_call_update":
		sess.worked = true
	}
}

// accepted handles the answer of an agent of version 2 to a prompt.
func (s *State) accepted(sess *session, p *prompt, answer *message) {
	if !slices.Contains(sess.waiting, p) {
		return // the session was closed
	}
	if key := p.key; answer.all.has("error") {
		if p.key = ""; !sess.waits(key) {
			s.keys.accept(sess.id, key, "")
		}
	}
	if p.cancelled && string(answer.all.sub("error").get("code")) == string(number(errCancelled.code)) {
		sess.finish(p)
		s.stop(sess, p, obj("stopReason", "cancelled")) // in version 1 that is no error
		return
	}
	result := s.result(answer)
	if result == nil {
		sess.finish(p)
		return
	}
	id := short(result.str("messageId"))
	p.accepted, p.messageID, p.content = true, cmp.Or(id, p.inserted), nil // an agent of an earlier draft does not say it
	if p.key != "" && p.messageID != "" {
		first := s.keys.accept(sess.id, p.key, p.messageID)
		if at, seen := sess.seen.values[id]; first.messageID == p.messageID || seen && at < p.sent {
			s.repeated(sess, p, first.end)
			return
		}
	}
	if id != "" && p.inserted != id {
		p.ran, p.ended = false, nil // that was other work
	}
	p.ran = p.ran || working(sess.state)
	if p.ended != nil {
		sess.finish(p)
		s.stop(sess, p, p.ended)
	}
}

func (sess *session) finish(p *prompt) {
	sess.waiting = slices.DeleteFunc(sess.waiting, func(other *prompt) bool { return other == p })
}

func working(state string) bool { return state == "running" || state == "requires_action" }

// state2 follows the state of an agent of version 2, and answers prompts at the end of the work on them.
func (s *State) state2(sess *session, update object) {
	before := sess.state
	sess.setState(update)
	for _, p := range slices.Clone(sess.waiting) {
		switch {
		case working(sess.state) && (p.accepted || p.inserted != "" || !working(before)):
			p.ran = true
		case sess.state == "idle" && p.ran && p.accepted:
			sess.finish(p)
			s.stop(sess, p, update)
		case sess.state == "idle" && p.ran && p.inserted != "":
			p.ended = brief(update)
		case sess.state == "idle":
			p.ran = false
		}
	}
}

func (sess *session) setState(update object) {
	sess.state, sess.lastEnd = short(update.str("state")), ""
	if sess.state == "idle" {
		sess.lastEnd = short(update.str("stopReason"))
	}
}

// brief returns a state without what is too long to keep.
func brief(update object) object {
	return slices.DeleteFunc(slices.Clone(update), func(m member) bool { return len(m.value) > maxID }).clone()
}

// stop answers a prompt of a client of version 1.
func (s *State) stop(sess *session, p *prompt, idle object) {
	reason := idle.str("stopReason")
	s.keys.end(sess.id, p.key, short(cmp.Or(reason, "end_turn")))
	switch reason {
	case "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled":
	case "error":
		err := idle.sub("error")
		if err.get("code") == nil || err.get("message") == nil {
			err = obj("code", number(-32603), "message", "The agent's work ended with an error")
		}
		s.emit(ClientSide, obj("jsonrpc", "2.0", "id", p.id, "error", err).text())
		return
	default:
		if reason = "end_turn"; p.cancelled {
			reason = "cancelled"
		}
	}
	s.answer(ClientSide, p.id, obj("stopReason", reason, "usage", idle.get("usage"), "_meta", idle.get("_meta")))
}

// userMessage reports whether a user's message is that of a prompt of this client, which knows it.
func (sess *session) userMessage(id string, content []raw) bool {
	if sess.replay.on || id == "" {
		return false
	}
	id = short(id)
	for _, p := range sess.waiting {
		same := !p.accepted && len(content) > 0 && compact(content[0]) == compact(p.content[0])
		if p.accepted && p.messageID == id || p.exact && p.inserted == id || same && !p.exact {
			if sess.last = id; p.inserted != id {
				p.inserted, p.ran, p.ended = id, p.accepted && p.ran || working(sess.state), nil
			}
			p.exact = true
			return true
		}
	}
	for _, p := range sess.waiting {
		if !p.accepted && p.inserted == "" {
			// The agent may have changed the text; the answer says whether it is this one.
			p.inserted, p.ran, p.ended = id, working(sess.state), nil
			break
		}
	}
	return sess.last == id
}

// cancel2 is session/cancel for an agent of version 2.
func (s *State) cancel2(m *message) *fault {
	if sess := s.sessions.get(short(m.str("sessionId"))); sess != nil {
		for _, p := range slices.Clone(sess.waiting) {
			if p.cancelled = true; p.repeats && p.accepted && !p.ran && !working(sess.state) {
				sess.finish(p) // it may be one of which the history has nothing
				s.stop(sess, p, obj("stopReason", "cancelled"))
			}
		}
	}
	return s.forward(m)
}

// cancelRequest2 is $/cancel_request from a client of version 1. Where version 2 has answered the prompt already, it is
// session/cancel.
func (s *State) cancelRequest2(m *message) *fault {
	id := canonical(m.params.get("requestId"))
	for _, sess := range s.sessions.values {
		for _, p := range sess.waiting {
			if canonical(p.id) == id && p.accepted {
				for _, other := range sess.waiting {
					other.cancelled = true
				}
				s.notify(AgentSide, "session/cancel", obj("sessionId", sess.id))
				return nil
			}
		}
	}
	return s.forward(m)
}
