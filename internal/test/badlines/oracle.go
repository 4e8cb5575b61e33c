// Package badlines has lines for tests that no peer should send, and computes how any line must be answered. It uses
// encoding/json, so that it does not depend on the code under test.
package badlines

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a line.
type Kind int

// The kinds of lines.
const (
	Unread       Kind = iota // not JSON, or nested too deeply
	Refused                  // JSON, but not a message
	Request                  // to be answered
	Notification             // never answered
	Response                 // never answered
)

// The codes of the errors that answer a line that is not a message.
const (
	ParseError     = -32700
	InvalidRequest = -32600
)

// A Message is a line as JSON-RPC classifies it.
type Message struct {
	Kind   Kind
	Method string
	Params json.RawMessage // nil when absent
	// ID is the id that the answer must have. It is nil if any id is right, as for some lines that are Unread.
	ID json.RawMessage
	// Codes has the allowed codes for the error that answers an Unread or Refused line.
	Codes []int
	// Silent is set if no answer is right too, because the line may be a damaged response.
	Silent bool
}

var null = json.RawMessage("null")

// Read classifies a line, if JSON may be nested maxDepth levels deep.
func Read(line []byte, maxDepth int) Message {
	if m, bad := unread(line, maxDepth); bad {
		return m
	}
	refused := Message{Kind: Refused, ID: null, Codes: []int{InvalidRequest}}
	members, twice, ok := envelope(line)
	if !ok {
		return refused
	}
	method := members["method"]
	hasMethod := method != nil && string(method) != "null"
	if has(members, "result") || has(members, "error") {
		if !hasMethod {
			return Message{Kind: Response}
		}
		twice = true // as wrong as that
	}
	id, hasID := members["id"]
	if hasID && strings.IndexByte(`"n-0123456789`, id[0]) >= 0 {
		refused.ID = id
	} else if hasID {
		return refused
	}
	name, isText := text(method)
	version, _ := text(members["jsonrpc"])
	switch {
	case twice || !isText || version != "2.0":
		return refused
	case hasID:
		return Message{Kind: Request, Method: name, Params: members["params"], ID: id}
	default:
		return Message{Kind: Notification, Method: name, Params: members["params"]}
	}
}

// unread returns how a line that is not JSON, or is nested too deeply, must be answered.
func unread(line []byte, maxDepth int) (m Message, bad bool) {
	valid, deep := json.Valid(line) && utf8.Valid(line), depth(line) > maxDepth
	if valid && !deep {
		return Message{}, false
	}
	m.Silent = MayBeResponse(line)
	if deep {
		m.Codes = append(m.Codes, InvalidRequest)
	} else {
		m.ID = null
	}
	if !valid {
		m.Codes = append(m.Codes, ParseError)
	}
	return m, true
}

// MayBeResponse reports whether a line that cannot be read may be a damaged response.
func MayBeResponse(line []byte) bool {
	return slices.ContainsFunc([]string{"result", "error", `\`}, func(s string) bool {
		return bytes.Contains(line, []byte(s))
	})
}

// depth returns how deep a text is nested, as far as that is defined for text that is not JSON.
func depth(text []byte) (deepest int) {
	level, inString, escaped := 0, false, false
	for _, c := range text {
		switch {
		case inString:
			inString = escaped || c != '"'
			escaped = !escaped && c == '\\'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// envelope returns the members of a message, the last of each name, and whether one of JSON-RPC's stood
// twice.
func envelope(line []byte) (members map[string]json.RawMessage, twice, ok bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, false, false
	}
	members = map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false, false
		}
		switch name := name.(string); name {
		case "jsonrpc", "id", "method", "params", "result", "error":
			twice = twice || has(members, name)
			members[name] = value
		}
	}
	return members, twice, true
}

func has(members map[string]json.RawMessage, name string) bool {
	_, ok := members[name]
	return ok
}

func text(value json.RawMessage) (s string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(value, &s) == nil
}

// Key is equal for equal ids. Strings are compared by value, unless they contain half a surrogate pair;
// numbers are compared as they are written.
func Key(id json.RawMessage) string {
	s, ok := text(id)
	if !ok || strings.ContainsRune(s, utf8.RuneError) && bytes.Contains(id, []byte(`\u`)) {
		return string(id)
	}
	return strconv.Quote(s)
}
