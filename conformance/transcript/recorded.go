// Recorded conversations: what their messages stand for when they are played again.

package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/conformance"
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
	kind   conformance.Kind // empty for what is not a message
	method string           // of a request or notification, or of the request that is answered
	id     string           // as JSON, or empty
	update string           // the kind of update, of session/update

	members map[string]any // decoded
}

// ErrNoConversation says that a file has no connection of the wanted number.
var ErrNoConversation = errors.New("no such connection in the recording")

// ReadRecorded reads one connection of a recording, the first of which is 1. The name is for messages. What is wrong
// with other lines is given to bad, which may be nil.
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
		m.members = nil // decoded again when it is compared
		m.answers(open)
		r.steps = append(r.steps, m)
	}
	if len(r.steps) == 0 {
		return nil, fmt.Errorf("%s: %w: %d", name, ErrNoConversation, connection)
	}
	return r, nil
}

// answers notes a request, or finds the method of the one that is answered.
func (m *message) answers(open map[conformance.Side]map[string]string) {
	switch m.kind {
	case conformance.Request:
		open[m.writer][m.id] = m.method
	case conformance.Response, conformance.ErrorReply:
		m.method = open[m.writer.Peer()][m.id]
		delete(open[m.writer.Peer()], m.id)
	}
}

// subjectOf says what a line is about.
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
		if text, err := encode(id); err == nil { // it was decoded
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

// isAnswer reports whether it answers a request.
func (s *subject) isAnswer() bool {
	return s.kind == conformance.Response || s.kind == conformance.ErrorReply
}

// same reports whether two messages are about the same: only then are they compared.
func (s *subject) same(other *subject) bool {
	if s.isAnswer() {
		return other.isAnswer() && s.id == other.id
	}
	return s.kind == other.kind && s.method == other.method && s.update == other.update
}

// String names a message, such as "session/update agent_message_chunk".
func (s *subject) String() string {
	method := s.method
	if method == "" {
		method = "a request"
	}
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

// flows reports whether the number of such messages in a row is a matter of chance: text comes in pieces.
func (s *subject) flows() bool {
	return strings.HasSuffix(s.update, "_chunk") || s.update == "usage_update"
}

// volatile is a pattern for what differs from run to run. Beside those that a Script can have there are these, which no
// text of a transcript stands for.
type volatile interface {
	match(got any, names *names, at string) error
}

// anyOf is any value of a JSON type.
type anyOf string

func (want anyOf) match(got any, _ *names, at string) error {
	if kind := typeOf(got); kind != string(want) {
		return fmt.Errorf("%s: got %s, want a %s", place(at), text(got), string(want))
	}
	return nil
}

// typeOf is the JSON type of a value.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "list"
	}
	return "object"
}

// items is a list of any length, in which each item is like one of these.
type items []any

func (want items) match(got any, names *names, at string) error {
	list, ok := got.([]any)
	if !ok {
		return fmt.Errorf("%s: got %s, want a list", place(at), text(got))
	}
	if len(want) == 0 {
		return nil
	}
	for i, item := range list {
		var first error
		// The one at the same place first, then all others.
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

// identity is an id, which the peer may choose, and must then keep to.
type identity struct{ name string }

func (want identity) match(got any, names *names, at string) error {
	if _, isText := got.(string); !isText {
		return fmt.Errorf("%s: got %s, want a string", place(at), text(got))
	}
	return names.bindOrCompare(want.name, got, at)
}

// ignored is anything.
type ignored struct{}

func (ignored) match(any, *names, string) error { return nil }

// identityName is the name of the id that a member has in a recording. Ids of different things may be the same text.
func identityName(member, value string) string { return member + "=" + value }

// isIdentity reports whether a member is an id.
func isIdentity(member string) bool {
	return member == "id" || strings.HasSuffix(member, "Id") || strings.HasSuffix(member, "_id")
}

// telling are members whose texts and numbers are structure: they say what kind of thing it is, or what happened.
var telling = map[string]bool{
	"jsonrpc": true, "method": true, "sessionUpdate": true, "type": true, "kind": true, "status": true, "stopReason": true,
	"outcome": true, "action": true, "role": true, "code": true, "protocolVersion": true,
}

// free are members whose content is not ACP's.
var free = map[string]bool{"rawInput": true, "rawOutput": true, "data": true}

// pattern is what a recorded message stands for. Exact keeps all values but ids.
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
			out[name] = ignored{} // the peer counts as it likes
		case name == "id", name == "error" && exact:
			out[name] = value
		case name == "_meta":
		default:
			out[name] = generalize(name, value, exact)
		}
	}
	return out
}

// generalize makes a pattern of a value.
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
	return anyOf(typeOf(value))
}

// plainText is a string that stands for itself, whatever is in it.
type plainText string

func (want plainText) match(got any, _ *names, at string) error {
	if got != string(want) {
		return fmt.Errorf("%s: got %s, want %s", place(at), text(got), text(string(want)))
	}
	return nil
}

// withoutMeta drops the members that everybody may add.
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

// rewrite returns a message with some of its strings replaced, and all other bytes as they are. It calls replace for each
// string in its parameters, result or error, with the name of the member whose value it is, or is an item of. Without
// replacements it returns the line itself.
func rewrite(line []byte, replace func(member, value string) (string, bool)) []byte {
	w := rewriter{d: codec.NewDecoder(line), replace: replace, line: line}
	if w.d.Kind() != '{' {
		return line
	}
	for o := w.d.Object(); o.Next(); {
		switch name := string(o.Name()); name {
		case "jsonrpc", "id", "method":
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
		end := from + len(d.Slice(from))
		if to, ok := w.replace(member, value); ok && to != value {
			w.out = append(w.out, w.line[w.at:from]...)
			w.out = codec.AppendString(w.out, to)
			w.at = end
		}
	default:
		d.Skip()
	}
}

// withMember returns an object with another value of one of its own members, and all other bytes as they are.
func withMember(line []byte, name string, value []byte) []byte {
	d := codec.NewDecoder(line)
	for o := d.Object(); o.Next(); {
		at, this := d.Offset(), string(o.Name()) == name
		d.Skip()
		if this && d.Err() == nil {
			end := at + len(d.Slice(at))
			return slices.Concat(line[:at], value, line[end:])
		}
	}
	return line
}

// learn binds the ids of a value that does not match its pattern, as far as the two are alike: what follows uses them.
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
			_ = want.match(got, names, "") // it is no difference that was not reported
		}
	}
}
