// One connection: the JSON-RPC envelope of each message, and which definition its content must meet.

package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	account "github.com/acpgo/sdk/internal/ledger"
)

// connection checks the messages of one connection, in the order in which they were written. It remembers which requests
// wait for their answer, and nothing else. It is not safe for concurrent use.
type connection struct {
	versions map[int]*Schema // of a negotiated connection

	document document // the message that is judged
	schema   *Schema
	pending  account.Ledger[*call] // sent are those of the client
	number   int                   // messages so far
	lost     map[Direction]bool    // more requests than maxPending: unmatched answers are then accepted
}

// call is a request that was not answered yet. Its definition is the one of its result, or "" if any
// result is right.
type call struct {
	method     string
	definition string
	memo       any // what a judge knows of the request; nil without a judge
}

// maxPending bounds the unanswered requests of one direction that a validator remembers.
const maxPending = 1 << 16

// newConnection begins a connection.
func newConnection(schema *Schema) *connection {
	c := &connection{versions: schema.versions, schema: schema, lost: map[Direction]bool{}}
	c.pending.Sent.Forget, c.pending.Received.Forget = true, true
	if c.versions != nil {
		c.schema = c.versions[1] // until initialize says otherwise
	}
	return c
}

// check checks one message, given as its line, with or without the newline, and keeps nothing of the line. The content of
// the returned message may be used until release.
func (c *connection) check(direction Direction, line []byte) message {
	c.number++
	m := message{connection: c, Finding: Finding{Direction: direction, Side: direction.Sender(), Number: c.number}}
	m.judge(bytes.TrimSuffix(line, []byte("\n")))
	return m
}

// release ends the use of the last message's content.
func (c *connection) release() { c.document.release() }

// message is one message while it is checked: what is known of it so far, which every finding repeats.
type message struct {
	Finding    // without the method
	connection *connection
	id         *node  // nil if there is none
	content    *node  // the params, the result or the error; nil if there is none
	method     string // in full
	key        string // of the id of a request
	asked      *call  // what a request was remembered as; nil if it was not
	answered   *call  // what an answer answers; nil if that is not known
	findings   []Finding
}

// report adds a finding about the content.
func (m *message) report(f flaw) {
	finding := m.Finding
	finding.Method = clip(m.method)
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
	document := &m.connection.document
	switch err := document.read(line); err {
	case nil:
	case errTooManyValues, errTooLong:
		m.mild(Advice, "", "", "%v", err)
		return
	default:
		m.wrong(m.noMessage(), "", "%v", err)
		return
	}
	switch root := document.root(); {
	case root.kind() == typeObject:
		m.envelope(root)
	case root.kind() == typeArray && length(root) > 0:
		m.wrong("TRN-3", "", "a batch: the protocol has one message a line")
		return
	default:
		m.wrong(m.noMessage(), "", "got %s, want a JSON-RPC message", root.kind())
		return
	}
	for _, pointer := range document.twice() {
		m.mild(Should, agreed, pointer, "a member that occurs twice")
	}
}

// envelope judges the members of JSON-RPC and hands the content on.
func (m *message) envelope(root *node) {
	var version, method, params, result, failure *node
	var others []string
	for member := range root.below() {
		switch name := member.name(); name {
		case "jsonrpc":
			version = member
		case "id":
			m.id = member
			m.ID = idText(member)
		case "method":
			method = member
		case "params":
			params = member
		case "result":
			result = member
		case "error":
			failure = member
		default:
			others = append(others, name)
		}
	}
	m.Kind, m.content = kindOf(m.id, method, result, failure), params
	isText := method.kind() == typeString
	m.method = m.connection.schema.methodName(method.string())
	var stranger string
	switch m.Kind {
	case Response:
		m.content = result
	case ErrorReply:
		m.content = failure
	}
	if m.Kind == Response || m.Kind == ErrorReply {
		// Before all else, so that every finding names the method.
		m.answered, stranger = m.answer()
		m.method = m.answered.method
	}
	switch {
	case m.method != methodInitialize:
	case m.Kind == Request && m.Direction == ToAgent, m.Kind == Response && m.Direction == ToClient:
		m.connection.negotiate(m.Kind, m.content)
	}
	switch {
	case version == nil:
		m.wrong("SCH-4", "", `missing property "jsonrpc"`)
	case !version.is("2.0"):
		m.wrong("SCH-4", "/jsonrpc", `is not "2.0"`)
	}
	if m.Kind == "" {
		rule := m.noMessage()
		if m.id != nil {
			rule = "OVW-3" // meant as an answer
		}
		m.wrong(rule, "", "neither a request, a notification nor a response")
		return
	}
	if m.id != nil {
		m.checkID()
	}
	if m.Kind != Response && result != nil {
		others = append(others, "result")
	}
	if m.Kind != ErrorReply && failure != nil {
		others = append(others, "error")
	}
	if (m.Kind == Response || m.Kind == ErrorReply) && params != nil {
		others = append(others, "params")
	}
	m.refuse(others)
	switch {
	case stranger != "" && m.id != nil:
		m.wrong("SCH-2", "/id", "%s", stranger)
	case stranger != "":
		m.wrong("SCH-2", "", "%s", stranger)
	}
	switch {
	case m.Kind == ErrorReply:
		m.check(m.connection.schema.failure, m.content)
	case m.Kind == Response:
		m.check(m.answered.definition, m.content)
	case isText:
		m.call()
	default:
		m.wrong(agreed, "/method", "got %s, want string", method.kind())
		if m.Kind == Request {
			m.remember(&call{}) // the error that answers it may carry its id
		}
	}
}

// kindOf tells messages apart by the members that they have.
func kindOf(id, method, result, failure *node) Kind {
	switch {
	case method != nil && id != nil:
		return Request
	case method != nil:
		return Notification
	case failure != nil:
		return ErrorReply
	case result != nil:
		return Response
	}
	return ""
}

// refuse reports members that the kind does not have: wrong if they are another kind's.
func (m *message) refuse(names []string) {
	telling := "method"
	if m.Kind == ErrorReply {
		telling = "error"
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == "result" || name == "error":
			m.wrong("OVW-3", pointer("", name), "not beside %q", telling)
		case len(m.findings) < maxFindings:
			m.wrong(custom, pointer("", name), "unknown member %q", clip(name))
		}
	}
}

// checkID checks an id, by the schema's definition if it has one.
func (m *message) checkID() {
	null := m.id.kind() == typeNull
	if null && m.Kind == ErrorReply {
		return // JSON-RPC's answer to what could not be read
	}
	if name := m.connection.schema.id; name != "" {
		refused := m.connection.schema.check(name, m.id)
		for _, f := range refused {
			m.report(flaw{"SCH-2", "/id" + f.pointer, f.message, f.definition})
		}
		if len(refused) > 0 {
			return
		}
	} else if !accepts([]string{"string", "integer", "null"}, m.id.tree()) {
		m.wrong("SCH-2", "/id", "got %s, want string or integer or null", m.id.kind())
	}
	if null && m.Kind == Request {
		m.wrong("SCH-3", "/id", "a request whose id is null")
	}
}

// call checks a request or notification, and remembers a request.
func (m *message) call() {
	v := m.connection
	key := methodKey{m.Direction.Sender().Peer(), m.method, m.Kind}
	definition, ok := v.schema.methods[key]
	if m.Kind == Request {
		key.kind = Response
		m.remember(&call{method: m.method, definition: v.schema.methods[key]})
	}
	kind := m.content.kind()
	switch {
	case ok && m.method == methodInitialize && kind == typeObject:
		m.initialize(definition, object(m.content.tree()))
	case ok && kind != typeNone && kind != typeNull:
		m.check(definition, m.content)
	case ok:
		// Left out and null are the same as empty, where nothing is required.
		if len(v.schema.flaws(definition, map[string]any{})) > 0 {
			m.wrong(agreed, "", `missing property "params"`)
		}
	case v.schema.extension(m.method):
		switch kind {
		case typeBoolean, typeNumber, typeString:
			m.wrong(agreed, "/params", "got %s, want object or array", kind)
		}
	default:
		rule, why := m.misplaced()
		m.wrong(rule, "/method", "%s", why)
	}
}

// misplaced says why a message must not have this method, and which requirement forbids it.
func (m *message) misplaced() (rule, why string) {
	method := m.method
	roles := m.connection.schema.roles(method)
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
func (m *message) remember(c *call) {
	v := m.connection
	m.key = idKey(m.id)
	pending := v.pending.Of(m.Direction == ToAgent)
	if again := pending.Get(m.key); again.Open() > 0 {
		m.wrong("SCH-2", "/id", "a request with this id is still unanswered")
	}
	if pending.Open() >= maxPending {
		if !v.lost[m.Direction] {
			m.mild(Advice, "", "", "more than %d unanswered requests: the answers to further ones are not validated", maxPending)
		}
		v.lost[m.Direction] = true
		return
	}
	c.method = clip(c.method)
	pending.Ask(m.key, c)
	m.asked = c
}

// answer finds the request that a response is for, an unknown one if there is none, or says what is wrong with its id.
func (m *message) answer() (c *call, problem string) {
	v := m.connection
	asked := m.Direction.Sender().Peer().direction()
	if m.id == nil {
		return &call{}, `missing property "id"`
	}
	c, ok := v.pending.Answer(m.Direction == ToAgent, idKey(m.id))
	switch {
	case ok:
		return c, ""
	case v.lost[asked], m.id.kind() == typeNull && m.Kind == ErrorReply: // the latter answers what could not be read
		return &call{}, ""
	}
	return &call{}, "answers no request"
}

// check checks a value by a definition; with the definition "" any value is right.
func (m *message) check(definition string, v *node) {
	if definition != "" {
		m.reportAll(m.connection.schema.check(definition, v))
	}
}

func (m *message) reportAll(flaws []flaw) {
	for _, f := range flaws {
		m.report(f)
	}
}

// idText is an id for readers.
func idText(id *node) string {
	if id.kind() == typeNumber {
		return strings.Clone(clip(string(id.number())))
	}
	text, err := json.Marshal(id.tree())
	if err != nil {
		return id.kind().String()
	}
	return clip(string(text))
}

// idKey is equal for ids of the same JSON type and value, and short.
func idKey(id *node) string {
	var key string
	switch id.kind() {
	case typeString:
		key = "s" + id.string()
	case typeNumber:
		key = "n" + string(id.number())
	case typeNone:
		key = typeNull.String() // rules do not tell them apart
	default:
		key = id.kind().String()
	}
	if len(key) > 2*sha256.Size {
		sum := sha256.Sum256([]byte(key))
		return "h" + string(sum[:])
	}
	return key
}
