package natsacp

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/wire"
)

// before does what must be done before the agent gets a request. If it returns an answer, the agent does not get it.
func (s *seat) before(c call, m wire.Message) (answer []byte, err error) {
	if c.method == acp.MethodListSessions && member(m.Params, "cursor") != "" {
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
		if answer != nil && member(m.Params, "cwd") != "" { // the session is open, and another client has attached
			return answer, nil
		}
	case acp.MethodLoadSession:
	case acp.MethodPrompt:
		if answer, err := s.known(c); answer != nil || err != nil {
			return answer, err
		}
		return nil, s.record.turnBegins(c.prompt)
	default:
		return nil, nil
	}
	return nil, s.record.claim(c.session, member(m.Params, "cwd"))
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
			return nil, s.record.release()
		}
		return nil, nil
	}
	switch c.method {
	case acp.MethodInitialize:
		return initialized(m.Result), nil
	case acp.MethodNewSession:
		s.opened(m.Result)
		if id := member(m.Result, "sessionId"); id != "" {
			return nil, s.record.create(id, c.cwd)
		}
	case acp.MethodLoadSession, acp.MethodResumeSession:
		s.opened(m.Result)
	case acp.MethodListSessions:
		return s.ownSessions(c, m.Result)
	case acp.MethodDeleteSession:
		return nil, s.record.delete(c.session)
	case acp.MethodCloseSession:
		s.drain() // when this request is answered
	}
	return nil, nil
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
	ctx, cancel := s.record.timeout()
	defer cancel()
	for _, info := range all {
		r, err := s.record.find(ctx, member(info, "sessionId"))
		if damaged, ok := errors.AsType[*recordError](err); ok {
			s.log.Error("natsacp: a session is not listed", "error", damaged)
		} else if err != nil {
			return nil, err
		}
		if r != nil {
			c.own = append(c.own, info)
		}
	}
	s.mu.Lock()
	current := c.gen == s.gen
	s.mu.Unlock()
	if next := page["nextCursor"]; next != nil && string(next) != "null" && current {
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
// sessions, because both would have one agent; and it says that prompts with a known key are not run again.
func initialized(result []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(result))
	d.UseNumber()
	var r map[string]any
	if d.Decode(&r) != nil || r == nil {
		return nil
	}
	agent, _ := r["agentCapabilities"].(map[string]any)
	session, _ := agent["sessionCapabilities"].(map[string]any)
	delete(session, "fork")
	meta, ok := r["_meta"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		r["_meta"] = meta
	}
	meta[translate.MetaIdempotencyKey] = struct{}{}
	text, _ := json.Marshal(r) // what was read can be written
	return text
}
