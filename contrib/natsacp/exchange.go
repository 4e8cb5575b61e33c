package natsacp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// exchange has the requests of both sides of a seat that are not answered. The seat's mu guards it.
type exchange struct {
	calls map[int64]call // of clients, by the id that the agent has
	next  int64
	asked map[rpc.ID][]byte // requests of the agent, as the client has them
}

// call is a request of a client.
type call struct {
	gen     uint64
	id      rpc.ID
	method  string
	session string
	cwd     string // of a new session
	prompt  Prompt // if it is one with an idempotency key

	// Of session/list.
	params map[string]json.RawMessage
	own    []json.RawMessage // from the pages that were read
	pages  int
}

// read passes on what the agent says, until it ends.
func (s *seat) read() error {
	d := codec.NewDecoder(nil)
	for {
		line, err := s.agent.ReadLine(nil)
		dropped, goesOn := wire.AsUnread(err)
		switch {
		case goesOn && dropped.ID.IsNull():
			s.log.Warn("natsacp: a message of the agent is not passed on", "error", err)
			continue
		case goesOn && dropped.Response:
			line = dropped.Answer()
		case goesOn:
			s.mu.Lock()
			s.urgent = append(s.urgent, urgent{line: dropped.Answer()})
			s.changed.Broadcast()
			s.mu.Unlock()
			continue
		case err != nil:
			return err
		}
		if len(line) > 0 {
			s.fromAgent(d, line)
		}
	}
}

// fromAgent passes on a message of the agent.
func (s *seat) fromAgent(d *codec.Decoder, line []byte) {
	m := wire.Peek(d, line)
	if m.Kind != wire.KindNotification || bytes.HasPrefix(m.Method, []byte("$/")) {
		m = wire.Parse(d, line)
	}
	switch m.Kind {
	case wire.KindResponse:
		s.answered(line, m)
		return
	case wire.KindRequest, wire.KindNotification:
	default:
		_, lost := unread(line, m, "the agent's")
		if lost == nil {
			s.log.Debug("natsacp: the agent printed something that is not a message")
			return
		}
		s.answered(lost, wire.Parse(d, lost))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Kind == wire.KindRequest {
		line = replaceID(line, m, s.outwardID(m.ID))
		s.asked[wire.Canonical(m.ID)] = line
	} else if string(m.Method) == wire.MethodCancelRequest {
		var asked rpc.ID
		line = renumber(m.Params, func(id rpc.ID) (rpc.ID, bool) {
			asked = wire.Canonical(id)
			return s.outwardID(id), true
		})
		if line == nil {
			return
		}
		if question := s.asked[asked]; question != nil { // whoever attaches gets both
			s.asked[asked] = slices.Concat(question, []byte{'\n'}, line)
		}
	}
	s.say(line, 0, nil)
	s.awaitRoom()
}

// answered passes on an answer of the agent.
func (s *seat) answered(line []byte, m wire.Message) {
	n, ok := m.ID.Int()
	s.mu.Lock()
	c, known := s.calls[n]
	s.mu.Unlock()
	if !ok || !known {
		s.log.Warn("natsacp: the agent has answered something that nobody has asked")
		return
	}
	result, err := s.effect(&c, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, errFurther) {
		s.calls[n] = c
		s.urgent = append(s.urgent, urgent{line: requestLine(idText(m.ID), c.method, c.params)})
		s.changed.Broadcast()
		return
	}
	s.trace.ended(true, m.ID, m)
	// The agent leaves before the client gets the answer. Otherwise a client that prompts at once could keep it here
	// forever.
	c = s.calls[n] // another client may have taken it over
	delete(s.calls, n)
	line = replaceID(line, m, c.id)
	if err != nil {
		line = errorLine(c.id, err)
	} else if result != nil {
		line = resultLine(c.id, result)
	}
	s.leaveIfIdle()
	var after func() error
	if c.method == acp.MethodPrompt {
		stop := member(m.Result, "stopReason")
		after = func() error { return s.record.turnEnded(stop) }
	}
	s.say(line, c.gen, after)
	s.awaitRoom()
}

// outwardID is the id under which clients know a request of this agent. It is the same for each client that attaches.
func (s *seat) outwardID(id rpc.ID) rpc.ID {
	return rpc.StringID(idPrefix + s.id + ":" + string(idText(id)))
}

// feed passes messages of the client to the agent, until the agent ends.
func (s *seat) feed() {
	d := codec.NewDecoder(nil)
	for {
		line, gen, ok := s.nextLine()
		if !ok {
			return
		}
		if gen != 0 {
			line = s.fromClient(d, gen, line)
		}
		if line != nil {
			// If it fails, the agent ends, and read returns the reason.
			_ = s.agent.Write(line)
		}
	}
}

// nextLine waits for the next message for the agent, and removes it. Cancellations come first. gen is 0 if it is not
// from a client.
func (s *seat) nextLine() (line []byte, gen uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeding = false
	s.leaveIfIdle() // if it was waited for
	for s.ctx.Err() == nil {
		for i, u := range s.urgent {
			if u.after <= s.fed {
				s.feeding = true
				s.urgent = slices.Delete(s.urgent, i, i+1)
				return u.line, u.gen, true
			}
		}
		if len(s.queue) == 0 {
			s.queue = nil
			s.changed.Wait()
			continue
		}
		line, s.queue = s.queue[0], s.queue[1:]
		s.fed++
		s.feeding = true
		if s.queued -= len(line); s.waiting != nil && s.queued <= s.node.opts.Window/2 {
			respond(s.waiting, []byte{replyOK})
			s.waiting = nil
		}
		return line, s.gen, true
	}
	return nil, 0, false
}

// fromClient returns what the agent gets for a message of the client, or nil.
func (s *seat) fromClient(d *codec.Decoder, gen uint64, line []byte) []byte {
	m := wire.Parse(d, line)
	switch m.Kind {
	case wire.KindRequest:
		return s.request(gen, line, m)
	case wire.KindResponse:
		if id, ok := s.answer(m.ID); ok {
			return replaceID(line, m, id)
		}
	case wire.KindNotification:
		if string(m.Method) == wire.MethodCancelRequest {
			return renumber(m.Params, func(id rpc.ID) (rpc.ID, bool) { return s.number(gen, id) })
		}
		return line
	}
	return nil
}

// request returns what the agent gets for a request of the client, or nil.
func (s *seat) request(gen uint64, line []byte, m wire.Message) []byte {
	c := call{gen: gen, id: m.ID, method: string(m.Method), session: member(m.Params, "sessionId")}
	switch c.method {
	case acp.MethodNewSession:
		c.cwd = member(m.Params, "cwd")
	case acp.MethodPrompt:
		c.prompt = keyed(m.Params)
	case acp.MethodListSessions:
		_ = json.Unmarshal(m.Params, &c.params) // if they are wrong, the agent says so
	}
	s.mu.Lock()
	s.next++
	n := s.next
	s.calls[n] = c
	s.mu.Unlock()
	s.trace.began(true, rpc.IntID(n), m, c.session)
	result, err := s.before(c, m)
	if result == nil && err == nil {
		return replaceID(line, m, rpc.IntID(n))
	}
	if errors.Is(err, errTaken) {
		s.stop(fenced, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, n)
	if result != nil {
		s.trace.ended(true, rpc.IntID(n), wire.Message{Result: result})
		s.say(resultLine(c.id, result), c.gen, nil)
	} else if s.trace.failed(rpc.IntID(n), err); !errors.Is(err, errWaits) {
		s.say(errorLine(c.id, err), c.gen, nil)
	}
	s.awaitRoom()
	return nil
}

// answer returns the agent's id of its request that a client answers. It fails if another client was faster.
func (s *seat) answer(outward rpc.ID) (id rpc.ID, ok bool) {
	text, _ := outward.Str()
	if text, ok = strings.CutPrefix(text, idPrefix+s.id+":"); !ok || codec.Unmarshal([]byte(text), &id) != nil {
		return id, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok = s.asked[wire.Canonical(id)]
	delete(s.asked, wire.Canonical(id))
	return id, ok
}

// number returns the agent's id of a client's request.
func (s *seat) number(gen uint64, id rpc.ID) (rpc.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, c := range s.calls {
		if c.gen == gen && wire.Canonical(c.id) == wire.Canonical(id) {
			return rpc.IntID(n), true
		}
	}
	return id, false
}
