// What judges one connection: the schema and the rules.

package conformance

import (
	"bytes"
	"time"
)

// core is conformance.Judge without its lock.
type core struct {
	connection *connection
	history    history
	told       table[bool] // what rules report once
	rules      map[int]*index
	applies    func(*rule) bool
	ended      bool
}

// maxTold bounds what a judge remembers to have reported.
const maxTold = 1 << 12

// newCore returns a judge for a new connection, with the rules of each version, of which those are used that applies says;
// nil says all.
func newCore(schema *Schema, rules map[int]*index, applies func(*rule) bool) *core {
	return &core{connection: newConnection(schema), history: newHistory(), told: newTable[bool](maxTold), rules: rules, applies: applies}
}

// message checks one message and returns its findings, those of the schema first. It keeps nothing of the line.
func (j *core) message(direction Direction, line []byte, at time.Time) []Finding {
	checked := j.connection.check(direction, line)
	defer j.connection.release()
	e := event{
		history: &j.history, judge: j,
		number: checked.Number, time: at, direction: direction, kind: checked.Kind,
		method: checked.method, id: checked.ID, key: checked.key, content: member(checked.content), line: bytes.TrimSuffix(line, []byte("\n")),
		findings: checked.findings, refused: len(checked.findings), remembered: checked.asked != nil,
	}
	if e.kind == Request || e.kind == Notification {
		if e.method == methodUpdate {
			e.update = e.text("update", "sessionUpdate")
		}
		e.session = j.history.session(e.text("sessionId"))
	}
	j.history.inForce = j.inForce()
	if checked.answered != nil {
		if e.request, _ = checked.answered.memo.(*request); e.request != nil {
			e.session = e.request.session
		}
	}
	if x := j.rules[j.history.inForce]; x != nil {
		x.judge(&e)
	}
	j.history.take(&e)
	if checked.asked != nil {
		checked.asked.memo = j.history.asked
	}
	return e.findings
}

// closed says that a side closed the connection; only the first call counts.
func (j *core) closed(by Side) {
	if j.history.closedBy == 0 {
		j.history.closedBy = by
	}
}

// end returns what the end of the connection shows, at the first call.
func (j *core) end() []Finding {
	if j.ended {
		return nil
	}
	j.ended = true
	e := event{history: &j.history, judge: j, number: j.connection.number}
	if x := j.rules[j.history.inForce]; x != nil {
		for _, e.rule = range x.atEnd {
			if j.applies == nil || j.applies(e.rule) {
				e.rule.end(&e)
			}
		}
	}
	return e.findings
}

// agreedVersion is the version that both sides have agreed on, 0 before.
func (j *core) agreedVersion() int { return j.history.version }

// inForce is the version whose rules apply.
func (j *core) inForce() int {
	if version := j.connection.schema.version; version != 0 {
		return version
	}
	return max(1, j.history.version)
}
