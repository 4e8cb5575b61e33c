package recording

import (
	"encoding/json"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// Kind is the kind of an entry.
type Kind int

// The kinds of entries.
const (
	// KindNone is an entry with only Err, for a line that could not be read.
	KindNone Kind = iota
	// KindHeader begins a recording, if its format has headers.
	KindHeader
	// KindMessage is a line that one side wrote.
	KindMessage
	// KindStderr is a line that the agent wrote to standard error.
	KindStderr
	// KindEnd ends a recording.
	KindEnd
)

// Entry is one entry of a recording.
type Entry struct {
	Kind Kind
	// Number is the line of the file on which the entry begins, from 1.
	Number int
	// Connection is the number of the recording in the file, from 1. A file may contain several, one after the other.
	Connection int
	// Time is the time when the line passed, or the zero Time if unknown. If the recording has no date, it begins on 1
	// January 1970 at 0:00 UTC.
	Time time.Time
	// Direction is the direction of a message.
	Direction conformance.Direction
	// Line is the written line without its newline. It is valid until the next Read.
	Line []byte
	// Partial is set if the writer's output ended with this line, without a newline.
	Partial bool
	Header  *Header // of a KindHeader
	End     *End    // of a KindEnd
	// Err is an *Error about this line of the file, or nil. Unless its Kind is KindNone, the entry can be used
	// nevertheless.
	Err error
}

// Message returns the entry as a message, which shares its line.
func (e *Entry) Message() conformance.Message {
	return conformance.Message{Direction: e.Direction, Line: e.Line, Time: e.Time}
}

// Header describes the origin of a recording. Any field may be unknown.
type Header struct {
	// Tool and Version identify the program that recorded.
	Tool, Version string
	// Command is the agent's command line.
	Command []string
	// Versions has the negotiated versions of the protocol.
	Versions []int
	// Date is the time when the recording began.
	Date time.Time
	// Masked is set if secrets were replaced.
	Masked bool
	// Meta is the unchanged header of another format.
	Meta json.RawMessage
}

// End says how the connection and the agent ended.
type End struct {
	// Code is the agent's exit status, or nil if it is unknown or a signal ended the agent.
	Code *int
	// Signal is the name of the signal that ended the agent, such as "SIGTERM", or empty.
	Signal string
	// Closed is the side that ended the connection, or 0 if unknown.
	Closed conformance.Side
}

// header is the line of a Header.
type header struct {
	Recording int             `json:"recording"`
	Tool      string          `json:"tool,omitempty"`
	Version   string          `json:"version,omitempty"`
	Command   []string        `json:"command,omitempty"`
	Versions  []int           `json:"protocolVersions,omitempty"`
	Date      *time.Time      `json:"date,omitempty"`
	Masked    bool            `json:"masked,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
}

// exit is the member of an End.
type exit struct {
	Code   *int    `json:"code"`
	Signal *string `json:"signal"`
}

// formVersion is the version of the format.
const formVersion = 1
