package probe

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// message is one line of the connection, parsed as far as it is a message.
type message struct {
	number    int // on its connection, from 1
	direction conformance.Direction
	kind      conformance.Kind // empty if it is not a message
	method    string           // for an answer, the method of its request
	id        string           // JSON text, empty if there is none
	params    json.RawMessage  // or the result, or the error
	time      time.Time
	broken    bool // the envelope is invalid, or the line is not JSON
}

// text returns the string at the end of a path of members, or "" if there is none.
func (m *message) text(path ...string) string {
	if m == nil {
		return ""
	}
	return textOf(m.params, path...)
}

// textOf returns the string at the end of a path of members of a value, or "" if there is none.
func textOf(value json.RawMessage, path ...string) string {
	var s string
	if json.Unmarshal(member(value, path...), &s) != nil {
		return ""
	}
	return s
}

// isReply reports whether the message is a result or an error.
func (m *message) isReply() bool {
	return m.kind == conformance.Response || m.kind == conformance.ErrorReply
}

// code returns the code of an error answer, or 0 for other messages.
func (m *message) code() int {
	var e struct{ Code int }
	if m == nil || m.kind != conformance.ErrorReply || json.Unmarshal(m.params, &e) != nil {
		return 0
	}
	return e.Code
}

// describe describes a message in words.
func (m *message) describe() string {
	if m == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s: %s", m.kind, clip(string(m.params)))
}

// answerText is an answer for a message.
func answerText(m *message) string {
	if m == nil {
		return "no answer"
	}
	return clip(string(m.params))
}

// member returns the value at the end of a path of members, or nil if there is none.
func member(value json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return nil
		}
		value = members[name]
	}
	return value
}

// isSet reports whether there is a value other than null at the end of the path.
func isSet(value json.RawMessage, path ...string) bool {
	v := member(value, path...)
	return v != nil && string(v) != "null"
}

// elements returns the elements of an array, or none for another value.
func elements(value json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	return list
}

// parse parses a line.
func parse(line []byte) *message {
	var e struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	m := &message{}
	if json.Unmarshal(line, &e) != nil {
		return m
	}
	if e.ID != nil {
		m.id = string(e.ID)
	}
	switch {
	case e.Method != nil && e.ID != nil:
		m.kind, m.method, m.params = conformance.Request, *e.Method, e.Params
	case e.Method != nil:
		m.kind, m.method, m.params = conformance.Notification, *e.Method, e.Params
	case e.Error != nil && string(e.Error) != "null":
		m.kind, m.params = conformance.ErrorReply, e.Error
	case e.ID != nil && e.Result != nil:
		m.kind, m.params = conformance.Response, e.Result
	}
	return m
}

// canonical returns the canonical form of an id, because a string can be written in many ways.
func canonical(id string) string {
	var text string
	if !strings.HasPrefix(id, `"`) || json.Unmarshal([]byte(id), &text) != nil {
		return id
	}
	return quote(text)
}

func arrow(d conformance.Direction) string {
	if d == conformance.ToAgent {
		return "->"
	}
	return "<-"
}

// maxLogLine is the maximum length of a line of a transcript, in bytes.
const maxLogLine = 400

// clip truncates a text to the maximum length in a transcript, on one line.
func clip(s string) string {
	if len(s) > maxLogLine {
		s = s[:maxLogLine] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// quote returns a string as JSON text.
func quote(s string) string {
	text, _ := json.Marshal(s) // a string can always be encoded
	return string(text)
}

// outcomeOf returns the kind of the option that an answer to a request for permission selects, or else its outcome.
func outcomeOf(request, answer *message) string {
	outcome := answer.text("outcome", "outcome")
	for _, option := range elements(member(request.params, "options")) {
		if outcome == "selected" && isSet(option, "optionId") && textOf(option, "optionId") == answer.text("outcome", "optionId") {
			return textOf(option, "kind")
		}
	}
	return outcome
}
