// Package finding defines what a validator and a judge report: findings, and the sides, directions, kinds of messages
// and levels that they name. Package conformance has aliases for all of these.
package finding

import (
	"cmp"
	"strconv"
	"strings"
)

// Side is one of the two ends of a connection.
type Side int

// The two ends of a connection.
const (
	Client Side = iota + 1 // the editor, or whatever starts the agent
	Agent                  // the program that answers prompts
)

// Peer returns the other side.
func (s Side) Peer() Side {
	if s == Client {
		return Agent
	}
	return Client
}

// String returns "client" or "agent", the names that the schema uses.
func (s Side) String() string {
	switch s {
	case Client:
		return "client"
	case Agent:
		return "agent"
	}
	return "Side(" + strconv.Itoa(int(s)) + ")"
}

// Direction is the direction in which a message travels.
type Direction int

// The two directions of a connection.
const (
	ToAgent  Direction = iota + 1 // written by the client
	ToClient                      // written by the agent
)

// Sender returns the side that writes the messages of this direction.
func (d Direction) Sender() Side {
	if d == ToAgent {
		return Client
	}
	return Agent
}

// String returns "client → agent" or "agent → client".
func (d Direction) String() string {
	switch d {
	case ToAgent, ToClient:
		return d.Sender().String() + " → " + d.Sender().Peer().String()
	}
	return "Direction(" + strconv.Itoa(int(d)) + ")"
}

// Direction returns the direction of the messages that the side writes.
func (s Side) Direction() Direction {
	if s == Client {
		return ToAgent
	}
	return ToClient
}

// Kind is the kind of a JSON-RPC message. It is empty if the kind is unclear.
type Kind string

// The kinds of message.
const (
	Request      Kind = "request"
	Response     Kind = "response" // an answer with a result
	ErrorReply   Kind = "error"    // an answer with an error
	Notification Kind = "notification"
)

// Level is the severity of breaking a requirement, named by the keyword that the protocol's documents use. The most
// severe level is the smallest.
type Level int

// The levels.
const (
	Must Level = iota + 1
	MustNot
	Should
	ShouldNot
	Advice // advice that the documents give in lower case, and remarks of this package itself
)

// String returns "MUST", "MUST NOT", "SHOULD", "SHOULD NOT" or "advice".
func (l Level) String() string {
	switch l {
	case Must:
		return "MUST"
	case MustNot:
		return "MUST NOT"
	case Should:
		return "SHOULD"
	case ShouldNot:
		return "SHOULD NOT"
	case Advice:
		return "advice"
	}
	return "Level(" + strconv.Itoa(int(l)) + ")"
}

// Envelope is the Definition of a finding about the JSON-RPC message itself.
const Envelope = "JSON-RPC"

// Finding is one fault of one message. Its texts are short; long values are truncated.
type Finding struct {
	// Rule is the id of the broken requirement ("SES-7"). It is empty in remarks about the validation itself, such as
	// that it forgets requests.
	Rule string
	// Level is the level of the requirement, or a milder one.
	Level Level
	// Side is the side at fault: the sender of the message, or the side that never answered it.
	Side Side
	// Number is the message's place on its connection, from 1.
	Number    int
	Direction Direction
	// Method is the method of a request or notification, or of the request that a response answers. It is empty if
	// unknown.
	Method string
	Kind   Kind
	// ID is the JSON text of the message's id, empty if there is none.
	ID string
	// Pointer is the JSON pointer (RFC 6901) of the offending value in the params, the result or the error, or in the
	// whole message if Definition is Envelope.
	Pointer string
	Message string
	// Definition is the schema definition that the value violates ("PlanEntry"), with the tag if it is a variant of a
	// union ("ContentBlock text"). It is empty if a Rule made the finding.
	Definition string
	// Evidence is the list of earlier messages that prove the finding, such as the request that was never answered.
	Evidence []Evidence
}

// Evidence is a message that a finding refers to. With it, the finding can be understood without the recording.
type Evidence struct {
	Number    int // the message's place on its connection, from 1
	Direction Direction
	Kind      Kind
	Method    string // of an answer: the method of its request
	ID        string // the JSON text of the id, empty if there is none
	Excerpt   string // the beginning of the line
	Why       string // its role in the finding: "the request that was never answered"
}

// String returns the finding on one line, such as
//
//	INI-6 MUST: session/update: /update/content: missing property "text" (ContentBlock text)
func (f Finding) String() string {
	var b strings.Builder
	if f.Rule != "" {
		b.WriteString(f.Rule + " ")
	}
	b.WriteString(f.Level.String() + ": ")
	b.WriteString(f.subject())
	b.WriteString(": ")
	if f.Pointer != "" {
		b.WriteString(f.Pointer)
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	if f.Definition != "" {
		b.WriteString(" (" + f.Definition + ")")
	}
	return b.String()
}

// subject names the message. Notifications are named by their method alone.
func (f Finding) subject() string {
	s := cmp.Or(f.Method, "message")
	switch f.Kind {
	case Request:
		return s + " request " + f.ID
	case Response:
		return s + " response " + f.ID
	case ErrorReply:
		return s + " error " + f.ID
	}
	return s
}

// MaxText bounds each text of a finding, in bytes.
const MaxText = 240

// Clip truncates s to MaxText bytes; see ClipTo.
func Clip(s string) string { return ClipTo(s, MaxText) }

// ClipTo truncates s to a number of bytes at a character boundary and replaces control characters, so that it stays on
// one line.
func ClipTo(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
