package recording

import (
	"encoding/json"
	"time"

	"github.com/acpgo/sdk/conformance"
)

// Kind is what an entry is.
type Kind int

// The kinds of entries.
const (
	// KindNone is an entry that holds nothing but Err: what stands there could not be read.
	KindNone Kind = iota
	// KindHeader begins a recording. Forms without headers have none.
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
	// Connection counts the recordings in the file, from 1: a file may hold several, one after the other.
	Connection int
	// Time is when the line passed; the zero Time if that is not known. Where the recording does not
	// tell the date, it begins on the first of January 1970 at 0:00 UTC.
	Time time.Time
	// Direction is the way of a message.
	Direction conformance.Direction
	// Line is what was written, without the newline. It is valid until the next Read.
	Line []byte
	// Partial says that the writer's output ended with the line, without a newline.
	Partial bool
	Header  *Header // of a KindHeader
	End     *End    // of a KindEnd
	// Err is an *Error about this line of the file, or nil. An entry of another kind than KindNone can be used
	// nevertheless.
	Err error
}

// Message is the entry as a message. It shares the line.
func (e *Entry) Message() conformance.Message {
	return conformance.Message{Direction: e.Direction, Line: e.Line, Time: e.Time}
}

// Header says where a recording comes from. All of it may be unknown.
type Header struct {
	// Tool and Version name the program that has recorded.
	Tool, Version string
	// Command is the agent's command line.
	Command []string
	// Versions are the versions of the protocol that were spoken.
	Versions []int
	// Date is when the recording began.
	Date time.Time
	// Masked says that secrets were replaced.
	Masked bool
	// Meta is the header of another form, as it is.
	Meta json.RawMessage
}

// End says how the connection and the agent ended.
type End struct {
	// Code is the agent's exit status, or nil if that is not known or a signal ended it.
	Code *int
	// Signal is the name of the signal that ended it, such as "SIGTERM", or empty.
	Signal string
	// Closed is the side that ended the connection, or 0 if that is not known.
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

// formVersion is the version of the form.
const formVersion = 1
