package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// members has the JSON texts of the members of a line's object that any format uses. A member is nil if it is absent.
type members struct {
	envelope
	jsonrpc []byte

	recording, meta, exit, from, raw, bytes, stderr, stderrBytes, lost, partial, closed, t []byte // of ours

	ts, kind, to, protocol, isError, payload, component, message []byte // of the conductor's trace

	copied []byte // of Zed's logs: _direction

	seq, command, event []byte // of DAP

	body []byte // of logs: a message, under several names
}

// scan reads the members of an object.
func (r *Reader) scan(line []byte) (m members, err error) {
	d := r.decoder
	d.Reset(line)
	for o := d.Object(); o.Next(); {
		var member *[]byte
		switch string(o.Name()) {
		case "jsonrpc":
			member = &m.jsonrpc
		case "id":
			member = &m.id
		case "method":
			member = &m.method
		case "params":
			member = &m.params
		case "result":
			member = &m.result
		case "error":
			member = &m.failure
		case "recording":
			member = &m.recording
		case "meta":
			member = &m.meta
		case "exit":
			member = &m.exit
		case "from":
			member = &m.from
		case "raw":
			member = &m.raw
		case "bytes":
			member = &m.bytes
		case "stderr":
			member = &m.stderr
		case "stderrBytes":
			member = &m.stderrBytes
		case "lost":
			member = &m.lost
		case "partial":
			member = &m.partial
		case "closed":
			member = &m.closed
		case "t":
			member = &m.t
		case "ts":
			member = &m.ts
		case "type":
			member = &m.kind
		case "to":
			member = &m.to
		case "protocol":
			member = &m.protocol
		case "is_error":
			member = &m.isError
		case "payload":
			member = &m.payload
		case "component":
			member = &m.component
		case "message":
			member = &m.message
		case "_direction":
			member = &m.copied
		case "_type":
			member = &m.kind
		case "msg", "data", "line", "json", "content", "frame", "packet":
			member = &m.body
		case "seq":
			member = &m.seq
		case "command":
			member = &m.command
		case "event":
			member = &m.event
		}
		at := d.Offset()
		d.Skip()
		if member != nil && d.Err() == nil {
			*member = d.Slice(at)
		}
	}
	return m, d.End()
}

// takeLine reads one line that is not empty.
func (r *Reader) takeLine(line []byte, last bool) {
	switch line[0] {
	case '{':
		m, err := r.scan(line)
		if err == nil {
			r.takeObject(line, &m)
			return
		}
		r.takeBroken(line, last, err)
	case '[':
		var n nesting
		_, closed := n.read(line)
		rest := bytes.TrimSpace(line[1:])
		switch {
		case closed && r.takeArray(line):
		case !closed && !last && len(rest) > 0 && rest[0] == '{' &&
			(bytes.Contains(rest, []byte(`"_direction"`)) || bytes.Contains(rest, []byte(`"jsonrpc"`))):
			r.array = true
			r.takePart(rest, last)
		default:
			r.takeText(line, last)
		}
	default:
		r.takeText(line, last)
	}
}

// takeBroken reads a line that begins like an object but is not exactly one.
func (r *Reader) takeBroken(line []byte, last bool, err error) {
	var n nesting
	if end, closed := n.read(line); closed && end < len(line) {
		if m, err := r.scan(line[:end]); err == nil {
			// Files were concatenated without a newline between them.
			r.takeObject(line[:end], &m)
			if rest := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(line[end:]), []byte(","))); len(rest) > 0 {
				r.takeLine(rest, last)
			}
			return
		}
	}
	for _, beginning := range []string{`{"recording":`, `{"meta":`} {
		if at := bytes.LastIndex(line, []byte(beginning)); at > 0 {
			if m, err := r.scan(line[at:]); err == nil {
				r.bad(ErrTruncated, "before another recording")
				r.takeObject(line[at:], &m)
				return
			}
		}
	}
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		r.bad(ErrBinary, "contains NUL bytes")
	case last:
		r.bad(ErrTruncated, err.Error())
	default:
		r.bad(ErrNotJSON, err.Error())
	}
}

// takeObject reads a line that is an object.
func (r *Reader) takeObject(line []byte, m *members) {
	switch {
	case m.recording != nil && m.jsonrpc == nil:
		r.header(line, m)
	case m.jsonrpc == nil && m.from != nil &&
		(m.raw != nil && m.raw[0] != '{' || m.bytes != nil || m.stderr != nil || m.stderrBytes != nil || m.lost != nil):
		r.takeOurs(m)
	case m.copied != nil:
		r.takeCopied(m)
	case m.kind != nil && m.ts != nil && (m.from != nil && m.to != nil || m.component != nil):
		r.conductor.take(r, m)
	case m.seq != nil && m.kind != nil && (m.command != nil || m.event != nil) && m.jsonrpc == nil:
		r.skipProtocol("DAP")
	case m.isMessage():
		r.takeMessage(line, &m.envelope)
	case m.jsonrpc != nil:
		// An envelope without content is a malformed message whose sender cannot be determined.
		r.bad(ErrDirection, "not a request, a notification or a response")
	case r.takeWrapped(m):
	case m.exit != nil:
		r.takeEnd(m)
	case m.meta != nil:
		r.header(line, m)
	case r.ours:
		r.bad(ErrLine, "none of the members raw, bytes, stderr, lost and exit is present")
	default:
		r.skip("JSON without a message")
	}
}

// takeArray reads an array of messages on one line, and reports whether it was one.
func (r *Reader) takeArray(line []byte) bool {
	d := r.decoder
	d.Reset(line)
	var items [][]byte
	for a := d.Array(); a.Next(); {
		at := d.Offset()
		if d.Kind() != '{' {
			return false
		}
		d.Skip()
		if d.Err() == nil {
			items = append(items, d.Slice(at))
		}
	}
	if d.End() != nil || len(items) == 0 {
		return false
	}
	if first, err := r.scan(items[0]); err == nil && first.jsonrpc != nil {
		// A batch is one message, which the protocol does not have.
		for _, item := range items {
			if m, err := r.scan(item); err == nil && m.isMessage() {
				if d, _ := r.teller.tell(&m.envelope); d != 0 {
					r.message(Entry{Kind: KindMessage, Direction: d, Line: line})
					return true
				}
			}
		}
		r.bad(ErrDirection, "a batch")
		return true
	}
	for _, item := range items {
		if m, err := r.scan(item); err == nil {
			r.takeObject(item, &m)
		}
	}
	return true
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
	r.ours, r.ended, r.foreign = false, false, ""
	r.base, r.last = time.Time{}, time.Time{}
	return another
}

// header reads a line that begins a recording.
func (r *Reader) header(line []byte, m *members) {
	unfinished := r.ours && !r.ended
	if unfinished {
		r.bad(ErrNoEnd, "before another recording")
	}
	another := r.next()
	e := Entry{Kind: KindHeader, Header: &Header{}}
	if m.recording != nil {
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
		e.Header.Meta = slices.Clone(json.RawMessage(m.meta))
		var known struct {
			Cmd []string `json:"cmd"`
		}
		if json.Unmarshal(m.meta, &known) == nil { // other programs write other headers
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
func (r *Reader) takeOurs(m *members) {
	if r.ended {
		// The recording of another connection, without a header.
		r.next()
		r.bad(ErrConcatenated, "")
	}
	e := Entry{Kind: KindMessage, Time: r.timeSince(m.t, time.Millisecond)}
	switch from := text(m.from); from {
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
	case m.raw != nil:
		r.text, ok = appendText(r.text, m.raw)
	case m.bytes != nil:
		unbase(m.bytes)
	case m.stderr != nil:
		e.Kind, e.Direction = KindStderr, conformance.ToClient
		r.text, ok = appendText(r.text, m.stderr)
	case m.stderrBytes != nil:
		e.Kind, e.Direction = KindStderr, conformance.ToClient
		unbase(m.stderrBytes)
	default:
		r.bad(ErrLost, fmt.Sprintf("%s bytes from the %s", m.lost, e.Direction.Sender()))
		return
	}
	if !ok {
		r.bad(ErrLine, "the recorded line is not text")
		return
	}
	e.Line = r.text
	e.Partial = string(m.partial) == "true"
	if e.Kind == KindMessage {
		r.message(e)
	} else {
		r.add(e)
	}
}

// takeEnd reads the last line of a recording of this package's format.
func (r *Reader) takeEnd(m *members) {
	e := Entry{Kind: KindEnd, End: &End{}, Time: r.timeSince(m.t, time.Millisecond)}
	var line exit
	if err := json.Unmarshal(m.exit, &line); err != nil {
		r.note(&e, ErrLine, "exit: "+err.Error())
	}
	e.End.Code = line.Code
	if line.Signal != nil {
		e.End.Signal = *line.Signal
	}
	switch text(m.closed) {
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

// takeMessage reads a message in a format that may lack its sender.
func (r *Reader) takeMessage(line []byte, m *envelope) {
	if m.method != nil {
		if name := otherProtocol(m); name != "" {
			r.skipProtocol(name)
			return
		}
		if r.foreign != "" && text(m.method) != "initialize" {
			r.skip("messages of " + r.foreign)
			return
		}
		r.foreign = ""
		if text(m.method) == "initialize" && m.id != nil && r.conductor.zero() {
			r.checkRestart(m.id)
		}
	} else if r.foreign != "" {
		r.skip("messages of " + r.foreign)
		return
	}
	d, why := r.teller.tell(m)
	if d == 0 {
		r.bad(ErrDirection, why)
		r.messages++ // so that the file counts as a recording
		return
	}
	r.teller.see(d, m)
	r.message(Entry{Direction: d, Line: line})
}

// checkRestart checks whether an initialize request begins another connection in the same log, whose ids start again.
func (r *Reader) checkRestart(id []byte) {
	if r.teller.first == "" {
		r.teller.first = idKey(id)
		return
	}
	if r.teller.first != idKey(id) {
		return
	}
	r.next()
	r.teller.first = idKey(id)
	r.bad(ErrConcatenated, "")
}

// otherProtocol returns the name of a message's protocol if it is not ACP.
func otherProtocol(m *envelope) string {
	method := text(m.method)
	if method == "initialize" {
		version := find(m.params, "protocolVersion")
		switch {
		case find(m.params, "capabilities") == nil || find(m.params, "clientCapabilities") != nil:
		case len(version) > 0 && version[0] == '"':
			return "MCP"
		case version == nil:
			return "LSP"
		}
		return ""
	}
	group, rest, _ := strings.Cut(method, "/")
	switch group {
	case "textDocument", "workspace", "window", "client":
		if rest != "" {
			return "LSP"
		}
	case "initialized", "exit", "shutdown":
		if rest == "" {
			return "LSP"
		}
	case "tools", "resources", "prompts", "notifications", "sampling", "roots", "completion", "logging":
		if rest != "" {
			return "MCP"
		}
	}
	return ""
}

// skipProtocol reports once that the recording is of another protocol, and skips the rest of it.
func (r *Reader) skipProtocol(name string) {
	if r.foreign == name {
		r.skip("messages of " + name)
		return
	}
	r.foreign = name
	r.bad(ErrProtocol, name)
}

// takeWrapped reads an object that contains a message, and reports whether it does.
func (r *Reader) takeWrapped(m *members) bool {
	for _, line := range [][]byte{m.body, m.message, m.payload, m.raw, m.params} {
		if len(line) > 0 && line[0] == '"' {
			line, _ = appendText(nil, line)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		if inner, err := r.scan(line); err == nil && inner.isMessage() {
			r.log = true
			r.takeMessage(line, &inner.envelope)
			return true
		}
	}
	return false
}

// takeCopied reads a message from a copy of Zed's ACP logs, in which incoming means received by the editor. An answer
// has the method of its request, and its result or error as params.
func (r *Reader) takeCopied(m *members) {
	e := Entry{Direction: conformance.ToAgent}
	switch text(m.copied) {
	case "outgoing":
	case "incoming":
		e.Direction = conformance.ToClient
	case "stderr":
		e.Kind, e.Direction, e.Line = KindStderr, conformance.ToClient, []byte(text(m.params))
		r.add(e)
		return
	default:
		r.bad(ErrLine, fmt.Sprintf("_direction is %.100s", m.copied))
		return
	}
	if string(m.id) == "null" {
		m.id = nil
	}
	rebuilt := envelope{id: m.id, method: m.method, params: m.params}
	if string(m.params) == "null" {
		rebuilt.params = nil
	}
	if text(m.kind) == "response" {
		rebuilt = envelope{id: m.id}
		if code, message := find(m.params, "code"), find(m.params, "message"); code != nil && message != nil {
			rebuilt.failure = m.params
		} else {
			rebuilt.result = m.params
		}
	}
	r.addRebuilt(e, &rebuilt)
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
