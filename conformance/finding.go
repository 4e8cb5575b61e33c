package conformance

import "github.com/acpgo/sdk/conformance/internal/finding"

// Finding is one fault of one message. Rule is the id of the broken requirement, Level its severity, and Side the side
// that broke it. Number, Direction, Method, Kind and ID identify the message, and Pointer (RFC 6901) the value in it.
// Message describes the fault, Definition is the schema's name for the value, and Evidence has the earlier messages
// that prove the fault. All texts are short; long values are truncated.
type Finding = finding.Finding

// Evidence is a message that a finding refers to. It has enough of the message for readers without the recording: its
// Number, Direction, Kind, Method and ID, an Excerpt of the line, and in Why the reason why it is shown.
type Evidence = finding.Evidence

// Envelope is the Definition of a finding about the JSON-RPC message itself.
const Envelope = finding.Envelope

// Side is one of the two ends of a connection. Peer returns the other one.
type Side = finding.Side

// The two ends of a connection.
const (
	Client = finding.Client // the editor, or whatever starts the agent
	Agent  = finding.Agent  // the program that answers prompts
)

// Direction is the direction in which a message travels. Sender returns the side that writes it.
type Direction = finding.Direction

// The two directions of a connection.
const (
	ToAgent  = finding.ToAgent  // written by the client
	ToClient = finding.ToClient // written by the agent
)

// Kind is the kind of a JSON-RPC message. It is empty if the kind is unclear.
type Kind = finding.Kind

// The kinds of message.
const (
	Request      = finding.Request
	Response     = finding.Response   // an answer with a result
	ErrorReply   = finding.ErrorReply // an answer with an error
	Notification = finding.Notification
)

// Level is the severity of breaking a requirement, named by the keyword that the protocol's documents use. The most
// severe level is the smallest.
type Level = finding.Level

// The levels.
const (
	Must      = finding.Must
	MustNot   = finding.MustNot
	Should    = finding.Should
	ShouldNot = finding.ShouldNot
	Advice    = finding.Advice // advice that the documents give in lower case, and remarks of this package itself
)
