package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/schema"
	"github.com/acpgo/sdk/conformance/recording"
)

// Recorded is a recorded conversation. It may be replayed any number of times, also concurrently.
type Recorded struct {
	name  string
	steps []*message
}

// message is one message of a recorded conversation.
type message struct {
	number int // the line of the file
	time   time.Time
	writer conformance.Side
	line   []byte
	subject
}

// subject is what a message is about.
type subject struct {
	kind   conformance.Kind // empty if the line is not a message
	method string           // of a request or notification, or of the answered request
	id     string           // as JSON, or empty
	update string           // the kind of update of a session/update

	members map[string]any // decoded
}

// ErrNoConversation means that a file has no connection with the requested number.
var ErrNoConversation = errors.New("the recording has no such connection")

// ReadRecorded reads one connection of a recording. The first connection is number 1. The name is for errors.
// ReadRecorded calls bad, which may be nil, for each bad line.
func ReadRecorded(name string, from *recording.Reader, connection int, bad func(error)) (*Recorded, error) {
	r := &Recorded{name: name}
	open := map[conformance.Side]map[string]string{conformance.Client: {}, conformance.Agent: {}}
	for {
		e, err := from.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if e.Err != nil && bad != nil {
			bad(fmt.Errorf("%s: %w", name, e.Err))
		}
		if e.Kind != recording.KindMessage || e.Connection != connection {
			continue
		}
		m := &message{number: e.Number, time: e.Time, writer: e.Direction.Sender(), line: bytes.Clone(e.Line)}
		m.subject = subjectOf(m.line)
		m.members = nil // decoded again for the comparison
		m.answers(open)
		r.steps = append(r.steps, m)
	}
	if len(r.steps) == 0 {
		return nil, fmt.Errorf("%s: %w: %d", name, ErrNoConversation, connection)
	}
	return r, nil
}

// answers records a request, or finds the method of the answered one.
func (m *message) answers(open map[conformance.Side]map[string]string) {
	switch m.kind {
	case conformance.Request:
		open[m.writer][m.id] = m.method
	case conformance.Response, conformance.ErrorReply:
		m.method = open[m.writer.Peer()][m.id]
		delete(open[m.writer.Peer()], m.id)
	}
}

// subjectOf returns the subject of a line.
func subjectOf(line []byte) (s subject) {
	var root any
	if decode(line, &root) != nil {
		return s
	}
	members, ok := root.(map[string]any)
	if !ok {
		return s
	}
	s.members = members
	id, hasID := members["id"]
	if hasID {
		if text, err := encode(id); err == nil { // cannot fail: it was decoded
			s.id = string(text)
		}
	}
	method, hasMethod := members["method"].(string)
	_, failed := members["error"]
	_, done := members["result"]
	switch {
	case hasMethod && hasID:
		s.kind, s.method = conformance.Request, method
	case hasMethod:
		s.kind, s.method = conformance.Notification, method
	case failed:
		s.kind = conformance.ErrorReply
	case done:
		s.kind = conformance.Response
	}
	if method == "session/update" {
		params, _ := members["params"].(map[string]any)
		update, _ := params["update"].(map[string]any)
		s.update, _ = update["sessionUpdate"].(string)
	}
	return s
}

// isAnswer reports whether the message is an answer.
func (s *subject) isAnswer() bool {
	return s.kind == conformance.Response || s.kind == conformance.ErrorReply
}

// same reports whether two messages have the same subject. Only then are they compared.
func (s *subject) same(other *subject) bool {
	if s.isAnswer() {
		return other.isAnswer() && s.id == other.id
	}
	return s.kind == other.kind && s.method == other.method && s.update == other.update
}

// String names a message, such as "session/update agent_message_chunk".
func (s *subject) String() string {
	method := cmp.Or(s.method, "a request")
	switch {
	case s.kind == "":
		return "a line that is not a message"
	case s.kind == conformance.ErrorReply:
		return "error answer to " + method
	case s.kind == conformance.Response:
		return "answer to " + method
	case s.update != "":
		return s.method + " " + s.update
	}
	return s.method
}

// flows reports whether the number of consecutive messages of this kind is arbitrary, because text is sent in pieces.
func (s *subject) flows() bool {
	return strings.HasSuffix(s.update, "_chunk") || s.update == "usage_update"
}

// volatile is a pattern for values that differ between runs. Unlike the patterns of a Script, these cannot be written
// in a transcript.
type volatile interface {
	match(got any, names *names, at string) error
}

// anyOf matches any value of a JSON type.
type anyOf string

func (want anyOf) match(got any, _ *names, at string) error {
	if kind := schema.TypeName(got); kind != string(want) {
		return fmt.Errorf("%s: got %s, want a value of type %s", place(at), text(got), string(want))
	}
	return nil
}

// items matches a list of any length in which each item matches one of these.
type items []any

func (want items) match(got any, names *names, at string) error {
	list, ok := got.([]any)
	if !ok {
		return fmt.Errorf("%s: got %s, want a value of type array", place(at), text(got))
	}
	if len(want) == 0 {
		return nil
	}
	for i, item := range list {
		var first error
		// The pattern at the same index comes first, then all others.
		for j := range want {
			before := len(names.bound)
			err := match(want[(i+j)%len(want)], item, names, at+"/"+strconv.Itoa(i))
			if err == nil {
				first = nil
				break
			}
			names.undo(before)
			if first == nil {
				first = err
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// identity matches an id that the peer may choose and must then keep using.
type identity struct{ name string }

func (want identity) match(got any, names *names, at string) error {
	if _, isText := got.(string); !isText {
		return fmt.Errorf("%s: got %s, want a value of type string", place(at), text(got))
	}
	return names.bindOrCompare(want.name, got, at)
}

// ignored matches anything.
type ignored struct{}

func (ignored) match(any, *names, string) error { return nil }

// identityName returns the name for an id in a recording. It includes the member's name, because ids of different
// things may be equal.
func identityName(member, value string) string { return member + "=" + value }

// isIdentity reports whether a member is an id.
func isIdentity(member string) bool {
	return member == "id" || strings.HasSuffix(member, "Id") || strings.HasSuffix(member, "_id")
}

// telling has the members whose values are part of the structure: they say what kind of thing an object is, or what
// happened.
var telling = map[string]bool{
	"jsonrpc": true, "method": true, "sessionUpdate": true, "type": true, "kind": true, "status": true, "stopReason": true,
	"outcome": true, "action": true, "role": true, "code": true, "protocolVersion": true,
}

// free has the members whose content ACP does not define.
var free = map[string]bool{"rawInput": true, "rawOutput": true, "data": true}

// pattern returns the pattern of a recorded message. If exact is set, it keeps all values except ids.
func (m *message) pattern(exact bool) any {
	var root any
	if decode(m.line, &root) != nil {
		return nil
	}
	members, ok := root.(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]any, len(members))
	for name, value := range members {
		switch {
		case name == "id" && m.kind == conformance.Request:
			out[name] = ignored{} // the peer chooses its request ids
		case name == "id", name == "error" && exact:
			out[name] = value
		case name == "_meta":
		default:
			out[name] = generalize(name, value, exact)
		}
	}
	return out
}

// generalize converts a value to a pattern.
func generalize(member string, value any, exact bool) any {
	switch value := value.(type) {
	case map[string]any:
		if free[member] && !exact {
			return ignored{}
		}
		out := make(map[string]any, len(value))
		for name, v := range value {
			if name != "_meta" {
				out[name] = generalize(name, v, exact)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = generalize(member, v, exact)
		}
		if exact {
			return out
		}
		return items(out)
	case string:
		switch {
		case isIdentity(member):
			return identity{identityName(member, value)}
		case exact || telling[member]:
			return plainText(value)
		case free[member]:
			return ignored{}
		}
		return anyOf("string")
	case nil:
		return nil
	}
	switch {
	case free[member] && !exact:
		return ignored{}
	case exact || telling[member]:
		return value
	}
	return anyOf(schema.TypeName(value))
}

// plainText matches exactly the same string, whatever it contains.
type plainText string

func (want plainText) match(got any, _ *names, at string) error {
	if got != string(want) {
		return fmt.Errorf("%s: got %s, want %s", place(at), text(got), text(string(want)))
	}
	return nil
}

// withoutMeta removes the members that any side may add.
func withoutMeta(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "_meta")
		for _, member := range v {
			withoutMeta(member)
		}
	case []any:
		for _, item := range v {
			withoutMeta(item)
		}
	}
	return v
}

// rewrite returns a message with some of its strings replaced and all other bytes unchanged. It calls replace for each
// string in the params, result or error, with the name of the member whose value, or item of whose value, it is. If id
// is not nil, it replaces that of the message. Without replacements, rewrite returns the line itself.
func rewrite(line, id []byte, replace func(member, value string) (string, bool)) []byte {
	w := rewriter{d: codec.NewDecoder(line), replace: replace, line: line}
	if w.d.Kind() != '{' {
		return line
	}
	for o := w.d.Object(); o.Next(); {
		switch name := string(o.Name()); name {
		case "id":
			if from := w.d.Offset(); id != nil {
				w.d.Skip()
				w.put(from, id)
				continue
			}
			fallthrough
		case "jsonrpc", "method":
			w.d.Skip()
		default:
			w.value(name)
		}
	}
	if w.d.End() != nil || w.at == 0 {
		return line
	}
	return append(w.out, line[w.at:]...)
}

type rewriter struct {
	d       *codec.Decoder
	replace func(member, value string) (string, bool)
	line    []byte
	out     []byte
	at      int // how much of the line is in out
}

func (w *rewriter) value(member string) {
	d := w.d
	switch d.Kind() {
	case '{':
		for o := d.Object(); o.Next(); {
			w.value(string(o.Name()))
		}
	case '[':
		for a := d.Array(); a.Next(); {
			w.value(member)
		}
	case '"':
		from := d.Offset()
		value := d.Str()
		if d.Err() != nil {
			return
		}
		if to, ok := w.replace(member, value); ok && to != value {
			w.put(from, codec.AppendString(nil, to))
		}
	default:
		d.Skip()
	}
}

// put replaces the value that was read last.
func (w *rewriter) put(from int, value []byte) {
	w.out = append(append(w.out, w.line[w.at:from]...), value...)
	w.at = from + len(w.d.Slice(from))
}

// learn binds the ids of a value that does not match its pattern, as far as the two are alike, because later messages
// use them.
func learn(pattern, got any, names *names) {
	switch want := pattern.(type) {
	case map[string]any:
		members, _ := got.(map[string]any)
		for name, member := range members {
			learn(want[name], member, names)
		}
	case items:
		list, _ := got.([]any)
		for i := range min(len(want), len(list)) {
			learn(want[i], list[i], names)
		}
	case []any:
		learn(items(want), got, names)
	case identity:
		if _, bound := names.values[want.name]; !bound {
			_ = want.match(got, names, "") // the difference was already reported
		}
	}
}
