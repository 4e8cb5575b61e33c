package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	account "github.com/acpgo/sdk/internal/ledger"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

// Connection checks the messages of one connection, in the order in which they were written: the JSON-RPC envelope of
// each, and its content by the right definition. It remembers only the unanswered requests. It is not safe for
// concurrent use.
type Connection struct {
	versions map[int]*Schema // of a negotiated connection

	Schema  *Schema
	pending account.Ledger[*Call]      // the requests of the client count as sent
	Number  int                        // the number of messages so far
	lost    map[finding.Direction]bool // there were more requests than maxPending, so unmatched answers are accepted
}

// Call is an unanswered request. Its definition is that of its result, or "" if every result is valid.
type Call struct {
	method     string
	definition string
	Memo       any // for the judge; nil without one
}

// maxPending bounds the unanswered requests of one direction that a validator remembers.
const maxPending = 1 << 16

// NewConnection returns the state of a new connection.
func NewConnection(schema *Schema) *Connection {
	c := &Connection{versions: schema.versions, Schema: schema, lost: map[finding.Direction]bool{}}
	c.pending.Sent.Forget, c.pending.Received.Forget = true, true
	if c.versions != nil {
		c.Schema = c.versions[1] // until initialize negotiates another version
	}
	return c
}

// Check checks one message. The line may end with a newline, and is not retained.
func (c *Connection) Check(direction finding.Direction, line []byte) Message {
	c.Number++
	m := Message{connection: c, Finding: finding.Finding{Direction: direction, Side: direction.Sender(), Number: c.Number}}
	m.read(bytes.TrimSuffix(line, []byte("\n")))
	return m
}

// Message is one message while it is being checked. Each of its findings is a copy of the embedded one, with more
// fields set.
type Message struct {
	finding.Finding // without the method
	connection      *Connection
	id              *Value // nil if there is none
	Content         *Value // the params, the result or the error; nil if there is none
	Method          string // in full
	Key             string // the IDKey of a request
	Asked           *Call  // the remembered request, if this is one; nil if it was not remembered
	Answered        *Call  // the request that an answer is for; nil if unknown
	Findings        []finding.Finding
}

// add adds findings about the content.
func (m *Message) add(flaws ...flaw) {
	for _, f := range flaws {
		found := m.Finding
		found.Method = finding.Clip(m.Method)
		found.Rule, found.Level = f.rule, requirement.LevelOf(f.rule)
		found.Pointer, found.Message, found.Definition = f.pointer, f.message, f.definition
		m.Findings = append(m.Findings, found)
	}
}

// wrong adds a finding about the envelope.
func (m *Message) wrong(rule, pointer, format string, args ...any) {
	m.add(flaw{rule, pointer, finding.Clip(fmt.Sprintf(format, args...)), finding.Envelope})
}

// mild adds a finding about the envelope with a level of its own.
func (m *Message) mild(level finding.Level, rule, pointer, format string, args ...any) {
	m.wrong(rule, pointer, format, args...)
	m.Findings[len(m.Findings)-1].Level = level
}

// noMessage returns the requirement that the sender breaks by writing something other than a message.
func (m *Message) noMessage() string {
	if m.Direction == finding.ToAgent {
		return "TRN-6"
	}
	return "TRN-5"
}

func (m *Message) read(line []byte) {
	if !utf8.Valid(line) {
		m.wrong("TRN-1", "", "the line is not UTF-8")
		return
	}
	if bytes.ContainsRune(line, '\n') {
		m.wrong("TRN-4", "", "the message contains a newline")
	}
	root, again, err := read(line)
	switch err {
	case nil:
	case errTooManyValues:
		m.mild(finding.Advice, "", "", "%v", err)
		return
	default:
		m.wrong(m.noMessage(), "", "%v", err)
		return
	}
	switch {
	case root.kind() == typeObject:
		m.envelope(root)
	case root.kind() == typeArray && root.Len() > 0:
		m.wrong("TRN-3", "", "got a batch, want one message per line")
		return
	default:
		m.wrong(m.noMessage(), "", "got %s, want a JSON-RPC message", root.kind())
		return
	}
	for _, pointer := range again {
		m.mild(finding.Should, Agreed, pointer, "the member occurs twice")
	}
}

// envelope checks the members of the JSON-RPC message and then its content.
func (m *Message) envelope(root *Value) {
	var version, method, params, result, failure *Value
	var others []string
	for _, member := range root.inside {
		switch name := member.memberName; name {
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
	m.Kind, m.Content = kindOf(m.id, method, result, failure), params
	isText := method.kind() == typeString
	m.Method = method.Text()
	var stranger string
	switch m.Kind {
	case finding.Response:
		m.Content = result
	case finding.ErrorReply:
		m.Content = failure
	}
	if m.Kind == finding.Response || m.Kind == finding.ErrorReply {
		// This comes first, so that every finding names the method.
		m.Answered, stranger = m.answer()
		m.Method = m.Answered.method
	}
	switch {
	case m.Method != MethodInitialize:
	case m.Kind == finding.Request && m.Direction == finding.ToAgent, m.Kind == finding.Response &&
		m.Direction == finding.ToClient:
		m.connection.negotiate(m.Kind, m.Content)
	}
	switch {
	case version == nil:
		m.wrong("SCH-4", "", `missing property "jsonrpc"`)
	case version.Text() != "2.0":
		m.wrong("SCH-4", "/jsonrpc", `is not "2.0"`)
	}
	if m.Kind == "" {
		rule := m.noMessage()
		if m.id != nil {
			rule = "OVW-3" // meant as an answer
		}
		m.wrong(rule, "", "not a request, a notification or a response")
		return
	}
	if m.id != nil {
		m.checkID()
	}
	if m.Kind != finding.Response && result != nil {
		others = append(others, "result")
	}
	if m.Kind != finding.ErrorReply && failure != nil {
		others = append(others, "error")
	}
	if (m.Kind == finding.Response || m.Kind == finding.ErrorReply) && params != nil {
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
	case m.Kind == finding.ErrorReply:
		m.check(m.connection.Schema.failure, m.Content)
	case m.Kind == finding.Response:
		m.check(m.Answered.definition, m.Content)
	case isText:
		m.call()
	default:
		m.wrong(Agreed, "/method", "got %s, want string", method.kind())
		if m.Kind == finding.Request {
			m.remember(&Call{}) // the error that answers it may carry its id
		}
	}
}

// kindOf determines the kind of a message from the members that it has.
func kindOf(id, method, result, failure *Value) finding.Kind {
	switch {
	case method != nil && id != nil:
		return finding.Request
	case method != nil:
		return finding.Notification
	case failure != nil:
		return finding.ErrorReply
	case result != nil:
		return finding.Response
	}
	return ""
}

// refuse reports members that messages of this kind do not have. Those of another kind break OVW-3.
func (m *Message) refuse(names []string) {
	telling := "method"
	if m.Kind == finding.ErrorReply {
		telling = "error"
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == "result" || name == "error":
			m.wrong("OVW-3", Pointer("", name), "not allowed together with %q", telling)
		case len(m.Findings) < MaxFindings:
			m.wrong(Custom, Pointer("", name), "unknown member %q", finding.Clip(name))
		}
	}
}

// checkID checks an id, by the schema's definition if it has one.
func (m *Message) checkID() {
	null := m.id.kind() == typeNull
	if null && m.Kind == finding.ErrorReply {
		return // JSON-RPC's answer to a message that could not be read
	}
	if name := m.connection.Schema.id; name != "" {
		refused := m.connection.Schema.check(name, m.id.tree())
		for _, f := range refused {
			m.add(flaw{"SCH-2", "/id" + f.pointer, f.message, f.definition})
		}
		if len(refused) > 0 {
			return
		}
	} else if !accepts([]string{"string", "integer", "null"}, m.id.tree()) {
		m.wrong("SCH-2", "/id", "got %s, want string or integer or null", m.id.kind())
	}
	if null && m.Kind == finding.Request {
		m.wrong("SCH-3", "/id", "the id of a request should not be null")
	}
}

// call checks a request or notification, and remembers a request.
func (m *Message) call() {
	v := m.connection
	key := methodKey{m.Direction.Sender().Peer(), m.Method, m.Kind}
	definition, ok := v.Schema.methods[key]
	if m.Kind == finding.Request {
		key.kind = finding.Response
		m.remember(&Call{method: m.Method, definition: v.Schema.methods[key]})
	}
	kind := m.Content.kind()
	switch {
	case ok && m.Method == MethodInitialize && kind == typeObject:
		m.initialize(definition, object(m.Content.tree()))
	case ok && kind != typeNone && kind != typeNull:
		m.check(definition, m.Content)
	case ok:
		// Absent params and null are the same as empty params, if no member is required.
		if len(v.Schema.check(definition, map[string]any{})) > 0 {
			m.wrong(Agreed, "", `missing property "params"`)
		}
	case v.Schema.extension(m.Method):
		switch kind {
		case typeBoolean, typeNumber, typeString:
			m.wrong(Agreed, "/params", "got %s, want object or array", kind)
		}
	default:
		rule, why := m.misplaced()
		m.wrong(rule, "/method", "%s", why)
	}
}

// misplaced returns the reason why a message must not have this method, and the requirement that forbids it.
func (m *Message) misplaced() (rule, why string) {
	method := m.Method
	roles := m.connection.Schema.roles(method)
	if len(roles) == 0 {
		return "EXT-3", fmt.Sprintf("unknown method %q", finding.Clip(method))
	}
	to := m.Direction.Sender().Peer()
	for _, role := range roles {
		if role.handler == to {
			return Agreed, fmt.Sprintf("%s is a %s, not a %s", method, role.kind, m.Kind)
		}
	}
	return Agreed, fmt.Sprintf("%s goes to the %s, not to the %s", method, roles[0].handler, to)
}

// remember stores a request until it is answered.
func (m *Message) remember(c *Call) {
	v := m.connection
	m.Key = IDKey(m.id)
	pending := v.pending.Of(m.Direction == finding.ToAgent)
	if again := pending.Get(m.Key); again.Open() > 0 {
		m.wrong("SCH-2", "/id", "an earlier request with this id is still unanswered")
	}
	if pending.Open() >= maxPending {
		if !v.lost[m.Direction] {
			m.mild(finding.Advice, "", "", "more than %d unanswered requests: the answers to further ones are not validated",
				maxPending)
		}
		v.lost[m.Direction] = true
		return
	}
	c.method = finding.Clip(c.method)
	pending.Ask(m.Key, c)
	m.Asked = c
}

// answer returns the request that a response is for. If there is none, it returns an empty Call and the fault of the
// id, if any.
func (m *Message) answer() (c *Call, problem string) {
	v := m.connection
	asked := m.Direction.Sender().Peer().Direction()
	if m.id == nil {
		return &Call{}, `missing property "id"`
	}
	c, ok := v.pending.Answer(m.Direction == finding.ToAgent, IDKey(m.id))
	switch {
	case ok:
		return c, ""
	case v.lost[asked], m.id.kind() == typeNull &&
		m.Kind == finding.ErrorReply: // the latter answers a message that could not be read
		return &Call{}, ""
	}
	return &Call{}, "no unanswered request has this id"
}

// check checks a value by a definition. With the definition "", every value is valid.
func (m *Message) check(definition string, v *Value) {
	if definition != "" {
		m.add(m.connection.Schema.check(definition, v.tree())...)
	}
}

// idText returns an id for display.
func idText(id *Value) string {
	if id.kind() == typeNumber {
		return finding.Clip(string(id.number()))
	}
	text, err := json.Marshal(id.tree())
	if err != nil {
		return id.kind().String()
	}
	return finding.Clip(string(text))
}

// IDKey returns a short key that is equal for ids of the same JSON type and value.
func IDKey(id *Value) string {
	var key string
	switch id.kind() {
	case typeString:
		key = "s" + id.Text()
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
