package translate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// A Side is an end of the connection, or its host.
type Side int8

// The sides.
const (
	ClientSide Side = iota + 1
	AgentSide
	HostSide // what serves an agent instead of its client; see [Host]

	nobody Side = 0 // the receiver of a prompt as long as it has another id with the agent
)

// other returns the opposite side.
func (s Side) other() Side { return ClientSide + AgentSide - s }

// A Message is one line for one side, without newline.
type Message struct {
	To   Side
	Line []byte
}

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

// Bounds on what is remembered. A peer that exceeds them gets worse translations, or errors; see
// docs/reference/translate.md.
const (
	maxSessions  = 256
	maxCalls     = 10_000 // requests in flight whose answers are translated
	maxWaiting   = 64     // prompts of a session that wait
	maxMessageID = 128
	maxKey       = 256      // bytes of an idempotency key
	maxQueued    = 16 << 20 // bytes of prompts that wait
	maxPending   = 64 << 20 // bytes of the requests in flight
	maxHeld      = 1 << 20  // bytes of updates that wait for an answer
	maxOptions   = 256 << 10
	maxSettings  = 16 << 20 // bytes of the options, modes and plans of all sessions
	maxID        = 1 << 10
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

// Message translates a message from one side. It returns the messages that result, in order: usually one for the other
// side, but possibly none, or several, also for the sender. The slice is valid until the next call, and so is the line
// if messages pass; otherwise lines are new. The line has no newline.
func (s *State) Message(from Side, line []byte) []Message {
	s.out = s.out[:0]
	if from == HostSide && !s.hasHost() {
		return nil
	}
	if s.mode == pass {
		s.emit(from.other(), line)
		return s.out
	}
	line = bytes.Clone(line) // parts of it are kept, and what comes out stays as it is
	switch m, err := read(from, line); {
	case (err != nil || m == nil) && s.unread(from, line):
	case err != nil:
		s.emit(from, failure(null, err))
	case m == nil && from == HostSide:
	case m == nil: // the reader says what is wrong
		s.emit(from.other(), line)
	case from == HostSide:
		s.fromHost(m)
	default:
		if from == AgentSide {
			s.credit = min(s.credit+maxTimes*len(line), maxCredit)
		}
		if len(s.stale) > 0 && !m.isOutput() {
			s.flush()
		}
		s.message(m)
	}
	return s.out
}

// unread fails the request that a line answers which cannot be read, and reports whether there is one. Its id may be
// the translation's own.
func (s *State) unread(from Side, line []byte) bool {
	id, response, known := wire.Recover(line)
	if !response || !known {
		return false
	}
	lost := (&rpc.CallLostError{ID: id, Err: errUnread}).Response()
	m, _ := read(from, lost)
	_, waits := s.calls[callID{from, canonical(m.id)}]
	if waits {
		s.response(m)
	}
	return waits
}

var errUnread = errors.New("the answer cannot be read, or has a member twice")

func (s *State) message(m *message) {
	var err *fault
	switch {
	case m.method == "":
		s.response(m)
	case s.isOwn(m.id):
		err = &fault{-32600, "Invalid request: a reserved id", nil}
	case m.method == "initialize" && m.from == ClientSide:
		err = s.initialize(m)
	case s.mode == undecided:
		err = s.forward(m)
	case s.hold(m):
	default:
		err = s.dispatch(m)
	}
	if err != nil && m.id != nil {
		s.emit(m.from, failure(m.id, err))
	}
}

// dispatch calls the function for a request or notification.
func (s *State) dispatch(m *message) *fault {
	handlers := &routes[s.mode-agent1]
	handle, ok := handlers[m.from-ClientSide][m.method]
	switch {
	case !ok:
		return s.forward(m)
	case handle == nil:
		return errNoMethod(m.method)
	case m.params == nil:
		return errParams("params is not an object, or has a member twice")
	case len(m.str("sessionId")) > maxID:
		return errParams("the sessionId is too long")
	}
	return handle(s, m)
}

type handler func(*State, *message) *fault

// routes has, by mode and sender, the methods that do not simply pass. Nil refuses a method that the sender's version
// does not have, or the receiver's version cannot serve.
var routes [2][2]map[string]handler

func init() {
	files := []string{
		"fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/release",
		"terminal/wait_for_exit", "terminal/kill",
	}
	refuse := func(handlers map[string]handler, methods ...string) map[string]handler {
		for _, method := range methods {
			handlers[method] = nil
		}
		return handlers
	}
	routes = [2][2]map[string]handler{
		{ // The agent speaks version 1.
			refuse(map[string]handler{
				"auth/login":                renamed("authenticate"),
				"auth/logout":               (*State).logout1,
				"session/new":               (*State).open1,
				"session/fork":              (*State).open1,
				"session/resume":            (*State).resume1,
				"session/list":              (*State).list1,
				"session/close":             (*State).close1,
				"session/delete":            (*State).delete,
				"session/prompt":            (*State).prompt1,
				"session/cancel":            (*State).cancel1,
				"session/set_config_option": (*State).setOption1,
				"$/cancel_request":          (*State).cancelRequest1,
				"tool_call/cancel":          (*State).cancelWork1,
				"terminal/cancel":           (*State).cancelWork1,
			}, "authenticate", "logout", "session/load", "session/set_mode"),
			{
				"session/update":             (*State).update1,
				"session/request_permission": (*State).permission1,
				"elicitation/create":         (*State).elicitation1,
				"$/cancel_request":           (*State).cancelHost1,
			},
		},
		{ // The agent speaks version 2.
			refuse(map[string]handler{
				"authenticate":              renamed("auth/login"),
				"logout":                    renamed("auth/logout"),
				"session/new":               (*State).open2,
				"session/fork":              (*State).open2,
				"session/load":              (*State).load2,
				"session/resume":            (*State).resume2,
				"session/close":             (*State).delete,
				"session/delete":            (*State).delete,
				"session/prompt":            (*State).prompt2,
				"session/cancel":            (*State).cancel2,
				"session/set_mode":          (*State).setMode2,
				"session/set_config_option": (*State).setOption2,
				"session/status":            (*State).status2,
				"$/cancel_request":          (*State).cancelRequest2,
			}, "auth/login", "auth/logout", "tool_call/cancel", "terminal/cancel"),
			refuse(map[string]handler{
				"session/update":             (*State).update2,
				"session/request_permission": (*State).permission2,
				"elicitation/create":         (*State).elicitation2,
			}, files...),
		},
	}
	for _, method := range files {
		routes[0][1][method] = (*State).host1
	}
}

// renamed returns a handler for a method of which only the name differs.
func renamed(to string) handler {
	return func(s *State, m *message) *fault {
		return s.send(m, to, m.params, nil)
	}
}

// message is a message, taken apart.
type message struct {
	from   Side
	line   []byte
	all    object
	id     raw // nil for a notification
	method string
	params object // nil if they are not an object
}

// read takes a message apart. It returns nil for lines that are not messages.
func read(from Side, line []byte) (*message, *fault) {
	i := space(line, 0)
	switch {
	case i == len(line) || !json.Valid(line):
		return nil, nil
	case line[i] == '[':
		// Version 2 allows batches, and the connections of this module refuse them in both versions.
		return nil, &fault{-32600, "Invalid request: batches are not supported", nil}
	}
	all, ok := parse(line)
	if !ok {
		if line[i] == '{' {
			return nil, &fault{-32600, "Invalid request: a member occurs twice", nil}
		}
		return nil, nil
	}
	m := &message{from: from, line: line, all: all, method: all.str("method")}
	if m.method == "" && (all.has("result") || all.has("error")) {
		m.onlyAnswer()
	} else if m.method == "" && all.has("method") {
		return nil, nil
	}
	if i := all.index("id"); i >= 0 {
		m.id = all[i].value
	}
	if i := all.index("params"); i >= 0 && !isNull(all[i].value) {
		m.params, _ = parse(all[i].value)
	} else {
		m.params = object{}
	}
	return m, nil
}

// onlyAnswer leaves an answer either a result or an error, and no method that is none, so that a lenient reader cannot
// understand it differently: what is not an error to it would be an answer that was never looked at.
func (m *message) onlyAnswer() {
	before := len(m.all)
	m.all.drop("method")
	if m.all.get("error") != nil {
		m.all.drop("result")
	} else if m.all.has("result") {
		m.all.drop("error")
	}
	if len(m.all) != before {
		m.line = m.all.text()
	}
}

func (m *message) str(name string) string { return m.params.str(name) }

// canonical returns an id such that two texts of the same id are equal.
func canonical(id raw) string { return string(codec.AppendCanonical(nil, id)) }

// isOwn reports whether an id is like those of the translation's own requests.
func (s *State) isOwn(id raw) bool {
	return len(id) > len(s.prefix) && string(id[:len(s.prefix)]) == s.prefix
}

// emit appends a message.
func (s *State) emit(to Side, line []byte) { s.out = append(s.out, Message{to, line}) }

// forward passes a message as it is.
func (s *State) forward(m *message) *fault {
	if m.method != "" && m.id != nil {
		if err := s.expect(m.from.other(), m.id, len(m.id), nil); err != nil {
			return err
		}
	}
	s.emit(m.from.other(), m.line)
	return nil
}

// notify sends a notification.
func (s *State) notify(to Side, method string, params object) {
	s.emit(to, obj("jsonrpc", "2.0", "method", method, "params", params).text())
}

// update sends a session/update with the members of an update, to the client.
func (s *State) update(session string, update object) {
	s.notify(ClientSide, "session/update", obj("sessionId", session, "update", update))
}

// send passes a request or notification with another method or other params, under its own id. Done is called with the
// answer, and sends it on; if it is nil, the answer passes.
func (s *State) send(m *message, method string, params object, done func(*message)) *fault {
	if m.id != nil {
		if err := s.expect(m.from.other(), m.id, len(m.line), done); err != nil {
			return err
		}
	}
	s.emit(m.from.other(), m.with(method, params))
	return nil
}

// with returns the message with another method or other params.
func (m *message) with(method string, params object) []byte {
	all := slices.Clone(m.all)
	all.set("method", quote(method))
	all.set("params", params.text())
	return all.text()
}

// expect remembers what to do with the answer to a request that occupies so many bytes. Nothing is a request of which
// two are in flight with one id, or whose answer would come twice.
func (s *State) expect(to Side, id raw, size int, done func(*message)) *fault {
	key := callID{to, canonical(id)}
	_, twice := s.calls[key]
	if !twice { // the agent asks the client and the host, and the client asks the agent and nobody
		_, twice = s.calls[callID{to ^ AgentSide, key.id}]
	}
	switch {
	case len(key.id) > maxID:
		return &fault{-32600, "Invalid request: the id is too long", nil}
	case twice:
		return &fault{-32600, "Invalid request: the id is in use", nil}
	case len(s.calls) >= maxCalls, s.pending > maxPending:
		return &fault{-32603, "Too many requests in flight", nil}
	}
	s.calls[key] = pending{bytes.Clone(id), done, size}
	s.pending += size
	return nil
}

// response handles an answer.
func (s *State) response(m *message) {
	key := callID{m.from, canonical(m.id)}
	if call, ok := s.calls[key]; ok {
		delete(s.calls, key)
		if s.pending -= call.size; call.done != nil {
			call.done(m)
			return
		}
	} else if m.id != nil && !isNull(m.id) {
		return // nobody waits for it
	}
	s.emit(m.from.other(), m.line)
}

// result returns a successful answer's result, or passes the error on and returns nil.
func (s *State) result(m *message) object {
	if i := m.all.index("result"); i >= 0 && !m.all.has("error") {
		if o, ok := parse(m.all[i].value); ok {
			return o
		} else if isNull(m.all[i].value) {
			return object{}
		}
		s.emit(m.from.other(), failure(m.id,
			&fault{-32603, "Internal error: the result is not an object, or has a member twice", nil}))
		return nil
	} else if m.all.get("error") == nil {
		s.emit(m.from.other(), failure(m.id, &fault{-32603, "Internal error: the answer has neither a result nor an error",
			nil}))
		return nil
	}
	s.emit(m.from.other(), m.line)
	return nil
}

// reply passes an answer with another result.
func (s *State) reply(m *message, result object) {
	all := append(object{}, m.all...)
	all.set("result", result.text())
	s.emit(m.from.other(), all.text())
}

// answer sends a result for a request.
func (s *State) answer(to Side, id raw, result object) {
	s.emit(to, obj("jsonrpc", "2.0", "id", id, "result", result).text())
}

// fault is a JSON-RPC error.
type fault struct {
	code    int
	message string
	data    raw
}

func failure(id raw, err *fault) raw {
	e := obj("code", number(err.code), "message", err.message, "data", err.data)
	return obj("jsonrpc", "2.0", "id", id, "error", e).text()
}

func errParams(format string, args ...any) *fault {
	return &fault{-32602, "Invalid params: " + fmt.Sprintf(format, args...), nil}
}

func errNoMethod(method string) *fault {
	return &fault{-32601, "Method not found: " + method, obj("method", method).text()}
}

func errNoSession(id string) *fault {
	return &fault{-32002, "Session not found", obj("sessionId", id).text()}
}

var errCancelled = &fault{-32800, "Request cancelled", nil}

// own returns a new id for a request of the translation's own.
func (s *State) own() raw {
	s.prompts++
	return raw(s.prefix + strconv.Itoa(s.prompts) + `"`)
}
