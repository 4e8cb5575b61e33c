package natsacp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// before does what must be done before the agent gets a request. If it returns an answer, the agent does not get it.
func (s *seat) before(c call, m wire.Message) (answer []byte, err error) {
	if c.method == acp.MethodListSessions && len(wire.TextMember(codec.NewDecoder(nil), m.Params, "cursor")) > 0 {
		return nil, rpc.ErrInvalidParams.WithMessagef("there is no such cursor: a list has one page")
	}
	if c.session == "" { // if the method needs one, the agent says so
		return nil, nil
	}
	switch c.method {
	case acp.MethodResumeSession:
		s.mu.Lock()
		answer = s.result
		s.mu.Unlock()
		if answer != nil && directory(m.Params) != "" { // the session is open, and another client has attached
			return answer, nil
		}
	case acp.MethodLoadSession:
	case acp.MethodPrompt:
		if answer, err := s.known(c); answer != nil || err != nil {
			return answer, err
		}
		return nil, s.turnBegins(c.prompt)
	default:
		return nil, nil
	}
	return nil, s.claim(c.session, directory(m.Params))
}

// directory returns the working directory of a request. If the parameters are wrong, the agent says so.
func directory(params []byte) string {
	return string(wire.TextMember(codec.NewDecoder(nil), params, "cwd"))
}

// opened keeps the result of a request that opened the session.
func (s *seat) opened(result []byte) {
	var r map[string]json.RawMessage
	if json.Unmarshal(result, &r) != nil {
		return
	}
	delete(r, "sessionId")
	text, _ := json.Marshal(r) // what was read can be written
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result = text
}

// change changes the record of the session, if there is one.
func (s *seat) change(change func(*Session)) error {
	s.recording.Lock()
	defer s.recording.Unlock()
	if s.session == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.node.fleet.lease)
	defer cancel()
	if change(s.session); !s.node.leased() {
		return errTaken
	}
	return s.node.fleet.store(ctx, s.session)
}

// turnBegins records a prompt.
func (s *seat) turnBegins(p Prompt) error {
	return s.change(func(r *Session) {
		s.prompts++
		r.begun(p)
		r.Turn = Turn{Number: r.Turn.Number + 1, State: TurnRunning}
	})
}

// turnEnded records the answer to a prompt.
func (s *seat) turnEnded(m wire.Message) error {
	return s.change(func(r *Session) {
		if s.prompts--; s.prompts > 0 {
			return
		}
		r.Turn.State = TurnDone
		r.Turn.StopReason = string(wire.TextMember(codec.NewDecoder(nil), m.Result, "stopReason"))
	})
}

// claim makes a session the node's own.
func (s *seat) claim(id, cwd string) error {
	s.recording.Lock()
	defer s.recording.Unlock()
	if s.session != nil {
		if s.session.ID == id {
			return nil
		}
		return rpc.ErrInvalidRequest.WithMessagef("the agent has another session")
	}
	f := s.node.fleet
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), f.lease)
	defer cancel()
	r, err := f.session(ctx, s.principal, id)
	if err != nil {
		return err
	}
	if r == nil {
		return acp.SessionNotFound(acp.SessionID(id))
	}
	old := cmp.Or(r.Link, r.Last)
	if r.Node != "" {
		nodes, err := f.alive(ctx, nodePrefix)
		if err != nil {
			return err
		}
		if nodes[r.Node] {
			probe := frame{kind: frameTaken}
			m, err := f.nc.RequestWithContext(ctx, f.subject("up", r.Node, r.Link), probe.encode())
			if err != nil || string(m.Data) != string(replyNone) {
				return rpc.ErrInternal.WithMessagef("the session is at another node")
			}
		}
	}
	r.Node, r.Link, r.Last, r.Cwd = s.node.opts.Name, s.id, "", cmp.Or(cwd, r.Cwd)
	r.Epoch++
	if r.Turn.State == TurnRunning {
		r.Turn.State = TurnInterrupted
	}
	if err := f.store(ctx, r); err != nil {
		if errors.Is(err, errTaken) {
			return rpc.ErrInternal.WithMessagef("another node was faster")
		}
		return err
	}
	s.session = r
	if old == "" || old == s.id { // this agent has had it before
		return nil
	}
	// From here on, nobody reads what the previous node may still write.
	fence := nats.NewMsg(f.subject("log", old))
	fence.Data = (&frame{kind: frameFence}).encode()
	return f.publish(ctx, fence)
}

// release gives up the session.
func (s *seat) release() error {
	err := s.change(func(r *Session) {
		r.Node, r.Link, r.Last = "", "", r.Link
		if r.Turn.State == TurnRunning {
			r.Turn.State = TurnInterrupted
		}
	})
	s.recording.Lock()
	defer s.recording.Unlock()
	s.session = nil
	if errors.Is(err, errTaken) { // by another node, or deleted
		return nil
	}
	return err
}

// effect does what follows from an answer of the agent. It returns another result, or an error, if the client gets that
// instead.
func (s *seat) effect(c *call, m wire.Message) (json.RawMessage, error) {
	if c.method == acp.MethodPrompt {
		s.outcome(c, m)
	}
	if m.Failure != nil {
		s.mu.Lock()
		open := s.result != nil
		s.mu.Unlock()
		if !open && (c.method == acp.MethodLoadSession || c.method == acp.MethodResumeSession) {
			return nil, s.release()
		}
		return nil, nil
	}
	switch c.method {
	case acp.MethodInitialize:
		return initialized(m.Result), nil
	case acp.MethodNewSession:
		s.opened(m.Result)
		return nil, s.created(m, c.cwd)
	case acp.MethodLoadSession, acp.MethodResumeSession:
		s.opened(m.Result)
	case acp.MethodListSessions:
		return s.ownSessions(c, m.Result)
	case acp.MethodDeleteSession:
		return nil, s.deleted(c.session)
	case acp.MethodCloseSession:
		s.mu.Lock()
		s.draining = true
		s.mu.Unlock()
	}
	return nil, nil
}

// created records a new session.
func (s *seat) created(m wire.Message, cwd string) error {
	id := string(wire.TextMember(codec.NewDecoder(nil), m.Result, "sessionId"))
	if id == "" {
		return nil
	}
	f := s.node.fleet
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), f.lease)
	defer cancel()
	r := &Session{ID: id, Principal: s.principal, Cwd: cwd, Node: s.node.opts.Name, Link: s.id, Epoch: 1,
		Created: time.Now().UTC()}
	if err := f.store(ctx, r); err != nil {
		if errors.Is(err, errTaken) {
			return rpc.ErrInternal.WithMessagef("the agent has given a new session the id of another one")
		}
		return err
	}
	s.recording.Lock()
	defer s.recording.Unlock()
	s.session = r
	return nil
}

// deleted removes the record of a session.
func (s *seat) deleted(id string) error {
	f := s.node.fleet
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), f.lease)
	defer cancel()
	s.recording.Lock()
	defer s.recording.Unlock()
	r := s.session
	if r == nil || r.ID != id {
		var err error
		if r, err = f.session(ctx, s.principal, id); r == nil || err != nil {
			return err
		}
	} else {
		s.session = nil
	}
	return f.forget(ctx, r)
}

// errFurther reports that the agent is to be asked for another page.
var errFurther = errors.New("there is another page")

// maxPages is how many pages of an agent are read for a list.
const maxPages = 10_000

// ownSessions returns a list without the sessions of others. It has one page: the agent's cursors, and how many pages
// there are, tell something of others' sessions.
func (s *seat) ownSessions(c *call, result []byte) (json.RawMessage, error) {
	var page map[string]json.RawMessage
	var all []json.RawMessage
	if json.Unmarshal(result, &page) != nil || json.Unmarshal(page["sessions"], &all) != nil {
		return nil, rpc.ErrInternal.WithMessagef("the agent's list of sessions is malformed")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.node.fleet.lease)
	defer cancel()
	d := codec.NewDecoder(nil)
	for _, info := range all {
		r, err := s.node.fleet.session(ctx, s.principal, string(wire.TextMember(d, info, "sessionId")))
		if damaged, ok := errors.AsType[*recordError](err); ok {
			s.log.Error("natsacp: a session is not listed", "error", damaged)
		} else if err != nil {
			return nil, err
		}
		if r != nil {
			c.own = append(c.own, info)
		}
	}
	if next := page["nextCursor"]; next != nil && string(next) != "null" && s.isCurrent(c.gen) {
		if c.pages++; c.pages >= maxPages {
			return nil, rpc.ErrInternal.WithMessagef("the agent's list of sessions does not end")
		}
		if c.params == nil {
			c.params = map[string]json.RawMessage{}
		}
		c.params["cursor"] = next
		return nil, errFurther
	}
	delete(page, "nextCursor")
	var err error
	if page["sessions"], err = json.Marshal(append([]json.RawMessage{}, c.own...)); err != nil {
		return nil, err
	}
	return json.Marshal(page)
}

// initialized returns the result of initialize for clients, or nil if it is not one. It has no capability to fork
// sessions: both would have one agent.
func initialized(result []byte) json.RawMessage {
	var r, agent, session map[string]json.RawMessage
	if json.Unmarshal(result, &r) != nil || r == nil {
		return nil
	}
	// What was read can be written.
	if json.Unmarshal(r["agentCapabilities"], &agent) == nil &&
		json.Unmarshal(agent["sessionCapabilities"], &session) == nil && session["fork"] != nil {
		delete(session, "fork")
		agent["sessionCapabilities"], _ = json.Marshal(session)
		r["agentCapabilities"], _ = json.Marshal(agent)
	}
	honours(r)
	text, _ := json.Marshal(r)
	return text
}
