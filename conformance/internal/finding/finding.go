// Package finding has what a validator and a judge report: findings, sides, directions, kinds of messages. Package
// conformance has aliases for all of it.
package finding

import (
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

// Peer is the other side.
func (s Side) Peer() Side {
	if s == Client {
		return Agent
	}
	return Client
}

// String is "client" or "agent", the names that the schema uses.
func (s Side) String() string {
	switch s {
	case Client:
		return "client"
	case Agent:
		return "agent"
	}
	return "Side(" + strconv.Itoa(int(s)) + ")"
}

// Direction is the way that a message goes.
type Direction int

// The two directions of a connection.
const (
	ToAgent  Direction = iota + 1 // written by the client
	ToClient                      // written by the agent
)

// Sender is the side that writes the messages of this direction.
func (d Direction) Sender() Side {
	if d == ToAgent {
		return Client
	}
	return Agent
}

// String is "client → agent" or "agent → client".
func (d Direction) String() string {
	switch d {
	case ToAgent, ToClient:
		return d.Sender().String() + " → " + d.Sender().Peer().String()
	}
	return "Direction(" + strconv.Itoa(int(d)) + ")"
}

// Direction is the way of what the side writes.
func (s Side) Direction() Direction {
	if s == Client {
		return ToAgent
	}
	return ToClient
}

// Kind is what a message is in JSON-RPC; it is empty where that is not clear.
type Kind string

// The kinds of message.
const (
	Request      Kind = "request"
	Response     Kind = "response" // an answer with a result
	ErrorReply   Kind = "error"    // an answer with an error
	Notification Kind = "notification"
)

// Level says how grave it is to break a requirement, by the word that the protocol's documents use. The gravest is the
// least.
type Level int

// The levels.
const (
	Must Level = iota + 1
	MustNot
	Should
	ShouldNot
	Advice // what the documents say in lower case as advice, and what this package itself has to say
)

// String is "MUST", "MUST NOT", "SHOULD", "SHOULD NOT" or "advice".
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

// Finding is one thing that is wrong with one message. Its texts are always short: long values are cut.
type Finding struct {
	// Rule is the id of the requirement that is broken ("SES-7"). It is empty where this package says something about
	// its own work, such as that it forgets requests.
	Rule string
	// Level is that of the requirement, or a milder one.
	Level Level
	// Side is who breaks it: the sender of the message, or who never sent what it called for.
	Side Side
	// Number is the message's place on its connection, from 1.
	Number    int
	Direction Direction
	// Method is the method of a request or notification, or of the request that a response answers;
	// empty where it is not known.
	Method string
	Kind   Kind
	// ID is the JSON text of the message's id, empty when there is none.
	ID string
	// Pointer is the JSON pointer (RFC 6901) of the offending value in the params, the result or the
	// error; in the whole message when Definition is Envelope.
	Pointer string
	Message string
	// Definition is the schema's definition that the value violates ("PlanEntry"), with the tag when it is a variant of
	// a union ("ContentBlock text"); empty in the finding of a Rule.
	Definition string
	// Evidence are earlier messages that prove it, such as the request that was never answered.
	Evidence []Evidence
}

// Evidence is a message that a finding refers to, so that the finding can be read without the recording.
type Evidence struct {
	Number    int // the message's place on its connection, from 1
	Direction Direction
	Kind      Kind
	Method    string // of an answer, that of its request
	ID        string // the JSON text of the id, empty when there is none
	Excerpt   string // the beginning of the line
	Why       string // what it proves: "the request that was never answered"
}

// String is one line, such as
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

// subject names the message: a notification by its method alone.
func (f Finding) subject() string {
	s := f.Method
	if s == "" {
		s = "message"
	}
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

// Clip cuts a text to maxText bytes, at a character boundary, and keeps it on one line.
func Clip(s string) string {
	if len(s) > MaxText {
		s = strings.ToValidUTF8(s[:MaxText], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}
