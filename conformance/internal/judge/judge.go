// Package judge defines rules and applies them to a connection.
//
// A Rule checks an Event, which is one message together with the History of the connection before it. Only this package
// writes the history; rules read it and report with Event.Broken. A Judge has the schema check a message first, then
// applies the rules of the version in force, and finally adds the message to the history.
package judge

import (
	"bytes"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// Judge judges one connection; see conformance.Judge. It is not safe for concurrent use.
type Judge struct {
	connection *schema.Connection
	history    History
	told       Table[bool] // the keys of findings that rules report only once
	rules      map[int]*Index
	applies    func(*Rule) bool
	ended      bool
}

// maxTold bounds the number of keys in Judge.told.
const maxTold = 1 << 12

// New returns a judge for a new connection. Of the rules of each version, it uses those for which applies returns true,
// or all if applies is nil.
func New(s *schema.Schema, rules map[int]*Index, applies func(*Rule) bool) *Judge {
	return &Judge{connection: schema.NewConnection(s), history: newHistory(), told: NewTable[bool](maxTold), rules: rules,
		applies: applies}
}

// Message checks one message and returns its findings, those of the schema first. It does not retain line.
func (j *Judge) Message(direction finding.Direction, line []byte) []finding.Finding {
	checked := j.connection.Check(direction, line)
	e := Event{
		History: &j.history, judge: j,
		number: checked.Number, direction: direction, Kind: checked.Kind,
		Method: checked.Method, ID: checked.ID, key: checked.Key, Content: checked.Content.Member(),
		line:     bytes.TrimSuffix(line, []byte("\n")),
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

// Closed records which side closed the connection. Only the first call counts.
func (j *Judge) Closed(by finding.Side) {
	if j.history.ClosedBy == 0 {
		j.history.ClosedBy = by
	}
}

// End returns the findings about the end of the connection. Only the first call returns any.
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

// Version returns the version that both sides have agreed on, or 0 before that.
func (j *Judge) Version() int { return j.history.Version }

// inForce returns the version whose rules apply.
func (j *Judge) inForce() int {
	if version := j.connection.Schema.Version; version != 0 {
		return version
	}
	return max(1, j.history.Version)
}
