// What a rule sees: one message, beside the history as it was before the message, and how it reports.

package conformance

import (
	"fmt"
	"strings"
	"time"
)

// event is one message, or the end of the connection (its kind is empty then, and number that of the last message).
type event struct {
	*history // of all messages before this one

	number    int       // of the message, from 1
	time      time.Time // zero if it is not known
	direction Direction
	kind      Kind // empty if the line is not a message
	// method is the method of a request or notification, or of the request that an answer is for; empty if it is not
	// known.
	method string
	id     string // JSON text, empty when there is none
	key    string // the idKey of a request
	update string // the kind of a session/update
	// content is the params, the result or the error.
	content value
	// request is what an answer answers; nil if it is not known.
	request *request
	// session is the one that the message, or the request of the answer, names; nil if it names none or one that the
	// history does not know.
	session *session
	line    []byte
	// remembered says of a request that its answer will be known as such.
	remembered bool

	judge    *core
	rule     *rule
	self     *Evidence // made when it is first needed
	findings []Finding
	refused  int // how many of the findings are of the schema
}

// sender is the side that wrote the message.
func (e *event) sender() Side { return e.direction.Sender() }

// has reports whether the content has a value at the end of the path, be it null; given whether it is not null; text
// is a string, "" where there is none.
func (e *event) has(path ...string) bool    { return present(e.content, path...) }
func (e *event) given(path ...string) bool  { return given(e.content, path...) }
func (e *event) text(path ...string) string { return text(e.content, path...) }

// evidence is the message itself, to be kept by the history or shown by a later finding.
func (e *event) evidence() *Evidence {
	if e.self == nil {
		e.self = &Evidence{
			Number: e.number, Direction: e.direction, Kind: e.kind,
			Method: strings.Clone(clip(e.method)), ID: strings.Clone(e.id), Excerpt: clip(string(e.line[:min(len(e.line), 2*maxText)])),
		}
	}
	return e.self
}

// report is a finding that a rule adds evidence to. What is done with the report of a finding that does not count has no
// effect.
type report struct {
	e  *event
	at int // index of the finding; -1 if it does not count
}

// broken reports that the message breaks the rule: at a place (a JSON pointer in the content, "" for the whole), and
// in what way. Where the schema refused the same value, that is enough, and the rule is silent.
func (e *event) broken(pointer, format string, args ...any) report {
	if len(e.findings) >= 2*maxFindings {
		return report{e, -1}
	}
	for _, f := range e.findings[:e.refused] {
		if f.Pointer == pointer && pointer != "" && f.Definition != Envelope && f.Rule != custom {
			return report{e, -1}
		}
	}
	return e.add(Finding{
		Side: e.sender(), Number: e.number, Direction: e.direction, Kind: e.kind, Method: strings.Clone(clip(e.method)), ID: strings.Clone(e.id),
		Pointer: pointer, Message: clip(fmt.Sprintf(format, args...)),
	})
}

// brokenAt reports that an earlier message breaks the rule, which only shows now: at the end of the connection, for
// example.
func (e *event) brokenAt(at *Evidence, format string, args ...any) report {
	side := e.rule.Side
	if side == 0 { // the one who was asked
		side = at.Direction.Sender().Peer()
	}
	return e.add(Finding{
		Side: side, Number: at.Number, Direction: at.Direction, Kind: at.Kind, Method: at.Method, ID: at.ID,
		Message: clip(fmt.Sprintf(format, args...)),
	})
}

func (e *event) add(f Finding) report {
	if len(e.findings) >= 2*maxFindings {
		return report{e, -1}
	}
	f.Rule, f.Level = e.rule.ID, e.rule.Level
	e.findings = append(e.findings, f)
	return report{e, len(e.findings) - 1}
}

// because adds a message that proves the finding; nil adds nothing.
func (r report) because(at *Evidence, why string) report {
	if at != nil && r.at >= 0 {
		f := &r.e.findings[r.at]
		shown := *at
		shown.Why = why
		f.Evidence = append(f.Evidence, shown)
	}
	return r
}

// mildly makes the finding less grave than its requirement: what was seen makes a fault likely and does not prove it.
func (r report) mildly(level Level) report {
	if r.at >= 0 {
		r.e.findings[r.at].Level = level
	}
	return r
}

// sound reports whether the schema has nothing to say about a place in the content, what is within it, and what it is in.
func (e *event) sound(pointer string) bool {
	for _, f := range e.findings[:e.refused] {
		if f.Definition != Envelope && f.Rule != custom && (within(f.Pointer, pointer) || within(pointer, f.Pointer)) {
			return false
		}
	}
	return true
}

// within reports whether one JSON pointer is equal to another or below it.
func within(pointer, above string) bool {
	below, ok := strings.CutPrefix(pointer, above)
	return ok && (below == "" || below[0] == '/')
}

// openNames leads to the open names of the message.
func (e *event) openNames() *openNames {
	handler := e.sender().Peer()
	if e.kind == Response {
		handler = e.sender()
	}
	return e.judge.connection.schema.openNamesOf(handler, e.method, e.kind)
}

// once reports whether the rule was never told this key before on this connection: for what would otherwise be
// reported again with each message, such as for each update of an unknown session.
func (e *event) once(key string) bool {
	k := e.rule.ID + " " + short(key)
	if _, again := e.judge.told.get(k); again {
		return false
	}
	e.judge.told.put(k, true)
	return true
}

// needs reports a message that the other side has not stated the capability for.
func (e *event) needs(side *abilities, capability string) {
	if !side.can(capability) {
		e.broken("", "the %s does not state the capability %s", e.sender().Peer(), capability).
			because(side.at, "its capabilities")
	}
}
