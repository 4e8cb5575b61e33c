package judge

import (
	"fmt"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// Event is one message, or the end of the connection. For the end, Kind is empty and number is that of the last
// message.
type Event struct {
	*History // of all messages before this one

	number    int // of the message, from 1
	direction finding.Direction
	Kind      finding.Kind // empty if the line is not a message
	// Method is the method of a request or notification, or of the request that an answer is for. It is empty if
	// unknown.
	Method string
	ID     string // JSON text, empty if there is none
	key    string // the IDKey of a request
	Update string // the kind of a session/update
	// Content is the params, the result or the error.
	Content *schema.Value
	// Request is the request that an answer is for, nil if unknown.
	Request *Request
	// Session is the session that the message, or the request of the answer, names. It is nil if none is named or the
	// history does not know it.
	Session *Session
	line    []byte
	// remembered is set if this is a request whose answer can be matched to it.
	remembered bool

	judge    *Judge
	Rule     *Rule
	self     *finding.Evidence // made when it is first needed
	findings []finding.Finding
	refused  int // the number of findings at the beginning of the list that the schema made
}

// Sender returns the side that wrote the message.
func (e *Event) Sender() finding.Side { return e.direction.Sender() }

// Has reports whether the content has a value at the end of the path, even null; Given reports whether it has one other
// than null. Text returns a string, or "" if there is none.
func (e *Event) Has(path ...string) bool    { return e.Content.Present(path...) }
func (e *Event) Given(path ...string) bool  { return e.Content.Given(path...) }
func (e *Event) Text(path ...string) string { return e.Content.Text(path...) }

// evidence returns the message itself, for the history to keep or a later finding to show.
func (e *Event) evidence() *finding.Evidence {
	if e.self == nil {
		e.self = &finding.Evidence{
			Number: e.number, Direction: e.direction, Kind: e.Kind,
			Method: finding.Clip(e.Method), ID: e.ID,
			Excerpt: finding.Clip(string(e.line[:min(len(e.line), 2*finding.MaxText)])),
		}
	}
	return e.self
}

// Breach is a finding to which a rule can add evidence. If the finding was suppressed, its methods have no effect.
type Breach struct {
	e  *Event
	at int // index of the finding; -1 if it was suppressed
}

// Broken reports that the message breaks the rule, at a JSON pointer into the content ("" for all of it). Nothing is
// reported if the schema already refused the value there.
func (e *Event) Broken(pointer, format string, args ...any) Breach {
	if pointer != "" && e.refuses(pointer) {
		return Breach{e, -1}
	}
	return e.add(finding.Finding{
		Side: e.Sender(), Number: e.number, Direction: e.direction, Kind: e.Kind,
		Method: finding.Clip(e.Method), ID: e.ID,
		Pointer: pointer, Message: finding.Clip(fmt.Sprintf(format, args...)),
	})
}

// BrokenAt reports that an earlier message breaks the rule, if this becomes known only now, for example at the end of
// the connection.
func (e *Event) BrokenAt(at *finding.Evidence, format string, args ...any) Breach {
	side := e.Rule.Side
	if side == 0 { // the receiver of the message
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

// Because adds a message as evidence. It does nothing if at is nil.
func (r Breach) Because(at *finding.Evidence, why string) Breach {
	if at != nil && r.at >= 0 {
		f := &r.e.findings[r.at]
		shown := *at
		shown.Why = why
		f.Evidence = append(f.Evidence, shown)
	}
	return r
}

// Mildly gives the finding a milder level than its requirement has, because the evidence makes a fault likely but does
// not prove it.
func (r Breach) Mildly(level finding.Level) Breach {
	if r.at >= 0 {
		r.e.findings[r.at].Level = level
	}
	return r
}

// Sound reports whether the schema found no fault at a place in the content, inside it, or in the values that contain
// it.
func (e *Event) Sound(pointer string) bool {
	for _, f := range e.findings[:e.refused] {
		if f.Definition != finding.Envelope && f.Rule != schema.Custom &&
			(isWithin(f.Pointer, pointer) || isWithin(pointer, f.Pointer)) {
			return false
		}
	}
	return true
}

// isWithin reports whether pointer is equal to above or below it.
func isWithin(pointer, above string) bool {
	below, ok := strings.CutPrefix(pointer, above)
	return ok && (below == "" || below[0] == '/')
}

// OpenNames returns the open names of the message.
func (e *Event) OpenNames() *schema.OpenNames {
	handler := e.Sender().Peer()
	if e.Kind == finding.Response {
		handler = e.Sender()
	}
	return e.judge.connection.Schema.OpenNamesOf(handler, e.Method, e.Kind)
}

// Once reports whether this is the rule's first call with this key on the connection. Rules use it for faults that
// every further message would repeat, such as updates of an unknown session.
func (e *Event) Once(key string) bool {
	k := e.Rule.ID + " " + Short(key)
	if _, again := e.judge.told.Get(k); again {
		return false
	}
	e.judge.told.put(k, true)
	return true
}

// Needs reports the message if side does not advertise the capability that it needs.
func (e *Event) Needs(side *Abilities, capability string) {
	if !side.Can(capability) {
		e.Broken("", "the %s sent this, but the %s does not advertise %s", e.Sender(), e.Sender().Peer(), capability).
			Because(side.At, "its capabilities")
	}
}
