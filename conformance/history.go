// The history of a connection: what rules must remember of earlier messages. It is filled here alone; rules only read it.
// Each table has a bound; what does not fit is forgotten, the oldest first, and rules are silent about it.

package conformance

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Methods that the history knows by name.
const (
	methodUpdate     = "session/update"
	methodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodClose      = "session/close"
	methodDelete     = "session/delete"
	methodList       = "session/list"
	methodSetMode    = "session/set_mode"
	methodSetOption  = "session/set_config_option"
	methodPermission = "session/request_permission"
	methodElicit     = "elicitation/create"
	methodCancelCall = "$/cancel_request"

	methodElicitComplete  = "elicitation/complete"
	methodReadFile        = "fs/read_text_file"
	methodWriteFile       = "fs/write_text_file"
	methodTerminalCreate  = "terminal/create"
	methodTerminalOutput  = "terminal/output"
	methodTerminalWait    = "terminal/wait_for_exit"
	methodTerminalKill    = "terminal/kill"
	methodTerminalRelease = "terminal/release"
)

// codeAuth is the code of the error that asks for a login.
const codeAuth = -32000

// The bounds of the tables of one connection.
const (
	maxSessions     = 1 << 9
	maxMessages     = 1 << 12
	maxListed       = 1 << 13
	maxTurns        = 1 << 6 // of one session, in flight
	maxCalls        = 1 << 13
	maxTerminals    = 1 << 12
	maxElicitations = 1 << 10
	maxNames        = 1 << 9 // modes, options, commands, authentication methods, capabilities: of one list
	maxAgentPlans   = 1 << 2 // of one session
	maxPlanEntries  = 1 << 7
	maxKept         = 1 << 23 // bytes of the lines whose params are kept
	maxKeptLine     = 1 << 16
)

// history is what is remembered of a connection.
type history struct {
	// initialize is the first initialize request, initialized its answer with a result.
	initialize, initialized *Evidence
	requested, version      int  // the version of the request, and that of the answer; 0 before
	initializeFits          bool // the schema has nothing to say about the request
	client, agent           abilities
	inForce                 int                // the version whose rules apply to the message
	authMethods             table[*authMethod] // by id

	loggedIn, loggedOut *Evidence // the last successful authenticate, if no logout followed; the last logout, if no authenticate did
	authNeeded          *Evidence // session/new was answered that authentication is required

	notified   map[Side]*Evidence // the last notification to each side; of a session/update only that there was one
	unreadable map[Side]bool      // the side got something that is no proper message
	garbled    map[Side]bool      // and it may have been meant as one
	oddIDs     map[Side]bool      // the side got something that is not in unread and that it may answer without an id
	unread     map[Side]unread    // lines that are not messages

	open         map[requestKey]*request // all requests in flight
	read         map[Side]int            // the number of the last request that the side has answered
	kept         int                     // bytes of the lines whose params are kept
	asked        *request                // by the last message
	cancelled    []*turn                 // in flight and cancelled, which the agent may not have read
	halting      []*session              // likewise of version 2, whose work was cancelled
	sessions     table[*session]
	listed       table[*Evidence] // by id: the sessions that session/list told of
	cursors      table[*Evidence] // those that session/list gave out
	listEnded    *Evidence        // the last answer to session/list without a cursor
	giving       int              // requests in flight whose answer may give a session
	messages     table[*Evidence] // the first chunk of each, by messageKey
	calls        table[*toolCall] // by toolCallKey
	terminals    table[*terminal] // by id
	elicitations table[*elicitation]
	closedBy     Side // who closed the connection; 0 if it is not known
}

func newHistory() history {
	return history{
		authMethods:  newTable[*authMethod](maxNames),
		notified:     map[Side]*Evidence{},
		unreadable:   map[Side]bool{},
		garbled:      map[Side]bool{},
		oddIDs:       map[Side]bool{},
		unread:       map[Side]unread{},
		open:         map[requestKey]*request{},
		read:         map[Side]int{},
		sessions:     newTable[*session](maxSessions),
		listed:       newTable[*Evidence](maxListed),
		cursors:      newTable[*Evidence](maxNames),
		messages:     newTable[*Evidence](maxMessages),
		calls:        newTable[*toolCall](maxCalls),
		terminals:    newTable[*terminal](maxTerminals),
		elicitations: newTable[*elicitation](maxElicitations),
	}
}

// unread are the lines that a side got and that are not messages.
type unread struct {
	at    *Evidence // the first one
	json  bool      // it is JSON
	deep  bool      // it is nested deeper than some parsers go
	count int
}

// abilities are the capabilities of one side.
type abilities struct {
	at    *Evidence       // the message that states them; nil before
	names map[string]bool // "fs.readTextFile": those that are true or an object
	more  bool            // there were too many
	meta  bool            // there is something in a _meta of them
}

// can reports whether the side has stated a capability, such as "sessionCapabilities.list". Before the side has said
// anything, and when it has said too much, it can everything.
func (a *abilities) can(capability string) bool {
	return a.at == nil || a.more || a.names[capability]
}

// learn takes the capabilities from an object. A value that the schema refused counts as left out.
func (a *abilities) learn(v value, refused func(pointer string) bool, where, prefix string, depth int) {
	const deepest = 4
	for name, below := range membersOf(v) {
		at := pointer(where, name)
		a.meta = a.meta || name == "_meta" && length(below) > 0
		if name == "_meta" || len(name) > maxText || refused(at) || !(isObject(below) || truth(below)) {
			continue
		}
		if len(a.names) >= maxNames {
			a.more = true
			return
		}
		a.names[strings.Clone(prefix+name)] = true
		if depth < deepest {
			a.learn(below, refused, at, prefix+name+".", depth+1)
		}
	}
}

// authMethod is a way to authenticate that the agent offers.
type authMethod struct {
	at   *Evidence
	kind string // "" is an agent's
}

// requestKey names a request in flight: the way that it goes, and the idKey of its id.
type requestKey struct {
	direction Direction
	id        string
}

// request is a request in flight.
type request struct {
	key         requestKey
	at          *Evidence
	time        time.Time
	direction   Direction
	method      string
	params      value // nil if they were too large to keep
	session     *session
	turn        *turn        // the one in which the agent asked, if it was the only one of its session
	cancelled   *Evidence    // the $/cancel_request for it
	elicitation *elicitation // of URL mode, that it begins
	fits        bool         // the schema has nothing to say about it
	unsupported bool         // it names a mode, an option or a value that the session never had
	bytes       int          // what it adds to history.kept
}

// session is a session that some message named.
type session struct {
	id    string
	named *Evidence // the first message that names it
	asked bool      // the client has named it, or the agent as that of a subagent
	// given is the message that made it usable: the answer to session/new, or the request of session/load or
	// session/resume, whose answer may still be awaited; nil if there was none.
	given *Evidence
	by    string   // the method of that
	setup *request // session/load or session/resume, while in flight
	// setupNew says that this connection did not use the session before that, or had closed it; replayed that a user's message came since.
	setupNew, replayed bool
	loaded             *Evidence // the answer to session/load, until the next prompt
	prompted           *Evidence // the answer to a prompt that ended a turn and was not refused

	turns []*turn // in flight, the oldest first
	lost  bool    // there were more turns than maxTurns
	last  *turn   // the one that ended last

	replays int // how often its conversation was told anew
	// Of version 2:
	state      string     // the last that was reported, "" before
	stop       string     // its stop reason
	stated     *Evidence  // the update that reported it
	background *Evidence  // a state that reported background work
	accepted   []accepted // the prompts that await the end of their work
	halted     *Evidence  // the session/cancel of the work that goes on
	heeded     *Evidence  // an answer after which the agent has read it
	made       bool       // by session/new, on this connection

	idle    *Evidence // a session/cancel while no turn was in flight, until the next prompt
	closing bool      // session/close or session/delete was sent
	closed  *Evidence // the answer to session/close
	deleted *Evidence // the answer to session/delete

	modes    *offer // nil before any were offered
	options  *offer // configuration options, with their values
	commands *offer
	// settable has every configuration option that was ever offered, with its types and values (see couldBe): a client may
	// not yet have seen that they have changed.
	settable table[bool]
	setting  int               // requests in flight that set an option or the mode
	touched  int               // number of the last message that may have changed options: an update, an answer, the end of a turn
	plans    table[*agentPlan] // by their id, "" in updates that have none
}

// agentPlan is the last state of a plan.
type agentPlan struct {
	at      *Evidence
	entries map[string]string // the status of each entry, by its content
	more    bool              // there were too many
}

// accepted is a prompt of version 2 that is in the conversation.
type accepted struct {
	id     string // of the message
	at     *Evidence
	during bool // other work may have been going on
}

// turn is a prompt and all that belongs to it.
type turn struct {
	prompt    *request
	before    *Evidence // session.idle when it began
	cancelled *Evidence // the first session/cancel while it was in flight
	// obeyed is a message after which the agent has read the cancellation: its answer to a request that was sent later, or
	// the client's later answer to a permission that the turn was waiting for.
	obeyed   *Evidence
	declined bool // a permission was answered with the outcome cancelled
	ended    *Evidence
	calls    []*toolCall // announced in it
}

// offer is a list of things that the agent offers by id.
type offer struct {
	at     *Evidence
	values int // of all options
	items  map[string]*offered
	more   bool // there were too many
}

// offered is one thing of an offer: a mode, a configuration option or a command.
type offered struct {
	kind    string          // the type of a configuration option
	current string          // the value of a select
	values  map[string]bool // those that a select has; nil of others, and where there were too many
}

// toolCall is a tool call of a session.
type toolCall struct {
	session   *session
	id        string
	at        *Evidence // what announced it
	by        string    // "tool_call", "tool_call_update" or the method that named it first
	allowed   *Evidence // the permission for it
	ran       bool      // it was in_progress
	announced *Evidence // the last tool_call
	status    string    // the last one, "" if none was given
	final     *Evidence // what completed or failed it; nil if it runs
	turn      *turn     // in which it was announced
	terminals []string  // the ids of those that it shows
}

// terminal is a terminal that the client has made.
type terminal struct {
	id       string
	session  *session
	at       *Evidence // the answer that names it
	limit    int64     // of the output, in bytes; -1 if there is none
	killed   *Evidence // the request
	released *Evidence // the request
	held     bool      // and it was refused
	cwd      string    // of version 2
	freed    *Evidence // the answer to it
	exited   *Evidence // what reported its exit
}

// elicitation is one of URL mode.
type elicitation struct {
	id        string
	at        *Evidence // the request
	over      bool      // declined, cancelled or refused
	completed *Evidence
}

// session finds a session that some message named.
func (h *history) session(id string) *session {
	s, _ := h.sessions.get(id)
	return s
}

// call finds a tool call.
func (h *history) call(s *session, id string) *toolCall {
	if s == nil {
		return nil
	}
	c, _ := h.calls.get(toolCallKey(s.id, id))
	return c
}

func toolCallKey(session, id string) string { return short(session) + "\x00" + id }

// turn is the only turn in flight, nil if there is none or more than one.
func (s *session) turn() *turn {
	if s == nil || len(s.turns) != 1 || s.lost {
		return nil
	}
	return s.turns[0]
}

// take notes a message, after the rules have judged it.
func (h *history) take(e *event) {
	h.asked = nil
	receiver := e.sender().Peer()
	switch e.kind {
	case Notification:
		if e.method == methodUpdate { // too many to keep what they look like
			h.notified[receiver] = nil
		} else {
			h.notified[receiver] = e.evidence()
		}
	case Request:
		// Its envelope may be wrong in a way that leaves the answer without an id.
		odd := e.id == "null" || e.key == "array" || e.key == "object" || e.key == "boolean"
		h.unreadable[receiver] = h.unreadable[receiver] || odd
		h.oddIDs[receiver] = h.oddIDs[receiver] || odd || slices.ContainsFunc(e.findings[:e.refused], func(f Finding) bool { return f.Definition == Envelope })
	case "":
		h.unreadable[receiver] = true
		h.garbled[receiver] = h.garbled[receiver] || bytes.IndexByte(e.line, '{') >= 0
		lines := h.unread[receiver]
		lines.count++
		if lines.at == nil {
			lines.at, lines.json, lines.deep = e.evidence(), json.Valid(e.line), deep(e.line)
		}
		h.unread[receiver] = lines
		h.oddIDs[receiver] = h.oddIDs[receiver] || !utf8.Valid(e.line) // read as JSON by some
	}
	for _, f := range e.findings[:e.refused] {
		if f.Definition == Envelope && f.Rule != custom && f.Level < Should {
			h.unreadable[receiver], h.garbled[receiver] = true, true
		}
	}
	switch e.kind {
	case Request:
		h.takeRequest(e)
	case Notification:
		h.takeNotification(e)
	case Response, ErrorReply:
		h.takeAnswer(e)
	}
}

// know finds the session that a message names, or notes it.
func (h *history) know(e *event, id string) *session {
	if id == "" {
		return nil
	}
	s := h.session(id)
	if s != nil {
		s.asked = s.asked || e.kind != Response && e.direction == ToAgent
		return s
	}
	s = &session{
		id: strings.Clone(short(id)), named: e.evidence(),
		settable: newTable[bool](2 * maxNames), plans: newTable[*agentPlan](maxAgentPlans),
		asked: e.kind != Response && e.direction == ToAgent,
	}
	h.sessions.put(id, s)
	return s
}

// gives reports whether the answer to a request of the client may give it a session: that of session/new does, and what
// others do is not known.
func gives(r *request) bool {
	switch r.method {
	case methodNew, "session/fork":
		return true
	}
	return r.direction == ToAgent && strings.HasPrefix(r.method, "_")
}

func (h *history) takeRequest(e *event) {
	r := &request{key: requestKey{e.direction, e.key}, at: e.evidence(), time: e.time, direction: e.direction, method: clip(e.method)}
	r.session = h.know(e, e.text("sessionId"))
	h.asked = r
	if !e.remembered { // there are too many
		r.session.forget()
		return
	}
	r.fits = e.sound("")
	for _, f := range e.findings[e.refused:] {
		r.unsupported = r.unsupported || f.Rule == "CFG-16" || f.Rule == "MOD-1"
	}
	if gives(r) {
		h.giving++
	}
	if size := len(e.line); size <= maxKeptLine && h.kept+size <= maxKept {
		r.params, r.bytes = keep(e.content), size
		h.kept += size
	}
	h.open[r.key] = r
	if e.direction == ToClient {
		r.turn = r.session.turn()
	}
	switch e.method {
	case methodInitialize:
		if h.initialize == nil && e.direction == ToAgent {
			h.initialize = r.at
			version, _ := integer(e.content, "protocolVersion")
			h.requested, h.initializeFits = int(version), e.refused == 0
			h.client.take(e, "clientCapabilities")
		}
	case methodLoad, methodResume:
		if s := r.session; s != nil {
			s.setupNew, s.replayed, s.loaded = s.given == nil || s.closed != nil, false, nil
			s.given, s.by, s.setup, s.last = r.at, r.method, r, nil
			s.closing, s.closed, s.deleted = false, nil, nil
			if e.inForce == 1 {
				s.replays++ // in version 2 messages keep their ids
			}
		}
	case methodPrompt:
		r.session.begin(r)
	case methodSetMode, methodSetOption:
		if r.session != nil {
			r.session.setting++
		}
	case methodClose, methodDelete:
		if r.session != nil {
			r.session.closing = true
		}
	case methodPermission:
		if c := h.name(e, r.session, e.text("toolCall", "toolCallId"), e.method); c != nil {
			c.look(e, member(e.content, "toolCall"))
		}
	case "terminal/kill", "terminal/release":
		if t := h.terminal(e.text("terminalId")); t != nil {
			if e.method == "terminal/kill" {
				t.killed = r.at
			} else {
				t.released, t.held = r.at, false
			}
		}
	case methodElicit:
		if id := e.text("elicitationId"); id != "" && e.direction == ToClient {
			r.elicitation = &elicitation{id: strings.Clone(short(id)), at: r.at}
			h.elicitations.put(id, r.elicitation)
		}
	}
}

// terminal finds a terminal that the client has made.
func (h *history) terminal(id string) *terminal {
	t, _ := h.terminals.get(id)
	return t
}

// take reads the capabilities of one side, under the names of version 1 or of version 2.
func (a *abilities) take(e *event, capabilities string) {
	if !e.has(capabilities) && e.has("capabilities") {
		capabilities = "capabilities"
	}
	a.at, a.names = e.evidence(), map[string]bool{}
	a.learn(member(e.content, capabilities), e.refuses, pointer("", capabilities), "", 1)
}

// refuses reports whether the schema refuses the value at a place.
func (e *event) refuses(pointer string) bool {
	for _, f := range e.findings[:e.refused] {
		if f.Pointer == pointer && f.Definition != Envelope && f.Rule != custom {
			return true
		}
	}
	return false
}

// forget notes that something about the session is not remembered.
func (s *session) forget() {
	if s != nil {
		s.lost = true
	}
}

// begin notes a prompt.
func (s *session) begin(r *request) {
	if s == nil {
		return
	}
	s.loaded = nil
	if len(s.turns) >= maxTurns {
		s.lost = true
		return
	}
	r.turn = &turn{prompt: r, before: s.idle}
	s.idle = nil
	s.turns = append(s.turns, r.turn)
}

func (h *history) takeNotification(e *event) {
	switch e.method {
	case methodCancelCall:
		h.cancelCall(e)
	case "elicitation/complete":
		if el, ok := h.elicitations.get(e.text("elicitationId")); ok {
			el.completed = e.evidence()
		}
	}
	id := e.text("sessionId")
	if id == "" {
		return
	}
	s := h.know(e, id)
	switch {
	case e.method == methodCancel && e.direction == ToAgent:
		if len(s.turns) == 0 {
			s.idle = e.evidence()
		}
		for _, t := range s.turns {
			if t.cancelled == nil {
				t.cancelled = e.evidence()
				if len(h.cancelled) < maxTurns {
					h.cancelled = append(h.cancelled, t)
				}
			}
		}
		if e.inForce == 2 && working(s.state) && s.halted == nil && len(h.halting) < maxTurns {
			s.halted = e.evidence()
			h.halting = append(h.halting, s)
		}
	case e.method == methodUpdate && e.direction == ToClient:
		h.takeUpdate(e, s)
	}
}

func (h *history) takeUpdate(e *event, s *session) {
	update := member(e.content, "update")
	switch e.update {
	case "subagent_update": // whose own updates follow
		if child := h.know(e, text(update, "sessionId")); child != nil {
			child.asked = true
		}
	case "user_message_chunk", "user_message":
		s.replayed = true
		s.hear(e, text(update, "messageId"), true)
	case "agent_message_chunk", "agent_message":
		s.hear(e, text(update, "messageId"), false)
	case "tool_call", "tool_call_update":
		c := h.name(e, s, text(update, "toolCallId"), e.update)
		if c == nil {
			return
		}
		if e.update == "tool_call" {
			c.announced = e.evidence()
		}
		c.look(e, update)
	case "state_update":
		s.change(e, update)
	case "terminal_update":
		key := terminalKey(s, text(update, "terminalId"))
		if h.terminal(key) == nil {
			h.terminals.put(key, &terminal{id: key, session: s, at: e.evidence(), cwd: short(strings.Clone(text(update, "cwd")))})
		}
	case "plan":
		s.plans.put("", newPlan(e, update))
	case "plan_update":
		if p := member(update, "plan"); isArray(member(p, "entries")) {
			s.plans.put(text(p, "planId"), newPlan(e, p))
		}
	case "plan_removed":
		s.plans.drop(text(update, "planId"))
	case "current_mode_update":
		s.touched = e.number
	case "config_option_update":
		s.touched = e.number
		s.offerOptions(e, update)
	case "available_commands_update":
		s.commands = newOffer(e, member(update, "availableCommands"), "name", nil)
	}
}

// terminalKey names a terminal of version 2, whose ids are the session's.
func terminalKey(s *session, id string) string { return toolCallKey(s.id, id) }

// change notes a state.
func (s *session) change(e *event, update value) {
	s.state, s.stated = short(strings.Clone(text(update, "state"))), e.evidence()
	if given(update, "background") {
		s.background = s.stated
	}
	switch stop := text(update, "stopReason"); {
	case s.state != stateIdle:
		s.stop = ""
	case stop != "":
		s.stop = clip(strings.Clone(stop))
	}
	if s.state != stateIdle {
		return
	}
	s.halted, s.heeded = nil, nil
	var rest []accepted
	for _, a := range s.accepted {
		if a.during {
			a.during = false
			rest = append(rest, a)
		}
	}
	s.accepted = rest
}

// hear notes a message in chunks, of the user or of the agent.
func (s *session) hear(e *event, id string, user bool) {
	if id == "" || e.heard(s, id, user) != nil {
		return
	}
	e.messages.put(messageKey(s, id, user), e.evidence())
}

// heard is the first chunk of a message of a session, of the user or of the agent, whose ids are apart.
func (h *history) heard(s *session, id string, user bool) *Evidence {
	if id == "" {
		return nil
	}
	at, _ := h.messages.get(messageKey(s, id, user))
	return at
}

// messageKey is another one after each replay, which tells the same messages again.
func messageKey(s *session, id string, user bool) string {
	return toolCallKey(s.id, strconv.Itoa(s.replays)+" "+strconv.FormatBool(user)+" "+short(id))
}

// name finds a tool call that a message names, or notes it.
func (h *history) name(e *event, s *session, id, by string) *toolCall {
	if s == nil || id == "" {
		return nil
	}
	if c := h.call(s, id); c != nil {
		return c
	}
	c := &toolCall{session: s, id: strings.Clone(short(id)), at: e.evidence(), by: strings.Clone(by), turn: s.turn()}
	h.calls.put(toolCallKey(s.id, id), c)
	if c.turn != nil && len(c.turn.calls) < maxNames {
		c.turn.calls = append(c.turn.calls, c)
	}
	return c
}

// look notes what a message says of a tool call.
func (c *toolCall) look(e *event, call value) {
	if status := text(call, "status"); status != "" {
		c.ran = c.ran || status == "in_progress"
		c.status = short(strings.Clone(status))
		c.final = nil
		if finalStatus(status) {
			c.final = e.evidence()
		}
	}
	if !isArray(member(call, "content")) {
		return
	}
	c.terminals = nil
	for _, block := range items(call, "content") {
		if text(block, "type") == "terminal" && len(c.terminals) < maxNames {
			c.terminals = append(c.terminals, short(strings.Clone(text(block, "terminalId"))))
		}
	}
}

// finalStatus reports whether a tool call with this status is over.
func finalStatus(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// newOffer reads a list of things that are told apart by the given member.
func newOffer(e *event, list value, key string, read func(*offer, value) *offered) *offer {
	if !isArray(list) {
		return nil
	}
	o := &offer{at: e.evidence(), items: map[string]*offered{}}
	for _, item := range items(list) {
		if len(o.items) >= maxNames {
			o.more = true
			break
		}
		thing := &offered{}
		if read != nil {
			thing = read(o, item)
		}
		o.items[short(strings.Clone(text(item, key)))] = thing
	}
	return o
}

// has reports whether something is offered; of a list that is too long, everything is.
func (o *offer) has(id string) bool { return o.more || o.items[short(id)] != nil }

// offerAll notes what the result of a session's set-up offers.
func (s *session) offerAll(e *event) {
	if modes := member(e.content, "modes"); isObject(modes) {
		s.modes = newOffer(e, member(modes, "availableModes"), "id", nil)
	}
	s.offerOptions(e, e.content)
	if commands := newOffer(e, member(e.content, "availableCommands"), "name", nil); commands != nil {
		s.commands = commands
	}
}

// offerOptions notes the configuration options of a message; one without options changes nothing.
func (s *session) offerOptions(e *event, from value) {
	if options := newOffer(e, member(from, "configOptions"), optionKey(from), readOption); options != nil {
		s.options = options
		for id, option := range options.items {
			s.couldSet(id, option)
		}
	}
}

// couldSet adds an option to those that were ever offered.
func (s *session) couldSet(id string, option *offered) {
	s.settable.put(couldBe(id), true)
	s.settable.put(couldBe(id, option.kind), true)
	if option.kind == "select" && option.values == nil {
		s.settable.forgot = true
	}
	for value := range option.values {
		s.settable.put(couldBe(id, "select", value), true)
	}
}

// couldBe is the key in session.settable of an option, of a type of it, or of a value of a select.
func couldBe(id string, more ...string) string {
	for i := range more {
		more[i] = short(more[i])
	}
	return strings.Join(append([]string{short(id)}, more...), "\x00")
}

// newPlan reads the entries of a plan.
func newPlan(e *event, from value) *agentPlan {
	p := &agentPlan{at: e.evidence(), entries: map[string]string{}}
	for _, entry := range items(from, "entries") {
		if len(p.entries) >= maxPlanEntries {
			p.more = true
			break
		}
		p.entries[short(strings.Clone(text(entry, "content")))] = short(strings.Clone(text(entry, "status")))
	}
	return p
}

// optionKey is the member that tells options apart: version 2 has another name for it.
func optionKey(from value) string {
	for _, option := range items(from, "configOptions") {
		if present(option, "configId") {
			return "configId"
		}
	}
	return "id"
}

// readOption reads a configuration option, whose values may be in groups.
func readOption(o *offer, option value) *offered {
	thing := &offered{kind: short(strings.Clone(text(option, "type"))), current: short(strings.Clone(text(option, "currentValue")))}
	if thing.kind != "select" {
		return thing
	}
	thing.values = map[string]bool{}
	var add func(list value)
	add = func(list value) {
		for _, v := range items(list) {
			if group := member(v, "options"); isArray(group) {
				add(group)
			} else if o.values++; o.values > maxNames {
				thing.values = nil
				return
			} else if thing.values != nil {
				thing.values[short(strings.Clone(text(v, "value")))] = true
			}
		}
	}
	add(member(option, "options"))
	return thing
}

func (h *history) takeAnswer(e *event) {
	r := e.request
	if r == nil {
		return
	}
	delete(h.open, r.key)
	h.read[e.sender()] = max(h.read[e.sender()], r.at.Number)
	if gives(r) {
		h.giving--
	}
	h.kept -= r.bytes
	defer func() { r.params = nil }() // turns and tool calls keep the request
	h.obey(e)
	switch r.method {
	case methodPrompt:
		r.session.finish(e)
	case methodPermission:
		h.permit(e)
	case methodElicit:
		if r.elicitation != nil {
			r.elicitation.over = e.kind == ErrorReply || e.text("action") != "accept"
		}
	case methodSetMode, methodSetOption:
		if s := r.session; s != nil {
			s.setting--
			s.touched = e.number
		}
	}
	if e.kind == ErrorReply {
		if t := h.terminal(text(r.params, "terminalId")); t != nil && r.method == methodTerminalRelease {
			t.held = true
		}
		if code, _ := integer(e.content, "code"); code == codeAuth && r.method == methodNew {
			h.authNeeded = e.evidence()
		}
		if s := r.session; s != nil && s.setup == r {
			s.setup = nil
			if s.setupNew {
				s.given = nil
			}
		}
		return
	}
	switch r.method {
	case methodInitialize:
		if h.initialized == nil && e.direction == ToClient {
			h.initialized = e.evidence()
			version, _ := integer(e.content, "protocolVersion")
			h.version = int(version)
			h.agent.take(e, "agentCapabilities")
			for _, m := range items(e.content, "authMethods") {
				id := text(m, "id")
				if id == "" {
					id = text(m, "methodId") // in version 2
				}
				if id != "" {
					h.authMethods.put(id, &authMethod{e.evidence(), short(strings.Clone(text(m, "type")))})
				}
			}
		}
	case "authenticate", "auth/login":
		h.loggedIn, h.loggedOut = e.evidence(), nil
	case "logout", "auth/logout":
		h.loggedIn, h.loggedOut = nil, e.evidence()
	case methodSetOption:
		if r.session != nil {
			r.session.offerOptions(e, e.content)
		}
	case "terminal/create":
		if id := text(e.content, "terminalId"); id != "" && e.direction == ToAgent {
			limit, ok := integer(r.params, "outputByteLimit")
			if !ok {
				limit = -1
			}
			h.terminals.put(id, &terminal{id: strings.Clone(short(id)), session: r.session, at: e.evidence(), limit: limit})
		}
	case "terminal/wait_for_exit", "terminal/output":
		if t := h.terminal(text(r.params, "terminalId")); t != nil && t.exited == nil &&
			(r.method == "terminal/wait_for_exit" || given(e.content, "exitStatus")) {
			t.exited = e.evidence()
		}
	case "terminal/release":
		if t := h.terminal(text(r.params, "terminalId")); t != nil {
			t.freed = e.evidence()
		}
	case methodClose:
		if r.session != nil {
			r.session.closed = e.evidence()
		}
	case methodDelete:
		if r.session != nil {
			r.session.deleted = e.evidence()
		}
	}
	if s := r.session; s != nil && s.setup == r {
		s.setup = nil
		if r.method == methodLoad {
			s.loaded = e.evidence()
		}
	}
	if e.direction != ToClient {
		return
	}
	s := r.session
	if id := text(e.content, "sessionId"); id != "" && (s == nil || gives(r)) {
		s = h.know(e, id)
		s.given, s.by = e.evidence(), r.method
		s.made = r.method == methodNew
		s.closing, s.closed, s.deleted = false, nil, nil
	}
	switch r.method {
	case methodList:
		for _, listed := range items(e.content, "sessions") {
			h.listed.put(text(listed, "sessionId"), e.evidence())
		}
		if cursor := member(e.content, "nextCursor"); isText(cursor) {
			h.cursors.put(text(cursor), e.evidence())
		} else {
			h.listEnded = e.evidence()
		}
	case methodNew, methodLoad, methodResume:
		if s != nil {
			s.offerAll(e)
		}
	}
}

// cancelCall notes a $/cancel_request.
func (h *history) cancelCall(e *event) {
	id := member(e.content, "requestId")
	if r := h.open[requestKey{e.direction, idKey(id)}]; r != nil && r.cancelled == nil {
		r.cancelled = e.evidence()
	}
}

// permit notes what a client permits.
func (h *history) permit(e *event) {
	if t := e.request.turn; t != nil && e.text("outcome", "outcome") == "cancelled" {
		t.declined = true
	}
	c := h.call(e.session, text(e.request.params, "toolCall", "toolCallId"))
	if c == nil {
		return
	}
	for _, option := range items(e.request.params, "options") {
		if text(option, "optionId") == e.text("outcome", "optionId") && strings.HasPrefix(text(option, "kind"), "allow") {
			c.allowed = e.evidence()
		}
	}
}

// obey notes which cancellations the agent has read when a request is answered. It reads messages in their order, those of
// all sessions.
func (h *history) obey(e *event) {
	r := e.request
	h.cancelled = slices.DeleteFunc(h.cancelled, func(t *turn) bool {
		read := r.direction == ToAgent && r.at.Number > t.cancelled.Number
		answered := r.method == methodPermission && r.turn == t && r.at.Number < t.cancelled.Number
		if read || answered {
			t.obeyed = e.evidence()
		}
		return t.obeyed != nil || r == t.prompt
	})
	h.halting = slices.DeleteFunc(h.halting, func(s *session) bool {
		if s.halted != nil && r.direction == ToAgent && r.at.Number > s.halted.Number {
			s.heeded = e.evidence()
		}
		return s.halted == nil || s.heeded != nil
	})
}

// finish notes the answer to a prompt.
func (s *session) finish(e *event) {
	if s == nil {
		return
	}
	for i, t := range s.turns {
		if t == e.request.turn {
			t.ended = e.evidence()
			s.last = t
			s.touched = e.number
			if e.kind == Response && e.text("stopReason") != "refusal" { // a refused prompt is not in the conversation
				s.prompted = t.ended
			}
			if id := e.text("messageId"); id != "" && len(s.accepted) < maxTurns {
				s.accepted = append(s.accepted, accepted{short(strings.Clone(id)), t.ended, working(s.state)})
			}
			s.turns = append(s.turns[:i:i], s.turns[i+1:]...)
			break
		}
	}
}

// unanswered are the requests to a side that it has not answered, in their order.
func (h *history) unanswered(by Side) []*request {
	var all []*request
	for _, r := range h.open {
		if r.direction.Sender().Peer() == by {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *request) int { return a.at.Number - b.at.Number })
	return all
}

// hasRead reports whether the side that closed the connection had read a request. A client may close at any time, before
// it has read what is on the way; one that has answered a later request has read this one.
func (h *history) hasRead(r *request) bool {
	return h.closedBy == Agent || r.at.Number < h.read[Client]
}

// hasOlderSessions reports whether a session is, or may be, from before this connection.
func (h *history) hasOlderSessions() bool {
	for _, s := range h.sessions.all {
		if s.by != methodNew {
			return true
		}
	}
	return h.sessions.forgot
}

// shows reports whether a terminal is already in the content of a call.
func (c *toolCall) shows(terminal string) bool {
	return c != nil && slices.Contains(c.terminals, short(terminal))
}

// The states of a session in version 2.
const (
	stateIdle           = "idle"
	stateRunning        = "running"
	stateRequiresAction = "requires_action"
)

// everyDepth is how deep every parser goes.
const everyDepth = 64

// deep reports whether a line is nested deeper than that.
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

// String says what the first of the lines is.
func (u unread) String() string {
	if u.json {
		return "no message"
	}
	return "not JSON"
}

// working reports whether foreground work is going on.
func working(state string) bool { return state == stateRunning || state == stateRequiresAction }
