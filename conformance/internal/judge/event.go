// What a rule sees: one message, beside the history as it was before the message, and how it reports.

package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// Event is one message, or the end of the connection (its kind is empty then, and number that of the last message).
type Event struct {
	*History // of all messages before this one

	number    int       // of the message, from 1
	time      time.Time // zero if it is not known
	direction finding.Direction
	Kind      finding.Kind // empty if the line is not a message
	// Method is the method of a request or notification, or of the request that an answer is for; empty if it is not
	// known.
	Method string
	ID     string // JSON text, empty when there is none
	key    string // the IDKey of a request
	Update string // the kind of a session/update
	// Content is the params, the result or the error.
	Content *schema.Value
	// Request is what an answer answers; nil if it is not known.
	Request *Request
	// Session is the one that the message, or the request of the answer, names; nil if it names none or one that the
	// history does not know.
	Session *Session
	line    []byte
	// remembered says of a request that its answer will be known as such.
	remembered bool

	judge    *Judge
	Rule     *Rule
	self     *finding.Evidence // made when it is first needed
	findings []finding.Finding
	refused  int // how many of the findings are of the schema
}

// Sender is the side that wrote the message.
func (e *Event) Sender() finding.Side { return e.direction.Sender() }

// Has reports whether the content has a value at the end of the path, be it null; Given whether it is not null. Text returns
// a string, "" where there is none.
func (e *Event) Has(path ...string) bool    { return e.Content.Present(path...) }
func (e *Event) Given(path ...string) bool  { return e.Content.Given(path...) }
func (e *Event) Text(path ...string) string { return e.Content.Text(path...) }

// evidence is the message itself, to be kept by the history or shown by a later finding.
func (e *Event) evidence() *finding.Evidence {
	if e.self == nil {
		e.self = &finding.Evidence{
			Number: e.number, Direction: e.direction, Kind: e.Kind,
			Method: strings.Clone(finding.Clip(e.Method)), ID: strings.Clone(e.ID), Excerpt: finding.Clip(string(e.line[:min(len(e.line), 2*finding.MaxText)])),
		}
	}
	return e.self
}

// Breach is a finding that a rule adds evidence to. Adding to one that does not count has no effect.
type Breach struct {
	e  *Event
	at int // index of the finding; -1 if it does not count
}

// Broken reports that the message breaks the rule: at a place (a JSON pointer in the content, "" for the whole), and
// in what way. Where the schema refused the same value, that is enough, and the rule is silent.
func (e *Event) Broken(pointer, format string, args ...any) Breach {
	if len(e.findings) >= 2*schema.MaxFindings {
		return Breach{e, -1}
	}
	for _, f := range e.findings[:e.refused] {
		if f.Pointer == pointer && pointer != "" && f.Definition != finding.Envelope && f.Rule != schema.Custom {
			return Breach{e, -1}
		}
	}
	return e.add(finding.Finding{
		Side: e.Sender(), Number: e.number, Direction: e.direction, Kind: e.Kind, Method: strings.Clone(finding.Clip(e.Method)), ID: strings.Clone(e.ID),
		Pointer: pointer, Message: finding.Clip(fmt.Sprintf(format, args...)),
	})
}

// BrokenAt reports that an earlier message breaks the rule, which only shows now: at the end of the connection, for
// example.
func (e *Event) BrokenAt(at *finding.Evidence, format string, args ...any) Breach {
	side := e.Rule.Side
	if side == 0 { // the one who was asked
		side = at.Direction.Sender().Peer()
	}
	return e.add(finding.Finding{
		Side: side, Number: at.Number, Direction: at.Direction, Kind: at.Kind, Method: at.Method, ID: at.ID,
		Message: finding.Clip(fmt.Sprintf(format, args...)),
	})
}

func (e *Event) add(f finding.Finding) Breach {
	if len(e.findings) >= 2*schema.MaxFindings {
		return Breach{e, -1}
	}
	f.Rule, f.Level = e.Rule.ID, e.Rule.Level
	e.findings = append(e.findings, f)
	return Breach{e, len(e.findings) - 1}
}

// Because adds a message that proves the finding; nil adds nothing.
func (r Breach) Because(at *finding.Evidence, why string) Breach {
	if at != nil && r.at >= 0 {
		f := &r.e.findings[r.at]
		shown := *at
		shown.Why = why
		f.Evidence = append(f.Evidence, shown)
	}
	return r
}

// Mildly makes the finding less grave than its requirement: what was seen makes a fault likely and does not prove it.
func (r Breach) Mildly(level finding.Level) Breach {
	if r.at >= 0 {
		r.e.findings[r.at].Level = level
	}
	return r
}

// Sound reports whether the schema has nothing to say about a place in the content, what is within it, and what it is in.
func (e *Event) Sound(pointer string) bool {
	for _, f := range e.findings[:e.refused] {
		if f.Definition != finding.Envelope && f.Rule != schema.Custom && (isWithin(f.Pointer, pointer) || isWithin(pointer, f.Pointer)) {
			return false
		}
	}
	return true
}

// isWithin reports whether one JSON pointer is equal to another or below it.
func isWithin(pointer, above string) bool {
	below, ok := strings.CutPrefix(pointer, above)
	return ok && (below == "" || below[0] == '/')
}

// OpenNames leads to the open names of the message.
func (e *Event) OpenNames() *schema.OpenNames {
	handler := e.Sender().Peer()
	if e.Kind == finding.Response {
		handler = e.Sender()
	}
	return e.judge.connection.Schema.OpenNamesOf(handler, e.Method, e.Kind)
}

// Once reports whether the rule was never told this key before on this connection: for what would otherwise be
// reported again with each message, such as for each update of an unknown session.
func (e *Event) Once(key string) bool {
	k := e.Rule.ID + " " + Short(key)
	if _, again := e.judge.told.Get(k); again {
		return false
	}
	e.judge.told.put(k, true)
	return true
}

// Needs reports a message that the other side has not stated the capability for.
func (e *Event) Needs(side *Abilities, capability string) {
	if !side.Can(capability) {
		e.Broken("", "the %s does not state the capability %s", e.Sender().Peer(), capability).
			Because(side.At, "its capabilities")
	}
}
