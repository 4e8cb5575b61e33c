package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// members has the JSON texts of the members of a line's object by name. A member is nil if it is absent.
type members map[string][]byte

// envelope returns the members of a JSON-RPC message.
func (m members) envelope() *envelope {
	return &envelope{id: m["id"], method: m["method"], params: m["params"], result: m["result"], failure: m["error"]}
}

// scan reads the members of an object.
func (r *Reader) scan(line []byte) (members, error) {
	m, d := members{}, r.decoder
	d.Reset(line)
	for o := d.Object(); o.Next(); {
		name, at := string(o.Name()), d.Offset()
		if d.Skip(); d.Err() == nil {
			m[name] = d.Slice(at)
		}
	}
	return m, d.End()
}

// takeLine reads one line that is not empty.
func (r *Reader) takeLine(line []byte, last bool) {
	if line[0] == '{' {
		m, err := r.scan(line)
		if err == nil {
			r.takeObject(line, m)
			return
		}
		r.broken(line, last, err.Error())
	} else if r.ours || r.messages > 0 {
		r.broken(line, last, "")
	} else {
		r.skip("text without a message")
	}
}

// broken reports a line that is not JSON.
func (r *Reader) broken(line []byte, last bool, why string) {
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		r.bad(ErrBinary, "contains NUL bytes")
	case last:
		r.bad(ErrTruncated, why)
	default:
		r.bad(ErrNotJSON, why)
	}
}

// takeObject reads a line that is an object.
func (r *Reader) takeObject(line []byte, m members) {
	plain := m["jsonrpc"] == nil
	_, traced := m["ts"]
	switch message := m.envelope(); {
	case plain && m["recording"] != nil:
		r.header(line, m)
	case plain && m["from"] != nil &&
		(m["raw"] != nil || m["bytes"] != nil || m["stderr"] != nil || m["stderrBytes"] != nil || m["lost"] != nil):
		r.takeOurs(m)
	case traced && m["type"] != nil && (m["from"] != nil && m["to"] != nil || m["component"] != nil):
		r.conductor.take(r, m)
	case message.isMessage():
		r.takeMessage(line, message)
	case !plain:
		// An envelope without content is a malformed message whose sender cannot be determined.
		r.bad(ErrDirection, "not a request, a notification or a response")
	case m["exit"] != nil:
		r.takeEnd(m)
	case m["meta"] != nil:
		r.header(line, m)
	case r.ours:
		r.bad(ErrLine, "none of the members raw, bytes, stderr, lost and exit is present")
	default:
		r.skip("JSON without a message")
	}
}

// message adds a message.
func (r *Reader) message(e Entry) {
	e.Kind = KindMessage
	r.messages++
	r.add(e)
}

// next begins another recording in the same file, and reports whether there was one before.
func (r *Reader) next() (another bool) {
	another = r.messages > 0 || r.ours || r.ended
	if another {
		r.connection++
	}
	r.teller, r.conductor = teller{}, conductor{}
	r.ours, r.ended = false, false
	r.base, r.last = time.Time{}, time.Time{}
	return another
}

// header reads a line that begins a recording.
func (r *Reader) header(line []byte, m members) {
	unfinished := r.ours && !r.ended
	if unfinished {
		r.bad(ErrNoEnd, "before another recording")
	}
	another := r.next()
	e := Entry{Kind: KindHeader, Header: &Header{}}
	if m["recording"] != nil {
		r.ours = true
		var h header
		if err := json.Unmarshal(line, &h); err != nil {
			r.note(&e, ErrLine, "header: "+err.Error())
		}
		e.Header = &Header{Tool: h.Tool, Version: h.Version, Command: h.Command, Versions: h.Versions, Masked: h.Masked,
			Meta: h.Meta}
		if h.Date != nil {
			e.Header.Date = *h.Date
		}
		if h.Recording > formVersion {
			r.note(&e, ErrNewer, fmt.Sprintf("%d, but this program supports %d", h.Recording, formVersion))
		}
	} else {
		e.Header.Meta = slices.Clone(json.RawMessage(m["meta"]))
		var known struct {
			Cmd []string `json:"cmd"`
		}
		if json.Unmarshal(m["meta"], &known) == nil { // other programs write other headers
			e.Header.Command = known.Cmd
		}
	}
	if r.base = e.Header.Date; r.base.IsZero() {
		r.base = time.Unix(0, 0).UTC()
	}
	if another {
		r.note(&e, ErrConcatenated, "")
	}
	r.add(e)
}

// takeOurs reads a line of this package's format.
func (r *Reader) takeOurs(m members) {
	if r.ended {
		// The recording of another connection, without a header.
		r.next()
		r.bad(ErrConcatenated, "")
	}
	e := Entry{Kind: KindMessage, Time: r.timeSince(m["t"], time.Millisecond)}
	switch from := text(m["from"]); from {
	case conformance.Client.String():
		e.Direction = conformance.ToAgent
	case conformance.Agent.String():
		e.Direction = conformance.ToClient
	default:
		r.bad(ErrLine, fmt.Sprintf("from is %.100q, expected client or agent", from))
		return
	}
	ok := true
	r.text = r.text[:0]
	unbase := func(value []byte) {
		n := len(value)
		if n < 2 || value[0] != '"' {
			ok = false
			return
		}
		var err error
		if r.text, err = base64.StdEncoding.AppendDecode(r.text, value[1:n-1]); err != nil {
			ok = false
		}
	}
	switch {
	case m["raw"] != nil:
		r.text, ok = appendText(r.text, m["raw"])
	case m["bytes"] != nil:
		unbase(m["bytes"])
	case m["stderr"] != nil:
		e.Kind, e.Direction = KindStderr, conformance.ToClient
		r.text, ok = appendText(r.text, m["stderr"])
	case m["stderrBytes"] != nil:
		e.Kind, e.Direction = KindStderr, conformance.ToClient
		unbase(m["stderrBytes"])
	default:
		r.bad(ErrLost, fmt.Sprintf("%s bytes from the %s", m["lost"], e.Direction.Sender()))
		return
	}
	if !ok {
		r.bad(ErrLine, "the recorded line is not text")
		return
	}
	e.Line = r.text
	e.Partial = string(m["partial"]) == "true"
	if e.Kind == KindMessage {
		r.message(e)
	} else {
		r.add(e)
	}
}

// takeEnd reads the last line of a recording of this package's format.
func (r *Reader) takeEnd(m members) {
	e := Entry{Kind: KindEnd, End: &End{}, Time: r.timeSince(m["t"], time.Millisecond)}
	var line exit
	if err := json.Unmarshal(m["exit"], &line); err != nil {
		r.note(&e, ErrLine, "exit: "+err.Error())
	}
	e.End.Code = line.Code
	if line.Signal != nil {
		e.End.Signal = *line.Signal
	}
	switch text(m["closed"]) {
	case conformance.Client.String():
		e.End.Closed = conformance.Client
	case conformance.Agent.String():
		e.End.Closed = conformance.Agent
	}
	r.ended = true
	r.add(e)
}

// timeSince returns the time of a line from the time since the recording's beginning.
func (r *Reader) timeSince(number []byte, unit time.Duration) time.Time {
	t, err := strconv.ParseFloat(string(number), 64)
	if err != nil || t < 0 || t > float64(1<<62)/float64(unit) {
		return time.Time{}
	}
	if r.base.IsZero() {
		r.base = time.Unix(0, 0).UTC()
	}
	return r.base.Add(time.Duration(t*float64(unit) + 0.5))
}

// takeMessage reads a message in a format that lacks its sender.
func (r *Reader) takeMessage(line []byte, m *envelope) {
	d, why := r.teller.tell(m)
	if d == 0 {
		r.bad(ErrDirection, why)
		r.messages++ // so that the file counts as a recording
		return
	}
	r.teller.see(d, m)
	r.message(Entry{Direction: d, Line: line})
}

// addRebuilt adds a message that is rebuilt from its members.
func (r *Reader) addRebuilt(e Entry, m *envelope) {
	b := []byte(`{"jsonrpc":"2.0"`)
	for _, member := range []struct {
		name  string
		value []byte
	}{{"id", m.id}, {"method", m.method}, {"params", m.params}, {"result", m.result}, {"error", m.failure}} {
		if member.value != nil {
			b = append(b, `,"`+member.name+`":`...)
			b = append(b, member.value...)
		}
	}
	e.Line = append(b, '}')
	r.message(e)
}
