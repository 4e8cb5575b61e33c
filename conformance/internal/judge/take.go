// How messages change the history.

package judge

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
	"github.com/acpgo/sdk/internal/plain"
)

// take adds a message to the history, after the rules have judged it.
func (h *History) take(e *Event) {
	h.asked = nil
	receiver := e.Sender().Peer()
	switch e.Kind {
	case finding.Notification:
		if e.Method == MethodUpdate { // there are too many to copy each
			h.Notified[receiver] = nil
		} else {
			h.Notified[receiver] = e.evidence()
		}
	case finding.Request:
		// Its envelope may be so malformed that the answer has no id.
		odd := e.ID == "null" || e.key == "array" || e.key == "object" || e.key == "boolean"
		h.Unreadable[receiver] = h.Unreadable[receiver] || odd
		h.OddIDs[receiver] = h.OddIDs[receiver] || odd ||
			slices.ContainsFunc(e.findings[:e.refused], func(f finding.Finding) bool { return f.Definition == finding.Envelope })
	case "":
		h.Unreadable[receiver] = true
		h.Garbled[receiver] = h.Garbled[receiver] || bytes.IndexByte(e.line, '{') >= 0
		lines := h.Unread[receiver]
		lines.Count++
		if lines.At == nil {
			lines.At, lines.JSON, lines.Deep = e.evidence(), json.Valid(e.line), deep(e.line)
		}
		h.Unread[receiver] = lines
		h.OddIDs[receiver] = h.OddIDs[receiver] || !utf8.Valid(e.line) // some parsers accept it as JSON
	}
	for _, f := range e.findings[:e.refused] {
		if f.Definition == finding.Envelope && f.Rule != schema.Custom && f.Level < finding.Should {
			h.Unreadable[receiver], h.Garbled[receiver] = true, true
		}
	}
	switch e.Kind {
	case finding.Request:
		h.takeRequest(e)
	case finding.Notification:
		h.takeNotification(e)
	case finding.Response, finding.ErrorReply:
		h.takeAnswer(e)
	}
}

// noteSession returns the session that a message names, and adds it if it is new.
func (h *History) noteSession(e *Event, id string) *Session {
	if id == "" {
		return nil
	}
	s := h.Session(id)
	if s != nil {
		s.Asked = s.Asked || e.Kind != finding.Response && e.direction == finding.ToAgent
		return s
	}
	s = &Session{
		ID: Short(id), Named: e.evidence(),
		Settable: NewTable[bool](2 * maxNames), Plans: NewTable[*AgentPlan](maxAgentPlans),
		Asked: e.Kind != finding.Response && e.direction == finding.ToAgent,
	}
	h.Sessions.put(id, s)
	return s
}

// mayGiveSession reports whether the answer to a request of the client may introduce a session. That of session/new
// does, and that of an extension may.
func mayGiveSession(r *Request) bool {
	switch r.Method {
	case MethodNew, "session/fork":
		return true
	}
	return r.direction == finding.ToAgent && strings.HasPrefix(r.Method, "_")
}

func (h *History) takeRequest(e *Event) {
	r := &Request{key: requestKey{e.direction, e.key}, At: e.evidence(), direction: e.direction,
		Method: finding.Clip(e.Method)}
	r.session = h.noteSession(e, e.Text("sessionId"))
	h.asked = r
	if !e.remembered { // there are too many requests
		r.session.noteLost()
		return
	}
	r.Fits = e.Sound("")
	for _, f := range e.findings[e.refused:] {
		r.Unsupported = r.Unsupported || f.Rule == "CFG-16" || f.Rule == "MOD-1"
	}
	if mayGiveSession(r) {
		h.Giving++
	}
	if size := len(e.line); size <= maxKeptLine && h.kept+size <= maxKept {
		r.Params, r.bytes = e.Content, size
		h.kept += size
	}
	h.open[r.key] = r
	if e.direction == finding.ToClient {
		r.Turn = r.session.turn()
	}
	switch e.Method {
	case schema.MethodInitialize:
		if h.Initialized == nil && e.direction == finding.ToAgent {
			h.Initialize = r.At
			version, _ := e.Content.Integer("protocolVersion")
			h.Requested, h.InitializeFits = int(version), e.refused == 0
			h.Client.take(e, "clientCapabilities")
		}
	case MethodLoad, MethodResume:
		if s := r.session; s != nil {
			s.SetupNew, s.Replayed, s.Loaded, s.replay = s.Usable == nil || s.Closed != nil, false, nil, nil
			s.latest, s.newest = nil, 0
			s.Usable, s.By, s.Setup, s.Last = r.At, r.Method, r, nil
			s.Closing, s.Closed, s.Deleted = false, nil, nil
			if e.InForce == 1 {
				s.replays++ // in version 2 messages keep their ids
			}
		}
	case MethodPrompt:
		r.session.beginTurn(e, r)
	case MethodSetMode, MethodSetOption:
		if r.session != nil {
			r.session.Setting++
		}
	case MethodClose, MethodDelete:
		if r.session != nil {
			r.session.Closing = true
			for _, t := range r.session.Turns {
				t.Closing = true
			}
		}
	case MethodPermission:
		r.session.ask(e, r)
		if c := h.noteToolCall(e, r.session, e.Text("toolCall", "toolCallId")); c != nil {
			c.noteDetails(e, e.Content.Member("toolCall"))
			c.Asking, r.asks = r.At, c
		}
	case "terminal/kill", "terminal/release":
		if t := h.Terminal(e.Text("terminalId")); t != nil {
			if e.Method == "terminal/kill" {
				t.Killed = r.At
			} else {
				t.Released, t.ReleaseRefused = r.At, false
			}
		}
	case MethodElicit:
		r.session.ask(e, r)
		if id := e.Text("elicitationId"); id != "" && e.direction == finding.ToClient {
			r.elicitation = &Elicitation{At: r.At}
			h.Elicitations.put(id, r.elicitation)
		}
	}
}

// ask records a question that the user must answer, if the session is reported as running.
func (s *Session) ask(e *Event, r *Request) {
	if s != nil && e.InForce == 2 && s.State == stateRunning && e.Text("mode") != "url" {
		s.Question, s.Answered = r, nil
		r.Call = Short(e.Text("subject", "toolCall", "toolCallId"))
	}
}

// take reads the capabilities of one side, with the names of version 1 or version 2.
func (a *Abilities) take(e *Event, capabilities string) {
	if !e.Has(capabilities) && e.Has("capabilities") {
		capabilities = "capabilities"
	}
	a.At, a.names, a.extensions = e.evidence(), map[string]bool{}, map[string]bool{}
	a.add(e.Content.Member(capabilities), e.refuses, schema.Pointer("", capabilities), "", 1)
}

// refuses reports whether the schema refused the value at a JSON pointer.
func (e *Event) refuses(pointer string) bool {
	return slices.ContainsFunc(e.findings[:e.refused], func(f finding.Finding) bool {
		return f.Pointer == pointer && f.Definition != finding.Envelope && f.Rule != schema.Custom
	})
}

// noteLost records that the history of the session is incomplete.
func (s *Session) noteLost() {
	if s != nil {
		s.Lost = true
	}
}

// beginTurn records a prompt.
func (s *Session) beginTurn(e *Event, r *Request) {
	if s == nil {
		return
	}
	s.Loaded = nil
	if e.InForce == 1 && len(s.Turns) == 0 {
		s.works++
	}
	if len(s.Turns) >= maxTurns {
		s.Lost = true
		return
	}
	r.Turn = &Turn{Prompt: r, Before: s.idle, Late: s.Closing, Closing: s.Closing}
	if s.idle = nil; e.InForce == 1 {
		r.Turn.said = s.prompt(e.Content.Member("prompt"))
	}
	s.Turns = append(s.Turns, r.Turn)
}

func (h *History) takeNotification(e *Event) {
	switch e.Method {
	case methodCancelCall:
		h.noteCancelRequest(e)
	case "elicitation/complete":
		if el, ok := h.Elicitations.Get(e.Text("elicitationId")); ok {
			el.Completed = e.evidence()
		}
	}
	id := e.Text("sessionId")
	if id == "" {
		return
	}
	s := h.noteSession(e, id)
	switch {
	case e.Method == methodCancel && e.direction == finding.ToAgent:
		if len(s.Turns) == 0 {
			s.idle = e.evidence()
		}
		for _, t := range s.Turns {
			if t.Cancelled == nil {
				t.Cancelled = e.evidence()
				if len(h.cancelled) < maxTurns {
					h.cancelled = append(h.cancelled, t)
				}
			}
		}
		if e.InForce == 2 && Working(s.State) && s.Halted == nil && len(h.halting) < maxTurns {
			s.Halted = e.evidence()
			h.halting = append(h.halting, s)
		}
	case e.Method == MethodUpdate && e.direction == finding.ToClient:
		h.takeUpdate(e, s)
	}
}

func (h *History) takeUpdate(e *Event, s *Session) {
	update := e.Content.Member("update")
	s.Question = nil
	switch e.Update {
	case "subagent_update": // the subagent's own updates follow
		if child := h.noteSession(e, update.Text("sessionId")); child != nil {
			child.Asked = true
		}
	case "user_message_chunk", "user_message":
		s.Replayed = true
		if s.Setup != nil {
			s.replay.add(byUser, update.Member("content"))
		}
		s.noteMessage(e, update.Text("messageId"))
	case "agent_message_chunk", "agent_message":
		if s.Setup != nil {
			s.replay.add(byAgent, update.Member("content"))
		} else {
			s.speak(func(t *said) { t.answer = t.answer.then(textOf(update.Text("content", "text"))) })
		}
		s.noteMessage(e, update.Text("messageId"))
	case "agent_thought_chunk", "agent_thought":
		s.noteMessage(e, update.Text("messageId"))
	case "tool_call", "tool_call_update":
		c := h.noteToolCall(e, s, update.Text("toolCallId"))
		if c == nil {
			return
		}
		if e.Update == "tool_call" {
			c.Announced = e.evidence()
			if id := callID(c.ID); s.Setup != nil {
				s.replay.put(chunk{aCall, id})
			} else {
				s.speak(func(t *said) {
					if len(t.calls) < maxTurns {
						t.calls = append(t.calls, id)
					}
				})
			}
		}
		c.noteDetails(e, update)
	case "state_update":
		s.noteState(e, update)
	case "terminal_update":
		key := TerminalKey(s, update.Text("terminalId"))
		if h.Terminal(key) == nil {
			h.Terminals.put(key, &Terminal{ID: key, Session: s, At: e.evidence(), Cwd: Short(update.Text("cwd"))})
		}
	case "plan":
		s.Plans.put("", NewAgentPlan(e, update))
	case "plan_update":
		if p := update.Member("plan"); p.Member("entries").IsArray() {
			s.Plans.put(p.Text("planId"), NewAgentPlan(e, p))
		}
	case "plan_removed":
		s.Plans.drop(update.Text("planId"))
	case "current_mode_update":
		s.Touched = e.number
	case "config_option_update":
		s.Touched = e.number
		s.noteOptions(e, update)
	case "available_commands_update":
		s.Commands = newOffer(e, update.Member("availableCommands"), "name", nil)
	}
}

// noteState records a state of the session.
func (s *Session) noteState(e *Event, update *schema.Value) {
	if Working(s.State) {
		s.Touched = e.number
	} else if Working(update.Text("state")) && s.Setup == nil {
		s.works++
	}
	s.State, s.Stated, s.detached = Short(update.Text("state")), e.evidence(), update.Len("background") > 0
	if update.Given("background") {
		s.Background = s.Stated
	}
	switch stop := update.Text("stopReason"); {
	case s.State != StateIdle:
		s.Stop = ""
	case stop != "":
		s.Stop = finding.Clip(stop)
	}
	if s.State != StateIdle {
		return
	}
	s.Halted, s.Heeded = nil, nil
	var rest []Accepted
	for _, a := range s.Accepted {
		if a.During {
			a.During = false
			rest = append(rest, a)
		}
	}
	s.Accepted = rest
}

// noteMessage records an update of a message.
func (s *Session) noteMessage(e *Event, id string) {
	if id == "" {
		return
	}
	m := e.MessageOf(s, id, e.Update)
	if m == nil {
		m = &Message{At: e.evidence(), user: strings.HasPrefix(e.Update, "user_"), begun: 2 * s.works}
		if !s.working(e.InForce) {
			m.begun++
		}
		e.Messages.put(messageKey(s, id, e.Update), m)
	} else if s.Setup != nil {
		if s.newest = max(s.newest, m.begun); s.latest == nil || s.latest.At.Number < m.At.Number {
			s.latest = m
		}
	}
	m.Update, m.worked, m.replay = e.evidence(), -1, s.Setup
	if s.Setup != nil || s.working(e.InForce) {
		m.worked = s.works
	}
}

// noteToolCall returns the tool call that a message names, and adds it if it is new.
func (h *History) noteToolCall(e *Event, s *Session, id string) *ToolCall {
	if s == nil || id == "" {
		return nil
	}
	if c := h.Call(s, id); c != nil {
		return c
	}
	c := &ToolCall{session: s, ID: Short(id), At: e.evidence(), turn: s.turn()}
	h.Calls.put(toolCallKey(s.ID, id), c)
	if c.turn != nil && len(c.turn.Calls) < maxNames {
		c.turn.Calls = append(c.turn.Calls, c)
	}
	return c
}

// noteDetails records the members of a tool call that a message has.
func (c *ToolCall) noteDetails(e *Event, call *schema.Value) {
	if status := call.Text("status"); status != "" {
		c.Ran = c.Ran || status == "in_progress"
		c.Status = Short(status)
		c.Final = nil
		if finalStatus(status) {
			c.Final = e.evidence()
		}
	}
	if id := call.Text("_meta", plain.TerminalInfoKey, "terminal_id"); id != "" && len(c.own) < maxNames &&
		!slices.Contains(c.own, Short(id)) {
		c.own = append(c.own, Short(id))
	}
	if !call.Member("content").IsArray() {
		return
	}
	c.terminals = nil
	for _, block := range call.Items("content") {
		if block.Text("type") == "terminal" && len(c.terminals) < maxNames {
			c.terminals = append(c.terminals, Short(block.Text("terminalId")))
		}
	}
}

// finalStatus reports whether a tool call with this status has ended.
func finalStatus(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

func (h *History) takeAnswer(e *Event) {
	r := e.Request
	if r == nil {
		return
	}
	delete(h.open, r.key)
	if s := r.session; s != nil && s.Question == r {
		s.Answered = e.evidence()
	}
	h.read[e.Sender()] = max(h.read[e.Sender()], r.At.Number)
	if mayGiveSession(r) {
		h.Giving--
	}
	h.kept -= r.bytes
	defer func() { r.Params = nil }() // turns and tool calls keep the request
	h.noteObeyed(e)
	switch r.Method {
	case MethodPrompt:
		r.session.endTurn(e)
	case MethodPermission:
		h.notePermission(e)
	case MethodClose, MethodDelete:
		if r.session != nil && e.Kind == finding.ErrorReply {
			r.session.Closing = false
		}
	case MethodElicit:
		if r.elicitation != nil {
			r.elicitation.Over = e.Kind == finding.ErrorReply || e.Text("action") != "accept"
		}
		if r.Turn != nil && e.Text("action") == "cancel" {
			r.Turn.Dismissed = true
		}
	case MethodSetMode, MethodSetOption:
		if s := r.session; s != nil {
			s.Setting--
			s.Touched = e.number
		}
	}
	if e.Kind == finding.ErrorReply {
		if t := h.Terminal(r.Params.Text("terminalId")); t != nil && r.Method == MethodTerminalRelease {
			t.ReleaseRefused = true
		}
		if code, _ := e.Content.Integer("code"); code == CodeAuth && r.Method == MethodNew {
			h.AuthNeeded = e.evidence()
		}
		if s := r.session; s != nil && s.Setup == r {
			s.Setup = nil
			if s.SetupNew {
				s.Usable = nil
			}
		}
		return
	}
	switch r.Method {
	case schema.MethodInitialize:
		if h.Initialized == nil && e.direction == finding.ToClient {
			h.Initialized = e.evidence()
			version, _ := e.Content.Integer("protocolVersion")
			h.Version = int(version)
			h.Agent.take(e, "agentCapabilities")
			for _, m := range e.Content.Items("authMethods") {
				id := m.Text("id")
				if id == "" {
					id = m.Text("methodId") // in version 2
				}
				if id != "" {
					h.AuthMethods.put(id, &AuthMethod{e.evidence(), Short(m.Text("type"))})
				}
			}
		}
	case "authenticate", "auth/login":
		h.LoggedIn, h.LoggedOut = e.evidence(), nil
	case "logout", "auth/logout":
		h.LoggedIn, h.LoggedOut = nil, e.evidence()
	case MethodSetOption:
		if r.session != nil {
			r.session.noteOptions(e, e.Content)
		}
	case "terminal/create":
		if id := e.Content.Text("terminalId"); id != "" && e.direction == finding.ToAgent {
			limit, ok := r.Params.Integer("outputByteLimit")
			if !ok {
				limit = -1
			}
			h.Terminals.put(id, &Terminal{ID: Short(id), Session: r.session, At: e.evidence(), Limit: limit})
		}
	case "terminal/wait_for_exit", "terminal/output":
		if t := h.Terminal(r.Params.Text("terminalId")); t != nil && t.Exited == nil &&
			(r.Method == "terminal/wait_for_exit" || e.Content.Given("exitStatus")) {
			t.Exited = e.evidence()
		}
	case "terminal/release":
		if t := h.Terminal(r.Params.Text("terminalId")); t != nil {
			t.Freed = e.evidence()
		}
	case MethodClose:
		if r.session != nil {
			r.session.Closed = e.evidence()
		}
	case MethodDelete:
		if r.session != nil {
			r.session.Deleted = e.evidence()
		}
	}
	if s := r.session; s != nil && s.Setup == r {
		s.Setup = nil
		h.noteCwd(e, s)
		if r.Method == MethodLoad {
			s.Loaded = e.evidence()
		}
	}
	if e.direction != finding.ToClient {
		return
	}
	s := r.session
	if id := e.Content.Text("sessionId"); id != "" && (s == nil || mayGiveSession(r)) {
		s = h.noteSession(e, id)
		s.Usable, s.By = e.evidence(), r.Method
		if s.Made = r.Method == MethodNew; s.Made {
			h.noteCwd(e, s)
		}
		s.Closing, s.Closed, s.Deleted = false, nil, nil
	}
	switch r.Method {
	case MethodList:
		for _, listed := range e.Content.Items("sessions") {
			h.Listed.put(listed.Text("sessionId"), PathKey(listed.Text("cwd")))
		}
		if cursor := e.Content.Member("nextCursor"); cursor.IsText() {
			h.Cursors.put(cursor.Text(), e.evidence())
		} else {
			h.ListEnded = e.evidence()
		}
	case MethodNew, MethodLoad, MethodResume:
		if s != nil {
			s.noteOffers(e)
		}
	}
}

// noteCwd records the working directory of a session that was opened.
func (h *History) noteCwd(e *Event, s *Session) {
	cwd := PathKey(e.Request.Params.Text("cwd"))
	before := s.Cwd
	if listed, ok := h.Listed.Get(s.ID); ok && before == "" {
		before = listed
	}
	s.Cwd = cwd
	if s.Moved = nil; cwd != "" && before != "" && cwd != before {
		s.OldCwd, s.Moved = before, e.evidence()
	}
}

// noteCancelRequest records a $/cancel_request.
func (h *History) noteCancelRequest(e *Event) {
	id := e.Content.Member("requestId")
	if r := h.open[requestKey{e.direction, schema.IDKey(id)}]; r != nil && r.Cancelled == nil {
		r.Cancelled = e.evidence()
	}
}

// notePermission records a client's answer to a permission request.
func (h *History) notePermission(e *Event) {
	if t := e.Request.Turn; t != nil && e.Text("outcome", "outcome") == "cancelled" {
		t.Dismissed = true
	}
	c := e.Request.asks
	if c == nil {
		return
	}
	c.Asking, c.Decided = nil, true
	for _, option := range e.Request.Params.Items("options") {
		if option.Text("optionId") == e.Text("outcome", "optionId") && strings.HasPrefix(option.Text("kind"), "allow") {
			c.Allowed = e.evidence()
		}
	}
}

// noteObeyed records which cancellations the agent must have read when it answers a request, since it reads the
// messages of all sessions in order.
func (h *History) noteObeyed(e *Event) {
	r := e.Request
	h.cancelled = slices.DeleteFunc(h.cancelled, func(t *Turn) bool {
		read := r.direction == finding.ToAgent && r.At.Number > t.Cancelled.Number
		answered := r.Method == MethodPermission && r.Turn == t && r.At.Number < t.Cancelled.Number
		if read || answered {
			t.Obeyed = e.evidence()
		}
		return t.Obeyed != nil || r == t.Prompt
	})
	h.halting = slices.DeleteFunc(h.halting, func(s *Session) bool {
		if s.Halted != nil && r.direction == finding.ToAgent && r.At.Number > s.Halted.Number {
			s.Heeded = e.evidence()
		}
		return s.Halted == nil || s.Heeded != nil
	})
}

// endTurn records the answer to a prompt.
func (s *Session) endTurn(e *Event) {
	if s == nil {
		return
	}
	for i, t := range s.Turns {
		if t == e.Request.Turn {
			t.Ended = e.evidence()
			s.Last = t
			s.endTalk(t.said, e)
			s.Touched = e.number
			if e.Kind == finding.Response && e.Text("stopReason") != "refusal" { // a refused prompt is not in the conversation
				s.Prompted = t.Ended
			}
			if id := e.Text("messageId"); id != "" && len(s.Accepted) < maxTurns {
				s.Accepted = append(s.Accepted, Accepted{Short(id), t.Ended, Working(s.State)})
			}
			s.Turns = append(s.Turns[:i:i], s.Turns[i+1:]...)
			break
		}
	}
}

// everyDepth is the nesting depth that every parser accepts.
const everyDepth = 64

// deep reports whether a line is nested deeper than everyDepth.
func deep(line []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > everyDepth {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}
