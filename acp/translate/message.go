package translate

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/acpgo/sdk/codec"
)

// A Side is an end of the connection, or its host.
type Side int8

// The sides.
const (
	ClientSide Side = iota + 1
	AgentSide
	HostSide // what serves an agent instead of its client; see [Host]

	nobody Side = 0 // the receiver of a prompt as long as it has another id with the agent
)

// other returns the opposite side.
func (s Side) other() Side { return ClientSide + AgentSide - s }

// A Message is one line for one side, without newline.
type Message struct {
	To   Side
	Line []byte
}

// message is a message, taken apart.
type message struct {
	from   Side
	line   []byte
	all    object
	id     raw // nil for a notification
	method string
	params object // nil if they are not an object
}

// read takes a message apart. It returns nil for lines that are not messages.
func read(from Side, line []byte) (*message, *fault) {
	i := space(line, 0)
	switch {
	case i == len(line) || !json.Valid(line):
		return nil, nil
	case line[i] == '[':
		// Version 2 allows batches, and the connections of this module refuse them in both versions.
		return nil, &fault{-32600, "Invalid request: batches are not supported", nil}
	}
	all, ok := parse(line)
	if !ok {
		if line[i] == '{' {
			return nil, &fault{-32600, "Invalid request: a member occurs twice", nil}
		}
		return nil, nil
	}
	m := &message{from: from, line: line, all: all, method: all.str("method")}
	if m.method == "" && (all.has("result") || all.has("error")) {
		m.onlyAnswer()
	} else if m.method == "" && all.has("method") {
		return nil, nil
	}
	if i := all.index("id"); i >= 0 {
		m.id = all[i].value
	}
	if i := all.index("params"); i >= 0 && !isNull(all[i].value) {
		m.params, _ = parse(all[i].value)
	} else {
		m.params = object{}
	}
	return m, nil
}

// onlyAnswer leaves an answer either a result or an error, and no method that is none, so that a lenient reader cannot
// understand it differently: what is not an error to it would be an answer that was never looked at.
func (m *message) onlyAnswer() {
	before := len(m.all)
	m.all.drop("method")
	if m.all.get("error") != nil {
		m.all.drop("result")
	} else if m.all.has("result") {
		m.all.drop("error")
	}
	if len(m.all) != before {
		m.line = m.all.text()
	}
}

func (m *message) str(name string) string { return m.params.str(name) }

// with returns the message with another method or other params.
func (m *message) with(method string, params object) []byte {
	all := slices.Clone(m.all)
	all.set("method", quote(method))
	all.set("params", params.text())
	return all.text()
}

// canonical returns an id such that two texts of the same id are equal.
func canonical(id raw) string { return string(codec.AppendCanonical(nil, id)) }

// fault is a JSON-RPC error.
type fault struct {
	code    int
	message string
	data    raw
}

func failure(id raw, err *fault) raw {
	e := obj("code", number(err.code), "message", err.message, "data", err.data)
	return obj("jsonrpc", "2.0", "id", id, "error", e).text()
}

func errObject(err *fault) object {
	return obj("code", number(err.code), "message", err.message, "data", err.data)
}

func errParams(format string, args ...any) *fault {
	return &fault{-32602, "Invalid params: " + fmt.Sprintf(format, args...), nil}
}

func errNoMethod(method string) *fault {
	return &fault{-32601, "Method not found: " + method, obj("method", method).text()}
}

func errNoSession(id string) *fault {
	return &fault{-32002, "Session not found", obj("sessionId", id).text()}
}

var errCancelled = &fault{-32800, "Request cancelled", nil}
