// The history of a connection is the state that rules need from earlier messages. Only this file writes it; rules only
// read it. Every table is bounded: when it is full, the oldest entries are forgotten, and rules report nothing about
// them.

package judge

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
	"github.com/acpgo/sdk/internal/plain"
)

// Methods that the history knows by name.
const (
	MethodUpdate     = "session/update"
	MethodPrompt     = "session/prompt"
	methodCancel     = "session/cancel"
	MethodNew        = "session/new"
	MethodLoad       = "session/load"
	MethodResume     = "session/resume"
	MethodClose      = "session/close"
	MethodDelete     = "session/delete"
	MethodList       = "session/list"
	MethodSetMode    = "session/set_mode"
	MethodSetOption  = "session/set_config_option"
	MethodPermission = "session/request_permission"
	MethodElicit     = "elicitation/create"
	methodCancelCall = "$/cancel_request"

	MethodElicitComplete  = "elicitation/complete"
	MethodReadFile        = "fs/read_text_file"
	MethodWriteFile       = "fs/write_text_file"
	MethodTerminalCreate  = "terminal/create"
	MethodTerminalOutput  = "terminal/output"
	MethodTerminalWait    = "terminal/wait_for_exit"
	MethodTerminalKill    = "terminal/kill"
	MethodTerminalRelease = "terminal/release"
)

// CodeAuth is the code of the error that requires authentication.
const CodeAuth = -32000

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

// History is the remembered state of a connection.
type History struct {
	// Initialize is the last initialize request before Initialized, which is the first answer to one that is a result.
	Initialize, Initialized *finding.Evidence
	Requested, Version      int  // the versions in the request and in the answer; 0 before
	InitializeFits          bool // the schema found no fault in the request
	Client, Agent           Abilities
	InForce                 int                // the version whose rules apply to the message
	AuthMethods             Table[*AuthMethod] // by id

	// the last successful authenticate, if no logout followed; the last logout, if no authenticate did
	LoggedIn, LoggedOut *finding.Evidence
	AuthNeeded          *finding.Evidence // the answer to session/new that required authentication

	Notified   map[finding.Side]*finding.Evidence // the last notification to each side; nil for a session/update
	Unreadable map[finding.Side]bool              // the side received something that is not a proper message
	Garbled    map[finding.Side]bool              // and it may have been meant as one
	// the side received something that it may answer without an id, not counting Unread
	OddIDs map[finding.Side]bool
	Unread map[finding.Side]UnreadLines // lines that the side received and that are not messages

	open         map[requestKey]*Request // all requests in flight
	read         map[finding.Side]int    // the number of the last request that the side has answered
	kept         int                     // bytes of the lines whose params are kept
	asked        *Request                // the last message, if it is a request
	cancelled    []*Turn                 // turns in flight whose cancellation the agent may not have read
	halting      []*Session              // the same in version 2: sessions whose work was cancelled
	Sessions     Table[*Session]
	Listed       Table[string]            // the PathKeys of the sessions that session/list returned, by id
	Cursors      Table[*finding.Evidence] // the cursors that session/list returned
	ListEnded    *finding.Evidence        // the last answer to session/list without a cursor
	Giving       int                      // the number of requests in flight whose answer may introduce a session
	Messages     Table[*Message]          // by messageKey
	Calls        Table[*ToolCall]         // by toolCallKey
	Terminals    Table[*Terminal]         // by id
	Elicitations Table[*Elicitation]
	ClosedBy     finding.Side // the side that closed the connection; 0 if unknown
}

func newHistory() History {
	return History{
		AuthMethods:  NewTable[*AuthMethod](maxNames),
		Notified:     map[finding.Side]*finding.Evidence{},
		Unreadable:   map[finding.Side]bool{},
		Garbled:      map[finding.Side]bool{},
		OddIDs:       map[finding.Side]bool{},
		Unread:       map[finding.Side]UnreadLines{},
		open:         map[requestKey]*Request{},
		read:         map[finding.Side]int{},
		Sessions:     NewTable[*Session](maxSessions),
		Listed:       NewTable[string](maxListed),
		Cursors:      NewTable[*finding.Evidence](maxNames),
		Messages:     NewTable[*Message](maxMessages),
		Calls:        NewTable[*ToolCall](maxCalls),
		Terminals:    NewTable[*Terminal](maxTerminals),
		Elicitations: NewTable[*Elicitation](maxElicitations),
	}
}

// UnreadLines describes the lines that a side received and that are not messages.
type UnreadLines struct {
	At    *finding.Evidence // the first one
	JSON  bool              // it is JSON
	Deep  bool              // it is nested deeper than some parsers allow
	Count int
}

// Abilities has the capabilities of one side.
type Abilities struct {
	At    *finding.Evidence // the message that advertises them; nil before
	names map[string]bool   // "fs.readTextFile": those that are true or an object; of extensions, "_meta.terminal-auth"
	more  bool              // there were too many to keep
	// extensions has the names of the members of every _meta in them, at any depth, whose values are neither null nor
	// false, and the texts among the values.
	extensions map[string]bool
}

// Can reports whether the side has advertised a capability, such as "sessionCapabilities.list". It reports true for all
// capabilities before the side has advertised any, and if it has advertised too many.
func (a *Abilities) Can(capability string) bool {
	return a.At == nil || a.more || a.names[capability]
}

// deepest is the depth up to which capabilities are read.
const deepest = 4

// add adds the capabilities in an object. Values that the schema refused count as absent.
func (a *Abilities) add(v *schema.Value, refused func(pointer string) bool, where, prefix string, depth int) {
	for name, below := range v.Members() {
		at := schema.Pointer(where, name)
		if name == "_meta" {
			a.addExtensions(below, depth)
			a.names["_meta.terminal-auth"] = a.names["_meta.terminal-auth"] || depth == 1 && below.Member("terminal-auth").True()
		}
		if name == "_meta" || len(name) > finding.MaxText || refused(at) || !(below.IsObject() || below.True()) {
			continue
		}
		if len(a.names) >= maxNames {
			a.more = true
			return
		}
		a.names[prefix+name] = true
		if depth < deepest {
			a.add(below, refused, at, prefix+name+".", depth+1)
		}
	}
}

// addExtensions adds the names and texts in a _meta.
func (a *Abilities) addExtensions(v *schema.Value, depth int) {
	note := func(name string) {
		if a.more = a.more || len(a.extensions) >= maxNames; !a.more && len(name) <= finding.MaxText {
			a.extensions[name] = true
		}
	}
	add := func(below *schema.Value) {
		if below.IsText() {
			note(below.Text())
		} else if depth < 2*deepest {
			a.addExtensions(below, depth+1)
		}
	}
	for name, below := range v.Members() {
		if below != nil && !(below.IsBoolean() && !below.True()) {
			note(name)
			add(below)
		}
	}
	for _, below := range v.Items() {
		add(below)
	}
}

// Extends reports whether a _meta in the capabilities has a name or a text for which matches returns true. It reports
// true before the side has advertised any, and if it has advertised too many.
func (a *Abilities) Extends(matches func(name string) bool) bool {
	if a.At == nil || a.more {
		return true
	}
	for name := range a.extensions {
		if matches(name) {
			return true
		}
	}
	return false
}

// AuthMethod is a way to authenticate that the agent offers.
type AuthMethod struct {
	At   *finding.Evidence
	Kind string // the type; "" for an agent method
}

// requestKey identifies a request in flight by its direction and the IDKey of its id.
type requestKey struct {
	direction finding.Direction
	id        string
}

// Request is a request in flight.
type Request struct {
	key         requestKey
	At          *finding.Evidence
	time        time.Time
	direction   finding.Direction
	Method      string
	Params      *schema.Value // nil if too large to keep
	session     *Session
	Turn        *Turn             // the turn in which the agent sent it, if it was the only one of its session
	Cancelled   *finding.Evidence // the $/cancel_request for it
	asks        *ToolCall         // the tool call that it asks permission for
	elicitation *Elicitation      // the elicitation in URL mode that it begins
	Fits        bool              // the schema found no fault in it
	Call        string            // only in version 2: the tool call that it asks about
	Unsupported bool              // it names a mode, an option or a value that the session never had
	bytes       int               // its share of History.kept
}

// Session is a session that a message has named.
type Session struct {
	ID    string
	Named *finding.Evidence // the first message that names it
	Asked bool              // the client has named it, or the agent has as the session of a subagent
	// Usable is the message that made it usable: the answer to session/new, or the request session/load or
	// session/resume, even if that is not answered yet. It is nil if there was none.
	Usable *finding.Evidence
	By     string   // the method of Usable
	Setup  *Request // session/load or session/resume, while in flight
	// SetupNew is set if this connection did not use the session before Usable, or had closed it. Replayed is set if a
	// user message was sent since.
	SetupNew, Replayed bool
	Loaded             *finding.Evidence // the answer to session/load, until the next prompt
	Prompted           *finding.Evidence // the last answer that ended a turn whose prompt was not refused
	// the PathKey of the working directory, and of the one before the last session/load or session/resume
	Cwd, OldCwd string
	Moved       *finding.Evidence // the answer to that request, if it changed the directory

	// Only in version 1: its turns, the last replay of session/load, and whether a turn in flight is a command.
	talk      []*said
	replay    replay
	commanded bool

	works  int      // the number of times that work began: a turn (version 2: a state) after an idle time
	latest *Message // of those that the last replay had, the one that was new last
	newest int      // the greatest Message.begun of those

	Turns []*Turn // in flight, the oldest first
	Lost  bool    // there were more turns than maxTurns
	Last  *Turn   // the turn that ended last

	replays int // how often its conversation was replayed
	// Only in version 2:
	State      string            // the last reported state, "" before
	Stop       string            // its stop reason
	Stated     *finding.Evidence // the update that reported it
	Background *finding.Evidence // a state that reported background work
	detached   bool              // the last state reported some
	Accepted   []Accepted        // the prompts whose work has not ended
	Question   *Request          // a question to the user in the running state, the last message of the agent
	Answered   *finding.Evidence // the answer to Question
	Halted     *finding.Evidence // the session/cancel of the current work
	Heeded     *finding.Evidence // an answer that proves that the agent had read Halted
	Made       bool              // session/new on this connection created it

	idle    *finding.Evidence // a session/cancel that was sent while no turn was in flight, until the next prompt
	Closing bool              // session/close or session/delete was sent, and was not refused
	Closed  *finding.Evidence // the answer to session/close
	Deleted *finding.Evidence // the answer to session/delete

	Modes    *Offer // nil before any were offered
	Options  *Offer // configuration options, with their values
	Commands *Offer
	// Settable has every configuration option that was ever offered, with its types and values (see SettableKey),
	// because a client may not have seen the last change yet.
	Settable Table[bool]
	Setting  int // the number of requests in flight that set an option or the mode
	// the number of the last message that may have changed options: an update, an answer, the end of a turn
	Touched int
	Plans   Table[*AgentPlan] // by id, "" for plans without one
}

// AgentPlan is the last state of a plan.
type AgentPlan struct {
	At      *finding.Evidence
	Entries map[string]string // the status of each entry, by its content
	More    bool              // there were too many to keep
}

// Accepted is a prompt of version 2 that is part of the conversation.
type Accepted struct {
	ID     string // of the message
	At     *finding.Evidence
	During bool // other work may have been in progress
}

// Turn is a prompt and everything that belongs to it.
type Turn struct {
	Prompt    *Request
	Before    *finding.Evidence // Session.idle when it began
	Cancelled *finding.Evidence // the first session/cancel while it was in flight
	// Obeyed is a message that proves that the agent has read the cancellation: its answer to a request that was sent
	// later, or the client's later answer to a permission request that the turn was waiting for.
	Obeyed    *finding.Evidence
	Late      bool // Session.Closing was true when it began
	Closing   bool // Session.Closing was true at some time
	Dismissed bool // a permission was answered with the outcome cancelled, or an elicitation with the action cancel
	Ended     *finding.Evidence
	Calls     []*ToolCall // the tool calls announced in it

	said *said // nil if it is not kept
}

// Offer is a list of things that the agent offers by id.
type Offer struct {
	At     *finding.Evidence
	values int // the number of values of all options
	Items  map[string]*Offered
	More   bool // there were too many to keep
}

// Offered is one item of an offer: a mode, a configuration option or a command.
type Offered struct {
	Kind    string          // the type of a configuration option
	Current string          // the value of a select
	Values  map[string]bool // the values of a select; nil for other items, and if there were too many
}

// Message is a message with an id: one of the user or of the agent, or a thought.
type Message struct {
	At     *finding.Evidence // its first update
	Update *finding.Evidence // its last one
	user   bool
	begun  int      // 2*Session.works at its first update, one more if that came at an idle time
	worked int      // Session.works at its last update; -1 if that came at an idle time
	replay *Request // the request whose replay had it last
}

// ToolCall is a tool call of a session.
type ToolCall struct {
	session   *Session
	ID        string
	At        *finding.Evidence // the message that announced it
	by        string            // "tool_call", "tool_call_update" or the method that named it first
	Asking    *finding.Evidence // the request for permission, while unanswered
	Decided   bool              // such a request was answered
	Allowed   *finding.Evidence // the permission for it
	Ran       bool              // it was in_progress
	Announced *finding.Evidence // the last tool_call
	Status    string            // the last status, "" if none was given
	Final     *finding.Evidence // the message that completed or failed it; nil if it is still open
	turn      *Turn             // the turn in which it was announced
	terminals []string          // the ids of the terminals that it shows
	own       []string          // the ids of the agent's own terminals, which _meta.terminal_info has announced
}

// Terminal is a terminal that the client has created.
type Terminal struct {
	ID             string
	Session        *Session
	At             *finding.Evidence // the answer that names it
	Limit          int64             // the limit of the output in bytes, -1 if there is none
	Killed         *finding.Evidence // the terminal/kill request
	Released       *finding.Evidence // the terminal/release request
	ReleaseRefused bool              // Released was answered with an error
	Cwd            string            // only in version 2
	Freed          *finding.Evidence // the answer to Released
	Exited         *finding.Evidence // the message that reported its exit
}

// Elicitation is an elicitation in URL mode.
type Elicitation struct {
	id        string
	At        *finding.Evidence // the request
	Over      bool              // declined, cancelled or refused
	Completed *finding.Evidence
}

// Session returns a session that a message has named, or nil.
func (h *History) Session(id string) *Session {
	s, _ := h.Sessions.Get(id)
	return s
}

// Call returns a tool call, or nil.
func (h *History) Call(s *Session, id string) *ToolCall {
	if s == nil {
		return nil
	}
	c, _ := h.Calls.Get(toolCallKey(s.ID, id))
	return c
}

func toolCallKey(session, id string) string { return Short(session) + "\x00" + id }

// turn returns the only turn in flight, or nil if there is none or more than one.
func (s *Session) turn() *Turn {
	if s == nil || len(s.Turns) != 1 || s.Lost {
		return nil
	}
	return s.Turns[0]
}

// Quiet reports whether no work is in progress in the session, as far as messages show.
func (s *Session) Quiet() bool {
	return len(s.Turns) == 0 && len(s.Accepted) == 0 && !s.Lost && !Working(s.State) && !s.detached
}

// Working reports whether the session is at work: in a turn, or in version 2 by its state.
func (s *Session) working(version int) bool {
	if version == 1 {
		return len(s.Turns) > 0
	}
	return Working(s.State)
}

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
	r := &Request{key: requestKey{e.direction, e.key}, At: e.evidence(), time: e.time, direction: e.direction,
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
		if c := h.noteToolCall(e, r.session, e.Text("toolCall", "toolCallId"), e.Method); c != nil {
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
			r.elicitation = &Elicitation{id: Short(id), At: r.At}
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

// Terminal returns a terminal that the client has created, or nil.
func (h *History) Terminal(id string) *Terminal {
	t, _ := h.Terminals.Get(id)
	return t
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
	for _, f := range e.findings[:e.refused] {
		if f.Pointer == pointer && f.Definition != finding.Envelope && f.Rule != schema.Custom {
			return true
		}
	}
	return false
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
		c := h.noteToolCall(e, s, update.Text("toolCallId"), e.Update)
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

// TerminalKey returns the key of a terminal in version 2, where ids are unique only within a session.
func TerminalKey(s *Session, id string) string { return toolCallKey(s.ID, id) }

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

// MessageOf returns the message of a session with an id and the type of an update, such as "agent_message_chunk", or
// nil if there is none. Each type has ids of its own.
func (h *History) MessageOf(s *Session, id, update string) *Message {
	if id == "" {
		return nil
	}
	m, _ := h.Messages.Get(messageKey(s, id, update))
	return m
}

// messageKey returns the key of a message. In version 1 it changes with each replay, which repeats the same messages.
func messageKey(s *Session, id, update string) string {
	return toolCallKey(s.ID, strconv.Itoa(s.replays)+" "+strings.TrimSuffix(update, "_chunk")+" "+Short(id))
}

// ReplayedIn reports whether the message has occurred since the request of a replay.
func (m *Message) ReplayedIn(setup *Request) bool { return m != nil && m.replay == setup }

// FromEarlierWork reports whether an update of the message belongs to work that began after the message's own work had
// ended.
func (m *Message) FromEarlierWork(e *Event) bool {
	s := e.Session
	return m != nil && m.worked >= 0 && m.worked < s.works && s.Setup == nil && s.working(e.InForce)
}

// ReplayedAfter returns a message that the current replay had before this one although it came later in the
// conversation, or nil. Of the messages of one work, only those of the user have a certain place.
func (m *Message) ReplayedAfter(s *Session) *Message {
	if m != nil && m.replay != s.Setup && s.latest != nil &&
		(m.begun < s.newest || m.user && m.At.Number < s.latest.At.Number) {
		return s.latest
	}
	return nil
}

// noteToolCall returns the tool call that a message names, and adds it if it is new.
func (h *History) noteToolCall(e *Event, s *Session, id, by string) *ToolCall {
	if s == nil || id == "" {
		return nil
	}
	if c := h.Call(s, id); c != nil {
		return c
	}
	c := &ToolCall{session: s, ID: Short(id), At: e.evidence(), by: by, turn: s.turn()}
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

// newOffer reads a list of items that are identified by the member key.
func newOffer(e *Event, list *schema.Value, key string, read func(*Offer, *schema.Value) *Offered) *Offer {
	if !list.IsArray() {
		return nil
	}
	o := &Offer{At: e.evidence(), Items: map[string]*Offered{}}
	for _, item := range list.Items() {
		if len(o.Items) >= maxNames {
			o.More = true
			break
		}
		thing := &Offered{}
		if read != nil {
			thing = read(o, item)
		}
		o.Items[Short(item.Text(key))] = thing
	}
	return o
}

// Has reports whether an item is offered. If the list was too long to keep, it reports true for everything.
func (o *Offer) Has(id string) bool { return o.More || o.Items[Short(id)] != nil }

// noteOffers records the offers in the result of session/new, session/load or session/resume.
func (s *Session) noteOffers(e *Event) {
	if modes := e.Content.Member("modes"); modes.IsObject() {
		s.Modes = newOffer(e, modes.Member("availableModes"), "id", nil)
	}
	s.noteOptions(e, e.Content)
	if commands := newOffer(e, e.Content.Member("availableCommands"), "name", nil); commands != nil {
		s.Commands = commands
	}
}

// noteOptions records the configuration options of a message, if it has any.
func (s *Session) noteOptions(e *Event, from *schema.Value) {
	if options := newOffer(e, from.Member("configOptions"), OptionKey(from), ReadOption); options != nil {
		s.Options = options
		for id, option := range options.Items {
			s.noteSettable(id, option)
		}
	}
}

// noteSettable adds an option to Settable.
func (s *Session) noteSettable(id string, option *Offered) {
	s.Settable.put(SettableKey(id), true)
	s.Settable.put(SettableKey(id, option.Kind), true)
	if option.Kind == "select" && option.Values == nil {
		s.Settable.Forgot = true
	}
	for value := range option.Values {
		s.Settable.put(SettableKey(id, "select", value), true)
	}
}

// SettableKey returns the key in Session.Settable of an option, of one of its types, or of a value of a select.
func SettableKey(id string, more ...string) string {
	for i := range more {
		more[i] = Short(more[i])
	}
	return strings.Join(append([]string{Short(id)}, more...), "\x00")
}

// NewAgentPlan reads the entries of a plan.
func NewAgentPlan(e *Event, from *schema.Value) *AgentPlan {
	p := &AgentPlan{At: e.evidence(), Entries: map[string]string{}}
	for _, entry := range from.Items("entries") {
		if len(p.Entries) >= maxPlanEntries {
			p.More = true
			break
		}
		p.Entries[Short(entry.Text("content"))] = Short(entry.Text("status"))
	}
	return p
}

// OptionKey returns the name of the member that identifies options, which differs in version 2.
func OptionKey(from *schema.Value) string {
	for _, option := range from.Items("configOptions") {
		if option.Present("configId") {
			return "configId"
		}
	}
	return "id"
}

// ReadOption reads a configuration option, whose values may be in groups.
func ReadOption(o *Offer, option *schema.Value) *Offered {
	thing := &Offered{Kind: Short(option.Text("type")),
		Current: Short(option.Text("currentValue"))}
	if thing.Kind != "select" {
		return thing
	}
	thing.Values = map[string]bool{}
	var add func(list *schema.Value)
	add = func(list *schema.Value) {
		for _, v := range list.Items() {
			if group := v.Member("options"); group.IsArray() {
				add(group)
			} else if o.values++; o.values > maxNames {
				thing.Values = nil
				return
			} else if thing.Values != nil {
				thing.Values[Short(v.Text("value"))] = true
			}
		}
	}
	add(option.Member("options"))
	return thing
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

// PathKey returns a key that paths share if they are the same on a system that ignores case, and there are no links. It
// is empty for an empty path.
func PathKey(p string) string {
	if p == "" {
		return ""
	}
	return Short(strings.ToLower(path.Clean(strings.ReplaceAll(p, `\`, "/"))))
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

// Unanswered returns the requests that a side has received and not answered, in order.
func (h *History) Unanswered(by finding.Side) []*Request {
	var all []*Request
	for _, r := range h.open {
		if r.direction.Sender().Peer() == by {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Request) int { return a.At.Number - b.At.Number })
	return all
}

// HasRead reports whether the side that closed the connection had read a request. A client may close at any time,
// before it has read messages in transit; if it has answered a later request, it has read this one.
func (h *History) HasRead(r *Request) bool {
	return h.ClosedBy == finding.Agent || r.At.Number < h.read[finding.Client]
}

// HasOlderSessions reports whether a session is, or may be, older than this connection.
func (h *History) HasOlderSessions() bool {
	for _, s := range h.Sessions.All {
		if s.By != MethodNew {
			return true
		}
	}
	return h.Sessions.Forgot
}

// Shows reports whether the content of a tool call already has a terminal, or the terminal is the agent's own.
func (c *ToolCall) Shows(terminal string) bool {
	return c != nil && (slices.Contains(c.terminals, Short(terminal)) || slices.Contains(c.own, Short(terminal)))
}

// The states of a session in version 2.
const (
	StateIdle           = "idle"
	stateRunning        = "running"
	stateRequiresAction = "requires_action"
)

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

// String describes the first of the lines.
func (u UnreadLines) String() string {
	if u.JSON {
		return "not a message"
	}
	return "not JSON"
}

// Working reports whether a state means that foreground work is in progress.
func Working(state string) bool { return state == stateRunning || state == stateRequiresAction }
