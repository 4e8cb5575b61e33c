// Package judge has what rules are made of, and applies them to a connection.
//
// A Rule looks at an Event: one message, and the History of the connection before it. Only this package writes the history;
// rules read it, and report with Event.Broken. Judge lets the schema check a message, then the rules of the version in
// force, and then adds the message to the history.
package judge

import (
	"bytes"
	"time"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// Judge judges one connection; see conformance.Judge. It is not safe for concurrent use.
type Judge struct {
	connection *schema.Connection
	history    History
	told       Table[bool] // what rules report once
	rules      map[int]*Index
	applies    func(*Rule) bool
	ended      bool
}

// maxTold bounds what a judge remembers to have reported.
const maxTold = 1 << 12

// New returns a judge for a new connection, with the rules of each version, of which those are used that applies says;
// nil says all.
func New(s *schema.Schema, rules map[int]*Index, applies func(*Rule) bool) *Judge {
	return &Judge{connection: schema.NewConnection(s), history: newHistory(), told: NewTable[bool](maxTold), rules: rules, applies: applies}
}

// Message checks one message and returns its findings, those of the schema first. It keeps nothing of the line.
func (j *Judge) Message(direction finding.Direction, line []byte, at time.Time) []finding.Finding {
	checked := j.connection.Check(direction, line)
	defer j.connection.Release()
	e := Event{
		History: &j.history, judge: j,
		number: checked.Number, time: at, direction: direction, Kind: checked.Kind,
		Method: checked.Method, ID: checked.ID, key: checked.Key, Content: checked.Content.Member(), line: bytes.TrimSuffix(line, []byte("\n")),
		findings: checked.Findings, refused: len(checked.Findings), remembered: checked.Asked != nil,
	}
	if e.Kind == finding.Request || e.Kind == finding.Notification {
		if e.Method == MethodUpdate {
			e.Update = e.Text("update", "sessionUpdate")
		}
		e.Session = j.history.Session(e.Text("sessionId"))
	}
	j.history.InForce = j.inForce()
	if checked.Answered != nil {
		if e.Request, _ = checked.Answered.Memo.(*Request); e.Request != nil {
			e.Session = e.Request.session
		}
	}
	if x := j.rules[j.history.InForce]; x != nil {
		x.apply(&e)
	}
	j.history.take(&e)
	if checked.Asked != nil {
		checked.Asked.Memo = j.history.asked
	}
	return e.findings
}

// Closed says that a side closed the connection; only the first call counts.
func (j *Judge) Closed(by finding.Side) {
	if j.history.ClosedBy == 0 {
		j.history.ClosedBy = by
	}
}

// End returns what the end of the connection shows, at the first call.
func (j *Judge) End() []finding.Finding {
	if j.ended {
		return nil
	}
	j.ended = true
	e := Event{History: &j.history, judge: j, number: j.connection.Number}
	if x := j.rules[j.history.InForce]; x != nil {
		for _, e.Rule = range x.atEnd {
			if j.applies == nil || j.applies(e.Rule) {
				e.Rule.End(&e)
			}
		}
	}
	return e.findings
}

// Version is the version that both sides have agreed on, 0 before.
func (j *Judge) Version() int { return j.history.Version }

// inForce is the version whose rules apply.
func (j *Judge) inForce() int {
	if version := j.connection.Schema.Version; version != 0 {
		return version
	}
	return max(1, j.history.Version)
}
