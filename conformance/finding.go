package conformance

import "github.com/acpgo/sdk/conformance/internal/finding"

// Finding is one thing that is wrong with one message. Rule is the id of the requirement that is broken, Level how grave that
// is, and Side who broke it. Number, Direction, Method, Kind and ID tell which message it is, and Pointer (RFC 6901) which
// value in it. Message says what is wrong, Definition what the schema calls the value, and Evidence which earlier messages
// prove it. Its texts are always short: long values are cut.
type Finding = finding.Finding

// Evidence is a message that a finding refers to, so that the finding can be read without the recording: its Number,
// Direction, Kind, Method and ID, an Excerpt of the line, and Why it is shown.
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

// Direction is the way that a message goes. Sender returns the side that writes it.
type Direction = finding.Direction

// The two directions of a connection.
const (
	ToAgent  = finding.ToAgent  // written by the client
	ToClient = finding.ToClient // written by the agent
)

// Kind is what a message is in JSON-RPC; it is empty where that is not clear.
type Kind = finding.Kind

// The kinds of message.
const (
	Request      = finding.Request
	Response     = finding.Response   // an answer with a result
	ErrorReply   = finding.ErrorReply // an answer with an error
	Notification = finding.Notification
)

// Level says how grave it is to break a requirement, by the word that the protocol's documents use. The gravest is the
// least.
type Level = finding.Level

// The levels.
const (
	Must      = finding.Must
	MustNot   = finding.MustNot
	Should    = finding.Should
	ShouldNot = finding.ShouldNot
	Advice    = finding.Advice // what the documents say in lower case as advice, and what this package itself has to say
)
