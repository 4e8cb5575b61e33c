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

	"github.com/acpgo/sdk/internal/ledger"
)

// Validator checks the messages of one connection, in the order in which they were written. It
// remembers which requests wait for their answer, and nothing else. Its methods are safe for concurrent
// use, but each request must be given to it before its answer. That holds if messages are checked before
// they are written.
type Validator struct {
	versions map[int]*Schema // of a negotiated connection

	mu      sync.Mutex
	schema  *Schema
	pending ledger.Ledger[call] // sent are those of the client
	lost    map[Direction]bool  // more requests than maxPending: unmatched answers are then accepted
}

// call is a request that was not answered yet. Its definition is the one of its result, or "" if any
// result is right.
type call struct {
	method     string
	definition string
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
	m := message{validator: v, Finding: Finding{Direction: direction}}
	m.judge(bytes.TrimSuffix(line, []byte("\n")))
	return m.findings
}

// message is one message while it is checked: what is known of it so far, which every finding repeats.
type message struct {
	Finding
	validator *Validator
	members   map[string]any
	findings  []Finding
}

// report adds a finding about the content.
func (m *message) report(f flaw) {
	finding := m.Finding
	finding.Severity, finding.Pointer, finding.Message, finding.Definition = f.severity, f.pointer, f.message, f.definition
	m.findings = append(m.findings, finding)
}

// wrong adds an error, and doubtful a warning, about the envelope.
func (m *message) wrong(pointer, format string, args ...any) {
	m.report(flaw{Error, pointer, clip(fmt.Sprintf(format, args...)), Envelope})
}

func (m *message) doubtful(pointer, format string, args ...any) {
	m.report(flaw{Warning, pointer, clip(fmt.Sprintf(format, args...)), Envelope})
}

func (m *message) judge(line []byte) {
	if !utf8.Valid(line) {
		m.wrong("", "not UTF-8")
		return
	}
	if bytes.ContainsRune(line, '\n') {
		m.wrong("", "a newline inside the message")
	}
	doc, err := parse(line)
	if err != nil {
		m.wrong("", "%v", err)
		return
	}
	members, ok := doc.root.(map[string]any)
	if !ok {
		if _, batch := doc.root.([]any); batch {
			m.wrong("", "a batch: the protocol has one message a line")
		} else {
			m.wrong("", "got %s, want a JSON-RPC message", typeName(doc.root))
		}
		return
	}
	m.members = members
	m.envelope()
	for _, pointer := range doc.twice {
		m.doubtful(pointer, "a member that occurs twice")
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
	m.Method = clip(method)
	var answered call
	var stranger string
	if m.Kind == Response || m.Kind == ErrorReply {
		// Before all else, so that every finding names the method.
		answered, stranger = m.answer(id, hasID)
		m.Method = clip(answered.method)
	}
	switch {
	case method == methodInitialize && m.Kind == Request && m.Direction == ToAgent:
		m.validator.negotiate(Request, m.members["params"])
	case answered.method == methodInitialize && m.Kind == Response && m.Direction == ToClient:
		m.validator.negotiate(Response, m.members["result"])
	}
	m.version()
	if m.Kind == "" {
		m.wrong("", "neither a request, a notification nor a response")
		return
	}
	if hasID {
		m.checkID(id)
	}
	m.checkMembers()
	switch {
	case stranger != "" && hasID:
		m.wrong("/id", "%s", stranger)
	case stranger != "":
		m.wrong("", "%s", stranger)
	}
	switch m.Kind {
	case ErrorReply:
		m.content(m.validator.schema.failure, m.members["error"])
	case Response:
		m.content(answered.definition, m.members["result"])
	default:
		if !isText {
			m.wrong("/method", "got %s, want string", typeName(m.members["method"]))
			if m.Kind == Request {
				m.remember(id, call{}) // the error that answers it may carry its id
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
			m.wrong(pointer("", name), "not beside %q", telling)
		case len(m.findings) < maxFindings:
			m.doubtful(pointer("", name), "unknown member %q", clip(name))
		}
	}
}

func (m *message) version() {
	switch version, ok := m.members["jsonrpc"]; {
	case !ok:
		m.wrong("", `missing property "jsonrpc"`)
	case version != "2.0":
		m.wrong("/jsonrpc", `is not "2.0"`)
	}
}

// checkID checks an id, by the schema's definition if it has one.
func (m *message) checkID(id any) {
	if name := m.validator.schema.id; name != "" {
		for _, f := range m.validator.schema.check(name, id) {
			m.report(flaw{f.severity, "/id" + f.pointer, f.message, f.definition})
		}
	} else if !accepts([]string{"string", "integer", "null"}, id) {
		m.wrong("/id", "got %s, want string or integer or null", typeName(id))
	}
	if id == nil && m.Kind == Request {
		m.doubtful("/id", "a request whose id is null")
	}
}

// call checks a request or notification, and remembers a request.
func (m *message) call(method string, id any) {
	v := m.validator
	key := methodKey{m.Direction.Sender().Peer(), method, m.Kind}
	definition, ok := v.schema.methods[key]
	if m.Kind == Request {
		key.kind = Response
		m.remember(id, call{method, v.schema.methods[key]})
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
			m.wrong("", `missing property "params"`)
		}
	case v.schema.extension(method):
		if kind := typeName(params); hasParams && kind != "object" && kind != "array" && kind != "null" {
			m.wrong("/params", "got %s, want object or array", kind)
		}
	default:
		m.wrong("/method", "%s", m.misplaced(method))
	}
}

// misplaced says why a message must not have this method.
func (m *message) misplaced(method string) string {
	roles := m.validator.schema.roles(method)
	if len(roles) == 0 {
		return fmt.Sprintf("unknown method %q", clip(method))
	}
	to := m.Direction.Sender().Peer()
	for _, role := range roles {
		if role.handler == to {
			return fmt.Sprintf("%s is a %s, not a %s", method, role.kind, m.Kind)
		}
	}
	return fmt.Sprintf("%s goes to the %s, not to the %s", method, roles[0].handler, to)
}

// remember notes a request until its answer.
func (m *message) remember(id any, c call) {
	v := m.validator
	key := idKey(id)
	pending := v.pending.Of(m.Direction == ToAgent)
	if again := pending.Get(key); again.Open() > 0 {
		m.wrong("/id", "a request with this id is still unanswered")
	}
	if pending.Open() >= maxPending {
		if !v.lost[m.Direction] {
			m.doubtful("", "more than %d unanswered requests: the answers to further ones are not validated", maxPending)
		}
		v.lost[m.Direction] = true
		return
	}
	if len(c.method) > maxText {
		c.method = strings.Clone(clip(c.method))
	}
	pending.Ask(key, c)
}

// answer finds the request that a response is for, or says what is wrong with its id.
func (m *message) answer(id any, hasID bool) (c call, problem string) {
	v := m.validator
	asked := m.Direction.Sender().Peer().direction()
	if !hasID {
		return call{}, `missing property "id"`
	}
	c, ok := v.pending.Answer(m.Direction == ToAgent, idKey(id))
	switch {
	case ok, v.lost[asked]:
		return c, ""
	case id == nil && m.Kind == ErrorReply:
		return call{}, "" // for what could not be read
	}
	return call{}, "answers no request"
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
