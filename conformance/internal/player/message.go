package player

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/finding"
)

// Message is one line of the connection, parsed as far as it is a message.
type Message struct {
	Number    int // on its connection, from 1
	Direction conformance.Direction
	Kind      conformance.Kind // empty if it is not a message
	Method    string           // for an answer, the method of its request
	ID        string           // JSON text, empty if there is none
	Params    json.RawMessage  // or the result, or the error
	Time      time.Time
	broken    bool // the envelope is invalid, or the line is not JSON
}

// Text returns the string at the end of a path of members, or "" if there is none.
func (m *Message) Text(path ...string) string {
	if m == nil {
		return ""
	}
	return TextOf(m.Params, path...)
}

// TextOf returns the string at the end of a path of members of a value, or "" if there is none.
func TextOf(value json.RawMessage, path ...string) string {
	var s string
	if json.Unmarshal(Member(value, path...), &s) != nil {
		return ""
	}
	return s
}

// IsReply reports whether the message is a result or an error.
func (m *Message) IsReply() bool {
	return m.Kind == conformance.Response || m.Kind == conformance.ErrorReply
}

// Code returns the code of an error answer, or 0 for other messages.
func (m *Message) Code() int {
	var e struct{ Code int }
	if m == nil || m.Kind != conformance.ErrorReply || json.Unmarshal(m.Params, &e) != nil {
		return 0
	}
	return e.Code
}

// Describe describes a message in words.
func (m *Message) Describe() string {
	if m == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s: %s", m.Kind, Clip(string(m.Params)))
}

// AnswerText is an answer for a message.
func AnswerText(m *Message) string {
	if m == nil {
		return "no answer"
	}
	return Clip(string(m.Params))
}

// Member returns the value at the end of a path of members, or nil if there is none.
func Member(value json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil {
			return nil
		}
		value = members[name]
	}
	return value
}

// IsSet reports whether there is a value other than null at the end of the path.
func IsSet(value json.RawMessage, path ...string) bool {
	v := Member(value, path...)
	return v != nil && string(v) != "null"
}

// Elements returns the elements of an array, or none for another value.
func Elements(value json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	return list
}

// Parse parses a line.
func Parse(line []byte) *Message {
	var e struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	m := &Message{}
	if json.Unmarshal(line, &e) != nil {
		return m
	}
	if e.ID != nil {
		m.ID = string(e.ID)
	}
	switch {
	case e.Method != nil && e.ID != nil:
		m.Kind, m.Method, m.Params = conformance.Request, *e.Method, e.Params
	case e.Method != nil:
		m.Kind, m.Method, m.Params = conformance.Notification, *e.Method, e.Params
	case e.Error != nil && string(e.Error) != "null":
		m.Kind, m.Params = conformance.ErrorReply, e.Error
	case e.ID != nil && e.Result != nil:
		m.Kind, m.Params = conformance.Response, e.Result
	}
	return m
}

// Canonical returns the canonical form of an id, because a string can be written in many ways.
func Canonical(id string) string {
	var text string
	if !strings.HasPrefix(id, `"`) || json.Unmarshal([]byte(id), &text) != nil {
		return id
	}
	return Quote(text)
}

// Arrow shows a direction in a transcript.
func Arrow(d conformance.Direction) string {
	if d == conformance.ToAgent {
		return "->"
	}
	return "<-"
}

// maxLogLine is the maximum length of a line of a transcript, in bytes.
const maxLogLine = 400

// Clip truncates a text to the maximum length in a transcript, on one line.
func Clip(s string) string { return finding.ClipTo(s, maxLogLine) }

// Quote returns a string as JSON text.
func Quote(s string) string {
	text, _ := json.Marshal(s) // a string can always be encoded
	return string(text)
}

// OutcomeOf returns the kind of the option that an answer to a request for permission selects, or else its outcome.
func OutcomeOf(request, answer *Message) string {
	outcome := answer.Text("outcome", "outcome")
	for _, option := range Elements(Member(request.Params, "options")) {
		if outcome == "selected" && IsSet(option, "optionId") &&
			TextOf(option, "optionId") == answer.Text("outcome", "optionId") {
			return TextOf(option, "kind")
		}
	}
	return outcome
}
