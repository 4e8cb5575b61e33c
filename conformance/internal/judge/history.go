// The history of a connection is the state that rules need from earlier messages. Only take.go writes it; rules only
// read it. Every table is bounded: when it is full, the oldest entries are forgotten, and rules report nothing about
// them.

package judge

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
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

// Terminal returns a terminal that the client has created, or nil.
func (h *History) Terminal(id string) *Terminal {
	t, _ := h.Terminals.Get(id)
	return t
}

// TerminalKey returns the key of a terminal in version 2, where ids are unique only within a session.
func TerminalKey(s *Session, id string) string { return toolCallKey(s.ID, id) }

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

// PathKey returns a key that paths share if they are the same on a system that ignores case, and there are no links. It
// is empty for an empty path.
func PathKey(p string) string {
	if p == "" {
		return ""
	}
	return Short(strings.ToLower(path.Clean(strings.ReplaceAll(p, `\`, "/"))))
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

// String describes the first of the lines.
func (u UnreadLines) String() string {
	if u.JSON {
		return "not a message"
	}
	return "not JSON"
}

// Working reports whether a state means that foreground work is in progress.
func Working(state string) bool { return state == stateRunning || state == stateRequiresAction }
