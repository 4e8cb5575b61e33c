// The judge of one connection: the schema and the rules.

package conformance

import (
	"bytes"
	"sync"
)

// Judge checks the messages of one connection by the schema and by the rules of the protocol, in the order in which
// they passed. Its memory is bounded. Its methods are safe for concurrent use; the order of the calls is the order of
// the messages.
//
// A judge may stand at either end or between them. It sees one order of messages; two that cross on their way pass each
// end in another order. A finding is reported only if no order explains what was seen.
type Judge struct {
	mu        sync.Mutex
	validator *Validator
	ledger    ledger
	told      table[bool] // what rules report once
	applies   func(*Rule) bool
	ended     bool
}

// JudgeOptions configure a Judge.
type JudgeOptions struct {
	// Rules says whether a rule is applied; nil applies all. What the schema and JSON-RPC say is reported in any case.
	Rules func(*Rule) bool
}

// NewJudge returns a judge for a new connection. The schema nil means what was published: versions 1 and 2, as the
// connection negotiates, each with its experimental features, since a recording does not say whether both sides agreed to
// use them. Options may be nil.
func NewJudge(schema *Schema, options *JudgeOptions) *Judge {
	if schema == nil {
		schema = published()
	}
	j := &Judge{validator: NewValidator(schema), ledger: newLedger(), told: newTable[bool](maxTold)}
	if options != nil {
		j.applies = options.Rules
	}
	return j
}

var published = sync.OnceValue(func() *Schema { return Negotiated(V1Unstable(), V2Unstable()) })

// maxTold bounds what a judge remembers to have reported.
const maxTold = 1 << 12

// Message checks one message and returns its findings, those of the schema first. It reads the message's Direction, Line
// and Time, and keeps nothing of the line.
func (j *Judge) Message(m Message) []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	checked := j.validator.judge(m.Direction, m.Line)
	defer j.validator.document.release()
	e := event{
		ledger: &j.ledger, judge: j,
		number: checked.Number, time: m.Time, direction: m.Direction, kind: checked.Kind,
		method: checked.method, id: checked.ID, key: checked.key, content: member(checked.content), line: bytes.TrimSuffix(m.Line, []byte("\n")),
		findings: checked.findings, refused: len(checked.findings), remembered: checked.asked != nil,
	}
	if e.kind == Request || e.kind == Notification {
		if e.method == methodUpdate {
			e.update = e.text("update", "sessionUpdate")
		}
		e.session = j.ledger.session(e.text("sessionId"))
	}
	j.ledger.inForce = j.version()
	if checked.answered != nil {
		if e.request = checked.answered.request; e.request != nil {
			e.session = e.request.session
		}
	}
	if x := j.index(); x != nil {
		x.judge(&e)
	}
	j.ledger.take(&e)
	if checked.asked != nil {
		checked.asked.request = j.ledger.asked
	}
	return e.findings
}

// Closed says that a side closed the connection, before End; only the first call counts. If nobody says it, the end of the
// connection proves less: a request may then be unanswered because the one who asked has left.
func (j *Judge) Closed(by Side) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ledger.closedBy == 0 {
		j.ledger.closedBy = by
	}
}

// End returns what the end of the connection shows: a request that was never answered, a terminal that was never released.
// The findings are about earlier messages, which their Number names. After the first call there is nothing more to say.
func (j *Judge) End() []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return nil
	}
	j.ended = true
	e := event{ledger: &j.ledger, judge: j, number: j.validator.number}
	if x := j.index(); x != nil {
		for _, e.rule = range x.atEnd {
			if j.applies == nil || j.applies(e.rule) {
				e.rule.end(&e)
			}
		}
	}
	return e.findings
}

// Version is the version of the protocol that both sides have agreed on, 0 before.
func (j *Judge) Version() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ledger.version
}

// index has the rules of the version in force.
func (j *Judge) index() *index { return indexes()[j.ledger.inForce] }

// version is the one whose rules apply.
func (j *Judge) version() int {
	if version := j.validator.schema.version; version != 0 {
		return version
	}
	return max(1, j.ledger.version)
}
