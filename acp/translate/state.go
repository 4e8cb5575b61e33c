package translate

import (
	"cmp"

	"github.com/acpgo/sdk/acp/rpc"
)

// Options configures a State.
type Options struct {
	// Unique makes ids different from those of earlier connections, where a session continues on another connection
	// and its earlier messages are unknown. Any text will do that the process uses once.
	Unique string
	// Keys remembers the idempotency keys of prompts. Nil means that they are remembered as long as the State. A
	// program that keeps its sessions over several connections gives all of them the same Keys.
	Keys *Keys
	// Only is the only version that an agent is asked for, 1 or 2, as a client would that has no other one. By default it
	// is asked for both: first for version 2, or for the client's own version if that is left to the client.
	Only int
	// Again, if it is not nil, is connected if an agent ends its stream instead of answering initialize, and asked for the
	// other version: some agents end at a version that they do not know. Only [Transport] uses it.
	Again rpc.Transport
	// Host, if it is not nil, serves files and terminals to agents of version 1 whose client, of version 2, has none.
	Host *Host
	// Chosen, if it is not nil, is called once, with the version that the peer speaks, before the answer to initialize
	// is passed on.
	Chosen func(version int)
}

// State is the translation of one connection: what it remembers of the messages so far. Its memory is bounded. It is
// not safe for concurrent use.
type State struct {
	program Side // the side that the program is on, which speaks version
	version int
	only    int
	unique  string
	prefix  string // of the ids of its own requests, in JSON
	keys    *Keys
	shared  bool // other connections have the same keys
	chosen  func(int)
	host    Host

	mode     mode
	spoken   int      // by the client
	either   bool     // the client speaks the version that the agent chooses
	asked    *message // the initialize request while it is in flight
	order    []int    // versions that the agent can still be asked for
	last     int      // version that it was asked for
	again    bool     // it was asked on a second connection
	client   abilities
	agent    abilities
	calls    map[callID]pending
	pending  int // bytes of requests in calls
	sessions recent[*session]
	opening  int       // requests in flight that make a session
	held     []Message // updates that wait for them
	heldSize int
	prompts  int // ever sent under an id of the translation's own
	queued   int // bytes of prompts that wait
	accounts account
	settings int        // bytes of the settings of all sessions
	silent   []*session // whose agent has shown no sign of its turn
	stale    []stale    // tool calls of which the client does not have all content
	credit   int        // bytes of content that it may get
	out      []Message
}

// mode says what the connection needs.
type mode int8

const (
	undecided mode = iota // before initialize
	pass                  // both sides speak the same version
	agent1                // the agent speaks version 1, and the client version 2
	agent2                // the agent speaks version 2, and the client version 1
)

// pending is what to do with an answer.
type pending struct {
	id   raw
	done func(*message)
	size int
}

// callID identifies a request in flight.
type callID struct {
	to Side
	id string
}

// New returns the state of a new connection of a program that is at the given side and speaks the given version, 1 or
// 2. The peer may speak either. The version of a client may be 0, for programs that only pass on a client's messages:
// it is the one that the client asks for. Options may be nil.
func New(program Side, version int, options *Options) *State {
	o := *cmp.Or(options, &Options{})
	prefix := quote("translated-" + o.Unique + "-")
	return &State{
		prefix:  string(prefix[:len(prefix)-1]),
		program: program, version: version, only: o.Only, unique: o.Unique, chosen: o.Chosen,
		keys: cmp.Or(o.Keys, &Keys{}), shared: o.Keys != nil, host: *cmp.Or(o.Host, &Host{}),
		calls: map[callID]pending{}, sessions: recent[*session]{max: maxSessions}, credit: maxCredit,
	}
}

// Version returns the version that the program's peer speaks, or 0 before that is known.
func (s *State) Version() int {
	switch {
	case s.mode == undecided:
		return 0
	case s.mode == pass || s.program == AgentSide:
		return s.spoken
	}
	return 3 - s.spoken
}

// Passes reports whether both sides speak the same version, so that all further messages pass as they are.
func (s *State) Passes() bool { return s.mode == pass }

// Host serves the files and terminals of a machine to an agent of version 1 whose client speaks version 2, which has
// neither.
//
// It gets the agent's requests fs/* and terminal/* as they are, and $/cancel_request for those that nobody waits for
// any more. It also gets the notifications session/resume, with the sessionId, cwd and additionalDirectories of each
// session that the client opens, and session/close. Before each write and each command it sends
// session/request_permission of version 1, which the client gets in version 2; what the user has not allowed is
// answered as cancelled. With session/update it sends terminal_update and terminal_output_chunk of version 2.
type Host struct {
	// Transport connects to the host, once for each connection of the agent. Close of its stream must end all that the
	// host has started. Only [Transport] uses it.
	Transport rpc.Transport
	// ReadFiles, WriteFiles and Terminals are what the agent is offered.
	ReadFiles, WriteFiles, Terminals bool
}

// abilities is what one side has advertised, as far as the translation needs it.
type abilities struct {
	// of an agent of version 1
	load, resume, list, close, logout, steering, cancels, keys bool
	// of a client of version 1
	plan, booleans, notices, compaction, subagents bool
}

// session is what is remembered of one session.
type session struct {
	id     string
	opened bool   // on this connection
	info   object // its directory, for a list of sessions
	closed bool   // it was closed, and the agent may not have noticed yet
	reset  bool   // its history begins before this connection's
	unique string // part of ids then

	options raw    // the config options, in the client's version
	modes   object // of an agent of version 1: its modes, which are shown as an option
	option  string // the id of the option for the mode
	mode    string // its value
	size    int    // of these, info and plans, in bytes

	replay   replay
	turns                  // prompts
	messages               // text
	calls    recent[*call] // tool calls
	terms    recent[*terminal]
	plans    recent[raw] // the entries of each plan
	hostWork
}

// replay is the state of a session's replay.
type replay struct {
	on      bool
	swallow bool            // the client has not asked for it
	whole   bool            // it is complete
	begun   map[string]bool // messages and tool calls that have begun, at most maxReplayed
	idle    object          // the state of an agent of version 2, if it is idle
}

const maxReplayed = 10_000

// first reports whether something happens for the first time in a replay.
func (r *replay) first(what string) bool {
	if r.begun[what] || len(r.begun) >= maxReplayed {
		return false
	}
	r.begun[what] = true
	return true
}

// turns is what is remembered of a session's prompts.
//
// An agent of version 1 answers a prompt when the turn is over; one of version 2 answers when the message is in the
// conversation, and reports the end of its work as a state.
type turns struct {
	// With an agent of version 1:
	turn   *prompt   // the agent has it
	queue  []*prompt // they wait for its end
	asking int       // questions to the user that are open
	needs  bool      // requires_action was reported

	// With an agent of version 2:
	state   string    // the last one reported
	waiting []*prompt // prompts of the client without an answer, in order
	sent    int       // prompts that the agent got

	// For prompts that are sent again to an agent of version 2:
	whole   bool        // its history is known from its beginning
	seen    recent[int] // the user's messages, each with the value of sent when it was first seen
	latest  string      // the last of them
	worked  bool        // the agent did something after it
	lastEnd string      // the stop reason of the last idle state
}

// prompt is a prompt of the client.
type prompt struct {
	id      raw
	retries []raw // requests with the same idempotency key
	key     string
	content []raw
	params  object
	size    int

	messageID string // of the user's message
	accepted  bool
	cancelled bool

	// With an agent of version 1:
	own    raw   // the id of the agent's request; of a prompt that waits, that of the request to steer with it
	echo   []raw // blocks that the agent may repeat
	ticked bool  // it has had the agent for a tick

	// With an agent of version 2:
	sent     int    // the session's sent, with this one
	repeats  bool   // its key was known
	ran      bool   // it was seen working on this
	ended    object // the idle state that came before the answer
	inserted string // a user message that may be this one, before the answer
	exact    bool   // because it has the same content
}

// call is what is remembered of a tool call.
type call struct {
	id            string // "" if it is too long to keep
	title, status string
	questions     int  // that wait for the user
	shown         bool // by an update, not only by a question

	content   kept     // with an agent of version 2: the items of its content, in version 2
	terminals []string // the first ones that it shows, at most maxShown
	sent      int      // how many bytes had been added to it, and to them, when the client last got it
}

// stale is a tool call of which the client does not have all content.
type stale struct {
	sess *session
	id   string // short
}

// terminal is what is remembered of a terminal that an agent of version 2 shows.
type terminal struct {
	command string
	output  kept // bytes
	exit    string
}

// messages is what is remembered of the messages of a session.
type messages struct {
	// With an agent of version 1, whose chunks need no ids: the message that the last chunk belongs to, and how many
	// ids were invented. Counting them gives a message the same id when it is replayed.
	kind    string
	current string
	count   int
	users   []string // the ids of the user's messages, in order, if all are known
	user    int      // how many of them a replay has sent
	agentID string   // the agent's id for the last of these

	// With an agent of version 2:
	texts recent[*text] // what the client has of each message
	last  string        // the last message of this client's own prompts
}

// text is what a client of version 1 has of a message. It cannot take anything back, so that a message whose text is
// replaced continues as another one.
type text struct {
	revision int
	size     int
	hash     uint64
}

// hosted is a request of the agent about which the host may ask the user.
type hosted struct {
	id   raw
	over bool // nobody waits for the answer
}

// hostWork is what the host does for a session's turn.
type hostWork struct {
	hosted []*hosted
	made   []string // terminals
}
