// One connection: the JSON-RPC envelope of each message, and which definition its content must meet.

package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	account "github.com/acpgo/sdk/internal/ledger"
)

// Validator checks the messages of one connection, in the order in which they were written. It
// remembers which requests wait for their answer, and nothing else. Its methods are safe for concurrent
// use, but each request must be given to it before its answer. That holds if messages are checked before
// they are written.
type Validator struct {
	versions map[int]*Schema // of a negotiated connection

	mu      sync.Mutex
	schema  *Schema
	pending account.Ledger[*call] // sent are those of the client
	number  int                   // messages so far
	lost    map[Direction]bool    // more requests than maxPending: unmatched answers are then accepted
}

// call is a request that was not answered yet. Its definition is the one of its result, or "" if any
// result is right.
type call struct {
	method     string
	definition string
	request    *request // what a Judge knows of it; nil for a Validator alone
}

// maxPending bounds the unanswered requests of one direction that a validator remembers.
const maxPending = 1 << 16

// NewValidator returns a validator for a new connection.
func NewValidator(schema *Schema) *Validator {
	v := &Validator{versions: schema.versions, schema: schema, lost: map[Direction]bool{}}
	v.pending.Sent.Forget, v.pending.Received.Forget = true, true
	if v.versions != nil {
		v.schema = v.versions[1] // until initialize says otherwise
	}
	return v
}

// Message checks one message, given as its line, with or without the newline. It returns no findings for a
// correct message, and never more than a few tens. It does not keep the line.
func (v *Validator) Message(direction Direction, line []byte) []Finding {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.judge(direction, line)
	return m.findings
}

// judge is Message for a caller that holds the lock, or is the only one.
func (v *Validator) judge(direction Direction, line []byte) *message {
	v.number++
	m := &message{validator: v, Finding: Finding{Direction: direction, Number: v.number}}
	m.judge(bytes.TrimSuffix(line, []byte("\n")))
	return m
}

// message is one message while it is checked: what is known of it so far, which every finding repeats.
type message struct {
	Finding
	validator *Validator
	members   map[string]any
	method    string // in full
	asked     *call  // what a request was remembered as; nil if it was not
	answered  *call  // what an answer answers; nil if that is not known
	findings  []Finding
}

// report adds a finding about the content.
func (m *message) report(f flaw) {
	finding := m.Finding
	finding.Rule, finding.Level = f.rule, levelOf(f.rule)
	finding.Pointer, finding.Message, finding.Definition = f.pointer, f.message, f.definition
	m.findings = append(m.findings, finding)
}

// wrong adds a finding about the envelope.
func (m *message) wrong(rule, pointer, format string, args ...any) {
	m.report(flaw{rule, pointer, clip(fmt.Sprintf(format, args...)), Envelope})
}

// mild adds a finding that is less grave than its requirement.
func (m *message) mild(level Level, rule, pointer, format string, args ...any) {
	m.wrong(rule, pointer, format, args...)
	m.findings[len(m.findings)-1].Level = level
}

// noMessage is the requirement that a side breaks that writes something else than messages.
func (m *message) noMessage() string {
	if m.Direction == ToAgent {
		return "TRN-6"
	}
	return "TRN-5"
}

func (m *message) judge(line []byte) {
	if !utf8.Valid(line) {
		m.wrong("TRN-1", "", "not UTF-8")
		return
	}
	if bytes.ContainsRune(line, '\n') {
		m.wrong("TRN-4", "", "a newline inside the message")
	}
	doc, err := parse(line)
	if err != nil {
		m.wrong(m.noMessage(), "", "%v", err)
		return
	}
	members, ok := doc.root.(map[string]any)
	if !ok {
		if _, batch := doc.root.([]any); batch {
			m.wrong("TRN-3", "", "a batch: the protocol has one message a line")
		} else {
			m.wrong(m.noMessage(), "", "got %s, want a JSON-RPC message", typeName(doc.root))
		}
		return
	}
	m.members = members
	m.envelope()
	for _, pointer := range doc.twice {
		m.mild(Should, agreed, pointer, "a member that occurs twice")
	}
}

// envelope judges the members of JSON-RPC and hands the content on.
func (m *message) envelope() {
	m.Kind = m.kind()
	id, hasID := m.members["id"]
	if hasID {
		m.ID = idText(id)
	}
	method, isText := m.members["method"].(string)
	m.method = method
	var stranger string
	if m.Kind == Response || m.Kind == ErrorReply {
		// Before all else, so that every finding names the method.
		m.answered, stranger = m.answer(id, hasID)
		m.method = m.answered.method
	}
	m.Method = clip(m.method)
	switch {
	case method == methodInitialize && m.Kind == Request && m.Direction == ToAgent:
		m.validator.negotiate(Request, m.members["params"])
	case m.answered != nil && m.answered.method == methodInitialize && m.Kind == Response && m.Direction == ToClient:
		m.validator.negotiate(Response, m.members["result"])
	}
	m.version()
	if m.Kind == "" {
		rule := m.noMessage()
		if hasID {
			rule = "OVW-3" // meant as an answer
		}
		m.wrong(rule, "", "neither a request, a notification nor a response")
		return
	}
	if hasID {
		m.checkID(id)
	}
	m.checkMembers()
	switch {
	case stranger != "" && hasID:
		m.wrong("SCH-2", "/id", "%s", stranger)
	case stranger != "":
		m.wrong("SCH-2", "", "%s", stranger)
	}
	switch m.Kind {
	case ErrorReply:
		m.content(m.validator.schema.failure, m.members["error"])
	case Response:
		m.content(m.answered.definition, m.members["result"])
	default:
		if !isText {
			m.wrong(agreed, "/method", "got %s, want string", typeName(m.members["method"]))
			if m.Kind == Request {
				m.remember(id, &call{}) // the error that answers it may carry its id
			}
			return
		}
		m.call(method, id)
	}
}

// kind tells messages apart by the members that they have.
func (m *message) kind() Kind {
	switch {
	case has(m.members, "method") && has(m.members, "id"):
		return Request
	case has(m.members, "method"):
		return Notification
	case has(m.members, "error"):
		return ErrorReply
	case has(m.members, "result"):
		return Response
	}
	return ""
}

// envelopeMembers are the members that each kind may have.
var envelopeMembers = map[Kind][]string{
	Request:      {"jsonrpc", "id", "method", "params"},
	Notification: {"jsonrpc", "method", "params"},
	Response:     {"jsonrpc", "id", "result"},
	ErrorReply:   {"jsonrpc", "id", "error"},
}

// checkMembers looks for members that the kind does not have: wrong if they are another kind's.
func (m *message) checkMembers() {
	telling := "method"
	if m.Kind == ErrorReply {
		telling = "error"
	}
	for _, name := range slices.Sorted(maps.Keys(m.members)) {
		switch {
		case slices.Contains(envelopeMembers[m.Kind], name):
		case name == "result" || name == "error":
			m.wrong("OVW-3", pointer("", name), "not beside %q", telling)
		case len(m.findings) < maxFindings:
			m.wrong(custom, pointer("", name), "unknown member %q", clip(name))
		}
	}
}

func (m *message) version() {
	switch version, ok := m.members["jsonrpc"]; {
	case !ok:
		m.wrong("SCH-4", "", `missing property "jsonrpc"`)
	case version != "2.0":
		m.wrong("SCH-4", "/jsonrpc", `is not "2.0"`)
	}
}

// checkID checks an id, by the schema's definition if it has one.
func (m *message) checkID(id any) {
	if name := m.validator.schema.id; name != "" {
		for _, f := range m.validator.schema.check(name, id) {
			m.report(flaw{"SCH-2", "/id" + f.pointer, f.message, f.definition})
		}
	} else if !accepts([]string{"string", "integer", "null"}, id) {
		m.wrong("SCH-2", "/id", "got %s, want string or integer or null", typeName(id))
	}
	if id == nil && m.Kind == Request {
		m.wrong("SCH-3", "/id", "a request whose id is null")
	}
}

// call checks a request or notification, and remembers a request.
func (m *message) call(method string, id any) {
	v := m.validator
	key := methodKey{m.Direction.Sender().Peer(), method, m.Kind}
	definition, ok := v.schema.methods[key]
	if m.Kind == Request {
		key.kind = Response
		m.remember(id, &call{method: method, definition: v.schema.methods[key]})
	}
	params, hasParams := m.members["params"]
	switch {
	case ok && method == methodInitialize && typeName(params) == "object":
		m.initialize(definition, object(params))
	case ok && hasParams && params != nil:
		m.content(definition, params)
	case ok:
		// Left out and null are the same as empty, where nothing is required.
		if len(v.schema.check(definition, map[string]any{})) > 0 {
			m.wrong(agreed, "", `missing property "params"`)
		}
	case v.schema.extension(method):
		if kind := typeName(params); hasParams && kind != "object" && kind != "array" && kind != "null" {
			m.wrong(agreed, "/params", "got %s, want object or array", kind)
		}
	default:
		rule, why := m.misplaced(method)
		m.wrong(rule, "/method", "%s", why)
	}
}

// misplaced says why a message must not have this method, and which requirement forbids it.
func (m *message) misplaced(method string) (rule, why string) {
	roles := m.validator.schema.roles(method)
	if len(roles) == 0 {
		return "EXT-3", fmt.Sprintf("unknown method %q", clip(method))
	}
	to := m.Direction.Sender().Peer()
	for _, role := range roles {
		if role.handler == to {
			return agreed, fmt.Sprintf("%s is a %s, not a %s", method, role.kind, m.Kind)
		}
	}
	return agreed, fmt.Sprintf("%s goes to the %s, not to the %s", method, roles[0].handler, to)
}

// remember notes a request until its answer.
func (m *message) remember(id any, c *call) {
	v := m.validator
	key := idKey(id)
	pending := v.pending.Of(m.Direction == ToAgent)
	if again := pending.Get(key); again.Open() > 0 {
		m.wrong("SCH-2", "/id", "a request with this id is still unanswered")
	}
	if pending.Open() >= maxPending {
		if !v.lost[m.Direction] {
			m.mild(Advice, "", "", "more than %d unanswered requests: the answers to further ones are not validated", maxPending)
		}
		v.lost[m.Direction] = true
		return
	}
	if len(c.method) > maxText {
		c.method = strings.Clone(clip(c.method))
	}
	pending.Ask(key, c)
	m.asked = c
}

// answer finds the request that a response is for, an unknown one if there is none, or says what is wrong with its id.
func (m *message) answer(id any, hasID bool) (c *call, problem string) {
	v := m.validator
	asked := m.Direction.Sender().Peer().direction()
	if !hasID {
		return &call{}, `missing property "id"`
	}
	c, ok := v.pending.Answer(m.Direction == ToAgent, idKey(id))
	switch {
	case ok:
		return c, ""
	case v.lost[asked], id == nil && m.Kind == ErrorReply: // the latter answers what could not be read
		return &call{}, ""
	}
	return &call{}, "answers no request"
}

// content checks a value by a definition; with the definition "" any value is right.
func (m *message) content(definition string, value any) {
	if definition == "" {
		return
	}
	for _, f := range m.validator.schema.check(definition, value) {
		m.report(f)
	}
}

// idText is an id for readers.
func idText(id any) string {
	text, err := json.Marshal(id)
	if err != nil {
		return typeName(id)
	}
	return clip(string(text))
}

// idKey is equal for ids of the same JSON type and value, and short.
func idKey(id any) string {
	var key string
	switch id := id.(type) {
	case string:
		key = "s" + id
	case json.Number:
		key = "n" + string(id)
	default:
		key = typeName(id)
	}
	if len(key) > 2*sha256.Size {
		sum := sha256.Sum256([]byte(key))
		return "h" + string(sum[:])
	}
	return key
}
